"""Crops with exchanged colours, two questions, and a concept found, steered and erased."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation.features_in_real_networks import photographs
from flbook.lectures.representation.features_in_real_networks.photographs import TwoAnswers, experiment

TINY = experiment.setting("tiny")


def test_colours_are_exchanged_where_it_is_said():
    sample, plain = photographs.pictures(TINY, 3, "train"), photographs.TwoClassPictures(n=40, flip_prob=0.0).draw(3)
    for x, original, z in zip(sample.x, plain.x, sample.z, strict=True):
        assert torch.equal(x, original[[2, 1, 0]] if z > 0 else original)
    assert torch.equal(sample.y, plain.y) and set(sample.z.tolist()) == {-1.0, 1.0}


def test_two_answers_by_hand():
    f = torch.tensor([[1.0, -2.0]])
    for label, signs in enumerate(((-1, -1), (1, -1), (-1, 1), (1, 1))):
        expected = sum(np.log1p(np.exp(-s * v)) for s, v in zip(signs, (1.0, -2.0), strict=True))
        assert TwoAnswers()(f, torch.tensor([label])).item() == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="labels must be 0, 1, 2 or 3"):
        TwoAnswers().check(torch.tensor([0, 4]))


def test_an_untrained_network_has_one_correlation_whatever_its_start():
    found = experiment.measure(replace(TINY, start=(0.3, 2.0), epochs=0))
    untrained = found.correlation.sel(stage="untrained")
    np.testing.assert_allclose(untrained.sel(start=0.3), untrained.sel(start=2.0), rtol=1e-4)
    np.testing.assert_array_equal(found.correlation.sel(stage="trained"), untrained)


def test_a_random_direction_has_the_length_that_it_is_given():
    h = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = h * torch.tensor([9.0, 1.0, 1.0, 1.0])
    ways = torch.stack([photographs.shaped_like(h, torch.tensor(2.0), seed) for seed in range(40)])
    torch.testing.assert_close(ways.norm(dim=-1), torch.full((40,), 2.0, dtype=torch.float64))
    assert (ways[:, 0].abs() > 1.4).double().mean() > 0.7, "it leans to where the features vary"
