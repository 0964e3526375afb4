"""Shares of the table: more of it, more is right."""

from flbook.lectures.representation.grokking import table_share


def test_more_of_the_table_is_better():
    setting = table_share.experiment.setting(p=(13,), share=(0.3, 0.85), seed=(0, 1, 2), rounds=12)
    found = table_share.run(setting).accuracy.mean("seed").isel(p=0)
    assert found[1] > 0.5 > 0.2 > found[0]
