"""Logistic regression: a stationary point, scikit-learn's, an ensemble; accuracies by hand."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from flbook import rng
from flbook.lectures.foundation_models.contrastive.downstream import accuracy, logistic_regression

H = rng.normal((3, 40, 4), 0, "features")
Y = torch.where(H[..., 0] + rng.normal((3, 40), 1, "noise") > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_it_is_scikit_learns(ridge):
    w = logistic_regression(H, Y, ridge)
    for member in range(3):
        theirs = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=1000).fit(H[member].numpy(), Y[member].numpy())
        expected = torch.from_numpy(theirs.coef_[0])
        torch.testing.assert_close(w[member, :4], expected, rtol=1e-4, atol=1e-6)
        assert float(w[member, 4]) == pytest.approx(float(theirs.intercept_[0]), abs=1e-4)


def test_accuracy_by_hand():
    w = torch.tensor([1.0, -0.5], dtype=torch.float64)  # right above 1/2
    plus, minus = torch.tensor([[1.0], [0.0], [2.0], [3.0]]), torch.tensor([[0.0], [1.0]])
    assert float(accuracy(w, plus, minus)) == pytest.approx((0.75 + 0.5) / 2)
