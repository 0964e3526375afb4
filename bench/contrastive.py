"""What contrastive pre-training in coefficients saves against a plain PyTorch loop, and what a phase diagram costs.

    python bench/contrastive.py

The paper's setting, two modalities: 100 pairs, 50 neurons, d = 2000; 200 epochs. The loop: autograd, one network at a
time. In coefficients: all networks at once, from the same data, whose inner products count; and from drawn Gram
matrices at d = 2000 and 200 000. One core, float64; both ways in turn, three times, minimum of each. Then a diagram of
12 x 12 cells, 4 seeds, with one modality and with two, every cell trained by itself, n = 50, 30 neurons, float32.
"""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch
from record import record

from flbook import GradientDescent, fit
from flbook.lectures.foundation_models.contrastive import Setting
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import other_labels

SEEDS, LOOPED, EPOCHS, LR, REPEATS = (0, 1, 2, 3), 2, 200, 0.01, 3
DATA = TwoModalities()


def encoders(seed: tuple[int, ...]) -> tuple[PatchEncoder, PatchEncoder]:
    """Two encoders a seed."""
    return tuple(PatchEncoder(DATA.d, 50, 0.001, seed, role, torch.float64) for role in ("weights", "second weights"))


def looped() -> tuple[float, torch.Tensor]:
    """Seconds a network, and the weights of the first encoders, as one would write it in PyTorch."""
    given = [(DATA.draw((seed,)), encoders((seed,))) for seed in SEEDS[:LOOPED]]
    begin = time.perf_counter()
    for pairs, (first, second) in given:
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=LR)
        negatives = other_labels(pairs.y)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            TWO_MODALITIES(first.flat(pairs.x), second.flat(pairs.second), negatives).sum().backward()
            optimizer.step()
    return (time.perf_counter() - begin) / LOOPED, torch.cat([pair[0].w.detach() for _, pair in given])


def in_coefficients() -> tuple[float, torch.Tensor]:
    """Seconds a network, and weights of the first encoders, of all networks at once from the same data."""
    pairs, nets = DATA.draw(SEEDS), encoders(SEEDS)
    begin = time.perf_counter()
    problem = ContrastiveTraining.of(pairs, nets, TWO_MODALITIES, other_labels(pairs.y))
    params = fit(problem, GradientDescent(LR), EPOCHS).params
    took = (time.perf_counter() - begin) / len(SEEDS)
    moved = params["mu"][:, 0, :, None] * pairs.mu[0] + params["xi"][:, 0] @ pairs.x[..., 1, :]
    return took, (nets[0].w.detach() + moved)[:LOOPED]


def drawn(d: int) -> float:
    """Seconds a network from drawn Gram matrices, at the same phase variable in every dimension."""
    grow = (d / 2000) ** 0.5
    begin = time.perf_counter()
    data = TwoModalities(d=d, mu_norm=5 * grow, second_norm=15 * grow)
    problem = drawn_pairs(data, 50, 0.001 / grow, TWO_MODALITIES, 2, SEEDS)
    fit(problem, GradientDescent(LR / grow**2), EPOCHS)
    return (time.perf_counter() - begin) / len(SEEDS)


def row(setting: Setting, strength: int) -> int:
    """One row of the diagram, 12 cells of two modalities and one of a single modality; how many networks."""
    torch.set_num_threads(1)
    d, trained = setting.d[0], 0
    for ratio in (None, *range(-3, 9)):
        size = (2 ** (strength / 3) * d / setting.n) ** 0.5
        data = TwoModalities(setting.n, d, size, size * 2 ** ((ratio or 0) / 3))
        loss = ONE_MODALITY if ratio is None else TWO_MODALITIES
        count = 1 if ratio is None else 2
        problem = drawn_pairs(data, setting.m, setting.start / d**0.5, loss, count, setting.seed).to(torch.float32)
        fit(problem, GradientDescent(setting.lr(d)), setting.steps)
        trained += len(setting.seed)
    return trained


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    rounds = [(looped(), in_coefficients(), drawn(2000), drawn(200_000)) for _ in range(REPEATS)]
    loop, ours = (min(one[way][0] for one in rounds) for way in (0, 1))
    difference = (rounds[0][0][1] - rounds[0][1][1]).abs().max()
    low, high = (min(one[way] for one in rounds) for way in (2, 3))
    begin = time.perf_counter()
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        networks = sum(pool.map(partial(row, Setting(seed=SEEDS)), range(-5, 7)))
    took = time.perf_counter() - begin
    record("contrastive", {
        "networks, pairs, epochs": f"{len(SEEDS)}, {DATA.n}, {EPOCHS}",
        "d = 2000: loop over coefficients, seconds": round(loop / ours, 1),
        "d = 2000: largest difference of weights": float(f"{difference:.1e}"),
        "d = 200 000 over d = 2000, seconds": round(high / low, 2),
        "phase diagram, 12 x 12 cells, 4 seeds, two processes: seconds": round(took, 1),
        "phase diagram: networks": networks,
    })


if __name__ == "__main__":
    main()
