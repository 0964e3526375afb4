"""The phase diagram of Kou et al. (2023) against the usual research script, on the same cells, on one core.

    python bench/relu_heatmap.py            ratio on a sample of cells, then the full 100 x 100 x 10 grid

The script trains one `nn.Module` at a time: data built sample by sample, autograd, `torch.optim.SGD`, a fresh test set.
flbook trains all cells of a dimension as one ensemble in Gram coordinates. Both times include drawing data and testing.
"""

import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from record import record
from torch import nn

from flbook import devices
from flbook.lectures.benign_overfitting.relu_heatmap import experiment

CELLS = {"mu": (1.0, 3.0, 5.0, 8.0), "d": (100, 600, 1090)}  # of the grid, for the loop
SEEDS = 4
REPEATS = 5


class Network(nn.Module):
    """The authors' network: m filters a class over two patches, PyTorch's default start."""

    def __init__(self, d: int, m: int = 10):
        super().__init__()
        self.filters = nn.ModuleDict({"+": nn.Conv1d(1, m, d, stride=d), "-": nn.Conv1d(1, m, d, stride=d)})

    def forward(self, x):
        """Two logits from (n, 2 d) inputs."""
        score = {sign: conv(x.unsqueeze(1)).relu().mean(2).sum(1) for sign, conv in self.filters.items()}
        return torch.stack([score["-"], score["+"]], 1)


def samples(count: int, mu: torch.Tensor, balanced: bool):
    """Inputs and labels, one sample after another; the first tenth of balanced ones is flipped."""
    rows, truth, observed = [], [], []
    for i in range(count):
        y = 1 - 2 * (i % 2) if balanced else 1 - 2 * int(torch.randint(2, (1,)))
        rows.append(torch.cat([y * mu, torch.randn(len(mu))]))
        truth.append((y + 1) // 2)
        observed.append(1 - truth[-1] if balanced and i < count // 10 else truth[-1])
    return torch.stack(rows), torch.tensor(truth), torch.tensor(observed)


def one_network(mu_norm: float, d: int) -> float:
    """Test error of one cell and seed, the usual way."""
    mu = torch.zeros(d)
    mu[0] = mu_norm
    x, _, labels = samples(20, mu, balanced=True)
    network, criterion = Network(d), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        criterion(network(x), labels).backward()
        optimizer.step()
    x, truth, _ = samples(1000, mu, balanced=False)
    with torch.no_grad():
        return (network(x).argmax(1) != truth).float().mean().item()


def loop() -> tuple[float, list[float]]:
    """Seconds a network, and the mean error of each cell."""
    begin = time.perf_counter()
    errors = [[one_network(mu, d) for _ in range(SEEDS)] for d in CELLS["d"] for mu in CELLS["mu"]]
    seconds = (time.perf_counter() - begin) / (SEEDS * len(errors))
    return seconds, [sum(row) / SEEDS for row in errors]


def ensemble(d: tuple[int, ...], device: str = "cpu") -> tuple[float, object]:
    """Seconds a network on all 100 signal strengths and ten seeds of some d, and the result."""
    setting = experiment.setting("paper", d=d)
    begin = time.perf_counter()
    dataset = experiment.measure(setting, device)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / (len(d) * len(setting.mu) * len(setting.seed)), dataset


def full_grid(device: str) -> float:
    """Seconds for 100 x 100 x 10: by two processes on a CPU, 25 dimensions at a time on a GPU."""
    begin = time.perf_counter()
    if device == "cpu":
        with tempfile.TemporaryDirectory() as cache, ProcessPoolExecutor(2, get_context("spawn")) as pool:
            experiment.run("paper", executor=pool, cache=cache)
    else:
        d = experiment.setting("paper").d
        for start in range(0, len(d), 25):
            ensemble(d[start : start + 25], device)
    return time.perf_counter() - begin


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    naive, ours, errors = [], [], []
    for _ in range(REPEATS):  # the two ways in turn, so that a slow minute hits both
        seconds, row = loop()
        naive.append(seconds)
        errors.append(row)
        ours.append(sum(ensemble((d,))[0] for d in CELLS["d"]) / len(CELLS["d"]))
    mean = torch.tensor(errors).mean(0).reshape(len(CELLS["d"]), -1)
    cells = ensemble(CELLS["d"])[1].test_error.sel(mu=list(CELLS["mu"])).mean("seed").squeeze()
    theirs = torch.from_numpy(cells.values)  # (d, mu)
    found = {
        "milliseconds a network, loop": 1e3 * min(naive),
        "milliseconds a network, ensemble": 1e3 * min(ours),
        "ratio": min(naive) / min(ours),
        "largest difference of mean test errors": float((mean - theirs).abs().max()),
        "runs averaged for it": [REPEATS * SEEDS, 10],
        "one core": True,
    }
    os.environ["OMP_NUM_THREADS"] = "1"  # for the two processes
    found |= {f"seconds for the full grid, {device}": full_grid(device) for device in devices.present()}
    record("relu_heatmap", found)


if __name__ == "__main__":
    main()
