"""Arguments of a check, as numbers: what it may be called with, refused in one sentence before anything is compared."""

import math

import numpy as np

SEEDS = 10  # fewer do not give a standard error worth the name


def array(x):
    """Numbers in any container as float64; a tensor is asked by its methods, so that torch need not be imported.

    Parameters
    ----------
    x
        Numbers in a list, an array, a DataArray or a tensor, of any shape.

    Returns
    -------
    numpy.ndarray
        Of the same shape.
    """
    return np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


def measurement(where, measured, seeds, interval):
    """The value, its seeds (or None) and its interval (or None), from any of the forms a measurement may have.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    measured
        A number, one number per seed, shape ``(seed,)``, or a fit of `flbook.fits`.
    seeds
        The statistic per seed, shape ``(seed,)``, or None.
    interval
        ``(lo, hi)``, or None.

    Returns
    -------
    tuple
        ``(value, seeds, interval)``, a float and arrays of shapes ``(seed,)`` and ``(2,)``.
    """
    if hasattr(measured, "per_seed"):  # a fit brings its own spread
        seeds = measured.per_seed if seeds is None else seeds
        interval = measured.interval if interval is None else interval
        measured = measured.value
    try:
        values = array(measured)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: what was measured is {measured!r}; it must be numbers, or a fit.") from None
    if values.size > 1 and seeds is None:
        seeds, values = values, values.mean(keepdims=True)
    if values.size != 1:
        raise ValueError(f"{where}: what was measured has shape {values.shape}; with seeds= it must be one number.")
    return float(values.reshape(())), _seeds(where, seeds), _interval(where, interval)


def finite(where, argument, x):
    """One finite number.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    argument
        What the sentence calls it.
    x
        The number, in any container of one.

    Returns
    -------
    float
        The number.
    """
    try:
        x = array(x)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: {argument} is {x!r}; it must be one number.") from None
    if x.size != 1 or not math.isfinite(x.reshape(())):
        shown = f"has shape {x.shape}" if x.size != 1 else f"is {float(x.reshape(()))}"
        raise ValueError(f"{where}: {argument} {shown}; it must be one finite number.")
    return float(x.reshape(()))


def origin(where, result):
    """Scale, device and fresh seed of a Dataset, and of a stored one the command that made it.

    A page computes at the book's scale on the CPU.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    result
        The Dataset behind a number; None for what the page computed itself.

    Returns
    -------
    dict[str, str]
        ``scale``, ``device``, ``command`` and ``fresh_seed``, empty where they are not known.
    """
    attrs = dict(scale="book", device="cpu") if result is None else getattr(result, "attrs", {})
    if "scale" not in attrs or "device" not in attrs:
        raise ValueError(f"{where}: result must be a Dataset with scale and device, as a sweep returns it.")
    return {key: str(attrs.get(key, "")) for key in ("scale", "device", "command", "fresh_seed")}


def relative_error(where, argument, computed, expected):
    r"""The largest error relative to the largest entry, so that an entry near zero needs no exception.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    argument
        What the sentence calls `computed`.
    computed
        Numbers of the shape of `expected`.
    expected
        An array that is not zero everywhere.

    Returns
    -------
    float
        :math:`\max_i |c_i - e_i| / \max_i |e_i|`.
    """
    computed = array(computed)
    if computed.shape != expected.shape:
        raise ValueError(
            f"{where}: {argument} has shape {computed.shape} and expected has shape {expected.shape}; "
            "the two must be equal."
        )
    return float(np.abs(computed - expected).max() / np.abs(expected).max())


def _seeds(where, values):
    values = None if values is None else array(values)
    if values is not None and (values.ndim != 1 or values.size < SEEDS):
        raise ValueError(
            f"{where}: seeds has shape {values.shape}; it must hold one number per seed, at least {SEEDS}."
        )
    return values


def _interval(where, ends):
    ends = None if ends is None else array(ends)
    if ends is not None and (ends.shape != (2,) or ends[0] > ends[1]):
        raise ValueError(f"{where}: interval is {ends.tolist()}; it must be (lo, hi) with lo <= hi.")
    return None if ends is None or not np.isfinite(ends).all() else ends
