"""Growth of a small circulant: near 1 + f."""

from flbook.lectures.representation.grokking import growth_per_round


def test_growth_is_one_plus_the_share():
    setting = growth_per_round.experiment.setting(p=(13, 29), share=(0.5,), seed=(0, 1, 2, 3))
    found = growth_per_round.run(setting)
    off = (found.growth.mean("seed") - 1 - found.exact_share).isel(share=0).values
    assert (abs(off) < (0.12, 0.04)).all()
