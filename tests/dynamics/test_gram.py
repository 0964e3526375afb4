"""Training in coefficients: formulas by hand, and the same weights as direct training in d dimensions, to 1e-10."""

import math
from dataclasses import replace

import pytest
import torch

from flbook import rng
from flbook.data import SignalNoise
from flbook.dynamics import Gram, GramTraining
from flbook.dynamics.inner_products import add_product
from flbook.models import LeakyReLU, ReLUPower, TwoLayerCNN, identity, relu, softplus
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import hinge, logistic, squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

SEEDS = (0, 1, 2)
M, N, D, STEPS = 3, 6, 25, 40
CLOSE = 1e-12  # to the kink: there rounding decides a ReLU's slope, and the two runs may part
ACTIVATIONS = {"relu": relu, "leaky": LeakyReLU(0.2), "square": ReLUPower(2.0), "cube": ReLUPower(3.0),
               "softplus": softplus, "linear": identity}
RULES = {"gd, each its step size": GradientDescent(torch.tensor([0.3, 0.5, 0.4])), "momentum": Momentum(0.1, 0.8)}
DATA = {
    "orthogonal, clean": dict(orthogonal=True),
    "orthogonal, free flips": dict(orthogonal=True, flip_prob=0.3, exact_flips=False),
    "along mu, exact flips": dict(flip_prob=0.4),
    "along mu, free flips": dict(flip_prob=0.3, exact_flips=False),
}


def both(activation=relu, bias=False, scale=None, seeds=SEEDS, **data):
    """The same problem in d dimensions and in coefficients, and the sample that they share."""
    model = SignalNoise(n=N, d=D, mu_norm=2.0, **data)
    sample = model.draw(seeds)
    cnn = TwoLayerCNN(D, M, None if bias else 0.1, activation, scale, bias, seeds, torch.float64)
    return Training(cnn, sample.x, sample.observed), GramTraining.of(model, sample, cnn), sample


def span(params, sample):
    """The vectors of length d that coefficients stand for."""
    moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)
    return moved.unflatten(-2, (2, M))


def weights(direct, gram, sample):
    """Weights, then the bias if there is one, as one vector a filter: of direct training, and of coefficients."""
    w_0 = direct.start()["w"]

    def row(w, b):
        return w if b is None else torch.cat([w, b.unflatten(-1, (2, M))[..., None]], -1)

    return (lambda p: row(p["w"], p["b"].flatten(-2) if "b" in p else None),
            lambda p: row(w_0 + span(p, sample), p.get("b")))


def nearest_to_the_kink(gram):
    """The smallest pre-activation of each member."""
    return Quantity("z", lambda p: torch.stack([z.abs().flatten(1).amin(-1) for z in gram.patches(p).values()]).amin(0))


def paths(direct, gram, sample, rule, steps=STEPS):
    """Both runs at every step, weights direct and from coefficients, and the step of the first close call or None."""
    w, rebuilt = (Quantity("w", of, ("sign", "filter", "dimension")) for of in weights(direct, gram, sample))
    expected = fit(direct, rule, steps, [w], ("seed",), range(steps + 1)).history
    found = fit(gram, rule, steps, [rebuilt, nearest_to_the_kink(gram)], ("seed",), range(steps + 1)).history
    close = found.step[(found.z < CLOSE).any("seed")].values
    return expected.w.values, found.w.values, int(close[0]) if len(close) else None


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("bias, scale", [(False, None), (True, None), (True, 1.0)], ids=["", "bias", "bias, sum"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_coefficients_train_like_weights(activation, bias, scale, data, rule, record_property):
    direct, gram, sample = both(activation, bias, scale, **data)
    expected, found, close = paths(direct, gram, sample, rule)
    if activation not in (relu, ACTIVATIONS["leaky"]):
        close = None  # no kink: the whole run counts
    record_property("first step with a pre-activation closer than 1e-12 to the kink", close)
    until = STEPS + 1 if close is None else close
    assert until > STEPS // 2, f"a pre-activation came closer than {CLOSE} to the kink as early as step {close}"
    largest = abs(expected[:until]).max()
    assert abs(found - expected)[:until].max() < 1e-10 * largest
    assert abs(expected[until - 1] - expected[0]).max() > 0.05 * largest, "training must have gone somewhere"


@pytest.mark.parametrize("loss", [logistic, hinge, squared], ids=repr)
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_gradient_coefficients_stand_for_the_gradient(activation, bias, loss):
    direct, gram, sample = both(activation, bias, flip_prob=0.2, exact_flips=False)
    direct, gram = Training(direct.model, direct.x, direct.observed, loss), replace(gram, loss=loss)
    generator = torch.Generator().manual_seed(0)
    params = {name: 0.03 * torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in gram.start().items()}
    there = {"w": direct.start()["w"] + span(params, sample)}
    if bias:
        there["b"] = params["b"].unflatten(-1, (2, M))
    torch.testing.assert_close(gram.predict(params), direct.predict(there), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(gram.train_loss(params), direct.train_loss(there), rtol=1e-11, atol=1e-12)
    for labels in (None, -direct.observed):
        found, expected = gram.gradient(params, observed=labels), direct.gradient(there, observed=labels)
        torch.testing.assert_close(span(found, sample), expected["w"], rtol=1e-10, atol=1e-12)
        if bias:
            torch.testing.assert_close(found["b"].unflatten(-1, (2, M)), expected["b"], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gram.norm(found), direct.norm(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shared", [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (1, 1)], ids=str)
def test_a_product_is_added_whoever_shares_the_matrix(shared):
    members = (2, 3) if len(shared) == 2 else shared and (3,)
    out, rows = rng.normal((*members, 4, 5), 0, "out"), rng.normal((*members, 4, 5), 0, "rows")
    matrix = rng.normal((*shared, 5, 5), 0, "matrix")
    expected = out + torch.einsum("...kn,...np->...kp", rows, matrix)
    torch.testing.assert_close(add_product(out, rows, matrix), expected, rtol=1e-13, atol=1e-13)


def test_everything_by_hand():
    # one sample in two dimensions: mu = (2, 0), xi = (1, 3), y = -1 seen as +1; w_+ = (1, 0), w_- = (0, -1)
    def row(*numbers):
        return torch.tensor(numbers, dtype=torch.float64)

    gram = Gram(mu_mu=row(4.0)[0], mu_xi=row(2.0), xi_xi=row(10.0)[None], w_mu=row(2.0, 0.0),
                w_xi=row(1.0, -3.0)[:, None], w_w=torch.eye(2, dtype=torch.float64), b=row(0.5, 4.0))
    problem = GramTraining(gram, row(-1.0), row(1.0), scale=2.0, bias=True)
    # filter + sees -2 + .5 and 1 + .5, filter - sees 0 + 4 and -3 + 4: f = 2 (0 + 1.5) - 2 (4 + 1)
    start = problem.start()
    assert problem.predict(start).tolist() == [-7]
    assert problem.train_loss(start).item() == pytest.approx(math.log1p(math.exp(7)))
    pull = -1 / (1 + math.exp(-7))
    grad = problem.gradient(start)
    # + is on for the noise only; - is on for both; the signal patch is -mu; output weights are 2 and -2
    assert grad["mu"].tolist() == pytest.approx([0, 2 * pull])
    assert grad["xi"].flatten().tolist() == pytest.approx([2 * pull, -2 * pull])
    assert grad["b"].tolist() == pytest.approx([2 * pull, -4 * pull])
    # as vectors: + moves by 2 xi = (2, 6) pull, - by 2 mu - 2 xi = (2, -6) pull
    assert problem.norm(grad).item() == pytest.approx(abs(pull) * (4 + 36 + 4 + 4 + 36 + 16) ** 0.5)
    moved = {"mu": row(0.0, 1.0), "xi": row(1.0, 0.0)[:, None], "b": row(0.0, 0.0)}
    # w_+ = (2, 3), w_- = (2, -1)
    assert [z.tolist() for z in problem.preactivations(moved)] == [[4, 4], [[11], [-1]]]
    assert problem.weight_gram(moved).tolist() == [[13, 1], [1, 5]]
    assert [z.flatten().tolist() for z in problem.patches(moved).values()] == [[4, 4], [-4, -4], [11, -1]]


def test_gram_of_given_vectors_by_hand():
    sample = SignalNoise(n=2, d=3, mu_norm=2.0).draw(0)
    xi = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    w = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, -1.0]], dtype=torch.float64)
    gram = Gram.of(sample._replace(xi=xi), w)
    assert gram.mu_mu.item() == 4 and gram.mu_xi.tolist() == [2, 0] and gram.xi_xi.tolist() == [[5, 2], [2, 2]]
    assert gram.w_mu.tolist() == [2, 0] and gram.w_xi.tolist() == [[1, 1], [-2, -1]]
    assert gram.w_w.tolist() == [[2, 0], [0, 1]] and gram.b.tolist() == [0, 0]
    assert Gram.of(sample._replace(xi=xi), w, torch.tensor([0.5, 2.0])).b.tolist() == [0.5, 2]


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_an_ensemble_is_a_loop(bias):
    data = dict(flip_prob=0.3, exact_flips=False)
    together = fit(both(bias=bias, **data)[1], Momentum(0.1), STEPS).params
    for member, seed in enumerate(SEEDS):
        for name, p in fit(both(bias=bias, seeds=seed, **data)[1], Momentum(0.1), STEPS).params.items():
            torch.testing.assert_close(together[name][member], p, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_signals_of_other_lengths(orthogonal):
    lengths = torch.tensor([0.5, 3.0], dtype=torch.float64)
    unit = SignalNoise(n=N, d=D, mu_norm=1.0, orthogonal=orthogonal)
    w = TwoLayerCNN(D, M, 0.1, seed=SEEDS, dtype=torch.float64).w.detach().flatten(-3, -2)
    gram = Gram.of(unit.draw(SEEDS), w).with_signals(lengths)
    for member, length in enumerate(lengths.tolist()):
        expected = Gram.of(replace(unit, mu_norm=length).draw(SEEDS), w)
        at = dict(mu_mu=(member,), mu_xi=(slice(None), member), w_mu=(slice(None), member))
        for name, part in expected._asdict().items():
            found = getattr(gram, name)[at.get(name, (slice(None), 0))]
            torch.testing.assert_close(found, part, rtol=1e-12, atol=1e-14)


def test_signals_may_differ_between_members():
    unit = SignalNoise(n=N, d=D, mu_norm=1.0)
    w = TwoLayerCNN(D, M, 0.1, seed=SEEDS, dtype=torch.float64).w.detach().flatten(-3, -2)
    plain = Gram.of(unit.draw(SEEDS), w)
    lengths = torch.tensor([[0.5], [1.0], [3.0]], dtype=torch.float64)
    each, same = plain.with_signals(lengths), plain.with_signals(lengths[:, 0])
    for member in range(3):
        assert torch.equal(each.w_mu[member, 0], same.w_mu[member, member])
        assert torch.equal(each.mu_xi[member, 0], same.mu_xi[member, member])
        assert each.mu_mu[member, 0] == same.mu_mu[member]


def test_a_signal_of_length_zero_is_the_edge_of_a_phase_diagram():
    _, gram, _ = both()
    problem = replace(gram, gram=gram.gram.with_signals(torch.tensor([0.0, 1.0])),
                      y=gram.y[:, None], observed=gram.observed[:, None])
    params = fit(problem, GradientDescent(0.3), STEPS).params
    assert params["mu"].shape == (3, 2, 2 * M)
    assert (problem.signal_learned(params)[:, 0] == 0).all() and (problem.signal_learned(params)[:, 1] != 0).any()
    assert (problem.train_loss(params) < problem.train_loss(problem.start())).all(), "the noise still fits the labels"


def test_trained_inner_products_are_those_of_the_weights():
    direct, gram, sample = both(bias=True, flip_prob=0.2)
    w = fit(direct, GradientDescent(0.3), STEPS).params["w"].flatten(1, 2)
    params = fit(gram, GradientDescent(0.3), STEPS).params
    torch.testing.assert_close(gram.weight_gram(params), w @ w.mT, rtol=1e-10, atol=1e-12)
    assert gram.to(torch.float32).weight_gram(params).dtype == torch.float64
    on_mu, on_xi = gram.preactivations(params)
    torch.testing.assert_close(on_mu, w @ sample.mu, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(on_xi, w @ sample.xi.mT, rtol=1e-10, atol=1e-12)


def test_bad_input_is_one_sentence():
    _, gram, sample = both()
    w = torch.zeros(2 * M, D + 1, dtype=torch.float64)
    for make, sentence in [
        (lambda: Gram.of(sample, w), r"noise of shape \(3, 6, 25\) and filters of shape \(6, 26\) differ in d"),
        (lambda: replace(gram, y=gram.y[:, 1:], observed=gram.observed[:, 1:]),
         r"labels of shapes \(3, 5\) and \(3, 5\) do not fit the Gram matrix of n = 6 noise patches"),
        (lambda: replace(gram, observed=0 * gram.y), r"labels must be -1 or \+1; found 0"),
        (lambda: replace(gram, y=2 * gram.y), r"labels must be -1 or \+1; found 2"),
        (lambda: gram.gram.with_signals(torch.tensor([-1.0])), r"mu_norm must be finite and not negative; got \[-1"),
        (lambda: gram.gram.with_signals(torch.tensor([math.inf])), "mu_norm must be finite and not negative"),
    ]:
        with pytest.raises(ValueError, match=sentence) as error:
            make()
        assert "\n" not in str(error.value)
