"""A concept found, steered and erased, at a tiny preset."""

from dataclasses import replace

import numpy as np
import torch

from flbook.lectures.representation.features_in_real_networks import concept_direction as concept
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits
from flbook.lectures.representation.features_in_real_networks.concept_direction import Inside, TwoQuestions, experiment

TINY = experiment.setting("tiny")


def test_two_questions_by_hand():
    f = torch.zeros(2, 11, dtype=torch.float64)
    f[0, 3], f[0, 10] = 1.0, 0.3
    loss = TwoQuestions()(f, torch.tensor([13, 3]))  # red 3 and odd, red 3 and even
    regression = [(9 * 0.1**2 + 0.1**2) / 2, (9 * 0.1**2 + 0.9**2) / 2]
    np.testing.assert_allclose(loss, [regression[0], regression[1] + 0.3**2 / 2])


def test_the_questions_are_about_different_digits():
    pictures = ColouredDigits(2000).draw(0)
    odd = concept.question(pictures)
    assert set(odd.tolist()) == {-1.0, 1.0}
    assert torch.equal(odd > 0, pictures.digits[:, 1] % 2 == 1)
    for red in range(10):
        assert abs(float(odd[pictures.y == red].mean())) < 0.35


def test_frozen_features_are_those_of_the_start():
    frozen, trained = (Inside(replace(TINY, steps=0), model, "cpu") for model in ("frozen", "trained"))
    torch.testing.assert_close(frozen.h, trained.h)
    assert Inside(TINY, "wide frozen", "cpu").h.shape == (2, 80, 12)


def test_a_random_direction_has_the_length_that_it_is_given():
    h = torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = h * torch.tensor([9.0, 1.0, 1.0, 1.0])
    way = concept.shaped_like(h, torch.tensor([2.0, 3.0], dtype=torch.float64), (0, 1))
    torch.testing.assert_close(way.norm(dim=-1), torch.tensor([2.0, 3.0], dtype=torch.float64))
    many = concept.shaped_like(h[:1].expand(40, 50, 4), torch.ones(40, dtype=torch.float64), tuple(range(40)))
    assert (many[:, 0].abs() > 0.7).double().mean() > 0.7, "it leans to where the features vary"
