r"""Test-time training on prompts whose link has shifted since pretraining, against fixed weights.

Claims (Kuwataka and Suzuki 2025): an attention layer with an MLP, pretrained on single-index prompts, adapts to the
direction of a prompt, and with test-time training to its link, too, with an error that falls to the noise level as the
prompt grows; fixed weights keep a floor under a shift of the link.

Pretraining is one gradient step on the attention matrix, rounded to the projection on its r top directions, and ridge
regression of the MLP's output layer at the link :math:`h_2`. Test prompts have the link
:math:`\cos\theta\,h_2 + \sin\theta\,h_3`.
"""

import os
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook.data.single_index_prompts import IndexPrompts, SingleIndexPrompts
from flbook.dynamics.prompt_network import two_layer
from flbook.estimators.in_context import KernelRidge
from flbook.lectures.in_context_learning.test_time_training import two_stages as stages
from flbook.lectures.in_context_learning.test_time_training.link_shift import shifted_link
from flbook.lectures.in_context_learning.test_time_training.two_stages import Readout
from flbook.models import kernels
from flbook.runs.settings import among
from flbook.runs.sweep import sweep
from flbook.shapes import Context

VERSION = 1
BATCH = 100  # prompts held at once
MODELS = ("fixed weights", "test-time training", "no pretraining")


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    shift: tuple[float, ...] = (0.0, 30.0)  # angle of the link in degrees
    n: tuple[int, ...] = (128, 256, 512, 1024, 2048)  # examples of a test prompt, all stages together
    model: tuple[str, ...] = MODELS
    seed: tuple[int, ...] = tuple(range(10))
    d: int = 32  # dimension of an input
    r: int = 4  # dimension of the subspace
    m: int = 64  # neurons of the MLP
    noise: float = 0.5  # tau, of the labels
    lam: float = 0.3  # ridge of the output layer, times its number of examples
    prompts: int = 6000  # of pretraining
    n_pre: int = 256  # examples and queries of each
    learner: int = 0  # seed of the pretraining, one for all test prompts
    tasks: int = 8  # test prompts a seed
    queries: int = 100  # of each, for the rivals; the risk of the models is exact

    @classmethod
    def book(cls) -> "Setting":
        """No shift and thirty degrees, prompts of growing length."""
        return cls()

    @classmethod
    def angles(cls) -> "Setting":
        """All angles at one length."""
        return cls(shift=(0.0, 15.0, 30.0, 45.0, 60.0, 90.0), n=(1024,), model=MODELS[:2], tasks=4)

    @classmethod
    def paper(cls) -> "Setting":
        """Longer prompts, more dimensions, more tasks."""
        return cls(shift=(0.0, 30.0, 60.0), n=(128, 256, 512, 1024, 2048, 4096), d=48, prompts=16000, tasks=16)

    def thinned(self, **fields) -> "Setting":
        """The same setting with some fields changed."""
        return replace(self, **fields)


def data(setting: Setting, shift: float, n: int, queries: int = 1) -> SingleIndexPrompts:
    """Prompts of one angle and length."""
    return SingleIndexPrompts(n=n, d=setting.d, r=setting.r, link=shifted_link(shift), noise=setting.noise,
                              queries=queries)


@dataclass(frozen=True)
class Pretrained:
    """What pretraining leaves: the directions that attention looks in, the MLP's neurons and output weights."""

    basis: Tensor  # d x r
    readout: Readout
    a: Tensor


def pretrain(setting: Setting) -> Pretrained:
    """One step on attention, then ridge regression of the output layer, both on prompts without a shift."""
    fields = {name: getattr(setting, name) for name in ("d", "r", "m", "noise", "lam", "prompts", "n_pre", "learner")}
    return _pretrained(Setting(**fields), os.environ.get("FLBOOK_SEED"))


@lru_cache(maxsize=4)
def _pretrained(setting: Setting, fresh: str | None) -> Pretrained:
    """Once for all test prompts; `fresh` is FLBOOK_SEED, on which the draws depend."""
    n, pull = setting.n_pre, torch.zeros(setting.d, setting.d, dtype=torch.float64)
    for step in range(-(-setting.prompts // BATCH)):
        x, y = data(setting, 0.0, 2 * n).draw(BATCH, setting.learner, step, dtype=torch.float32).context
        pull += stages.attention_pull(Context(x[:, :n], y[:, :n]), Context(x[:, n:], y[:, n:])).double()
    basis = stages.subspace(pull, setting.r)
    readout = Readout.draw(setting.m, setting.learner)
    long = data(setting, 0.0, 2048).draw(100, setting.learner, 10_000_000).context
    inside = Context(long.x @ basis, long.y)
    z = torch.einsum("tnd,td->tn", inside.x, stages.first_direction(inside))
    return Pretrained(basis, readout, readout.fit(z.flatten(), long.y.flatten(), setting.lam / long.y.numel()))


def answer(name: str, setting: Setting, learned: Pretrained, batch: IndexPrompts) -> tuple[Tensor, Tensor]:
    """What one model makes of the prompts: <u, beta> of its direction, and its output weights."""
    identity = torch.eye(setting.d, dtype=torch.float64)
    basis = identity if name == "no pretraining" else learned.basis
    inside, readout = Context(batch.context.x @ basis, batch.context.y), learned.readout
    if name == "fixed weights":
        u, a = stages.first_direction(inside), learned.a
    else:
        u, _, a = stages.adapt(readout, inside, setting.lam * 4 * setting.noise**2)
    along = torch.einsum("td,td->t", u, batch.task @ basis)
    if name == "fixed weights":  # u has no sign; of the two answers the prompt chooses the better
        z = torch.einsum("tnd,td->tn", inside.x, u)
        errors = [(readout(s * z) @ a - inside.y).square().mean(-1) for s in (1, -1)]
        along = torch.where(errors[0] <= errors[1], along, -along)
    return along, a


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Risk against the target without noise, and overlap of the direction; (shift, n, model, seed)."""
    check(setting)
    dims = ("seed", "shift", "n", "model")
    shape = tuple(len(getattr(setting, name)) for name in dims)
    risk, overlap = np.empty(shape), np.empty(shape)
    learned = pretrain(setting)
    for i, seed in enumerate(setting.seed):
        for j, shift in enumerate(setting.shift):
            for k, n in enumerate(setting.n):
                batch = data(setting, shift, n).draw(setting.tasks, seed, 10 + n)
                for at, name in enumerate(setting.model):
                    along, a = answer(name, setting, learned, batch)
                    risk[i, j, k, at] = stages.exact_risk(learned.readout, a, along, shifted_link(shift)).mean()
                    overlap[i, j, k, at] = along.abs().mean()
    about = {"risk": (risk, "risk R"), "overlap": (overlap, "overlap |⟨u, β⟩|")}
    return xr.Dataset({name: (dims, values, {"long_name": text, "units": "1"})
                       for name, (values, text) in about.items()}, coords=coordinates(setting, dims))


def coordinates(setting: Setting, dims: tuple[str, ...]) -> dict:
    """The axes with their names."""
    about = {"shift": ("angle of the link θ", "degrees"), "n": ("examples in the prompt n", "1"),
             "model": ("model", "1"), "seed": ("seed", "1")}
    return {name: (name, list(getattr(setting, name)), {"long_name": about[name][0], "units": about[name][1]})
            for name in dims}


def fitting(setting: Setting, counts: tuple[int, ...]) -> xr.DataArray:
    """Risk of stage III alone: so many examples, the true direction given; first angle, (fitted, seed)."""
    check(setting)
    columns, readout = [], pretrain(setting).readout
    for seed in setting.seed:
        batch = data(setting, setting.shift[0], max(counts)).draw(setting.tasks, seed, 3)
        z = torch.einsum("tnd,td->tn", batch.context.x, batch.task)
        risks = []
        for count in counts:
            lam = setting.lam * 4 * setting.noise**2 / count
            a = readout.fit(z[:, :count], batch.context.y[:, :count], lam)
            link = shifted_link(setting.shift[0])
            risks.append(stages.exact_risk(readout, a, torch.ones(len(a), dtype=a.dtype), link).mean().item())
        columns.append(risks)
    return over("fitted", "examples of stage III", counts, columns, setting, "risk R")


def refining(setting: Setting, counts: tuple[int, ...], spent: int = 1024) -> xr.DataArray:
    """What stage II leaves of the direction, 1 - <u, beta>^2, after so many examples; first angle, (refined, seed).

    Stage I has `spent` examples. The median over the tasks of a seed, since a rare prompt is unlucky in stage I.
    """
    check(setting)
    columns, learned = [], pretrain(setting)
    for seed in setting.seed:
        batch = data(setting, setting.shift[0], spent + max(counts)).draw(setting.tasks, seed, 4)
        x, y = batch.context.x @ learned.basis, batch.context.y
        first, start = Context(x[:, :spent], y[:, :spent]), stages.first_direction(Context(x[:, :spent], y[:, :spent]))
        guess = learned.readout.fit(torch.einsum("tnd,td->tn", first.x, start), first.y, setting.lam / spent)
        left = []
        for count in counts:
            second = Context(x[:, spent : spent + count], y[:, spent : spent + count])
            u = stages.refined(learned.readout, guess, start, first, second)
            left.append(1 - torch.einsum("td,td->t", u, batch.task @ learned.basis).square().median().item())
        columns.append(left)
    return over("refined", "examples of stage II", counts, columns, setting, "what is left, 1 - ⟨u, β⟩²")


def over(name: str, text: str, counts, columns: list, setting: Setting, what: str) -> xr.DataArray:
    """Columns of seeds as one array over (counts, seed)."""
    axis = (name, list(counts), {"long_name": text, "units": "1"})
    return xr.DataArray(np.array(columns).T, dims=(name, "seed"), attrs={"long_name": what, "units": "1"},
                        coords={name: axis, **coordinates(setting, ("seed",))})


KERNELS: dict[str, kernels.Kernel] = {
    "Gaussian": kernels.distance(lambda t: torch.exp(-t / 2)),
    "cubic": kernels.inner_product(lambda t: (1 + t) ** 3),
}
RIDGES = (1e-2, 1e-1, 1.0)


def alone(setting: Setting, tasks: int = 1) -> xr.Dataset:
    """Kernel ridge regression and a two-layer network on the test prompt alone, best in hindsight; (n, seed).

    First angle. Hindsight chooses kernel and ridge, or stopping time, by the mean over all tasks at each length.
    """
    rows = {"kernel ridge": [], "network": []}
    for n in setting.n:
        batch = data(setting, setting.shift[0], n, setting.queries).draw(tasks * len(setting.seed), setting.seed[0], n)
        found = {"kernel ridge": [KernelRidge(kernel, lam)(batch.context, batch.query)
                                  for kernel in KERNELS.values() for lam in RIDGES],
                 "network": list(two_layer(batch.context, batch.query).values())}
        for name, tried in found.items():
            errors = [(f - batch.target).square().mean(-1) for f in tried]
            best = min(errors, key=lambda error: float(error.mean()))
            rows[name].append(best.reshape(len(setting.seed), tasks).mean(-1).numpy())
    return xr.Dataset({name: (("n", "seed"), np.stack(values), {"long_name": "risk R", "units": "1"})
                       for name, values in rows.items()}, coords=coordinates(setting, ("n", "seed")))


def check(setting: Setting) -> None:
    """Refuse cells that the model does not have, before any other cell is computed."""
    among("model", setting.model, MODELS)
    for shift in setting.shift:
        for n in setting.n:
            data(setting, shift, n, setting.queries)
    if min(setting.n) < 8:
        raise ValueError(f"n must be at least 8, so that each of three stages has examples; got {min(setting.n)}")
    if setting.tasks < 1 or setting.prompts < 1 or setting.n_pre < 1:
        raise ValueError(f"tasks, prompts and n_pre must be at least 1; got {setting.tasks}, {setting.prompts} and "
                         f"{setting.n_pre}")
    if not setting.lam > 0:
        raise ValueError(f"lam must be positive, the ridge of the output layer; got {setting.lam}")


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    check(setting)
    cells = len(setting.shift) * len(setting.n) * len(setting.model)
    long = setting.tasks * max(setting.n) * (setting.d + setting.m)
    seed_bytes = 32 * max(long, 2 * BATCH * setting.n_pre * setting.d)
    return sweep(measure, setting, device=device, split=("seed",), cell_bytes=seed_bytes / cells, **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps: every run, in single precision."""
    return dataset.astype("float32", keep_attrs=True)
