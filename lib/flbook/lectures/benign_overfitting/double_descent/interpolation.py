"""Risk of least squares through the interpolation threshold: coordinates exactly, random features in the limit."""

from collections.abc import Sequence

import numpy as np


def subset_risk(n: int, p: int, inside: float, outside: float, noise: float = 0.0) -> float:
    r"""Mean risk of minimum-norm regression of n Gaussian samples on p of the coordinates: exact at every n and p.

    .. math:: R + \sigma_\varepsilon^2 = \begin{cases}
        (b_\perp + \sigma_\varepsilon^2)\big(1 + \frac{p}{n - p - 1}\big) & p \le n - 2 \\
        \infty & n - 1 \le p \le n + 1 \\
        b\big(1 - \frac np\big) + (b_\perp + \sigma_\varepsilon^2)\big(1 + \frac{n}{p - n - 1}\big) & p \ge n + 2
        \end{cases}

    inside, outside: squared length :math:`b` of the target's coefficients on the p coordinates, :math:`b_\perp` on the
        others.

    Source: Belkin, Hsu and Xu (2020), Theorem 1; Breiman and Freedman (1983) for p < n.
    """
    if n < 1 or p < 1:
        raise ValueError(f"n and p must be at least 1: samples and coordinates; got n={n}, p={p}")
    if n - 1 <= p <= n + 1:
        return float("inf")
    unseen = outside + noise**2
    if p < n:
        return unseen * (1 + p / (n - p - 1)) - noise**2
    return inside * (1 - n / p) + unseen * (1 + n / (p - n - 1)) - noise**2


def random_features_risk(
    n: int, width: float, ridge: float, values: Sequence[float], counts: Sequence[float], weights: Sequence[float],
    tail: float = 0.0, rest: float = 0.0, noise: float = 0.0,
) -> float:
    r"""Risk of ridge regression on N random features, averaged over data and features, when all sizes are large.

    With :math:`z = \sum_k \frac{s_k}{s_k + g} + \frac{\text{tail}}g`, :math:`q = \sum_k \frac{s_k^2}{(s_k + g)^2}` and
    the unique g, :math:`\kappa` that solve :math:`n = z + \delta/\kappa`, :math:`N = z + N\kappa/g`,

    .. math:: R + \sigma_\varepsilon^2 = \frac{\text{rest} + \sigma_\varepsilon^2
        + \sum_k b_k \big(\frac{g}{s_k + g} - \frac{\kappa s_k}{(s_k + g)^2}\frac{N}{N - q}\big)}
        {1 - \frac{q(N - 2z) + z^2}{n(N - q)}}

    Args:
        width: N, which may be infinite: then this is kernel ridge regression.
        ridge: :math:`\delta \ge 0` in :math:`\|y - \Phi a\|^2 + \delta\|a\|^2`, features of order :math:`N^{-1/2}`.
        values, counts: eigenvalues :math:`s_k` of the kernel :math:`E\,\phi(x)\phi(x')`, and how often each occurs.
        weights: squared coefficients :math:`b_k` of the target along them, summed over equal ones.
        tail: trace of the kernel in directions too many to be resolved by n samples.
        rest: mean square of the target along those.
        noise: standard deviation of label noise.

    Source: Simon et al. (2024), Section 4; for Gaussian inputs the limit is that of Mei and Montanari (2022).
    """
    if not (n >= 1 and width >= 1 and ridge >= 0 and tail >= 0):
        raise ValueError(f"n and width must be at least 1, ridge and tail not negative; got n={n}, width={width}, "
                         f"ridge={ridge}, tail={tail}")
    s, count, b = (np.asarray(part, float) for part in (values, counts, weights))

    def sums(g: float) -> tuple[float, float]:
        share = s / (s + g)
        return float((count * share).sum() + tail / g), float((count * share**2).sum())

    low, high = 1e-14, 1e8
    for _ in range(120):  # z falls with g, so both left-overs grow
        g = float(np.sqrt(low * high))
        z, _ = sums(g)
        kappa = g * (1 - z / width)
        low, high = (low, g) if kappa > 0 and n - z - ridge / kappa > 0 else (g, high)
    z, q = sums(high)
    kappa = high * (1 - z / width)
    used = q / n + (z - q) ** 2 / (n * (width - q))  # the same as in the formula, without differences of large numbers
    grow = 1 / (1 - q / width)
    bias = (b * (high / (s + high) - kappa * s / (s + high) ** 2 * grow)).sum()
    return float((rest + bias + noise**2) / (1 - used) - noise**2)


def pole(widths: Sequence[float], risks: np.ndarray) -> np.ndarray:
    r"""Where risks, shape (R, widths), have a pole of first order, seen from both sides; shape (R,).

    On either side a line is fitted to 1/risk; the mean of the two places where the lines reach 0. The first half of the
    widths lies below the pole, the second above it.
    """
    x, y = np.reshape(widths, (2, -1)), 1 / np.reshape(risks, (len(risks), 2, -1))
    off = x - x.mean(-1, keepdims=True)
    slope = (y * off).sum(-1) / (off**2).sum(-1)
    return (x.mean(-1) - y.mean(-1) / slope).mean(-1)
