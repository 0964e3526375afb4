"""Opened networks: they are the networks, and every change does what its name says."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import learning_with_representations as lecture
from flbook.lectures.in_context_learning.learning_with_representations import residual_stream
from flbook.lectures.in_context_learning.learning_with_representations.interventions import INPUTS, QUERY
from flbook.models.transformer import PromptTransformer


@pytest.fixture(scope="module")
def opened():
    return lecture.networks(lecture.experiment.setting("tiny"))


def test_a_network_opened_gives_its_own_predictions_from_every_layer():
    network = PromptTransformer(3, 4, width=8, layers=2, seed=(0, 1), dtype=torch.float64).requires_grad_(False)
    x, y = torch.randn(1, 5, 5, 3, dtype=torch.float64), torch.randn(1, 5, 5, dtype=torch.float64)
    answers, stream = residual_stream.opened(network, x, y)
    torch.testing.assert_close(answers, network.predictions(x, y))
    for layer, tokens in enumerate(stream):
        torch.testing.assert_close(residual_stream.continued(network, tokens, layer).answers, answers)


def test_a_probe_reads_what_is_there_and_nothing_after_an_erasure():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(2, 300, 3, 6, generator=generator) @ torch.randn(6, 6, generator=generator)
    truth = tokens[:1, :, :, :2] @ torch.randn(2, 2, generator=generator) + 1.0
    tokens = tokens[:1].expand(2, 300, 3, 6)
    read = residual_stream.probe(tokens, truth)
    torch.testing.assert_close(residual_stream.scores(read(tokens), truth), torch.ones(2), atol=1e-3, rtol=0)
    subspace = residual_stream.covariance_subspace(tokens, truth)
    bare = residual_stream.erased(tokens, subspace, slice(None))
    again = residual_stream.probe(bare, truth)(bare)
    torch.testing.assert_close(residual_stream.scores(again, truth), torch.zeros(2), atol=0.01, rtol=0)
    some = residual_stream.erased(tokens, subspace, slice(0, 1))
    assert torch.equal(some[:, :, 1:], tokens[:, :, 1:]) and not torch.equal(some[:, :, :1], tokens[:, :, :1])


def test_correlations_are_about_zero():
    rules = torch.tensor([[1.0, 2.0], [1.0, -2.0], [1.0, 0.0]])
    torch.testing.assert_close(
        residual_stream.correlations(torch.tensor([2.0, 2.0, 2.0]), rules), torch.tensor([1.0, 0.0])
    )


def test_after_the_last_layer_nothing_but_the_querys_token_counts(opened):
    tokens = opened.here.stream[-1].clone()
    tokens[:, :, :-1] = 0
    answers = residual_stream.continued(opened.network, tokens, len(opened.here.stream) - 1).answers
    torch.testing.assert_close(answers[..., -1], opened.here.answers[..., -1])
    everywhere, query = (opened.erase(4, (0, 4), places) for places in (INPUTS, QUERY))
    torch.testing.assert_close(everywhere, query)


def test_an_exchange_puts_features_and_the_rest_of_two_prompts_together(opened):
    subspace = residual_stream.covariance_subspace(opened.there.stream[1][:, :, INPUTS], opened.fit.features[None])
    right, wrong = opened.here.stream[1], opened.mixed[1]
    for found, feature, rest in zip(opened.exchange(1), (right, wrong), (wrong, right), strict=True):
        tokens = rest.clone()
        tokens[:, :, INPUTS] = residual_stream.erased(rest, subspace, INPUTS)[:, :, INPUTS]
        tokens[:, :, INPUTS] += subspace.part(feature[:, :, INPUTS])
        expected = opened.missed(residual_stream.continued(opened.network, tokens, 1).answers)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert torch.equal(opened.mixed[0][:, :, 1::2], opened.here.stream[0][:, :, 1::2])  # the labels are its own


def test_the_run_says_what_the_page_says():
    setting = lecture.experiment.setting(layer=(1, 2, 4), network=(0, 4), seed=(0, 1), fit=120, points=60)
    found = lecture.experiment.measure(setting).mean(("network", "seed"))
    assert found.error.sel(erased="features", layer=1) > 4 * found.error.sel(erased="inputs", layer=1)
    read = found.read.sel(layer=1)
    assert read.sel(quantity="features") > 0.9 > read.sel(quantity="features, untrained")
    assert (
        found.agrees.sel(rule="at the other query", layer=2)
        > 0.8
        > found.agrees.sel(rule="at the other query", layer=4)
    )
    np.testing.assert_array_less(found.mirrored, 0.02)


def test_a_network_that_did_not_arrive_is_refused():
    with pytest.raises(ValueError, match="network must be among"):
        lecture.experiment.setting("tiny", network=(1,))
