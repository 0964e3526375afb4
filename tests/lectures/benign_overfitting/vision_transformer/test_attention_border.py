"""The border over many settings: its closed form at each cell."""

import pytest

from flbook.lectures.benign_overfitting.vision_transformer import attention_border, first_stage


def test_borders_are_the_closed_form_times_the_measured_ratio():
    setting = attention_border.experiment.setting(
        "tiny", tokens=(16,), steps=(400,), seed=(0, 1, 2), ratio=(0.8, 0.9, 1.0, 1.1, 1.2), d=100000
    )
    run = attention_border.run(setting)
    found = attention_border.borders(run, setting).squeeze()
    assert float(found.closed_form) == first_stage.border(4)
    assert abs(float(found.ratio) - 1) < 0.1
    assert float(attention_border.mean_miss(run).value) == pytest.approx(abs(float(found.ratio) - 1))
    assert float(found.measured) == float(found.ratio) * float(found.closed_form)
