"""Pretraining: resumed equals uninterrupted bit for bit, members of an ensemble do not feel each other, bad input."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from flbook import devices
from flbook.data import LinearPrompts
from flbook.models.transformer import PromptTransformer
from flbook.runs import checkpoints
from flbook.training.pretrain import (
    Recipe,
    _Run,
    at_every_position,
    at_the_query,
    clip_members,
    named_weights,
    pretrain,
)

DATA = LinearPrompts(n=3, d=2, noise=0.1)
RECIPE = Recipe(steps=6, batch=4, lr=0.01, warmup=2)


def network(**how):
    return PromptTransformer(2, 3, 8, 1, 2, **how)


class Merged(nn.Module):
    """Linear attention with merged weights: a predictor without `predictions`, with an ensemble axis."""

    def __init__(self, members=()):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(*members, 2, 2, dtype=torch.float64))

    def forward(self, context, query):
        mean = torch.einsum("...n,...nd->...d", context.y, context.x) / context.x.shape[-2]
        return torch.einsum("...bqd,...dc,...bc->...bq", query, self.gamma, mean)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("killed_at", [1, 2, 5])
def test_a_killed_run_resumes_bit_for_bit(tmp_path, monkeypatch, killed_at):
    whole, stopped, resumed = network(), network(), network(seed=99)  # with a checkpoint the start does not matter
    expected = pretrain(whole, DATA, RECIPE, seed=3).history
    path = tmp_path / "run"
    draw = LinearPrompts.draw

    def until(self, batch, seed, step=0, *rest, **how):
        if step == killed_at:
            raise KeyboardInterrupt
        return draw(self, batch, seed, step, *rest, **how)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LinearPrompts, "draw", until)
        pretrain(stopped, DATA, RECIPE, seed=3, checkpoint=path, every=1)
    found = pretrain(resumed, DATA, RECIPE, seed=3, checkpoint=path, every=1).history
    assert torch.equal(weights(resumed), weights(whole)) and found.equals(expected)


def test_a_finished_run_is_read_not_repeated(tmp_path, monkeypatch):
    first = network()
    pretrain(first, DATA, RECIPE, checkpoint=tmp_path / "run")
    again = network(seed=5)
    monkeypatch.setattr(torch.Tensor, "backward", None)
    pretrain(again, DATA, RECIPE, checkpoint=tmp_path / "run")
    assert torch.equal(weights(first), weights(again))


def test_a_process_killed_for_good_resumes_too(tmp_path):
    code = """if True:
        import os, signal, sys, torch
        from flbook.data import LinearPrompts
        from flbook.models.transformer import PromptTransformer
        from flbook.training.pretrain import Recipe, pretrain
        class Data(LinearPrompts):
            def draw(self, batch, seed, step=0, device="cpu"):
                if step == 4:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().draw(batch, seed, step, device)
        data = Data(n=3, d=2, noise=0.1)
        data.__class__.__name__ = "LinearPrompts"
        pretrain(PromptTransformer(2, 3, 8, 1, 2), data, Recipe(steps=6, batch=4, lr=0.01, warmup=2), seed=3,
                 checkpoint=sys.argv[1], every=2)"""
    path = tmp_path / "run"
    ended = subprocess.run([sys.executable, "-c", code, str(path)], env=os.environ)
    assert ended.returncode == -signal.SIGKILL and [file.name for file in tmp_path.iterdir()] == ["run"]
    resumed, whole = network(), network()
    pretrain(resumed, DATA, RECIPE, seed=3, checkpoint=path)
    pretrain(whole, DATA, RECIPE, seed=3)
    # Another process may sum in another order, and the biases of the keys have no gradient but that rounding, which
    # Adam divides by itself: what the networks say is compared. A lost step moves it by tenths.
    prompts = DATA.draw(8, seed=9)
    said = [model.double().predictions(*prompts.context) for model in (resumed, whole)]
    torch.testing.assert_close(*said, rtol=0, atol=1e-4)


def test_trying_a_step_and_going_back_leaves_no_trace():
    """What a GPU does before it captures a step."""
    tried, whole = network(), network()
    run = _Run(tried, DATA, RECIPE, 3, torch.device("cpu"), at_every_position)
    kept = {name: tensor.clone() for name, tensor in run.state().items()}
    for _ in range(3):
        run.descend(run.draw(0))
    run.restore(kept)
    while run.done < RECIPE.steps:
        run.advance()
    pretrain(whole, DATA, RECIPE, seed=3)
    assert torch.equal(weights(tried), weights(whole))


def test_a_checkpoint_of_another_setting_is_one_sentence(tmp_path):
    pretrain(network(), DATA, RECIPE, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="of another setting: recipe.lr is 0.01 there and 0.02 here"):
        pretrain(network(), DATA, replace(RECIPE, lr=0.02), checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="data.n is 3 there and 2 here"):
        pretrain(network(), replace(DATA, n=2), RECIPE, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="blocks.0.query_key_value.weight is .8, 24. there and .12, 36. here"):
        pretrain(PromptTransformer(2, 3, 12, 1, 2), DATA, RECIPE, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("device", devices.present())
def test_members_of_an_ensemble_train_as_if_alone(device):
    both = network(seed=(0, 1)).double()
    recipe = replace(RECIPE, clip=0.5)  # clipping must not mix them
    history = pretrain(both, DATA, recipe, seed=(5, 6), device=device).history
    assert history.loss.dims == ("step", "member")
    for member in (0, 1):
        one = network(seed=member).double()
        alone = pretrain(one, DATA, recipe, seed=5 + member, device=device).history
        assert history.loss.values[:, member] == pytest.approx(alone.loss.values)
        for several, single in zip(both.parameters(), one.parameters(), strict=True):
            torch.testing.assert_close(several[member], single)


@pytest.mark.parametrize("device", devices.present())
def test_what_only_predicts_at_the_query_trains_to_the_known_optimum(device):
    data, n = LinearPrompts(n=6, d=2), 6
    model = Merged()
    pretrain(model, data, Recipe(steps=400, batch=256, lr=0.03, warmup=10), device=device)
    optimum = n / (n + 3)  # Gamma = I / (1 + (d + 1)/n)
    torch.testing.assert_close(model.gamma.detach().cpu(), optimum * torch.eye(2).double(), atol=0.05, rtol=0)


def test_losses_by_hand():
    prompts = DATA.draw(4, seed=0)
    y = torch.cat([prompts.context.y, prompts.observed], -1)
    blind = network().double()
    nn.init.zeros_(blind.read_out.weight)
    torch.testing.assert_close(at_every_position(blind, prompts), y.square().mean())
    torch.testing.assert_close(at_the_query(blind, prompts), prompts.observed.square().mean())


def test_clipping_by_hand():
    grads = [torch.tensor([[3.0], [0.3]]), torch.tensor([[[4.0]], [[0.4]]])]
    clip_members(grads, torch.Size([2]), 1.0)
    torch.testing.assert_close(grads[0], torch.tensor([[0.6], [0.3]]))
    torch.testing.assert_close(grads[1], torch.tensor([[[0.8]], [[0.4]]]))


def test_the_rate_rises_then_falls():
    for decay, last in (("cosine", 0.0), ("linear", 0.0), ("constant", 2.0)):
        rates = [Recipe(steps=1000, lr=2.0, warmup=100, decay=decay).rate(step) for step in range(1000)]
        assert rates[0] == pytest.approx(2 / 101) and max(rates) == rates[100] == pytest.approx(2.0)
        assert rates[-1] == pytest.approx(last, abs=0.01)
    assert Recipe(steps=1000, lr=2.0, warmup=0).rate(500) == pytest.approx(1.0)


@pytest.mark.parametrize("device", devices.present())
def test_half_precision_descends_as_well(device):
    data, recipe = LinearPrompts(n=3, d=2), Recipe(steps=40, batch=64, lr=0.01, warmup=5)
    half, full = (
        pretrain(network(sigma_0=0.2), data, replace(recipe, precision=p), device=device).history.loss.values
        for p in ("bfloat16", "float32")
    )
    assert abs(half - full).max() < 0.05 and (half != full).any()


def test_bad_input_is_one_sentence():
    for field, sentence in (({"steps": 0}, "steps and batch must be at least 1"), ({"lr": -1.0}, "lr must be positive"),
                            ({"decay": "no"}, "decay must be among cosine"), ({"precision": "fp8"}, "precision must")):
        with pytest.raises(ValueError, match=sentence):
            Recipe(**field)
    with pytest.raises(FloatingPointError, match="the loss is not finite from step . on; lower lr"):
        pretrain(Merged(), DATA, Recipe(steps=5, batch=2, lr=1e300, clip=0.0, warmup=0))


def test_the_least_that_a_recipe_may_ask_for():
    assert pretrain(network(), DATA, Recipe(steps=1, batch=1, lr=0.01, warmup=0)).history.step.size == 1


def test_a_training_checkpoint_holds_what_it_says(tmp_path):
    model = network()
    pretrain(model, DATA, RECIPE, checkpoint=tmp_path / "run")
    kept = checkpoints.load(tmp_path / "run")
    assert kept["done"] == RECIPE.steps and torch.equal(kept["model.read_out.weight"], model.read_out.weight)


def test_weights_kept_in_rows_find_back_to_their_parameters():
    network = PromptTransformer(2, 3, width=4, layers=1, seed=(0, 1))
    rows = torch.cat([p.detach().flatten(1) for p in network.parameters()], -1)
    found = named_weights(network, rows)
    assert list(found) == [name for name, _ in network.named_parameters()]
    for name, p in network.named_parameters():
        assert torch.equal(found[name], p)
