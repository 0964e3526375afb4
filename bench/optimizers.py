"""What training in coefficients and in ensembles saves, rule by rule, against a loop of PyTorch's own optimizers.

    python bench/optimizers.py

256 two-layer networks on signal-noise data, n = 20, m = 10. Rules linear in gradients: in coefficients, at d = 1000,
and that the weights are the same. Adam and sign descent, which leave the span: all networks at once in weights, at
d = 200 and d = 1000. The loop trains 8 of the 256 and counts them 32 times. One core, float64 in coefficients and
float32 in weights; both ways in turn, five times, minimum of each. Then what a step costs beside its gradient, at 64 MB
of weights.
"""

import time
from functools import partial

import torch
from record import record

from flbook import SignalNoise, Training, TwoLayerCNN, fit
from flbook.dynamics.gram import GramTraining
from flbook.models.activations import ReLUPower
from flbook.training.optimizers import Adam, GradientDescent, Momentum, RMSProp, SharpnessAware, SignDescent

N, M, MEMBERS, LOOPED, STEPS, REPEATS = 20, 10, 256, 8, 100, 5
LR = 0.05
LINEAR = {"gradient descent": GradientDescent(LR), "momentum": Momentum(LR), "SAM": SharpnessAware(LR, 0.1)}
SIGNED = {"Adam": Adam(1e-3), "sign descent": SignDescent(1e-3)}
LARGE = 3200  # dimension at which the weights of all networks take 64 MB


def networks(d: int, seeds: tuple[int, ...], dtype: torch.dtype) -> tuple:
    """A data model, its samples and networks, one a seed; the slope of squared ReLU has no jump to trip over."""
    data = SignalNoise(n=N, d=d)
    return data, data.draw(seeds), TwoLayerCNN(d, M, 0.01, ReLUPower(2), seed=seeds, dtype=dtype)


def of_torch(rule, parameters) -> torch.optim.Optimizer:
    """PyTorch's own optimizer of a rule; SAM and sign descent take the steps that gradient descent takes."""
    if isinstance(rule, Adam):
        return torch.optim.Adam(parameters, lr=rule.lr)
    return torch.optim.SGD(parameters, lr=rule.lr, momentum=rule.beta if isinstance(rule, Momentum) else 0.0)


def looped(rule, d: int, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """Seconds and weights of one network after another, as one would write it in PyTorch."""
    given, found = [networks(d, (seed,), dtype) for seed in range(LOOPED)], []
    begin = time.perf_counter()
    for _, sample, cnn in given:
        x, y, optimizer = sample.x.to(dtype), sample.observed.to(dtype), of_torch(rule, cnn.parameters())
        for _ in range(STEPS):
            if isinstance(rule, SharpnessAware):
                _perturbed_gradient(cnn, x, y, rule.radius)
            else:
                _backward(cnn, x, y)
            if isinstance(rule, SignDescent):
                cnn.w.grad.sign_()
            optimizer.step()
        found.append(cnn.w.detach()[0])
    return (time.perf_counter() - begin) * MEMBERS / LOOPED, torch.stack(found)


def _backward(cnn, x, y) -> None:
    cnn.zero_grad()
    torch.nn.functional.softplus(-y * cnn(x)).mean().backward()


def _perturbed_gradient(cnn, x, y, radius: float) -> None:
    """SAM's gradient, at the worst point nearby; the weights are put back."""
    _backward(cnn, x, y)
    with torch.no_grad():
        reach = radius * cnn.w.grad / cnn.w.grad.norm()
        cnn.w += reach
    _backward(cnn, x, y)
    with torch.no_grad():
        cnn.w -= reach


def in_coefficients(rule, d: int, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """Seconds and weights of all networks at once, from their inner products, whose making counts."""
    data, sample, cnn = networks(d, tuple(range(MEMBERS)), dtype)
    begin = time.perf_counter()
    params = fit(GramTraining.of(data, sample, cnn), rule, STEPS).params
    took = time.perf_counter() - begin
    moved = params["mu"][:LOOPED, :, None] * sample.mu + params["xi"][:LOOPED] @ sample.xi[:LOOPED]
    return took, cnn.w.detach()[:LOOPED] + moved.unflatten(1, (2, M))


def in_weights(rule, d: int, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """Seconds and weights of all networks at once, in weights."""
    _, sample, cnn = networks(d, tuple(range(MEMBERS)), dtype)
    begin = time.perf_counter()
    params = fit(Training(cnn, sample.x, sample.observed), rule, STEPS).params
    return time.perf_counter() - begin, params["w"][:LOOPED]


def steps_in_gradients(rules: dict) -> dict[str, float]:
    """What one step of each rule costs in weights, in units of the gradient that it asks for."""
    _, sample, cnn = networks(LARGE, tuple(range(MEMBERS)), torch.float32)
    problem = Training(cnn, sample.x, sample.observed)
    params, seconds = problem.start(), {}
    calls = {name: partial(rule.step, problem, params, rule.start(params)) for name, rule in rules.items()}
    calls["gradient"] = partial(problem.gradient, params)
    for _ in range(REPEATS):  # in turn, so that a slow minute hits all
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            seconds.setdefault(name, []).append(time.perf_counter() - begin)
    gradient = min(seconds.pop("gradient"))
    return {name: min(took) / gradient for name, took in seconds.items()}


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    cases = [(name, rule, 1000, in_coefficients, torch.float64) for name, rule in LINEAR.items()]
    cases += [(name, rule, d, in_weights, torch.float32) for name, rule in SIGNED.items() for d in (200, 1000)]
    found = {"networks, samples, steps": f"{MEMBERS}, {N}, {STEPS}"}
    for name, rule, d, together, dtype in cases:
        pairs = [(together(rule, d, dtype), looped(rule, d, dtype)) for _ in range(REPEATS)]
        ours, loop = (min(pair[way][0] for pair in pairs) for way in (0, 1))
        found[f"{name}, d = {d}: loop over ensemble, seconds"] = round(loop / ours, 1)
        difference = abs(pairs[0][0][1] - pairs[0][1][1]).max()
        found[f"{name}, d = {d}: largest difference of weights"] = float(f"{difference:.1e}")
    for name, ratio in steps_in_gradients(LINEAR | SIGNED | {"RMSProp": RMSProp(1e-3)}).items():
        found[f"{name}, 64 MB of weights: step over gradient"] = round(ratio, 2)
    record("optimizers", found)


if __name__ == "__main__":
    main()
