"""Figures, drawn from Datasets only: every figure's data can be saved, and a stored result draws like a fresh one.

Every function returns the matplotlib Figure; ``show(fig, alt="...")`` puts it on the page. Colours mean the same
everywhere: signal, noise, test and train below; theory is black and dashed, chance and Bayes levels are dotted.
"""

from flbook.plots.curves import coefficient_race, learning_curves
from flbook.plots.dots import dots
from flbook.plots.explore import live
from flbook.plots.exponents import exponents
from flbook.plots.frames import frames
from flbook.plots.laws import collapse, scaling
from flbook.plots.look import CHANCE, NOISE, SIGNAL, TEST, THEORY, TRAIN, log_ticks, looks, panels, shared_legend, style
from flbook.plots.overview import overview
from flbook.plots.phase import phase_diagram
from flbook.plots.picture import png, show
from flbook.plots.schematic import Schematic
from flbook.plots.series import series
from flbook.plots.tiles import filter_sheet, picture_sheet

__all__ = [
    "CHANCE",
    "NOISE",
    "SIGNAL",
    "Schematic",
    "TEST",
    "THEORY",
    "TRAIN",
    "coefficient_race",
    "collapse",
    "dots",
    "exponents",
    "filter_sheet",
    "frames",
    "learning_curves",
    "live",
    "log_ticks",
    "looks",
    "overview",
    "panels",
    "phase_diagram",
    "picture_sheet",
    "png",
    "scaling",
    "series",
    "shared_legend",
    "show",
    "style",
]
