"""Contrastive training in coefficients: equal to direct training, from data and from drawn Gram matrices."""

from dataclasses import replace

import pytest
import torch

from flbook import GradientDescent, fit, rng
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import all_others, other_labels
from flbook.models.activations import identity

DATA = TwoModalities(n=8, d=40, mu_norm=2.0, second_norm=3.0, sigma_eps=0.3)
PAIRS = DATA.draw(0)
LR, STEPS, SIGMA = 0.02, 40, 0.1
FREE = (replace(ONE_MODALITY, stop_gradient=False), replace(TWO_MODALITIES, stop_gradient=False))
CASES = {  # modalities, loss, options
    "one": (1, ONE_MODALITY, {}),
    "two": (2, TWO_MODALITIES, {}),
    "one, gradient everywhere": (1, FREE[0], {}),
    "two, gradient everywhere": (2, FREE[1], {}),
    "one, normalised": (1, replace(FREE[0], normalised=True, temperature=0.3), {}),
    "two, normalised": (2, replace(TWO_MODALITIES, normalised=True, temperature=0.3), {}),
    "two, mean over neurons": (2, TWO_MODALITIES, {"scale": 0.2}),
    "two, linear": (2, TWO_MODALITIES, {"activation": identity}),
}


def encoders(count, seed=0, data=DATA):
    names = ("weights", "second weights")[:count]
    return tuple(PatchEncoder(data.d, 5, SIGMA, seed, role=name, dtype=torch.float64) for name in names)


def directly(pairs, nets, loss, negatives, scale=1.0, activation=torch.relu, steps=STEPS):
    """Plain PyTorch: features of the patches, autograd, gradient descent."""
    weights = [net.w.detach().clone().requires_grad_() for net in nets]
    for _ in range(steps):
        views = [(pairs.x, weights[0]), (pairs.second, weights[1]) if len(nets) == 2 else (pairs.augmented, weights[0])]
        flat = [scale**0.5 * activation(torch.einsum("npd,md->npm", x, w)).flatten(-2) for x, w in views]
        value = loss(*flat, negatives)
        gradients = torch.autograd.grad(value, weights)
        weights = [(w - LR * g).detach().requires_grad_() for w, g in zip(weights, gradients, strict=True)]
    return [w.detach() for w in weights], value.detach()


@pytest.mark.parametrize("negatives", [other_labels(PAIRS.y), all_others(8)], ids=["other labels", "all others"])
@pytest.mark.parametrize("case", CASES)
def test_equals_direct_training(case, negatives):
    count, loss, options = CASES[case]
    nets = encoders(count)
    problem = ContrastiveTraining.of(PAIRS, nets, loss, negatives, **options)
    params = fit(problem, GradientDescent(LR), STEPS).params
    expected, last = directly(PAIRS, nets, loss, negatives, **options)
    seen = [torch.cat([PAIRS.x[:, 1], PAIRS.augmented[:, 1]]), None] if count == 1 else [PAIRS.x[:, 1],
                                                                                         PAIRS.second[:, 1]]
    for v, (net, want) in enumerate(zip(nets, expected, strict=True)):
        moved = params["mu"][v][:, None] * PAIRS.mu[v] + params["xi"][v] @ seen[v][: problem.moving]
        torch.testing.assert_close(net.w.detach() + moved, want, rtol=1e-10, atol=1e-10)
        assert float(moved.abs().max()) > 0.01
    before = fit(problem, GradientDescent(LR), STEPS - 1).params
    torch.testing.assert_close(problem.train_loss(before), last, rtol=1e-10, atol=0)
    away = torch.stack([(want - net.w.detach()).square().sum() for net, want in zip(nets, expected, strict=True)])
    torch.testing.assert_close(problem.norm(params), away.sum().sqrt(), rtol=1e-10, atol=0)


@pytest.mark.parametrize("count", [1, 2])
def test_weight_gram_and_fresh_samples_are_those_of_the_weights(count):
    nets, loss = encoders(count), (ONE_MODALITY, TWO_MODALITIES)[count - 1]
    problem = ContrastiveTraining.of(PAIRS, nets, loss, other_labels(PAIRS.y), law=DATA.test_law)
    params = fit(problem, GradientDescent(LR), STEPS).params
    weights, _ = directly(PAIRS, nets, loss, other_labels(PAIRS.y))
    for v, w in enumerate(weights):
        torch.testing.assert_close(problem.weight_gram(params)[v], w @ w.T, rtol=1e-9, atol=1e-9)
    trained = encoders(1)[0]
    trained.w.data = weights[0]
    torch.testing.assert_close(problem.embeddings(params), trained.embedding(PAIRS.x).detach(), rtol=1e-9, atol=1e-9)
    plus, minus = problem.fresh_embeddings(params, torch.tensor(DATA.nu_norm / DATA.mu_norm),
                                           rng.normal((40_000, 5), 0, "points"))
    fresh = DATA.draw_test(40_000)
    found = trained.embedding(fresh.x).detach()
    torch.testing.assert_close(plus.mean(0), found[fresh.y > 0].mean(0), rtol=0.03, atol=0.01)
    torch.testing.assert_close(minus.mean(0), found[fresh.y < 0].mean(0), rtol=0.03, atol=0.01)
    torch.testing.assert_close(plus.T.cov(), found[fresh.y > 0].T.cov(), rtol=0.1, atol=0.03)


@pytest.mark.parametrize("count", [1, 2])
def test_ensemble_equals_loop(count):
    loss = (ONE_MODALITY, TWO_MODALITIES)[count - 1]
    pairs = DATA.draw((0, 1))
    together = ContrastiveTraining.of(pairs, encoders(count, (0, 1)), loss, other_labels(pairs.y))
    params = fit(together, GradientDescent(LR), STEPS).params
    assert together.ensemble == (2,) and together.train_loss(params).shape == (2,)
    for seed in (0, 1):
        one = DATA.draw(seed)
        alone = ContrastiveTraining.of(one, encoders(count, seed), loss, other_labels(one.y))
        expected = fit(alone, GradientDescent(LR), STEPS).params
        for name in params:
            torch.testing.assert_close(params[name][seed], expected[name])


@pytest.mark.parametrize("count", [1, 2])
def test_from_drawn_gram_matrices_the_law_is_that_of_data(count):
    """Initial pre-activations and similarities: means and standard deviations over seeds."""
    seeds = tuple(range(300))
    data = TwoModalities(n=4, d=60, mu_norm=2.0, second_norm=3.0, sigma_eps=0.5)
    drawn = drawn_pairs(data, 5, SIGMA, (ONE_MODALITY, TWO_MODALITIES)[count - 1], count, seeds)
    pairs = data.draw(seeds)
    given = ContrastiveTraining.of(pairs, encoders(count, seeds, data), drawn.loss, other_labels(pairs.y))
    assert torch.equal(drawn.gram.mu_mu[7], given.gram.mu_mu)
    for name in ("mu_xi", "xi_xi", "w_mu", "w_xi", "w_w"):
        mine, theirs = getattr(drawn.gram, name), getattr(given.gram, name)
        spread = theirs.std(0).clamp(min=1e-9)
        torch.testing.assert_close(mine.mean(0) / spread, theirs.mean(0) / spread, rtol=0, atol=0.45)
        torch.testing.assert_close(mine.std(0), theirs.std(0), rtol=0.25, atol=1e-9)
    if count == 2:  # nothing links the noise of two modalities, as a patch and its augmentation are linked
        one, other = drawn.gram.xi_xi[:, 0, 0, 1], drawn.gram.xi_xi[:, 1, 0, 1]
        assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.25


def test_only_the_product_of_the_signal_strengths_enters():
    """Proved on the page: equal weights along the unit signals, equal everything else."""
    nets, found = encoders(2), []
    for first, second in ((2.0, 3.0), (1.0, 6.0), (2.0, 3.1)):
        data = replace(DATA, mu_norm=first, second_norm=second)
        pairs = data.draw(0)
        problem = ContrastiveTraining.of(pairs, nets, TWO_MODALITIES, other_labels(pairs.y))
        params = fit(problem, GradientDescent(LR), STEPS).params
        size = torch.tensor([first, second], dtype=torch.float64)
        found.append((params["mu"] * size[:, None], params["xi"]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)
    assert float((found[0][0] - found[2][0]).abs().max()) > 1e-3


def test_refusals():
    with pytest.raises(ValueError, match="every anchor must have a negative"):
        ContrastiveTraining.of(PAIRS, encoders(2), TWO_MODALITIES, torch.zeros(8, 8, dtype=torch.bool))
    with pytest.raises(ValueError, match="needs* 8 noise patches a modality; got 16"):
        problem = ContrastiveTraining.of(PAIRS, encoders(1), ONE_MODALITY, other_labels(PAIRS.y))
        both = ContrastiveTraining.of(PAIRS, encoders(2), TWO_MODALITIES, other_labels(PAIRS.y))
        replace(both, gram=type(both.gram)(*(torch.cat([p, p], 0) for p in problem.gram)))
