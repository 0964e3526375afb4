"""VGG: equal to PyTorch's own layers, ensemble equal to loop, its plans, its messages."""

import pytest
import torch
from torch.nn import functional as F

from flbook.lectures.benign_overfitting.label_noise_stages.vgg import VGG


def by_torch(net: VGG, x: torch.Tensor) -> torch.Tensor:
    """The same network from PyTorch's functions, one member."""
    layer = 0
    for block in net.plan:
        for _ in block:
            x = F.conv2d(x, getattr(net, f"w{layer}"), getattr(net, f"b{layer}"), padding=1).relu()
            layer += 1
        x = F.max_pool2d(x, 2)
    return x.flatten(1) @ net.a.T + net.b


@pytest.mark.parametrize(("plan", "layers"), [("small", 4), ("11", 8), ("13", 10), ("16", 13)])
def test_it_is_what_torch_computes(plan, layers):
    net = VGG((3, 32, 32), plan, classes=2)
    x = torch.randn(2, 3, 32, 32)
    assert sum(name.startswith("w") for name, _ in net.named_parameters()) == layers
    torch.testing.assert_close(net(x), by_torch(net, x))
    size = net(x).square().mean()
    assert 1e-3 < size < 100, "a start that neither fades nor explodes"


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: VGG((3, 16, 16)), "at least 32 rows and columns, since each of 5 blocks halves them"),
    (lambda: VGG((1, 8, 8), "small")(torch.zeros(2, 3, 8, 8)), "pictures of .* do not fit a network made for"),
])
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
