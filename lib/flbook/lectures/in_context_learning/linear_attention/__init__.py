r"""Linear attention on linear regression: one layer is one step, and what several layers add.

Claim (Zhang, Frei and Bartlett 2024; Ahn et al. 2023; Wu et al. 2024): trained by gradients on prompts, one layer of
linear attention becomes one step of preconditioned gradient descent with the closed form of the
chapter's `attention_risk`; L layers become L such steps on inputs that they move on the way.

Settings: the isotropic problem, and one with a rotated covariance and tasks of the inverse covariance. All risks are
mean squared errors without a factor 1/2, averaged over the query in closed form.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.data.prompts import LinearPrompts
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.shared import attention_risk as theory
from flbook.lectures.in_context_learning.shared.attention import layers as attention_layers
from flbook.lectures.in_context_learning.shared.moments import Drawn, MomentTraining, draw_moments, readout
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Context
from flbook.training.fit import fit
from flbook.training.optimizers import Adam

COVARIANCES = ("isotropic", "rotated")
SPREAD = (1.0, 1.0, 0.25, 0.0625, 1.0)  # of the rotated covariance: the squares of the authors' 1, 1, 1/2, 1/4, 1


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: one layer and two on the rotated problem, four hundred small batches.
    """

    covariance: tuple[Literal["isotropic", "rotated"], ...] = axis(["rotated"], "covariance of the inputs")
    # "steps": preconditioners alone; "descent": the inputs move, too; or "all"
    parts: tuple[Literal["steps", "descent", "all"], ...] = axis(["descent"], "trained parts")
    layers: tuple[Count, ...] = axis([1, 2], "layers L")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 20  # examples of a prompt
    d: Count = 5
    batch: Count = 32  # prompts a step
    steps: Count = 400
    lr: Positive = 0.1  # of Adam, divided by L, falling to zero along half a cosine
    clip: Positive = 10.0  # longest gradient
    test: Count = 20_000  # prompts that the risk is measured on


RIVAL = ("covariance", "layers")
experiment = Experiment(
    Setting, version=1, loops=("covariance", "parts", "layers"), chunk={"covariance": 1, "parts": 1, "layers": 1},
    gives={
        "risk": ("risk of trained layers", "1"),
        "descent": ("best use of L gradients", "1", RIVAL),
        "preconditioned": ("best use of L preconditioned gradients", "1", RIVAL),
        "bent": ("best layers that move the inputs", "1", RIVAL),
    },
    presets={
        "tiny": ("Both problems in two dimensions, eight steps", dict(
            covariance=COVARIANCES, parts=("steps", "descent"), seed=(0, 1, 2), n=8, d=2, steps=8, batch=8, test=1000)),
        "longer": ("Up to four layers on both problems, more and larger batches", dict(
            covariance=COVARIANCES, parts=("steps", "descent"), layers=(1, 2, 3, 4), batch=100, steps=1000, lr=0.06)),
    },
    stored="longer",
)


@experiment.shared("covariance")
def test_moments(s: Setting, device: str) -> Drawn:
    """The prompts that every risk is measured on."""
    return draw_moments(prompts_of(s, s.covariance), s.test, 0, step=-1)


@experiment.shared("covariance", "layers")
def rivals(s: Setting, device: str) -> dict[str, float]:
    """What L gradients, L preconditioned ones, and L layers can do at best on these prompts."""
    matrix = covariance_of(s.covariance, s.d)
    moments = test_moments(s, device).moments[:-1, :-1].permute(2, 0, 1).numpy()
    inverse = np.linalg.inv(matrix)
    white = moments @ inverse
    values = np.linalg.eigvals(white).real
    return {"descent": theory.descent_risk(s.layers, moments, matrix, inverse),
            "preconditioned": theory.descent_risk(s.layers, white, matrix, inverse),
            "bent": theory.layered_risk(*theory.layered_optimum(s.layers, values), values)}


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor | float]:
    """Train with all seeds at once; the risk, and that of the rivals."""
    where = devices.device(device)
    problem = MomentTraining(prompts_of(s, s.covariance), s.layers, s.batch, s.seed, parts=s.parts, clip=s.clip)
    problem, test = problem.to(where), Drawn(*(part.to(where) for part in test_moments(s, device)))
    params = fit(problem, Adam(s.lr / s.layers, (0.9, 0.99), horizon=s.steps), s.steps).params
    return {"risk": problem.test_risk(params, test)} | rivals(s, device)


run = experiment.run


def covariance_of(kind: str, d: int) -> np.ndarray:
    """The covariance of the inputs: the identity, or the authors' eigenvalues along a random rotation."""
    if kind == "isotropic":
        return np.eye(d)
    turn = np.linalg.qr(rng.normal((d, d), 0, "rotation").numpy())[0]
    matrix = (turn * np.resize(SPREAD, d)) @ turn.T
    return (matrix + matrix.T) / 2


def prompts_of(setting: Setting, kind: str) -> LinearPrompts:
    """The prompts: tasks have the inverse covariance, so that the labels have the same variance in any direction."""
    matrix = covariance_of(kind, setting.d)
    inverse = np.linalg.inv(matrix)
    return LinearPrompts(n=setting.n, d=setting.d, covariance=matrix, task_covariance=(inverse + inverse.T) / 2)


def lengths(trained_at: tuple[int, ...], shown: tuple[int, ...], covariance: np.ndarray, prompts: int = 4000,
            seed: tuple[int, ...] = tuple(range(10))) -> xr.Dataset:
    """Risk of the best matrix for one length on prompts of another, measured on drawn moments, and in closed form."""
    d = len(covariance)
    gammas = [theory.attention_optimum(n, covariance) for n in trained_at]
    stack = torch.from_numpy(np.stack(gammas))[:, None, None]  # trained_at, seed, one layer
    p, q = attention_layers(stack)
    measured = []
    for n in shown:
        drawn = draw_moments(LinearPrompts(n=n, d=d, covariance=covariance), prompts, seed)
        off = readout(p, q, drawn.moments) - drawn.task
        measured.append(torch.einsum("tsdb,de,tseb->ts", off, torch.from_numpy(covariance), off) / prompts)
    exact = [[theory.attention_risk(gamma, n, covariance) for n in shown] for gamma in gammas]
    return labelled({"risk": (("n", "trained_at", "seed"), measured, "risk"),
                     "exact": (("trained_at", "n"), exact, "risk, closed form")},
                    {"trained_at": ("trained_at", list(trained_at), "trained at n"),
                     "n": ("n", list(shown), "examples of a prompt n"), "seed": ("seed", list(seed), "seed")})


def against_ridge(n: tuple[int, ...], snr: tuple[float, ...], covariance: np.ndarray, draws: int = 2000) -> xr.Dataset:
    r"""Risks of the best attention and of Bayes' ridge regression over n and :math:`\mathrm{tr}\Lambda/\sigma_y^2`."""
    rows = []
    for ratio in snr:
        noise = float(np.sqrt(np.trace(covariance) / ratio))
        gammas = [theory.attention_optimum(one, covariance, noise) for one in n]
        attention = [theory.attention_risk(gamma, one, covariance, noise) for gamma, one in zip(gammas, n, strict=True)]
        rows.append([attention, [theory.ridge_risk(one, covariance, noise, draws).mean() for one in n]])
    attention, ridge = np.array(rows).transpose(1, 0, 2)
    return labelled({"attention": (("snr", "n"), attention, "risk of attention"),
                     "ridge": (("snr", "n"), ridge, "risk of ridge regression")},
                    {"snr": ("snr", list(snr), "signal-to-noise ratio"), "n": ("n", list(n), "examples of a prompt n")})


def even_link(n: int = 40, d: int = 4, train: int = 3000, test: int = 4000, seed: tuple[int, ...] = tuple(range(12)),
              ) -> xr.Dataset:
    r"""Labels :math:`h_2(\langle\beta, x\rangle)`: the best attention on raw inputs and on their products x_j x_k.

    Both are least squares in the entries of Gamma on `train` prompts, the exact minimiser of the pretraining loss.
    """
    data, risks = SingleIndexPrompts(n=n, d=d, r=d, link=(0.0, 0.0, 1.0)), {"inputs": [], "products": []}
    for one in seed:
        before, after = data.draw(train, one, step=0), data.draw(test, one, step=1)
        for name, features in (("inputs", lambda x: x), ("products", products)):
            rows, fresh = (_bilinear(batch, features) for batch in (before, after))
            gamma = torch.linalg.lstsq(rows, before.target[:, 0, None]).solution[:, 0]
            risks[name].append(float((fresh @ gamma - after.target[:, 0]).square().mean()))
    return labelled({"inputs": ("seed", risks["inputs"], "risk of attention on inputs"),
                     "products": ("seed", risks["products"], "risk of attention on their products")},
                    {"seed": ("seed", list(seed), "seed")})


def products(x: torch.Tensor) -> torch.Tensor:
    """The features x_j x_k, j <= k, less their means: second Hermite polynomials up to a factor."""
    rows, columns = torch.triu_indices(x.shape[-1], x.shape[-1])
    return x[..., rows] * x[..., columns] - (rows == columns).to(x)


def _bilinear(batch, features) -> torch.Tensor:
    """The numbers that Gamma is multiplied with, one row a prompt: mean label-weighted feature times the query's."""
    context: Context = batch.context
    mean = torch.einsum("bn,bnk->bk", context.y, features(context.x)) / context.y.shape[-1]
    return torch.einsum("bk,bl->bkl", mean, features(batch.query)[:, 0]).flatten(1)
