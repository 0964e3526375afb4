"""`fit` records at the right steps with the right axes; `Training` knows its gradient, its norm and what it refuses."""

from typing import Any

import numpy as np
import pytest
import torch

from flbook.data import SignalNoise
from flbook.models import LeakyReLU, ReLUPower, TwoLayerCNN, relu, softplus
from flbook.shapes import Quantity
from flbook.training.fit import FIRST, fit, log_steps
from flbook.training.losses import hinge, logistic, squared
from flbook.training.network import Training, sample_gradients
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Problem


class Counter(Problem):
    """A problem whose parameter counts the steps taken by gradient descent of step size 1."""

    def __init__(self, *ensemble):
        self.ensemble = torch.Size(ensemble)

    def start(self):
        return {"t": torch.zeros(*self.ensemble, 2)}

    def gradient(self, params, **change: Any):
        return {"t": -torch.ones_like(params["t"])}


T = Quantity("t", lambda p: p["t"], ("k",), "steps taken", "steps")


@pytest.mark.parametrize("steps, at", [(7, [0, 3, 7]), (5, [2]), (4, range(5)), (3, [3, 0, 3])])
def test_records_the_parameters_after_that_many_steps(steps, at):
    history = fit(Counter(), GradientDescent(1.0), steps, [T], at=at).history
    assert history.step.values.tolist() == sorted(set(at))
    assert history.t.dims == ("step", "k")
    assert (history.t == history.step).all()
    assert history.t.attrs == {"long_name": "steps taken", "units": "steps"}
    assert history.step.attrs == {"long_name": "step t", "units": "1"}


def test_steps_beyond_the_end_are_not_recorded():
    assert fit(Counter(), GradientDescent(1.0), 3, [T], at=[1, 2, 9]).history.step.values.tolist() == [1, 2]


def test_by_default_records_on_a_logarithmic_clock():
    history = fit(Counter(), GradientDescent(1.0), 5000, [T]).history
    step = history.step.values
    assert step.tolist() == log_steps(5000) and step[0] == 0 and step[-1] == 5000
    assert (history.t == history.step).all()


@pytest.mark.parametrize("steps", [1, 2, 10, 100, 12345])
def test_log_steps(steps):
    at = log_steps(steps)
    assert at == sorted(set(at)) and at[0] == 0 and at[-1] == steps and all(type(s) is int for s in at)
    assert len(at) <= 42
    late = np.array([s for s in at if s >= 50])
    assert (late[1:] / late[:-1] < 1.5).all(), "equal ratios"
    assert log_steps(0) == [0]


def test_without_anything_to_record():
    trained = fit(Counter(), GradientDescent(1.0), 6)
    assert trained.params["t"].tolist() == [6, 6] and not trained.history.data_vars


def test_zero_steps_return_the_start():
    trained = fit(Counter(), GradientDescent(1.0), 0, [T])
    assert trained.params["t"].tolist() == [0, 0] and trained.history.step.values.tolist() == [0]


def test_ensemble_axes_are_named():
    both = [T, Quantity("largest", lambda p: p["t"].amax(-1))]
    history = fit(Counter(3, 4), GradientDescent(1.0), 2, both, ensemble=("seed", "mu"), at=[2]).history
    assert history.t.dims == ("step", "seed", "mu", "k") and history.largest.dims == ("step", "seed", "mu")
    assert history.largest.attrs == {"long_name": "largest", "units": "1"}
    assert fit(Counter(3), GradientDescent(1.0), 2, both, ensemble=("seed",)).history.t.dims == ("step", "seed", "k")


def test_a_quantity_with_unnamed_axes_is_one_sentence():
    with pytest.raises(ValueError, match=r"t has shape \(3, 2\), but its axes are named \('k',\); name") as e:
        fit(Counter(3), GradientDescent(1.0), 1, [T])
    assert "\n" not in str(e.value)


def test_it_is_refused_before_training():
    counter = Counter(3)
    counter.gradient = lambda params: pytest.fail("the first step was taken")
    with pytest.raises(ValueError, match="name the ensemble axes"):
        fit(counter, GradientDescent(1.0), 1, [T], at=[1])


def test_negative_steps_are_one_sentence():
    with pytest.raises(ValueError, match="steps must be a whole number of at least 0; got -1"):
        fit(Counter(), GradientDescent(1.0), -1)


@pytest.mark.parametrize("at", [[], [-1], [7]])
def test_recording_at_no_step_is_one_sentence(at):
    with pytest.raises(ValueError, match="at must name at least one step from 0 to 3"):
        fit(Counter(), GradientDescent(1.0), 3, [T], at=at)


@pytest.mark.parametrize("steps, said", [
    (10**12, "flbook: 1,000,000,000,000 steps of 1e+02 ms take about 3,169 years\n"),
    (86_400_000, "flbook: 86,400,000 steps of 1e+02 ms take about 100 days\n"),
    (1_692_000, "flbook: 1,692,000 steps of 1e+02 ms take about 47 hours\n"),
    (40_000, "flbook: 40,000 steps of 1e+02 ms take about 67 minutes\n"), (12_000, "")])
def test_how_long_training_will_take_is_said_after_its_first_steps(steps, said, monkeypatch, capsys):
    """A clock that goes on by a tenth of a second a step; training is stopped once it has been looked at."""
    clock = iter((0.0, 0.1 * FIRST))
    monkeypatch.setattr("flbook.training.fit.time.perf_counter", lambda: next(clock))

    class Stops(Counter):
        def at(self, step):
            if step > FIRST:
                raise KeyboardInterrupt
            return self

    with pytest.raises(KeyboardInterrupt):
        fit(Stops(), GradientDescent(1.0), steps)
    assert capsys.readouterr().err == said


SAMPLE = SignalNoise(n=5, d=4, mu_norm=1.5, flip_prob=0.2).draw((0, 1))


def training(activation=softplus, loss=logistic, bias=True, seeds=(0, 1), sample=SAMPLE):
    cnn = TwoLayerCNN(4, 2, 0.5, activation, bias=bias, seed=seeds, dtype=torch.float64)
    return Training(cnn, sample.x, sample.observed, loss)


def test_loss_and_gradient_by_hand():
    x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)  # one sample, patches e_1 and 2 e_2
    cnn = TwoLayerCNN(2, 1, 0.0, bias=True, dtype=torch.float64)
    with torch.no_grad():
        cnn.w.copy_(torch.tensor([[[1.0, 0.5]], [[0.5, -1.0]]]))
    problem = Training(cnn, x, torch.tensor([-1.0]))
    # f = (1 + 1) - (0.5 + 0); loss log(1 + e^{1.5}) with slope s = 1 / (1 + e^{-1.5})
    s = 1 / (1 + np.exp(-1.5))
    assert problem.train_loss(problem.start()).item() == pytest.approx(np.log1p(np.exp(1.5)))
    grad = problem.gradient(problem.start())
    np.testing.assert_allclose(grad["w"], s * np.array([[[1, 2]], [[-1, 0]]]))
    np.testing.assert_allclose(grad["b"], s * np.array([[2], [-1]]))
    assert problem.norm(grad).item() == pytest.approx(s * (1 + 4 + 1 + 4 + 1) ** 0.5)


@pytest.mark.parametrize("loss", [logistic, squared, hinge], ids=repr)
def test_loss_is_the_mean_over_samples(loss):
    problem = training(loss=loss)
    f = problem.predict(problem.start())
    by_hand = sum(loss(f[:, i], problem.observed[:, i]) for i in range(5)) / 5
    torch.testing.assert_close(problem.train_loss(problem.start()), by_hand)


def test_the_start_is_a_copy():
    problem = training()
    before = problem.start()
    for p in problem.start().values():
        p.zero_()
    for name, p in problem.model.named_parameters():
        assert torch.equal(p, before[name]) and (name == "b" or (p != 0).any())


@pytest.mark.parametrize("activation", [softplus, relu, ReLUPower(2.0), LeakyReLU(0.3)], ids=repr)
@pytest.mark.parametrize("loss", [logistic, squared, hinge], ids=repr)
def test_gradient_is_the_finite_difference(activation, loss):
    problem, h = training(activation, loss), 1e-6
    params, grad = problem.start(), problem.gradient(problem.start())
    generator = torch.Generator().manual_seed(0)
    way = {name: torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in params.items()}
    up, down = (problem.train_loss({name: p + s * way[name] for name, p in params.items()}) for s in (h, -h))
    slope = sum((grad[name] * way[name]).flatten(1).sum(-1) for name in params)
    torch.testing.assert_close((up - down) / (2 * h), slope, rtol=1e-6, atol=1e-8)


def test_members_do_not_feel_each_other():
    together = training()
    for member, seed in enumerate((0, 1)):
        sample = SignalNoise(n=5, d=4, mu_norm=1.5, flip_prob=0.2).draw(seed)
        alone = training(seeds=seed, sample=sample)
        for name, grad in alone.gradient(alone.start()).items():
            torch.testing.assert_close(together.gradient(together.start())[name][member], grad)
        torch.testing.assert_close(together.norm(together.start())[member], alone.norm(alone.start()))
        torch.testing.assert_close(together.train_loss(together.start())[member], alone.train_loss(alone.start()))


def test_one_data_set_serves_an_ensemble_of_networks():
    sample = SignalNoise(n=5, d=4).draw(3)
    problem = training(seeds=(0, 1, 2), sample=sample)
    assert problem.train_loss(problem.start()).shape == problem.norm(problem.start()).shape == (3,)


def test_gradient_at_other_labels():
    problem = training()
    flipped = Training(problem.model, problem.x, -problem.observed)
    start = problem.start()
    for name, grad in problem.gradient(start, observed=-problem.observed).items():
        torch.testing.assert_close(grad, flipped.gradient(start)[name])
        assert not torch.allclose(grad, problem.gradient(start)[name])
    torch.testing.assert_close(problem.train_loss(start, observed=-problem.observed), flipped.train_loss(start))


def test_the_gradient_is_the_mean_of_the_slopes_times_each_outputs_gradient():
    problem = training()
    start, f = problem.start(), problem.predict(problem.start())
    mean = (problem.loss.slope(f, problem.observed)[..., None] * sample_gradients(problem, start, problem.x)).mean(-2)
    torch.testing.assert_close(mean, torch.cat([p.flatten(1) for p in problem.gradient(start).values()], -1))


def test_predicts_on_fresh_patches():
    problem, fresh = training(), SignalNoise(n=5, d=4).draw_test(7, (0, 1)).x
    torch.testing.assert_close(problem.predict(problem.start(), fresh), problem.model(fresh).detach())


def test_a_model_without_ensemble_axes_refuses_data_with_them():
    with pytest.raises(ValueError, match=r"the model's parameters carry the ensemble axes, of shape \(\); those of x"):
        training(seeds=0)
    with pytest.raises(ValueError, match=r"ensemble axes, of shape \(3,\); those of x, of shape \(2,\), do not fit"):
        training(seeds=(0, 1, 2))
    cnn = TwoLayerCNN(4, 2, 0.5, seed=(0, 1))
    with pytest.raises(ValueError, match=r"those of observed, of shape \(3,\), do not fit"):
        Training(cnn, SAMPLE.x[0], SAMPLE.observed[[0, 1, 0]])


def test_labels_and_shapes_that_clash_are_one_sentence():
    cnn = TwoLayerCNN(4, 2, 0.5, seed=(0, 1))
    with pytest.raises(ValueError, match=r"labels must be -1 or \+1; found 0"):
        Training(cnn, SAMPLE.x, (SAMPLE.observed + 1) / 2)
    with pytest.raises(ValueError, match=r"x holds 5 samples, shape \(2, 5, 2, 4\), but observed labels .* \(2, 4\)"):
        Training(cnn, SAMPLE.x, SAMPLE.observed[:, 1:])
    none = r"x holds no samples, shape \(2, 4\), but observed labels have shape \(2, 5\)"
    with pytest.raises(ValueError, match=none):
        Training(cnn, SAMPLE.x[0, 0], SAMPLE.observed)
    with pytest.raises(ValueError, match=r"patches of shape \(5, 2, 3\) do not fit filters of shape \(2, 2, 2, 4\)"):
        Training(cnn, SAMPLE.x[..., :3], SAMPLE.observed)
