"""Data models: each is a frozen dataclass that draws samples, keeps the hidden truth, and knows its own test law."""

from flbook.data.signal_noise import Sample, SignalNoise
from flbook.data.teacher import Taught, Teacher

__all__ = ["Sample", "SignalNoise", "Taught", "Teacher"]
