"""Observations of a network against the libraries that one would use instead: same numbers, time, memory.

    pip install pyhessian curvlinops-for-pytorch backpack-for-pytorch mup
    python bench/libraries.py

Nothing else here needs these packages; where one is missing the script says so and records nothing. The network is that
of `bench/observe.py`: two hidden layers of 256 and ten outputs, in float32. One core; processor time, the two ways
interleaved, the least of three repeats. Memory is what a fresh process holds at most beyond what it held before.
"""

import copy
import importlib.metadata
import importlib.util
import multiprocessing
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from observe import by_hand, network
from record import record
from torch import nn

from flbook import fits, observe

NEEDED = {"pyhessian": "PyHessian", "curvlinops": "curvlinops-for-pytorch", "backpack": "backpack-for-pytorch",
          "mup": "mup"}  # fmt: skip
DRAWS = 50
WIDTHS, SEEDS = (64, 128, 256, 512), (0, 1, 2, 3)


def missing() -> list[str]:
    """The packages that are not installed here."""
    return [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]


class Problem:
    """The network, data and a loss, as each library asks for them."""

    def __init__(self, dtype: torch.dtype = torch.float32):
        self.module = network().to(dtype)
        generator = torch.Generator().manual_seed(1)
        self.x, self.y = (torch.randn(64, k, generator=generator, dtype=torch.float64).to(dtype) for k in (64, 10))
        self.f, self.params = observe.functional(self.module)

    def loss(self, params: dict) -> torch.Tensor:
        """The squared loss."""
        return nn.functional.mse_loss(self.f(params, self.x), self.y)

    def ours_top(self) -> float:
        """Lanczos, to a relative residual."""
        return observe.sharpness(self.loss, self.params, tol=1e-4).value

    def power(self) -> float:
        """Power iteration, to a change of 1e-5."""
        from pyhessian import hessian

        return hessian(self.module, nn.MSELoss(), (self.x, self.y), cuda=False).eigenvalues(1000, 1e-5)[0][0]

    def operator(self):
        """The Hessian as curvlinops has it."""
        from curvlinops import HessianLinearOperator

        return HessianLinearOperator(self.module, nn.MSELoss(), list(self.module.parameters()), [(self.x, self.y)],
                                     check_deterministic=False)

    def arpack(self, tol: float = 1e-4) -> float:
        """The Lanczos method of SciPy with products by curvlinops."""
        from scipy.sparse.linalg import eigsh

        return float(eigsh(self.operator().to_scipy(), k=1, which="LA", tol=tol, return_eigenvectors=False)[0])

    def ours_trace(self) -> observe.Estimate:
        """Hutchinson's estimate with its interval."""
        return observe.hessian_trace(self.loss, self.params, draws=DRAWS)

    def pyhessian_trace(self) -> float:
        """Hutchinson's estimate."""
        from pyhessian import hessian

        found = hessian(self.module, nn.MSELoss(), (self.x, self.y), cuda=False).trace(DRAWS, tol=0.0)
        return float(np.mean(found))

    def curvlinops_trace(self) -> float:
        """Hutchinson's estimate, all draws at once."""
        from curvlinops import hutchinson_trace

        return float(hutchinson_trace(self.operator(), DRAWS))

    def exact_trace(self) -> float:
        """The sum of BackPACK's exact diagonal."""
        from backpack import backpack, extend, extensions

        module, loss = extend(copy.deepcopy(self.module)), extend(nn.MSELoss())  # it leaves hooks
        with backpack(extensions.DiagHessian()):
            loss(module(self.x), self.y).backward()
        return sum(p.diag_h.sum().item() for p in module.parameters())

    def ours_kernel(self) -> torch.Tensor:
        """The tangent kernel, in chunks."""
        return observe.ntk(self.f, self.params, self.x, chunk=16)

    def kernel_by_hand(self) -> torch.Tensor:
        """The tangent kernel from all Jacobians at once."""
        return by_hand(self.module, self.params, self.x)


WAYS = (Problem.ours_top, Problem.power, Problem.arpack, Problem.ours_trace, Problem.pyhessian_trace,
        Problem.curvlinops_trace, Problem.ours_kernel, Problem.kernel_by_hand)


def least(ways: dict[str, Callable], repeats: int = 3) -> dict[str, float]:
    """Processor seconds of each way, interleaved."""
    found = {name: np.inf for name in ways}
    for _ in range(repeats):
        for name, act in ways.items():
            begun = time.process_time()
            act()
            found[name] = min(found[name], time.process_time() - begun)
    return found


def held() -> float:
    """Megabytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def peak(name: str) -> float:
    """Megabytes beyond what is held before that a way of `Problem` needs; in a process of its own."""
    torch.set_num_threads(1)
    act = getattr(Problem(), name)
    before, most, done = held(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            most[0] = max(most[0], held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    act()
    done.set()
    watcher.join()
    return most[0] - before


def peaks(names: list[str]) -> dict[str, float]:
    """The same of several, each in a fresh process."""
    found = {}
    for name in names:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found[name] = pool.apply(peak, (name,))
    return found


def ratio(values: dict[str, float], ours: str, theirs: str) -> float:
    """Ours over theirs."""
    return float(f"{values[ours] / values[theirs]:.2g}")


def hessians() -> dict:
    """Largest eigenvalue, trace and tangent kernel."""
    problem, double = Problem(), Problem(torch.float64)
    top = double.arpack(tol=1e-10)
    names = [way.__name__ for way in WAYS]
    times, memory = least({name: getattr(problem, name) for name in names}), peaks(names)
    trace, exact = double.ours_trace(), double.exact_trace()
    error = (trace.interval[1] - trace.interval[0]) / 2 / 1.96
    kernel = double.kernel_by_hand()
    found = {"largest eigenvalue: relative error, ours in float64": off(
        observe.sharpness(double.loss, double.params, steps=200, tol=1e-8).value, top)}
    for name, label in (("ours_top", "ours"), ("power", "PyHessian"), ("arpack", "curvlinops with ARPACK")):
        found[f"largest eigenvalue: relative error, {label}"] = off(getattr(problem, name)(), top)
    found["trace: ours less BackPACK's exact diagonal, in standard errors"] = round((trace.value - exact) / error, 1)
    found["tangent kernel: largest relative difference"] = off(double.ours_kernel(), kernel)
    for what, ours, theirs, label in (
            ("largest eigenvalue", "ours_top", "power", "PyHessian"),
            ("largest eigenvalue", "ours_top", "arpack", "curvlinops with ARPACK"),
            (f"trace, {DRAWS} draws", "ours_trace", "pyhessian_trace", "PyHessian"),
            (f"trace, {DRAWS} draws", "ours_trace", "curvlinops_trace", "curvlinops"),
            ("tangent kernel", "ours_kernel", "kernel_by_hand", "torch.func by hand")):
        found[f"{what}: time and memory over {label}"] = (
            f"{ratio(times, ours, theirs)} and {ratio(memory, ours, theirs)}")
    return found


def off(value, exact) -> str:
    """The largest difference over the largest value."""
    value, exact = (torch.as_tensor(one, dtype=torch.float64) for one in (value, exact))
    return f"{((value - exact).abs().max() / exact.abs().max()).item():.1e}"


def layers(width: int, read_out: Callable) -> nn.Module:
    """Two hidden layers and a read-out."""
    hidden = nn.Linear(64, width, bias=False), nn.Tanh(), nn.Linear(width, width, bias=False), nn.Tanh()
    return nn.Sequential(*hidden, read_out(width, 10, bias=False))


def standard(width: int, seed: int) -> nn.Module:
    """As PyTorch starts it."""
    torch.manual_seed(seed)
    return layers(width, nn.Linear)


def maximal(width: int, seed: int) -> nn.Module:
    """In mup's parametrisation; its read-out starts at 0."""
    from mup import MuReadout, set_base_shapes

    read_out = partial(MuReadout, readout_zero_init=True)
    torch.manual_seed(seed)
    return set_base_shapes(layers(width, read_out), layers(WIDTHS[0], read_out), delta=layers(2 * WIDTHS[0], read_out))


def theirs(make: Callable, rate: Callable, batch: tuple, steps: int) -> np.ndarray:
    """What mup's check records, root mean squares at the end, shape (layer, width, seed)."""
    from mup.coord_check import get_coord_data

    found = np.empty((3, len(WIDTHS), len(SEEDS)))
    for i, width in enumerate(WIDTHS):
        for j, seed in enumerate(SEEDS):
            data = get_coord_data({width: partial(make, width, seed)}, [batch], "sgd", lr=rate(width),
                                  mup=make is maximal, nsteps=steps + 1, lossfn="mse", cuda=False,
                                  output_fdict={"l2": "l2"}, show_progress=False)
            last = data[data.t == steps + 1].set_index("module").l2
            found[:, i, j] = [last[[name for name in last.index if name.startswith(layer)][0]] for layer in "024"]
    return found


def coordinates(steps: int = 3) -> dict:
    """The coordinate check: maximal update at one rate, and the standard start at a rate over the width."""
    from mup import MuSGD

    generator = torch.Generator().manual_seed(2)
    x, y = torch.randn(32, 64, generator=generator), torch.randint(10, (32,), generator=generator)
    target = nn.functional.one_hot(y, 10).float()
    cases = {"maximal update": (maximal, MuSGD, lambda width: 0.1),
             "standard, rate 1/width": (standard, torch.optim.SGD, lambda width: 6.4 / width)}
    found: dict = {}
    for name, (make, rule, rate) in cases.items():
        ours = partial(observe.coordinate_check, make, WIDTHS,
                       lambda module, width, rule=rule, rate=rate: rule(module.parameters(), lr=rate(width)),
                       lambda module: nn.functional.mse_loss(module(x), target), x, steps=steps, seeds=SEEDS)
        check, sizes = ours(), theirs(make, rate, (x, y), steps)
        if make is maximal:  # the outputs start at 0, so that their size is their change
            times = least({"ours": ours, "theirs": partial(theirs, make, rate, (x, y), steps)}, repeats=3)
            found["coordinate check, outputs: largest relative difference"] = off(
                check.moved.sel(layer="4").transpose("width", "seed").to_numpy(), sizes[2])
            found["coordinate check: time over mup's"] = ratio(times, "ours", "theirs")
        size = check.moved.sel(layer="2", drop=True).transpose("width", "seed").copy(data=sizes[1])
        found[f"second layer, {name}: exponent of the change, ours"] = f"{check.exponents['2'].value:+.2f}"
        found[f"second layer, {name}: exponent of the size, mup"] = f"{fits.exponent(size, 'width').value:+.2f}"
    return found


def main() -> None:
    """Compare and record, where all libraries are there."""
    if missing():
        print(f"not installed here: {', '.join(missing())}; bench/results/libraries.json holds what was measured")
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the libraries' own
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in NEEDED.values())
    record("libraries", {"compared": f"{versions}, torch {torch.__version__}, Python {sys.version.split()[0]}",
                         **hessians(), **coordinates()})


if __name__ == "__main__":
    main()
