"""The Bayes gap at a tiny preset."""

import numpy as np
import torch

from flbook.lectures.in_context_learning import bayes_gap as lecture
from flbook.lectures.in_context_learning.bayes_gap import gap_pictures as pictures
from flbook.lectures.in_context_learning.bayes_gap import two_planes
from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.lectures.in_context_learning.shared.prompt_pool import PromptPool

TINY = lecture.experiment.setting("tiny")


def test_the_parts_of_the_risk_add_up_and_prompts_help():
    dataset = lecture.run(TINY.thinned(model=("told k",), steps=(80,), points=2000)).squeeze("steps")
    np.testing.assert_allclose(dataset.risk, dataset.gap + dataset.variance + dataset.cross, rtol=1e-4)
    assert (abs(dataset.cross) < 0.1 * dataset.risk).all()
    assert (dataset.variance == dataset.variance[0, 0]).all(), "the same test prompts for all"
    gap = dataset.gap.mean(("model", "seed"))
    assert gap.sel(N=400) < gap.sel(N=8)


def test_every_length_is_asked_for_the_next_label():
    prompts = TINY.data().draw(3, (0,), dtype=torch.float32)
    model = UniformAttention(seed=(0,))
    model.every = lambda context, _: torch.cat([context.y[..., 1:], prompts.observed], -1) + 0.5
    assert float(lecture.next_label(model, prompts)) == 0.25


def test_pools():
    data = TINY.data()
    pool, fresh = PromptPool(data, 3), PromptPool(data, 0)
    # labels of three values: whole prompts tell the pool's apart
    seen = torch.cat([pool.draw(8, (0, 1), step).context.y[0] for step in range(5)])
    assert len(torch.unique(seen, dim=0)) <= 3
    seen = torch.cat([fresh.draw(8, (0, 1), step).context.y[0] for step in range(5)])
    assert len(torch.unique(seen, dim=0)) > 10


def test_two_planes():
    dataset = two_planes.run("tiny")
    np.testing.assert_allclose(dataset.variance, dataset.known + dataset.cost, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dataset.isel(k=0).variance, 1, rtol=1e-5)
    late = dataset.isel(k=-1).mean("seed")
    for part in (late.known, late.cost):
        assert part.sel(noise=0.7) < part.sel(noise=1.5)


def test_the_drawing():
    assert "decoder is told" in pictures.MODEL.alt
