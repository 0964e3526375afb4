"""What every experiment owes: labelled numbers, cells that do not see each other, valid presets, one sentence for bad
input, and a stored result that can be recomputed."""

import inspect
import typing
from dataclasses import fields
from typing import Annotated, Literal

import numpy as np
import pytest
import xarray as xr

from flbook.domains import Range
from flbook.runs import Grid, results, settings

NAMES = sorted(settings.homes())
EVERY = pytest.mark.parametrize("name", NAMES)

# Relative and absolute tolerance where a cell computed alone differs from one in a grid by more than float64's
# rounding: training in float32, or a test error, which is a share of so many points.
LOOSE = {
    "benign_overfitting/relu_heatmap": (2e-3, 0.008),
    "in_context_learning/mean_field_features": (0.1, 1e-3),  # the modified dynamics shakes when a float32 loss stalls
    "in_context_learning/mean_field_langevin": (1e-4, 1e-6),
    "in_context_learning/sparse_parity": (1e-4, 0.02),  # a kernel's solver stops when all members are exact enough
    "in_context_learning/learned_basis": (0.1, 1e-3),  # kernel ridge is the best in hindsight over all seeds of a run
    "in_context_learning/task_diversity": (1e-4, 1e-9),  # a ridge of 1e-10 of the features' size
    "in_context_learning/test_time_training": (1e-3, 1e-5),
    "in_context_learning/vector_arithmetic": (1e-3, 0.004),
}
# Experiments whose stored result takes more than a test may; the reason, and who checks it instead.
TOO_LONG = {
    "in_context_learning/what_is_icl": "one network is trained for twelve minutes; its test recomputes errors from it",
}
# Which cells of a stored result are computed again: the first, the middle and the last value of every axis.
PLACES = (0.0, 0.5, 1.0)


def found(name: str):
    experiment = settings.find(name)
    assert issubclass(experiment.Setting, Grid), "a Setting is a Grid, so that its fields are checked and labelled"
    return experiment


def cell(setting: Grid, place: float, axes=None) -> dict[str, tuple]:
    """One value of every axis, or of those named."""
    return {axis: (values[round(place * (len(values) - 1))],) for axis, values in settings.axes(setting).items()
            if axes is None or axis in axes}


@EVERY
def test_a_labelled_dataset(name):
    experiment = found(name)
    tiny = experiment.Setting.tiny()
    dataset = experiment.run(tiny)
    assert set(settings.axes(tiny)) <= set(dataset.dims)
    for axis, values in settings.axes(tiny).items():
        assert tuple(dataset[axis].values.tolist()) == values, axis
    for what, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, what
    assert dataset.attrs["experiment"] == name and dataset.attrs["version"] == experiment.VERSION


@EVERY
@pytest.mark.parametrize("place", [0.0, 1.0], ids=["first", "last"])
def test_a_cell_does_not_see_the_grid_around_it(name, place):
    experiment = found(name)
    tiny, (rtol, atol) = experiment.Setting.tiny(), LOOSE.get(name, (1e-6, 1e-9))
    whole, chosen = experiment.run(tiny), cell(tiny, place)
    alone = experiment.run(tiny.thinned(**chosen))
    for what, values in alone.data_vars.items():
        there = {axis: list(value) for axis, value in chosen.items() if axis in values.dims}
        same_close(values, whole[what].sel(there), rtol, atol, what)


def same_close(one: xr.DataArray, other: xr.DataArray, rtol: float, atol: float, what: str) -> None:
    if one.dtype.kind in "fc":
        np.testing.assert_allclose(one, other.transpose(*one.dims), rtol=rtol, atol=atol, err_msg=what)
    else:
        assert (one == other).all(), what


@EVERY
def test_presets_are_valid_and_the_smallest_is_tiny(name):
    experiment = found(name)
    presets = [preset for preset, method in inspect.getmembers(experiment.Setting, inspect.ismethod)
               if not preset.startswith("_") and not any(
                   one.default is one.empty for one in inspect.signature(method).parameters.values())]
    assert {"tiny", "book"} <= set(presets)
    for preset in presets:
        assert settings.to_json(getattr(experiment.Setting, preset)()), preset


def wrong_values(hint):
    """Values outside the domain of an annotation, one kind of mistake each."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is tuple:
        yield from ((), 3)
        yield from ((value,) for value in wrong_values(parts[0]))
    elif kind is Annotated:
        yield from wrong_values(parts[0])
        yield from (part.low - 1 for part in parts if isinstance(part, Range) and part.low > -np.inf)
    elif kind is Literal:
        yield "abracadabra"
    elif hint is int:
        yield from (2.5, "many")
    elif hint is float:
        yield from (float("nan"), "fast")


@EVERY
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_gets_one_sentence_that_names_it(name):
    experiment = found(name)
    hints, tiny = typing.get_type_hints(experiment.Setting, include_extras=True), experiment.Setting.tiny()
    for field in fields(tiny):
        for value in wrong_values(hints[field.name]):
            with pytest.raises(ValueError, match=f"^{field.name} ") as error:
                tiny.thinned(**{field.name: value})
            assert "\n" not in str(error.value), field.name
    with pytest.raises(ValueError, match="^chunk names 'colour', which is no axis"):
        experiment.run(tiny, chunk={"colour": 1})


def kept_cell(experiment, chosen: dict[str, tuple]) -> xr.Dataset:
    """What is stored of some cells. An axis that any stored variable is an average over is run whole."""
    setting = experiment.Setting.paper().thinned(**chosen)
    measured = experiment.run(setting)
    kept = experiment.stored(measured) if hasattr(experiment, "stored") else measured
    averaged = {axis for what, values in kept.data_vars.items() if what in measured
                for axis in chosen if axis in set(measured[what].dims) - set(values.dims)}
    sizes = {axis: len(values) for axis, values in settings.axes(experiment.Setting.paper()).items()}
    if whole := {axis for axis in averaged if sizes[axis] > 1}:
        return kept_cell(experiment, {axis: value for axis, value in chosen.items() if axis not in whole})
    return kept


@pytest.mark.parametrize("name", [name for name in NAMES if results.path(name).is_file()])
@pytest.mark.parametrize("place", PLACES, ids=["first", "middle", "last"])
def test_cells_of_the_stored_result_again(name, place):
    if name in TOO_LONG:
        pytest.skip(TOO_LONG[name])
    experiment, stored = found(name), results.open(name)
    paper, (rtol, atol) = experiment.Setting.paper(), LOOSE.get(name, (1e-6, 1e-9))
    chosen = cell(paper, place, set(stored.dims))
    again = kept_cell(experiment, chosen)
    compared = 0
    for what, values in again.data_vars.items():
        there = {axis: list(values[axis].values) for axis in chosen if axis in values.dims}
        if what in stored and values.dtype.kind in "fiu":
            step = stored[what].encoding.get("scale_factor", 0.0)  # of packed numbers
            same_close(values, stored[what].sel(there), max(rtol, 1e-6), max(atol, step), what)
            compared += 1
    assert compared
