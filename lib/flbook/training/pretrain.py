"""Pretraining: every step sees fresh prompts. One loop for all models that read a context, on a CPU or a GPU.

Nothing in the loop waits for the host: batches are drawn where the model is, losses stay there until the end, and on a
GPU one training step is captured once and replayed. A batch is a pure function of (seed, step), so a run that was
killed goes on from its checkpoint as if nothing had happened.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import xarray as xr
from torch import Tensor, nn

from flbook import devices
from flbook.data.prompts import Prompts, map_tensors
from flbook.runs import checkpoints

DECAYS = ("cosine", "linear", "constant")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW, its learning rate over the steps, and what keeps a step from being too large."""

    steps: int = 5000
    batch: int = 64  # prompts of a step
    lr: float = 1e-3  # largest learning rate
    warmup: int = 100  # steps in which it rises to that
    decay: str = "cosine"  # how it then falls to 0; "linear"; "constant" does not
    clip: float = 1.0  # largest length of a member's gradient; 0: any
    weight_decay: float = 0.0
    beta_2: float = 0.999  # memory of the squared gradients
    precision: str = "float32"  # of the matrix products: "bfloat16" on a GPU

    def __post_init__(self):
        if self.steps < 1 or self.batch < 1 or self.warmup < 0:
            raise ValueError(f"steps and batch must be at least 1 and warmup at least 0; got steps={self.steps}, "
                             f"batch={self.batch}, warmup={self.warmup}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"lr must be positive and finite; got {self.lr}")
        for name, known in (("decay", DECAYS), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be among {', '.join(known)}; got {getattr(self, name)!r}")

    def rate(self, step: int) -> float:
        """The learning rate of one step, counted from 0.

        Parameters
        ----------
        step
            Number of the step, from 0 to ``steps - 1``.

        Returns
        -------
        float
            Learning rate, at most `lr`.
        """
        rise = min(1.0, (step + 1) / (self.warmup + 1))
        past = max(0, step - self.warmup) / max(1, self.steps - self.warmup)
        return self.lr * rise * {"cosine": (1 + math.cos(math.pi * past)) / 2, "linear": 1 - past}.get(self.decay, 1.0)


class PretrainingRun(NamedTuple):
    """What pretraining returns."""

    model: nn.Module  # the one that was given, trained
    history: xr.Dataset  # `loss` of every step, dimensions (step, *ensemble)


def at_every_position(model: nn.Module, prompts: Prompts) -> Tensor:
    """Mean squared error over the prompts of a batch and all their prefixes, the empty one too; shape ``*S``.

    Parameters
    ----------
    model
        A network with ``predictions(x, y)``, which says every label from the pairs before it.
    prompts
        A batch of b prompts, contexts ``(*S, b, n, d)`` and queries ``(*S, b, q, d)``; S are the axes of the ensemble.

    Returns
    -------
    Tensor
        Errors, one a member.
    """
    context = prompts.context
    x, y = torch.cat([context.x, prompts.query], -2), torch.cat([context.y, label(prompts)], -1)
    predictions = cast(Callable[[Tensor, Tensor], Tensor], model.predictions)
    return (predictions(x, y) - y).square().mean((-2, -1))


def at_the_query(model: Callable[..., Tensor], prompts: Prompts) -> Tensor:
    """Mean squared error at the queries, over the prompts of a batch; shape ``*S``.

    Parameters
    ----------
    model
        A network that, called with contexts and queries, returns predictions ``(*S, b, q)``.
    prompts
        A batch of b prompts, contexts ``(*S, b, n, d)`` and queries ``(*S, b, q, d)``; S are the axes of the ensemble.

    Returns
    -------
    Tensor
        Errors, one a member.
    """
    return (model(prompts.context, prompts.query) - label(prompts)).square().mean((-2, -1))


def label(prompts: Prompts) -> Tensor:
    """What training sees at the queries.

    Parameters
    ----------
    prompts
        A batch of b prompts, contexts ``(*S, b, n, d)`` and queries ``(*S, b, q, d)``; S are the axes of the ensemble.

    Returns
    -------
    Tensor
        Labels with noise where there is any, else the targets, shape ``(*S, b, q)``.
    """
    return prompts.target if prompts.observed is None else prompts.observed


def pretrain(
    model: nn.Module,
    data: Any,
    recipe: Recipe | None = None,
    seed: int | tuple[int, ...] = 0,
    device: str | torch.device = "cpu",
    loss: Callable[[nn.Module, Any], Tensor] | None = None,
    checkpoint: str | Path | None = None,
    every: int = 1000,
) -> PretrainingRun:
    """Train a model in place on prompts that it never sees twice.

    Raises ValueError if the checkpoint is of another setting, FloatingPointError if the loss ceases to be finite.

    Parameters
    ----------
    model
        The network, whose parameters lead with the axes of an ensemble.
    data
        Anything with ``draw(batch, seed, step, device)`` that returns `Prompts`, or another named tuple of tensors that
        `loss` knows.
    recipe
        How to train; ``Recipe()`` if None.
    seed
        Seed of the prompts; a tuple draws others for each member of an ensemble, whose axis leads parameters and
        prompts alike.
    device
        Where to train; the model is moved there.
    loss
        ``loss(model, prompts)``, one number a member; if None, `at_every_position` where the model has ``predictions``,
        otherwise `at_the_query`.
    checkpoint
        A file that is written on the way and at the end, and from which training resumes, on a CPU bit for bit; one of
        a finished run is the result.
    every
        Steps from one writing of the checkpoint to the next.

    Returns
    -------
    PretrainingRun
        The model that was given, trained, and its loss at every step.
    """
    recipe, device = recipe or Recipe(), devices.device(device)
    model.to(device)
    loss = loss or (at_every_position if hasattr(model, "predictions") else at_the_query)
    run = _Run(model, data, recipe, seed, device, loss)
    setting = {"model": {"kind": type(model).__name__, **{name: list(p.shape) for name, p in run.params.items()}},
               "data": data, "recipe": recipe, "seed": seed, "loss": loss}
    if checkpoint is not None and Path(checkpoint).is_file():
        run.restore(checkpoints.load(checkpoint, setting, device))
    advance = run.captured() if device.type == "cuda" and run.done < recipe.steps else run.advance
    while run.done < recipe.steps:
        advance()
        if checkpoint is not None and (run.done % every == 0 or run.done == recipe.steps):
            checkpoints.save(checkpoint, run.state(), setting)
    return PretrainingRun(model, _history(run.losses))


class _Run:
    """A training run: parameters, the optimizer's memory, and the losses so far, all on the device."""

    def __init__(self, model, data, recipe, seed, device, loss):
        self.model, self.data, self.recipe, self.seed, self.device, self.loss = model, data, recipe, seed, device, loss
        self.params = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.like = next(iter(self.params.values()))
        gpu = device.type == "cuda"
        lr = torch.zeros((), device=device) if gpu else 0.0  # a captured step reads its rate from the device
        self.optimizer = torch.optim.AdamW(self.params.values(), lr=lr, betas=(0.9, recipe.beta_2), fused=True,
                                           weight_decay=recipe.weight_decay, capturable=gpu)
        with torch.no_grad():
            members = loss(model, self.draw(0)).shape
        self.rates = torch.tensor([recipe.rate(step) for step in range(recipe.steps)], device=device)
        self.losses = torch.full((recipe.steps, *members), math.nan, device=device, dtype=self.like.dtype)
        self.done = 0

    def draw(self, step: int) -> Any:
        """The batch of a step, in the model's precision; tokens stay whole numbers."""
        batch = self.data.draw(self.recipe.batch, self.seed, step, self.device)
        return map_tensors(batch, lambda t: t.to(self.like) if t.is_floating_point() else t.to(self.device))

    def descend(self, prompts: Any) -> Tensor:
        """One step on a batch; returns the loss of each member before it."""
        half = self.recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            value = self.loss(self.model, prompts)
        value.sum().backward()
        if self.recipe.clip:
            clip_members([p.grad for p in self.params.values()], value.shape, self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)  # a captured step writes to the same places
        return value.detach()

    def set_rate(self) -> None:
        """Give the optimizer this step's learning rate, without a copy to the host."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].copy_(self.rates[self.done])
            else:
                group["lr"] = self.recipe.rate(self.done)

    def advance(self) -> None:
        """Draw, descend, remember the loss."""
        self.set_rate()
        self.losses[self.done] = self.descend(self.draw(self.done))
        self.done += 1

    def captured(self) -> Callable[[], None]:
        """`advance` with one captured step: a replay costs one launch instead of some thousand."""
        kept = {name: tensor.clone() for name, tensor in self.state().items()}
        prompts = self.draw(self.done)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # three steps to set everything up, undone below
            for _ in range(3):
                self.descend(prompts)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = self.descend(prompts)
        self.restore(kept)

        def advance() -> None:
            self.set_rate()
            map_tensors(prompts, lambda there, here: there.copy_(here), self.draw(self.done))
            graph.replay()
            self.losses[self.done] = value
            self.done += 1

        return advance

    def state(self) -> dict[str, Tensor]:
        """Everything that the rest of the run depends on, and the losses so far."""
        kept = {"losses": self.losses, "done": torch.tensor(self.done)}
        for name, p in self.params.items():
            zero = torch.zeros_like(p.detach())
            memory = {"step": zero.new_zeros((), dtype=torch.float32), "exp_avg": zero, "exp_avg_sq": zero}
            memory |= self.optimizer.state.get(p, {})
            kept |= {f"model.{name}": p.detach(), **{f"{moment}.{name}": value for moment, value in memory.items()}}
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Go back to a state; in place, because a captured step knows its tensors by their address."""
        self.losses.copy_(kept["losses"])
        self.done = int(kept["done"])
        for name, p in self.params.items():
            with torch.no_grad():
                p.copy_(kept[f"model.{name}"])
            before = self.optimizer.state[p]
            for moment in ("step", "exp_avg", "exp_avg_sq"):
                value = kept[f"{moment}.{name}"]
                if moment in before:
                    before[moment].copy_(value)
                else:
                    before[moment] = value.clone()


def clip_members(grads: list[Tensor], members: torch.Size, longest: float) -> None:
    """Shorten gradients in place, to length `longest` for each member: members do not feel each other.

    Parameters
    ----------
    grads
        Gradients of all parameters, each of shape ``(*E, ...)``.
    members
        Shape ``*E`` of the ensemble.
    longest
        Largest length of a member's gradient, above 0.
    """
    square = reduce(torch.add, (grad.reshape(*members, -1).square().sum(-1) for grad in grads))
    share = (longest / (square.sqrt() + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(share.reshape(*members, *[1] * (grad.ndim - len(members))))


def named_weights(model: nn.Module, rows: Tensor) -> dict[str, Tensor]:
    """An ensemble's weights by name, from rows that hold all weights of a member one parameter behind another.

    Parameters
    ----------
    model
        The network, whose parameters lead with the one axis of an ensemble.
    rows
        Weights, shape ``(members, weights)``.

    Returns
    -------
    dict[str, Tensor]
        Parameters in the shapes of the model's.
    """
    named = dict(model.named_parameters())
    parts = rows.split([p[0].numel() for p in named.values()], -1)
    return {name: part.reshape(p.shape) for (name, p), part in zip(named.items(), parts, strict=True)}


def _history(losses: Tensor) -> xr.Dataset:
    """Losses as a Dataset; this is where they leave the device."""
    values = losses.detach().cpu().numpy()
    wrong = (~torch.isfinite(losses)).reshape(len(losses), -1).any(-1).nonzero()
    if len(wrong):
        raise FloatingPointError(f"the loss is not finite from step {int(wrong[0])} on; lower lr, or set clip")
    named = {"long_name": "mean squared error of a batch", "units": "units of y squared"}
    dims = ("step", *(f"member_{k}" for k in range(losses.ndim - 1))) if losses.ndim != 2 else ("step", "member")
    step = ("step", range(len(values)), {"long_name": "step", "units": "1"})
    return xr.Dataset({"loss": (dims, values, named)}, coords={"step": step})
