"""Pictures cut and pasted together: the loss of outputs is that of real pastes, drawn or in the mean."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from flbook import GradientDescent, LabelNoise, TwoLayerCNN, fit
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.cutmix.leaky_bend import LeakyBend
from flbook.lectures.training_strategies.cutmix.pasting import CutMix, Cutout, mixed_loss, subsets
from flbook.training.losses import logistic

SETTING = cutmix.Setting(seed=(0, 1), n=40, d=60, sigma_0=0.3, lr=0.5)
RECIPES = [Cutout(0), Cutout(1), Cutout(2, 0.2), CutMix(), CutMix((0.1, 0.2, 0.3, 0.4), 3), CutMix(partners=None),
           CutMix(inputs=False), CutMix(labels=False, partners=2), CutMix(labels=False, partners=None)]  # fmt: skip


def problem(recipe, setting=SETTING):
    return cutmix.problem(setting, recipe, dtype=torch.float64)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_gradient_is_that_of_the_loss(recipe):
    training = problem(recipe)
    now = training.at(3)
    f = (training.said(training.start()) * 3).requires_grad_()
    (slope,) = torch.autograd.grad(recipe.loss(f, training.observed, now._paste).sum(), f)
    torch.testing.assert_close(recipe.slope(f, training.observed, now._paste), slope)
    flat, direction = training.start(), now.gradient(training.start())
    ahead, behind = ({"c": flat["c"] + e * direction["c"]} for e in (1e-6, -1e-6))
    rise = (now.train_loss(ahead) - now.train_loss(behind)) / 2e-6
    torch.testing.assert_close(rise, now.norm(direction) ** 2, rtol=1e-5, atol=1e-10)


def test_a_step_is_that_of_a_network_on_the_pasted_pictures():
    setting = replace(SETTING, seed=(4,))
    training = problem(CutMix(partners=2), setting)
    sample = setting.data().draw((4,))
    cnn = TwoLayerCNN(setting.d, 1, setting.sigma_0, LeakyBend(), seed=(4,), dtype=torch.float64)
    now = training.at(60)
    partner, own = now._paste
    x, y = sample.x[0], sample.y
    first = torch.arange(setting.n).repeat(2)
    pasted = torch.where(own[0][..., None], x[first], x[partner[0]])
    share = own[0].double().mean(-1)
    f = cnn(pasted)[0]
    loss = (share * logistic(f, y[first]) + (1 - share) * logistic(f, y[partner[0]])).mean()
    assert now.train_loss(training.start())[0].item() == pytest.approx(loss.item(), rel=1e-12)
    loss.backward()
    moved = torch.einsum("kn,nd->kd", now.gradient(training.start())["c"][0], sample.vectors[0])
    torch.testing.assert_close(moved, cnn.w.grad.flatten(0, 2), rtol=1e-9, atol=1e-13)


def test_the_mean_is_that_over_all_pairs_and_sets():
    recipe, y = CutMix((0.1, 0.5, 0.15, 0.25), partners=None), torch.tensor([1.0, -1, 1, -1]).double()
    f = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = 0.0
    for i, j, size in product(range(4), range(4), range(4)):
        sets = subsets(3, size)
        for own in sets:
            out, share = (own * f[i] + (1 - own) * f[j]).sum(), size / 3
            loss = share * logistic(out, y[i]) + (1 - share) * logistic(out, y[j])
            total += recipe.law[size] / len(sets) * loss / 16
    assert recipe.loss(f, y).mean().item() == pytest.approx(total.item())
    training = problem(replace(recipe, partners=20), replace(SETTING, seed=(0,)))
    params, _ = fit(training, GradientDescent(0.5), 20)
    drawn = torch.stack([training.at(step).gradient(params)["c"] for step in range(200)])
    exact = training.gradient(params)["c"]
    off = (drawn.mean(0) - exact).norm() / exact.norm()
    assert off < 0.08 < (drawn[0] - exact).norm() / exact.norm()


def test_whole_pictures_are_plain_training_and_a_mixture_has_its_mean_label():
    f, y = torch.linspace(-3, 3, 7), torch.ones(7)
    torch.testing.assert_close(mixed_loss(f, 0.4 * y), 0.7 * logistic(f, y) + 0.3 * logistic(f, -y))
    plain, never = problem(Cutout(0)), problem(CutMix((0.0, 0.0, 0.0, 1.0)))
    params, _ = fit(plain, GradientDescent(0.5), 30)
    torch.testing.assert_close(plain.gradient(params)["c"], never.at(0).gradient(params)["c"])
    torch.testing.assert_close(plain.train_loss(params), logistic(plain.predict(params), plain.observed).mean(-1))


def test_hard_labels_are_those_of_the_larger_share_and_whole_inputs_stay():
    first, second, share = torch.ones(3), -torch.ones(3), torch.tensor([0.2, 0.5, 0.8])
    assert CutMix(labels=False).label(share, first, second).tolist() == [-1, 1, 1]
    torch.testing.assert_close(CutMix().label(share, first, second), torch.tensor([-0.6, 0.0, 0.6]))
    training = problem(CutMix(inputs=False))
    f, paste = torch.rand(2, 40, 3).double(), training.at(0)._paste
    slope = CutMix(inputs=False).slope(f, training.observed, paste)
    assert (slope == slope[..., :1]).all() and (CutMix().slope(f, training.observed, paste).std(-1) > 0).any()


def test_draws_belong_to_a_seed_and_follow_the_law():
    law = (0.1, 0.2, 0.3, 0.4)
    many, one = problem(CutMix(law)), problem(CutMix(law), replace(SETTING, seed=(1,)))
    for step in (0, 49, 50, 7):
        assert (many.at(step)._paste.partner[1] == one.at(step)._paste.partner[0]).all()
        assert (many.at(step)._paste.own[1] == one.at(step)._paste.own[0]).all()
    paste = CutMix(law, partners=50).draw(0, 0, 40, 3)
    share = paste.own.sum(-1).flatten().bincount(minlength=4) / paste.partner.numel()
    torch.testing.assert_close(share, torch.tensor(law), atol=0.006, rtol=0)
    single = paste.own[paste.own.sum(-1) == 1].float().mean(0)
    torch.testing.assert_close(single, torch.full((3,), 1 / 3), atol=0.01, rtol=0)
    torch.testing.assert_close(paste.partner.flatten().bincount() / paste.partner.numel(), torch.full((40,), 1 / 40),
                               atol=0.002, rtol=0)  # fmt: skip
    fit(many, LabelNoise(0.1, 0.2, seed=(0, 1)), 3)  # labels one a member


def test_bad_input_is_refused():
    for recipe, word in ((Cutout(3), "size"), (CutMix((0.5, 0.5)), "law")):
        with pytest.raises(ValueError, match=f"^{word} must"):
            problem(recipe)
    for make, word in (
        (lambda: CutMix((0.5, 0.6)), "law"),
        (lambda: CutMix(partners=0), "partners"),
        (lambda: Cutout(-1), "size"),
        (lambda: Cutout(1, 0.5), "flip_prob"),
    ):
        with pytest.raises(ValueError, match=f"^{word} must"):
            make()
