"""What a network, or a rival of it, says about the signal and about each sample's noise, and who carries that noise."""

from torch import Tensor

from flbook.dynamics.frozen import FrozenGramTraining
from flbook.dynamics.gram import GramTraining
from flbook.training.problem import Params


def spoken(training: GramTraining | FrozenGramTraining, params: Params) -> tuple[Tensor, Tensor]:
    """The output on the signal alone, S ``(*E,)``, and on each noise patch for the observed label, N ``(*E, n)``."""
    plus, minus = training.signal_outputs(params)
    noise = training.noise_outputs(params, training.training_noise(params))
    return (plus - minus) / 2, noise * training.observed


def mean(values: Tensor, group: Tensor) -> Tensor:
    """Mean over the samples of a group, shape ``*E``."""
    return (values * group).sum(-1) / group.sum(-1)


def check_flips(flip_prob: float, n: int) -> None:
    """Refuse samples without flipped or without clean labels."""
    if not 1 <= round(flip_prob * n) < n:
        raise ValueError(f"flip_prob must leave at least one flipped and one clean sample of n = {n}; got {flip_prob}")


def carriers(training: GramTraining, params: Params) -> Tensor:
    """The share phi of the filters of a sample's observed sign that answer to its noise patch, shape ``(*E, n)``."""
    noise = training.patches(params)["noise"]  # (*E, k, n)
    own = training.a[:, None] * training.observed[..., None, :] > 0
    answers = training.slope(noise, "noise") > 0
    return (answers & own).to(noise).sum(-2) / (len(training.a) / 2)


def error_constant(training: GramTraining, params: Params, n_snr2: Tensor) -> Tensor:
    r"""Rate c of the error on fresh noise, :math:`e^{-c d/n}`, from what the network says, shape ``*E``.

    The wrong half of the network must overrule S. The noise patch that does it with the least length lies along the
    mean of its filters, whose squared length is :math:`\frac1d\sum_{\tilde y_i = j} N_i^2 + S^2/(d\,\mathrm{SNR}^2)` in
    units of :math:`\sigma_\xi^{-2}`. So

    .. math:: c = \Big(\frac{\langle N^2\rangle}{S^2} + \frac2{n\,\mathrm{SNR}^2}\Big)^{-1}.

    Source: derived in the lecture on label noise.
    """
    signal, noise = spoken(training, params)
    return 1 / (noise.square().mean(-1) / signal**2 + 2 / n_snr2)


def first_constant(n_snr2: float, flip_prob: float, phi: float) -> float:
    r"""The same while all loss derivatives are equal: :math:`N/S = 2\varphi/((1 - 2p)\,n\,\mathrm{SNR}^2)`.

    Examples
    --------
    >>> round(first_constant(5.0, 0.2, 0.79), 3)
    1.476
    """
    return 1 / ((2 * phi / ((1 - 2 * flip_prob) * n_snr2)) ** 2 + 2 / n_snr2)


def last_constant(n_snr2: float, flip_prob: float, phi: float) -> float:
    r"""The same after long training, where :math:`S : N_{clean} : N_{flipped} = s : (1 - s) : (1 + s)`.

    Examples
    --------
    >>> round(last_constant(5.0, 0.2, 0.79), 3)
    0.279
    """
    b = n_snr2 / (2 * phi)
    s = (1 - 2 * flip_prob) * b / (1 + b)
    square = (1 - flip_prob) * (1 - s) ** 2 + flip_prob * (1 + s) ** 2
    return 1 / (square / s**2 + 2 / n_snr2)
