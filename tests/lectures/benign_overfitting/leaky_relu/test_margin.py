"""The hard-margin classifier: scikit-learn's, and its limit in closed form."""

import numpy as np
import pytest
import torch
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
    length = w.square().sum(-1).sqrt()
    error = torch.special.ndtr(-w[:, 0] * 0.05**0.5 / (data.sigma_xi * w[:, 1:].square().sum(-1).sqrt()))
    limit = margin.max_margin(ratio, 0.05, n, 0.1)
    assert error.mean().item() == pytest.approx(limit.error, rel=0.15)
    assert (length.mean() / n**0.5).item() == pytest.approx(limit.norm, rel=0.05)


def test_its_limit_in_high_dimension_by_hand():
    # noise vectors orthonormal: minimise s^2/gamma + n (1-p)(1-s)^2 + n p (1+s)^2
    n, gamma, p, d = 100, 0.05, 0.1, 1e9
    s = (1 - 2 * p) / (1 + 1 / (gamma * n))
    b = np.sqrt((1 - p) * (1 - s) ** 2 + p * (1 + s) ** 2)
    limit = margin.max_margin(d / n, gamma, n, p)
    assert limit.norm == pytest.approx(np.sqrt(s**2 / (gamma * n) + b**2 / (1 - gamma)), rel=0.01)


def test_few_dimensions_are_one_sentence():
    with pytest.raises(ValueError, match="max_margin needs d/n >= 1, so that every label can be fitted"):
        margin.max_margin(0.5, 0.1, 100, 0.1)
