"""A concept found, steered and erased, at a tiny preset."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation.features_in_real_networks import concept_direction as concept
from flbook.lectures.representation.features_in_real_networks import features
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits
from flbook.lectures.representation.features_in_real_networks.concept_direction import (
    Inside,
    Setting,
    TwoQuestions,
    measure,
)
from flbook.runs import results, settings

TINY = Setting(seed=(0, 1), n=60, probed=80, filters=4, hidden=10, wide=12, steps=5)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in dataset.data_vars.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
        assert np.isfinite(variable).all(), name
    assert set(dataset.flips.dims) == {"model", "direction", "seed", "strength"}
    unsteered = dataset.flips.sel(strength=0.0)
    assert (unsteered.sel(direction="concept") == unsteered.sel(direction="random")).all()
    moved = dataset.left_moved
    assert (moved.sel(edit="none") == 0).all()
    assert (moved.sel(edit="smallest") <= moved.sel(edit="orthogonal") + 1e-12).all()


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


def test_after_erasing_the_best_probe_is_a_constant_where_it_was_fitted():
    inside = Inside(TINY, "trained", "cpu")
    edit = features.eraser(inside.h, inside.z)
    before, after = (features.probe(h, inside.z)[0].norm(dim=-1) for h in (inside.h, edit(inside.h)))
    assert (after < 1e-9 * before).all(), "the best probe is a constant"


def test_a_random_direction_has_the_length_that_it_is_given():
    h = torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = h * torch.tensor([9.0, 1.0, 1.0, 1.0])
    way = concept.shaped_like(h, torch.tensor([2.0, 3.0], dtype=torch.float64), (0, 1))
    torch.testing.assert_close(way.norm(dim=-1), torch.tensor([2.0, 3.0], dtype=torch.float64))
    many = concept.shaped_like(h[:1].expand(40, 50, 4), torch.ones(40, dtype=torch.float64), tuple(range(40)))
    assert (many[:, 0].abs() > 0.7).double().mean() > 0.7, "it leans to where the features vary"


@pytest.mark.parametrize("preset", [Setting.book, Setting.paper])
def test_presets_can_be_run(preset):
    assert settings.to_json(preset()) and len(preset().seed) >= 10


def test_stored_cells_come_again():
    stored, paper = results.open("concept_direction"), Setting.paper()
    cell = replace(paper, model=("frozen",), seed=paper.seed[:2])
    again, kept = measure(cell).squeeze("model"), stored.sel(model="frozen", seed=list(cell.seed))
    for name in ("probe_accuracy", "cosine", "flips", "left_probe"):
        np.testing.assert_allclose(again[name].transpose(*kept[name].dims), kept[name], atol=6e-3, err_msg=name)
