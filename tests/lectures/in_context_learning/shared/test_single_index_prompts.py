"""Single-index prompts: their link, subspace and noise, a batch from (seed, step) alone, and what they refuse."""

import pytest
import torch

from flbook import hermite
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts


def test_a_prompt_bends_its_inputs_along_its_direction():
    batch = SingleIndexPrompts(n=5, d=4, r=2, link=(0.0, 0.0, 0.6, 0.8), queries=3).draw(7, seed=0)
    assert batch.context.x.shape == (7, 5, 4) and batch.query.shape == (7, 3, 4) and batch.observed.shape == (7, 3)
    torch.testing.assert_close(batch.task.square().sum(-1), torch.ones(7).double())
    assert (batch.task[:, 2:] == 0).all() and (batch.task[:, :2] != 0).all()
    link = hermite.Series((0.0, 0.0, 0.6, 0.8))
    for x, y in ((batch.context.x, batch.context.y), (batch.query, batch.target)):
        torch.testing.assert_close(y, link(torch.einsum("bnd,bd->bn", x, batch.task)))
    assert torch.equal(batch.observed, batch.target)


def test_moments_of_labels_directions_links_and_noise():
    data = SingleIndexPrompts(n=4, d=5, r=3, link=(0.0, 0.0, 0.6, 0.8), spread=(0.0, 0.0, 0.0, 0.0, 0.9), noise=0.5)
    batch = data.draw(20000, seed=0)
    assert data.mean_square == pytest.approx(1.27) and data.degree == 4
    assert batch.target.square().mean().item() == pytest.approx(1.27, rel=0.08)
    moment = torch.einsum("bi,bj->ij", batch.task, batch.task) / 20000
    torch.testing.assert_close(moment, torch.diag(torch.tensor([1, 1, 1, 0, 0.0])).double() / 3, atol=0.01, rtol=0)
    noise = batch.observed - batch.target
    torch.testing.assert_close(noise.abs(), torch.full_like(noise, 0.5))
    assert abs(noise.mean()) < 0.02
    assert (batch.coefficients[:, 4].abs() <= 0.9).all() and (batch.coefficients[:, 2] == 0.6).all()
    normal = SingleIndexPrompts(n=4, d=5, r=3, noise=0.5, law="normal").draw(20000, seed=0)
    assert (normal.observed - normal.target).std().item() == pytest.approx(0.5, rel=0.03)
    assert torch.equal(normal.query, batch.query), "inputs stay when link and noise change"


def test_every_prompt_has_the_link_that_it_says():
    batch = SingleIndexPrompts(n=5, d=3, r=2, link=(0.0, 1.0), spread=(0.0, 0.0, 0.5), queries=3).draw(4, seed=(0, 1))
    z = torch.einsum("sbnd,sbd->sbn", batch.query, batch.task)
    c = batch.coefficients[..., None]
    torch.testing.assert_close(batch.target, z + c[..., 2, :] * (z**2 - 1) / 2**0.5)
    assert (c[..., 2, 0].abs() <= 0.5).all() and len(c[..., 2, 0].unique()) == 8


@pytest.mark.parametrize("change, sentence", [
    (dict(r=5, d=4), "r must be at most d = 4; got 5"),
    (dict(link=(0.0, 0.0)), "link must have a coefficient that is not 0"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        SingleIndexPrompts(**change)
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1; got 0"):
        SingleIndexPrompts().draw(0)
