"""The two-layer network of one output: by hand, starts, scalings, ensembles, targets that are no labels, bad input."""

import math

import pytest
import torch

from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher
from flbook.models import TwoLayer
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent


def test_output_by_hand():
    model = TwoLayer(2, 2, scale=0.5, start="plain")
    w = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    x = torch.tensor([[0.3, 0.1]], dtype=torch.float64)
    f = torch.func.functional_call(model, {"w": w}, (x,))
    assert f.item() == pytest.approx(0.5 * (math.tanh(0.3) - math.tanh(0.2)))


def test_starts():
    x = Teacher(n=50, d=3).draw(0).x
    paired, centred, plain = (TwoLayer(3, 40, start=start, seed=1) for start in ("paired", "centred", "plain"))
    for zero in (paired(x), centred(x)):  # up to rounding: a matrix product may sum equal columns in another order
        assert zero.abs().max() < 1e-13
    assert (plain(x).abs() > 0.1).any()
    assert (paired.w[:20] == paired.w[20:]).all() and (centred.w[:20] != centred.w[20:]).all()
    torch.testing.assert_close(centred.w, plain.w)
    assert TwoLayer(10, 4000, seed=2).w.square().sum(-1).mean().item() == pytest.approx(1, rel=0.05)


def test_a_centred_network_moves_like_the_plain_one_from_zero():
    x = Teacher(n=5, d=3).draw(0).x
    centred, plain = (TwoLayer(3, 4, start=start) for start in ("centred", "plain"))
    moved = {"w": centred.w.detach() + 0.3}
    expected = torch.func.functional_call(plain, moved, (x,)) - plain(x)
    torch.testing.assert_close(torch.func.functional_call(centred, moved, (x,)), expected)


def test_an_ensemble_is_the_loop_over_scales_and_seeds():
    data, scales, seeds = Teacher(n=7, d=3), (0.5, 0.1), (3, 4, 5)
    sample = data.draw(seeds)
    model = TwoLayer(3, 8, torch.tensor(scales)[:, None], seed=seeds)
    problem = Training(model, sample.x, sample.y, squared)
    params = fit(problem, GradientDescent(model.step(0.3)), 4).params
    assert problem.ensemble == (2, 3) and model.step(0.3).shape == (2, 3)
    for i, scale in enumerate(scales):
        for k, seed in enumerate(seeds):
            one, own = TwoLayer(3, 8, scale, seed=seed), data.draw(seed)
            alone = fit(Training(one, own.x, own.y, squared), GradientDescent(0.3 / (8 * scale**2)), 4).params
            torch.testing.assert_close(params["w"][i, k], alone["w"])


def test_a_scaled_network_is_the_mean_field_one_in_the_papers_objective():
    """Output alpha h and loss R / alpha^2 at step N lr is the step of the network of scale alpha / N."""
    sample, alpha, lr, width = Teacher(n=7, d=3).draw(0), 3.0, 0.2, 8
    model = TwoLayer(3, width, alpha / width)
    w = model.w.detach().clone().requires_grad_()
    h = torch.tanh(sample.x @ w.T) @ torch.tensor([1.0] * 4 + [-1.0] * 4, dtype=w.dtype) / width
    (0.5 * (alpha * h - sample.y).square().mean() / alpha**2).backward()
    params = fit(Training(model, sample.x, sample.y, squared), GradientDescent(model.step(lr)), 1).params
    torch.testing.assert_close(params["w"], w.detach() - width * lr * w.grad)


def test_bad_input_is_one_sentence():
    for change, sentence in [
        (dict(width=3), "width must be an even number of neurons.*; got 3"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            TwoLayer(**dict(d=2, width=4) | change)
    with pytest.raises(ValueError, match="samples of shape .* do not fit neurons"):
        TwoLayer(2, 4)(torch.zeros(3, 5, dtype=torch.float64))
    sample = Teacher(n=2, d=2).draw()
    with pytest.raises(ValueError, match="targets must be finite; found nan"):
        Training(TwoLayer(2, 4), sample.x, sample.y * float("nan"), squared)
