"""A network trained on each prompt: training goes on where it stopped, and prompts do not see each other."""

import torch

from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.lectures.in_context_learning.test_time_training.prompt_network import two_layer
from flbook.shapes import Context


def test_training_on_a_prompt_goes_on_where_it_stopped():
    drawn = SingleIndexPrompts(n=12, d=4).draw(2, 0)
    thrice = two_layer(drawn.context, drawn.query, width=8, steps=6, every=2)
    once = two_layer(drawn.context, drawn.query, width=8, steps=6, every=6)
    assert list(thrice) == ["2 steps", "4 steps", "6 steps"]
    torch.testing.assert_close(thrice["6 steps"], once["6 steps"])


def test_a_prompt_alone_is_a_prompt_in_the_batch():
    drawn = SingleIndexPrompts(n=12, d=4).draw(3, 0)
    together = two_layer(drawn.context, drawn.query, width=8, steps=4, every=4)["4 steps"]
    first = two_layer(Context(*(part[:1] for part in drawn.context)), drawn.query[:1], width=8, steps=4, every=4)
    torch.testing.assert_close(first["4 steps"], together[:1])
