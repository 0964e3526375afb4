"""Rivals: each is what it says it is, in coefficients and in d dimensions, and learns no feature."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import LeakyReLU, ReLUPower, TwoLayerCNN, identity, relu, softplus
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import Momentum

SEEDS, N, D, M, STEPS = (0, 1, 2), 6, 25, 3, 60
RULE = Momentum(0.2, 0.5)
BOTH_NOISES = pytest.mark.parametrize("orthogonal", [False, True], ids=["noise along mu", "orthogonal noise"])
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
ACTIVATION = pytest.mark.parametrize(
    "activation", [relu, LeakyReLU(0.2), ReLUPower(3.0), softplus], ids=["relu", "leaky", "cube", "softplus"]
)


def both(activation=relu, bias=False, orthogonal=False, scale=None):
    data = SignalNoise(n=N, d=D, mu_norm=2.0, flip_prob=0.3, orthogonal=orthogonal, exact_flips=False)
    sample = data.draw(SEEDS)
    cnn = TwoLayerCNN(D, M, 0.2, activation, scale, bias, SEEDS, torch.float64)
    return Training(cnn, sample.x, sample.observed), GramTraining.of(data, sample, cnn), sample


def weights(direct, params, sample):
    moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)
    return direct.start()["w"] + moved.unflatten(-2, (2, M))


@ACTIVATION
@BIAS
@BOTH_NOISES
def test_lazy_in_coefficients_is_lazy_in_weights(activation, bias, orthogonal):
    direct, gram, sample = both(activation, bias, orthogonal)
    direct, gram = direct.lazy(), gram.lazy()
    params, there = fit(gram, RULE, STEPS).params, fit(direct, RULE, STEPS).params
    torch.testing.assert_close(weights(direct, params, sample), there["w"], rtol=1e-10, atol=1e-11)
    if bias:
        torch.testing.assert_close(params["b"].unflatten(-1, (2, M)), there["b"], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(gram.predict(params), direct.predict(there), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gram.train_loss(params), direct.train_loss(there), rtol=1e-9, atol=1e-12)
    assert (there["w"] - direct.start()["w"]).abs().max() > 0.05


def test_lazy_keeps_the_loss():
    direct, gram, _ = both()
    direct = Training(direct.model, direct.x, direct.observed, squared).lazy()
    assert direct.loss is squared and gram.lazy().loss is gram.loss


def direction(params, size):
    generator = torch.Generator().manual_seed(0)
    return {name: p + size * torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in params.items()}


@ACTIVATION
@pytest.mark.parametrize("kind", [0, 1], ids=["weights", "coefficients"])
def test_lazy_is_the_tangent_of_the_network_at_its_start(activation, kind):
    network = both(activation, bias=True)[kind]
    lazy, start = network.lazy(), network.start()
    torch.testing.assert_close(lazy.predict(start), network.predict(start), rtol=1e-12, atol=1e-13)
    gradients = lazy.gradient(start), network.gradient(start)
    for name in start:
        torch.testing.assert_close(gradients[0][name], gradients[1][name], rtol=1e-11, atol=1e-13)
    # an affine function of the parameters, whose distance to the network is of second order
    f = [lazy.predict(direction(start, s)) for s in (0.0, 1.0, 2.0)]
    torch.testing.assert_close(f[2] - f[1], f[1] - f[0], rtol=1e-9, atol=1e-11)
    gap = [(lazy.predict(direction(start, s)) - network.predict(direction(start, s))).abs().max() for s in (1e-3, 1e-4)]
    assert gap[1] < gap[0] / 50 or gap[0] < 1e-12
    assert (lazy.predict(direction(start, 1.0)) - network.predict(direction(start, 1.0))).abs().max() > 1e-2


@BIAS
@BOTH_NOISES
def test_linear_in_coefficients_is_the_network_without_activation(bias, orthogonal):
    direct, gram, sample = both(relu, bias, orthogonal)
    gram = gram.linear()
    direct.model.activation = identity
    params, there = fit(gram, RULE, STEPS).params, fit(direct, RULE, STEPS).params
    torch.testing.assert_close(weights(direct, params, sample), there["w"], rtol=1e-10, atol=1e-11)
    # a linear classifier on the sum of the patches
    v = (there["w"][:, 0] - there["w"][:, 1]).mean(1)
    f = torch.einsum("ed,end->en", v, sample.x.sum(-2))
    offset = 2 * (there["b"][:, 0] - there["b"][:, 1]).mean(-1, keepdim=True) if bias else 0
    torch.testing.assert_close(gram.predict(params), f + offset, rtol=1e-10, atol=1e-10)


def frozen_by_hand(direct, rule, steps):
    """The last layer trained on the features of the first, all members, in d dimensions."""
    start = direct.start()
    z = torch.einsum("ejrd,enpd->enpjr", start["w"], direct.x)
    z = z + start["b"][:, None, None] if "b" in start else z
    phi = direct.model.activation(z).sum(2).flatten(-2)
    phi = phi / phi.square().mean((-2, -1), keepdim=True).sqrt()
    sign = torch.tensor([1.0] * M + [-1.0] * M, dtype=torch.float64)
    a = (direct.model.scale * sign).expand(len(SEEDS), -1).clone().requires_grad_()
    optimizer = torch.optim.SGD([a], rule.lr, momentum=rule.beta)
    for _ in range(steps):
        optimizer.zero_grad()
        f = torch.einsum("enk,ek->en", phi, a)
        torch.nn.functional.softplus(-direct.observed * f).mean(-1).sum().backward()
        optimizer.step()
    return a.detach(), torch.einsum("enk,ek->en", phi, a.detach())


@ACTIVATION
@BIAS
def test_frozen_trains_the_last_layer_on_normalised_features(activation, bias):
    direct, gram, _ = both(activation, bias)
    frozen = gram.frozen()
    assert frozen.samples.square().mean((-2, -1)).tolist() == pytest.approx([1] * 3)
    params = fit(frozen, RULE, STEPS).params
    a, f = frozen_by_hand(direct, RULE, STEPS)
    torch.testing.assert_close(params["a"], a, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(frozen.predict(params), f, rtol=1e-10, atol=1e-11)
    # fresh samples without noise: the features of the signal and of a patch of zeros, in the same normalisation
    w, b = direct.start()["w"].flatten(1, 2), direct.start()["b"].flatten(1, 2) if bias else 0
    mu = torch.zeros(D).double().index_fill(0, torch.tensor(0), 2.0)
    for outputs, sign in zip(frozen.test_outputs(params, torch.zeros(1, 2 * M).double()), (1, -1), strict=True):
        phi = activation(sign * (w @ mu) + b) + activation(0 * w[..., 0] + b)
        torch.testing.assert_close(outputs[:, 0], (a * phi / frozen.size).sum(-1), rtol=1e-9, atol=1e-10)


def test_frozen_gradient_is_the_finite_difference_and_the_norm_is_euclidean():
    frozen, h = both(bias=True)[1].frozen(), 1e-6
    params = frozen.start()
    for labels in (None, -frozen.observed):
        way = {"a": torch.randn(params["a"].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)}
        up, down = (frozen.train_loss({"a": params["a"] + s * way["a"]}, observed=labels) for s in (h, -h))
        slope = (frozen.gradient(params, observed=labels)["a"] * way["a"]).sum(-1)
        torch.testing.assert_close((up - down) / (2 * h), slope, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(frozen.norm(way), way["a"].norm(dim=-1))
