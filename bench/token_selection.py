"""Token-selection attention of Sakamoto and Sato (2025): token coordinates against the usual PyTorch module.

    python bench/token_selection.py

Their setting: d = 2000, n = 20, 8 tokens, query and W trained for 1000 steps, a test pass over 1000 samples every ten.
The module keeps W as a d x d matrix and differentiates by autograd; token coordinates keep 160 x 160 numbers. Both
start from the same W and the same data and test on the same drawn samples; one core. The module is timed on fewer steps
and scaled, since every step costs the same; its logits are compared after those steps, in float64.
"""

import time

import torch
from record import record
from torch import nn

from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining, inner, times
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.models.cnn import initial_weights
from flbook.training.optimizers import GradientDescent

STEPS, EVERY, TEST = 1000, 10, 1000
TIMED = 20  # steps of the module
REPEATS = 5
LR = 5e-3
DATA = TokenSelection(n=20, d=2000, mu_norm=20.0, flip_prob=0.2)


class Attention(nn.Module):
    """The usual way: a dense W, scores X W^T q, a fixed head."""

    def __init__(self, w: torch.Tensor, head: torch.Tensor):
        super().__init__()
        self.w = nn.Parameter(w.clone())
        self.query = nn.Parameter(torch.zeros(len(head), 1, dtype=w.dtype))
        self.register_buffer("head", head[:, None])

    def forward(self, x):
        """Logits of a batch."""
        weight = torch.softmax((x @ self.w.T @ self.query).squeeze(-1), dim=-1)
        return (weight * (x @ self.head).squeeze(-1)).sum(1)


def module(train, test, w, steps):
    """Train, testing every ten steps; final logits on the training set, and the last test accuracy."""
    model = Attention(w, DATA.head.to(w.dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    x, y, fresh, truth = (part.to(w.dtype) for part in (train.x, train.observed, test.x, test.y))
    accuracy = []
    for step in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.softplus(-y * model(x)).mean().backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            with torch.no_grad():
                accuracy.append((model(fresh) * truth > 0).float().mean().item())
    with torch.no_grad():
        return model(x), accuracy[-1]


def coordinates(train, test, w, steps):
    """The same in token coordinates, inner products of training and test tokens included."""
    dtype = w.dtype
    train, test = (type(train)(*(part.to(dtype) for part in each)) for each in (train, test))
    problem = TokenTraining.of(DATA, train, w).to(dtype)
    x, fresh = train.x.flatten(0, 1), test.x.flatten(0, 1)
    plain, seen = inner(fresh, x), fresh @ ((x @ w.T) @ w).T
    values = (test.x @ DATA.head.to(dtype)).to(dtype)
    params, rule, accuracy = problem.start(), GradientDescent(LR), []
    for step in range(steps):
        params, _ = rule.step(problem, params, None)
        if (step + 1) % EVERY == 0:
            scores = times(seen, params["query"]) + times(plain, problem.added(params))
            logits = (scores.unflatten(0, (TEST, -1)).softmax(-1) * values).sum(-1)
            accuracy.append((logits * test.y > 0).float().mean().item())
    return problem.predict(params), accuracy[-1]


def timed(run, *arguments):
    """Seconds and result."""
    begin = time.perf_counter()
    result = run(*arguments)
    return time.perf_counter() - begin, result


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    train, test = DATA.draw(0), DATA.draw_test(TEST)
    exact = initial_weights(DATA.d, DATA.d, None, 0)
    there, here = module(train, test, exact, TIMED)[0], coordinates(train, test, exact, TIMED)[0]
    difference = float((there - here).abs().max() / there.abs().max())
    train, test = (type(train)(*(part.float() for part in each)) for each in (train, test))
    w = exact.float()
    ours, theirs = [], []
    for _ in range(REPEATS):  # the two ways in turn, so that a slow minute hits both
        ours.append(timed(coordinates, train, test, w, STEPS)[0])
        theirs.append(timed(module, train, test, w, TIMED)[0] * STEPS / TIMED)
    found = {
        "seconds for 1000 steps, module (scaled from 20 steps)": min(theirs),
        "seconds for 1000 steps, token coordinates": min(ours),
        "ratio": min(theirs) / min(ours),
        "largest relative difference of logits after 20 steps": difference,
        "one core": True,
    }
    record("token_selection", found)


if __name__ == "__main__":
    main()
