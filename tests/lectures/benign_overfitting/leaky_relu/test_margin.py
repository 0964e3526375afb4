"""The hard-margin classifier: scikit-learn's, and its limit in closed form."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from sklearn.svm import SVC

from flbook import estimators
from flbook.lectures.benign_overfitting.leaky_relu import margin
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture

DATA = Mixture(n=40, d=90, gamma=0.1, flip_prob=0.1)


def test_hard_margin_is_scikit_learns():
    sample = DATA.draw((0, 1))
    c = estimators.hard_margin(sample.x @ sample.x.mT, sample.observed)
    for k in range(2):
        x, y = sample.x[k].numpy(), sample.observed[k].numpy()
        known = SVC(kernel="linear", C=1e10, tol=1e-10).fit(np.r_[x, -x], np.r_[y, -y])  # symmetric: no intercept
        w = c[k].numpy() @ x
        np.testing.assert_allclose(w, known.coef_[0], atol=1e-6 * abs(w).max())
        assert (y * (x @ w)).min() == pytest.approx(1) and w @ w == pytest.approx(float(c[k] @ sample.observed[k]))


def test_hard_margin_by_hand():
    x = torch.tensor([[2.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    c = estimators.hard_margin(x @ x.T, torch.tensor([1.0, -1.0], dtype=torch.float64))
    torch.testing.assert_close(c @ x, torch.tensor([0.5, -0.25], dtype=torch.float64))


def test_dependent_samples_are_one_sentence():
    x = torch.ones(3, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="x_x must be positive definite, the samples linearly independent"):
        estimators.hard_margin(x @ x.T, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("ratio", [1, 3])
def test_its_limit(ratio):
    n, seeds = 100, tuple(range(24))
    data = Mixture(n=n, d=ratio * n, gamma=0.05, flip_prob=0.1)
    sample = data.draw(seeds)
    w = torch.einsum("sn,snd->sd", estimators.hard_margin(sample.x @ sample.x.mT, sample.observed), sample.x)
    error = torch.special.ndtr(-w[:, 0] * 0.05**0.5 / (data.sigma_xi * w[:, 1:].square().sum(-1).sqrt()))
    assert error.mean().item() == pytest.approx(margin.margin_error(ratio, 5 / 0.95, 0.1), rel=0.15)


@pytest.mark.parametrize("coupling", [0.3, 0.6, 1.0])
def test_on_orthogonal_noise_it_is_the_shortest_with_squared_slack(coupling):
    n, p, a = 20, 0.2, 3.0
    e = torch.ones(n, dtype=torch.float64)
    e[:4] = -1
    x_x = a / n * torch.ones(n, n).double() + torch.eye(n).double()  # all true labels +1
    weight = e * estimators.hard_margin(x_x + (1 / coupling - 1) * torch.eye(n), e)
    s = margin.signal_response(a, p, coupling)
    torch.testing.assert_close(weight, coupling * (1 - e * s), rtol=1e-6, atol=1e-9)
    assert (weight[0] / weight[-1]).item() == pytest.approx(margin.weight_ratio(a, p, coupling))
    assert margin.coupling_from(margin.weight_ratio(a, p, coupling), a, p) == pytest.approx(coupling)
    rho = (n / 50) ** 0.5 * weight.square().mean().sqrt().item()  # d = 50
    assert margin.orthogonal_error(50 / n, a, p, coupling) == pytest.approx(ndtr(-s / rho))


@pytest.mark.parametrize("coupling", [0.6, 1.0])
def test_its_limit_in_high_dimension_is_that_of_orthogonal_noise(coupling):
    exact = margin.orthogonal_error(1e5, 0.02, 0.1, coupling)
    assert margin.margin_error(1e5, 0.02, 0.1, coupling) == pytest.approx(exact, rel=1e-2)
    assert margin.margin_error(1e4, 0.02, 0.1, 0.3) < margin.margin_error(1e4, 0.02, 0.1, 0.9)


def test_averaging_is_the_limit_of_no_coupling():
    r = 3**2 / 7
    assert margin.orthogonal_error(1 / 7, 3.0, 0.2, 0.0) == pytest.approx(ndtr(-0.6 * r**0.5))
    assert margin.orthogonal_error(2.0, 3.0, 0.0, 0.1) == pytest.approx(margin.orthogonal_error(2.0, 3.0, 0.0, 1.0))


@pytest.mark.parametrize("wrong", [(0.5, 0.1, 0.1), (2, 0.1, 0.1, 0.0), (2, -1.0, 0.1)])
def test_what_it_needs_is_one_sentence(wrong):
    with pytest.raises(ValueError, match="margin_error needs d/n >= 1, so that every label can be fitted"):
        margin.margin_error(*wrong)
