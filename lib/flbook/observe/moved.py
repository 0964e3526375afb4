r"""What a trained layer's movement consists of: signal that all data share, and single samples that it memorised.

.. math:: \theta_T - \theta_0 = S + M + O, \qquad
          \text{shares}\ \ \langle S, \Delta\rangle,\ \langle M, \Delta\rangle,\ \langle O, \Delta\rangle
          \ \text{over}\ |\Delta|^2, \quad \Delta = \theta_T - \theta_0

Two ways to it. Where the directions are known, as on the signal-noise model, the rows of a layer are written in them,
and the coefficients are gamma and rho. Where they are not, gradients say what is shared: that of the mean loss on data
which were not trained on; what is left in the span of single samples' gradients is memorised.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vmap

from flbook.domains import Count, checked_arguments
from flbook.observe.functions import Network, outputs

Params = dict[str, Tensor]
Data = tuple[Tensor, Tensor]
DEAD = 1e-12  # eigenvalues of the samples' Gram matrix, relative to the largest, that are rounding


class Movement(NamedTuple):
    """Of one layer, the three parts of its movement; they add up to it."""

    signal: Tensor  # S, of the shape of the layer
    memorised: Tensor  # M
    outside: Tensor  # O
    shares: tuple[float, float, float]  # of the three; they add up to 1, and are nan for a layer that has not moved
    gamma: Tensor | None = None  # c |v|^2 of each row on each shared direction v, where directions are given
    rho: Tensor | None = None  # the same on each sample's own direction


@checked_arguments
def signal_and_noise(
    f: Network,
    path: Sequence[Params],
    train: Data,
    held_out: Data,
    loss: Callable[[Tensor, Tensor], Tensor],
    directions: Mapping[str, tuple[Tensor, Tensor]] | None = None,
    chunk: Count = 64,
) -> dict[str, Movement]:
    r"""How much of each layer's movement is shared signal, and how much of it memorises single samples?

    From one checkpoint to the next, :math:`\Delta_t = \theta_{t+1} - \theta_t` of a layer, with the gradients of that
    layer at :math:`\theta_t`,

    .. math:: S_t = \hat s\,\langle\hat s, \Delta_t\rangle, \qquad s = -\nabla L_{\text{held out}}(\theta_t), \qquad
              M_t = P_{\mathrm{span}\{g_i - \hat s\langle\hat s, g_i\rangle\}} (\Delta_t - S_t), \qquad
              g_i = \nabla \ell_i(\theta_t)

    and O is what is left. A step that raises the held-out loss has S = 0: its whole part in the span is memorised.
    For gradient descent on these samples, in batches or not, O = 0 exactly if `path` holds every step; a momentum,
    Adam, weight decay and skipped checkpoints put into O what gradients at the checkpoints do not explain. S is an
    estimate from below, since the held-out gradient has a sampling error of its own. A layer with fewer numbers than
    there are samples has nothing outside the span. Shares are those of the whole movement, so one lies below 0 or above
    1 where steps took back what others did.

    Where `directions` are given for a layer, its rows are written in them instead, from the two ends of the path,

    .. math:: \Delta_r = \sum_a c_{r,a}\, v_a + \sum_i c_{r,i}\, \xi_i + O_r, \qquad
              \gamma_{r,a} = c_{r,a} |v_a|^2, \quad \rho_{r,i} = c_{r,i} |\xi_i|^2

    which needs them to be linearly independent. On the signal-noise model, with v the signal and xi the noise patches,
    these are the coefficients of its theory, times the sign of a filter's output for gamma.

    Parameters
    ----------
    f
        The network.
    path
        Its parameters at the start, at checkpoints, and at the end: at least two of them.
    train, held_out
        Inputs ``(n, ...)`` and labels ``(n, ...)`` that it was trained on, and others from the same law.
    loss
        Of outputs and labels, one number a sample, shape ``(n,)``: such as `flbook.logistic`.
    directions
        By the name of a layer of shape ``(..., d)``: shared directions, shape ``(q, d)``, and one direction for each
        sample, shape ``(n, d)``.
    chunk
        Samples whose gradients are taken at once. n gradients of one layer are held.

    Returns
    -------
    dict
        A `Movement` for each layer (each tensor of the parameters), in float64.

    Raises
    ------
    ValueError
        If there is no path, the layers along it differ, the loss is not one number a sample, or directions are
        linearly dependent or do not fit a layer.

    Source: Cao et al. (2022), Definition 5.1, for the decomposition in known directions; the one by gradients extends
    it to networks whose directions are not known.

    Examples
    --------
    >>> x, y = torch.eye(4, 6).double(), torch.ones(4).double()
    >>> step = {"w": x.mean(0)}  # one step of gradient descent on the outputs from 0
    >>> path, fresh = [{"w": torch.zeros(6).double()}, step], (x.flip(1), y)
    >>> found = signal_and_noise(lambda p, x: x @ p["w"], path, (x, y), fresh, lambda out, y: -out * y)
    >>> [round(share, 6) for share in found["w"].shares]  # the step's cosine with the held-out one is 1/2
    [0.25, 0.75, 0.0]
    """
    directions = directions or {}
    _check(f, path, directions, (train, held_out), loss)
    return {name: _in_directions(path[-1][name] - path[0][name], *directions[name], name) if name in directions else
            _by_gradients(f, path, name, train, held_out, loss, chunk) for name in path[0]}  # fmt: skip


def decompose(
    move: Float[Tensor, "*E r d"], shared: Float[Tensor, "*#E q d"], single: Float[Tensor, "*#E n d"]
) -> tuple[Float[Tensor, "*E r q"], Float[Tensor, "*E r n"], Float[Tensor, "*E r d"]]:
    """Coefficients of rows on shared directions and on single samples', and the rest, all in float64.

    Least squares by an orthonormal basis of the span. Normal equations would square its condition number.

    Parameters
    ----------
    move
        Rows, shape ``(*E, r, d)``.
    shared, single
        Linearly independent directions, shapes ``(*#E, q, d)`` and ``(*#E, n, d)``.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        Shapes ``(*E, r, q)``, ``(*E, r, n)`` and ``(*E, r, d)``.
    """
    move, single = move.double(), single.to(move.device, torch.float64)
    shared = shared.to(single).expand(*single.shape[:-2], *shared.shape[-2:])
    q, r = torch.linalg.qr(torch.cat([shared, single], -2).mT)
    inside = torch.einsum("...dk,...rd->...rk", q, move)
    c = torch.linalg.solve_triangular(r, inside.mT, upper=True).mT
    rest = move - torch.einsum("...dk,...rk->...rd", q, inside)
    return c[..., : shared.shape[-2]], c[..., shared.shape[-2] :], rest


def _in_directions(move: Tensor, shared: Tensor, single: Tensor, name: str) -> Movement:
    """A layer's movement in given directions."""
    both = torch.cat([shared, single.to(shared)]).double()
    size = torch.linalg.svdvals(both)
    if len(both) > both.shape[1] or not bool(size[-1] > 1e-10 * size[0]):
        raise ValueError(f"directions of {name!r} must be linearly independent, or its movement has no one "
                         f"decomposition; got {len(shared)} shared and {len(single)} of samples in dimension "
                         f"{both.shape[1]}")
    rows = move.double().reshape(-1, move.shape[-1])
    on_shared, on_single, rest = decompose(rows, shared, single)
    v, xi = shared.to(rows), single.to(rows)
    parts = [part.reshape(move.shape) for part in (on_shared @ v, on_single @ xi, rest)]
    gamma, rho = (c * along.square().sum(-1) for c, along in ((on_shared, v), (on_single, xi)))
    lead = move.shape[:-1]
    return _movement(*parts)._replace(gamma=gamma.reshape(*lead, -1), rho=rho.reshape(*lead, -1))


def _by_gradients(f: Network, path: Sequence[Params], name: str, train: Data, held_out: Data, loss: Callable,
                  chunk: int) -> Movement:
    """A layer's movement from checkpoint to checkpoint, split by gradients at each."""
    parts = [torch.zeros(path[0][name].numel(), dtype=torch.float64, device=path[0][name].device) for _ in range(3)]
    for before, after in pairwise(path):

        def of_layer(p: Tensor, x: Tensor, y: Tensor, before: Params = before) -> Tensor:
            return loss(outputs(f, {**before, name: p}, x), y).mean()

        def of_sample(p: Tensor, x: Tensor, y: Tensor, whole: Callable = of_layer) -> Tensor:
            return whole(p, x[None], y[None])

        shared = -grad(of_layer)(before[name], *held_out).double().flatten()
        each = vmap(grad(of_sample), in_dims=(None, 0, 0), chunk_size=chunk)(before[name], *train)
        step = _split((after[name] - before[name]).double().flatten(), shared, each.double().flatten(1))
        parts = [whole + part for whole, part in zip(parts, step, strict=True)]
    return _movement(*(part.reshape(path[0][name].shape) for part in parts))


def _split(move: Tensor, shared: Tensor, single: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One step along the shared direction, in what is left of the samples' span, and outside."""
    signal = torch.zeros_like(move)
    if bool(move @ shared > 0):
        unit = shared / shared.norm()
        signal = unit * (unit @ move)
        single = single - torch.outer(single @ unit, unit)
    rest = move - signal
    values, vectors = torch.linalg.eigh(single @ single.T)
    alive = values > DEAD * values[-1]
    inverse = torch.where(alive, 1 / torch.where(alive, values, 1.0), 0.0)
    memorised = single.T @ (vectors @ (inverse * (vectors.T @ (single @ rest))))
    return signal, memorised, rest - memorised


def _movement(signal: Tensor, memorised: Tensor, outside: Tensor) -> Movement:
    """The parts with their shares."""
    whole = signal + memorised + outside
    square = whole.square().sum()
    shares = [((part * whole).sum() / square).item() if bool(square > 0) else math.nan
              for part in (signal, memorised, outside)]
    return Movement(signal, memorised, outside, (shares[0], shares[1], shares[2]))


def _check(f: Network, path: Sequence[Params], directions: Mapping, data: Sequence[Data], loss: Callable) -> None:
    """Refuse what has no decomposition, before any work."""
    shapes = [{name: tuple(p.shape) for name, p in params.items()} for params in path]
    if len(path) < 2 or any(one != shapes[0] for one in shapes):
        raise ValueError(f"path must hold the parameters of one network at its start and at its end at least, with the "
                         f"same names and shapes; got {len(path)} of them")
    unknown = sorted(directions.keys() - path[0].keys())
    if unknown:
        raise ValueError(f"directions must be given for layers, {', '.join(path[0])}; got {', '.join(unknown)}")
    for name, pair in directions.items():
        if any(v.ndim != 2 or v.shape[-1:] != path[0][name].shape[-1:] for v in pair):
            raise ValueError(f"directions of {name!r} must have the shapes (q, d) and (n, d) with d = "
                             f"{path[0][name].shape[-1]}; got {' and '.join(str(tuple(v.shape)) for v in pair)}")
    for x, y in data:
        if not len(x) or len(x) != len(y):
            raise ValueError(f"inputs and labels must be of the same samples, at least one; got {len(x)} and {len(y)}")
        if directions.keys() == path[0].keys():
            continue  # no gradient will be asked for
        shape = loss(outputs(f, path[0], x[:2]), y[:2]).shape
        if shape != x[:2].shape[:1]:
            raise ValueError(f"loss must return one number a sample, shape (n,); for {len(x[:2])} samples it returned "
                             f"the shape {tuple(shape)}")
