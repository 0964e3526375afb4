"""What a report is given: a module's file, data, checkpoints; read and checked before any work.

Nothing is executed but the module's own file. Data and checkpoints hold arrays only, and are refused if they hold more.
"""

import copy
import importlib.util
import pickle
import re
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from flbook import rng
from flbook.devices import device as device_of
from flbook.observe.functions import Network, derivable, outputs
from flbook.observe.functions import functional as as_function

SAMPLES = 512  # at most; a larger data set is represented by as many, drawn once
SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
INSIDE = ("state_dict", "model_state_dict", "model")  # where a training script keeps the tensors beside other things


# Losses of outputs and labels, one number a sample.
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": lambda values, y: functional.cross_entropy(values, y, reduction="none"),
    "logistic": lambda values, y: functional.softplus(-y * values),  # labels of -1 and 1
    "squared": lambda values, y: (values - y).square().reshape(len(y), -1).sum(1),
}


@dataclass
class Given:
    """A network at its present parameters, samples, and a loss.

    Attributes
    ----------
    name
        ``"my_module.py:make"``.
    module
        In evaluation mode, on the device.
    x, y
        Samples, and labels as the loss takes them.
    labels
        Labels as columns, one-hot for classes, shape ``(n, k)``.
    loss_name
        A name of `LOSSES`.
    total
        Samples in the file.
    held_out
        Inputs and labels of samples that the network was not trained on, if the file holds them.
    f, params
        The module as a function, and what it trains.
    """

    name: str
    module: nn.Module
    x: Tensor
    y: Tensor
    labels: Tensor
    loss_name: str
    total: int
    held_out: tuple[Tensor, Tensor] | None

    f: Network = field(init=False)
    params: dict[str, Tensor] = field(init=False)

    def __post_init__(self):
        self.f, self.params = as_function(self.module)

    def loss(self, params: dict[str, Tensor]) -> Tensor:
        """The loss at some parameters.

        Parameters
        ----------
        params
            By name.

        Returns
        -------
        Tensor
            One number.
        """
        return LOSSES[self.loss_name](outputs(self.f, params, self.x), self.y).mean()

    def at(self, state: dict[str, Tensor]) -> "Given":
        """The same with the tensors of a checkpoint.

        Parameters
        ----------
        state
            By name, as `module.state_dict` has them.

        Returns
        -------
        Given
            In a module of its own.
        """
        module = copy.deepcopy(self.module)
        module.load_state_dict(state)
        return replace(self, module=module)


def given(network: str, data: str, loss: str | None = None, device: str = "cpu") -> Given:
    """Read a network and data, and try them together.

    Parameters
    ----------
    network
        ``"my_module.py:make"``: a file, and a function in it that takes nothing and returns an ``nn.Module``.
    data
        An npz file with `x` and `y`, and perhaps with `x_test` and `y_test`.
    loss
        A name of `LOSSES`; None: squared for labels that are no whole numbers, else cross-entropy for several outputs
        and logistic for one.
    device
        Where to compute.

    Returns
    -------
    Given
        What the report is about.

    Raises
    ------
    ValueError
        In one sentence, if something is not there, is of another kind, or does not fit.
    """
    if loss not in (None, *LOSSES):
        raise ValueError(f"the loss must be {', '.join(LOSSES)}; got {loss!r}")
    place = device_of(device)
    arrays = _arrays(data)
    module = _module(network).to(place).eval()
    kinds = {p.dtype for p in module.parameters()}
    if not kinds <= {torch.float32, torch.float64} or len(kinds) != 1:
        found = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds)) or "none"
        raise ValueError(f"the network's parameters must all be float32 or all float64; they are {found}")
    x, y = (_few(arrays[name]) for name in ("x", "y"))
    inputs = _inputs(x, module).to(place)
    target, labels, loss = _labels(y, _tried(module, inputs), loss)
    held_out = None
    if "x_test" in arrays:
        fresh = _inputs(_few(arrays["x_test"]), module).to(place)
        held_out = fresh, _labels(_few(arrays["y_test"]), _tried(module, fresh), loss)[0]
    path, _, name = network.rpartition(":")
    return Given(f"{Path(path).name}:{name}", module, inputs, target, labels, loss, len(arrays["x"]), held_out)


def _few(array: np.ndarray) -> np.ndarray:
    """As many samples as are looked at, the same for inputs and labels."""
    if len(array) <= SAMPLES:
        return array
    return array[np.sort(rng.numpy_generator(0, "samples of a report").permutation(len(array))[:SAMPLES])]


def _inputs(x: np.ndarray, module: nn.Module) -> Tensor:
    """Inputs of the parameters' type; whole numbers stay so for a network that embeds them."""
    words = x.dtype.kind in "iu" and any(isinstance(part, nn.Embedding) for part in module.modules())
    return torch.from_numpy(x).to(torch.long if words else next(module.parameters()).dtype)


def checkpoints(paths: Sequence[str], module: nn.Module) -> list[Path]:
    """The files of checkpoints, in the order of the numbers in their names; each is opened and held against a module.

    Parameters
    ----------
    paths
        Files, or folders of them.
    module
        What they must fit.

    Returns
    -------
    list[Path]
        At least one.

    Raises
    ------
    ValueError
        In one sentence, if there is none, or one cannot be read or does not fit.
    """
    files = [file for path in paths for file in _files(Path(path))]
    for file in files:
        state(file, module)
    return sorted(files, key=_natural)


def state(file: Path, module: nn.Module) -> dict[str, Tensor]:
    """The tensors of a checkpoint, which fit a module.

    Parameters
    ----------
    file
        A state dict that `torch.save` wrote, alone or as the entry `state_dict` or `model`, or a file of safetensors.
    module
        What they must fit.

    Returns
    -------
    dict[str, Tensor]
        By name, on the CPU.

    Raises
    ------
    ValueError
        In one sentence, if it cannot be read or does not fit.
    """
    inner, wanted = _opened(file), module.state_dict()
    missing = [f"{name} is missing" for name in wanted if not isinstance(inner.get(name), Tensor)]
    wrong = missing or [
        f"{name} has the shape {tuple(inner[name].shape)} there and {tuple(tensor.shape)} in the network"
        for name, tensor in wanted.items() if inner[name].shape != tensor.shape]
    wrong += [f"the network has no {name}" for name in inner if name not in wanted]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ValueError(f"the checkpoint {file.name} does not fit the network: {wrong[0]}{more}")
    return inner


def _opened(file: Path) -> dict[str, Any]:
    """What a checkpoint holds by name."""
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        held = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(f"the checkpoint {file.name} is not opened, since it is damaged or holds more than tensors; "
                         "save a state dict") from None
    except (SafetensorError, RuntimeError, EOFError, OSError, KeyError, ValueError):
        raise ValueError(f"the checkpoint {file.name} is truncated or no checkpoint") from None
    if not isinstance(held, dict):
        raise ValueError(f"the checkpoint {file.name} holds {_kind(held)} in place of tensors by name")
    return next((held[key] for key in INSIDE if isinstance(held.get(key), dict)), held)


def _files(path: Path) -> list[Path]:
    """A checkpoint, or those of a folder."""
    if path.is_dir():
        found = [file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file()]
        if not found:
            raise ValueError(f"the folder {path.name} holds no checkpoint ({', '.join(SUFFIXES)})")
        return found
    if not path.is_file():
        raise ValueError(f"there is no checkpoint {str(path)!r}")
    return [path]


def _natural(file: Path) -> list:
    """So that step_9 comes before step_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]


def _module(network: str) -> nn.Module:
    """What the user's function makes."""
    path, _, name = network.rpartition(":")
    if not path.endswith(".py"):
        raise ValueError(f"the network must be named FILE.py:FUNCTION, such as my_module.py:make; got {network!r}")
    file = Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {path!r}")
    spec = importlib.util.spec_from_file_location(f"flbook_observed_{file.stem}", file)
    assert spec and spec.loader  # a file that ends in .py
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))  # it may import what lies beside it
    try:
        with _theirs(file):
            spec.loader.exec_module(found)
        make = getattr(found, name, None)
        if not callable(make):
            there = [key for key, value in vars(found).items()
                     if callable(value) and getattr(value, "__module__", "") == spec.name]
            raise ValueError(f"{file.name} has no function {name!r}; it has {', '.join(there) or 'none'}")
        torch.manual_seed(0)
        with _theirs(file):
            module = make()
    finally:
        sys.path.remove(str(file.parent))
    if not isinstance(module, nn.Module):
        raise ValueError(f"{name}() in {file.name} must return a torch.nn.Module; it returned {_kind(module)}")
    return module


def _kind(value: object) -> str:
    """What a value is, in words."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


@contextmanager
def _theirs(file: Path) -> Iterator[None]:
    """Errors in the user's file, as one sentence with the line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{file.name}, line {line}" if line else file.name
        raise ValueError(f"{where}: {type(error).__name__}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """What an error says, in one line.

    Parameters
    ----------
    error
        The error.

    Returns
    -------
    str
        Its first line that is not empty; its kind if there is none.
    """
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _arrays(path: str) -> dict[str, np.ndarray]:
    """Inputs and labels of a file."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path!r}")
    try:
        with np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files if name in ("x", "y", "x_test", "y_test")}
            there = ", ".join(held.files) or "nothing"
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError):
        raise ValueError(f"{file.name} is no npz file of numbers; write it with numpy.savez(file, x=x, y=y)") from None
    if not {"x", "y"} <= arrays.keys() or ("x_test" in arrays) != ("y_test" in arrays):
        raise ValueError(f"{file.name} must hold x and y, and may hold x_test and y_test; it holds {there}")
    for name, array in arrays.items():
        if array.dtype.kind not in "iufb" or array.ndim == 0:
            raise ValueError(f"{name} in {file.name} must be an array of numbers; it is of type {array.dtype} with the "
                             f"shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} in {file.name} must be finite; it holds nan or infinity")
    for x, y in (("x", "y"), ("x_test", "y_test")) if "x_test" in arrays else (("x", "y"),):
        if len(arrays[x]) != len(arrays[y]) or len(arrays[x]) < 2 or arrays[x].ndim < 2:
            raise ValueError(f"{x} must have the shape (n, ...) and {y} the length n, with n of at least 2; in "
                             f"{file.name} they have {arrays[x].shape} and {arrays[y].shape}")
    return arrays


@torch.no_grad()
def _tried(module: nn.Module, x: Tensor) -> Tensor:
    """The outputs of the samples: do the two fit?"""
    try:
        f, params = as_function(module)
        with derivable():
            found = module(x[:1])
        if not isinstance(found, Tensor):
            raise ValueError(f"the network must return one tensor; it returned {_kind(found)}")
        values = outputs(f, params, x)
    except (RuntimeError, IndexError, TypeError, AssertionError) as error:
        raise ValueError(f"the network does not take x of shape {tuple(x.shape)}: {first_line(error)}") from None
    if not values.isfinite().all():
        raise ValueError("the network's outputs are not finite on these samples")
    return values


def _labels(y: np.ndarray, values: Tensor, loss: str | None) -> tuple[Tensor, Tensor, str]:
    """Labels as the loss takes them and as columns, and the loss."""
    whole = y.dtype.kind in "iub"
    loss = loss or ("squared" if not whole else "logistic" if values.ndim == 1 else "cross-entropy")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if loss == "squared" and y.shape == tuple(values.shape):
        target = torch.from_numpy(y).to(values)
        return target, target.reshape(len(target), -1), loss
    if not whole or y.ndim != 1:
        asks = f"labels of the outputs' shape {tuple(values.shape)}" if loss == "squared" else \
            "whole numbers, one a sample"
        raise ValueError(f"the {loss} loss asks for {asks}; y has the type {y.dtype} and the shape {y.shape}")
    if loss == "logistic":
        return _signs(y, values)
    k = values.shape[1] if values.ndim == 2 else 1
    if k == 1 or y.min() < 0 or y.max() >= k:
        raise ValueError(f"classes must be 0 to {k - 1}, one for each of the {k} outputs; y holds {y.min()} to "
                         f"{y.max()}")
    classes = torch.from_numpy(y.astype(np.int64)).to(values.device)
    columns = functional.one_hot(classes, k).to(values)
    return (classes if loss == "cross-entropy" else columns), columns, loss


def _signs(y: np.ndarray, values: Tensor) -> tuple[Tensor, Tensor, str]:
    """Two classes, as -1 and 1."""
    if values.ndim != 1 or not (np.isin(y, (0, 1)).all() or np.isin(y, (-1, 1)).all()):
        raise ValueError("the logistic loss asks for one output and labels of 0 and 1 or of -1 and 1; there are "
                         f"{1 if values.ndim == 1 else values.shape[1]} outputs and labels from {y.min()} to {y.max()}")
    signs = torch.from_numpy(np.where(y > 0, 1.0, -1.0)).to(values)
    return signs, signs[:, None], "logistic"


def each(files: Sequence[Path], start: Given) -> Iterator[tuple[str, Given]]:
    """The network at each checkpoint, one after the other.

    Parameters
    ----------
    files
        Checkpoints.
    start
        The network.

    Yields
    ------
    tuple[str, Given]
        The file's name without its ending, and the network.
    """
    for file in files:
        yield file.stem, start.at(state(file, start.module))
