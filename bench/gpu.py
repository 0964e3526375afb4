"""Every experiment on a GPU beside the CPU, at its smallest preset; and what a step of the transformers takes there.

    python bench/gpu.py

Most experiments draw their data on the CPU, so both devices see the same numbers and differ by rounding. Those that
draw fresh prompts or samples where these are used see others on a GPU, and are only asked to run.
"""

import time
import warnings
from types import SimpleNamespace

import numpy as np
import torch
import xarray as xr
from record import record

from flbook import lectures
from flbook.lectures.in_context_learning.low_dimensional_targets import pretrained_transformer
from flbook.models.transformer import PromptTransformer
from flbook.runs.shelf import Shelf
from flbook.training.pretrain import Recipe, pretrain

SAME = 1e-3  # relative to the largest value: above it, the two devices have seen other draws


def apart(ours: xr.Dataset, theirs: xr.Dataset) -> float:
    """Largest difference of two results, over the largest value of each variable."""
    worst = 0.0
    for name, values in theirs.data_vars.items():
        if values.dtype.kind == "f" and np.isfinite(values).any():
            scale = float(np.nanmax(np.abs(values))) or 1.0
            worst = max(worst, float(np.nanmax(np.abs(values - ours[name].values))) / scale)
    return worst


def compared() -> dict[str, float]:
    """The largest difference of every experiment that names a GPU."""
    shelf, found = Shelf(lectures), {}
    for name in shelf.modules():
        experiment = shelf.find(name)
        if "cuda" in experiment.devices:
            found[name] = apart(experiment.run("tiny", "cuda"), experiment.run("tiny", "cpu"))
    return found


def step(width: int, members: int, precision: str, steps: int = 60) -> str:
    """Milliseconds of a captured training step of four layers: 64 prompts of 64 examples for each member."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    prompts = pretrained_transformer.prompts(SimpleNamespace(n=64, d=64, r=2, line=pretrained_transformer.LINE))
    seconds = []
    for count in (3, steps):  # the difference leaves out what a start costs
        network = PromptTransformer(64, 64, width, 4, 4, seed=tuple(range(members)))
        recipe = Recipe(count, 64, precision="bfloat16" if precision == "bfloat16" else "float32")
        begun = time.perf_counter()
        pretrain(network, prompts, recipe, tuple(range(members)), "cuda", pretrained_transformer.squared_errors)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    return f"{1e3 * (seconds[1] - seconds[0]) / (steps - 3):.1f} ms"


def main() -> None:
    """Compare and time, where there is a GPU."""
    if not torch.cuda.is_available():
        print("no GPU here; bench/results/gpu.json holds what one measured")
        return
    warnings.simplefilter("ignore")
    differences = compared()
    same = [value for value in differences.values() if value < SAME]
    found = {
        "card, torch": f"{torch.cuda.get_device_name()}, {torch.__version__}",
        "experiments that ran": len(differences),
        "of them on the CPU's draws": len(same),
        "these: median and largest relative difference": f"{np.median(same):.1e}, {max(same):.1e}",
    }
    for width, members, precision in ((64, 10, "float32"), (64, 10, "tf32"), (128, 10, "tf32"), (128, 10, "bfloat16")):
        found[f"{members} networks of width {width}, {precision}: a step"] = step(width, members, precision)
    record("gpu", found)


if __name__ == "__main__":
    main()
