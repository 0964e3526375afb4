"""Bigrams: the rows in k + 1 numbers against the whole matrix of logits, and each part of the page's proposition."""

import math

import numpy as np
import pytest
import torch

from flbook import fit
from flbook.lectures.training_strategies.sign_descent.bigrams import Bigrams, BigramTraining, sign_flow
from flbook.training.optimizers import Adam, GradientDescent, Momentum, NormalisedDescent, SignDescent

DATA = Bigrams(words=12, successors=3)
RULES = (GradientDescent(3.0), Momentum(0.5, 0.9), NormalisedDescent(0.4), NormalisedDescent(0.1, 0.5),
         SignDescent(0.07), SignDescent(0.02, 0.9), Adam(0.3))  # fmt: skip


class Whole(BigramTraining):
    """The matrix of all logits, differentiated by autograd; successors are the first k words of a row."""

    def start(self):
        return {"w": self.q.new_zeros(*self.q.shape[:-1], self.q.shape[-2])}

    def train_loss(self, params, **change):
        log_s = params["w"].log_softmax(-1)[..., : self.q.shape[-1]]
        return (torch.xlogy(self.q, self.q) - self.q * log_s).sum(-1) @ self.p

    def slope(self, params):
        w = params["w"].detach().requires_grad_()
        return {"w": torch.autograd.grad(self.train_loss({"w": w}).sum(), w)[0]}

    def norm(self, direction):
        return direction["w"].square().sum((-2, -1)).sqrt()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_takes_the_rows_where_it_takes_the_whole_matrix(rule):
    few = BigramTraining.of(DATA, (0, 1))
    whole = Whole(few.q, few.p)
    short, long = (fit(problem, rule, 30).params["w"] for problem in (few, whole))
    torch.testing.assert_close(short[..., :3], long[..., :3], rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(short[..., 3:].expand_as(long[..., 3:]), long[..., 3:], rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(few.train_loss({"w": short}), whole.train_loss({"w": long}))
    torch.testing.assert_close(few.norm(few.gradient({"w": short})), whole.norm(whole.gradient({"w": long})))


def test_a_row_of_gradient_descent_runs_on_its_own_clock():
    problem, lr = BigramTraining.of(DATA, 0), 5.0
    together = fit(problem, GradientDescent(lr), 40).params["w"]
    for row in (0, 5, 11):
        alone = fit(problem.levelled(), GradientDescent(lr * float(problem.p[row])), 40).params["w"]
        torch.testing.assert_close(together[row], alone[row], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rule", [GradientDescent(4.0), NormalisedDescent(0.3)])
def test_no_scalar_step_learns_a_row_faster_than_the_proof_allows(rule):
    problem, spent = BigramTraining.of(DATA, 0), 0.0
    params, state = problem.start(), rule.start(problem.start())
    first = problem.excess(params)
    uniform = torch.tensor(1 / DATA.words, dtype=torch.float64)
    away = ((problem.q - uniform).square().sum(-1) + problem.others * uniform**2).sqrt()
    for _ in range(60):
        length = problem.norm(problem.gradient(params))
        spent += float(rule.lr / length) if isinstance(rule, NormalisedDescent) else rule.lr
        params, state = rule.step(problem, params, state)
        assert (problem.excess(params) >= first - math.sqrt(2) * away * problem.p * spent - 1e-12).all()
    assert (problem.excess(params)[0] < 0.6 * first[0]).all()


@pytest.mark.parametrize("rule", [SignDescent(0.05), SignDescent(0.02, 0.9), Adam(0.2, epsilon=0.0)])
def test_frequencies_are_nothing_to_signs_and_to_adam(rule):
    zipf = BigramTraining.of(DATA, 0)
    ends = [fit(problem, rule, 60).params["w"] for problem in (zipf, zipf.levelled())]
    torch.testing.assert_close(*ends, rtol=1e-9, atol=1e-9)
    moved = [fit(problem, GradientDescent(3.0), 60).params["w"] for problem in (zipf, zipf.levelled())]
    assert (moved[0] - moved[1]).abs().max() > 0.1


def test_small_steps_of_signs_follow_the_flow_and_its_bound():
    problem, lr = BigramTraining.of(DATA, (0, 1, 2)), 0.002
    for tau in (0.3, 1.0, 2.5):
        excess = problem.excess(fit(problem, SignDescent(lr), round(tau / lr)).params)
        flow = sign_flow(problem.q, DATA.words, torch.tensor([tau]))[..., 0]
        torch.testing.assert_close(excess, flow, rtol=0.02, atol=2e-3)
        assert (flow <= DATA.words * math.exp(-2 * tau)).all()


def test_a_constant_step_ends_within_the_price_of_the_exercise():
    problem, eta = BigramTraining.of(DATA, 0), 0.1
    params, state = problem.start(), SignDescent(eta).start(problem.start())
    log_ratio = (problem.log_softmax(params)[..., :-1] - problem.q.log()).abs()
    for _ in range(150):
        params, state = SignDescent(eta).step(problem, params, state)
        new = (problem.log_softmax(params)[..., :-1] - problem.q.log()).abs()
        assert (new <= log_ratio.clamp(min=2 * eta) + 1e-9).all()
        log_ratio = new
    rest = problem.others * problem.log_softmax(params)[..., -1].exp()
    settled = (log_ratio <= 2 * eta + 1e-9).all(-1)
    assert settled.all()
    assert (problem.excess(params) <= rest + 2 * eta**2 * math.exp(2 * eta)).all()


def test_the_law_of_the_words():
    p = Bigrams(words=4, successors=2, power=2.0).frequencies
    np.testing.assert_allclose(p, np.array([1, 1 / 4, 1 / 9, 1 / 16]) / (1 + 1 / 4 + 1 / 9 + 1 / 16))
    q = Bigrams(words=3000, successors=4).draw(0)
    torch.testing.assert_close(q.sum(-1), torch.ones(3000, dtype=torch.float64))
    assert q.mean(0).tolist() == pytest.approx([0.25] * 4, abs=0.015)
    assert q.square().sum(-1).mean().item() == pytest.approx(2 / 5, abs=0.01)  # k E q² = 2/(k + 1)
    torch.testing.assert_close(DATA.draw((3, 4))[1], DATA.draw(4))


def test_a_text_counts_what_the_law_says_and_its_rows_keep_their_own_frequencies():
    counts = DATA.text(60_000, (0, 1))
    assert (counts.sum((-2, -1)) == 60_000).all() and (counts[1] == DATA.text(60_000, 1)).all()
    often = counts.sum(-1)
    torch.testing.assert_close(often / 60_000, DATA.frequencies.expand(2, -1), rtol=0.1, atol=1e-3)
    torch.testing.assert_close(counts / often[..., None], DATA.draw((0, 1)), rtol=0, atol=0.04)
    training = BigramTraining.of_text(DATA, 60_000, (0, 1))
    params = fit(training, GradientDescent(3.0), 20).params
    for seed in (0, 1):
        alone = BigramTraining.of_text(DATA, 60_000, seed)
        torch.testing.assert_close(params["w"][seed], fit(alone, GradientDescent(3.0), 20).params["w"])
    torch.testing.assert_close(training.train_loss(params), (training.excess(params) * training.p).sum(-1))


def test_words_that_a_text_lacks_are_not_moved():
    training = BigramTraining.of_text(DATA, 12, 0)
    missing = training.p == 0
    assert missing.any()
    for rule in (GradientDescent(3.0), SignDescent(0.1)):
        assert (fit(training, rule, 5).params["w"][missing] == 0).all()


def test_more_successors_than_words_are_refused():
    with pytest.raises(ValueError, match="successors must be fewer than the 5 words; got 5"):
        Bigrams(words=5, successors=5)
