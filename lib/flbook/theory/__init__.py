"""What the theorems predict: boundaries and closed forms in numpy, one file a subject."""

from flbook.theory.boundaries import (
    averaging_error,
    cao_variable,
    kou_boundary,
    kou_variable,
    random_filters_error,
)

__all__ = [
    "averaging_error",
    "cao_variable",
    "kou_boundary",
    "kou_variable",
    "random_filters_error",
]
