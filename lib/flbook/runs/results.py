"""Stored results: Datasets that took longer than a page may take, kept in their lecture's folder as package data.

A file is refused when it answers another question than the page asks (another setting, another version of its
experiment) or when it is not whole. Commit, source digest, device, command and seconds are provenance and refuse
nothing.
"""

from pathlib import Path

import xarray as xr

from flbook.runs import files, settings


def path(name: str, suffix: str = ".nc") -> Path:
    """Where the result of an experiment is stored: in its lecture's folder, under its name."""
    experiment = settings.find(name)
    return Path(experiment.__file__).with_name(experiment.__name__.rpartition(".")[2] + suffix)


def open(name: str) -> xr.Dataset:
    """The stored result of an experiment at the paper's scale, in memory.

    Parameters
    ----------
    name
        The experiment, as ``"relu_heatmap"`` or ``"benign_overfitting/relu_heatmap"``.

    Raises
    ------
    ValueError
        If there is no such experiment, no file of it, or the file is of another setting or version, or not whole.

    Examples
    --------
    >>> sorted(open("relu_heatmap").sizes.items())
    [('d', 100), ('mu', 100), ('seed', 10)]
    """
    experiment, file = settings.find(name), path(name)
    again = f"`python -m flbook run {file.stem} --scale paper` makes it"
    if not file.is_file():
        raise ValueError(f"there is no stored result of {file.stem!r}; {again}.")
    try:
        dataset = files.load(file)
    except ValueError as error:
        raise ValueError(f"the stored result {error}; {again} anew.") from None
    found = dataset.attrs.get("version")
    if found != experiment.VERSION:
        raise ValueError(
            f"the stored result {file.name} is of version {found}, not {experiment.VERSION}; {again} anew."
        )
    if dataset.attrs.get("setting") != settings.to_json(experiment.Setting.paper()):
        raise ValueError(f"the stored result {file.name} is of another setting than Setting.paper(); {again} anew.")
    return dataset
