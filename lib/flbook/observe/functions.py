"""A network as a function of its parameters: what every observation asks for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

Network = Callable[[dict[str, Tensor], Tensor], Tensor]
STATEFUL = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


def functional(module: nn.Module) -> tuple[Network, dict[str, Tensor]]:
    """A module as a function ``f(params, x)``, and its trainable parameters.

    Buffers and parameters that are not trained are held fixed at the values that they have now.

    Parameters
    ----------
    module
        Any module that maps one tensor, samples first, to one tensor.

    Returns
    -------
    tuple
        The function, and the parameters by name: the module's own tensors, detached.

    Raises
    ------
    ValueError
        If the module has nothing to train, or batch normalisation or dropout in training mode, whose outputs depend on
        the other samples or on chance.

    Examples
    --------
    >>> f, params = functional(nn.Linear(2, 1))
    >>> f(params, torch.zeros(5, 2)).shape
    torch.Size([5, 1])
    """
    for name, part in module.named_modules():
        if isinstance(part, STATEFUL) and part.training and getattr(part, "p", 1) > 0:
            raise ValueError(f"{type(part).__name__} {name!r} is in training mode, where an output is no function of "
                             "parameters and one input; call module.eval() first")
    params = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    if not params:
        raise ValueError(f"{type(module).__name__} has no parameter that is trained")
    fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    fixed |= dict(module.named_buffers())

    def f(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(module, {**fixed, **params}, (x,))

    return f, params


def outputs(f: Network, params: dict[str, Tensor], x: Tensor) -> Tensor:
    """Outputs of n samples, shape ``(n,)`` or ``(n, k)``.

    Parameters
    ----------
    f, params
        The network.
    x
        Inputs, shape ``(n, ...)``.

    Returns
    -------
    Tensor
        Outputs; those of shape ``(n, 1)`` lose their last axis.

    Raises
    ------
    ValueError
        If they have another shape.
    """
    with derivable():
        values = f(params, x)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.shape[0] != x.shape[0]:
        raise ValueError(f"outputs must have the shape (n,) or (n, k) with n = {x.shape[0]}; got "
                         f"{tuple(values.shape)} for inputs {tuple(x.shape)}")
    return values


def single(f: Network) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
    """The network on one sample.

    Parameters
    ----------
    f
        The network.

    Returns
    -------
    Callable
        Of parameters and one input without the axis of the samples; returns ``(k,)``, with k = 1 for one output.
    """
    return lambda params, x: outputs(f, params, x[None]).reshape(-1)


@contextmanager
def derivable() -> Iterator[None]:
    """Attention by plain products, which can be differentiated twice and sample by sample; fused kernels cannot.

    Yields
    ------
    None
        The network is called inside.
    """
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
