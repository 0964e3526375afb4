"""Shifted prompts: what each change does to the data, and what least squares makes of it, which is known exactly."""

import pytest
import torch

from flbook.data import LinearPrompts
from flbook.estimators.in_context import LeastSquares
from flbook.lectures.in_context_learning.what_is_icl.shifted_prompts import SHIFTS, ShiftedPrompts

D = 4


def draw(shift, n=3, batch=4000, seed=0):
    data = ShiftedPrompts(n, D, shift)
    return data, data.draw(batch, seed)


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_answer_has_the_variance_it_says(shift):
    data, prompts = draw(shift)
    assert prompts.target.square().mean().item() == pytest.approx(data.variance, rel=0.08)
    torch.testing.assert_close(prompts.target, torch.einsum("bqd,bd->bq", prompts.query, prompts.task))


@pytest.mark.parametrize(
    ("shift", "n", "risk"),
    [("as in training", 3, 1 / 4), ("inputs × 3", 3, 1 / 4), ("inputs × ⅓", 3, 1 / 4), ("labels × 3", 3, 1 / 4),
     ("half the directions", 1, 1 / 2), ("half the directions", 2, 0.0), ("one orthant", 3, 1 / 4),
     ("orthogonal query", 3, 1.0), ("query seen before", 3, 0.0), ("skewed inputs", 4, 0.0),
     ("noisy labels", 8, 1 / 3)],  # sigma^2/(k - d - 1), over d
)  # fmt: skip
def test_least_squares_has_its_closed_form_on_every_law(shift, n, risk):
    data, prompts = draw(shift, n, 5000)
    error = (LeastSquares()(prompts.context, prompts.query) - prompts.target).square().mean() / data.variance
    assert error.item() == pytest.approx(risk, abs=1e-12 if risk == 0 else 0.05)


def test_what_each_change_does():
    plain = LinearPrompts(3, D).draw(5, 0)
    _, same = draw("as in training", batch=5)
    assert torch.equal(same.context.x, plain.context.x)
    torch.testing.assert_close(same.target, plain.target)
    _, seen = draw("query seen before", batch=5)
    assert ((seen.query == seen.context.x).all(-1).sum(-1) == 1).all()
    _, away = draw("orthogonal query", batch=5)
    assert torch.einsum("bnd,bqd->bnq", away.context.x, away.query).abs().max() < 1e-12
    _, orthant = draw("one orthant", batch=5)
    assert (orthant.context.x.sign() == orthant.context.x[:, :1].sign()).all()
    _, half = draw("half the directions", batch=5)
    assert (torch.linalg.matrix_rank(half.context.x) == 2).all()
    _, noisy = draw("noisy labels", batch=5)
    torch.testing.assert_close(noisy.target, plain.target)
    assert not torch.isclose(noisy.context.y, plain.context.y).any()


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="n must be below d for a query orthogonal"):
        ShiftedPrompts(4, 4, "orthogonal query")
