"""The data model: correlations as the probabilities say, and measures against a network that is known."""

import pytest
import torch

from flbook.lectures.training_strategies.out_of_distribution.environment_training import accuracy, features, training
from flbook.lectures.training_strategies.shared.environments import Environments


def test_counted_samples_have_the_correlations_of_their_law():
    data = Environments(n=160, d=6, sigma_xi=0.5)
    x, y = data.draw((0, 1))
    a, b = (y * x[..., 0, k] for k in range(2))
    for part, beta in zip((slice(0, 160), slice(160, None)), (0.1, 0.2), strict=True):
        means = [v[:, part].mean().item() for v in (a, b, a * b, y)]
        assert means == pytest.approx([0.5, 1 - 2 * beta, 0.5 * (1 - 2 * beta), 0])
    assert (x[..., 0, 2:] == 0).all() and x[..., 1, :].std() == pytest.approx(0.5, rel=0.05)
    assert not torch.equal(x[0, :, 1], x[1, :, 1])
    assert torch.equal(data.draw(1).x, x[1])


def test_drawn_samples_scatter_about_the_same_correlations():
    data = Environments(n=4000, d=2, counted=False)
    x, y = data.draw((0, 1))
    b = (y * x[..., 0, 1]).unflatten(-1, (2, -1)).mean(-1)
    torch.testing.assert_close(b, torch.tensor([[0.8, 0.6]] * 2).double(), atol=0.05, rtol=0)
    assert (b[0] != b[1]).all() and (b[0] != 0.8).all()


def test_measures_read_a_network_of_known_features():
    data = Environments(n=80, d=4, sigma_xi=0.0)
    problem = training(data, (0,), m=2)
    w = torch.zeros(1, 2, 2, 4)
    w[:, 0, :, 0], w[:, 0, :, 1] = 0.3, 0.7
    w[:, 1] = -w[:, 0]
    torch.testing.assert_close(features(problem, {"w": w}), torch.tensor([[0.3, 0.7]]))
    for beta in (0.1, 0.9):  # the sign is that of the spurious feature
        assert accuracy(data, problem, {"w": w}, beta).item() == pytest.approx(1 - beta, abs=1e-6)
    w[..., 0] *= 3
    assert accuracy(data, problem, {"w": w}, 0.9).item() == pytest.approx(0.75, abs=1e-6)


def test_the_invariant_feature_can_be_erased_and_a_start_given():
    data = Environments(n=80, d=4)
    blind = training(data, (0, 1), m=2, without_invariant=True)
    assert (blind.x[..., 0, 0] == 0).all() and (blind.x[..., 0, 1].abs() == 1).all()
    start = {"w": torch.randn(2, 2, 2, 4)}
    assert torch.equal(training(data, (0, 1), m=2, start=start).start()["w"], start["w"])


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ValueError, match="^n must make every combination of label and features occur a whole number"):
        Environments(n=100)
    assert Environments(n=100, counted=False).draw(0).x.shape == (200, 2, 20)
