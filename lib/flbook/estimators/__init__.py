"""Estimators: what data determine in one line or one linear system, with nothing to train.

`flbook.estimators.regression` finds weights from a sample; `flbook.estimators.in_context` answers queries about the
examples of a prompt.
"""

from flbook.estimators.in_context import (
    Averaging,
    DiscreteMMSE,
    GradientStep,
    KernelRidge,
    Lasso,
    LeastSquares,
    NearestNeighbours,
    Ridge,
    predict_each,
)
from flbook.estimators.regression import (
    averaging,
    hard_margin,
    kernel_ridge,
    min_norm,
    ridge,
    tuned_kernel_ridge,
    weighted_second_moment,
)

__all__ = [
    "Averaging",
    "DiscreteMMSE",
    "GradientStep",
    "KernelRidge",
    "Lasso",
    "LeastSquares",
    "NearestNeighbours",
    "Ridge",
    "averaging",
    "hard_margin",
    "kernel_ridge",
    "min_norm",
    "predict_each",
    "ridge",
    "tuned_kernel_ridge",
    "weighted_second_moment",
]
