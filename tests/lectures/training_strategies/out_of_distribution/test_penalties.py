"""Losses that compare environments: by their definitions, and their slopes by autograd."""

import pytest
import torch

from flbook.lectures.training_strategies.out_of_distribution.penalties import InvariantRisk, RiskVariance, WorstRisk
from flbook.training.losses import logistic

F = torch.tensor([[0.3, -1.2, 2.0, 0.4, -0.7, 1.1], [1.0, 0.2, -0.4, -2.0, 0.6, 0.9]]).double()
Y = torch.tensor([1.0, -1, 1, 1, -1, -1]).double()
LOSSES = [InvariantRisk(7.0), InvariantRisk(3.0, count=3), RiskVariance(5.0), WorstRisk()]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_slope_is_the_derivative(loss):
    f = F.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(f, Y).sum(), f)
    torch.testing.assert_close(loss.slope(F, Y), slope)


def test_the_mean_is_the_objective():
    risks = logistic(F, Y).unflatten(-1, (2, 3)).mean(-1)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    pulls = []
    for member in range(2):
        for part in (slice(0, 3), slice(3, 6)):
            risk = logistic(scale * F[member, part], Y[part]).mean()
            pulls.append(torch.autograd.grad(risk, scale)[0])
    c = torch.stack(pulls).reshape(2, 2)
    loss = InvariantRisk(7.0)
    torch.testing.assert_close(loss.scale_slope(F, Y), c)
    torch.testing.assert_close(loss(F, Y).mean(-1), risks.mean(-1) + 7 * c.square().mean(-1))
    torch.testing.assert_close(RiskVariance(5.0)(F, Y).mean(-1), risks.mean(-1) + 5 * risks.var(-1, correction=0))
    torch.testing.assert_close(WorstRisk()(F, Y).mean(-1), risks.amax(-1))


def test_environments_have_one_size():
    with pytest.raises(ValueError, match="^count must divide the number of samples"):
        InvariantRisk(1.0).check(Y[:5])
    with pytest.raises(ValueError, match="^labels must be -1 or"):
        InvariantRisk(1.0).check(2 * Y)
