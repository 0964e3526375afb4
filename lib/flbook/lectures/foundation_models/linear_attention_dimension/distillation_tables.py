"""Tables of Nishikawa, Higuchi and Suzuki (2025), copied: features of GPT-2's layers, and what they bought."""

import numpy as np

LEVEL = 64  # features per head and layer on average, as many as a head of GPT-2 has dimensions

DEGREES = np.array([  # Table 2: degrees of freedom at 2^-8, a row for each layer, a column for each head
    [4.7, 8.1, 4.5, 2.0, 3.6, 16.2, 4.5, 2.6, 4.1, 6.4, 5.0, 150.0],
    [10.5, 28.5, 155.1, 44.6, 173.8, 51.1, 9.9, 16.5, 17.5, 8.1, 88.9, 19.5],
    [9.9, 8.1, 1.8, 2.7, 3.4, 2.5, 24.5, 5.8, 2.8, 2.6, 12.1, 6.4],
    [15.1, 3.0, 1.4, 1.7, 39.8, 12.1, 1.6, 1.5, 1.5, 2.5, 12.6, 1.9],
    [1.8, 1.8, 11.3, 1.8, 42.1, 2.3, 4.0, 7.1, 22.6, 3.3, 31.6, 1.1],
    [8.9, 3.1, 3.7, 3.5, 3.7, 3.0, 6.9, 7.5, 4.7, 52.4, 21.4, 66.6],
    [3.3, 6.9, 68.9, 14.4, 43.5, 17.2, 107.4, 6.0, 4.3, 1.8, 32.2, 3.0],
    [3.6, 11.9, 3.1, 12.3, 7.6, 17.5, 33.0, 9.1, 4.9, 5.1, 2.3, 12.6],
    [24.9, 6.5, 19.6, 9.3, 5.5, 3.2, 10.2, 3.1, 5.7, 16.7, 22.4, 3.9],
    [18.5, 13.1, 15.9, 3.3, 22.7, 29.9, 14.1, 6.4, 20.2, 5.1, 3.9, 6.2],
    [7.9, 6.6, 26.1, 19.8, 18.2, 3.3, 8.7, 6.7, 43.2, 2.3, 17.1, 13.5],
    [5.1, 21.8, 22.5, 10.6, 30.0, 39.8, 27.2, 31.3, 5.0, 20.0, 2.8, 2.6],
])  # fmt: skip

CHOSEN = np.array([130, 182, 35, 44, 42, 65, 92, 33, 28, 34, 46, 39])  # Table 1: from degrees of freedom at 2^-4

# Table 3: mean accuracy over seven tasks, GPT-2; by the loss that features were trained with
ORIGINAL = 0.4266
FIXED = {"softmax": 0.3958, "direct": 0.4141, "L2": 0.3980}
BY_DEGREES = {"softmax": 0.4190, "direct": 0.4182, "L2": 0.3965}
# Table 6: the same for Pythia-1B, softmax loss
PYTHIA = {"original": 0.4279, "fixed": 0.4014, "by degrees": 0.4118}

# Table 11: error of the kernel in each layer, times 1000, features trained on it (L2)
ERROR_FIXED = np.array([8.7, 10.6, 3.74, 2.39, 3.48, 1.77, 1.8, 1.21, 1.19, 1.22, 1.32, 8.26])
ERROR_BY_DEGREES = np.array([7.83, 8.92, 4.15, 2.5, 3.48, 1.76, 1.76, 1.24, 1.33, 1.29, 1.32, 8.52])


def share_closed(fixed: float, chosen: float, original: float) -> float:
    """Share of what fixed dimensions lose against the original that the chosen ones win back."""
    return (chosen - fixed) / (original - fixed)
