"""Labels: numbers as a Dataset whose variables and axes say what they are."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr


def labelled(variables: Mapping[str, tuple], axes: Mapping[str, Any]) -> xr.Dataset:
    """A Dataset of variables over axes, each with its ``long_name`` and ``units``.

    Parameters
    ----------
    variables
        By name ``(dims, values, long_name)``, or ``(dims, values, long_name, units)`` where these are not "1". Values
        are a tensor, on whatever device, an array, or the list of a sweep's cells, in the order of `dims`.
    axes
        The same for the coordinates, or bare values; those of a setting are ``setting.coordinates()``.

    Returns
    -------
    xarray.Dataset
        Each variable has the shape of its axes.

    Examples
    --------
    >>> cells = [np.zeros(2), np.ones(2), np.ones(2)]  # of one n each, over seeds
    >>> axes = {"n": ("n", [1, 2, 4], "samples n")}
    >>> found = labelled({"error": (("n", "seed"), cells, "test error", "fraction")}, axes)
    >>> found.error.shape, found.error.attrs, found.n.attrs["units"]
    ((3, 2), {'long_name': 'test error', 'units': 'fraction'}, '1')
    """
    coords = {name: _said(*axis) if isinstance(axis, tuple) else (name, axis) for name, axis in axes.items()}
    return xr.Dataset({name: _shaped(coords, *_said(*given)) for name, given in variables.items()}, coords)


def single_precision(dataset: xr.Dataset) -> xr.Dataset:
    """What an experiment stores of a run, ``stored = single_precision``: every variable as 32-bit floats.

    Parameters
    ----------
    dataset
        The result of a run.

    Returns
    -------
    xarray.Dataset
        Its coordinates stay as they are.
    """
    return dataset.astype("float32")


def _said(dims: tuple[str, ...] | str, values: Any, about: str | Mapping[str, str], units: str = "1") -> tuple:
    return dims, values, {"long_name": about, "units": units} if isinstance(about, str) else about


def _shaped(coords: Mapping[str, Any], dims: tuple[str, ...] | str, values: Any, attrs: dict[str, str]) -> tuple:
    """A variable as xarray takes it; cells of several axes come one after the other."""
    array, dims = _array(values), (dims,) if isinstance(dims, str) else dims
    if array.ndim != len(dims):
        array = array.reshape([len(coords[name][1]) for name in dims])
    return dims, array, attrs


def _array(values: Any) -> np.ndarray:
    if isinstance(values, tuple | list):
        values = [_array(value) for value in values]
    if hasattr(values, "detach"):  # a tensor, without importing torch
        values = values.detach().cpu().numpy()
    return np.asarray(values)
