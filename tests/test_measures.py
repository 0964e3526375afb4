"""Measures: by hand, and the exact test law against fresh data, for the network and for every rival."""

import math
from operator import methodcaller

import numpy as np
import pytest
import torch
from scipy import stats

from flbook import measures, observe
from flbook.data import SignalNoise
from flbook.dynamics import Gram, GramTraining, draw_gram
from flbook.dynamics.weights import WeightTraining
from flbook.measures import sobol_normal
from flbook.models import ReLUPower, TwoLayerCNN, identity, relu, softplus
from flbook.rivals import rival
from flbook.shapes import Quantity, signs
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, SignDescent, WeightDecay
from flbook.training.problem import Problem

LAZY = methodcaller("lazy")  # rivals of a problem
SEEDS, M, D = (0, 1, 2, 3), 3, 40


def row(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def by_hand(w_w=((1.0, 0.0), (0.0, 1.0)), w_mu=(0.0, 0.0), **options):
    """Two filters, + and -, and two samples of noise, |mu|^2 = 4."""
    gram = Gram(row(4.0)[0], row(0.0, 0.0), torch.diag(row(9.0, 16.0)), row(*w_mu), torch.zeros(2, 2).double(),
                torch.tensor(w_w, dtype=torch.float64), row(0.0, 0.0))
    return GramTraining(gram, row(1.0, -1.0), row(1.0, 1.0), 1.0, **options)


def test_coefficients_by_hand():
    problem = by_hand()
    params = {"mu": row(0.5, -0.25), "xi": torch.tensor([[1.0, 0.0], [0.5, -2.0]], dtype=torch.float64)}
    assert problem.signal_learned(params).tolist() == [[2], [1]]
    assert problem.noise_memorised(params).tolist() == [[[9, 0]], [[4.5, -32]]]
    gamma, rho, loss = measures.coefficients(problem)
    assert [q.of(params).item() for q in (gamma, rho)] == [2, 9] and [q.name for q in (gamma, rho)] == ["gamma", "rho"]
    assert loss.of(params).item() == problem.train_loss(params).item() and loss.units == "nats"


def both(activation, **data):
    """A training problem in d dimensions and in coefficients, and its sample."""
    model = SignalNoise(n=6, d=D, mu_norm=2.0, **data)
    sample = model.draw(SEEDS)
    cnn = TwoLayerCNN(D, M, 0.1, activation, seed=SEEDS, dtype=torch.float64)
    return Training(cnn, sample.x, sample.observed), GramTraining.of(model, sample, cnn), sample


@pytest.mark.parametrize("activation", [relu, ReLUPower(3.0)], ids=["relu", "cube"])
def test_weights_are_rebuilt_from_gamma_and_rho_with_the_inverse_square_of_the_norms(activation):
    direct, gram, sample = both(activation, flip_prob=0.2)
    w = fit(direct, GradientDescent(0.3), 40).params["w"]
    params = fit(gram, GradientDescent(0.3), 40).params
    gamma, rho = gram.signal_learned(params), gram.noise_memorised(params)
    assert gamma.shape == (4, 2, M) and rho.shape == (4, 2, M, 6)
    sign = signs(2, w)[:, None]

    def rebuilt(power):
        mu, xi = (v * v.norm(dim=-1, keepdim=True) ** power for v in (sample.mu, sample.xi))
        along_xi = torch.einsum("...jrn,...nd->...jrd", rho, xi)
        return direct.start()["w"] + (sign * gamma)[..., None] * mu + along_xi

    error = {power: ((rebuilt(power) - w).norm() / w.norm()).item() for power in (-2, -1)}
    assert error[-2] < 1e-10 and error[-1] > 0.5


def coefficient_paths(activation, steps=300, **data):
    _, gram, sample = both(activation, **data)
    quantities = [Quantity("gamma", gram.signal_learned, ("j", "r")),
                  Quantity("rho", gram.noise_memorised, ("j", "r", "i"))]
    history = fit(gram, GradientDescent(0.1), steps, quantities, ("seed",), range(steps + 1)).history
    same = torch.stack([sample.observed == j for j in (1, -1)], -2)[..., None, :].expand(-1, -1, M, -1).numpy()
    return history.gamma.values, history.rho.values, same


@pytest.mark.parametrize("activation", [relu, ReLUPower(3.0)], ids=["relu", "cube"])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_coefficients_are_monotone_without_label_noise(activation, orthogonal):
    gamma, rho, same = coefficient_paths(activation, orthogonal=orthogonal)
    assert (gamma[1:] >= gamma[:-1]).all() and (gamma[-1] > 0.1).any()
    rho_bar, rho_low = rho[:, same], rho[:, ~same]
    assert (rho_bar >= 0).all() and (rho_bar[1:] >= rho_bar[:-1]).all() and (rho_bar[-1] > 0.1).any()
    assert (rho_low <= 0).all() and (rho_low[1:] <= rho_low[:-1]).all() and (rho_low[-1] < -0.01).any()


def test_with_label_noise_the_signal_coefficient_may_shrink():
    gamma, rho, same = coefficient_paths(relu, orthogonal=True, flip_prob=0.4)
    assert (gamma[1:] < gamma[:-1]).any(), "else the test above says nothing about label noise"
    assert (rho[:, same] >= 0).all() and (rho[:, ~same] <= 0).all(), "noise coefficients follow the observed labels"


def test_train_error_counts_observed_labels_and_a_tie_as_an_error():
    problem = by_hand()
    # on mu and -mu: f = relu(<w_+, xi_i>) - ... : sample 1 gets 9, sample 2 gets -32 or nothing
    xi = torch.zeros(2, 2, dtype=torch.float64)
    assert measures.train_error(problem, {"mu": row(0.0, 0.0), "xi": xi}).item() == 1.0
    xi[0, 0] = 1.0
    assert measures.train_error(problem, {"mu": row(0.0, 0.0), "xi": xi}).item() == 0.5
    xi[0, 1] = 1.0
    assert measures.train_error(problem, {"mu": row(0.0, 0.0), "xi": xi}).item() == 0.0


def test_test_error_of_a_linear_classifier_is_its_closed_form():
    # f = <w_+ - w_-, y mu + xi>, an error with probability Phi(-<v, mu> / |v|); here v = (w_+ - w_-), |v|^2 = 5
    problem = by_hand(w_w=((4.0, 0.0), (0.0, 1.0)), w_mu=(1.0, -0.5), activation=identity)
    error = measures.test_error(problem, problem.start(), 4096).item()
    assert error == pytest.approx(stats.norm.cdf(-1.5 / 5**0.5), abs=2e-3)


def test_test_loss_of_a_linear_classifier_is_an_integral():
    problem = by_hand(w_w=((1.0, 0.0), (0.0, 0.25)), activation=identity)
    plus, minus = (float(side[0]) for side in problem.test_outputs(problem.start(), torch.zeros(1, 2).double()))
    z = stats.norm.ppf((np.arange(20000) + 0.5) / 20000)
    spread = math.sqrt(1.25)
    expected = (np.logaddexp(0, -plus - spread * z).mean() + np.logaddexp(0, minus + spread * z).mean()) / 2
    assert measures.test_loss(problem, problem.start()).item() == pytest.approx(expected, abs=3e-3)


def test_flipped():
    assert measures.noisy_label_error(0.0, 0.1) == 0.1, "the Bayes error"
    assert measures.noisy_label_error(0.5, 0.1) == pytest.approx(0.5)
    np.testing.assert_allclose(measures.noisy_label_error(np.array([0.0, 1.0]), 0.2), [0.2, 0.8])


def test_even_points_are_normal_and_fill_space_better_than_independent_ones():
    z = sobol_normal(512, 20).numpy()
    assert z.shape == (512, 20) and np.isfinite(z).all()
    assert sobol_normal(500, 3).shape == (512, 3) and sobol_normal(1, 3).shape[1] == 3
    independent = 512**-0.5
    assert abs(z.mean(0)).max() < independent / 3 and abs(z.var(0) - 1).max() < independent
    assert abs(np.corrcoef(z.T) - np.eye(20)).max() < 4 * independent
    for column in z.T:
        assert stats.kstest(column, "norm").statistic < 2 / 512
    assert not np.allclose(z, sobol_normal(512, 20, seed=1)) and np.array_equal(z, sobol_normal(512, 20))


def errors(model, activation, orthogonal, bias, seeds=SEEDS, points=4096, fresh=8000):
    """Test error of trained members by the exact law, and on fresh d-dimensional data by the d-dimensional model."""
    data = SignalNoise(n=10, d=D, mu_norm=1.5, sigma_xi=0.8, flip_prob=0.2, orthogonal=orthogonal)
    sample, test = data.draw(seeds), data.draw_test(fresh, seeds)
    cnn = TwoLayerCNN(D, M, None if bias else 0.1, activation, bias=bias, seed=seeds, dtype=torch.float64)
    law = rival(GramTraining.of(data, sample, cnn), model or "network")
    rule, steps = GradientDescent(0.5), 60
    exact = measures.test_error(law, fit(law, rule, steps).params, points)
    if model == "frozen":
        params = fit(law, rule, steps).params
        z = torch.einsum("ejrd,enpd->enpjr", cnn.w.detach(), test.x)
        z = z if cnn.b is None else z + cnn.b.detach()[:, None, None]
        outputs = torch.einsum("enk,ek->en", activation(z).sum(2).flatten(-2), params["a"])
        return exact, (outputs * test.y <= 0).double().mean(-1)
    if model == "linear":
        cnn.activation = identity
    direct = Training(cnn, sample.x, sample.observed)
    direct = direct.lazy() if model == "lazy" else direct
    return exact, measures.test_error_on(direct, fit(direct, rule, steps).params, test.x, test.y)


@pytest.mark.parametrize("orthogonal", [False, True], ids=["noise along mu", "orthogonal noise"])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("activation", [relu, ReLUPower(2.0)], ids=["relu", "square"])
@pytest.mark.parametrize("model", ["", "linear", "lazy", "frozen"], ids=["network", "linear", "lazy", "frozen"])
def test_exact_law_is_what_fresh_data_show(model, activation, bias, orthogonal):
    exact, fresh = errors(model, activation, orthogonal, bias)
    assert exact.shape == (4,) and ((fresh > 0.02) & (fresh < 0.48)).any(), "an error that says something"
    spread = (fresh * (1 - fresh) * (1 / 8000 + 1 / 4096)).sqrt() + 1e-3
    assert ((exact - fresh).abs() < 4 * spread).all(), (exact, fresh)


@pytest.mark.parametrize("kind", ["network", "lazy", "linear", "frozen"])
@pytest.mark.parametrize("form", ["weights", "coefficients"])
def test_an_ensembles_test_error_is_that_of_its_members(form, kind):
    def error(seed):
        data = SignalNoise(n=6, d=D, mu_norm=2.0)
        sample, cnn = data.draw(seed), TwoLayerCNN(D, M, 0.1, relu, seed=seed, dtype=torch.float64)
        network = (WeightTraining if form == "weights" else GramTraining.of)(data, sample, cnn)
        chosen = network if kind == "network" else getattr(network, kind)()
        return measures.test_error(chosen, fit(chosen, GradientDescent(0.3), 10).params)

    if (form, kind) == ("weights", "frozen"):
        pytest.skip("in weights random features are tested on given data")
    torch.testing.assert_close(error((0, 1, 2)), torch.stack([error(seed) for seed in (0, 1, 2)]), rtol=0, atol=2e-3)


def test_a_member_that_diverged_errs_and_the_others_do_not_feel_it():
    _, gram, _ = both(relu)
    params = fit(gram, GradientDescent(0.3), 10).params
    lost = {name: p.clone() for name, p in params.items()}
    lost["xi"][1] = torch.inf
    expected = measures.test_error(gram, params)
    expected[1] = 1.0
    torch.testing.assert_close(measures.test_error(gram, lost), expected)


def test_the_wrong_law_would_be_seen():
    # weak orthogonal noise off a strong signal: with noise along mu the error is another one
    def error(orthogonal):
        law = SignalNoise(orthogonal=orthogonal).test_law
        problem = by_hand(w_w=((1.0, 0.0), (0.0, 0.25)), w_mu=(1.9, 0.0), law=law, activation=identity)
        return measures.test_error(problem, problem.start()).item()

    assert error(True) < error(False) - 0.02
    v = 1.25 - 1.9**2 / 4
    assert error(True) == pytest.approx(stats.norm.cdf(-1.9 / math.sqrt(v)), abs=3e-3)


@pytest.mark.parametrize("rival", [lambda p: p, LAZY], ids=["network", "lazy"])
def test_filters_that_learned_a_strong_signal_have_the_same_law_in_float32(rival):
    # what fresh orthogonal noise meets is then a difference of nearly equal numbers
    gram = draw_gram(40, 20, 1000, sigma_0=1e-8, orthogonal=True, seed=tuple(range(8)))
    y = 1.0 - 2.0 * (torch.arange(40) % 2).double()
    training = GramTraining(gram.with_signals(row(3e4)), y, y, 0.1, law=SignalNoise(orthogonal=True).test_law)
    single = rival(training.to(torch.float32))
    params = fit(single, GradientDescent(3e4**-2), 300).params
    double = single.to(torch.float64)
    assert (measures.test_error(single, params) == 0).all()
    noise = [p.fresh({name: c.to(dtype) for name, c in params.items()}, torch.eye(p.test_directions, dtype=dtype))
             for p, dtype in ((single, torch.float32), (double, torch.float64))]
    size = [z.double().square().sum(-2).sqrt() for z in noise]
    torch.testing.assert_close(size[0], size[1], rtol=1e-3, atol=0)


def test_error_on_given_data_counts_ties_and_true_labels():
    sample = SignalNoise(n=4, d=D).draw(0)
    cnn = TwoLayerCNN(D, M, 0.0, dtype=torch.float64)
    problem = Training(cnn, sample.x, sample.observed)
    assert measures.test_error_on(problem, problem.start(), sample.x, sample.y).item() == 1.0
    with torch.no_grad():
        cnn.w[0, :, 0] = 1.0  # sees the signal of +1 only
    problem = Training(cnn, sample.x[:, :1], sample.observed)
    assert measures.test_error_on(problem, problem.start(), sample.x[:, :1], sample.y).item() == 0.5


def in_weights(n=10, d=50, seeds=tuple(range(8)), **model):
    """A problem in weights, and fresh data."""
    data = SignalNoise(n=n, d=d, mu_norm=1.5, orthogonal=True)
    cnn = TwoLayerCNN(d, M, 1e-3, seed=seeds, dtype=torch.float64, **model)
    return WeightTraining(data, data.draw(seeds), cnn), data.draw_test(8000, seeds)


def test_the_first_sign_step_leaves_the_span_by_the_share_of_a_random_direction():
    # sign(g) lies along g with the share 2/pi; the rest is spread over all directions, n/d of it in the span
    n, d = 20, 400
    problem, _ = in_weights(n, d, tuple(range(20)))
    share = problem.outside_span(fit(problem, SignDescent(0.01), 1).params)
    expected = (1 - 2 / math.pi) * (1 - n / d)
    assert share.mean().item() == pytest.approx(expected, abs=0.01)
    assert float(problem.outside_span(fit(problem, GradientDescent(0.1), 5).params).max()) < 1e-12


@pytest.mark.parametrize("lazy", [False, True], ids=["network", "lazy"])
@pytest.mark.parametrize("rule", [SignDescent(2e-3), Adam(2e-3), WeightDecay(Adam(2e-3), 0.1)],
                         ids=["sign", "adam", "adamw"])
def test_every_measure_of_a_rule_that_leaves_the_span(rule, lazy):
    problem, test = in_weights(bias=True)
    problem = problem.lazy() if lazy else problem
    params = fit(problem, rule, 40).params
    assert (problem.outside_span(params) > 0.1).all()
    exact, fresh = measures.test_error(problem, params, 4096), measures.test_error_on(problem, params, test.x, test.y)
    assert ((fresh > 0.02) & (fresh < 0.48)).any(), "an error that says something"
    spread = (fresh * (1 - fresh) * (1 / 8000 + 1 / 4096)).sqrt() + 1e-3
    assert ((exact - fresh).abs() < 4 * spread).all(), (exact, fresh)
    assert problem.signal_learned(params).shape == (8, 2, M)
    assert problem.noise_memorised(params).shape == (8, 2, M, 10)
    for measure in (measures.train_error, measures.test_loss):
        assert measure(problem, params).isfinite().all()
    assert all(quantity.of(params).shape == (8,) for quantity in measures.coefficients(problem))


def test_what_decay_takes_from_the_start_is_neither_learned_nor_memorised():
    # without a step of its own, decay shrinks w(0) and nothing else
    problem, _ = in_weights()
    params = problem.decaying(problem.start())
    params = {name: 0.5 * p for name, p in params.items()}
    for measure in (problem.signal_learned, problem.noise_memorised):
        assert float(measure(params).abs().max()) < 1e-15
        assert float(measure({"w": params["w"]}).abs().max()) > 1e-4


def twice(activation, bias=False):
    """The same problem in weights and in coefficients, and where both are after some steps."""
    data, seeds = SignalNoise(n=5, d=12, mu_norm=2.0), (0, 1)
    sample, cnn = data.draw(seeds), TwoLayerCNN(12, 2, 0.3, activation, bias=bias, seed=seeds, dtype=torch.float64)
    problems = WeightTraining(data, sample, cnn), GramTraining.of(data, sample, cnn)
    return [(problem, fit(problem, GradientDescent(0.3), 20).params) for problem in problems]


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_sharpness_is_the_largest_eigenvalue_of_the_hessian(bias):
    (direct, there), (gram, here) = twice(softplus, bias)
    for member in (0, 1):
        def loss(flat, member=member):
            parts = zip(there.items(), flat.split([p.numel() for p in there.values()]), strict=True)
            return direct.train_loss({name: part.reshape(p.shape) for (name, p), part in parts})[member]

        hessian = torch.autograd.functional.hessian(loss, torch.cat([p.flatten() for p in there.values()]))
        expected = torch.linalg.eigvalsh(hessian)[-1].item()
        flat = torch.cat([p.flatten() for p in there.values()])
        assert observe.sharpness(lambda p, loss=loss: loss(p["w"]), {"w": flat}).value == pytest.approx(expected)
        for problem, params in ((direct, there), (gram, here)):
            assert measures.sharpness(problem, params)[member].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_for_relu_the_hessian_is_a_matrix_of_sample_gradients(bias):
    found = [measure(problem, params) for problem, params in twice(relu, bias)
             for measure in (measures.sharpness, measures.gauss_newton_sharpness)]
    for one in found[1:]:
        torch.testing.assert_close(one, found[0], rtol=1e-3, atol=0)
    torch.testing.assert_close(found[3], found[1], rtol=1e-9, atol=0)


def test_sharpness_is_the_largest_also_where_another_eigenvalue_is_larger_in_size():
    class Saddle(Problem):
        def gradient(self, params, **change):
            return {"w": params["w"] * torch.tensor([[-5.0, 2.0, 0.1], [3.0, -1.0, 0.0]], dtype=torch.float64)}

        def norm(self, direction):
            return direction["w"].norm(dim=-1)

    found = measures.sharpness(Saddle(), {"w": torch.ones(2, 3, dtype=torch.float64)})
    torch.testing.assert_close(found, row(2.0, 3.0), rtol=1e-6, atol=0)
