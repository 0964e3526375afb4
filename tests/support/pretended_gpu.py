"""A GPU that is only pretended: PyTorch's meta device, on which a whole experiment runs, reads of results included.

Tensors there have no values. What is read back to the host is zero, so loops that wait for a value end; operations that
need values take zeros; what a GPU would draw itself, the CPU draws. What would fail on a GPU fails: operations on
tensors of both devices, and `numpy()` of a tensor that was not brought to the host.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from unittest import mock

import torch
from torch import Tensor
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from flbook import rng

META = torch.device("meta")
ASTRIDE = (torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default,  # these may take tensors of both
           torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default)
CREATES = {"empty", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "empty_strided", "lift_fresh", "detach"}


class PretendedGPU(TorchDispatchMode):
    """Counts the operations on each device in `operations`; refuses those that mix them.

    What an operation gives is remembered by the shapes that it was given, because PyTorch works it out in Python.
    """

    def __init__(self):
        super().__init__()
        self.operations, self._instead, self._known = Counter(), ExitStack(), {}

    def __enter__(self):
        drawn, cast, fused = rng.generator, torch.autocast, optimizer._get_fused_kernels_supported_devices
        for where, name, instead in (  # what a GPU has and the meta device has not
            (rng, "generator", lambda seed, role, device="cpu": drawn(seed, role, _here(device))),
            (torch, "autocast", lambda device, *how, **more: cast(_here(device), *how, **more)),
            (optimizer, "_get_fused_kernels_supported_devices", lambda: [*fused(), "meta"]),
        ):
            self._instead.enter_context(mock.patch.object(where, name, instead))
        return super().__enter__()

    def __exit__(self, *error):
        self._instead.close()
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = list(_tensors((*args, *kwargs.values())))
        there = any(part.is_meta for part in given)
        if there and func not in ASTRIDE:
            mixed = [tuple(part.shape) for part in given if not part.is_meta and part.ndim]
            assert not mixed, f"{func} met tensors of the CPU, of shapes {mixed}, and of the GPU"
        if func.overloadpacket.__name__ not in CREATES:
            self.operations["gpu" if there else "cpu"] += 1
        if there and func is torch.ops.aten._to_copy.default and _kind(kwargs) == "cpu":
            return torch.zeros(given[0].shape, dtype=kwargs.get("dtype") or given[0].dtype)
        if func is torch.ops.aten.copy_.default and not given[0].is_meta and given[1].is_meta:
            return given[0].zero_()
        if not (there and all(part.is_meta for part in given) and _gives_new(func)):
            return self._computed(func, args, kwargs, there)
        key = func, _seen(args), _seen(kwargs.items())
        if key not in self._known:
            answer = self._computed(func, args, kwargs, there)
            if not (isinstance(answer, Tensor) and answer.is_meta):
                return answer
            self._known[key] = answer.shape, answer.stride(), answer.dtype
        shape, stride, dtype = self._known[key]
        return torch.empty_strided(shape, stride, dtype=dtype, device=META)

    def _computed(self, func, args, kwargs, there):
        """By PyTorch; where that needs values, of zeros."""
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError):
            if not there:
                raise
            here = tree_map(lambda part: torch.zeros_like(part, device="cpu") if _is_there(part) else part,
                            (args, {name: value for name, value in kwargs.items() if name != "device"}))
            answer = func(*here[0], **here[1])
            return tree_map(lambda part: part.to(META) if isinstance(part, Tensor) else part, answer)


def _here(device: str | torch.device) -> str | torch.device:
    return "cpu" if torch.device(device) == META else device


def _kind(kwargs: dict) -> str | None:
    device = kwargs.get("device")
    return None if device is None else torch.device(device).type


def _is_there(part: object) -> bool:
    return isinstance(part, Tensor) and part.is_meta


def _tensors(parts: Iterable) -> Iterator[Tensor]:
    for part in parts:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)


def _seen(part: object) -> object:
    """What of an argument decides the shape of the answer; a number's kind does too."""
    if isinstance(part, Tensor):
        return part.shape, part.stride(), part.dtype
    if isinstance(part, Iterable) and not isinstance(part, str):
        return tuple(map(_seen, part))
    return type(part), part


@cache
def _gives_new(func) -> bool:
    """Is the answer of an operation a tensor of its own: no view of an argument, and none changed in place?"""
    schema = func._schema
    return not schema.is_mutable and len(schema.returns) == 1 and schema.returns[0].alias_info is None
