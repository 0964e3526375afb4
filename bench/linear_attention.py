"""A forward and backward pass of linear attention: the recursion on moments against the usual N x N attention code.

    python bench/linear_attention.py

The setting of Ahn et al. (2023): batches of B = 1000 prompts, d = 5, N = 20 examples, 3 layers whose P and Q are full
6 x 6 matrices; one core, float32. The usual code forms all N x N scores of every prompt and layer. The recursion gets
the same prompts; forming their moments is part of its time and the only part that grows with N. For Gaussian prompts
the moments themselves can be drawn (Wishart's law, Bartlett's triangle), and then a whole training step, drawing
included, costs the same at N = 20 and at N = 2000: that is the second ratio. Its rival is the same step with prompts
drawn example by example.
"""

import time

import torch
from record import record

from flbook.data.prompts import LinearPrompts
from flbook.lectures.in_context_learning.shared.attention import LinearTransformer
from flbook.lectures.in_context_learning.shared.moments import draw_moments, moments_of, readout, risk

BATCH, D, LAYERS = 1000, 5, 3
LENGTHS = (20, 200, 2000)
REPEATS, PASSES = 5, 20


def loss_of(answers: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean squared error."""
    return (answers - target).square().mean()


def usual(model: LinearTransformer, context, query, target) -> tuple[torch.Tensor, ...]:
    """Loss and gradients, every token attending to every example."""
    loss = loss_of(model(context, query)[..., 0], target)
    return loss, *torch.autograd.grad(loss, [model.p, model.q])


def by_moments(model: LinearTransformer, context, query, target) -> tuple[torch.Tensor, ...]:
    """The same from the moments of the same prompts, which are formed here."""
    v = readout(model.p, model.q, moments_of(context))
    loss = loss_of((v * query[..., 0, :].T).sum(0), target)
    return loss, *torch.autograd.grad(loss, [model.p, model.q])


def drawn_step(model: LinearTransformer, prompts: LinearPrompts, step: int) -> tuple[torch.Tensor, ...]:
    """A training step whose data are drawn as moments."""
    loss = risk(model.p, model.q, draw_moments(prompts, BATCH, 0, step, torch.float32), torch.eye(D))
    return torch.autograd.grad(loss, [model.p, model.q])


def prompt_step(model: LinearTransformer, prompts: LinearPrompts, step: int) -> tuple[torch.Tensor, ...]:
    """A training step whose data are drawn example by example, then answered by moments."""
    drawn = prompts.draw(BATCH, 0, step, dtype=torch.float32)
    return by_moments(model, drawn.context, drawn.query, drawn.target[..., 0])


def seconds(run, *arguments, passes: int = PASSES) -> float:
    """Of one pass, as the mean of some."""
    begin = time.perf_counter()
    for _ in range(passes):
        run(*arguments)
    return (time.perf_counter() - begin) / passes


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    exact = LinearTransformer(D, LAYERS, start=0.1, dtype=torch.float64)
    drawn = LinearPrompts(n=20, d=D).draw(BATCH, 0)
    given = (drawn.context, drawn.query, drawn.target[..., 0])
    pairs = zip(usual(exact, *given), by_moments(exact, *given), strict=True)
    difference = max(float((one - other).detach().abs().max() / one.detach().abs().max()) for one, other in pairs)

    model = LinearTransformer(D, LAYERS, start=0.1)
    single = LinearPrompts(n=20, d=D).draw(BATCH, 0, dtype=torch.float32)
    given = (single.context, single.query, single.target[..., 0])
    laws = {n: LinearPrompts(n=n, d=D) for n in LENGTHS}
    theirs, ours = [], []
    steps: dict[int, list[float]] = {n: [] for n in LENGTHS}
    rival: dict[int, list[float]] = {n: [] for n in LENGTHS}
    for _ in range(REPEATS):  # the ways in turn, so that a slow minute hits all of them
        theirs.append(seconds(usual, model, *given))
        ours.append(seconds(by_moments, model, *given))
        for n, law in laws.items():
            steps[n].append(seconds(drawn_step, model, law, 0))
            rival[n].append(seconds(prompt_step, model, law, 0, passes=max(1, 100 // n)))
    found = {
        "milliseconds a pass, N x N attention, N = 20": 1e3 * min(theirs),
        "milliseconds a pass, recursion on moments, N = 20": 1e3 * min(ours),
        "ratio": min(theirs) / min(ours),
        "largest relative difference, loss and gradients": difference,
        **{f"milliseconds a step, moments drawn, N = {n}": 1e3 * min(steps[n]) for n in LENGTHS},
        "moments drawn, N = 2000 over N = 20": min(steps[2000]) / min(steps[20]),
        **{f"milliseconds a step, prompts drawn, N = {n}": 1e3 * min(rival[n]) for n in LENGTHS},
        "prompts drawn, N = 2000 over N = 20": min(rival[2000]) / min(rival[20]),
        "one core": True,
    }
    record("linear_attention", found)


if __name__ == "__main__":
    main()
