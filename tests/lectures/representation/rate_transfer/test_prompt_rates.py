"""The transformer of one block: its steps are those of a plain module with PyTorch's Adam, one rate at a time."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from flbook.lectures.representation.rate_transfer import prompt_rates
from flbook.lectures.representation.rate_transfer.prompt_rates import LAYERS, MATRICES, SERIES, Setting
from flbook.training.parametrisation import MAXIMAL_UPDATE, STANDARD, rate_groups


class Block(nn.Module):
    """The same network as anybody would write it, with queries, keys and values at every token."""

    def __init__(self, width, d, scale=1.0):
        super().__init__()
        self.scale = scale
        sides = [(d + 1, width), *[(width, width)] * 6, (width, 1)]
        for name, (inputs, outputs) in zip(MATRICES, sides, strict=True):
            setattr(self, name, nn.Linear(inputs, outputs, bias=False, dtype=torch.float64))

    def forward(self, tokens):
        tokens = tokens.clone()
        tokens[:, -1, -1] = 0
        h = self.embed(tokens)
        normed = norm(h)
        keys, values = self.key(normed[:, :-1]), self.value(normed[:, :-1])
        taken = scaled_dot_product_attention(self.query(normed), keys, values, scale=self.scale)
        h = h + self.out(taken)
        h = h + self.down(self.up(norm(h)).relu())
        return self.read(norm(h))[:, -1, 0]


def norm(h):
    return rms_norm(h, h.shape[-1:], eps=1e-6)


def by_torch(name, begin, tokens, lr, base):
    """The errors of one training, by automatic differentiation and torch.optim."""
    scaling, width, d = SERIES[name], len(begin[0]), tokens.shape[-1] - 1
    net = Block(width, d, base**-0.5 * (width / base) ** scaling.attention)
    with torch.no_grad():
        for name, w in zip(MATRICES, begin, strict=True):
            getattr(net, name).weight.copy_(w)
    groups = rate_groups(scaling.parametrisation, net, Block(base, d), lr, "Adam")
    rule, errors = torch.optim.Adam(groups, eps=1e-12), []
    for batch in tokens.double():
        loss = (net(batch) - batch[:, -1, -1]).square().mean()
        errors.append(loss.item())
        rule.zero_grad()
        loss.backward()
        rule.step()
    return errors


@pytest.mark.parametrize("name", SERIES)
def test_its_training_is_that_of_torch(name):
    begin = prompt_rates.start(12, 2, SERIES[name].parametrisation, 6, seed=3)
    tokens, lr = prompts(), torch.tensor([0.01, 0.03])
    found = prompt_rates.trained(begin, tokens, lr, SERIES[name], 6)
    for k, rate in enumerate(lr.tolist()):
        np.testing.assert_allclose(found[:, k], by_torch(name, begin, tokens, rate, 6), rtol=2e-3)


def prompts():
    x, w = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in ((8, 6, 5, 2), (8, 6, 2, 1)))
    return torch.cat([x, x @ w], -1)


def test_at_the_base_width_all_are_one_network():
    found = prompt_rates.run(Setting(series=tuple(SERIES), width=(8,), base=8, octave=(0.0,), steps=20, seed=(0,)))
    np.testing.assert_array_equal(found.loss, found.loss.isel(series=[0] * len(SERIES)))
    wide = prompt_rates.run(Setting(series=tuple(SERIES), width=(16,), base=8, octave=(0.0,), steps=20, seed=(0,)))
    assert len(np.unique(wide.loss)) == len(SERIES)


def test_the_first_prediction_does_not_know_the_answer():
    begin, tokens = prompt_rates.start(12, 2, STANDARD, 6, seed=0), prompts()[0]
    other = tokens.clone()
    other[:, -1, -1] += 5.0
    predicted, again = (prompt_rates.predict([w[None] for w in begin], t, 0.3) for t in (tokens, other))
    assert predicted.shape == (1, 6) and torch.equal(predicted, again)


def test_sizes_of_the_start():
    begin = dict(zip(MATRICES, prompt_rates.start(400, 3, MAXIMAL_UPDATE, 100, 0), strict=True))
    assert len(LAYERS) == len(begin)
    for name, size in (("embed", 1 / 2), ("query", 1 / 20), ("read", 1 / math.sqrt(100) / 4)):
        assert begin[name].std().item() == pytest.approx(size, rel=0.15), name


def test_stored_cells_again():
    """Small rates at one width: at larger ones float32's rounding decides where training ends."""
    chosen = {"series": ("standard", "maximal"), "width": (16,), "seed": (0, 1), "octave": (-2.5, -2.0)}
    stored = prompt_rates.experiment.stored().sel({axis: list(values) for axis, values in chosen.items()})
    again = prompt_rates.run(prompt_rates.experiment.setting("longer").thinned(**chosen))
    np.testing.assert_allclose(again.loss, stored.loss.transpose(*again.loss.dims), rtol=0.02)
    np.testing.assert_allclose(again.rate, stored.rate.transpose(*again.rate.dims), rtol=1e-6)


def test_unknown_series():
    with pytest.raises(ValueError, match="series must be among standard"):
        Setting(series=("mup",))
