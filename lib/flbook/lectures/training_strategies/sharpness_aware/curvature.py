"""Curvature, margins and test error of SAM's and of gradient descent's network where both have the same training loss.

The protocol is one for every cell: some steps of SAM, then gradient descent until the loss is reached. SAM alone does
not reach small losses where the signal is weak, since it keeps the noise off that would be needed for them.
"""

import math
from dataclasses import replace

import numpy as np
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import measures
from flbook.dynamics.gram import GramTraining
from flbook.lectures.training_strategies.sharpness_aware import (
    Setting,
    at_loss,
    problem,
    recorded,
    rule,
)
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.problem import Params

NAMES = ("sharpness", "trace", "test_error", "train_error")


def trace(training: GramTraining, params: Params) -> Float[Tensor, "*E"]:
    r"""Trace of the Hessian of the training loss, :math:`\frac1n\sum_i\ell''_i\,\|\nabla f_i\|^2`."""
    weight = training.loss.curvature(training.predict(params), training.observed)
    return (weight * training.output_gradients(params).diagonal(dim1=-2, dim2=-1)).mean(-1)


def at_losses(setting: Setting, losses: tuple[float, ...], device: str = "cpu") -> xr.Dataset:
    """Curvature and errors of each rule where its training loss first falls to each of the losses.

    Rules hand over after `setting.switch` steps and train on until `setting.steps`. Dimensions (loss, rule, d, seed,
    mu); NaN where a loss is not reached.
    """
    training = problem(setting, device)
    quantities = [
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
        Quantity("sharpness", lambda p: measures.gauss_newton_sharpness(training, p), (), "largest Hessian eigenvalue"),
        Quantity("trace", lambda p: trace(training, p), (), "trace of the Hessian"),
        Quantity(
            "test_error", lambda p: measures.test_error(training, p, setting.points), (), "test error", "fraction"
        ),
        Quantity("train_error", lambda p: measures.train_error(training, p), (), "training error", "fraction"),
    ]
    later = [setting.switch + step for step in recorded(setting.steps - setting.switch)]
    looks, axes = sorted({*recorded(setting.steps), *later}), ("d", "seed", "mu")
    runs = [
        fit(
            training,
            rule(setting, name, setting.radius[0], training.gram.w_w),
            setting.steps,
            quantities,
            axes,
            at=looks,
        ).history
        for name in setting.rule
    ]
    path = xr.concat(runs, "rule", join="exact").assign_coords(setting.coordinates("rule", *axes))
    floor = path.assign(test_error=path.test_error.clip(min=1e-12), train_error=path.train_error.clip(min=1e-12))
    found = [xr.Dataset({name: at_loss(floor, name, loss) for name in NAMES}) for loss in losses]
    return xr.concat(found, xr.IndexVariable("loss", list(losses), {"long_name": "training loss", "units": "nats"}))


def ratios(found: xr.Dataset, name: str, aware: str = "SAM then GD") -> xr.DataArray:
    """A curvature of SAM's network over that of gradient descent; on the same data and the same start."""
    ratio = found[name].sel(rule=aware, drop=True) / found[name].sel(rule="GD", drop=True)
    return ratio.assign_attrs(long_name=f"{found[name].attrs.get('long_name', name)}, SAM over GD", units="1")


def typical(ratio: xr.DataArray) -> float:
    """Geometric mean over everything."""
    return math.exp(np.log(ratio).mean().item())


def protocol(setting: Setting, **changed) -> Setting:
    """The setting with both rules of the protocol."""
    return replace(setting, rule=("GD", "SAM then GD"), **changed)
