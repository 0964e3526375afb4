"""Denoiser and classifier: their steps are those of networks with neurons alike, and their end is the lecture's."""

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.foundation_models.diffusion import Setting
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining
from flbook.lectures.foundation_models.diffusion.noise_prediction import noising, reduced_loss, stationary_point
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser

AT = [0, 1, 40, 400]
N, D, M, MU = 6, 40, 4, 3.0


def patches():
    """Orthogonal patches: two signals, then noise of squared length D, and directions that are left."""
    axes = torch.eye(D, dtype=torch.float64)
    return torch.cat([MU * axes[:2], D**0.5 * axes[2 : 2 + N]]), axes[2 + N :]


def simplex(count):
    """`count` unit vectors of that many coordinates with sum zero."""
    centred = torch.eye(count, dtype=torch.float64) - 1 / count
    return centred / centred[0].norm()


def setting(alpha=1.0, beta=1.0):
    return dict(n=N, mu=MU, m=M, alpha=alpha, beta=beta, x=N * MU**2 / D)


@pytest.mark.parametrize("t", [0.2, 1.0])
def test_its_denoiser_is_a_network_with_neurons_alike(tab, t):
    alpha, beta = noising(t)
    x, left = patches()
    s, q, v = 0.01, 0.02, 0.3
    model = TiedDenoiser(D, M, dtype=torch.float64)
    model.w.data = s * x[:2].sum(0) / MU**2 + q * x[2:].sum(0) / D + v * simplex(M) @ left[:M]
    share = torch.tensor([1 / 2] * 2 + [1 / N] * N, dtype=torch.float64)
    problem = DenoisingTraining.of(x, share, model, alpha, beta)
    call = "([s, at, lr, start]) => flbookLive.denoiser.denoise(s, at, lr, start)"
    rows = tab.evaluate(call, [setting(alpha, beta), AT, 0.01, [s, q, v]])
    for row in rows:
        z = problem.responses(fit(problem, GradientDescent(0.01), row["step"]).params)
        np.testing.assert_allclose(z[..., :2], row["signal"], rtol=1e-7)
        np.testing.assert_allclose(z[..., 2:], row["noise"], rtol=1e-7)
    assert rows[-1]["signal"] > 10 * s


def test_its_derivatives_are_those_of_the_reduced_loss(tab):
    point, h = np.array([0.3, 0.5, 0.7]), 1e-6

    def loss(z):
        return reduced_loss(z[0], z[1], z[2] ** 2, MU, N * MU**2 / D, M, 0.8, 0.6)

    found = tab.evaluate("([z, s]) => flbookLive.denoiser.slopes(z, s)", [point.tolist(), setting(0.8, 0.6)])
    expected = [(loss(point + h * e) - loss(point - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_its_classifier_is_a_network_with_filters_alike(tab):
    x, _ = patches()
    y = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(N // 2)
    a, b, lr = 0.05, 0.04, 0.5
    w = (a * x[:2].sum(0) / MU**2 + b * x[2:].sum(0) / D).repeat(2 * M, 1)
    sign = torch.tensor([1.0] * M + [-1.0] * M, dtype=torch.float64) / M
    samples = torch.stack([x[(y < 0).long()], x[2:]], 1)
    call = "([s, at, lr, start]) => flbookLive.denoiser.classify(s, at, lr, start)"
    rows = {row["step"]: row for row in tab.evaluate(call, [setting(), AT, lr, [a, b]])}
    for step in range(AT[-1] + 1):
        if step in rows:
            seen = w[:M] @ x.T
            np.testing.assert_allclose(seen[:, 0], rows[step]["signal"], rtol=1e-7)
            np.testing.assert_allclose(seen[:, 2], rows[step]["noise"], rtol=1e-7)
        w.requires_grad_()
        f = sign @ (torch.einsum("rd,npd->rnp", w, samples) ** 2).sum(-1)
        (gradient,) = torch.autograd.grad(torch.nn.functional.softplus(-y * f).mean(), w)
        w = (w - lr * gradient).detach()


@pytest.mark.parametrize("mu", [5.0, 15.0])
def test_training_ends_at_the_stationary_point(tab, mu):
    given = dict(n=30, mu=mu, m=20, t=0.2)
    call = """s => { const {complete, stepOf, denoise} = flbookLive.denoiser, all = complete(s);
      return [all, stepOf(all), denoise(all, [20000])[0]]; }"""
    found, lr, end = tab.evaluate(call, given)
    book = Setting.at_noise_one(mu)
    np.testing.assert_allclose([found["x"], lr], [*book.n_snr2, book.lr(*book.n_snr2, mu, 0.2)], rtol=1e-12)
    rest = stationary_point(mu, *book.n_snr2, 20, *noising(0.2))
    ended = [end["signal"], end["noise"], end["own"]]
    np.testing.assert_allclose(ended, [rest.signal, rest.noise, rest.own], rtol=1e-3)


def test_it_opens_with_a_verdict(opened):
    tab = opened("denoiser", mu=5.0)
    assert "it sees the noise" in tab.inner_text(".fll-say")
    tab.fill("[name=mu]", "1.5")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('it sees the signal')")
    assert tab.complaints == []
