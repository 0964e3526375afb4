"""A strong and a weak feature: the data, the gradient by hand, and each step of the page's proofs against a network."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import GradientDescent, Training, TwoLayerCNN, fit
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies import large_steps
from flbook.lectures.training_strategies.large_steps import Setting
from flbook.lectures.training_strategies.large_steps.weak_feature import StrongWeakTraining
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.models.activations import ReLUPower
from flbook.training.batches import Batches
from flbook.training.losses import squared

TINY = large_steps.experiment.setting("tiny")
SEEDS = (0, 1)


def test_the_data_are_two_features_and_noise_of_one_length_orthogonal_to_both():
    data = StrongWeak(n=6, d=20, weak_only=2, ratio=0.04, noise=0.3)
    x, y = data.draw((0, 1, 2))
    assert x.shape == (3, 6, 3, 20) and y.tolist() == [1, -1] * 3
    torch.testing.assert_close(x[..., 0, 0], torch.tensor([1.0, -1, 1, -1, 0, 0]).double().expand(3, 6))
    torch.testing.assert_close(x[..., 1, 1], 0.2 * y.expand(3, 6))
    torch.testing.assert_close(x[..., 2, :].norm(dim=-1), torch.full((3, 6), 0.3).double())
    assert (x[..., 2, :2] == 0).all() and (x[..., :2, 2:] == 0).all()
    alone = data.draw(1)
    torch.testing.assert_close(alone.x, x[1])
    with pytest.raises(ValueError, match="n must be even"):
        StrongWeak(n=5)
    with pytest.raises(ValueError, match="weak_only"):
        StrongWeak(n=4, weak_only=6)


def test_coordinates_that_are_left_out_change_nothing():
    data = StrongWeak(n=4, d=10, weak_only=1)
    small = StrongWeakTraining.of(data, SEEDS, m=3, sigma_0=0.1)
    cnn = TwoLayerCNN(10, 3, 0.1, activation=ReLUPower(2), seed=SEEDS, dtype=torch.float64)
    whole = Training(cnn, data.draw().x, data.labels(), squared)
    mine, theirs = (fit(Batches(p, 1), GradientDescent(1.5), 60).params for p in (small, whole))
    torch.testing.assert_close(mine["w"], theirs["w"][..., :2], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(theirs["w"][..., 2:], whole.start()["w"][..., 2:])


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_gradient_by_hand_is_that_of_automatic_differentiation(noise):
    data = StrongWeak(n=6, d=12, weak_only=2, noise=noise)
    hand = StrongWeakTraining.of(data, SEEDS, m=3, sigma_0=0.5)
    auto = Training(hand.model, hand.x, hand.observed, squared)
    places = torch.tensor([0, 3, 5])
    for one, other in ((hand, auto), (hand.batch(places), auto.batch(places))):
        params = one.start()
        torch.testing.assert_close(one.gradient(params)["w"], other.gradient(params)["w"], rtol=1e-12, atol=1e-14)
        flipped = -one.observed
        torch.testing.assert_close(one.gradient(params, observed=flipped)["w"],
                                   other.gradient(params, observed=flipped)["w"], rtol=1e-12, atol=1e-14)


def test_it_trains_like_coefficients_on_the_features():
    data = StrongWeak(n=6, d=12, weak_only=2)
    hand = StrongWeakTraining.of(data, (0,), m=3, sigma_0=0.1)
    mix = torch.zeros(6, 2, 2).double()
    mix[:4, 0, 0], mix[:, 1, 1] = data.labels()[:4], data.labels()
    cnn = TwoLayerCNN(12, 3, 0.1, activation=ReLUPower(2), seed=0, dtype=torch.float64)
    features = torch.cat([data.feature(which)[0] for which in ("strong", "weak")])
    other = PatchTraining.of(features, mix, data.labels(), cnn, loss=squared, features=2)
    mine, theirs = (fit(Batches(p, 1), GradientDescent(1.5), 80).params for p in (hand, other))
    torch.testing.assert_close(hand.predict(mine)[0], other.predict(theirs), rtol=1e-9, atol=1e-10)


def test_a_spread_ensemble_is_the_loop():
    data, c = StrongWeak(n=4, d=6, noise=0.2), torch.tensor([0.4, 1.1])
    training = StrongWeakTraining.of(data, SEEDS, m=3, sigma_0=0.1)
    lr = 1.5 * c[:, None].expand(2, 2).double()
    whole = fit(Batches(training.spread(2), 1), GradientDescent(lr), 40).params["w"]
    for k in range(2):
        alone = fit(Batches(training, 1), GradientDescent(1.5 * c[k].item()), 40).params["w"]
        torch.testing.assert_close(whole[k], alone, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("c", [0.4, 1.3])
def test_a_visit_multiplies_responses_by_what_the_proof_says_and_the_lead_rises(c):
    data, m, epsilon = StrongWeak(n=4, d=8, weak_only=1, ratio=0.04), 3, 0.04
    training = StrongWeakTraining.of(data, (3,), m=m, sigma_0=0.3)
    batches, params, leads = Batches(training, 1), training.start(), 0
    for step in range(60):
        place = batches.places(step).item()
        y, strong = (-1.0) ** place, place < 3
        right = params["w"][0, 0 if y > 0 else 1]  # (m, 2)
        a, b = y * right[:, 0], y * 0.2 * right[:, 1]
        residual = 1 - y * training.predict(params)[0, place]
        params, _ = GradientDescent(c * m / 2).step(batches.at(step), params, None)
        after = params["w"][0, 0 if y > 0 else 1]
        factor = (1 + c * residual) if strong else 1.0
        torch.testing.assert_close(y * after[a > 0, 0], factor * a[a > 0], rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(y * 0.2 * after[b > 0, 1], (1 + epsilon * c * residual) * b[b > 0], rtol=1e-10,
                                   atol=1e-13)
        if strong and 1 + c * residual > 0:
            lead = torch.log1p(epsilon * c * residual) - epsilon * torch.log1p(c * residual)
            assert lead >= -1e-15
            least = epsilon * (1 - epsilon) * (c * residual) ** 2 / (2 * (1 + c) * (1 + epsilon * c))
            assert lead >= least - 1e-15 or residual > 1
            leads += lead
    assert leads > 0


def orbit(c: float, visits: int, f: float = 0.01) -> np.ndarray:
    found = []
    for _ in range(visits):
        found.append(f)
        f = f * (1 + c * (1 - f)) ** 2
    return np.array(found)


@pytest.mark.parametrize("c", [1.05, 1.2, 1.23])
def test_the_two_cycle(c):
    f = orbit(c, 4000)[-2:]
    p = 1 + c * (1 - f)
    assert p.prod() == pytest.approx(1) and p.sum() == pytest.approx(1 + c)
    assert (1 - f).mean() == pytest.approx((c - 1) / (2 * c)) and abs(f[0] - f[1]) > 0.1
    slopes = p * (3 * p - 2 - 2 * c)
    assert slopes.prod() == pytest.approx(9 - 2 * (1 + c) ** 2)


def test_both_ends_of_the_window_and_of_the_two_cycle():
    assert abs(orbit(0.97, 4000)[-1] - 1) < 1e-6 < abs(orbit(1.03, 4000)[-1] - 1)
    late = orbit(1.25, 8000)[-4:]  # beyond √5 - 1, a 4-cycle
    assert abs(late[0] - late[2]) > 1e-2 and 9 - 2 * math.sqrt(5) ** 2 == pytest.approx(-1)
    limit = math.sqrt(27) / 2 - 1
    for c, kept in ((limit - 1e-3, True), (limit + 1e-3, False)):
        top = (1 + c) / (3 * c)
        highest = orbit(c, 2, top)[1]
        assert highest == pytest.approx(4 * (1 + c) ** 3 / (27 * c)) and (highest < 1 + 1 / c) == kept


def test_the_network_grows_by_the_law_and_rests_at_the_edge():
    growing = large_steps.experiment.setting("growing", c=(1.1, 1.2), seed=SEEDS, steps=1600)
    rate = large_steps.growth(growing)
    np.testing.assert_allclose(rate, np.log1p(0.0099 * (rate.c - 1)) + 0 * rate, rtol=1e-3)
    end = large_steps.experiment.measure(replace(TINY, c=(1.3, 1.5), steps=3000, ratio=0.04))
    level = (end.c - 1) / (end.c * 0.96)
    np.testing.assert_allclose(end.weak, level + 0 * end.weak, rtol=0.05)
    np.testing.assert_allclose(end.train_loss, 0, atol=1e-3)


def test_full_batches_feel_half_the_step():
    one = large_steps.course(replace(TINY, c=(1.2,), steps=800, sigma_0=1e-3))
    full = large_steps.course(replace(TINY, c=(2.4,), steps=400, sigma_0=1e-3, batch=TINY.n))
    grown = [run.log_weak[-1] - run.log_weak[40] for run in (one, full)]
    np.testing.assert_allclose(grown[1], grown[0], rtol=1e-6)
    half = large_steps.experiment.measure(replace(TINY, c=(1.2,), steps=400, batch=TINY.n))
    assert (half.train_loss < 1e-12).all() and (full.train_loss[-1] > 1e-2).all()


def test_a_diverged_network_is_wrong_and_a_settled_one_small():
    data = StrongWeak(n=4, d=8, noise=0.2)
    training = StrongWeakTraining.of(data, SEEDS, m=3)
    lost = {"w": torch.full_like(training.start()["w"], torch.nan)}
    assert (training.test_error(lost) == 1).all()
    good = {"w": torch.zeros_like(training.start()["w"])}
    good["w"][..., 0, :, 1], good["w"][..., 1, :, 1] = 5.0, -5.0
    assert (training.test_error(good) == 0).all()
    settled = large_steps.course(replace(TINY, c=(0.4,)))
    grown = settled.isel(step=-1) - settled.isel(step=0)
    tie = grown.log_weak / (TINY.ratio * grown.log_strong)
    assert (tie > 1).all() and (tie < 1.42).all()


def test_a_label_without_a_strong_filter_learns_the_weak_feature_at_small_steps_and_finds_a_strong_one_at_large_ones():
    few = large_steps.experiment.setting("few", seed=tuple(range(40)), m=3, steps=3000)
    lacking = large_steps.without_a_filter(few)
    start = large_steps.problem(few).start()["w"]
    strong = torch.stack([start[:, 0, :, 0], -start[:, 1, :, 0]], 1)  # responses of a label's own filters, by label
    weak = torch.stack([start[:, 0, :, 1], -start[:, 1, :, 1]], 1)
    by_hand = ((strong <= 0).all(-1) & (weak > 0).any(-1)).any(-1)
    assert lacking.values.tolist() == by_hand.tolist() and 0 < by_hand.sum() < 40
    small = large_steps.experiment.measure(few).weak.squeeze("c")
    np.testing.assert_array_equal(small > 0.01, lacking)
    large = large_steps.course(replace(few, c=(1.5,))).squeeze("c").isel(step=-1)  # 1 - c ζ < 0 turns filters round
    assert (large.log_strong.sel(seed=lacking.seed[lacking.values]) > -np.inf).all()


def test_the_mean_of_the_logs_is_minus_infinity_if_a_label_has_no_filter():
    training = StrongWeakTraining.of(StrongWeak(n=2, d=4), (0,), m=2)
    params = {"w": torch.tensor([[[[1.0, -1.0], [2.0, 3.0]], [[0.5, -1.0], [1.0, -2.0]]]]).double()}
    each = training.log_right_of_each(params, "strong")
    assert each[0, 0] == pytest.approx(math.log(2.5)) and each[0, 1] == -math.inf
    weak = training.log_right_of_each(params, "weak")
    torch.testing.assert_close(weak, torch.tensor([[0.01 * 9 / 2, 0.01 * 5 / 2]]).double().log())
    torch.testing.assert_close(training.log_right(params, "weak"), weak.mean(-1))


def test_bad_input():
    with pytest.raises(ValueError, match="batch"):
        Setting(batch=17)
    with pytest.raises(ValueError, match="weak_only"):
        Setting(weak_only=20)
    assert isinstance(StrongWeakTraining.of(StrongWeak(), (0,)), ByHand)
