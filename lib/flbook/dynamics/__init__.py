"""Reduced dynamics: training in the few coordinates that a theorem says suffice."""

from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import draw_gram

__all__ = ["Gram", "GramTraining", "draw_gram"]
