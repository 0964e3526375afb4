"""A sweep of numpy alone, importable by workers, that writes down every call and can be killed in the middle."""

import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from flbook.domains import Count, Natural, NonNegative
from flbook.rng import numpy_generator
from flbook.runs import Grid, axis

VERSION = 3


@dataclass(frozen=True)
class Setting(Grid):
    """Errors that fall with the signal and rise with the dimension."""

    n: Count = 4  # samples
    d: tuple[Count, ...] = axis((10, 20, 40), "dimension")
    mu: tuple[NonNegative, ...] = axis((0.5, 1.0, 2.0, 4.0), "signal strength", "m")
    seed: tuple[Natural, ...] = axis((0, 1), "seed")
    log: str = ""  # folder that gets a file for every call of measure
    deadly: str = ""  # a file: the process that measures the last mu dies if it can take this file away
    slow: float = 0.0  # seconds a call takes


def measure(setting: Setting, device: str) -> xr.Dataset:
    """Some numbers of every cell, from the cell and its seed alone."""
    if setting.log:
        (Path(setting.log) / uuid.uuid4().hex).write_text(f"{setting.d} {setting.mu} {setting.seed}")
    time.sleep(setting.slow)
    if setting.deadly and 4.0 in setting.mu:
        _die_once(Path(setting.deadly))
    noise = np.array([numpy_generator(seed, "noise").standard_normal() for seed in setting.seed])
    d, mu = np.array(setting.d, float)[:, None], np.array(setting.mu)
    error = np.exp(-(mu**4) * setting.n / d)[..., None] * (1 + 0.1 * noise)
    steps = np.arange(1, 4)
    return xr.Dataset(
        {
            "error": (("d", "mu", "seed"), error, {"long_name": "test error", "units": "1"}),
            "curve": (("seed", "step"), noise[:, None] * steps, {"long_name": "curve", "units": "1"}),
            "phase": (("d", "mu"), setting.n * mu**4 / d, {"long_name": "phase", "units": "1"}),
            "count": (("mu",), np.round(mu).astype(int), {"long_name": "count", "units": "1"}),
        },
        coords={
            "step": ("step", steps, {"long_name": "step"}),
            "mu": list(setting.mu),
        },
    )


def _die_once(trigger: Path) -> None:
    try:
        trigger.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def unlabelled(setting: Setting, device: str) -> xr.Dataset:
    """A measure that forgets to say what it measured."""
    return xr.Dataset({"error": (("d", "mu", "seed"), np.zeros((len(setting.d), len(setting.mu), len(setting.seed))))})


def averaged(setting: Setting, device: str) -> xr.Dataset:
    """A measure that loses an axis."""
    return measure(setting, device).mean("seed", keep_attrs=True)


def diverging(setting: Setting, device: str) -> xr.Dataset:
    """A measure that gives no number beyond a signal, and whose curve is infinite everywhere."""
    found = measure(setting, device)
    return found.assign(error=found.error.where(found.mu < 2), curve=found.curve * np.inf)


def grid_dependent(setting: Setting, device: str) -> xr.Dataset:
    """A measure whose values depend on the grid around them."""
    found = measure(setting, device)
    return found.assign(count=found["count"].copy(data=found["count"] + len(setting.d)))


def nothing(setting: Setting, device: str) -> None:
    """A measure that forgets to return."""


@dataclass(frozen=True)
class Single:
    """A setting without an axis."""

    n: int = 4


def single(setting: Single, device: str) -> xr.Dataset:
    """One number."""
    return xr.Dataset({"total": ((), setting.n + 1, {"long_name": "total", "units": "1"})})
