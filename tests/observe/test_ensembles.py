"""An ensemble observed is its members observed one by one."""

import pytest
import torch
from torch import nn

from flbook import TwoLayerCNN, logistic, observe


def networks(count=3):
    """Small networks of one kind, and their parameters with a leading axis."""
    f, _ = observe.functional(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double())
    own = [{"0.weight": torch.randn(5, 4).double(), "0.bias": torch.randn(5).double(),
            "2.weight": torch.randn(1, 5).double(), "2.bias": torch.randn(1).double()} for _ in range(count)]
    return f, {name: torch.stack([one[name] for one in own]) for name in own[0]}, own


def test_every_kind_of_result():
    f, ensemble, own = networks()
    x, y = torch.randn(7, 4).double(), torch.randn(7).double()

    def loss(params):
        return (f(params, x)[:, 0] - y).square().mean()

    for measure in (observe.agop, observe.ntk):
        together = observe.members(measure)(f, ensemble, x)
        torch.testing.assert_close(together, torch.stack([measure(f, one, x) for one in own]))
    top = observe.members(observe.sharpness)(loss, ensemble, steps=60)
    alone = [observe.sharpness(loss, one, steps=60) for one in own]
    assert isinstance(top, observe.TopEigenvalue) and top.value.dtype == torch.float64
    torch.testing.assert_close(top.value, torch.tensor([one.value for one in alone]).double())
    torch.testing.assert_close(top.vector["0.bias"], torch.stack([one.vector["0.bias"] for one in alone]))
    low, high = observe.members(observe.hessian_trace)(loss, ensemble, draws=4).interval
    assert low.shape == high.shape == (3,) and bool((low < high).all())


def test_inputs_of_its_own_for_every_member():
    f, ensemble, own = networks()
    x = torch.randn(3, 7, 4).double()
    together = observe.members(observe.agop, "x")(f, ensemble, x)
    torch.testing.assert_close(together, torch.stack([observe.agop(f, p, one) for p, one in zip(own, x, strict=True)]))


def test_paths_and_an_ensemble_of_the_book():
    cnn = TwoLayerCNN(6, 2, seed=(0, 1), dtype=torch.float64)
    f, start = observe.functional(cnn)
    x, y = torch.randn(5, 2, 6).double(), torch.ones(5).double()
    path = [start, {"w": start["w"] + torch.randn(2, 2, 2, 6).double()}]
    together = observe.members(observe.signal_and_noise)(f, path, (x, y), (x, y), logistic)["w"]
    alone = [observe.signal_and_noise(f, [{"w": p["w"][k]} for p in path], (x, y), (x, y), logistic)["w"]
             for k in range(2)]
    torch.testing.assert_close(together.memorised, torch.stack([one.memorised for one in alone]))
    torch.testing.assert_close(together.shares[1], torch.tensor([one.shares[1] for one in alone]).double())


@pytest.mark.parametrize("act, sentence", [
    (lambda f, p, x: observe.members(observe.alignment), "must take params and nothing else.*takes kernel, other"),
    (lambda f, p, x: observe.members(observe.agop, "z"), "agop must take params and z"),
    (lambda f, p, x: observe.members(observe.agop, "x")(f, p, x), "params and x must carry one.*lengths 3, 7"),
    (lambda f, p, x: observe.members(observe.agop)(f, p | {"0.bias": p["0.bias"][:2]}, x), "lengths 2, 3"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(act, sentence):
    f, ensemble, _ = networks()
    with pytest.raises(ValueError, match=sentence):
        act(f, ensemble, torch.randn(7, 4).double())
