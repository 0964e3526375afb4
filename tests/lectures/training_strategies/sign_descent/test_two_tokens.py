"""Two tokens: the transformer against its formula, the value's speed, and the closed forms of the first step."""

import pytest
import torch

from flbook import Training, fit
from flbook.lectures.training_strategies.sign_descent.two_tokens import TwoTokens, TwoTokenTransformer
from flbook.training.optimizers import SignDescent

DATA = TwoTokens(n=6, d=80, s=8)


def test_the_output_is_the_formula_of_the_page():
    x, _ = DATA.draw(0)
    network = TwoTokenTransformer(DATA.d, h=3, sigma_0=0.5)
    value = 2 * network.v
    expected = []
    for sample in x:
        scores = sample @ network.q @ network.k.T @ sample.T
        expected.append((scores.softmax(-1) @ (sample @ value)).sum())
    torch.testing.assert_close(network(x), torch.stack(expected))
    frozen = TwoTokenTransformer(DATA.d, sigma_0=0.5, frozen=True)
    torch.testing.assert_close(frozen(x), x.sum(-2) @ (2 * frozen.v))
    assert set(dict(frozen.named_parameters())) == {"v"}


@pytest.mark.parametrize("frozen", [False, True])
def test_sign_descent_raises_the_signals_value_by_two_steps_every_step(frozen):
    x, y = DATA.draw((0, 1))
    problem = Training(TwoTokenTransformer(DATA.d, 3, 0.01, (0, 1), frozen=frozen), x, y)
    moved = fit(problem, SignDescent(1e-3), 50).params["v"] - problem.start()["v"]
    torch.testing.assert_close(2 * moved[:, 0], torch.full((2,), 2 * 1e-3 * 50), rtol=1e-4, atol=1e-6)
    untouched = (x[:, :, 1] == 0).all(1)
    untouched[:, 0] = False
    assert untouched.any() and (moved[untouched] == 0).all()


def test_signal_and_noise_are_where_the_docstring_says():
    x, y = DATA.draw((0, 1))
    assert x.shape == (2, 6, 2, 80) and (x[:, :, 0, 0] == y).all() and (x[:, :, 0, 1:] == 0).all()
    assert (x[:, :, 1, 0] == 0).all() and ((x[:, :, 1] != 0).sum(-1) == DATA.s).all()
    noise = TwoTokens(n=2000, d=50, s=10, sigma_xi=3.0).draw(0).x[:, 1]
    assert noise[noise != 0].std().item() == pytest.approx(3.0, rel=0.02)
    assert (noise != 0).float().mean(0)[1:].tolist() == pytest.approx([10 / 49] * 49, abs=0.045)
    torch.testing.assert_close(DATA.draw((3, 4)).x[1], DATA.draw(4).x)
    assert (DATA.draw(0).x[:, 1] != DATA.draw_test(6, 0).x[:, 1]).any()


def test_closed_forms_are_the_errors_of_the_first_step():
    data = TwoTokens(n=20, d=1000, s=40)
    (x, y), (fresh, label) = data.draw(tuple(range(8))), data.draw_test(500, tuple(range(8)))
    mean = (y[..., None] * x.sum(-2)).mean(-2)
    for value, expected in ((mean.sign(), data.sign_error), (mean, data.average_error)):
        margin = label * torch.einsum("snd,sd->sn", fresh.sum(-2), value)
        assert (margin < 0).float().mean().item() == pytest.approx(expected, abs=0.025)
    assert data.sign_error - data.average_error > 0.2
    assert TwoTokens(n=200).sign_error > TwoTokens(n=20).sign_error


def test_noise_without_room_is_refused():
    with pytest.raises(ValueError, match="s must be below d = 10, since the signal's coordinate has no noise; got 10"):
        TwoTokens(d=10, s=10)
