"""Training through moments against training on the prompts themselves, and the moments against their formulas."""

import pytest
import torch

from flbook.data.prompts import LinearPrompts
from flbook.lectures.in_context_learning.mamba_regression.recursion import MambaTraining
from flbook.lectures.in_context_learning.shared import forgetting as theory
from flbook.lectures.in_context_learning.shared.mamba import Mamba
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, Momentum

N, D = 8, 3
COVARIANCE = torch.tensor([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]], dtype=torch.float64)


def omega():
    return torch.from_numpy(theory.weights(float(theory.decay(N)), N))


def test_moments_are_the_layer_itself():
    model = Mamba(D, 5, N, seed=(0, 1))
    drawn = LinearPrompts(n=N, d=D, covariance=COVARIANCE, noise=0.4).draw(40, (3, 4))
    problem = MambaTraining.on(model, drawn.context, drawn.query, drawn.target)
    for parameter in (model.b_b, model.b_c):
        parameter.data.normal_()
    params = fit(problem, GradientDescent(1e-3), 5).params
    problem.into(params)
    loss = (model(drawn.context, drawn.query) - drawn.target).square().mean((-2, -1)) / 2
    torch.testing.assert_close(problem.train_loss(params), loss, rtol=1e-10, atol=0)
    loss.sum().backward()
    gradient = problem.gradient(params)
    for name in ("b", "c"):
        auto = torch.cat([getattr(model, f"w_{name}").grad, getattr(model, f"b_{name}").grad[..., None]], -1)
        torch.testing.assert_close(gradient[name], auto, rtol=1e-9, atol=1e-9)


def test_the_law_is_the_limit_of_many_prompts():
    model = Mamba(D, 5, N)
    drawn = LinearPrompts(n=N, d=D, covariance=COVARIANCE, noise=0.4).draw(60000, 0)
    sample = MambaTraining.on(model, drawn.context, drawn.query, drawn.target)
    law = MambaTraining.of_law(model, COVARIANCE, omega(), 0.4)
    for name in ("second", "cross"):
        found, expected = getattr(sample, name), getattr(law, name)
        torch.testing.assert_close(found, expected, atol=0.05 * float(expected.max()), rtol=0)
    assert sample.power.item() == pytest.approx(law.power, rel=0.05)


def test_the_optimum_is_the_closed_form_also_at_an_anisotropic_covariance():
    model = Mamba(D, 30, N)
    problem = MambaTraining.of_law(model, COVARIANCE, omega(), 0.4)
    params = fit(problem, Momentum(3e-4, 0.9), 6000).params
    best = theory.attention_matrix(COVARIANCE.numpy(), omega().numpy(), 0.4)
    torch.testing.assert_close(problem.into(params).merged().detach(), torch.from_numpy(best), rtol=1e-5, atol=1e-5)
    risk = 2 * problem.train_loss(params).item()
    torch.testing.assert_close(risk, float(theory.mamba_risk(COVARIANCE.numpy(), N, 0.4)), rtol=1e-8, atol=0)
