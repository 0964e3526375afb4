"""The convolutional network: by hand, against torch's own layers, as an ensemble, its start, bad input."""

import math

import pytest
import torch
from torch import nn

from flbook.data.ten_digits import ten_digits
from flbook.models import ConvNet, softplus
from flbook.training.fit import fit
from flbook.training.losses import cross_entropy
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

DOUBLE = torch.float64


def pictures(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)


def test_output_by_hand():
    net = ConvNet((1, 2, 2), (1,), 1, 2, dtype=DOUBLE)  # one filter of one pixel: z = 3 x - 1
    with torch.no_grad():
        net.w0.fill_(3.0), net.b0.fill_(-1.0)
        net.a.copy_(torch.tensor([[2.0], [-1.0]])), net.b.copy_(torch.tensor([0.0, 10.0]))
    x = torch.tensor([[[[1.0, 0.0], [2.0, -5.0]]], [[[0.0, 0.0], [0.0, -1.0]]]], dtype=DOUBLE)
    assert net.features(x).tolist() == [[5], [0]]  # the largest of relu(2, -1, 5, -16), then of relu(-1, -4)
    assert net(x).tolist() == [[10, 5], [0, 10]]
    net.pool = "mean"
    assert net.features(x).tolist() == [[7 / 4], [0]]


def test_it_is_torchs_own_convolutional_network():
    net = ConvNet((3, 9, 8), (4, 6), 3, 5, seed=2, dtype=DOUBLE)
    plain = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 5),
    ).double()
    with torch.no_grad():
        net.b0.normal_(), net.b1.normal_(), net.b.normal_()
        for layer, w, b in ((plain[0], net.w0, net.b0), (plain[3], net.w1, net.b1), (plain[7], net.a, net.b)):
            layer.weight.copy_(w), layer.bias.copy_(b)
    x = pictures(7, 3, 9, 8)
    torch.testing.assert_close(net(x), plain(x))


def test_filters_only_where_they_fit_and_dense_layers():
    net = ConvNet((3, 8, 8), (4,), 5, 2, pool="none", hidden=(6, 5), padding=0, seed=3, dtype=DOUBLE)
    plain = nn.Sequential(
        nn.Conv2d(3, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(),
        nn.Linear(5, 2),
    ).double()
    with torch.no_grad():
        net.b0.normal_(), net.c0.normal_(), net.c1.normal_()
        pairs = ((plain[0], net.w0, net.b0), (plain[3], net.v0, net.c0), (plain[5], net.v1, net.c1))
        for layer, w, b in (*pairs, (plain[7], net.a, net.b)):
            layer.weight.copy_(w), layer.bias.copy_(b)
    x = pictures(7, 3, 8, 8)
    torch.testing.assert_close(net(x), plain(x))
    seen = net.layers(x)
    for layer, last in zip(seen, (3, 5, 7), strict=True):
        torch.testing.assert_close(layer, plain[:last](x) if last > 3 else plain[:3](x))


@pytest.mark.parametrize("pool", ["max", "mean", "none"])
@pytest.mark.parametrize("classes", [1, 3])
def test_an_ensemble_is_a_loop(pool, classes):
    seeds = (4, 0, 9)
    make = [ConvNet((2, 8, 8), (3, 4), 5, classes, pool=pool, seed=seed, dtype=DOUBLE) for seed in (seeds, *seeds)]
    together, alone = make[0], make[1:]
    x = pictures(3, 6, 2, 8, 8)
    own = torch.stack([net(one) for net, one in zip(alone, x, strict=True)])
    torch.testing.assert_close(together(x), own)
    torch.testing.assert_close(together(x[0]), torch.stack([net(x[0]) for net in alone]))
    torch.testing.assert_close(alone[0](x), torch.stack([alone[0](one) for one in x]))
    assert own.shape == ((3, 6) if classes == 1 else (3, 6, 3))


def test_gradient_is_the_finite_difference():
    net = ConvNet((1, 4, 4), (2,), 3, 3, softplus, pool="mean", seed=(1, 2), dtype=DOUBLE)
    names, values = zip(*net.named_parameters(), strict=True)
    x = pictures(3, 1, 4, 4)

    def f(*p):
        return torch.func.functional_call(net, dict(zip(names, p, strict=True)), (x,))

    assert torch.autograd.gradcheck(f, values)


def test_the_start_keeps_the_size_of_a_signal():
    net = ConvNet((1, 8, 8), (32, 32), 3, 10, pool="none", seed=tuple(range(64)), dtype=DOUBLE)
    for w, fan_in in ((net.w0, 9), (net.w1, 32 * 9)):
        assert w.detach().var().item() == pytest.approx(2 / fan_in, rel=4 * math.sqrt(2 / w.numel()))
    assert net.a.detach().var().item() == pytest.approx(1 / (32 * 64), rel=0.05)
    assert not any(bool(b.any()) for b in (net.b0, net.b1, net.b))
    inner = net.features(pictures(20, 1, 8, 8)).unflatten(-1, (32, 8, 8))[..., 2:-2, 2:-2]  # away from the padding
    assert inner.square().mean().item() == pytest.approx(1, rel=0.15)


def test_it_trains_and_so_does_its_lazy_rival():
    data = ten_digits(200, seed=(0, 1))
    net = ConvNet(filters=(4, 8), seed=(0, 1))
    problem = Training(net, data.x, data.y, cross_entropy)
    assert problem.ensemble == (2,)
    trained = fit(problem, Momentum(0.1), 40).params

    def wrong(params, x, y):
        return (problem.predict(params, x).argmax(-1) != y).double().mean(-1)

    before, after = (wrong(p, data.x_test, data.y_test) for p in (problem.start(), trained))
    assert before.shape == (2,) and (before > 0.6).all() and (after < 0.4).all()
    assert (wrong(trained, None, problem.observed) <= after + 0.1).all()
    lazy = problem.lazy()
    torch.testing.assert_close(lazy.predict(lazy.start()), problem.predict(problem.start()))
    assert (lazy.train_loss(fit(lazy, GradientDescent(0.02), 5).params) < lazy.train_loss(lazy.start())).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(size=4), "size must be odd.*got 4"),
        (dict(image=(1, 3, 8)), r"enough rows and columns for 2 layers, .* halves the rest; got \(3, 8\)"),
        (dict(size=5, padding=0), r"each of which takes 4 of them and halves the rest; got \(8, 8\)"),
        (dict(hidden=(3, 0)), r"hidden must hold whole numbers of at least 1.*got \(3, 0\)"),
    ],
)
def test_bad_input_gets_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        ConvNet(**change)


def test_pictures_of_another_shape_are_one_sentence():
    with pytest.raises(ValueError, match=r"rows, columns\) = \(1, 8, 9\) do not fit .* made for \(1, 8, 8\)"):
        ConvNet()(pictures(3, 1, 8, 9))


def test_samples_that_clash_with_labels_are_one_sentence():
    data = ten_digits(12)
    with pytest.raises(ValueError, match=r"x holds 12 samples, shape \(12, 1, 8, 8\), but observed labels .* \(11,\)"):
        Training(ConvNet(), data.x, data.y[1:], cross_entropy)
    with pytest.raises(ValueError, match=r"ensemble axes, of shape \(\); those of x, of shape \(2,\), do not fit"):
        Training(ConvNet(), data.x.expand(2, 12, 1, 8, 8), data.y, cross_entropy)
