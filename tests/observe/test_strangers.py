"""Networks that the book does not have: a residual block on pictures and a small transformer, observed."""

from functools import cache

import pytest
import torch
from torch import nn

from flbook import observe


class Residual(nn.Module):
    """A residual block with batch normalisation, and a linear head on the mean over places."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, 1)

    def forward(self, x):
        h = self.stem(x)
        return self.head((h + self.norm(self.conv(h)).relu()).mean((-2, -1)))


class Reader(nn.Module):
    """An encoder of PyTorch over eight tokens of four numbers, read at the last."""

    def __init__(self, width: int = 8):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.embed, self.encoder = nn.Linear(4, width), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x))[:, -1])


STRANGERS = {"residual block": (Residual, (3, 6, 6)), "transformer": (Reader, (8, 4))}
CALLED = {Residual: {"stem", "norm"}, Reader: {"embed", "encoder.layers.1.self_attn", "encoder.layers.1.linear2"}}


class Stranger:
    """One of them with twelve samples, and what the functions of `observe` say of it."""

    def __init__(self, name: str):
        self.make, shape = STRANGERS[name]
        self.module = self.network(8, 0)
        self.x = torch.randn(12, *shape, generator=torch.Generator().manual_seed(1)).double()
        self.y = (torch.arange(12) % 2 * 2.0 - 1).double()
        self.f, self.params = self.functional()

    def network(self, width, seed):
        torch.manual_seed(seed)
        return self.make(width).double().eval()

    def functional(self):
        return observe.functional(self.module)

    def each_loss(self, values, y):
        return (values - y).square()

    def loss(self, params):
        return self.each_loss(self.f(params, self.x)[:, 0], self.y).mean()

    def stepped(self, rate, seed=0):
        """A step of gradient descent."""
        params = observe.functional(self.network(8, seed))[1]
        slope = torch.func.grad(self.loss)(params)
        return params, {name: p - rate * slope[name] for name, p in params.items()}

    @cache  # noqa: B019, there are two of them
    def features(self):
        """What the head reads, and a concept."""
        kept = []
        hook = self.module.head.register_forward_hook(lambda _module, inputs, _out: kept.append(inputs[0].detach()))
        self.module(torch.cat([self.x] * 4))
        hook.remove()
        return kept[0], torch.arange(48) % 2

    @cache  # noqa: B019
    def agop(self):
        outer = observe.agop(self.f, self.params, self.x)
        torch.testing.assert_close(outer, outer.T)
        assert torch.linalg.eigvalsh(outer)[0] > -1e-10
        return outer

    @cache  # noqa: B019
    def ntk(self):
        kernel = observe.ntk(self.f, self.params, self.x)
        assert torch.linalg.eigvalsh(kernel)[0] > -1e-8
        return kernel

    def alignment(self):
        assert 0 <= observe.alignment(self.ntk(), torch.outer(self.y, self.y)) <= 1

    @cache  # noqa: B019
    def sharpness(self):
        return observe.sharpness(self.loss, self.params)

    def curvature_along(self):
        top = self.sharpness()
        along = observe.curvature_along(self.loss, self.params, top.vector)
        assert along == pytest.approx(top.value, rel=1e-6)

    def hessian_trace(self):
        found = observe.hessian_trace(self.loss, self.params, draws=8)
        assert found.interval[0] < found.value < found.interval[1]
        return found

    def order_parameters(self):
        first = next(iter(self.params.values())).flatten(1)
        found = observe.order_parameters(first, first[:2])
        torch.testing.assert_close(found.cosines[:2].diagonal(), torch.ones(2).double())
        return found

    def members(self):
        others = observe.functional(self.network(8, 1))[1]
        both = {name: torch.stack([p, others[name]]) for name, p in self.params.items()}
        found = observe.members(observe.agop)(self.f, both, self.x)
        torch.testing.assert_close(found[0], self.agop())

    def signal_and_noise(self):
        found = observe.signal_and_noise(self.f, self.stepped(0.1), (self.x[:6], self.y[:6]),
                                         (self.x[6:], self.y[6:]), self.each_loss)
        assert found.keys() == self.params.keys()
        for one in found.values():
            assert sum(one.shares) == pytest.approx(1)
        return found["head.weight"]

    def probe(self):
        return observe.probe(*self.features(), permutations=4)

    def erase(self):
        h, z = self.features()
        found = observe.erase(h, z.double())
        left = found(h)
        assert (left - left.mean(0)).T.matmul(z.double()).abs().max() < 1e-6 * h.abs().max()
        return found

    def exponent(self):
        """Outputs move in proportion to small steps."""
        rates = 1e-5 * 10 ** torch.arange(4.0)
        before = self.f(self.params, self.x)
        moves = [(self.f(self.stepped(rate)[1], self.x) - before).norm().item() for rate in rates.tolist()]
        found = observe.exponent(rates.numpy(), moves)
        assert found.value == pytest.approx(1, abs=0.1)
        return found

    def border(self):
        """The rate at which one step no longer lowers the loss."""
        def worse(rate, seed):
            before, after = map(self.loss, self.stepped(rate, seed))
            return (after / before).item()

        found = observe.border(worse, 1e-3, 1e3, 1.0, seeds=(0, 1), tol=0.5)
        assert found.interval[0] <= found.value <= found.interval[1]
        return found

    def coordinate_check(self):
        found = observe.coordinate_check(
            self.network, (8, 16, 32), lambda module, width: torch.optim.SGD(module.parameters(), 1e-2 / width),
            lambda module: self.each_loss(module(self.x)[:, 0], self.y).mean(), self.x, seeds=(0, 1))
        assert {"head", *CALLED[self.make]} <= found.exponents.keys()
        assert found.verdict.count("\n") == len(found.exponents) - 1
        return found


stranger = cache(Stranger)
# A name with a capital is the result of a function.
RESULTS = {"Border": "border", "CoordinateCheck": "coordinate_check", "Eraser": "erase", "Estimate": "hessian_trace",
           "Movement": "signal_and_noise", "OrderParameters": "order_parameters", "PowerLaw": "exponent",
           "Reading": "probe", "TopEigenvalue": "sharpness"}


@pytest.mark.parametrize("name", observe.__all__)
@pytest.mark.parametrize("which", STRANGERS)
def test_every_name_of_the_package_serves_a_stranger(which, name):
    if name[0].isupper():
        assert isinstance(getattr(stranger(which), RESULTS[name])(), getattr(observe, name))
    else:
        getattr(stranger(which), name)()


@pytest.mark.parametrize("ask, says", [
    (lambda s: observe.functional(s.module.train()), "is in training mode"),
    (lambda s: observe.agop(s.f, s.params, s.x[:0]), "x must hold at least one input"),
    (lambda s: observe.ntk(lambda p, x: x, s.params, s.x), "outputs must have the shape"),
    (lambda s: observe.sharpness(lambda p: s.f(p, s.x), s.params), "loss must return one number; got shape"),
    (lambda s: observe.curvature_along(s.loss, s.params, {}), "direction must name the parameters"),
    (lambda s: observe.coordinate_check(s.network, (8,), torch.optim.SGD, s.loss, s.x), "at least two widths"),
    (lambda s: observe.probe(s.features()[0], torch.zeros(48)), "z must name classes"),
    (lambda s: observe.border(lambda rate, seed: 0.0, 1.0, 2.0, 1.0), "widen them"),
])
def test_what_is_refused_is_refused_in_a_sentence(ask, says):
    with pytest.raises(ValueError, match=says) as error:
        ask(Stranger("residual block"))
    assert "\n" not in str(error.value)


def test_a_coordinate_check_of_the_residual_block():
    found = stranger("residual block").coordinate_check()
    assert list(found.exponents) == ["stem", "conv", "norm", "head"]
    assert found.exponents["stem"].value < -0.5, "PyTorch's start with the rate 1/width is a kernel method"
