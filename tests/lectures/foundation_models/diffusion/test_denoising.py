"""A denoiser in coefficients: the gradient and the training of the weights themselves, and drawn Gram matrices."""

import math

import pytest
import torch

from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining, draw_basis, slopes
from flbook.lectures.foundation_models.diffusion.noise_prediction import expected_loss, noising
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser
from flbook.training.fit import fit
from flbook.training.optimizers import Adam, GradientDescent, Momentum

SEEDS, N, D, M = (0, 1), 5, 12, 3
LEVEL = noising(0.3)


def given(power: int = 2) -> tuple[DenoisingTraining, torch.Tensor, TiedDenoiser]:
    x = torch.randn(2, N, D, generator=torch.Generator().manual_seed(0)).double()
    model = TiedDenoiser(D, M, 0.3, power, SEEDS, torch.float64)
    share = torch.tensor([0.5, 0.5, 0.4, 0.4, 0.2]).double()
    return DenoisingTraining.of(x, share, model, *LEVEL), x, model


def direct_loss(problem: DenoisingTraining, x, w) -> torch.Tensor:
    return expected_loss(w @ x.mT, w @ w.mT, problem.share, *LEVEL, D, problem.power)


def weights(problem, x, model, params) -> torch.Tensor:
    c = params["c"]
    return c[..., :M] @ model.w.detach() + c[..., M:] @ x


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("rule", [GradientDescent(0.02), Momentum(0.01, 0.7)], ids=lambda rule: type(rule).__name__)
def test_coefficients_train_as_weights_do(rule, power):
    problem, x, model = given(power)
    assert torch.equal(weights(problem, x, model, problem.start()), model.w.detach())
    params, steps = fit(problem, rule, 60).params, 60
    w = model.w.detach().clone().requires_grad_()
    beta = getattr(rule, "beta", 0.0)
    optimizer = torch.optim.SGD([w], lr=rule.lr, momentum=beta)
    for _ in range(steps):
        optimizer.zero_grad()
        direct_loss(problem, x, w).sum().backward()
        optimizer.step()
    here = weights(problem, x, model, params)
    assert (here - model.w).abs().max() > 0.1
    torch.testing.assert_close(here, w.detach(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(problem.responses(params), w.detach() @ x.mT, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(problem.train_loss(params), direct_loss(problem, x, w).detach(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("power", [1, 2])
def test_slopes_are_the_derivatives_of_the_loss(power):
    problem, x, model = given(power)
    z, gram = model.w.detach() @ x.mT, model.w.detach() @ model.w.detach().mT
    z.requires_grad_(), gram.requires_grad_()
    expected_loss(z, gram, problem.share, *LEVEL, D, power).sum().backward()
    on_z, on_gram = slopes(z.detach(), gram.detach(), problem.share, *LEVEL, power)
    torch.testing.assert_close(on_z, z.grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(on_gram + on_gram.mT, gram.grad + gram.grad.mT, rtol=1e-12, atol=1e-12)


def test_norm_is_that_of_the_weights():
    problem, x, model = given()
    params = fit(problem, GradientDescent(0.02), 10).params
    whole = weights(problem, x, model, params).flatten(1).norm(dim=1)
    torch.testing.assert_close(problem.norm(params), whole)


def test_drawn_products_are_those_of_vectors():
    n, m, d, size = 3, 2, 40, dict(mu_norm=3.0, sigma_0=0.5, sigma_xi=2.0)
    drawn = draw_basis(n, m, d, seed=tuple(range(1500)), **size)
    torch.testing.assert_close(drawn.b_b[:, :2, :2], 9 * torch.eye(2).double().expand(1500, 2, 2))
    assert (drawn.b_b[:, :2, 2:] == 0).all()
    square = drawn.b_b.diagonal(dim1=-2, dim2=-1)[:, 2:]
    assert square.mean().item() == pytest.approx(4 * (d - 2), rel=0.01)
    assert drawn.b_b[:, 2, 3].std().item() == pytest.approx(4 * math.sqrt(d - 2), rel=0.06)
    assert drawn.w_w.diagonal(dim1=-2, dim2=-1).mean().item() == pytest.approx(0.25 * d, rel=0.02)
    assert drawn.w_b[..., :2].std().item() == pytest.approx(1.5, rel=0.04)
    assert drawn.w_b[..., 2:].std().item() == pytest.approx(math.sqrt(d - 2), rel=0.03)
    torch.testing.assert_close(draw_basis(n, m, d, seed=(4, 7), **size).w_b[1], draw_basis(n, m, d, seed=7, **size).w_b)
    whole = torch.cat([torch.cat([drawn.w_w, drawn.w_b], -1), torch.cat([drawn.w_b.mT, drawn.b_b], -1)], -2)
    assert (torch.linalg.eigvalsh(whole) > 0).all()


def test_a_drawn_problem_ends_where_one_of_vectors_does():
    n, m, d, mu = 6, 4, 400, 5.0
    share = torch.tensor([1 / 2] * 2 + [1 / n] * n, dtype=torch.float64)
    xi = torch.randn(n, d, generator=torch.Generator().manual_seed(3)).double()
    xi[:, :2] = 0
    x = torch.cat([mu * torch.eye(2, d).double(), xi])
    vectors = DenoisingTraining.of(x, share, TiedDenoiser(d, m, 0.01, dtype=torch.float64), *noising(0.2))
    drawn = DenoisingTraining(draw_basis(n, m, d, mu_norm=mu, sigma_0=0.01), share, *noising(0.2), d)
    z = [problem.responses(fit(problem, GradientDescent(0.01), 3000).params) for problem in (vectors, drawn)]
    for part in (slice(0, 2), slice(2, None)):
        assert z[0][:, part].mean().item() == pytest.approx(z[1][:, part].mean().item(), rel=0.05)


def test_the_linear_denoiser_ends_orthogonal_to_the_data_and_gains_two_a_neuron():
    n, m, d = 4, 3, 100
    share = torch.tensor([1 / 2] * 2 + [1 / n] * n, dtype=torch.float64)
    problem = DenoisingTraining(draw_basis(n, m, d, mu_norm=3.0, sigma_0=0.05), share, *noising(0.2), d).linear()
    params = fit(problem, GradientDescent(0.02), 3000).params
    assert float(problem.train_loss(params)) - 2 * d == pytest.approx(-2 * m, abs=1e-8)
    assert problem.responses(params).abs().max() < 1e-4
    gram = math.sqrt(m) / noising(0.2)[1] * torch.eye(m).double()
    torch.testing.assert_close(problem.neuron_gram(params), gram, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("without_type_checks")
def test_refusals():
    problem, x, model = given()
    with pytest.raises(ValueError, match="^Adam leaves the span of gradients"):
        fit(problem, Adam(0.1), 1)
    with pytest.raises(ValueError, match="^share must have one weight for each of the 5 patches"):
        DenoisingTraining.of(x, torch.ones(4), model, *LEVEL)
    for wrong in (dict(alpha=0.0), dict(beta=-0.1), dict(power=3), dict(d=0)):
        fields = dict(basis=problem.basis, share=problem.share, alpha=0.5, beta=0.5, d=D) | wrong
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
            DenoisingTraining(**fields)
    with pytest.raises(ValueError, match=r"^d must be at least n \+ m \+ 2 = 12"):
        draw_basis(6, 4, 11, mu_norm=1.0, sigma_0=0.1)
    with pytest.raises(ValueError, match="takes no observed"):
        problem.gradient(problem.start(), observed=torch.ones(5))
