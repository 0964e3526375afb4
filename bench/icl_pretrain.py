"""Tokens a second of pretraining the 12-layer transformer on fresh prompts: the library's loop against a plain one.

    python bench/icl_pretrain.py

The network: 12 layers, width 256, 8 heads; prompts of d = 20 with 40 examples, 81 tokens. The plain loop is the usual
code: PyTorch's own encoder layers under a causal mask, prompts sampled one by one on the host and moved to the device,
Adam, the loss fetched at every step. On a CPU both do the same products in float32, so the ratio shows what sampling
and bookkeeping cost; two steps of 16 prompts, one core. On a GPU the library's loop runs a captured step in bfloat16,
and the share of the matrix peak is measured against a product of two 8192 x 8192 matrices in bfloat16.
"""

import time

import torch
from record import record
from torch import nn

from flbook.data import LinearPrompts
from flbook.models.transformer import standard
from flbook.training.pretrain import Recipe, pretrain

D, N = 20, 40
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, STEPS = (64, 300) if DEVICE == "cuda" else (16, 2)
TOKENS = BATCH * (2 * N + 1)  # of a step
REPEATS = 5


class Plain(nn.Module):
    """The usual way: encoder layers of PyTorch under a causal mask."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, "gelu", batch_first=True, norm_first=True)
        self.read_in, self.read_out = nn.Linear(D, 256), nn.Linear(256, 1)
        self.position = nn.Parameter(0.02 * torch.randn(2 * N + 1, 256))
        self.layers = nn.TransformerEncoder(layer, 12, nn.LayerNorm(256), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(2 * N + 1))

    def forward(self, x, y):
        """Predictions at the tokens of the inputs."""
        labels = torch.cat([y[..., None], torch.zeros(*y.shape, D - 1, device=y.device)], -1)
        tokens = torch.stack([x, labels], 2).flatten(1, 2)[:, :-1]
        h = self.layers(self.read_in(tokens) + self.position, mask=self.mask, is_causal=True)
        return self.read_out(h)[:, ::2, 0]


def sampled():
    """One batch, prompt by prompt."""
    inputs, labels = [], []
    for _ in range(BATCH):
        task = torch.randn(D)
        x = torch.randn(N + 1, D)
        inputs.append(x)
        labels.append(torch.stack([torch.dot(task, row) for row in x]))
    return torch.stack(inputs).to(DEVICE), torch.stack(labels).to(DEVICE)


def plain(network, optimizer, steps: int) -> float:
    """Seconds for some steps of the usual loop."""
    begin = time.perf_counter()
    for _ in range(steps):
        x, y = sampled()
        loss = (network(x, y) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
    return time.perf_counter() - begin


def ours(steps: int) -> float:
    """Seconds for a run of the library's loop."""
    precision = "bfloat16" if DEVICE == "cuda" else "float32"
    recipe = Recipe(steps=steps, batch=BATCH, lr=1e-4, warmup=0, decay="constant", clip=0.0, precision=precision)
    network = standard(D, N)
    begin = time.perf_counter()
    pretrain(network, LinearPrompts(N, D), recipe, device=DEVICE)
    return time.perf_counter() - begin


def matrix_peak() -> float:
    """Floating-point operations a second of a large product in bfloat16."""
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - begin)


def operations() -> float:
    """Floating-point operations of a training step: six a weight and token, and attention's own twelve L² a width."""
    weights = sum(p.numel() for p in standard(D, N).gpt.blocks.parameters())
    length = 2 * N + 1
    return 6 * weights * TOKENS + 12 * 12 * BATCH * length**2 * 256


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = Plain().to(DEVICE)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    plain(network, optimizer, 1)
    start = min(ours(1) for _ in range(3))  # set-up and one step, taken off below
    theirs, mine = [], []
    for _ in range(REPEATS):  # the two ways in turn, so that a slow minute hits both
        theirs.append(plain(network, optimizer, STEPS))
        mine.append(ours(STEPS + 1) - start)
    rate, usual = (STEPS * TOKENS / min(times) for times in (mine, theirs))
    found = {
        "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu, one core",
        "batch, examples, dimension": [BATCH, N, D],
        "steps timed": STEPS,
        "tokens a second, plain loop": usual,
        "tokens a second, library": rate,
        "ratio": rate / usual,
    }
    if DEVICE == "cuda":
        found["share of the bfloat16 matrix peak"] = rate / TOKENS * operations() / matrix_peak()
    record("icl_pretrain", found)


if __name__ == "__main__":
    main()
