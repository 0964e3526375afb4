"""What the theorems predict: boundaries and closed forms in numpy, one file a subject."""

from flbook.theory.signal_noise import averaging_error, cao_boundary, cao_variable, kou_boundary, kou_variable

__all__ = ["averaging_error", "cao_boundary", "cao_variable", "kou_boundary", "kou_variable"]
