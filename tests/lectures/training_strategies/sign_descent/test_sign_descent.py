"""The race of the rules at a tiny preset, and the experiments beside it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import sign_descent
from flbook.lectures.training_strategies.sign_descent import sign_convnet, sign_tokens

TINY = sign_descent.experiment.setting("tiny")


def test_the_course_ends_where_the_best_step_did():
    best, course = sign_descent.experiment.measure(TINY), sign_descent.course(TINY)
    np.testing.assert_allclose(course.excess.isel(step=-1), best.excess, rtol=1e-3, atol=1e-9)
    p = TINY.data.frequencies.numpy()
    np.testing.assert_allclose((course.row * p).sum("word"), best.excess, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(course.lr, best.lr)
    assert (best.excess.sel(rule="gradient descent") > 3 * best.excess.sel(rule="rows divided by p")).all()


def test_the_books_best_steps_lie_inside_their_grids():
    book = sign_descent.experiment.measure(sign_descent.experiment.setting(seed=(0,)))
    for name in book.rule.values:
        grid, lr = sign_descent.grid(name), float(book.lr.sel(rule=name)[0])
        assert grid[0] < lr < grid[-1], name


def test_half_times_follow_the_clocks():
    rows = sign_descent.rows(replace(TINY, steps=400))
    halved, p = sign_descent.half_time(rows.descent), TINY.data.frequencies.numpy()
    clock = (halved * p).mean("seed")
    assert clock[-5:].mean() == pytest.approx(float(clock[4:9].mean()), rel=0.3)
    signs = sign_descent.half_time(rows.sign)
    assert float(signs.max() / signs.min()) < 2.5
    with pytest.raises(ValueError, match="excess must fall to half in every row"):
        sign_descent.half_time(rows.descent.isel(step=slice(0, 5)))


def test_on_a_text_the_whole_is_its_rows_and_the_best_step_is_the_least_mean():
    setting = replace(TINY, steps=60, text=100)
    run, p = sign_descent.on_text(setting), TINY.data.frequencies.numpy()
    np.testing.assert_allclose((run.row * p).sum("word").transpose(*run.excess.dims), run.excess, rtol=1e-9)
    assert (run.often.sum("word") == 100).all() and run.step[0] == 0
    stops = sign_descent.best_stop(run.excess)
    mean = run.excess.mean("seed")
    np.testing.assert_allclose(mean.sel(step=stops), mean.min("step"))
    signs = run.train_loss.sel(rule="sign descent")
    assert (signs.isel(step=-1) < 0.5 * signs.isel(step=0)).all()


def test_the_convnets_steps_reach_a_hundred_times_the_least():
    assert sign_convnet.FACTORS[0] == 1 and sign_convnet.FACTORS[-1] > 100
    assert sorted(sign_convnet.FACTORS) == list(sign_convnet.FACTORS)


def test_the_signals_value_grows_by_two_steps_and_frozen_attention_stays():
    run = sign_tokens.experiment.measure("tiny")
    signs = run.sel(rule="sign descent")
    grown = (signs.value - signs.value.isel(step=0)).transpose(..., "step")
    np.testing.assert_allclose(grown, np.broadcast_to(2e-4 * run.step.values, grown.shape), atol=1e-6)
    assert (run.from_noise.sel(attention="frozen") == 0.5).all()
    assert (run.from_noise.sel(attention="trained") != 0.5).all()


def test_attention_is_the_networks():
    setting = sign_tokens.experiment.setting("tiny")
    training = sign_tokens.problem(setting, "trained", 4)
    watched = {q.name: q for q in sign_tokens.quantities(training, setting.data(4).draw_test(5, setting.seed))}
    whole = training.model.attention(training.x)
    for name, token in (("from_signal", 0), ("from_noise", 1)):
        torch.testing.assert_close(watched[name].of(training.start()), whole[..., token, 0].mean(-1))


def test_pictures_by_zipfs_law():
    x, y = sign_convnet.pictures(100, "Zipf", (0, 1))
    counts = np.sort(np.stack([np.bincount(one, minlength=10) for one in y.numpy()]))[:, ::-1]
    assert x.shape == (2, 100, 1, 8, 8) and (counts.sum(1) == 100).all()
    np.testing.assert_allclose(counts[0], 100 / np.arange(1, 11) / (1 / np.arange(1, 11)).sum(), atol=1)
    _, y = sign_convnet.pictures(100, "balanced", (0,))
    assert (np.bincount(y[0].numpy()) == 10).all()
