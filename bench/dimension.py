"""What the dimension d costs: nothing in Gram coordinates, and everything outside them.

    python bench/dimension.py

Sixteen networks, drawn, trained for 200 steps and tested, at d = 10^3 to 10^7, in Gram coordinates from Bartlett's
draw; beside it one network in d dimensions, up to 10^5. One core; the dimensions in turn, five times, minimum of each.
"""

import time

import torch
from record import record

from flbook import measures
from flbook.data.signal_noise import SignalNoise, flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.models.cnn import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

N, M, STEPS, SEEDS, R = 20, 10, 200, 16, 3.0
DIMENSIONS = (10**3, 10**4, 10**5, 10**6, 10**7)
DIRECT = (10**3, 10**4, 10**5)
REPEATS = 5


def signal(d: int) -> float:
    """Signal strength with n |mu|^4 / d = R at every dimension."""
    return (R * d / N) ** 0.25


def in_coordinates(d: int) -> float:
    """Draw, train and test sixteen networks; mean test error."""
    gram = draw_gram(N, 2 * M, d, sigma_0=1e-8, seed=tuple(range(SEEDS)))
    gram = gram.with_signals(torch.tensor([signal(d)], dtype=torch.float64))
    problem = GramTraining(gram, *flipped_labels(N, 0.1, 0), scale=1 / M)
    params = fit(problem, GradientDescent(N * M / d), STEPS).params
    return float(measures.test_error(problem, params).mean())


def in_dimensions(d: int) -> float:
    """Draw, train and test one network with d-dimensional vectors; test error on 200 fresh samples."""
    data = SignalNoise(n=N, d=d, mu_norm=signal(d), flip_prob=0.1)
    train, test = data.draw(0), data.draw_test(200)
    problem = Training(TwoLayerCNN(d, M, sigma_0=1e-8), train.x, train.observed)
    params = fit(problem, GradientDescent(N * M / d), STEPS).params
    return float(measures.test_error_on(problem, params, test.x, test.y))


def timed(run, d: int) -> tuple[float, float]:
    """Seconds and result."""
    begin = time.perf_counter()
    result = run(d)
    return time.perf_counter() - begin, result


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    jobs = [(in_coordinates, d) for d in DIMENSIONS] + [(in_dimensions, d) for d in DIRECT]
    in_coordinates(DIMENSIONS[0])  # warm
    rounds = [[timed(run, d) for run, d in jobs] for _ in range(REPEATS)]
    best = [min(column) for column in zip(*rounds, strict=True)]
    ours, direct = best[: len(DIMENSIONS)], best[len(DIMENSIONS) :]
    seconds = [each for each, _ in ours]
    print(f"{'d':>10}  {'16 networks, coordinates':>26}  {'test error':>10}  {'1 network, d dimensions':>24}")
    for k, d in enumerate(DIMENSIONS):
        beside = f"{direct[k][0]:22.3f} s" if k < len(DIRECT) else ""
        print(f"{d:10d}  {ours[k][0]:24.3f} s  {ours[k][1]:10.3f}  {beside}")
    found = {
        "d": DIMENSIONS,
        "seconds for 16 networks in coordinates": [round(each, 4) for each in seconds],
        "largest over smallest": max(seconds) / min(seconds),
        "direct over coordinates, per network, at d = 10^3 to 10^5": [
            SEEDS * there / here for (there, _), here in zip(direct, seconds, strict=False)
        ],
        "one core": True,
    }
    record("dimension", found)


if __name__ == "__main__":
    main()
