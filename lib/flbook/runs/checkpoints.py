"""Checkpoints: tensors in a safetensors file that says which setting they belong to.

A file of another setting is refused with what differs. An interruption leaves no half-written file.
"""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from flbook.runs import files


def save(path: str | os.PathLike, tensors: Mapping[str, Tensor], setting: object,
         dtype: torch.dtype | None = None) -> None:
    """Write tensors and their setting to a file, at once or not at all.

    Parameters
    ----------
    path
        The file.
    tensors
        By name, of any shapes, on any device.
    setting
        A dataclass, a mapping, or both nested; what is no number or text is kept by name.
    dtype
        What floating numbers are stored as, float16 to halve the file; as they are if None.
    """
    kept = {name: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None).contiguous()
            for name, tensor in tensors.items()}
    files.write(path, to_bytes(kept, metadata={"setting": json.dumps(plain(setting), sort_keys=True)}))


def load(path: str | os.PathLike, setting: object = None, device: str | torch.device = "cpu",
         dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """The tensors of a file; floating numbers become `dtype` if one is given.

    Raises ValueError if there is no such file, it is not whole, or it belongs to another setting than the one given.

    Parameters
    ----------
    path
        The file.
    setting
        That to which the file must belong; None accepts any.
    device
        Where the tensors go.
    dtype
        What floating numbers become; as they were stored if None.

    Returns
    -------
    dict[str, Tensor]
        By name.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no checkpoint {path.name} in the folder {path.parent.name}")
    try:
        with safe_open(path, "pt", device=str(device)) as file:
            theirs = json.loads((file.metadata() or {}).get("setting", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dictionary
    except SafetensorError as error:
        raise ValueError(f"the checkpoint {path.name} is truncated or no checkpoint: {error}") from None
    found = [] if setting is None else list(differences(theirs, plain(setting)))
    if found:
        raise ValueError(f"the checkpoint {path.name} is of another setting: {'; '.join(found)}")
    return {name: tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()}


def plain(setting: object) -> object:
    """A setting as JSON knows it: numbers, text, lists and mappings; anything else by its name.

    Parameters
    ----------
    setting
        A dataclass, a mapping, a sequence, a number, a text or None, nested at will.

    Returns
    -------
    object
        What ``json.dumps`` takes.
    """
    if setting is None or isinstance(setting, str | bool | int | float):
        return setting
    if isinstance(setting, Mapping):
        return {str(name): plain(value) for name, value in setting.items()}
    if isinstance(setting, tuple | list):
        return [plain(value) for value in setting]
    if dataclasses.is_dataclass(setting) and not isinstance(setting, type):
        fields = {field.name: plain(getattr(setting, field.name)) for field in dataclasses.fields(setting)}
        return {"kind": type(setting).__name__, **fields}
    return getattr(setting, "__qualname__", None) or str(setting)


def differences(theirs: object, ours: object, name: str = "") -> Iterator[str]:
    """What differs between two plain settings, one short clause each.

    Parameters
    ----------
    theirs, ours
        The two settings, as `plain` returns them.
    name
        Where in the setting the two stand, as in ``"network.width"``; empty for the whole.

    Yields
    ------
    str
        A clause.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differences(theirs.get(key), ours.get(key), f"{name}.{key}" if name else key)
    elif theirs != ours:
        yield f"{name or 'the setting'} is {_short(theirs)} there and {_short(ours)} here"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
