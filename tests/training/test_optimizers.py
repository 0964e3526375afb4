"""Optimizers: by hand, against PyTorch's own, an ensemble as a loop, and the same in coefficients as in weights."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from flbook import measures, rng
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.dynamics.weights import WeightTraining
from flbook.models import TwoLayerCNN, softplus
from flbook.training import optimizers
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import (
    Adam,
    BoundedDescent,
    GradientDescent,
    LabelNoise,
    LabelSmoothing,
    Momentum,
    NormalisedDescent,
    RMSProp,
    SharpnessAware,
    SignDescent,
    SpectralDescent,
    Then,
    WeightDecay,
)
from flbook.training.problem import PopulationProblem, Problem, Rule

SEEDS = (0, 1, 2)
STEPS = 60
DATA = SignalNoise(n=6, d=30, mu_norm=2.0, flip_prob=0.2, exact_flips=False)


class Bowl(Problem):
    r"""A problem that is not a network: :math:`L(w) = |w|^2 / 2` from w = (1, -2)."""

    def start(self):
        return {"w": torch.tensor([1.0, -2.0], dtype=torch.float64)}

    def gradient(self, params, **change: Any):
        return {"w": params["w"]}

    def norm(self, direction):
        return direction["w"].norm()


def both(activation=softplus, seeds=SEEDS):
    """The same training problem in d dimensions and in coefficients, and how the coefficients' weights are rebuilt."""
    data, sample = DATA, DATA.draw(seeds)
    cnn = TwoLayerCNN(30, 3, 0.1, activation, bias=True, seed=seeds, dtype=torch.float64)
    w_0 = cnn.w.detach()

    def weights(params):
        kept = params["start"][:, None, None, None] if "start" in params else 1
        moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)
        return kept * w_0 + moved.unflatten(-2, (2, 3))

    return WeightTraining(data, sample, cnn), GramTraining.of(data, sample, cnn), weights


def test_gradient_descent_by_hand():
    assert fit(Bowl(), GradientDescent(0.5), 2).params["w"].tolist() == [0.25, -0.5]


def test_momentum_by_hand():
    # v = 1, w = .5; v = .5 + .5 = 1, w = 0; v = .5 + 0, w = -.25
    assert fit(Bowl(), Momentum(0.5, 0.5), 3).params["w"].tolist() == [-0.25, 0.5]
    plain, none = fit(Bowl(), GradientDescent(0.3), 5).params["w"], fit(Bowl(), Momentum(0.3, 0.0), 5).params["w"]
    assert torch.equal(plain, none)


def test_averaged_momentum_by_hand():
    # beta = .75: v = .25, w = .75; v = .1875 + .1875 = .375, w = .375
    assert fit(Bowl(), Momentum(1.0, 0.75, averaged=True), 2).params["w"].tolist() == [0.375, -0.75]
    same = fit(Bowl(), Momentum(0.25, 0.75), 9).params["w"]  # the plain form with a step that much smaller
    torch.testing.assert_close(fit(Bowl(), Momentum(1.0, 0.75, averaged=True), 9).params["w"], same)


def test_a_memory_of_signs_and_of_unit_gradients_by_hand():
    # v = 1, w = .5; v = .5 + 1 = 1.5, w = -.25; v = .75 - 1 = -.25, w = -.125: the sign of a buffer would give +-.5
    path = [fit(Bowl(), SignDescent(0.5, 0.5), steps).params["w"][0].item() for steps in (1, 2, 3)]
    assert path == [0.5, -0.25, -0.125]
    w = torch.tensor([1.0, -2.0], dtype=torch.float64)  # the direction stays until the bottom: v = u, then 1.5 u
    torch.testing.assert_close(fit(Bowl(), NormalisedDescent(0.4, 0.5), 2).params["w"], w - w / 5**0.5)


class Table(PopulationProblem):
    """A matrix, a vector and a number that are pulled to given places: the gradient is the distance from there."""

    def __init__(self, places):
        self.places = places

    def start(self):
        return {name: torch.zeros_like(p) for name, p in self.places.items()}

    def slope(self, params):
        return {name: params[name] - p for name, p in self.places.items()}

    def norm(self, direction):
        return direction["w"].square().sum((-2, -1)).sqrt()


def test_spectral_descent_by_hand():
    places = {"w": torch.tensor([[0.0, 3.0], [0.5, 0.0]]), "b": torch.tensor([3.0, 4.0]), "c": torch.tensor(-7.0)}
    found = fit(Table(places), SpectralDescent(0.5), 1).params
    torch.testing.assert_close(found["w"], torch.tensor([[0.0, 0.5], [0.5, 0.0]]))
    torch.testing.assert_close(found["b"], torch.tensor([0.3, 0.4]))
    assert found["c"] == -0.5
    # v = -(3, .5), w = (.5, .5); v = .5 v - (2.5, 0): the small one is pulled on by the memory alone
    torch.testing.assert_close(fit(Table(places), SpectralDescent(0.5, 0.5), 2).params["w"], 2 * found["w"])
    torch.testing.assert_close(fit(Table(places), SpectralDescent(0.5), 2).params["w"],
                               torch.tensor([[0.0, 1.0], [0.5, 0.0]]))
    zero = {"w": torch.zeros(2, 2), "b": torch.zeros(2)}
    assert all((p == 0).all() for p in fit(Table(zero), SpectralDescent(0.5), 1).params.values())


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
@pytest.mark.parametrize("shape", [(8, 12), (12, 8)])
def test_five_steps_of_newton_and_schulz_are_pytorchs_muon(shape):
    """Which computes in half precision, and takes a larger step for a tall matrix."""
    place = rng.normal(shape, 3, "place", dtype=torch.float32)
    weight = torch.nn.Parameter(torch.zeros(shape))
    muon = torch.optim.Muon([weight], lr=0.1, momentum=0.8, weight_decay=0.0, nesterov=False)
    for _ in range(4):
        weight.grad = (weight - place).detach()
        muon.step()
    lr = 0.1 * max(1, shape[0] / shape[1]) ** 0.5
    ours = fit(Table({"w": place}), SpectralDescent(lr, 0.8, steps=5), 4).params["w"]
    exact = fit(Table({"w": place}), SpectralDescent(lr, 0.8), 4).params["w"]
    off = torch.linalg.matrix_norm(ours - weight.detach()) / torch.linalg.matrix_norm(ours)
    assert off < 0.02 < torch.linalg.matrix_norm(exact - weight.detach()) / torch.linalg.matrix_norm(exact)


def test_label_smoothing_is_the_mean_of_label_noise():
    direct = both()[0]
    smooth = fit(direct, LabelSmoothing(0.5, 0.2), 1).params["w"]
    right, wrong = (fit(direct, GradientDescent(0.5), 1).params["w"] if sign > 0 else
                    direct.start()["w"] - 0.5 * direct.gradient(direct.start(), observed=-direct.observed)["w"]
                    for sign in (1, -1))
    torch.testing.assert_close(smooth, 0.8 * right + 0.2 * wrong)
    # ends where the logistic loss of labels that are right with probability .8 has its minimum
    sample = SignalNoise(n=6, d=30, mu_norm=2.0).draw(0)
    problem = Training(TwoLayerCNN(30, 3, 0.1, softplus, dtype=torch.float64), sample.x, sample.observed)
    margins = problem.observed * problem.predict(fit(problem, LabelSmoothing(2.0, 0.2), 3000).params)
    torch.testing.assert_close(margins, torch.full_like(margins, math.log(4)), rtol=1e-3, atol=0)


def test_one_rule_then_another_is_both_in_turn():
    rule = Then(Momentum(0.1, 0.5), 3, SignDescent(0.05))
    middle = fit(both()[0], Momentum(0.1, 0.5), 3).params
    after = both()[0]
    after.start = lambda: middle
    expected, found = fit(after, SignDescent(0.05), 4).params["w"], fit(both()[0], rule, 7).params["w"]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    assert not rule.linear and Then(Momentum(0.1), 3, SharpnessAware(0.1, 0.1)).linear
    only_second = fit(Bowl(), Then(SignDescent(9.0), 0, GradientDescent(0.5)), 2).params["w"]
    assert only_second.tolist() == [0.25, -0.5]


def test_the_second_rule_starts_with_a_memory_of_its_own():
    twice = fit(Bowl(), Then(Momentum(0.5, 0.5), 1, Momentum(0.5, 0.5)), 2).params["w"]
    assert twice.tolist() == [0.25, -0.5] != fit(Bowl(), Momentum(0.5, 0.5), 2).params["w"].tolist()


def test_sam_and_normalised_descent_by_hand():
    # on the bowl SAM's second gradient is w (1 + radius / |w|)
    w = torch.tensor([1.0, -2.0], dtype=torch.float64)
    torch.testing.assert_close(fit(Bowl(), SharpnessAware(0.5, 1.0), 1).params["w"], w * (1 - 0.5 * (1 + 1 / 5**0.5)))
    torch.testing.assert_close(fit(Bowl(), NormalisedDescent(0.5), 1).params["w"], w * (1 - 0.5 / 5**0.5))


class Bottom(Bowl):
    """The bowl, started at its bottom in one coordinate or in both."""

    def __init__(self, *w: float):
        self.w = torch.tensor(w, dtype=torch.float64)

    def start(self):
        return {"w": self.w}


def test_sign_of_zero_is_zero():
    assert fit(Bottom(1.0, 0.0, -2.0), SignDescent(0.5), 1).params["w"].tolist() == [0.5, 0, -1.5]


@pytest.mark.parametrize("rule", [NormalisedDescent(0.5), SharpnessAware(0.5, 1.0), BoundedDescent(0.5)], ids=repr)
def test_a_gradient_of_zero_stays_where_it_is(rule):
    rule = replace(rule, share=0.1) if isinstance(rule, BoundedDescent) else rule
    Bottom.train_loss = lambda self, params: params["w"].square().sum() / 2
    assert fit(Bottom(0.0, 0.0), rule, 3).params["w"].tolist() == [0, 0]


def test_adams_step_size_falls_along_half_a_cosine():
    first = fit(Bowl(), Adam(0.1, horizon=2), 1).params["w"]  # full: Adam's first step has the size lr
    second = fit(Bowl(), Adam(0.1, horizon=2), 2).params["w"]
    third, fourth = (fit(Bowl(), Adam(0.1, horizon=2), steps).params["w"] for steps in (3, 4))
    torch.testing.assert_close(first, Bowl().start()["w"] - 0.1 * torch.tensor([1.0, -1.0]).double())
    torch.testing.assert_close((first - second).abs(), torch.tensor([0.05, 0.05]).double(), rtol=0.01, atol=0)
    assert torch.equal(third, second) and torch.equal(fourth, second), "at the horizon and beyond it stands still"


@pytest.mark.parametrize(
    "rule, reference",
    [
        (GradientDescent(0.3), partial(torch.optim.SGD, lr=0.3)),
        (Momentum(0.1, 0.8), partial(torch.optim.SGD, lr=0.1, momentum=0.8)),
        (Momentum(0.1, 0.8, nesterov=True), partial(torch.optim.SGD, lr=0.1, momentum=0.8, nesterov=True)),
        (WeightDecay(GradientDescent(0.3), 0.1), partial(torch.optim.SGD, lr=0.3, weight_decay=0.1)),
        (WeightDecay(GradientDescent(0.3), 0.1, coupled=True), partial(torch.optim.SGD, lr=0.3, weight_decay=0.1)),
        (WeightDecay(Momentum(0.1, 0.8, nesterov=True), 0.1, coupled=True),
         partial(torch.optim.SGD, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.1)),
        (Adam(0.02), partial(torch.optim.Adam, lr=0.02)),
        (Adam(0.02, (0.5, 0.9), 1e-2), partial(torch.optim.Adam, lr=0.02, betas=(0.5, 0.9), eps=1e-2)),
        (WeightDecay(Adam(0.02), 0.1, coupled=True), partial(torch.optim.Adam, lr=0.02, weight_decay=0.1)),
        (WeightDecay(Adam(0.02), 0.1), partial(torch.optim.AdamW, lr=0.02, weight_decay=0.1)),
        (RMSProp(0.01, 0.9), partial(torch.optim.RMSprop, lr=0.01, alpha=0.9)),
        (RMSProp(0.01, 0.9, 1e-2), partial(torch.optim.RMSprop, lr=0.01, alpha=0.9, eps=1e-2)),
        (WeightDecay(RMSProp(0.01), 0.1, coupled=True), partial(torch.optim.RMSprop, lr=0.01, weight_decay=0.1)),
    ],
    ids=["gd", "momentum", "nesterov", "gd decay", "gd coupled", "nesterov coupled", "adam", "adam epsilon",
         "adam coupled", "adamw", "rmsprop", "rmsprop epsilon", "rmsprop coupled"],
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
        torch.testing.assert_close(ours[name], p.detach(), rtol=0, atol=1e-10)


EACH = torch.tensor([0.3, 0.1, 0.2], dtype=torch.float64)
RULES = {  # each from one number or one number a member, in all its scalars
    "gd": lambda lr: GradientDescent(lr),
    "momentum": lambda lr: Momentum(lr, 2 * lr),
    "nesterov": lambda lr: Momentum(lr, 2 * lr, nesterov=True),
    "bounded": lambda lr: BoundedDescent(30 * lr, lr / 3),
    "sam": lambda lr: SharpnessAware(lr, 3 * lr),
    "label noise": lambda lr: LabelNoise(lr, lr),
    "label smoothing": lambda lr: LabelSmoothing(lr, lr),
    "averaged momentum": lambda lr: Momentum(lr, 2 * lr, averaged=True),
    "normalised": lambda lr: NormalisedDescent(lr / 10),
    "normalised with memory": lambda lr: NormalisedDescent(lr / 10, lr),
    "sam, then gd": lambda lr: Then(SharpnessAware(lr, 3 * lr), 7, GradientDescent(lr)),
    "decay": lambda lr: WeightDecay(GradientDescent(lr), lr),
    "coupled decay of momentum": lambda lr: WeightDecay(Momentum(lr, 2 * lr), lr / 3, coupled=True),
    "decay of sam": lambda lr: WeightDecay(SharpnessAware(lr, lr), lr / 10, coupled=True),
    "coupled decay of bounded": lambda lr: WeightDecay(BoundedDescent(3 * lr, lr), lr / 3, coupled=True),
    "sign": lambda lr: SignDescent(lr / 20),
    "sign with memory": lambda lr: SignDescent(lr / 20, lr),
    "spectral": lambda lr: SpectralDescent(lr / 20, lr),
    "spectral, five steps": lambda lr: SpectralDescent(lr / 20, steps=5),
    "adam": lambda lr: Adam(lr / 20, (2 * lr, 3 * lr), lr / 100),
    "adamw": lambda lr: WeightDecay(Adam(lr / 20), lr),
    "rmsprop": lambda lr: RMSProp(lr / 20, 3 * lr, lr / 100),
}
LINEAR = [name for name, rule in RULES.items() if rule(0.1).linear]


def test_every_rule_of_the_library_is_held_here():
    kinds = {kind for kind in vars(optimizers).values() if isinstance(kind, type) and hasattr(kind, "step")}
    kinds = {kind for kind in kinds if not kind.__name__.startswith("_")}
    assert kinds - {Problem, Rule} == {type(rule(0.1)) for rule in RULES.values()}


@pytest.mark.parametrize("batched", [False, True], ids=["", "batches"])
@pytest.mark.parametrize("name", RULES)
def test_an_ensemble_is_a_loop_also_where_every_member_has_its_own_scalars(name, batched):
    def in_batches(problem):
        return Batches(problem, 4, seed=1) if batched else problem

    def seeded(rule, seed):
        return replace(rule, seed=seed) if name == "label noise" else rule

    rule = RULES[name]
    together = fit(in_batches(both()[0]), seeded(rule(EACH), SEEDS), STEPS // 3).params
    for member, (seed, lr) in enumerate(zip(SEEDS, EACH.tolist(), strict=True)):
        sample = DATA.draw((seed,))
        cnn = TwoLayerCNN(30, 3, 0.1, softplus, bias=True, seed=(seed,), dtype=torch.float64)
        problem = in_batches(WeightTraining(DATA, sample, cnn))
        alone = fit(problem, seeded(rule(lr), (seed,)), STEPS // 3).params
        for name_, p in alone.items():
            torch.testing.assert_close(together[name_][member], p[0], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("model, batched", [("network", False), ("network", True), ("lazy", False), ("linear", True)])
@pytest.mark.parametrize("name", LINEAR)
def test_rules_linear_in_gradients_are_the_same_in_coefficients(name, model, batched):
    """Weights at the end, and everything that is measured, from data and from its inner products."""
    direct, gram, weights = both()
    problems = [problem if model == "network" else getattr(problem, model)() for problem in (direct, gram)]
    chosen = [Batches(problem, 4, seed=1) if batched else problem for problem in problems]
    there, params = (fit(problem, RULES[name](EACH), STEPS // 2).params for problem in chosen)
    torch.testing.assert_close(weights(params), there["w"], rtol=0, atol=1e-10)
    torch.testing.assert_close(params["b"].unflatten(-1, (2, 3)), there["b"], rtol=0, atol=1e-10)
    assert (there["w"] - direct.start()["w"]).abs().max() > 0.05, "there was something to compare"
    for measure in (lambda problem, params: problem.signal_learned(params),
                    lambda problem, params: problem.noise_memorised(params),
                    measures.train_error, measures.test_error, measures.test_loss):
        in_weights, in_coefficients = (measure(problem, state) for problem, state in
                                       zip(problems, (there, params), strict=True))
        torch.testing.assert_close(in_coefficients, in_weights, rtol=0, atol=1e-10)


def test_sams_radius_matters_and_is_a_length_in_weights():
    direct, gram, _ = both()
    plain, sharp = (fit(direct, rule, STEPS).params["w"] for rule in (GradientDescent(0.2), SharpnessAware(0.2, 0.3)))
    assert abs(plain - sharp).max() > 1e-3
    grad, there = direct.gradient(direct.start()), gram.gradient(gram.start())
    torch.testing.assert_close(direct.norm(grad), gram.norm(there), rtol=1e-12, atol=0)
    by_hand = (grad["w"].square().sum((-3, -2, -1)) + grad["b"].square().sum((-2, -1))).sqrt()
    torch.testing.assert_close(direct.norm(grad), by_hand)


class Own(Rule):
    """A rule of one's own that says nothing of itself but its step."""

    def step(self, problem, params, state):
        return GradientDescent(0.3).step(problem, params, state)


def test_a_rule_of_ones_own_is_linear_and_without_decay_unless_it_says_so():
    gram = both()[1]
    found, expected = (fit(gram, rule, 3).params for rule in (Own(), GradientDescent(0.3)))
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


class Flips(Problem):
    """Not trained: it keeps the labels that it is asked about."""

    def __init__(self, *ensemble: int, n: int = 50):
        self.observed, self.ensemble, self.asked = torch.ones(n, dtype=torch.float64), torch.Size(ensemble), []

    def start(self):
        return {"w": torch.zeros(*self.ensemble, 2, dtype=torch.float64)}

    def gradient(self, params, *, x: Tensor | None = None, observed: Tensor | None = None):
        self.asked.append(observed)
        return params


def flips(rule, *ensemble: int, steps: int = 6) -> Tensor:
    """Was the label flipped? Shape (steps, *ensemble, n)."""
    fit(problem := Flips(*ensemble), rule, steps)
    return torch.stack(problem.asked) < 0


def test_labels_flip_afresh_for_member_sample_and_step():
    flipped = flips(LabelNoise(0.1, 0.3), 4, 5, steps=40)
    assert flipped.shape == (40, 4, 5, 50)
    for axis in range(4):
        every = flipped.movedim(axis, 0).flatten(1).double()
        assert abs(every.mean(1) - 0.3).max() < 5 * (0.21 / every.shape[1]) ** 0.5
        if axis < 3:
            assert torch.corrcoef(every).fill_diagonal_(0).abs().max() < 5 / every.shape[1] ** 0.5
    assert not flips(LabelNoise(0.1, 0.0), 3).any()


def test_each_member_has_its_own_flip_probability():
    rates = flips(LabelNoise(0.1, torch.tensor([0.0, 0.2, 0.45])), 3, steps=200).double().mean((0, 2))
    torch.testing.assert_close(rates, torch.tensor([0.0, 0.2, 0.45]).double(), rtol=0, atol=0.02)


def test_a_members_flips_do_not_depend_on_the_ensemble_around_it():
    both_axes = flips(LabelNoise(0.1, 0.3, seed=(3, 5, 8), axis=1), 2, 3)
    assert torch.equal(both_axes[:, 0], both_axes[:, 1]), "the other axis shares the stream"
    assert torch.equal(both_axes[:, 0, 1], flips(LabelNoise(0.1, 0.3, seed=(5,)), 1)[:, 0])
    with pytest.raises(ValueError, match=r"seed must name one stream for each member along axis 0 of the ensemble"):
        flips(LabelNoise(0.1, 0.3, seed=(1, 2)), 3)


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


class TwoBowls(Problem):
    """Two quadratics, L = c w^2 / 2: what a bounded step does to them is known."""

    def __init__(self):
        self.c = torch.tensor([1.0, 100.0], dtype=torch.float64)

    def start(self):
        return {"w": torch.ones(2, 1, dtype=torch.float64)}

    def gradient(self, params, **change: Any):
        return {"w": self.c[:, None] * params["w"]}

    def train_loss(self, params, **change: Any):
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
