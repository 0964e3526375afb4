"""The kernel of the lazy network: what random filters average to, and its two parts."""

import torch

from flbook import rng
from flbook.lectures.benign_overfitting.xor.lazy_kernel import even_part, lazy

X, Z, W = (rng.normal((size, 7), 0, role) for role, size in (("x", 5), ("z", 6), ("w", 200_000)))


def test_it_is_the_mean_over_random_filters():
    both = (X @ W.T > 0).double() @ (Z @ W.T > 0).double().T / len(W)  # both patches excite a filter
    torch.testing.assert_close(lazy(X, Z), (X @ Z.T) * both, rtol=0, atol=0.03)


def test_it_is_a_linear_and_an_even_part():
    torch.testing.assert_close(lazy(X, Z) - lazy(-X, Z), X @ Z.T / 2)
    torch.testing.assert_close(even_part(X, Z), even_part(-X, Z))
    torch.testing.assert_close((lazy(X, Z) + lazy(-X, Z)) / 2, even_part(X, Z))


def test_by_hand():
    cross = torch.eye(2, dtype=torch.float64)
    four = lazy(cross, torch.cat([cross, -cross]))  # the clusters, beside the noise
    torch.testing.assert_close(four, torch.cat([cross / 2, torch.zeros_like(cross)], 1))
