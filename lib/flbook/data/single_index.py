"""The single-index data model: Gaussian inputs, and a target that depends on one direction only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative


class SingleIndexSample(NamedTuple):
    """Data of `SingleIndex`, the target's own value beside what is observed."""

    x: Float[Tensor, "*E n d"]  # inputs
    y: Float[Tensor, "*E n"]  # labels, target plus noise
    target: Float[Tensor, "*E n"]  # f*(x), without noise
    index: Float[Tensor, "*E n"]  # <x, beta*>, all of x that the target depends on


@dataclass(frozen=True)
class SingleIndex(Checked):
    r"""Labels :math:`y = \sigma_*(\langle x, \beta_*\rangle) + \varepsilon`, inputs :math:`x \sim N(0, I_d)`.

    The direction is :math:`\beta_* = e_1`, which loses nothing where everything else is rotation invariant.

    Attributes
    ----------
    n
        Training samples.
    d
        Dimension of an input.
    link
        :math:`\sigma_*`, from tensors to tensors.
    noise
        Standard deviation of :math:`\varepsilon`.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Ba et al. (2022), Assumption 1.

    Examples
    --------
    >>> sample = SingleIndex(n=6, d=3).draw(seed=0)
    >>> bool((sample.target == torch.tanh(sample.index)).all())
    True
    """

    n: Count = 1024
    d: Count = 128
    link: Callable[[Tensor], Tensor] = torch.tanh
    noise: NonNegative = 0.1

    @property
    def direction(self) -> Float[Tensor, " d"]:
        r"""The direction :math:`\beta_*`.

        Returns
        -------
        Tensor
            Shape ``(d,)``, in float64.
        """
        return torch.eye(1, self.d, dtype=torch.float64)[0]

    def draw(self, seed: int | tuple[int, ...] = 0, role: str = "first") -> SingleIndexSample:
        """A sample in float64.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading axis.
        role
            Name of the draw: another one gives an independent sample.

        Returns
        -------
        SingleIndexSample
            The n samples, ``x`` of shape ``(*E, n, d)``.
        """
        x = rng.normal((self.n, self.d), seed, f"{role} inputs")
        return self._labelled(x, self.noise * rng.normal((self.n,), seed, f"{role} label noise"))

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> SingleIndexSample:
        r"""Fresh inputs with labels free of noise, in the order of their index :math:`\langle x, \beta_*\rangle`.

        The index is spread evenly: one point in each of `points` intervals of equal probability. What depends on the
        index alone, such as the target, is thus averaged almost exactly; a point picked at random has the exact law.

        Parameters
        ----------
        points
            Number of inputs.
        seed
            One seed, or a tuple of seeds, which gives one leading axis.

        Returns
        -------
        SingleIndexSample
            A sample in float64, ``x`` of shape ``(*E, points, d)``.
        """
        x = rng.normal((points, self.d), seed, "test inputs")
        share = torch.special.ndtr(x[..., :1])  # uniform, so it can serve as the place inside the interval
        steps = torch.arange(points, dtype=x.dtype)[:, None]
        even = torch.special.ndtri(((steps + share) / points).clamp(1e-12, 1 - 1e-12))
        return self._labelled(torch.cat([even, x[..., 1:]], -1), torch.zeros(x.shape[:-1], dtype=x.dtype))

    def _labelled(self, x: Tensor, noise: Tensor) -> SingleIndexSample:
        target = self.link(x[..., 0])
        return SingleIndexSample(x, target + noise, target, x[..., 0])
