"""Facts: gradients against autograd, and recall against the whole table of logits."""

import pytest
import torch

from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, FactTraining, first_gradient, stored
from flbook.training.orthogonalised import polar_factor

FACTS = Facts(count=50, d=7, power=1.2)


def test_inputs_and_outputs_are_unit_vectors_and_frequencies_a_power_law():
    inputs, outputs = FACTS.draw((0, 1))
    for part in (inputs, outputs):
        torch.testing.assert_close(part.norm(dim=-1), torch.ones(2, 50, dtype=torch.float64))
    assert float((inputs * outputs).sum(-1).abs().max()) < 1, "two draws, not one"
    p = FACTS.frequencies
    assert float(p[0] / p[9]) == pytest.approx(10**1.2) and float(p.sum()) == pytest.approx(1)


def test_the_slope_is_the_gradient_of_the_loss():
    problem = FactTraining.of(FACTS, (0, 1))
    for w in (problem.start()["w"], torch.linspace(-1, 2, 98, dtype=torch.float64).reshape(2, 7, 7)):
        w = w.clone().requires_grad_()
        (grad,) = torch.autograd.grad(problem.train_loss({"w": w}).sum(), w)
        torch.testing.assert_close(problem.slope({"w": w.detach()})["w"], grad)


def test_the_first_gradient_is_that_of_the_problem_at_zero():
    problem = FactTraining.of(FACTS, (0, 1))
    torch.testing.assert_close(first_gradient(problem.inputs, problem.outputs, problem.p),
                               -problem.slope(problem.start())["w"])


@pytest.mark.parametrize("block", [7, 16, 1000])
def test_recall_in_blocks_is_that_of_the_whole_table(block):
    problem = FactTraining.of(FACTS, 0)
    w = polar_factor(first_gradient(problem.inputs, problem.outputs, problem.p))
    for ranks in (50, 20):
        found = stored(w, problem.inputs, problem.outputs, ranks, block)
        assert found.tolist() == problem.stored({"w": w})[:ranks].tolist()
    assert 0 < found.sum() < 20


def test_a_matrix_that_knows_all_stores_all():
    problem = FactTraining(torch.eye(4), torch.eye(4)[[2, 0, 3, 1]], torch.full((4,), 0.25))
    w = problem.outputs.mT @ problem.inputs
    assert problem.stored({"w": w}).all() and stored(w, problem.inputs, problem.outputs, 4).all()
