"""The signal-noise data model: two patches, one with the label in it, one with nothing but noise."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, FlipProbability, Positive, Range, require

PatchSize = Annotated[int, Range(2)]  # one coordinate for the signal, others for noise


class Sample(NamedTuple):
    """Training data of `SignalNoise`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n 2 d"]  # patches [y mu, xi], the input of a network
    observed: Float[Tensor, "*E n"]  # labels to train on, some of them flipped
    y: Float[Tensor, "*E n"]  # true labels
    mu: Float[Tensor, " d"] | Float[Tensor, "classes d"]  # signal; or one for each class
    xi: Float[Tensor, "*E n d"]  # noise patches


def alternating_labels(n: int) -> Float[Tensor, " n"]:
    """Labels +1, -1, +1, ...: balanced classes, whose places lose nothing where the noise is exchangeable.

    Parameters
    ----------
    n
        Samples.

    Returns
    -------
    Tensor
        Shape ``(n,)``, in float64.
    """
    return 1.0 - 2.0 * (torch.arange(n) % 2).double()


def flipped_labels(
    n: int, flip_prob: float, seed: int | tuple[int, ...], exact: bool = True, role: str = "labels"
) -> tuple[Tensor, Tensor]:
    """True and observed labels, with values in {-1, +1}.

    Parameters
    ----------
    n
        Samples.
    flip_prob
        Probability that a label is observed flipped, in [0, 1/2).
    seed
        A tuple of seeds gives one leading axis.
    exact
        True: classes are balanced (+1, -1, +1, ...), and the first ``round(flip_prob n)`` samples, hence equally many
        of either class (one more of +1 if their number is odd), are flipped. The noise vectors are exchangeable, so
        fixing the places loses nothing; it removes the rare draws with many flips that otherwise dominate the mean
        error of small samples. False: each label is +1 or -1 with probability 1/2 and is flipped independently.
    role
        Of the draw, where it is random; see `flbook.rng`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Shape ``(*E, n)`` each, in float64.

    Raises
    ------
    ValueError
        If the probability is outside its range.

    Examples
    --------
    >>> y, observed = flipped_labels(4, flip_prob=0.25, seed=0)
    >>> y.tolist(), observed.tolist()
    ([1.0, -1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, -1.0])
    """
    require("flip_prob", flip_prob, FlipProbability)

    def draw(one: int) -> Tensor:
        if exact:
            y, flip = alternating_labels(n), torch.arange(n) < round(flip_prob * n)
        else:
            uniform = torch.rand((n, 2), generator=rng.generator(one, role), dtype=torch.float64)
            y, flip = torch.where(uniform[:, 0] < 0.5, 1.0, -1.0).double(), uniform[:, 1] < flip_prob
        return torch.stack([y, torch.where(flip, -y, y)])

    y, observed = rng.over_seeds(draw, seed).unbind(-2)
    return y, observed


@dataclass(frozen=True)
class SignalNoise(Checked):
    r"""Patches :math:`x = [y\mu, \xi]`, noise :math:`\xi \sim N(0, \sigma_\xi^2 I)`, observed label flipped or not.

    The signal is :math:`\mu = \|\mu\| e_1`. With ``orthogonal=True`` the noise has no component along it, covariance
    :math:`\sigma_\xi^2 (I - \mu\mu^\top/\|\mu\|^2)`, as in Cao et al. (2022); the default is Kou et al. (2023).

    Attributes
    ----------
    n
        Training samples.
    d
        Dimension of a patch, at least 2.
    mu_norm
        Signal strength :math:`\|\mu\|`.
    sigma_xi
        Standard deviation of a noise coordinate.
    flip_prob
        Probability p that a label is observed flipped, in [0, 1/2): beyond, flips carry the label.
    orthogonal
        Noise without a component along the signal?
    exact_flips
        Balanced classes and exactly round(pn) flips, or independent labels and flips; see `flipped_labels`.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Cao et al. (2022), Definition 3.1; Kou et al. (2023), Definition 3.1.

    Examples
    --------
    >>> data = SignalNoise(n=20, d=100, mu_norm=5.0)
    >>> data.snr, data.draw(seed=(0, 1, 2)).x.shape
    (0.5, torch.Size([3, 20, 2, 100]))
    """

    n: Count = 20
    d: PatchSize = 800
    mu_norm: Positive = 4.0
    sigma_xi: Positive = 1.0
    flip_prob: FlipProbability = 0.0
    orthogonal: bool = False
    exact_flips: bool = True

    @property
    def snr(self) -> float:
        r"""Signal-to-noise ratio :math:`\|\mu\| / (\sigma_\xi \sqrt d)`.

        Returns
        -------
        float
            A number above 0.
        """
        return self.mu_norm / (self.sigma_xi * math.sqrt(self.d))

    @property
    def mu(self) -> Float[Tensor, " d"]:
        """The signal vector.

        Returns
        -------
        Tensor
            Shape ``(d,)``, in float64.
        """
        return self.mu_norm * torch.eye(1, self.d, dtype=torch.float64)[0]

    def signal(self, y: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n d"]:
        """Signal patches of given labels.

        Parameters
        ----------
        y
            True labels, shape ``(*E, n)``.

        Returns
        -------
        Tensor
            Shape ``(*E, n, d)``.
        """
        return y[..., None] * self.mu

    def noise(self, standard: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """Noise patches from standard normal numbers.

        Parameters
        ----------
        standard
            The numbers, shape ``(..., d)``.

        Returns
        -------
        Tensor
            Patches, of the same shape.
        """
        xi = self.sigma_xi * standard
        return torch.cat([torch.zeros_like(xi[..., :1]), xi[..., 1:]], dim=-1) if self.orthogonal else xi

    def draw(self, seed: int | tuple[int, ...] = 0) -> Sample:
        """A training sample in float64 on the CPU.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        Sample
            The n samples, ``x`` of shape ``(*E, n, 2, d)``.
        """
        y, observed = flipped_labels(self.n, self.flip_prob, seed, self.exact_flips)
        xi = self.noise(rng.normal((self.n, self.d), seed, "noise"))
        return Sample(torch.stack([self.signal(y), xi], dim=-2), observed, y, self.mu, xi)

    def given(self, y: Tensor, xi: Tensor, observed: Tensor | None = None) -> Sample:
        """A training sample of one's own draws, in the form of `draw`, with this model's signal.

        Parameters
        ----------
        y
            True labels, -1 or +1, shape ``(*E, n)``.
        xi
            Noise patches, shape ``(*E, n, d)``; they are taken as they are.
        observed
            Labels to train on, of the shape of y; the true ones if None.

        Returns
        -------
        Sample
            The n samples in float64, ``x`` of shape ``(*E, n, 2, d)``.

        Raises
        ------
        ValueError
            If shapes clash, or labels are not -1 or +1.
        """
        observed = y if observed is None else observed
        if xi.shape != (*y.shape, self.d) or observed.shape != y.shape:
            raise ValueError(f"y, xi and observed must have the shapes (*E, n), (*E, n, {self.d}) and (*E, n); got "
                             f"{tuple(y.shape)}, {tuple(xi.shape)} and {tuple(observed.shape)}")
        if not bool(((y.abs() == 1) & (observed.abs() == 1)).all()):
            raise ValueError("y and observed must be labels, -1 or +1; got other numbers")
        y, xi, observed = y.double(), xi.double(), observed.double()
        return Sample(torch.stack([self.signal(y), xi], dim=-2), observed, y, self.mu, xi)

    @property
    def test_law(self):
        """The exact law of what fresh noise does to given weights: `noise_preactivations` of this model.

        Returns
        -------
        Callable
            A function of ``w_w``, ``w_mu``, ``mu_mu`` and ``standard``.
        """
        return partial(noise_preactivations, sigma_xi=self.sigma_xi, orthogonal=self.orthogonal)

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> Sample:
        """Fresh samples: the direct way to a test error, at the price of d-dimensional draws.

        Labels are independent: +1 or -1 with probability 1/2, observed flipped with probability `flip_prob`.

        Parameters
        ----------
        points
            Number of samples.
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        Sample
            A sample in float64, ``x`` of shape ``(*E, points, 2, d)``.
        """
        y, observed = flipped_labels(points, self.flip_prob, seed, exact=False, role="test labels")
        xi = self.noise(rng.normal((points, self.d), seed, "test noise"))
        return Sample(torch.stack([self.signal(y), xi], dim=-2), observed, y, self.mu, xi)


def check_sizes(n: int, d: int) -> None:
    """Refuse an empty sample or a patch too short to hold signal and noise.

    Parameters
    ----------
    n
        Samples.
    d
        Dimension of a patch.
    """
    require("n", n, Count)
    require("d", d, PatchSize)


def check_noise(sigma_xi: float, flip_prob: float = 0.0) -> None:
    """Refuse a noise level or a flip probability that the model does not have.

    Parameters
    ----------
    sigma_xi
        Standard deviation of a noise coordinate.
    flip_prob
        Probability that a label is observed flipped.
    """
    require("sigma_xi", sigma_xi, Positive)
    check_flips(flip_prob)


def check_flips(flip_prob: float) -> None:
    """Refuse a flip probability outside [0, 1/2).

    Parameters
    ----------
    flip_prob
        Probability that a label is observed flipped.
    """
    require("flip_prob", flip_prob, FlipProbability)


def noise_preactivations(
    w_w: Float[Tensor, "*#E k k"],
    w_mu: Float[Tensor, "*#E k"],
    mu_mu: Float[Tensor, "*#E"],
    standard: Float[Tensor, "points k"],
    sigma_xi: float = 1.0,
    orthogonal: bool = False,
) -> Float[Tensor, "*E points k"]:
    r"""Exact draws of :math:`\langle w_k, \xi\rangle` for fresh noise, without a d-dimensional vector.

    A fresh patch meets k weight vectors in a Gaussian of covariance :math:`\sigma_\xi^2 W W^\top`, or
    :math:`\sigma_\xi^2 W (I - \mu\mu^\top/\|\mu\|^2) W^\top` for orthogonal noise. The factor is taken in float64,
    because filters that learned the same thing make the covariance nearly singular; each filter's own variance is
    raised by a factor 1 + 1e-10, so that rounding cannot make it indefinite.

    Parameters
    ----------
    w_w
        Inner products of the k weight vectors, shape ``(*E, k, k)``.
    w_mu
        Their inner products with the signal, shape ``(*E, k)``.
    mu_mu
        Square of the signal strength, shape ``*E``.
    standard
        Standard normal numbers, shape ``(points, k)``: k for each fresh patch.
    sigma_xi, orthogonal
        As in `SignalNoise`.

    Returns
    -------
    Tensor
        Shape ``(*E, points, k)``.

    Raises
    ------
    ValueError
        If the noise is to be orthogonal to a signal of length 0.
    """
    cov = w_w.double()
    if orthogonal:
        if bool((~(mu_mu > 0)).any()):
            raise ValueError("noise can be orthogonal to a signal only if |mu| > 0; got |mu| = 0")
        along = w_mu.double() / mu_mu.double().sqrt()[..., None]
        cov = cov - along[..., :, None] * along[..., None, :]
    factor = covariance_factor(cov, w_w.double().diagonal(dim1=-2, dim2=-1))
    return sigma_xi * torch.einsum("pl,...kl->...pk", standard.to(w_w), factor.to(w_w.dtype))


def covariance_factor(
    cov: Float[Tensor, "*E k k"], variance: Float[Tensor, "*#E k"] | None = None
) -> Float[Tensor, "*E k k"]:
    """A lower triangular L with L L^T = `cov`, which may be singular: its diagonal is raised by 1e-10 of `variance`.

    Where training diverged a member has none: not all numbers of its L are finite then, and the others keep theirs.

    Parameters
    ----------
    cov
        Covariances, shape ``(*E, k, k)``.
    variance
        Variances of shape ``(*E, k)``, where it is not the diagonal of `cov` itself.

    Returns
    -------
    Tensor
        L, shape ``(*E, k, k)``, NaN for a member that has none.
    """
    variance = cov.diagonal(dim1=-2, dim2=-1) if variance is None else variance
    raised = cov + torch.diag_embed(1e-10 * variance + torch.finfo(cov.dtype).tiny)
    factor, failed = torch.linalg.cholesky_ex(raised)
    return torch.where((failed > 0)[..., None, None], torch.nan, factor)
