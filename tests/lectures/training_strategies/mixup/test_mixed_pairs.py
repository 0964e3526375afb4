"""All pairs from one matrix, against the blended samples themselves in weights; and what is refused."""

from dataclasses import replace

import pytest
import torch

from flbook import TwoLayerCNN, fit
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.mixup.mixed_pairs import MixedPairs, StoppedEarly
from flbook.lectures.training_strategies.mixup.squares import training
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.models.activations import Power, relu
from flbook.training.batches import Batches
from flbook.training.losses import logistic
from flbook.training.optimizers import GradientDescent

DATA = CommonAndRare(n=12, d=40, share=1 / 3, places=True)
SEEDS = (0, 1)


def plain() -> PatchTraining:
    return training(DATA, SEEDS, m=3, sigma_0=0.3)


def by_autograd(own: float, label: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient in weights of all blended samples, written down."""
    sample = DATA.draw(SEEDS)
    cnn = TwoLayerCNN(DATA.d, 3, 0.3, activation=Power(2), seed=SEEDS, dtype=torch.float64)
    x = own * sample.x[:, :, None] + (1 - own) * sample.x[:, None]
    f = cnn(x.flatten(1, 2)).unflatten(-1, (DATA.n, DATA.n))
    y = sample.y
    loss = label * logistic(f, y[:, None].expand_as(f)) + (1 - label) * logistic(f, y[None].expand_as(f))
    loss = loss.mean((-2, -1))
    (gradient,) = torch.autograd.grad(loss.sum(), cnn.w)
    return loss.detach(), gradient.flatten(1, 2)


@pytest.mark.parametrize("own, label", [(0.6, 0.6), (0.6, 0.75), (0.3, 1.0), (1.0, 0.6)])
def test_the_gradient_is_that_of_the_blended_samples(own, label):
    problem = MixedPairs.of_samples(plain(), own, label)
    loss, gradient = by_autograd(own, label)
    vectors = DATA.vectors(DATA.noise(SEEDS))
    torch.testing.assert_close(problem.train_loss(problem.start()), loss, rtol=1e-12, atol=0)
    ours = torch.einsum("eks,esd->ekd", problem.gradient(problem.start())["c"], vectors)
    torch.testing.assert_close(ours, gradient, rtol=1e-10, atol=1e-14)


def test_weights_of_one_are_standard_training():
    standard, mixed = plain(), MixedPairs.of_samples(plain(), 1.0)
    for steps in (1, 30):
        one, other = (fit(problem, GradientDescent(0.5), steps).params["c"] for problem in (standard, mixed))
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(standard.train_loss({"c": one}), mixed.train_loss({"c": one}))


def test_the_gradient_is_linear_in_the_label():
    blended, first, second = (MixedPairs.of_samples(plain(), 0.7, label) for label in (0.6, 1.0, 0.0))
    start = blended.start()
    parts = 0.6 * first.gradient(start)["c"] + 0.4 * second.gradient(start)["c"]
    torch.testing.assert_close(blended.gradient(start)["c"], parts, rtol=1e-10, atol=1e-15)


def test_order_of_a_pair_counts_with_both_weights():
    turned = MixedPairs.of_samples(plain(), 0.3, 0.3)
    blended = MixedPairs.of_samples(plain(), 0.7, 0.7)
    start = turned.start()
    torch.testing.assert_close(turned.gradient(start), blended.gradient(start), rtol=1e-10, atol=1e-15)


def test_a_batch_is_the_pairs_within_it():
    problem, places = MixedPairs.of_samples(plain(), 0.6), torch.tensor([3, 0, 7])
    part, start = problem.batch(places), problem.start()
    torch.testing.assert_close(part.pair_outputs(start), problem.pair_outputs(start)[:, places][:, :, places])
    assert torch.equal(part.observed, DATA.labels()[places]) and part.input_weight == 0.6
    assert Batches(problem, 12).at(0).train_loss(start).shape == (2,)


def test_stopped_early_is_one_problem_and_then_the_other():
    standard, mixed = plain(), MixedPairs.of_samples(plain(), 0.6)
    both = StoppedEarly(standard, mixed, 5)
    assert both.at(4) is mixed and both.at(5) is standard
    rule = GradientDescent(0.5)
    params = fit(mixed, rule, 5).params
    for _ in range(3):
        params, _ = rule.step(standard, params, None)
    torch.testing.assert_close(fit(both, rule, 8).params, params, rtol=1e-12, atol=0)


def test_what_has_no_known_mixtures_is_refused():
    with pytest.raises(ValueError, match="activation must be Power"):
        MixedPairs.of_samples(replace(plain(), activation=relu), 0.6)
    for name, weight in (("input_weight", (1.2, 0.5)), ("label_weight", (0.5, -0.1))):
        with pytest.raises(ValueError, match=name):
            MixedPairs.of_samples(plain(), *weight)
    for rival in ("linear", "lazy"):
        with pytest.raises(ValueError, match="has no"):
            getattr(MixedPairs.of_samples(plain(), 0.6), rival)()
