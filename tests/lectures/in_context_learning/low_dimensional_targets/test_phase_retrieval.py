"""Phase retrieval on prompts: it finds the direction where there are examples enough, and only there."""

import torch

from flbook.lectures.in_context_learning.low_dimensional_targets import phase_retrieval
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.shapes import Context


def test_labels_say_the_size_of_the_index():
    drawn = SingleIndexPrompts(n=9, d=4, r=2).draw(3, 0)
    index = torch.einsum("tnd,td->tn", drawn.context.x, drawn.task)
    torch.testing.assert_close(phase_retrieval.sizes(drawn.context.y), index.abs())


def test_the_spectral_start_tends_to_the_direction():
    drawn = SingleIndexPrompts(n=20_000, d=6, r=2).draw(2, 0)
    start = phase_retrieval.spectral_start(drawn.context.x, phase_retrieval.sizes(drawn.context.y))
    assert ((start * drawn.task).sum(-1).abs() > 0.99).all()


def test_it_is_exact_with_three_examples_for_each_dimension_and_not_with_one():
    drawn = SingleIndexPrompts(n=48, d=16, r=2, queries=30).draw(20, 0)
    found = phase_retrieval.amplitude_flow(drawn.context, starts=8)
    assert found.beta.shape == (20, 8, 16) and found.miss.shape == (20, 8)
    best = found.beta[torch.arange(20), found.miss.argmin(-1)]
    assert ((best * drawn.task).sum(-1).abs() > 0.999).sum() >= 19
    few = Context(*(part[:, :16] for part in drawn.context))
    errors = {name: (f - drawn.target).square().mean() for name, f in phase_retrieval.answers(few, drawn.query).items()}
    assert min(errors.values()) > 0.3 and errors["shrunk to 1.0"] > errors["shrunk to 0.3"]
