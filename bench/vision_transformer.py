"""The grid of the vision transformer's lecture: one ensemble in the span of the tokens against one network at a time.

    python bench/vision_transformer.py

The grid: n = 4, 8, 16, ten signal strengths, ten seeds, d = 1200, 16 tokens, 400 steps, 128 fresh samples a network.
The loop trains one `nn.Module` at a time by autograd and `torch.optim.SGD` on d-dimensional tokens; it is timed on a
sample of cells and scaled to the grid. Both times include drawing data and testing; one core.
"""

import time

import torch
from record import record
from torch import nn

from flbook.lectures.benign_overfitting.vision_transformer import experiment

SETTING = experiment.setting("book", model=("transformer",), d=(1200,), n=(4, 8, 16))
CELLS = SETTING.n_snr2[3:9:5]  # of every n, for the loop
REPEATS = 5


class Network(nn.Module):
    """The usual way: linear layers without bias, softmax, mean."""

    def __init__(self, d: int, h: int):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, width, bias=False) for width in (h, h, 1))
        for layer, size in ((self.q, SETTING.sigma_0), (self.k, SETTING.sigma_0), (self.v, SETTING.sigma_v)):
            nn.init.normal_(layer.weight, std=size)

    def forward(self, x):
        """Logits of a batch (n, L, d)."""
        weight = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), dim=-1)
        return (weight @ self.v(x)).squeeze(-1).mean(1)


def samples(n: int, d: int, snr: float):
    """Tokens and labels, alternating."""
    y = 1.0 - 2.0 * (torch.arange(n) % 2)
    x = torch.randn(n, SETTING.tokens, d) / d**0.5
    x[:, 0] = 0
    x[torch.arange(n), 0, (y < 0).long()] = snr
    return x, y


def one_network(n: int, d: int, snr: float) -> float:
    """Test loss of one cell and seed, the usual way."""
    x, y = samples(n, d, snr)
    network = Network(d, SETTING.h)
    optimizer = torch.optim.SGD(network.parameters(), lr=SETTING.rate * n * SETTING.tokens)
    for _ in range(SETTING.steps):
        optimizer.zero_grad()
        torch.nn.functional.softplus(-y * network(x)).mean().backward()
        optimizer.step()
    x, y = samples(2 * SETTING.points, d, snr)
    with torch.no_grad():
        return torch.nn.functional.softplus(-y * network(x)).mean().item()


def loop() -> tuple[float, list[float]]:
    """Seconds for the whole grid, scaled from the sample, and the test losses of the sample."""
    begin = time.perf_counter()
    losses = [one_network(n, d, (a / n) ** 0.5) for d in SETTING.d for n in SETTING.n for a in CELLS]
    share = len(CELLS) / (len(SETTING.n_snr2) * len(SETTING.seed))
    return (time.perf_counter() - begin) / share, losses


def ensemble():
    """Seconds for the whole grid, and its result."""
    begin = time.perf_counter()
    dataset = experiment.measure(SETTING)
    return time.perf_counter() - begin, dataset


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    theirs, ours, losses = [], [], []
    for _ in range(REPEATS):  # the two ways in turn, so that a slow minute hits both
        seconds, row = loop()
        theirs.append(seconds)
        losses.append(row)
        seconds, dataset = ensemble()
        ours.append(seconds)
    mean = torch.tensor(losses).mean(0)
    cells = dataset.test_loss.sel(n_snr2=list(CELLS)).mean("seed").squeeze(("model", "d"))
    found = {
        "seconds for 300 networks, one at a time (scaled)": min(theirs),
        "seconds for 300 networks, one ensemble": min(ours),
        "ratio": min(theirs) / min(ours),
        "largest difference of mean test losses": float((mean - torch.from_numpy(cells.values).flatten()).abs().max()),
        "runs averaged for it": [REPEATS, len(SETTING.seed)],
        "one core": True,
    }
    record("vision_transformer", found)


if __name__ == "__main__":
    main()
