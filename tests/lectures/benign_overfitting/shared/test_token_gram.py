"""Token coordinates are direct training, trained keys included; the flow is the limit of small steps."""

import math

import pytest
import torch

from flbook import measures
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.shared.token_gram import TokenGram, TokenTraining, gradient_flow
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

DATA = TokenSelection(n=6, d=50, mu_norm=7.0, tokens=5)


def both(keys, seed=(0, 1)):
    sample = DATA.draw(seed)
    model = TokenAttention(DATA.head, train_keys=keys, seed=seed, dtype=torch.float64)
    return Training(model, sample.x, sample.observed), TokenTraining.of(DATA, sample, model.w), sample


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("rule", [GradientDescent(0.05), Momentum(0.02, 0.5)], ids=["descent", "momentum"])
def test_coordinates_are_direct_training(keys, rule):
    direct, reduced, sample = both(keys)
    params, coordinates = fit(direct, rule, 120).params, fit(reduced, rule, 120).params
    outputs = direct.predict(params)
    assert float((outputs - direct.predict(direct.start())).abs().max()) > 0.1, "nothing was trained"
    torch.testing.assert_close(reduced.predict(coordinates), outputs, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(reduced.train_loss(coordinates), direct.train_loss(params), rtol=1e-10, atol=0)
    moved = {name: p - direct.start()[name] for name, p in params.items()}
    torch.testing.assert_close(reduced.norm(coordinates), direct.norm(moved), rtol=1e-9, atol=0)
    u = params["query"] if not keys else torch.einsum("...kd,...k->...d", params["w"], params["query"])
    u_mu, u_u = reduced.direction(coordinates)
    torch.testing.assert_close(u_mu, u @ sample.mu.T, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(u_u, u.square().sum(-1), rtol=1e-9, atol=1e-12)


def test_fresh_outputs_have_the_law_of_fresh_data():
    direct, reduced, _ = both(False, seed=0)
    params, coordinates = (fit(problem, GradientDescent(0.05), 200).params for problem in (direct, reduced))
    test = DATA.draw_test(20000)
    error = float(measures.test_error_on(direct, params, test.x, test.y))
    law = float(measures.test_error(reduced, coordinates, 8192))
    assert abs(error - law) < 5 * math.sqrt(law * (1 - law) / 20000) + 0.002
    assert 0.005 < law < 0.4


def test_signals_added_to_the_same_noise():
    noise, y = DATA.noise(DATA.n, (0, 1), "noise"), DATA.draw(0).y
    many = TokenGram.with_signals(noise, DATA.pattern(y), torch.tensor([3.0, 7.0]))
    one = TokenGram.of(DATA.draw((0, 1)))
    torch.testing.assert_close(many.x_x[:, 1], one.x_x)
    torch.testing.assert_close(many.mu_x[:, 1], one.mu_x)
    single = many.to(torch.float32)
    assert single.x_x.dtype == torch.float32 and single.x_x is single.x_m_x


def test_the_flow_is_the_limit_of_small_steps():
    _, reduced, _ = both(False)
    (flow,) = gradient_flow(reduced, [2.0], delta=0.003)
    small = fit(reduced, GradientDescent(0.002), 1000).params
    torch.testing.assert_close(reduced.predict(flow), reduced.predict(small), rtol=0, atol=3e-3)


def test_the_gradient_stays_exact_when_softmax_is_saturated():
    _, reduced, _ = both(False, seed=0)
    late = gradient_flow(reduced, [1e20])[0]
    rest = 1 - reduced.attention(late).max(-1).values
    assert float(rest.max()) < 1e-12 and torch.isfinite(late["query"]).all()
    assert (reduced.predict(late) * reduced.observed > 0).all()


def test_the_pooled_rival_is_logistic_regression_on_the_mean_token():
    sample = DATA.draw((0, 1))
    rival = PooledTraining.of(TokenTraining.of(DATA, sample))
    params = fit(rival, GradientDescent(0.3), 50).params
    head, mean = torch.zeros(2, 50, dtype=torch.float64), sample.x.mean(-2)
    for _ in range(50):
        pull = -sample.observed * torch.sigmoid(-sample.observed * torch.einsum("end,ed->en", mean, head)) / DATA.n
        head = head - 0.3 * torch.einsum("en,end->ed", pull, mean)
    torch.testing.assert_close(rival.predict(params), torch.einsum("end,ed->en", mean, head))
    torch.testing.assert_close(rival.norm(params), head.norm(dim=-1))
    test = DATA.draw_test(20000)
    error = (torch.einsum("nd,ed->en", test.x.mean(-2), head) * test.y <= 0).double().mean(-1)
    torch.testing.assert_close(measures.test_error(rival, params, 4096), error, rtol=0, atol=0.015)


def test_bad_input_gets_one_sentence():
    sample = DATA.draw(0)
    with pytest.raises(ValueError, match="do not fit 30 tokens, 5 a sample"):
        TokenTraining(TokenGram.of(sample), sample.observed[:4], DATA.pattern(torch.tensor([1.0, -1.0]).double()))
    with pytest.raises(ValueError, match="follows the query alone"):
        gradient_flow(both(True)[1], [1.0])
