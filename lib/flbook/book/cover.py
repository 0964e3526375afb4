"""The figure of the landing page and the README: ``python -m flbook.book.cover book/_static/phase.png``."""

import sys
from pathlib import Path

import numpy as np

from flbook import lectures, plots, theory
from flbook.runs.shelf import Shelf


def draw():
    """The full grid of 100 000 networks: error on true labels, and the line that the theorem draws."""
    paper = Shelf(lectures).find("relu_heatmap").stored().sel(mu=slice(0.1, None))
    error = ((paper.test_error_flipped - 0.1) / 0.8).assign_attrs(long_name="error on fresh data", units="fraction")
    line = {"one number decides: n|μ|⁴ = 3 σ_ξ⁴ d": lambda d: theory.kou_boundary(20, d, constant=3.0)}
    fig = plots.phase_diagram(error, x="d", y="mu", boundary=line, limits=(0, 0.5))
    ax = fig.axes[0]
    look = {"ha": "center", "va": "center", "fontsize": 12, "fontweight": "bold"}
    ax.text(595, 8.0, "fits wrong labels, predicts right", color="white", **look)
    ax.text(595, 0.55, "fits, and guesses", color="black", **look)
    ax.set_yticks(np.arange(0, 11, 2))
    return fig


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(plots.png(draw()))
