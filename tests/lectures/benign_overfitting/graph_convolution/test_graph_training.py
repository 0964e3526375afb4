"""Graph convolutional training in coefficients: what direct training in d dimensions does, and its rivals."""

from dataclasses import replace
from operator import methodcaller

import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.dynamics.inner_products import Gram
from flbook.lectures.benign_overfitting.graph_convolution.graph_training import (
    GraphTraining,
    LazyGraphTraining,
    convolved,
)
from flbook.lectures.benign_overfitting.graph_convolution.graphs import TwoBlockGraph, on_graph
from flbook.models import ReLUPower, TwoLayerCNN, identity, softplus
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

LINEAR, LAZY = methodcaller("linear"), methodcaller("lazy")  # rivals of a problem
N, D, M, SEEDS = 12, 40, 3, (0, 1, 2)
DATA = SignalNoise(n=N, d=D, mu_norm=3.0, orthogonal=True)
GRAPH = TwoBlockGraph(N, 5.0, 4.0)


def both(activation):
    sample, x = on_graph(DATA, GRAPH, SEEDS)
    cnn = TwoLayerCNN(D, M, 0.3, activation, seed=SEEDS, dtype=torch.float64)
    matrix = GRAPH.convolution(sample.y[0], SEEDS)
    gram = convolved(Gram.of(sample, cnn.w.detach().flatten(-3, -2)), matrix)
    problem = GraphTraining(gram, sample.y, sample.y, 1 / M, activation, law=DATA.test_law,
                            share=torch.einsum("...ik,...k->...i", matrix, sample.y), nodes=GRAPH.neighbourhoods(256))
    return Training(cnn, x, sample.y), problem, sample


@pytest.mark.parametrize("activation", [softplus, ReLUPower(3.0), identity])
def test_coefficients_train_like_weights_on_convolved_patches(activation):
    direct, problem, _ = both(activation)
    rule = GradientDescent(0.05)
    expected = direct.predict(fit(direct, rule, 60).params)
    params = fit(problem, rule, 60).params
    assert (expected - direct.predict(direct.start())).abs().max() > 0.05, "it has learned something"
    torch.testing.assert_close(problem.predict(params), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rival", [lambda p: p, LINEAR, LAZY], ids=["network", "linear", "lazy"])
def test_the_test_error_is_that_on_fresh_graphs(rival):
    direct, problem, sample = both(ReLUPower(3.0))
    problem = rival(problem)
    params = fit(problem, GradientDescent(0.05), 60).params
    found = measures.test_error(problem, params, 256)
    model = direct.lazy() if isinstance(problem, LazyGraphTraining) else direct
    fresh = [on_graph(replace(DATA, n=N), GRAPH, 1000 + k) for k in range(150)]
    x, y = torch.cat([patches for _, patches in fresh]), torch.cat([one.y for one, _ in fresh])
    # the matrices that made the coefficients: weights = start + c_mu mu + c_xi (convolved noise)
    noise = GRAPH.convolution(sample.y[0], SEEDS) @ sample.xi
    moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], noise)
    weights = direct.start()["w"] + moved.unflatten(-2, (2, M))
    if problem.activation is identity:
        f = torch.einsum("npd,...jrd,j->...n", x, weights, torch.tensor([1.0, -1.0]).double())
    else:
        f = model.predict({"w": weights}, x)
    error = (f * y <= 0).double().mean(-1)
    torch.testing.assert_close(found, error, atol=0.04, rtol=0)


def test_bad_input_is_one_sentence():
    _, problem, _ = both(softplus)
    with pytest.raises(ValueError, match="share and nodes must be given"):
        replace(problem, share=None)
    with pytest.raises(ValueError, match="bias must be False on a graph"):
        replace(problem, bias=True)
    with pytest.raises(ValueError, match="there are 256 fresh nodes, but 64 test points"):
        measures.test_error(problem, problem.start(), 64)
