"""The two-block graph: its edges against probabilities, its convolution by hand, fresh nodes against drawn graphs."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting.graph_convolution.graphs import TwoBlockGraph, on_graph

Y = 1.0 - 2.0 * (torch.arange(60) % 2).double()
SEEDS = tuple(range(40))


def test_edges_have_the_stated_probabilities():
    graph = TwoBlockGraph(60, 12.0, 5.0)
    assert graph.within == pytest.approx(1 / 3) and graph.between == pytest.approx(1 / 15)
    edges = graph.adjacency(Y, SEEDS)
    assert torch.equal(edges, edges.mT) and (edges.diagonal(dim1=-2, dim2=-1) == 0).all()
    assert set(edges.unique().tolist()) == {0.0, 1.0}
    same = (Y[:, None] == Y) & ~torch.eye(60, dtype=torch.bool)
    assert edges[:, same].mean().item() == pytest.approx(1 / 3, abs=0.01)
    assert edges[:, Y[:, None] != Y].mean().item() == pytest.approx(1 / 15, abs=0.005)
    assert edges.sum(-1).mean().item() == pytest.approx(12.0 - 1 / 3, abs=0.2), "no node is its own neighbour"


def test_more_degree_keeps_the_edges_that_are_there():
    few, many = (TwoBlockGraph(60, degree).adjacency(Y, 3) for degree in (6.0, 20.0))
    assert (few <= many).all() and few.sum() < many.sum()


def test_the_convolution_by_hand_and_without_a_graph():
    graph = TwoBlockGraph(60, 12.0)
    matrix = graph.convolution(Y, 0)
    torch.testing.assert_close(matrix.sum(-1), torch.ones(60).double())
    node, edges = 7, graph.adjacency(Y, 0)
    expected = (edges[node] + torch.eye(60).double()[node]) / (edges[node].sum() + 1)
    torch.testing.assert_close(matrix[node], expected)
    assert torch.equal(TwoBlockGraph(60, 0.0).convolution(Y, 0), torch.eye(60).double())


def test_an_ensemble_is_a_loop_over_seeds():
    graph = TwoBlockGraph(60, 12.0)
    for member, seed in enumerate((4, 9)):
        assert torch.equal(graph.convolution(Y, (4, 9))[member], graph.convolution(Y, seed))


def test_fresh_nodes_are_those_of_drawn_graphs():
    graph = TwoBlockGraph(60, 12.0, 5.0)
    matrix = graph.convolution(Y, SEEDS)
    share, size = (matrix @ Y * Y).flatten(), 1 / matrix.diagonal(dim1=-2, dim2=-1).flatten()
    fresh = graph.neighbourhoods(20000)
    assert fresh.share.mean().item() == pytest.approx(share.mean().item(), abs=0.01)
    assert fresh.share.std().item() == pytest.approx(share.std().item(), rel=0.05)
    assert fresh.size.mean().item() == pytest.approx(size.mean().item(), abs=0.15)
    assert fresh.share.mean().item() > graph.attenuation, "the node itself is among its neighbours"
    alone = TwoBlockGraph(60, 0.0).neighbourhoods(10)
    assert (alone.share == 1).all() and (alone.size == 1).all()


def test_patches_on_a_graph():
    data, graph = SignalNoise(n=60, d=50, mu_norm=2.0, orthogonal=True), TwoBlockGraph(60, 12.0)
    sample, x = on_graph(data, graph, (0, 1))
    matrix = graph.convolution(sample.y[0], (0, 1))
    torch.testing.assert_close(x[:, :, 0], (matrix @ sample.y[0])[..., None] * sample.mu)
    torch.testing.assert_close(x[:, :, 1], matrix @ sample.xi)
    with pytest.raises(ValueError, match="data and graph must have the same n; got 60 and 20"):
        on_graph(data, TwoBlockGraph(20, 4.0))
    with pytest.raises(ValueError, match="exact_flips must be True"):
        on_graph(SignalNoise(n=60, d=50, exact_flips=False), graph)


@pytest.mark.parametrize("options, sentence", [
    (dict(n=7), "n must be even, for two classes of equal size; got 7"),
    (dict(contrast=0.0), "contrast must be a number above 0; got 0.0"),
    (dict(n=10, degree=7.0), r"degree must lie in \[0, 6\], so that p is a probability; got 7"),
    (dict(n=10, degree=7.0, contrast=0.2), r"degree must lie in \[0, 6\], so that p is a probability; got 7"),
])
def test_bad_graphs_are_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TwoBlockGraph(**options)
