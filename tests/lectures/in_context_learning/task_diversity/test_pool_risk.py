"""Linear attention on a pool of tasks: exact risks against the asymptotic theory, its limits, its pole, bad input."""

import numpy as np
import pytest

from flbook.data.prompts import TaskPool
from flbook.lectures.in_context_learning.shared.attention_risk import attention_optimum, attention_risk
from flbook.lectures.in_context_learning.task_diversity import pool_risk as theory


def pool(count, d, seed=0):
    return TaskPool(count, seed).tasks(d).numpy()


@pytest.mark.parametrize("kappa", [0.5, 1.0, 1.5, 5.0])
def test_exact_risks_tend_to_the_theory(kappa):
    limit = theory.icl_risk(1e9, 4.0, kappa, 0.1)
    gaps = [np.mean([theory.pool_risk(pool(round(kappa * d), d, s), 4 * d, 0.1) for s in range(6)]) / limit - 1
            for d in (20, 160)]
    assert abs(gaps[1]) < 0.006 and abs(gaps[1]) < abs(gaps[0]) + 0.003


def test_values_and_limits():
    found = [theory.icl_risk(8, 4, kappa, 0.1) for kappa in (0.5, 1.5, 5.0)]
    np.testing.assert_allclose(found, [0.803, 0.455, 0.376], atol=5e-4)
    for kappa in (0.3, 2.0):
        assert theory.icl_risk(1e12, 1e5, kappa, 0.2) == pytest.approx(theory.long_prompts(kappa, 0.2), abs=1e-4)
    everyone = attention_risk(attention_optimum(400, np.eye(100) / 100, 0.1**0.5), 400, np.eye(100) / 100, 0.1**0.5)
    assert theory.icl_risk(1e9, 4, 1e9, 0.1) == pytest.approx(everyone + 0.1, rel=0.01)


def test_the_pole_and_both_sides_of_it():
    near = [theory.icl_risk(tau, 4, 5, 0.1) for tau in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)]
    assert near[0] < near[1] < near[2] and near[3] > near[4] > near[5]
    assert theory.icl_risk(1e-6, 4, 5, 0.1) == pytest.approx(1.1, rel=1e-3)  # no prompts: predict 0


def test_only_the_second_moment_of_a_pool_counts():
    tasks = pool(8, 5)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    assert theory.pool_risk(turn @ tasks, 20, 0.1) == pytest.approx(theory.pool_risk(tasks, 20, 0.1), rel=1e-12)
    assert theory.pool_risk(tasks[:3], 20, 0.1) > theory.pool_risk(tasks, 20, 0.1)


def test_the_errors_of_the_best_layer_are_those_of_fresh_prompts():
    tasks, n, noise = pool(3, 4), 2, 0.5
    own, fresh = theory.layer_errors(tasks, n, noise)
    second = tasks.T @ tasks / 3
    assert own < np.trace(second) / 4 and 0 < fresh < 1.5
    generator, found = np.random.default_rng(0), {"own": [np.trace(second) / 4], "fresh": [1.0]}
    for k in (1, 2):
        gamma = attention_optimum(k, np.eye(4), noise, second)
        for where, drawn in (("own", tasks[generator.integers(3, size=200_000)]),
                             ("fresh", generator.standard_normal((200_000, 4)))):
            x, query = generator.standard_normal((200_000, k, 4)), generator.standard_normal((200_000, 4))
            y = np.einsum("bd,bnd->bn", drawn, x) + noise * generator.standard_normal((200_000, k))
            answer = np.einsum("bn,bnd,de,be->b", y, x, gamma, query) / k
            found[where].append(((answer - (drawn * query).sum(-1)) ** 2).mean() / 4)
    assert np.mean(found["own"]) == pytest.approx(own, rel=0.02)
    assert np.mean(found["fresh"]) == pytest.approx(fresh, rel=0.02)


@pytest.mark.parametrize("arguments, message", [
    ((0, 4, 5, 0.1), "tau, alpha and kappa must be positive"),
    ((2, 4, 5, -0.1), "rho not negative"),
    ((1, 4, 5, 0.1), "tau must differ from 1"),
])
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.icl_risk(*arguments)
