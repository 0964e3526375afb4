"""Runs: a setting, the sweep over its axes, the chunks that a sweep is cut into, and what is stored of it."""

from flbook.runs.experiment import Experiment
from flbook.runs.labels import labelled, single_precision
from flbook.runs.settings import Grid, among, axis, lattice

__all__ = ["Experiment", "Grid", "among", "axis", "labelled", "lattice", "single_precision"]
