"""Stage two of attention over neurons (Oko et al. 2024): ridge regression in the T x T kernel against forming Gamma.

    python bench/ridge_in_attention.py

m = 2000 neurons, so Gamma has four million entries, and T = 600 prompts. The usual way writes the m^2 products
c_t q_t^T of every prompt as one row of a T x m^2 matrix (9.6 GB in float32) and solves; their m^2 x m^2 second moment
is out of the question. It is timed on 60 prompts and scaled in proportion to T, which flatters it, as the products of
all pairs of rows grow like T^2. The kernel is timed at T. Predictions for 200 fresh prompts are compared in float64 at
a size that both can do. One core.
"""

import resource
import time

import torch
from record import record

from flbook.lectures.in_context_learning.shared.attention_pretraining import Summaries, dual_prediction, dual_ridge
from flbook.rng import normal

M, T, FRESH = 2000, 600, 200
ROWS = 60  # prompts of the usual way: a matrix of 0.96 GB
REPEATS = 5
LAM = 1e-2


def drawn(prompts: int, m: int, dtype: torch.dtype) -> tuple[Summaries, Summaries]:
    """Summaries of prompts to learn from and of fresh ones; their law does not matter for the time."""
    def some(count: int, role: str) -> Summaries:
        c, q = (normal((count, m), 0, f"{role} {name}", dtype=dtype) / m**0.5 for name in "cq")
        return Summaries(c, q, normal((count,), 0, f"{role} y", dtype=dtype))

    return some(prompts, "seen"), some(FRESH, "fresh")


def by_kernel(seen: Summaries, fresh: Summaries) -> torch.Tensor:
    """Predictions without Gamma."""
    return dual_prediction(seen, dual_ridge(seen, LAM))(fresh.c, fresh.q)


def by_gamma(seen: Summaries, fresh: Summaries) -> torch.Tensor:
    """Predictions through the m^2 features and Gamma; with fewer prompts than features, by their products."""
    features = torch.einsum("tm,tl->tml", seen.c, seen.q).flatten(1)
    products = features @ features.T
    products.diagonal().add_(len(products) * LAM)
    gamma = (torch.linalg.solve(products, seen.y) @ features).unflatten(0, (seen.c.shape[1], -1))
    return torch.einsum("tm,ml,tl->t", fresh.c, gamma, fresh.q)


def timed(run, *arguments) -> float:
    """Seconds."""
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    small = drawn(50, 40, torch.float64)
    there, here = by_gamma(*small), by_kernel(*small)
    whole, part = drawn(T, M, torch.float32), drawn(ROWS, M, torch.float32)
    ours, theirs = [], []
    for _ in range(REPEATS):  # the two ways in turn, so that a slow minute hits both
        ours.append(timed(by_kernel, *whole))
        if not theirs:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        theirs.append(timed(by_gamma, *part))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scaled = min(theirs) * T / ROWS
    record("ridge_in_attention", {
        f"seconds, products formed, T = {ROWS}": min(theirs),
        f"seconds, products formed, scaled in T to {T}": scaled,
        f"seconds, kernel, T = {T}": min(ours),
        "ratio": scaled / min(ours),
        "megabytes of the products at T = 600": 4 * T * M**2 / 1e6,
        "megabytes of the kernel": 4 * T**2 / 1e6,
        f"peak megabytes measured, products of {ROWS} prompts": (peak - memory) / 1e3,
        "largest relative difference of predictions": float((there - here).abs().max() / there.abs().max()),
        "one core": True,
    })


if __name__ == "__main__":
    main()
