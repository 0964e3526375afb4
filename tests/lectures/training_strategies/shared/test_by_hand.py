"""The gradient by hand against automatic differentiation, and step sizes beside each other against one by one."""

import pytest
import torch

from flbook import GradientDescent, SignalNoise, Training, TwoLayerCNN, fit
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.models.activations import Power, ReLUPower, SmoothLeakyReLU, identity, relu
from flbook.training.batches import Batches
from flbook.training.losses import logistic, squared
from flbook.training.optimizers import Adam, LabelNoise, SharpnessAware, SignDescent

SEEDS = (0, 1, 2)
SAMPLE = SignalNoise(n=6, d=15, mu_norm=1.5).draw(SEEDS)
RULES = {"gd": GradientDescent, "sam": lambda lr: SharpnessAware(lr, 0.2), "sign": SignDescent, "adam": Adam,
         "noise": lambda lr: LabelNoise(lr, 0.2, seed=SEEDS, axis=lr.ndim - 1)}
SQUARE = ReLUPower(2)


def made(kind, activation=SQUARE, loss=logistic, seed=SEEDS, scale=None):
    sample = SAMPLE if seed == SEEDS else SignalNoise(n=6, d=15, mu_norm=1.5).draw(seed)
    cnn = TwoLayerCNN(15, 3, 0.4, activation, scale, seed=seed, dtype=torch.float64)
    return kind(cnn, sample.x, sample.observed, loss)


@pytest.mark.parametrize("activation", [relu, ReLUPower(3), Power(2), SmoothLeakyReLU(0.1), identity])
@pytest.mark.parametrize("loss", [logistic, squared])
def test_the_gradient_is_that_of_automatic_differentiation(activation, loss):
    hand, auto = (made(kind, activation, loss, scale=0.02) for kind in (ByHand, Training))
    params, places = hand.start(), torch.tensor([0, 3, 4])
    for one, other in ((hand, auto), (hand.batch(places), auto.batch(places))):
        flipped = -one.observed
        for observed in (None, flipped):
            torch.testing.assert_close(one.gradient(params, observed=observed)["w"],
                                       other.gradient(params, observed=observed)["w"], rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(one.predict(params), other.predict(params))
        fresh = 2 * SAMPLE.x[..., :2, :, :]
        torch.testing.assert_close(one.predict(params, fresh), other.predict(params, fresh))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", [SEEDS, 0])
def test_step_sizes_beside_each_other_are_the_loop(name, seed):
    if name == "noise" and seed == 0:
        pytest.skip("flips of one network have one seed")
    problem, sizes = made(ByHand, seed=seed), (0.03, 0.2)
    spread = problem.spread(2)
    lr = torch.tensor(sizes)[:, None].expand(2, len(SEEDS)) if seed == SEEDS else torch.tensor(sizes)
    for batch in (6, 2):
        whole = fit(Batches(spread, batch), RULES[name](lr), 12).params["w"]
        assert whole.shape == (*spread.ensemble, 2, 3, 15)
        for k, one in enumerate(sizes):
            size = torch.full((3,), one) if seed == SEEDS else torch.tensor(one)
            alone = fit(Batches(problem, batch), RULES[name](size), 12).params["w"]
            torch.testing.assert_close(whole[k], alone, rtol=1e-6, atol=1e-9)


def test_members_stay_beside_the_filters_in_memory():
    spread = made(ByHand).spread(4)
    params = fit(spread, Adam(torch.full((4, 3), 0.01)), 3).params["w"]
    assert params.movedim(0, 1).is_contiguous(), "or every step copies all weights"
