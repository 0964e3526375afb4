"""XOR in coefficients: the same outputs as direct training, for the network and both rivals; drawn as distributed."""

from operator import methodcaller

import pytest
import torch

from flbook import measures, rivals
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.lectures.benign_overfitting.xor.xor_gram import XorGram, XorGramTraining, draw_xor_gram
from flbook.models import TwoLayerCNN, identity, relu, softplus
from flbook.training.fit import fit
from flbook.training.losses import hinge, squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

LINEAR, LAZY, FROZEN = methodcaller("linear"), methodcaller("lazy"), methodcaller("frozen")  # rivals of a problem
SEEDS = (0, 1, 2)
M, N, D = 3, 8, 30


def both(activation=relu, angle=70.0, loss=None, sigma_xi=1.0):
    """The same problem in d dimensions and in coefficients, and a fresh sample."""
    data = XorSignalNoise(n=N, d=D, mu_norm=3.0, angle=angle, flip_prob=0.25, sigma_xi=sigma_xi)
    sample, fresh = data.draw(SEEDS), data.draw_test(3000, SEEDS)
    cnn = TwoLayerCNN(D, M, 0.1, activation, seed=SEEDS, dtype=torch.float64)
    gram = XorGramTraining.of(sample, cnn, sigma_xi)
    direct = Training(cnn, sample.x, sample.observed)
    if loss is not None:
        direct = Training(cnn, sample.x, sample.observed, loss)
        gram = XorGramTraining(gram.gram, gram.cluster, gram.observed, gram.scale, gram.activation, loss)
    return direct, gram, sample, fresh


def weights(gram, params, direct, sample):
    """Weights in d dimensions that coefficients stand for."""
    w = direct.start()["w"].flatten(-3, -2).clone()
    w[..., :2] = params["plane"]
    return w + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)


RULES = [GradientDescent(torch.tensor([0.2, 0.3, 0.1])), Momentum(0.05, 0.8)]


@pytest.mark.parametrize("activation", [relu, softplus, identity], ids=["relu", "softplus", "linear"])
@pytest.mark.parametrize("rule", RULES, ids=["gd", "momentum"])
def test_equal_to_direct_training(activation, rule):
    direct, gram, sample, _ = both(activation)
    in_d, params = fit(direct, rule, 60).params, fit(gram, rule, 60).params
    torch.testing.assert_close(gram.predict(params), direct.predict(in_d), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(weights(gram, params, direct, sample), in_d["w"].flatten(-3, -2), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gram.train_loss(params), direct.train_loss(in_d), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gram.y, sample.y[0])


@pytest.mark.parametrize("loss", [hinge, squared], ids=["hinge", "squared"])
def test_other_losses(loss):
    direct, gram, _, _ = both(softplus, loss=loss)
    rule = GradientDescent(0.05)
    in_d, params = fit(direct, rule, 30).params, fit(gram, rule, 30).params
    torch.testing.assert_close(gram.predict(params), direct.predict(in_d), rtol=1e-10, atol=1e-10)


def frozen_in_d(direct):
    return Training(rivals.FrozenCNN(direct.model, direct.x), direct.x, direct.observed)


@pytest.mark.parametrize("in_weights, in_coefficients", [(LAZY, LAZY), (frozen_in_d, FROZEN)],
                         ids=["lazy", "frozen"])
def test_the_rivals_are_those_of_direct_training(in_weights, in_coefficients):
    direct, gram, _, fresh = both(sigma_xi=1.5)
    direct, gram, rule = in_weights(direct), in_coefficients(gram), GradientDescent(0.2)
    in_d, params = fit(direct, rule, 60).params, fit(gram, rule, 60).params
    torch.testing.assert_close(gram.predict(params), direct.predict(in_d), rtol=1e-10, atol=1e-10)
    drawn = measures.test_error_on(direct, in_d, fresh.x, fresh.y)
    torch.testing.assert_close(measures.test_error(gram, params, 2048), drawn, rtol=0, atol=0.03)


@pytest.mark.parametrize("rival", [lambda p: p, LINEAR], ids=["network", "linear"])
def test_fresh_samples_are_exactly_distributed(rival):
    direct, gram, _, fresh = both(identity if rival is LINEAR else relu)
    rule = GradientDescent(0.2)
    gram = rival(gram)
    in_d, params = fit(direct, rule, 60).params, fit(gram, rule, 60).params
    drawn = measures.test_error_on(direct, in_d, fresh.x, fresh.y)
    torch.testing.assert_close(measures.test_error(gram, params, 2048), drawn, rtol=0, atol=0.03)
    if rival is LINEAR:
        torch.testing.assert_close(drawn, torch.full((3,), 0.5).double(), rtol=0, atol=0.04)


def test_norm_and_gradient_with_other_labels():
    direct, gram, sample, _ = both()
    params = gram.start()
    other = gram.gradient(params, observed=-sample.observed)
    whole = direct.gradient(direct.start(), observed=-sample.observed)
    torch.testing.assert_close(gram.norm(other), direct.norm(whole), rtol=1e-10, atol=1e-12)


def test_other_clusters_on_the_same_noise():
    _, gram, _, _ = both()
    pair = torch.stack([gram.gram.signals, 2 * gram.gram.signals])
    wide = XorGramTraining(gram.gram.with_signals(pair), gram.cluster, gram.observed[:, None], gram.scale)
    rule = GradientDescent(0.2)
    together, alone = fit(wide, rule, 30).params, fit(gram, rule, 30).params
    assert together["plane"].shape == (3, 2, 2 * M, 2)
    torch.testing.assert_close(together["plane"][:, 0], alone["plane"])


def test_drawn_gram_matrices_have_the_moments_of_vectors():
    seeds = tuple(range(400))
    drawn = draw_xor_gram(4, 2, 40, sigma_0=0.5, sigma_xi=2.0, seed=seeds)
    data = XorSignalNoise(n=4, d=40, mu_norm=1.0, sigma_xi=2.0)
    cnn = TwoLayerCNN(40, 1, 0.5, seed=seeds, dtype=torch.float64)
    vectors = XorGram.of(data.draw(seeds), cnn.w.detach().flatten(-3, -2))
    for name in ("xi_xi", "w_xi", "w_w", "plane"):
        one, two = getattr(drawn, name), getattr(vectors, name)
        scale = two.square().mean().sqrt()
        assert (one.mean(0) - two.mean(0)).abs().max() < 0.25 * scale, name
        assert (one.std(0) - two.std(0)).abs().max() < 0.25 * scale, name
    single = draw_xor_gram(4, 2, 40, sigma_0=0.5, sigma_xi=2.0, seed=7)
    torch.testing.assert_close(single.xi_xi, drawn.xi_xi[7])


def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="d must be at least"):
        draw_xor_gram(10, 4, 12, sigma_0=0.1)
    _, gram, _, _ = both()
    with pytest.raises(ValueError, match="do not fit the Gram matrix of n = 8 noise patches"):
        XorGramTraining(gram.gram, gram.cluster[1:], gram.observed[..., 1:], 1.0)
