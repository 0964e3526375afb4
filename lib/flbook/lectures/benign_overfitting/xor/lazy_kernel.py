r"""The kernel of the lazy network of very many filters, and what is left of it without its linear part.

With :math:`\varphi` the angle between two patches,

.. math:: K(x, x') = \langle x, x'\rangle\,\frac{\pi - \varphi}{2\pi}
          = \tfrac14\langle x, x'\rangle + \langle x, x'\rangle\,\frac{\arcsin(\cos\varphi)}{2\pi}

(Cho and Saul 2009, degree 0). The second part is even: it does not tell x from -x.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def lazy(x: Float[Tensor, "n d"], z: Float[Tensor, "p d"]) -> Float[Tensor, "n p"]:
    """The whole kernel, of all pairs of rows."""
    return x @ z.mT / 4 + even_part(x, z)


def even_part(x: Float[Tensor, "n d"], z: Float[Tensor, "p d"]) -> Float[Tensor, "n p"]:
    """The kernel without its linear part."""
    inner = x @ z.mT
    cosine = (inner / (x.norm(dim=-1)[:, None] * z.norm(dim=-1))).clamp(-1, 1)
    return inner * torch.arcsin(cosine) / (2 * torch.pi)
