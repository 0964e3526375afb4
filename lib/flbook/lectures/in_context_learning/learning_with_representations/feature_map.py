r"""Prompts whose labels are linear in a fixed feature map: the map is the same in all prompts, the weights are not."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.prompts import Prompts
from flbook.domains import Checked, Count, NonNegative, require
from flbook.shapes import Context

MEAN, SPREAD = math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)  # of |z|, for a standard normal z


@dataclass(frozen=True)
class FeatureMapPrompts(Checked):
    r"""Linear regression on a fixed two-layer network, with other weights in every prompt.

    .. math:: y_i = \langle w, \varphi(x_i)\rangle + \varepsilon_i, \qquad x_i \sim N(0, I_d), \quad w \sim N(0, I/d),
              \quad \varepsilon_i \sim N(0, \sigma_y^2)

    with the map of `features`. Labels have the variance :math:`1 + \sigma_y^2`.

    Parameters
    ----------
    n
        Examples of a prompt.
    d
        Dimension of an input, and number of features.
    noise
        Standard deviation of the label noise.
    given
        What stands in the prompt: the inputs ("x") or their features ("features").

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Guo et al. (2024) study prompts of this form; this map is ours.

    Examples
    --------
    >>> prompts = FeatureMapPrompts(n=8, d=4).draw(batch=3, seed=0)
    >>> prompts.context.x.shape, prompts.task.shape
    (torch.Size([3, 8, 4]), torch.Size([3, 4]))
    """

    n: Count = 16
    d: Count = 4
    noise: NonNegative = 0.3
    given: str = "x"

    def draw(
        self,
        batch: int,
        seed: int | tuple[int, ...] = 0,
        step: int = 0,
        device="cpu",
        dtype: torch.dtype = torch.float64,
    ) -> Prompts:
        """One batch of prompts with one query, a pure function of (seed, step); a tuple of seeds leads with one axis.

        Inputs, weights and noise are drawn one by one; they are the same, whatever stands in the prompt.
        """
        require("batch", batch, Count)
        n = self.n

        def normal(what: str, *shape: int) -> Tensor:
            return rng.normal((batch, *shape), seed, f"feature-map prompts {what}, step {step}", device, dtype)

        x, task = normal("inputs", n + 1, self.d), normal("weights", self.d) / self.d**0.5
        seen = features(x)  # (*E, batch, n + 1, d)
        clean = torch.einsum("...d,...nd->...n", task, seen)
        y = clean + self.noise * normal("noise", n + 1)
        shown = seen if self.given == "features" else x
        return Prompts(Context(shown[..., :n, :], y[..., :n]), shown[..., n:, :], clean[..., n:], task, y[..., n:])


def features(x: Float[Tensor, "*E d"]) -> Float[Tensor, "*E d"]:
    r"""The map :math:`\varphi_j(x) = (|\langle u_j, x\rangle| - \sqrt{2/\pi}) / \sqrt{1 - 2/\pi}`, d numbers.

    It is a network with one hidden layer, as :math:`|z|` is the sum of two ReLUs. The :math:`u_j` are orthonormal, so
    for :math:`x \sim N(0, I_d)` the features are independent, of mean 0 and variance 1; as the map is even, no
    feature is correlated with any input.
    """
    return ((x @ directions(x.shape[-1], str(x.device), x.dtype).mT).abs() - MEAN) / SPREAD


@lru_cache(maxsize=8)
def directions(d: int, device: str = "cpu", dtype: torch.dtype = torch.float64) -> Float[Tensor, "d d"]:
    """The orthonormal rows u_j of the cosine transform: a fixed frame along no axis."""
    j, k = torch.arange(d, dtype=torch.float64)[:, None], torch.arange(d, dtype=torch.float64)
    rows = torch.cos(math.pi * (k + 0.5) * j / d) * (2 / d) ** 0.5
    rows[0] /= 2**0.5
    return rows.to(device, dtype)


def class_kernel(x: Float[Tensor, "*E n d"], z: Float[Tensor, "*E p d"]) -> Float[Tensor, "*E n p"]:
    r"""Covariance of the label over all maps of the class: over weights, and over frames :math:`u_j` of any direction.

    .. math:: k(x, z) = \frac{E|\langle u, x\rangle\langle u, z\rangle| - m\,(E|\langle u, x\rangle|
              + E|\langle u, z\rangle|) + m^2}{1 - 2/\pi}, \qquad m = \sqrt{2/\pi},

    with u uniform on the sphere. There :math:`E|\langle u, x\rangle| = c\,\lVert x\rVert`, and the first term is
    :math:`\frac2{\pi d}\lVert x\rVert\lVert z\rVert(\sqrt{1-\rho^2} + \rho\arcsin\rho)` at the cosine :math:`\rho`.
    """
    d = x.shape[-1]
    c = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.pi**0.5
    long, other = x.norm(dim=-1)[..., :, None], z.norm(dim=-1)[..., None, :]
    rho = (x @ z.mT / (long * other)).clamp(-1, 1)
    both = 2 / (math.pi * d) * long * other * ((1 - rho**2).sqrt() + rho * rho.asin())
    return (both - MEAN * c * (long + other) + MEAN**2) / SPREAD**2
