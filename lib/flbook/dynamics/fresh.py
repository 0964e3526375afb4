r"""Outputs on fresh noise, a block of members at a time.

What K filters see of a fresh noise patch is Gaussian: :math:`z = Lg` with standard normal g, the same g for every
member of an ensemble. The array of all z is ``members x points x K``: made at once it is far larger than a processor's
cache, and each operation on it costs fresh pages of memory. A block of it stays in the cache until it is summed up.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_BLOCK = {"cpu": 2**20}  # numbers at once: what a core's cache holds
_LARGE = 2**27  # on a device that wants large batches: half a gigabyte in float32


def outputs_on_noise(
    respond: Callable[[Tensor], Tensor],
    root: Float[Tensor, "*E G K"],
    a: Float[Tensor, "*#E k"],
    standard: Float[Tensor, "points G"],
    bias: Float[Tensor, "*#E K"] | None = None,
) -> Float[Tensor, "*E points"]:
    r""":math:`\sum_k a_k\,\sigma(b_k + z_k)` for every member and point, with :math:`z_k = \sum_l g_l R_{lk}`.

    Parameters
    ----------
    respond
        What the k filters of the network make of the pre-activations, ``(members, points, K)``, that K filters have: K
        is k, or 2 k for a rival that also asks what the initial filters see.
    root
        R, shape ``(*E, G, K)``, with :math:`R^\top R` the covariance of what the filters see. The product is taken in
        its dtype, and becomes that of `a` before the filters respond.
    a
        Output weights, shape ``(*#E, k)``.
    standard
        g, standard normal numbers, shape ``(points, G)``.
    bias
        Added to the pre-activations of each filter, shape ``(*#E, K)``.

    Returns
    -------
    Tensor
        Outputs, shape ``(*E, points)``, in the dtype of `a`.

    Examples
    --------
    >>> root, g = torch.tensor([[[3.0]], [[5.0]]]), torch.tensor([[1.0], [-1.0]])
    >>> outputs_on_noise(torch.relu, root, torch.ones(1), g).tolist()
    [[3.0, 0.0], [5.0, 0.0]]
    """
    members, points = root.shape[:-2], standard.shape[0]
    rows = [root.reshape(-1, *root.shape[-2:]), a.expand(*members, -1).reshape(-1, a.shape[-1])]
    rows += [] if bias is None else [bias.expand(*members, -1).reshape(-1, bias.shape[-1])]
    together = max(1, _BLOCK.get(root.device.type, _LARGE) // (points * root.shape[-1]))
    columns = standard.to(root).T
    blocks = (_block(respond, columns, *parts) for parts in zip(*(row.split(together) for row in rows), strict=True))
    return torch.cat(list(blocks)).reshape(*members, points)


def _block(respond: Callable, columns: Tensor, root: Tensor, a: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same for some members, filters before points: rows of points are long."""
    z = (root.mT @ columns).to(a)
    z = z if bias is None else z + bias.to(a)[..., None]
    return (a[:, None, :] @ respond(z.mT).mT)[:, 0]
