"""Prompts: a batch is a pure function of (seed, step), its moments are those of the formulas, bad input is named."""

import numpy as np
import pytest
import torch

from flbook.data import LinearPrompts, TaskPool

SLANTED = ((2.0, 0.6), (0.6, 0.5))


def leaves(prompts):
    return [*prompts.context, *prompts[1:]]


def test_shapes_and_labels():
    data = LinearPrompts(n=4, d=3, noise=0.5, queries=2)
    prompts = data.draw(6, seed=(0, 1), dtype=torch.float32)
    assert prompts.context.x.shape == (2, 6, 4, 3) and prompts.context.y.shape == (2, 6, 4)
    assert prompts.query.shape == (2, 6, 2, 3) and prompts.target.shape == prompts.observed.shape == (2, 6, 2)
    assert all(leaf.dtype == torch.float32 for leaf in leaves(prompts))
    torch.testing.assert_close(prompts.target, torch.einsum("sbqd,sbd->sbq", prompts.query, prompts.task))
    clean = LinearPrompts(n=4, d=3, queries=2).draw(6, seed=(0, 1), dtype=torch.float32)
    assert torch.equal(clean.context.x, prompts.context.x) and torch.equal(clean.task, prompts.task)
    assert torch.equal(clean.observed, clean.target) and not torch.isclose(prompts.observed, prompts.target).any()


def test_moments_of_a_slanted_law():
    data = LinearPrompts(n=9, d=2, noise=0.3, covariance=SLANTED, task_covariance=(3.0, 0.25))
    prompts = data.draw(20000, seed=0)
    x = torch.cat([prompts.context.x, prompts.query], 1).reshape(-1, 2)
    torch.testing.assert_close(x.T @ x / len(x), torch.tensor(SLANTED).double(), atol=0.02, rtol=0)
    found = prompts.task.T @ prompts.task / 20000
    torch.testing.assert_close(found, torch.diag(torch.tensor([3.0, 0.25]).double()), atol=0.1, rtol=0)
    assert (prompts.observed - prompts.target).std().item() == pytest.approx(0.3, rel=0.03)
    trace = np.trace(np.array(SLANTED) @ np.diag([3.0, 0.25]))  # E y² = tr(Λ Λ_β)
    assert prompts.target.square().mean().item() == pytest.approx(trace, rel=0.05)


def test_a_covariance_may_be_a_diagonal_an_array_or_singular():
    as_rows = LinearPrompts(2, 2, covariance=((4.0, 0.0), (0.0, 0.25))).draw(3, 0)
    as_array = LinearPrompts(2, 2, covariance=np.array([4.0, 0.25]))
    torch.testing.assert_close(as_array.draw(3, 0).context.x, as_rows.context.x)
    assert as_array.covariance == (4.0, 0.25) and hash(as_array) == hash(LinearPrompts(2, 2, covariance=(4.0, 0.25)))
    flat = LinearPrompts(2, 2, covariance=((1.0, 1.0), (1.0, 1.0))).draw(3, 0).context.x
    torch.testing.assert_close(flat[..., 0], flat[..., 1])


def test_a_pool_holds_all_tasks_there_are():
    pool = TaskPool(4, seed=7, replacement=False)
    tasks = pool.tasks(3)
    drawn = LinearPrompts(2, 3, pool=pool).draw(4, seed=0).task
    assert torch.equal(drawn[drawn[:, 0].argsort()], tasks[tasks[:, 0].argsort()]), "each once"
    often = LinearPrompts(2, 3, pool=TaskPool(4, seed=7)).draw(400, seed=0).task
    counts = (often[:, None] == tasks).all(-1).sum(0)
    assert counts.sum() == 400 and counts.min() > 60
    two = LinearPrompts(2, 3, pool=TaskPool(4, seed=(7, 8))).draw(5, seed=(0, 1)).task
    assert torch.equal(two[0], LinearPrompts(2, 3, pool=TaskPool(4, seed=7)).draw(5, 0).task)
    assert torch.equal(two[1], LinearPrompts(2, 3, pool=TaskPool(4, seed=8)).draw(5, 1).task)


def test_a_pool_is_drawn_anew_under_another_seed_of_the_run(monkeypatch):
    before = TaskPool(4).tasks(3)
    monkeypatch.setenv("FLBOOK_SEED", "5")
    assert not torch.isclose(before, TaskPool(4).tasks(3)).any()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LinearPrompts(d=2, covariance=(1.0, -0.5)), "covariance must be positive semi-definite; .* -0.5"),
        (lambda: LinearPrompts(d=2, covariance=((1.0, 2.0), (2.0, 1.0))), "smallest eigenvalue is -1"),
        (lambda: LinearPrompts(d=2, covariance=((1.0, 0.5), (0.0, 1.0))), "covariance must be finite and symmetric"),
        (lambda: LinearPrompts(d=3, task_covariance=(1.0, 1.0)), "task_covariance must hold d = 3 numbers"),
        (lambda: LinearPrompts(d=2, covariance="wide"), "covariance must hold d = 2 numbers .* got 'wide'"),
        (lambda: LinearPrompts().draw(0, seed=0), "batch must be a whole number of at least 1; got 0"),
        (lambda: LinearPrompts(pool=TaskPool(3, replacement=False)).draw(4, seed=0),
         "batch must be at most the pool's size of 3 tasks, since they are drawn without replacement; got 4"),
        (lambda: LinearPrompts(pool=TaskPool(3, seed=(0, 1))).draw(4, seed=0), "seed must be a tuple of 2 seeds"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
