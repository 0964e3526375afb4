"""Data models: each is a frozen dataclass that draws samples, keeps the hidden truth, and knows its own test law."""

from flbook.data.prompts import LinearPrompts, Prompts, TaskPool
from flbook.data.signal_noise import Sample, SignalNoise
from flbook.data.single_index import SingleIndex, SingleIndexSample

__all__ = [
    "LinearPrompts",
    "Prompts",
    "Sample",
    "SignalNoise",
    "SingleIndex",
    "SingleIndexSample",
    "TaskPool",
]
