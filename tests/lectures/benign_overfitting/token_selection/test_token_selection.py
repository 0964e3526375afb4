"""Token selection over the logarithmic clock: the start is known exactly, the end by the closed forms."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting import token_selection
from flbook.lectures.benign_overfitting.token_selection import Setting, experiment, selection

ONE = Setting(n=(20,), d=(3000,), mu=(6.0,), seed=tuple(range(10)), points=512)


@pytest.fixture(scope="module")
def run():
    return experiment.measure(ONE).squeeze(("n", "d", "flip_prob", "mu"))


def test_it_starts_uniform_and_fits_the_wrong_labels(run):
    start, end = run.isel(time=0), run.isel(time=-1)
    assert float(abs(start.fresh - 1 / 8).max()) < 0.02
    assert float(abs(start.test_error - selection.uniform_attention_error(6.0)).max()) < 0.01
    assert float(end.fitted_flips.mean()) > 0.9 and float(end.clean.sel(token=1).mean()) > 0.9


def test_the_end_is_that_of_the_closed_forms(run):
    end, ratio = run.isel(time=-1).mean("seed"), selection.selection_ratio(20, 6.0, 3000)
    assert float(end.pull / end.length) == pytest.approx(ratio, rel=0.08)
    assert float(end.selected) == pytest.approx(float(selection.selected_share(ratio)), abs=0.03)
    assert float(end.test_error) == pytest.approx(float(selection.clock_error(run.time[-1], 20, 6.0, 3000)), abs=0.008)


def test_wrong_labels_are_where_the_model_puts_them():
    problem = token_selection.problem(ONE, 20, 100, 0.2)
    assert int(token_selection.flipped(problem).sum()) == 4
    none = token_selection.problem(ONE, 20, 100, 0.0)
    assert not token_selection.flipped(none).any()


def test_rivals_without_a_head_fail_and_succeed_where_they_should():
    setting = Setting(n=(20,), d=(1000,), mu=(1.0, 30.0), seed=(0, 1, 2))
    errors = token_selection.rivals(setting).squeeze("d").mean("seed")
    for name in ("pooled", "spectral"):
        assert float(errors[name].sel(mu=1.0)) == pytest.approx(0.5, abs=0.06)
        assert float(errors[name].sel(mu=30.0)) < 0.02
    assert np.isfinite(errors.to_array()).all()
