"""The reported cells: what is trained in token coordinates is what is trained in d dimensions, W included."""

import pytest
import torch

from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection import reported_cells, selection
from flbook.lectures.benign_overfitting.token_selection.reported_cells import CELLS, KEYS, experiment
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention
from flbook.runs.cells import cell_of
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent


@pytest.mark.parametrize("trained", ["query", "query and keys"])
def test_a_cell_is_training_in_all_dimensions(trained):
    setting = cell_of(experiment.setting("tiny"), {"trained": trained, "cell": "no overfitting"}, ())
    problem = reported_cells.problem(setting)
    d, mu = CELLS["no overfitting"]
    data = TokenSelection(20, d, mu)
    sample, keys = data.draw(1), trained != "query"
    direct = Training(TokenAttention(data.head, keys, 1, torch.float64), sample.x, sample.observed)
    rule = GradientDescent(setting.lr if keys else KEYS * setting.lr)
    expected = direct.predict(fit(direct, rule, 20).params)
    torch.testing.assert_close(problem.predict(fit(problem, rule, 20).params)[1], expected, rtol=1e-9, atol=1e-9)


def test_before_training_it_is_uniform_attention():
    found = experiment.measure(experiment.setting("tiny")).sel(step=0)
    assert float(abs(found.test_error - selection.uniform_attention_error(80.0)).max()) < 1e-12
    assert (found.fitted_flips == 0).all(), "the head contradicts wrong labels"
