"""The heat map of Karhadkar et al. (2024) against the usual research script, on the same cells, on one core.

    python bench/leaky_relu_heatmap.py      ratio on a sample of cells, then n = 50, ..., 150 by d/n = 1, ..., 10 by 5

The script trains one `nn.Module` at a time in d dimensions: autograd on the hinge loss, `torch.optim.SGD`, until the
loss is zero. Three versions of it: the plain loop sums the loss sample by sample and looks at a fresh test set of 1000
after every step, as the authors' own does (one small cell, since it is slow); the batched loop takes all samples at
once; the tuned loop looks at the test set once, at the end. flbook trains all dimensions and trials of one n as an
ensemble in coefficients on the samples, where samples of margin 1 cost nothing. All times include drawing data and
testing.
"""

import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from record import record
from torch import nn

from flbook.lectures.benign_overfitting.leaky_relu import experiment

PLAIN = (50, 8)  # the cell of the plain loop
CELLS = ((50, 2), (50, 8), (100, 2), (100, 8), (150, 4))  # n and d/n, for the loop
REPEATS = 2


class Network(nn.Module):
    """64 filters without bias, a leaky ReLU, output weights +1 and -1 that do not train."""

    def __init__(self, d: int, hidden: int = 64, leak: float = 0.1):
        super().__init__()
        self.first, self.activation = nn.Linear(d, hidden, bias=False), nn.LeakyReLU(leak)
        nn.init.normal_(self.first.weight, std=1 / (hidden * d**0.5))
        self.register_buffer("signs", 1.0 - 2.0 * (torch.arange(hidden) % 2))

    def forward(self, x):
        """One output a sample."""
        return self.activation(self.first(x)) @ self.signs


def samples(count: int, d: int, gamma: float, flips: int):
    """Inputs, true labels, and labels with the first few flipped."""
    truth = 1.0 - 2.0 * (torch.arange(count) % 2)
    noise = torch.randn(count, d) / d**0.5
    noise[:, 0] = 0
    x = (1 - gamma) ** 0.5 * noise
    x[:, 0] += gamma**0.5 * truth
    return x, truth, torch.where(torch.arange(count) < flips, -truth, truth)


def one_network(n: int, ratio: int, watch: bool, plain: bool = False) -> float:
    """Test error of one network trained to zero hinge loss; `watch`: tested every step, `plain`: sample by sample."""
    d, gamma = ratio * n, 5 / n
    x, _, labels = samples(n, d, gamma, n // 10)
    network = Network(d)
    optimizer = torch.optim.SGD(network.parameters(), lr=1 / (64 * n))
    fresh, truth, _ = samples(1000, d, gamma, 0)

    def test_error() -> float:
        with torch.no_grad():
            return (network(fresh) * truth <= 0).float().mean().item()

    while True:
        optimizer.zero_grad()
        if plain:
            loss = sum((1 - label * network(row)).relu() for row, label in zip(x, labels, strict=True))
        else:
            loss = (1 - labels * network(x)).relu().sum()
        if loss.item() == 0:
            return test_error()
        loss.backward()
        optimizer.step()
        if watch:
            test_error()


def loop(watch: bool) -> tuple[list[float], list[float]]:
    """Seconds and error of each cell."""
    seconds, errors = [], []
    for cell in CELLS:
        begin = time.perf_counter()
        errors.append(one_network(*cell, watch))
        seconds.append(time.perf_counter() - begin)
    return seconds, errors


def ensemble(n: int) -> tuple[float, object]:
    """Seconds a network on all dimensions and trials of one n, and the result."""
    setting = experiment.setting("paper", n=(n,))
    begin = time.perf_counter()
    dataset = experiment.measure(setting)
    return (time.perf_counter() - begin) / (len(setting.ratio) * len(setting.seed)), dataset


def full_grid() -> float:
    """Seconds for 550 networks by two processes."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache, ProcessPoolExecutor(2, get_context("spawn")) as pool:
        experiment.run("paper", executor=pool, cache=cache, chunk={"n": 1, "ratio": 5})
    return time.perf_counter() - begin


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = sorted({n for n, _ in CELLS})
    naive, tuned, errors, ours = [], [], [], {n: [] for n in sizes}
    for _ in range(REPEATS):  # the ways in turn, so that a slow minute hits all
        for seconds, watch in ((naive, True), (tuned, False)):
            took, row = loop(watch)
            seconds.append(took)
            errors.append(row)
        for n in sizes:
            took, dataset = ensemble(n)
            ours[n].append(took)
            ours[n, "error"] = dataset.test_error.sel(stop="zero hinge loss").squeeze().mean("seed")
    begin = time.perf_counter()
    one_network(*PLAIN, watch=True, plain=True)
    plain = time.perf_counter() - begin
    best, quick = (torch.tensor(each).amin(0).tolist() for each in (naive, tuned))
    here = [min(ours[n]) for n, _ in CELLS]
    mean = torch.tensor(errors).mean(0)
    theirs = torch.tensor([float(ours[n, "error"].sel(ratio=ratio)) for n, ratio in CELLS])
    found = {
        "cells (n, d/n)": CELLS,
        "milliseconds a network, plain loop, one cell": 1e3 * plain,
        "milliseconds a network, batched loop": [1e3 * one for one in best],
        "milliseconds a network, tuned loop": [1e3 * one for one in quick],
        "milliseconds a network, ensemble": [1e3 * one for one in here],
        "ratio, plain loop": plain / here[CELLS.index(PLAIN)],
        "ratio, batched loop": sum(best) / sum(here),
        "ratio, tuned loop": sum(quick) / sum(here),
        "largest difference of mean test errors": float((mean - theirs).abs().max()),
        "runs averaged for it": [2 * REPEATS, 5],
        "one core": True,
    }
    os.environ["OMP_NUM_THREADS"] = "1"  # for the two processes
    found["seconds for the full grid, two processes"] = full_grid()
    record("leaky_relu_heatmap", found)


if __name__ == "__main__":
    main()
