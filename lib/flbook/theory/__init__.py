"""What the theorems predict: boundaries and closed forms in numpy, one file a subject."""

from flbook.theory.growth import blow_up_time, time_to_reach
from flbook.theory.signal_noise import averaging_error, cao_boundary, cao_variable, kou_boundary, kou_variable

__all__ = [
    "averaging_error",
    "blow_up_time",
    "cao_boundary",
    "cao_variable",
    "kou_boundary",
    "kou_variable",
    "time_to_reach",
]
