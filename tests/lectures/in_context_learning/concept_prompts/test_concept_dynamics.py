"""Pretraining on concept prompts: the closed equations are the whole layer, the mirror is exact, batches unbiased."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.in_context_learning.concept_prompts.concept_attention import ConceptAttention, PromptAverages
from flbook.lectures.in_context_learning.concept_prompts.concept_dynamics import (
    ConceptPretraining,
    EveryPrompt,
    LazyConceptPretraining,
    ReducedConcepts,
    head_slope,
    order_parameters,
    right_attention,
)
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts

DATA = ConceptPrompts(concepts=2, n=4, d=4, noise=0.0)


@pytest.mark.parametrize("contains", [False, True])
@pytest.mark.parametrize("skew", [1.0, 0.4])
def test_closed_equations_are_training_of_the_whole_layer(contains, skew):
    data = replace(DATA, contains=contains, skew=skew, kappa=0.2)
    layer = ConceptAttention(4, 8, seed=(0, 1), mirrored=2, dtype=torch.float64)
    decay = torch.tensor([[0.0], [0.01]], dtype=torch.float64)
    few = ReducedConcepts.of(layer, data, decay)
    both = EveryPrompt(layer, data, decay=decay), few
    whole, reduced = (fit(task, GradientDescent(1.5), 40).params for task in both)
    found = order_parameters(whole, data)
    torch.testing.assert_close(few.score(reduced), found["contrast"], rtol=1e-10, atol=0)
    torch.testing.assert_close(reduced["shared"].square(), found["shared"], rtol=1e-10, atol=0)
    torch.testing.assert_close(reduced["d"].abs().amax(-2), found["head_contrast"], rtol=1e-9, atol=0)
    kept = (1 - 1.5 * decay.squeeze()) ** 40 * 0.3 * data.shared**2
    torch.testing.assert_close(found["query_shared"].mean((-1, -2)), kept, rtol=1e-10, atol=0)


def test_the_mirrored_solution_has_the_same_loss():
    layer = ConceptAttention(4, 6, spread=0.7, dtype=torch.float64)
    task = EveryPrompt(layer, DATA)
    params, mirror = task.start(), torch.tensor([1.0, 1.0, -1.0, -1.0]).double()

    def loss(p):
        margin = task.predict(p, task.prompts) * task.prompts.target[:, 0]
        return float((torch.nn.functional.softplus(-margin) * task.weight).sum())

    turned = {**params, "q": -params["q"], "o": params["o"] * mirror}
    assert loss(turned) == pytest.approx(loss(params), rel=1e-12)
    assert loss({**params, "q": -params["q"]}) != pytest.approx(loss(params), rel=1e-6)


def test_batches_have_the_gradient_of_all_prompts_as_their_mean():
    layer = ConceptAttention(4, 6, spread=0.5, head=0.5, dtype=torch.float64)
    exact = EveryPrompt(layer, DATA).gradient(EveryPrompt(layer, DATA).start())
    task = ConceptPretraining(layer, DATA, batch=20000).at(0)
    sampled = task.gradient(task.start())
    for name in exact:
        scale = float(exact[name].abs().max())
        torch.testing.assert_close(sampled[name], exact[name], rtol=0, atol=0.1 * scale)


def test_decay_and_frozen_parts():
    layer = ConceptAttention(4, 6, seed=(0, 1))
    task = ConceptPretraining(layer, DATA, (0, 1), 8, torch.tensor([[0.0], [0.1]]), trained=("o",))
    start = task.start()
    gradient = task.gradient(start)
    assert start["q"].shape == (2, 2, 4, 4) and float(gradient["q"].abs().max()) == 0
    difference = gradient["o"][1] - gradient["o"][0]
    torch.testing.assert_close(difference, 0.1 * start["o"][0])
    assert task.norm(gradient).shape == (2, 2)
    averages = ConceptPretraining(PromptAverages(4, (2,)), DATA, (0, 1), 8)
    assert averages.gradient(averages.start())["w"].shape == (2, 3, 4)


def test_the_lazy_layer_starts_like_the_layer_and_is_linear():
    layer = ConceptAttention(4, 6, spread=0.5, dtype=torch.float64)
    lazy, prompts = LazyConceptPretraining(layer, DATA), DATA.draw(7)
    start = lazy.start()
    torch.testing.assert_close(lazy.gradient(start), ConceptPretraining(layer, DATA).gradient(start))
    moved = {name: p + torch.randn_like(p) for name, p in start.items()}
    middle = {name: (p + moved[name]) / 2 for name, p in start.items()}
    outputs = [lazy.predict(p, prompts) for p in (start, middle, moved)]
    torch.testing.assert_close(outputs[1], (outputs[0] + outputs[2]) / 2)


def test_attention_of_the_identity_looks_at_equal_labels():
    data = replace(DATA, n=2, label_sign=-1)
    params = {name: p.detach() for name, p in ConceptAttention(4, 2, start=1.0, dtype=torch.float64).named_parameters()}
    prompts, _ = data.every()  # each of 0, 1 and 2 labels equal to the query's equally often
    expected = (0 + 1 / (1 + np.exp(-2.0)) + 1) / 3  # scores +1 and -1 beside what all words share
    assert float(right_attention(params, prompts, data)) == pytest.approx(expected)


def test_the_head_slope_is_a_derivative():
    layer = ConceptAttention(4, 40, head=0.3, mirrored=2, dtype=torch.float64)
    slope, active = head_slope({"o": layer.o.detach()}, DATA)
    _, _, c, d = DATA.dictionary()
    reads = [torch.einsum("mi,ki->mk", layer.o.detach(), c + sign * 1e-6 * d).relu() for sign in (1, -1)]
    votes = (reads[0] - reads[1]) / 2e-6
    np.testing.assert_allclose(slope, (votes[:20].sum(0) - votes[20:].sum(0)) / 40, rtol=1e-6)
    assert 0.2 < float(active.mean()) < 0.8
