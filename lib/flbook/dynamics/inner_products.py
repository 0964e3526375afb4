r"""Inner products of signal, noise and filters: all that training in coefficients asks of the d-dimensional vectors."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import Sample


class Gram(NamedTuple):
    """Inner products of the signal, the training noise and the initial filters."""

    mu_mu: Float[Tensor, "*#E"]
    mu_xi: Float[Tensor, "*#E n"]
    xi_xi: Float[Tensor, "*#E n n"]
    w_mu: Float[Tensor, "*#E k"]  # <w_k(0), mu>
    w_xi: Float[Tensor, "*#E k n"]
    w_w: Float[Tensor, "*#E k k"]
    b: Float[Tensor, "*#E k"]  # initial bias, not an inner product but needed with them

    @classmethod
    def of(cls, sample: Sample, w: Float[Tensor, "*E k d"], b: Float[Tensor, "*E k"] | None = None) -> "Gram":
        """From given data and filters, the +1 filters first.

        Parameters
        ----------
        sample
            What a data model drew, n samples.
        w
            Filters of both signs, shape ``(*E, k, d)``.
        b
            Their biases, shape ``(*E, k)``; 0 if None.

        Returns
        -------
        Gram
            On the device and in the dtype of the filters.
        """
        mu, xi = sample.mu.to(w), sample.xi.to(w)
        if xi.shape[-1] != w.shape[-1]:
            raise ValueError(f"noise of shape {tuple(xi.shape)} and filters of shape {tuple(w.shape)} differ in d")
        return cls(
            mu_mu=mu @ mu,
            mu_xi=xi @ mu,
            xi_xi=torch.einsum("...nd,...pd->...np", xi, xi),
            w_mu=w @ mu,
            w_xi=torch.einsum("...kd,...nd->...kn", w, xi),
            w_w=torch.einsum("...kd,...ld->...kl", w, w),
            b=torch.zeros_like(w[..., 0]) if b is None else b.to(w),
        )

    def with_signals(self, mu_norm: Float[Tensor, "*#E mu"]) -> "Gram":
        """A new last ensemble axis of signal strengths: the same directions, mu scaled from 1 to each |mu|.

        Parameters
        ----------
        mu_norm
            Signal strengths, shape ``(*#E, mu)``. Where they differ between members it has their axes, each of its size
            or 1, before the new. 0 is allowed, as the edge of a phase diagram where there is nothing to learn.

        Returns
        -------
        Gram
            Inner products with the ensemble axes ``(*E, mu)``.
        """
        if not bool((torch.isfinite(mu_norm) & (mu_norm >= 0)).all()):
            raise ValueError(f"mu_norm must be finite and not negative; got {mu_norm.tolist()}")
        unit = Gram(*(part.unsqueeze(-1 - own) for part, own in zip(self, (0, 1, 2, 1, 2, 2, 1), strict=True)))
        size = mu_norm.to(self.mu_mu)
        return unit._replace(
            mu_mu=unit.mu_mu * size**2, mu_xi=unit.mu_xi * size[..., None], w_mu=unit.w_mu * size[..., None]
        )

    def with_filters(self, sigma_0: Float[Tensor, "*#E"]) -> "Gram":
        """The same directions of the filters, whose coordinates had the standard deviation 1, at another one.

        Parameters
        ----------
        sigma_0
            Standard deviations, one number or one a member, shape ``(*#E,)``.

        Returns
        -------
        Gram
            Inner products with the ensemble axes of both.
        """
        size = sigma_0.to(self.w_w)[..., None]
        return self._replace(
            w_mu=size * self.w_mu, w_xi=size[..., None] * self.w_xi, w_w=size[..., None] ** 2 * self.w_w
        )

    def to(self, *where: Any) -> "Gram":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        Gram
            The same numbers there.
        """
        return Gram(*(part.to(*where) for part in self))


def joint_gram(
    now: Float[Tensor, "*E k k"], cross: Float[Tensor, "*E k k"], before: Float[Tensor, "*#E k k"]
) -> Float[Tensor, "*E K K"]:
    """Inner products of trained and initial filters side by side, K = 2 k: what a lazy rival shows to fresh noise.

    Parameters
    ----------
    now
        Inner products of trained filters, shape ``(*E, k, k)``.
    cross
        Those of trained with initial ones, shape ``(*E, k, k)``.
    before
        Those of initial ones, shape ``(*#E, k, k)``.

    Returns
    -------
    Tensor
        Shape ``(*E, K, K)``, the trained filters first.

    Examples
    --------
    >>> joint_gram(*(torch.tensor([[x]]) for x in (4.0, 2.0, 1.0))).tolist()
    [[4.0, 2.0], [2.0, 1.0]]
    """
    return torch.cat([torch.cat([now, cross], -1), torch.cat([cross.mT, before.expand_as(now)], -1)], -2)


def add_product(out: Float[Tensor, "*E k n"], rows: Float[Tensor, "*E k n"],
                shared: Float[Tensor, "*#E n n"]) -> Float[Tensor, "*E k n"]:
    """``out + rows @ shared``, in the place of `out`: one large product for the members that share a matrix.

    Parameters
    ----------
    out
        The summand, shape ``(*E, k, n)``.
    rows
        The left factor, shape ``(*E, k, n)``.
    shared
        The right factor, shape ``(*#E, n, n)``: members share it where the last ensemble axes, of signal strengths for
        example, have size 1.

    Returns
    -------
    Tensor
        Shape ``(*E, k, n)``.

    Examples
    --------
    >>> add_product(torch.ones(3, 1, 2), torch.ones(3, 1, 2), torch.eye(2)).tolist()
    [[[2.0, 2.0]], [[2.0, 2.0]], [[2.0, 2.0]]]
    """
    members = list(shared.shape[:-2])
    while members and members[-1] == 1:
        members.pop()
    lead = out.ndim - shared.ndim + len(members)  # axes along which the matrices differ
    own = out.shape[:lead]
    products = shared.reshape(*members, *shared.shape[-2:]).expand(*own, -1, -1)
    flat = [part.reshape(own.numel(), -1, part.shape[-1]) for part in (out, rows, products)]
    return flat[0].baddbmm_(*flat[1:]).view(out.shape)
