"""Optimizers: by hand, against PyTorch's own, and three rules of other kinds that run through `fit` unchanged."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from flbook import rng
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import TwoLayerCNN, softplus
from flbook.shapes import Quantity, per_member
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, BoundedDescent, GradientDescent, Momentum

SEEDS = (0, 1, 2)
STEPS = 60


# Three rules that the library does not have, each written against what `flbook.training.optimizers` promises.


@dataclass(frozen=True)
class SAM:
    r""":math:`w \leftarrow w - \eta \nabla L(w + \tau \nabla L(w) / |\nabla L(w)|)`."""

    lr: float | Tensor
    radius: float | Tensor

    def start(self, params):
        return None

    def step(self, problem, params, state):
        grad = problem.gradient(params)
        reach = self.radius / problem.norm(grad)
        worst = problem.gradient({name: p + per_member(reach, p) * grad[name] for name, p in params.items()})
        return {name: p - per_member(self.lr, p) * worst[name] for name, p in params.items()}, state


@dataclass(frozen=True)
class LabelNoise:
    """Gradient descent at labels flipped afresh at every step."""

    lr: float
    flip_prob: float

    def start(self, params):
        return rng.generator(0, "label noise")

    def step(self, problem, params, state):
        flip = torch.rand(problem.observed.shape, generator=state, dtype=torch.float64) < self.flip_prob
        grad = problem.gradient(params, observed=torch.where(flip, -1.0, 1.0) * problem.observed)
        return {name: p - self.lr * grad[name] for name, p in params.items()}, state


@dataclass(frozen=True)
class SignGD:
    r""":math:`w \leftarrow w - \eta\,\mathrm{sign}(\nabla L(w))`."""

    lr: float | Tensor

    def start(self, params):
        return None

    def step(self, problem, params, state):
        grad = problem.gradient(params)
        return {name: p - per_member(self.lr, p) * grad[name].sign() for name, p in params.items()}, state


@dataclass(frozen=True)
class Bowl:
    r"""A problem that is not a network: :math:`L(w) = |w|^2 / 2` from w = (1, -2)."""

    def start(self):
        return {"w": torch.tensor([1.0, -2.0], dtype=torch.float64)}

    def gradient(self, params, **change: Any):
        return {"w": params["w"]}

    def norm(self, direction):
        return direction["w"].norm()


def both(activation=softplus, seeds=SEEDS):
    """The same training problem in d dimensions and in coefficients, and how the coefficients' weights are rebuilt."""
    data = SignalNoise(n=6, d=30, mu_norm=2.0, flip_prob=0.2, exact_flips=False)
    sample = data.draw(seeds)
    cnn = TwoLayerCNN(30, 3, 0.1, activation, bias=True, seed=seeds, dtype=torch.float64)
    w_0 = cnn.w.detach()

    def weights(params):
        moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)
        return w_0 + moved.unflatten(-2, (2, 3))

    return Training(cnn, sample.x, sample.observed), GramTraining.of(data, sample, cnn), weights


def paths(rule, activation=softplus, steps=STEPS):
    """Weights at every step, trained either way."""
    direct, gram, weights = both(activation)
    axes = ("sign", "filter", "dimension")
    runs = [fit(problem, rule, steps, [Quantity("w", of, axes)], ("seed",), range(steps + 1)).history.w.values
            for problem, of in ((direct, lambda p: p["w"]), (gram, weights))]
    return runs, abs(runs[0] - runs[1]).max() / abs(runs[0]).max()


def test_gradient_descent_by_hand():
    assert fit(Bowl(), GradientDescent(0.5), 2).params["w"].tolist() == [0.25, -0.5]


def test_momentum_by_hand():
    # v = 1, w = .5; v = .5 + .5 = 1, w = 0; v = .5 + 0, w = -.25
    assert fit(Bowl(), Momentum(0.5, 0.5), 3).params["w"].tolist() == [-0.25, 0.5]
    plain, none = fit(Bowl(), GradientDescent(0.3), 5).params["w"], fit(Bowl(), Momentum(0.3, 0.0), 5).params["w"]
    assert torch.equal(plain, none)


def test_sam_and_sign_by_hand():
    assert fit(Bowl(), SignGD(0.5), 3).params["w"].tolist() == [0, -0.5]
    # on the bowl SAM's second gradient is w (1 + radius / |w|)
    w = torch.tensor([1.0, -2.0], dtype=torch.float64)
    torch.testing.assert_close(fit(Bowl(), SAM(0.5, 1.0), 1).params["w"], w * (1 - 0.5 * (1 + 1 / 5**0.5)))


def test_adams_step_size_falls_along_half_a_cosine():
    first = fit(Bowl(), Adam(0.1, horizon=2), 1).params["w"]  # full: Adam's first step has the size lr
    second = fit(Bowl(), Adam(0.1, horizon=2), 2).params["w"]
    third = fit(Bowl(), Adam(0.1, horizon=2), 3).params["w"]
    torch.testing.assert_close(first, Bowl().start()["w"] - 0.1 * torch.tensor([1.0, -1.0]).double())
    torch.testing.assert_close((first - second).abs(), torch.tensor([0.05, 0.05]).double(), rtol=0.01, atol=0)
    torch.testing.assert_close(third, second)


@pytest.mark.parametrize(
    "rule, reference",
    [
        (GradientDescent(0.3), lambda p: torch.optim.SGD(p, 0.3)),
        (Momentum(0.1, 0.8), lambda p: torch.optim.SGD(p, 0.1, momentum=0.8)),
        (Adam(0.02), lambda p: torch.optim.Adam(p, 0.02)),
    ],
    ids=["gd", "momentum", "adam"],
)
def test_a_single_network_trains_as_with_pytorchs_own_optimizer(rule, reference):
    sample = SignalNoise(n=6, d=30, mu_norm=2.0).draw(0)
    cnn = TwoLayerCNN(30, 3, 0.1, bias=True, dtype=torch.float64)
    ours = fit(Training(cnn, sample.x, sample.observed), rule, STEPS).params
    optimizer = reference(cnn.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.softplus(-sample.observed * cnn(sample.x)).mean().backward()
        optimizer.step()
    for name, p in cnn.named_parameters():
        torch.testing.assert_close(ours[name], p.detach(), rtol=1e-10, atol=1e-12)


EACH = torch.tensor([0.3, 0.1, 0.2], dtype=torch.float64)
RULES = {
    "gd": lambda lr: GradientDescent(lr),
    "momentum": lambda lr: Momentum(lr, 2 * lr),
    "sam": lambda lr: SAM(lr, 3 * lr),
    "sign": lambda lr: SignGD(lr / 20),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_ensemble_is_a_loop_also_where_every_member_has_its_own_scalars(rule):
    together = fit(both()[0], rule(EACH), STEPS).params
    for member, (seed, lr) in enumerate(zip(SEEDS, EACH.tolist(), strict=True)):
        sample = SignalNoise(n=6, d=30, mu_norm=2.0, flip_prob=0.2, exact_flips=False).draw(seed)
        cnn = TwoLayerCNN(30, 3, 0.1, softplus, bias=True, seed=seed, dtype=torch.float64)
        alone = fit(Training(cnn, sample.x, sample.observed), rule(lr), STEPS).params
        for name, p in alone.items():
            torch.testing.assert_close(together[name][member], p, rtol=1e-9, atol=1e-10)


LINEAR = {
    "sam": SAM(0.2, 0.3),
    "sam, each its radius": SAM(0.2, EACH),
    "label noise": LabelNoise(0.2, 0.25),
    "momentum, each its scalars": Momentum(EACH, 2 * EACH),
}


@pytest.mark.parametrize("rule", LINEAR.values(), ids=LINEAR)
def test_rules_linear_in_gradients_run_on_coefficients_unchanged(rule):
    (direct, _), error = paths(rule)
    assert error < 1e-10
    assert abs(direct[-1] - direct[0]).max() > 0.1, "there was something to compare"


def test_sams_radius_matters_and_is_a_length_in_weights():
    plain, sharp = (paths(rule)[0][0][-1] for rule in (GradientDescent(0.2), SAM(0.2, 0.3)))
    assert abs(plain - sharp).max() > 1e-3
    direct, gram, weights = both()
    grad, there = direct.gradient(direct.start()), gram.gradient(gram.start())
    torch.testing.assert_close(direct.norm(grad), gram.norm(there), rtol=1e-12, atol=0)
    by_hand = (grad["w"].square().sum((-3, -2, -1)) + grad["b"].square().sum((-2, -1))).sqrt()
    torch.testing.assert_close(direct.norm(grad), by_hand)


def test_label_noise_is_seen():
    plain, noisy = (paths(rule)[0][0][-1] for rule in (GradientDescent(0.2), LabelNoise(0.2, 0.25)))
    assert abs(plain - noisy).max() > 1e-2


@pytest.mark.parametrize("rule", [SignGD(0.01), Adam(0.01)], ids=["sign", "adam"])
def test_coordinatewise_rules_leave_the_span(rule):
    """They run through `fit` directly; on coefficients they would mean something else."""
    (direct, coefficients), error = paths(rule)
    moved = torch.tensor(direct[-1] - direct[0]).flatten(1, 2)
    data = both()[0].x
    span = torch.cat([data[:, :1, 0], data[:, :, 1]], 1)  # mu and the noise patches
    residual = moved - moved @ torch.linalg.pinv(span) @ span
    assert (residual.norm(dim=(-2, -1)) > 0.3 * moved.norm(dim=(-2, -1))).all()
    assert error > 0.1
    assert np.isfinite(coefficients).all()
    inside = torch.tensor(paths(GradientDescent(0.2))[0][0])
    moved = (inside[-1] - inside[0]).flatten(1, 2)
    assert (moved - moved @ torch.linalg.pinv(span) @ span).abs().max() < 1e-10


def test_a_step_size_of_another_ensemble_is_one_sentence():
    with pytest.raises(ValueError, match=r"a scalar given for each member has the ensemble's shape: got \(4,\)"):
        fit(both()[0], GradientDescent(torch.ones(4)), 3)


def test_rules_are_values():
    assert replace(GradientDescent(0.1), lr=0.2) == GradientDescent(0.2)
    direct = both()[0]
    before = direct.start()
    fit(direct, Momentum(0.3), 5)
    for name, p in direct.start().items():
        assert torch.equal(p, before[name]), "training must not touch the model it starts from"


class TwoBowls:
    """Two quadratics, L = c w^2 / 2: what a bounded step does to them is known."""

    def __init__(self):
        self.c = torch.tensor([1.0, 100.0], dtype=torch.float64)

    def start(self):
        return {"w": torch.ones(2, 1, dtype=torch.float64)}

    def gradient(self, params):
        return {"w": self.c[:, None] * params["w"]}

    def train_loss(self, params):
        return self.c * params["w"][..., 0] ** 2 / 2

    def norm(self, direction):
        return direction["w"].abs()[..., 0]


def test_a_bounded_step_by_hand():
    # full step 0.1 where c = 1; where c = 100 it would overshoot: kappa L / |grad|^2 = 0.3 / (2 * 100)
    params, _ = BoundedDescent(0.1, 0.3).step(TwoBowls(), TwoBowls().start(), None)
    torch.testing.assert_close(params["w"][:, 0], torch.tensor([1 - 0.1, 1 - 0.15], dtype=torch.float64))


def test_bounded_descent_survives_a_step_size_at_which_plain_descent_diverges():
    wild = fit(TwoBowls(), GradientDescent(1.0), 50).params["w"]
    tame = fit(TwoBowls(), BoundedDescent(1.0), 50).params["w"]
    assert wild.abs().max() > 1e10 and tame.abs().max() < 1e-3
    same = [fit(TwoBowls(), rule, 50).params["w"] for rule in (GradientDescent(1e-3), BoundedDescent(1e-3))]
    torch.testing.assert_close(*same)


def test_bounded_descent_in_coefficients_is_that_on_weights():
    data = SignalNoise(n=6, d=25, mu_norm=2.0)
    sample = data.draw(SEEDS)
    cnn = TwoLayerCNN(25, 3, 0.1, softplus, seed=SEEDS, dtype=torch.float64)
    rule = BoundedDescent(20.0, 0.1)
    direct, gram = Training(cnn, sample.x, sample.observed), GramTraining.of(data, sample, cnn)
    ends = [problem.predict(fit(problem, rule, STEPS).params) for problem in (direct, gram)]
    torch.testing.assert_close(*ends, rtol=1e-9, atol=1e-11)
