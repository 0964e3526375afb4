"""Reduced dynamics: training in the few coordinates that a theorem says suffice."""

from flbook.dynamics.gram import Gram, GramTraining
from flbook.dynamics.orthogonal_noise import OrthogonalNoise
from flbook.dynamics.recycled import RecycledTest
from flbook.dynamics.wishart import draw_gram
from flbook.dynamics.xor import XorGramTraining, draw_xor_gram

__all__ = ["Gram", "GramTraining", "OrthogonalNoise", "RecycledTest", "XorGramTraining", "draw_gram", "draw_xor_gram"]
