"""What the theorems predict: boundaries and closed forms in numpy, one file a subject."""

from flbook.theory.growth import blow_up_time, time_to_reach
from flbook.theory.label_noise import first_stage_boundary, recycled_boundary
from flbook.theory.mixture import max_margin
from flbook.theory.random_features import random_features_risk, subset_risk
from flbook.theory.signal_noise import (
    averaging_error,
    cao_boundary,
    cao_variable,
    kou_boundary,
    kou_variable,
    random_filters_error,
)
from flbook.theory.token_selection import opposed_token_share, selection_ratio, uniform_attention_error
from flbook.theory.xor import lazy_angle, network_angle, one_patch_lazy_error, theorem_angle

__all__ = [
    "averaging_error",
    "blow_up_time",
    "cao_boundary",
    "cao_variable",
    "first_stage_boundary",
    "kou_boundary",
    "kou_variable",
    "lazy_angle",
    "max_margin",
    "network_angle",
    "one_patch_lazy_error",
    "opposed_token_share",
    "random_features_risk",
    "random_filters_error",
    "recycled_boundary",
    "selection_ratio",
    "theorem_angle",
    "subset_risk",
    "time_to_reach",
    "uniform_attention_error",
]
