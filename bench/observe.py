"""Observations of a network against what one would write by hand: tangent kernels and the top of a Hessian.

    python bench/observe.py

By hand, a tangent kernel is the usual recipe of torch.func, all Jacobians at once; the top eigenvalue of a Hessian is
power iteration. One core; the network has two hidden layers of 256 and ten outputs.
"""

import time

import torch
from record import record
from torch import nn
from torch.func import functional_call, jacrev, vmap

from flbook import observe
from flbook.observe.hessian import products

N, OUTPUTS = 64, 10


def network() -> nn.Module:
    """Two hidden layers of 256."""
    torch.manual_seed(0)
    layers = nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, OUTPUTS)
    return nn.Sequential(*layers).double()


def by_hand(module: nn.Module, params: dict, x: torch.Tensor) -> torch.Tensor:
    """The tangent kernel from all Jacobians at once."""
    jacobians = vmap(jacrev(lambda p, one: functional_call(module, p, (one[None],))[0]), (None, 0))(params, x)
    flat = torch.cat([j.flatten(2) for j in jacobians.values()], -1)
    return torch.einsum("ikp,jkp->ij", flat, flat)


def seconds(act, repeats: int = 3) -> float:
    """The least time of some repeats."""
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        act()
        found.append(time.perf_counter() - begun)
    return min(found)


def power_products(loss, params: dict, value: float, rtol: float = 1e-4, most: int = 2000) -> int:
    """Products with the Hessian until power iteration has its largest eigenvalue to a relative error."""
    torch.manual_seed(1)
    times = products(loss, params)
    v = {name: torch.randn_like(p) for name, p in params.items()}
    for count in range(1, most + 1):
        length = sum(part.square().sum() for part in v.values()).sqrt()
        v = {name: part / length for name, part in v.items()}
        image = times(v)
        if abs(sum((image[name] * v[name]).sum() for name in v).item() / value - 1) < rtol:
            return count
        v = image
    return most


def main() -> None:
    """Compare and record."""
    torch.set_num_threads(1)
    module = network()
    f, params = observe.functional(module)
    x, y = torch.randn(N, 64).double(), torch.randn(N, OUTPUTS).double()
    ours, theirs = observe.ntk(f, params, x, chunk=16), by_hand(module, params, x)
    weights = sum(p.numel() for p in params.values())
    times = [seconds(lambda: observe.ntk(f, params, x, chunk=16)), seconds(lambda: by_hand(module, params, x))]

    def loss(params):
        return (f(params, x) - y).square().mean()

    exact = observe.sharpness(loss, params, steps=100, tol=1e-10).value
    steps = next(k for k in range(1, 100) if abs(observe.sharpness(loss, params, steps=k).value / exact - 1) < 1e-4)
    apart = (ours - theirs).abs().max() / theirs.abs().max()
    record("observe", {
        "tangent kernel: largest relative difference": f"{apart.item():.1e}",
        "tangent kernel: time over that by hand": round(times[0] / times[1], 2),
        "tangent kernel: Jacobians held, over those by hand": round(2 * 16 / N, 2),
        "Jacobians by hand, megabytes": round(N * OUTPUTS * weights * 8 / 1e6),
        "top of the Hessian to 1e-4: products, Lanczos": steps,
        "top of the Hessian to 1e-4: products, power iteration": power_products(loss, params, exact),
    })


if __name__ == "__main__":
    main()
