"""Signal and noise of the first step: closed forms against drawn layers, drawn prompts and autograd."""

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as theory
from flbook.lectures.in_context_learning.low_dimensional_targets import step_noise
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts


def test_the_mean_step_has_its_length():
    w = ReLULayer.draw(40_000, 8, 0).w.numpy()
    drawn = (theory.quadratic_step(w, 3) ** 2).sum(-1).mean()
    assert step_noise.signal(8, 3) == pytest.approx(drawn, rel=0.03)


def test_single_steps_add_up_to_the_step():
    layer, drawn = ReLULayer.draw(6, 5, 0), SingleIndexPrompts(n=7, d=5, r=2).draw(30, 0)
    whole = pretraining.first_gradient(
        layer, [pretraining.Example(drawn.context, drawn.query[:, 0], drawn.observed[:, 0])]
    )
    torch.testing.assert_close(step_noise.single_steps(layer.w, drawn).mean(0), whole)


@pytest.mark.parametrize("degree", [2, 4])
def test_the_squared_length_of_a_step_from_one_prompt(degree):
    """In two dimensions every mean is an integral over the plane, exact by quadrature, and one over the angle."""
    n, (nodes, weights) = 7, np.polynomial.hermite_e.hermegauss(60)
    x = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / (2 * np.pi)
    phi, half = np.maximum(x[:, 0], 0), (x[:, 0] > 0) * mass  # w is the first axis
    squares = []
    for angle in 2 * np.pi * np.arange(64) / 64:
        y = hermite.polynomial(degree, x @ [np.cos(angle), np.sin(angle)])
        kappa, pull, turn = (y * phi) @ mass, (y * half) @ x, (y**2 * phi * mass) @ x
        long, strong = (y**2 * half) @ (x**2).sum(-1), (y**2 * phi**2) @ mass
        squares.append(long * (kappa**2 + (strong - kappa**2) / n) + strong * (pull @ pull + (long - pull @ pull) / n)
                       + 2 * turn @ (kappa * pull * (1 - 1 / n) + turn / n))
    assert step_noise.single_square(2, n, degree) == pytest.approx(np.mean(squares), rel=0.02), "a kink at 0"


def test_drawn_prompts_have_that_squared_length():
    drawn = [step_noise.measured(8, 40, seed, count=4000) for seed in range(6)]
    assert np.median(drawn) == pytest.approx(float(step_noise.prompts_needed(8, 40)), rel=0.2), "heavy tails"


def test_the_number_of_prompts_tends_to_its_leading_order():
    d, r, n = 10**5, 3, 10**10
    leading = np.pi**2 * r * (r + 2) / (9 * (r + 4)) * (d**4 / (2 * n) + 7 * d**2 / (8 * np.pi))
    assert step_noise.prompts_needed(d, n, r) == pytest.approx(leading, rel=1e-3)
    slope = np.log(step_noise.prompts_needed(1e6, 1e6) / step_noise.prompts_needed(1e5, 1e5)) / np.log(10)
    assert slope == pytest.approx(3, abs=1e-3), "with n = d examples each, d^4 in all"
