"""Token selection at a tiny preset: labelled, cell by cell what direct training gives, exact at the start."""

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.lectures.benign_overfitting import token_selection
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection import Setting, experiment, selection
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention
from flbook.training.fit import fit
from flbook.training.network import Training

TINY = experiment.setting("tiny")


@pytest.mark.parametrize("keys", [False, True])
def test_a_cell_is_direct_training_on_drawn_tokens(keys):
    setting = TINY.thinned(train_keys=keys)
    cell = experiment.run(setting).sel(d=120, mu=10.0, seed=1)
    data = TokenSelection(n=10, d=120, mu_norm=10.0)
    sample = data.draw(1)
    problem = Training(TokenAttention(data.head, keys, 1, torch.float64), sample.x, sample.observed)
    params = fit(problem, token_selection.rule(setting), 60).params
    named = {f"model.{name}": p for name, p in params.items()}
    weight = torch.func.functional_call(_Attention(problem.model), named, (sample.x,))
    flipped = sample.y != sample.observed
    np.testing.assert_allclose(cell.flipped, weight[flipped].mean(0), rtol=1e-8)
    np.testing.assert_allclose(cell.clean, weight[~flipped].mean(0), rtol=1e-8)
    assert float(cell.train_error) == float(measures.train_error(problem, params))


class _Attention(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model.attention(x)


def test_wrong_labels_get_fitted_and_the_error_starts_at_the_closed_form():
    setting = Setting.cell(1000, 5.0, n=10, seed=(0, 1, 2), points=512, steps=3000)
    race = token_selection.race(setting, at=[0, 3000]).squeeze("mu")
    assert (race.fitted_flips.sel(step=3000) == 1).all() and (race.train_error.sel(step=3000) == 0).all()
    assert abs(race.test_error.sel(step=0) - selection.uniform_attention_error(5.0)).max() < 0.006
    flow = token_selection.flow(setting, [0.01, 5.0]).squeeze("mu")
    np.testing.assert_allclose(flow.pull.isel(time=1), race.pull.sel(step=3000), rtol=0.02)


def test_the_selection_ratio_of_weak_signals_is_the_closed_form():
    setting = Setting(d=(3000,), mu=(6.0,), seed=tuple(range(6)), steps=3000, points=64)
    cell = experiment.run(setting)
    ratio = float((cell.pull / cell.length).mean())
    assert ratio == pytest.approx(selection.selection_ratio(20, 6.0, 3000), rel=0.1)
