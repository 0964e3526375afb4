"""Data models: each is a frozen dataclass that draws samples, keeps the hidden truth, and knows its own test law."""

from flbook.data.flipped_images import FlippedImages
from flbook.data.graphs import TwoBlockGraph, on_graph
from flbook.data.prompts import LinearPrompts, Prompts, TaskPool
from flbook.data.recycled_noise import RecycledNoise
from flbook.data.signal_noise import Sample, SignalNoise
from flbook.data.single_index import SingleIndex, SingleIndexSample
from flbook.data.teacher import Taught, Teacher
from flbook.data.xor import XorSignalNoise

__all__ = [
    "FlippedImages",
    "LinearPrompts",
    "Prompts",
    "RecycledNoise",
    "Sample",
    "SignalNoise",
    "SingleIndex",
    "SingleIndexSample",
    "TaskPool",
    "Taught",
    "Teacher",
    "XorSignalNoise",
]
__all__ = ["Sample", "SignalNoise", "Taught", "Teacher", "TwoBlockGraph", "on_graph"]
