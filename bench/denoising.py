"""A denoiser trained in coefficients against autograd on its weights, and what the dimension costs.

    python bench/denoising.py

Ten denoisers, m = 20, n = 30, d = 1000, the same expected loss: all together in coefficients, whose making counts, and
one after another in PyTorch, of which one is run and counts ten times. Then drawing and training them at d = 10^3 to
10^5, from Bartlett's draw. One core, float64; both ways in turn, five times, minimum of each.
"""

import time

import torch
from record import record

from flbook import GradientDescent, fit, rng
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining, draw_basis
from flbook.lectures.foundation_models.diffusion.noise_prediction import expected_loss, noising
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser

N, M, MU, SEEDS, STEPS, REPEATS = 30, 20, 5.0, 10, 300, 5
LR, LEVEL = 0.01, noising(0.2)
DIMENSIONS = (10**3, 10**4, 10**5)
SHARE = torch.tensor([1 / 2] * 2 + [1 / N] * N, dtype=torch.float64)


def vectors(d: int) -> tuple[torch.Tensor, TiedDenoiser]:
    """Two signals and the noise patches of every seed, and denoisers before training."""
    seeds = tuple(range(SEEDS))
    xi = rng.normal((N, d), seeds, "noise")
    xi[..., :2] = 0
    signals = MU * torch.eye(2, d, dtype=torch.float64).expand(SEEDS, 2, d)
    return torch.cat([signals, xi], 1), TiedDenoiser(d, M, 0.03, seed=seeds, dtype=torch.float64)


def in_coefficients(d: int) -> tuple[float, torch.Tensor]:
    """Seconds, and the weights of the first network."""
    x, model = vectors(d)
    begin = time.perf_counter()
    c = fit(DenoisingTraining.of(x, SHARE, model, *LEVEL), GradientDescent(LR), STEPS).params["c"]
    took = time.perf_counter() - begin
    return took, c[0, :, :M] @ model.w.detach()[0] + c[0, :, M:] @ x[0]


def by_autograd(d: int) -> tuple[float, torch.Tensor]:
    """The same for one network after another, from the time of the first."""
    x, model = vectors(d)
    x, w = x[0], model.w.detach()[0].clone().requires_grad_()
    descent = torch.optim.SGD([w], lr=LR)
    begin = time.perf_counter()
    for _ in range(STEPS):
        descent.zero_grad()
        expected_loss(w @ x.mT, w @ w.mT, SHARE, *LEVEL, d).backward()
        descent.step()
    return (time.perf_counter() - begin) * SEEDS, w.detach()


def drawn(d: int) -> float:
    """Seconds to draw and train all networks without a d-dimensional vector."""
    begin = time.perf_counter()
    basis = draw_basis(N, M, d, mu_norm=MU * (d / 1000) ** 0.5, sigma_0=1 / d**0.5, seed=tuple(range(SEEDS)))
    fit(DenoisingTraining(basis, SHARE, *LEVEL, d), GradientDescent(LR * 1000 / d), STEPS)
    return time.perf_counter() - begin


def main() -> None:
    """Measure, print, and write what was found beside this file."""
    torch.set_num_threads(1)
    in_coefficients(1000), drawn(1000)  # warm
    pairs = [(in_coefficients(1000), by_autograd(1000)) for _ in range(REPEATS)]
    ours, loop = (min(pair[way][0] for pair in pairs) for way in (0, 1))
    rounds = [[drawn(d) for d in DIMENSIONS] for _ in range(REPEATS)]
    seconds = [min(column) for column in zip(*rounds, strict=True)]
    found = {
        "networks, neurons, samples, steps": f"{SEEDS}, {M}, {N}, {STEPS}",
        "autograd over coefficients, d = 1000": round(loop / ours, 1),
        "largest difference of weights": float(f"{abs(pairs[0][0][1] - pairs[0][1][1]).max():.1e}"),
        "d": DIMENSIONS,
        "seconds to draw and train": [round(each, 4) for each in seconds],
        "largest over smallest": round(max(seconds) / min(seconds), 3),
        "one core": True,
    }
    record("denoising", found)


if __name__ == "__main__":
    main()
