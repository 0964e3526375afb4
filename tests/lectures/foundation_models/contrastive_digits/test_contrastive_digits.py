"""Pre-training on coloured digits: its losses, its views, its captions, its probe, each against something plain."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from flbook.lectures.foundation_models import contrastive_digits
from flbook.lectures.foundation_models.contrastive_digits import Setting, views
from flbook.lectures.foundation_models.contrastive_digits.captions import caption, every_caption
from flbook.lectures.foundation_models.contrastive_digits.linear_probe import linear_probe
from flbook.lectures.foundation_models.contrastive_digits.pretraining import DigitPretraining

TINY = contrastive_digits.experiment.setting("tiny")


def cosines(u, v):
    return normalize(u, dim=-1) @ normalize(v, dim=-1).mT / TINY.temperature


def plain(logits, target):
    """Cross-entropy of every member by torch's own."""
    return torch.stack([cross_entropy(one, other) for one, other in zip(logits, target, strict=True)])


@pytest.mark.parametrize("partner", ["captions", "class captions"])
def test_the_loss_of_captions_is_clips(partner):
    problem = TINY.problem(partner).at(3)
    params, n = problem.start(), TINY.size
    s = cosines(problem.encode(params, problem.x), problem.told(params, problem.words()))
    own = torch.arange(n).expand(2, n)
    torch.testing.assert_close(problem.train_loss(params), (plain(s, own) + plain(s.mT, own)) / 2)
    assert problem.words().shape[-1] == (20 if partner == "captions" else 10)


def test_given_pictures_and_batches_take_the_place_of_drawn_ones():
    drawn, places = TINY.problem("captions"), torch.arange(2 * TINY.size).reshape(2, TINY.size)
    given = drawn.pictures._replace(x=drawn.pictures.x.double())
    problem = DigitPretraining(TINY.data(), "captions", TINY.seed, TINY.hidden, TINY.features, TINY.temperature,
                               TINY.size, given=given, places=places)
    one = problem.at(1)
    assert one.x.dtype == torch.float64 and problem.start()["words.layers.0.weight"].dtype == torch.float64
    torch.testing.assert_close(one.x.float(), drawn.x[:, TINY.size : 2 * TINY.size])
    expected = drawn.batch(places[1]).train_loss(drawn.start())
    torch.testing.assert_close(one.train_loss(problem.start()).float(), expected)


def test_views_are_each_others_partners_and_new_at_every_step():
    problem = TINY.problem("views")
    params, one, next_one = problem.start(), problem.at(0), problem.at(1)
    seen = [views.view(one.x, one.seeds, f"{which} view of step 0") for which in ("first", "second")]
    s, own = cosines(*(problem.encode(params, part) for part in seen)), torch.arange(TINY.size).expand(2, TINY.size)
    torch.testing.assert_close(one.train_loss(params), (plain(s, own) + plain(s.mT, own)) / 2)
    assert not torch.equal(seen[0], seen[1])
    next_one.x = one.x
    assert not torch.equal(one.train_loss(params), next_one.train_loss(params))
    headed = replace(TINY, head=True).problem("views").at(0)
    assert not torch.equal(headed.train_loss(headed.start()), one.train_loss(params))


def test_a_classifier_is_weighted_by_one_over_the_joint_probability():
    light, heavy = (TINY.problem(partner).at(0) for partner in ("classes", "weighted classes"))
    params = light.start()
    torch.testing.assert_close(light.train_loss(params), plain(light.logits(params, light.x), light.observed))
    each = torch.stack([cross_entropy(one, y, reduction="none")
                        for one, y in zip(light.logits(params, light.x), light.observed, strict=True)])
    p, q = 0.775, 0.225
    weight = torch.where(light.colour == light.observed, 1 / (p + q / 10), 10 / q)
    torch.testing.assert_close(heavy.train_loss(params), (weight * each).sum(-1) / weight.sum(-1))


def test_a_step_against_the_gradient_lowers_every_loss():
    for partner in contrastive_digits.TRAINED:
        problem = TINY.problem(partner).at(0)
        params = problem.start()
        grad = problem.gradient(params)
        assert set(grad) == set(params)
        after = {name: p - 0.01 * grad[name] for name, p in params.items()}
        assert (problem.train_loss(after) < problem.train_loss(params)).all(), partner


@pytest.mark.parametrize("recoloured", [False, True])
def test_a_view_is_the_picture_moved_and_brighter_in_its_colour_or_another(monkeypatch, recoloured):
    monkeypatch.setattr(views, "NOISE", 0.0)
    x = TINY.data().draw((0, 1)).x
    seen = views.view(x, (0, 1), "a view", recoloured)
    one, other = (part / part.flatten(2).sum(-1)[..., None, None, None]
                  for part in (x.flatten(3).sum(-1)[..., None, None], seen.flatten(3).sum(-1)[..., None, None]))
    same = (one - other).abs().amax((-3, -2, -1)) < 1e-9
    assert same.all() if not recoloured else same.double().mean() == pytest.approx(0.1, abs=0.1)
    grey, found = torch.nn.functional.pad(x.sum(-3), (1, 1, 1, 1)), seen.sum(-3)
    moved = torch.stack([grey[..., i : i + 8, j : j + 8] for i in range(3) for j in range(3)])
    ratio = found.flatten(-2).sum(-1) / moved.flatten(-2).sum(-1)
    apart = (ratio[..., None, None] * moved - found).abs().amax((-2, -1))
    best, place = apart.min(0)
    assert (best < 1e-9).all() and set(place.flatten().tolist()) == set(range(9))
    factor = ratio.gather(0, place[None])[0]
    assert 0.7 <= factor.min() < 0.75 and 1.25 < factor.max() <= 1.3


def test_a_view_has_its_noise():
    x = torch.zeros(1, 50, 3, 8, 8)
    assert views.view(x, (0,), "dark").std().item() == pytest.approx(0.1, rel=0.05)


def test_captions_are_the_words_of_label_and_colour():
    label, colour = torch.tensor([3, 9]), torch.tensor([0, 7])
    assert torch.nonzero(caption(label, colour, True)).tolist() == [[0, 3], [0, 10], [1, 9], [1, 17]]
    assert torch.equal(caption(label, colour, False), torch.eye(10)[label])
    every = every_caption(True)
    assert every.shape == (100, 20) and torch.equal(every[37], caption(torch.tensor([3]), torch.tensor([7]), True)[0])
    assert torch.equal(every_caption(False), torch.eye(10))


@pytest.mark.parametrize("partner", ["captions", "class captions", "classes"])
def test_the_own_answer_is_the_most_similar_caption(partner):
    problem = TINY.problem(partner)
    params, x = problem.start(), problem.x[:, :9]
    if partner == "classes":
        expected = problem.logits(params, x).argmax(-1)
    else:
        s = cosines(problem.encode(params, x), problem.told(params, every_caption(partner == "captions")))
        torch.testing.assert_close(problem.logits(params, x), s)
        expected = s.unflatten(-1, (10, -1)).amax(-1).argmax(-1)
    assert torch.equal(problem.answers(params, x), expected)


def test_the_probe_is_ridge_regression():
    h, label = torch.randn(2, 300, 7, dtype=torch.float64), torch.randint(10, (2, 300))
    h = 5 + 3 * h * torch.arange(1, 8)
    for member, strength in ((0, 1e-3), (1, 0.5)):
        one, y = h[member], torch.nn.functional.one_hot(label[member], 10).double()
        z = (one - one.mean(0)) / one.std(0)
        w = torch.linalg.solve(z.T @ z / 300 + strength * torch.eye(7, dtype=z.dtype), z.T @ (y - y.mean(0)) / 300)
        found = linear_probe(h, label, strength)(h)[member]
        assert torch.equal(found, (z @ w + y.mean(0)).argmax(-1))


def test_training_makes_captions_answer_and_confusions_are_those_answers():
    setting = replace(TINY, n=400, size=100, steps=60, lr=0.005, partner=("captions", "class captions"))
    found, tables = contrastive_digits.experiment.measure(setting), contrastive_digits.confusions(setting).share
    assert (found.answers_same > 0.5).all() and (found.shifted < found.free).all()
    np.testing.assert_allclose(tables.sum("answer"), 1)
    test = setting.data().draw_test(setting.seed, shift=1)
    for member in range(2):
        frequency = torch.bincount(test.digit[member], minlength=10) / test.digit.shape[-1]
        diagonal = np.diagonal(tables.isel(step=-1, seed=member).values, axis1=-2, axis2=-1)
        np.testing.assert_allclose(diagonal @ frequency.numpy(), found.answers_shifted.isel(seed=member), atol=0.01)


def test_pixels_and_an_untrained_encoder_are_not_trained():
    rows = contrastive_digits.experiment.measure(replace(TINY, partner=contrastive_digits.UNTRAINED))
    longer = contrastive_digits.experiment.measure(replace(TINY, partner=contrastive_digits.UNTRAINED, steps=3))
    for name in rows:
        np.testing.assert_array_equal(rows[name], longer[name])
    assert (rows.shifted.sel(partner="grey pixels") == rows["same"].sel(partner="grey pixels")).all()


def test_pixels_are_probed_where_the_columns_say():
    rows, data = contrastive_digits.experiment.measure(replace(TINY, partner=("pixels",))).isel(partner=0), TINY.data()
    random = replace(data, tied=0.0)
    tied, free = data.draw(TINY.seed), random.draw(TINY.seed)
    there = {"shifted": data.draw_test(TINY.seed, shift=1), "same": data.draw_test(TINY.seed, shift=0),
             "free": random.draw_test(TINY.seed)}
    for name, test in there.items():
        fitted = free if name == "free" else tied
        answers = linear_probe(fitted.x.flatten(2), fitted.label)(test.x.flatten(2))
        np.testing.assert_allclose(rows[name], (answers == test.digit).double().mean(-1), err_msg=name)
    colours = linear_probe(free.x.flatten(2), free.colour)(there["free"].x.flatten(2))
    np.testing.assert_allclose(rows.colour, (colours == there["free"].colour).double().mean(-1))


def test_what_a_picture_lacks_is_refused():
    with pytest.raises(ValueError, match="^size must be at most n = 60, pictures of a batch; got 61$"):
        replace(TINY, size=61)
    with pytest.raises(ValueError, match=r"^n must be a whole number in \[1, 1796\]; got 1797$"):
        replace(TINY, n=1797)


def test_the_palette_weighs_what_the_page_says():
    table = Setting().data().table
    assert math.log(table[0, 0] / table[0, 1]) == pytest.approx(3.57, abs=0.005)
