"""Features: gradients in patches against autograd, alignment and erasing against closed forms."""

import pytest
import torch

from flbook.lectures.representation.features_in_real_networks import features
from flbook.models import ConvNet, gelu, identity
from flbook.training.losses import cross_entropy, squared_classes
from flbook.training.network import ScaledTraining, Training


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def net(seed=(0, 1), activation=gelu, **kwargs):
    return ConvNet((3, 8, 8), (4,), 5, 2, activation, "none", hidden=(6,), padding=0, seed=seed, dtype=torch.float64,
                   **kwargs)


def start(model):
    return {name: p.detach() for name, p in model.named_parameters()}


def test_feature_matrix_by_hand():
    w = torch.tensor([[[[1.0]], [[2.0]]], [[[0.0]], [[-1.0]]]])  # two filters of one pixel in two colours
    assert features.feature_matrix(w).tolist() == [[1, 2], [2, 5]]
    assert features.trace_shares(features.feature_matrix(w), 2).tolist() == pytest.approx([1 / 6, 5 / 6])
    with pytest.raises(ValueError, match="parts must divide 2, the size of the matrix; got 3"):
        features.trace_shares(features.feature_matrix(w), 3)


def test_patch_gradients_add_up_to_the_gradient_in_pixels():
    model, x = net(), normal(2, 5, 3, 8, 8).requires_grad_()
    found = features.patch_gradients(model, start(model), x.detach())
    assert found.shape == (2, 2, 5, 16, 75)
    for c in range(2):
        (expected,) = torch.autograd.grad(model(x)[..., c].sum(), x)
        added = torch.zeros_like(expected)
        patches = found[:, c].reshape(2, 5, 4, 4, 3, 5, 5)
        for row in range(4):
            for column in range(4):
                added[..., row : row + 5, column : column + 5] += patches[:, :, row, column]
        torch.testing.assert_close(added, expected)


def test_gradient_outer_product_of_a_linear_network():
    model = ConvNet((1, 5, 5), (3,), 5, 2, identity, "none", padding=0, dtype=torch.float64)
    g = features.gradient_outer_product(features.patch_gradients(model, start(model), normal(7, 1, 5, 5)))
    w, a = model.w0.detach().flatten(1), model.a.detach()
    torch.testing.assert_close(g, w.T @ a.T @ a @ w)  # one place, gradient W'a for every picture


def test_correlation_leaves_the_diagonal_out():
    a, b = normal(2, 4, 4), normal(2, 4, 4, seed=1)
    off = ~torch.eye(4, dtype=bool)
    expected = [torch.corrcoef(torch.stack([x[off], y[off]]))[0, 1] for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(features.correlation(a, b), torch.stack(expected))
    torch.testing.assert_close(features.correlation(a + 100 * torch.eye(4), b), features.correlation(a, b))


def test_alignment_is_that_of_the_kernels():
    h, y = normal(2, 30, 5), features.one_hot(torch.arange(30) % 4, 4)
    centre = torch.eye(30, dtype=torch.float64) - 1 / 30
    for member, found in zip(h, features.kernel_alignment(h, y), strict=True):
        k, t = centre @ member @ member.T @ centre, centre @ y @ y.T @ centre
        torch.testing.assert_close(found, (k * t).sum() / (k.norm() * t.norm()))
    torch.testing.assert_close(features.kernel_alignment(3 * y + 7, y), torch.tensor(1.0, dtype=torch.float64))
    assert (features.kernel_alignment(normal(2, 4000, 3), y.repeat(134, 1)[:4000]) < 0.01).all()


def concept():
    """Correlated features, of which some lean on a concept; one direction is dead."""
    z = (torch.arange(400) % 2 * 2.0 - 1.0).double()
    h = normal(400, 6) @ normal(6, 6, seed=3) + 0.8 * z[:, None] * normal(6, seed=4)
    return torch.cat([h, torch.ones(400, 1, dtype=torch.float64)], 1)[None], z[None]


@pytest.mark.parametrize("smallest", [True, False])
def test_erasing_leaves_no_covariance(smallest):
    h, z = concept()
    erase = features.eraser(h, z, smallest)
    left = erase(h)
    before, after = ((x - x.mean(1, keepdim=True)).mT @ z[0] for x in (h, left))
    assert after.abs().max() < 1e-9 * before.abs().max()
    torch.testing.assert_close(left.mean(1), h.mean(1))
    torch.testing.assert_close(erase(left), left)  # twice is once
    means = features.mean_difference(left, z)
    assert means.abs().max() < 1e-10 and features.mean_difference(h, z).abs().max() > 0.1


def test_the_smallest_edit_is_the_closed_form_and_the_smaller():
    h, z = concept()
    centred = h[0] - h[0].mean(0)
    s, cov = (centred.T @ z[0] / 400)[:6], (centred.T @ centred / 400)[:6, :6]
    small, orthogonal = ((features.eraser(h, z, way)(h) - h).square().sum(-1).mean() for way in (True, False))
    torch.testing.assert_close(small, s @ s / (s @ torch.linalg.solve(cov, s)))
    torch.testing.assert_close(orthogonal, s @ cov @ s / (s @ s))
    assert small < 0.9 * orthogonal


def test_a_probe_is_ridge_regression():
    h, z = concept()
    from sklearn.linear_model import Ridge

    size = h[0].var(0, correction=0).mean()
    plain = Ridge(alpha=float(1e-3 * size * 400)).fit(h[0].numpy(), z[0].numpy())
    w, threshold = features.probe(h, z)
    torch.testing.assert_close(w[0], torch.tensor(plain.coef_))
    right = torch.tensor(plain.predict(h[0].numpy()) > 0) == (z[0] > 0)
    torch.testing.assert_close(features.probed((w, threshold), h, z)[0], right.double().mean())


def test_an_erased_concept_leaves_a_probe_that_says_the_mean():
    h, z = concept()
    left = features.eraser(h, z)(h)
    outputs = [torch.einsum("...nk,...k->...n", x, w) - threshold[:, None]
               for x in (h, left) for w, threshold in [features.probe(x, z)]]
    # the mean of z is 0 here, and the sign of what is left is rounding
    assert outputs[1].abs().max() < 1e-9 and outputs[0].abs().max() > 0.1
    assert features.probed(features.probe(left, z), left, z) == 0.5 < features.probed(features.probe(h, z), h, z)


def test_the_scaled_problem_by_hand():
    model, x, y = net(), normal(2, 5, 3, 8, 8), torch.arange(5) % 2
    problem = ScaledTraining(model, x, y, squared_classes, alpha=torch.tensor([0.5, 20.0]))
    begin = problem.start()
    assert (problem.predict(begin) == 0).all()
    moved = {name: p + 0.1 * torch.sign(p) for name, p in begin.items()}
    plain = Training(model, x, y, cross_entropy)
    expected = torch.tensor([0.5, 20.0])[:, None, None] * (plain.predict(moved) - plain.predict(begin))
    torch.testing.assert_close(problem.predict(moved), expected)
    torch.testing.assert_close(problem.predict(moved, x.flip(1)), expected.flip(1))
    torch.testing.assert_close(problem.train_loss(begin), torch.full((2,), 0.25, dtype=torch.float64))


def test_a_scale_must_be_positive():
    with pytest.raises(ValueError, match=r"alpha must be positive, the factor of the output; got 0\.0"):
        ScaledTraining(net(), normal(5, 3, 8, 8), torch.arange(5) % 2, squared_classes, 0.0)
