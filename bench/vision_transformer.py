"""The grid of the vision transformer's lecture: one ensemble in the span of the tokens against one network at a time.

    python bench/vision_transformer.py

The grid: nine signal strengths and ten seeds, as in the page's main figure, at n = 4, 8, 16, in d = 1200, with 16
tokens, 400 steps and 128 fresh samples per network. The loop trains one `nn.Module` at a time by autograd and
`torch.optim.SGD` on d-dimensional tokens; it is timed at two strengths, on either side of the border, and scaled to
the grid. Both times include drawing data and testing; processor time of one core.
"""

import time

import torch
from record import record
from torch import nn

from flbook.lectures.benign_overfitting.vision_transformer import experiment

SETTING = experiment.setting("book", model=("transformer",), d=(1200,), n=(4, 8, 16))
NETWORKS = len(SETTING.n) * len(SETTING.n_snr2) * len(SETTING.seed)
CELLS = (2.0, 8.0)  # n SNR² of every n, for the loop
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
    begin = time.process_time()
    losses = [one_network(n, d, (a / n) ** 0.5) for d in SETTING.d for n in SETTING.n for a in CELLS]
    return (time.process_time() - begin) * NETWORKS / len(losses), losses


def ensemble():
    """Seconds for the whole grid, and its result."""
    begin = time.process_time()
    dataset = experiment.measure(SETTING)
    return time.process_time() - begin, dataset


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
        f"seconds for {NETWORKS} networks, one at a time (scaled)": min(theirs),
        f"seconds for {NETWORKS} networks, one ensemble": min(ours),
        "ratio": min(theirs) / min(ours),
        "largest difference of mean test losses": float((mean - torch.from_numpy(cells.values).flatten()).abs().max()),
        "runs averaged for it": [REPEATS, len(SETTING.seed)],
        "one core": True,
    }
    record("vision_transformer", found)


if __name__ == "__main__":
    main()
