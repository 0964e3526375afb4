"""Uniform attention at its empirical minimum: the solver against autograd, likelihood, and the expansion in 1/N."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.bayes_gap import empirical_minimum as solver
from flbook.lectures.in_context_learning.bayes_gap import posterior as theory
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import SignPrompts

TINY = solver.experiment.setting("tiny")


def pretraining(N=500, m=5, p=4, seeds=(0, 1)):
    prompts = SignPrompts(p).draw(N, seeds)
    labels = torch.cat([prompts.context.y, prompts.observed], -1)
    return solver.counts(prompts.context.y, m), labels


def test_counts():
    found = solver.counts(torch.tensor([[-3.0, 0.5, 4.0, 0.6]]), 4)
    assert found[0].tolist() == [[1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1], [1, 0, 2, 1]]


def test_the_loss_is_stationary_at_the_minimum():
    seen, labels = pretraining()
    weights = solver.empirical_minimum(labels, 5).requires_grad_()
    loss = (labels[..., 1:] - solver.answers(seen, weights)).square().mean((-2, -1))
    (slope,) = torch.autograd.grad(loss.sum(), weights)
    assert float(slope.abs().max()) < 1e-6
    assert (loss < (labels[..., 1:] - solver.answers(seen, weights + 0.05)).square().mean((-2, -1))).all()


def test_merged_contexts_say_the_same():
    seen, labels = pretraining(seeds=0)
    rows, mean, share = solver.merged(labels[:, :-1], labels[:, 1:], 5)
    assert len(rows) < seen.shape[0] * seen.shape[1] and len(torch.unique(rows, dim=0)) == len(rows)
    torch.testing.assert_close(share @ rows, seen.mean((0, 1)))
    torch.testing.assert_close(share @ mean, labels[:, 1:].mean())
    rows, _, share = solver.merged(labels, labels, 5, whole=True)
    torch.testing.assert_close(share @ rows, solver.counts(labels, 5)[:, -1].mean(0))


def test_likelihood_finds_the_evidence():
    _, labels = pretraining(N=20_000, seeds=(0,))
    np.testing.assert_allclose(solver.by_likelihood(labels, 5)[0], theory.evidence(5), atol=0.06)


def test_parts():
    found = solver.run("tiny").mean("k")
    np.testing.assert_allclose(found.features.mean("seed")[:, 0], [0.0213, 0.0051], rtol=0.2)
    rest = found.risk - found.variance - found.features - found.estimation
    assert float(abs(rest.sel(N=256)).max()) < 0.05
    assert (found.by_likelihood.mean("seed") < found.estimation.mean("seed")).all()
    np.testing.assert_allclose(found.expected.sel(N=64), 4 * found.expected.sel(N=256))


def test_the_expansion_is_between_its_bounds():
    prompts = SignPrompts(6).draw(4000, 0)
    seen = solver.counts(prompts.context.y, 6)
    best = solver.answers(seen, torch.as_tensor(theory.evidence(6)))
    total = float(solver.expected_gap(seen, best).mean())
    assert 6 / 6 * 2 < total < 6 / 6 * 3, "m/p times the variance of a label, and at most one more"


def test_too_many_counts_is_one_sentence():
    with pytest.raises(ValueError, match="p and m are too large"):
        solver.merged(torch.zeros(2, 9), torch.zeros(2, 9), 30)
