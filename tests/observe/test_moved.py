"""Signal and noise in a movement: the signal-noise model's coefficients, closed forms, and digits with wrong labels."""

import math

import pytest
import torch
from torch import nn

from flbook import Adam, GradientDescent, SignalNoise, TwoLayerCNN, WeightTraining, fit, observe
from flbook.data.ten_digits import ten_digits
from flbook.training.losses import logistic

SEED = 3


def trained(rule, steps=60, flip_prob=0.2, n=12, d=60):
    """The signal-noise model, trained in weights."""
    data = SignalNoise(n=n, d=d, mu_norm=3.0, flip_prob=flip_prob)
    problem = WeightTraining.of(data, data.draw(SEED), TwoLayerCNN(d, 4, 0.05, seed=SEED, dtype=torch.float64))
    return data, problem, fit(problem, rule, steps).params


@pytest.mark.parametrize("rule", [GradientDescent(0.1), Adam(0.002)], ids=["gradient descent", "Adam"])
def test_on_the_signal_noise_model_it_is_gamma_and_rho(rule):
    data, problem, params = trained(rule)
    sample, fresh = problem.sample, data.draw_test(20, seed=0)
    f, _ = observe.functional(problem.model)
    found = observe.signal_and_noise(
        f, [problem.start(), params], (sample.x, sample.observed), (fresh.x, fresh.observed), logistic,
        directions={"w": (sample.mu[None], sample.xi)})["w"]
    sign = torch.tensor([1.0, -1.0]).double()[:, None]
    torch.testing.assert_close(sign * found.gamma[..., 0], problem.signal_learned(params), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found.rho, problem.noise_memorised(params), rtol=1e-6, atol=1e-9)
    assert found.shares[2] == pytest.approx(problem.outside_span(params).item(), abs=1e-9)
    assert (found.shares[2] > 0.01) == isinstance(rule, Adam), "a rule linear in gradients stays in the span"
    torch.testing.assert_close(found.signal + found.memorised + found.outside, params["w"] - problem.start()["w"])
    # the coefficients are not what an orthogonal projection on the signal would give
    wrong = (params["w"] - problem.start()["w"]) @ sample.mu * sign
    assert (wrong - problem.signal_learned(params)).abs().max() > 1e-3


def test_the_first_step_of_a_linear_network_in_closed_form():
    """From 0 all slopes are 1/2: the signal's share is |mu|^2 over |mu|^2 and the squared mean of the noise."""
    data = SignalNoise(n=10, d=200, mu_norm=4.0)
    sample, fresh = data.draw(SEED), data.draw(SEED + 1)
    x, held = sample.x.sum(-2), torch.cat([sample.mu + fresh.xi, sample.mu - fresh.xi])
    noise = (sample.y @ sample.xi) / 10
    step = {"w": sample.mu + noise}
    found = observe.signal_and_noise(lambda p, x: x @ p["w"], [{"w": torch.zeros(200).double()}, step],
                                     (x, sample.y), (held, torch.ones(20).double()), logistic)["w"]
    along = 1 + noise @ sample.mu / 16
    torch.testing.assert_close(found.signal, along * sample.mu)
    torch.testing.assert_close(found.memorised, noise - (along - 1) * sample.mu)
    assert found.shares[0] == pytest.approx((along**2 * 16 / step["w"].square().sum()).item())
    assert abs(found.shares[2]) < 1e-10 and 0.3 < found.shares[0] < 0.6


def digits_network(wrong, steps=30, n=80):
    """A network on digits below 5 against the others, some training labels wrong, every step kept."""
    split = ten_digits(n=280, seed=SEED)
    x, y = split.x.flatten(1), 2.0 * (split.y < 5) - 1
    observed = torch.where(torch.arange(280) % 10 < 10 * wrong, -y, y).double()
    torch.manual_seed(SEED)
    f, params = observe.functional(nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 1)).double())
    path = [params]
    for _ in range(steps):
        slope = torch.func.grad(lambda p: logistic(f(p, x[:n])[:, 0], observed[:n]).mean())(path[-1])
        path.append({name: p - 1.0 * slope[name] for name, p in path[-1].items()})
    return f, path, (x[:n], observed[:n]), (x[n:], observed[n:])


def test_wrong_labels_raise_the_memorised_share_on_digits():
    shares = []
    for wrong in (0.0, 0.4):
        f, path, train, held_out = digits_network(wrong)
        found = observe.signal_and_noise(f, path, train, held_out, logistic)
        assert list(found) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        for name, layer in found.items():
            whole = path[-1][name] - path[0][name]
            torch.testing.assert_close(layer.signal + layer.memorised + layer.outside, whole)
            assert sum(layer.shares) == pytest.approx(1)
            assert abs(layer.shares[2]) < 1e-6, "every step is held, so nothing lies outside"
        shares.append(found["0.weight"].shares)
    (signal, memorised, _), (signal_wrong, memorised_wrong, _) = shares
    assert memorised_wrong > memorised + 0.2 and signal_wrong < signal


def test_skipped_checkpoints_are_said_as_outside():
    f, path, train, held_out = digits_network(0.4)
    found = observe.signal_and_noise(f, [path[0], path[-1]], train, held_out, logistic)
    assert found["0.weight"].shares[2] > 0.01


def test_a_step_up_the_held_out_loss_is_no_signal():
    x = torch.eye(2, 5).double()
    path = [{"w": torch.zeros(5).double()}, {"w": x.sum(0)}]
    found = observe.signal_and_noise(lambda p, x: x @ p["w"], path, (x, torch.ones(2)), (x, -torch.ones(2)), logistic)
    assert found["w"].shares == pytest.approx((0, 1, 0))


def test_a_layer_that_has_not_moved_has_no_shares():
    x, params = torch.eye(2, 5).double(), {"w": torch.zeros(5).double()}
    found = observe.signal_and_noise(lambda p, x: x @ p["w"], [params] * 2, (x, x[0][:2]), (x, x[0][:2]), logistic)
    assert all(map(math.isnan, found["w"].shares)) and not found["w"].signal.any()


def test_single_precision_and_classes():
    f, params = observe.functional(nn.Linear(4, 3))
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    loss = nn.CrossEntropyLoss(reduction="none")
    moved = {name: p - 0.1 * g for (name, p), g in
             zip(params.items(), torch.func.grad(lambda p: loss(f(p, x), y).mean())(params).values(), strict=True)}
    found = observe.signal_and_noise(f, [params, moved], (x, y), (x, y), loss, chunk=4)
    assert found["weight"].shares == pytest.approx((1, 0, 0), abs=1e-5), "held-out data equal to those trained on"
    assert found["weight"].signal.dtype == torch.float64


@pytest.mark.parametrize("change, sentence", [
    (dict(path=[{"w": torch.zeros(3)}]), "its start and at its end at least.*got 1 of them"),
    (dict(path=[{"w": torch.zeros(3)}, {"w": torch.zeros(4)}]), "same names and shapes"),
    (dict(train=(torch.ones(2, 3), torch.ones(3))), "of the same samples, at least one; got 2 and 3"),
    (dict(loss=lambda out, y: (out - y).mean()), r"one number a sample, shape \(n,\); for 2 samples.*shape \(\)"),
    (dict(directions={"v": (torch.ones(1, 3), torch.ones(1, 3))}), "directions must be given for layers, w; got v"),
    (dict(directions={"w": (torch.ones(1, 2), torch.ones(1, 2))}), r"shapes \(q, d\) and \(n, d\) with d = 3"),
    (dict(directions={"w": (torch.eye(3)[:1], torch.eye(3))}), "linearly independent.*1 shared and 3 of samples"),
    (dict(directions={"w": (torch.eye(3)[:1], 2 * torch.eye(3)[:1])}), "linearly independent"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(change, sentence):
    data = (torch.ones(2, 3), torch.ones(2))
    given = dict(f=lambda p, x: x @ p["w"], path=[{"w": torch.zeros(3)}, {"w": torch.ones(3)}], train=data,
                 held_out=data, loss=logistic)
    with pytest.raises(ValueError, match=sentence):
        observe.signal_and_noise(**(given | change))
