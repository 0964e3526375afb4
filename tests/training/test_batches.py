"""Batches: every sample once a pass, each gradient that of its batch, in weights and in coefficients alike."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import TwoLayerCNN, softplus
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import ScaledTraining, Training
from flbook.training.optimizers import GradientDescent, SharpnessAware

DATA = SignalNoise(n=7, d=12, mu_norm=1.0)
SAMPLE = DATA.draw((0, 1))


def whole(kind=Training):
    """The problem of all samples, on two networks; in weights or in coefficients."""
    cnn = TwoLayerCNN(12, 2, 0.5, softplus, seed=(0, 1), dtype=torch.float64)
    return GramTraining.of(DATA, SAMPLE, cnn) if kind is GramTraining else Training(cnn, SAMPLE.x, SAMPLE.observed)


BOTH = pytest.mark.parametrize("kind", [Training, GramTraining])


@BOTH
def test_a_batch_of_all_is_the_whole(kind):
    problem = whole(kind)
    params = problem.start()
    for name, grad in problem.gradient(params).items():
        torch.testing.assert_close(Batches(problem, 7).at(3).gradient(params)[name], grad)


@BOTH
def test_a_pass_takes_every_sample_once(kind):
    problem = whole(kind)
    batches, params = Batches(problem, 1), problem.start()
    for name, grad in problem.gradient(params).items():
        each = torch.stack([batches.at(step).gradient(params)[name] for step in range(7)])
        torch.testing.assert_close(each.mean(0), grad)
    places = [Batches(problem, 3).places(step).tolist() for step in range(4)]
    assert len({*places[0], *places[1]}) == 6 and len({*places[2], *places[3]}) == 6, "what a pass leaves is dropped"


def test_a_batch_is_a_function_of_seed_and_step():
    forwards, backwards = Batches(whole(), 3, seed=5), Batches(whole(), 3, seed=5)
    there = [forwards.places(step).tolist() for step in range(6)]
    assert [backwards.places(step).tolist() for step in reversed(range(6))][::-1] == there
    assert [Batches(whole(), 3, seed=6).places(step).tolist() for step in range(6)] != there


@pytest.mark.parametrize("rule", [GradientDescent(0.3), SharpnessAware(0.3, 0.2)], ids=["gd", "sam"])
def test_in_coefficients_as_in_weights(rule):
    """Both gradients of SAM are those of one batch."""
    direct, gram = (fit(Batches(whole(kind), 3, seed=1), rule, 40) for kind in (Training, GramTraining))
    outputs = whole().predict(direct.params), whole(GramTraining).predict(gram.params)
    torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-11)
    full = fit(whole(), rule, 40).params
    assert (full["w"] - direct.params["w"]).abs().max() > 1e-3


def test_sam_in_batches_by_hand():
    batches = Batches(whole(), 3, seed=1)
    params, batch = batches.start(), batches.at(0)
    grad = batch.gradient(params)["w"]
    worst = {"w": params["w"] + 0.2 * grad / grad.square().sum((-3, -2, -1), keepdim=True).sqrt()}
    moved, _ = SharpnessAware(0.3, 0.2).step(batch, params, None)
    torch.testing.assert_close(moved["w"], params["w"] - 0.3 * batch.gradient(worst)["w"])


def test_the_loss_is_that_of_all_samples():
    problem = whole()
    batches = Batches(problem, 3)
    torch.testing.assert_close(batches.train_loss(batches.start()), problem.train_loss(problem.start()))
    trained = fit(batches, GradientDescent(0.1), 20).params
    assert (problem.train_loss(trained) < problem.train_loss(problem.start())).all()


def test_one_network_without_ensemble_axes_has_one_loss():
    sample, cnn = DATA.draw(0), TwoLayerCNN(12, 2, 0.5, softplus, seed=0, dtype=torch.float64)
    direct, gram = Training(cnn, sample.x, sample.observed), GramTraining.of(DATA, sample, cnn)
    torch.testing.assert_close(gram.train_loss(gram.start()), direct.train_loss(direct.start()))


def test_a_batch_is_no_larger_than_the_whole():
    with pytest.raises(ValueError, match="^size must lie between 1 and n = 7, samples of a batch; got 8$"):
        Batches(whole(), 8)


@BOTH
@pytest.mark.parametrize("rival", ["lazy", "frozen"])
def test_a_rival_in_batches_takes_the_same_batches(kind, rival):
    if kind is Training and rival == "frozen":
        with pytest.raises(ValueError, match="^Training has no frozen rival$"):
            Batches(whole(kind), 3).frozen()
        return
    batches = getattr(Batches(whole(kind), 3, seed=2), rival)()
    alone = Batches(getattr(whole(kind), rival)(), 3, seed=2)
    start = batches.start()
    for name, grad in batches.at(1).gradient(start).items():
        assert torch.equal(grad, alone.at(1).gradient(start)[name])


@pytest.mark.parametrize("lazy", [False, True])
def test_a_scaled_network_in_batches_starts_at_zero(lazy):
    plain = ScaledTraining(whole().model, SAMPLE.x, SAMPLE.observed, squared, torch.tensor([1.0, 3.0]))
    problem = plain.lazy() if lazy else plain
    start, batches = problem.start(), Batches(problem, 1)
    assert float(batches.at(2).predict(start).abs().max()) < 1e-12
    each = torch.stack([batches.at(step).gradient(start)["w"] for step in range(7)])
    torch.testing.assert_close(each.mean(0), problem.gradient(start)["w"])
