"""What a key number may be called with: every argument is checked before anything is compared or shown.

A number that cannot fail is not a test, so a call that could never fall is a mistake of its author and raises
ValueError wherever it runs.
"""

import math

import numpy as np

from flbook.book import row

SEEDS = 10  # fewer do not give a standard error worth the name


def require_texts(name, **texts):
    """Names and reasons are part of the statement: none may be empty."""
    if not isinstance(name, str) or not name or any(c.isspace() or c in "`:<>" for c in name):
        raise ValueError(f"name is {name!r}; it must be like 'lecture.quantity', without spaces, colons or backticks.")
    for argument, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"key number {name}: {argument} is {text!r}; it must be a phrase or a sentence.")


def array(x):
    """Numbers in any container as float64; a tensor is asked by its methods, so that torch need not be imported."""
    return np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


def scalar(name, argument, x):
    """One number, NaN included: a measurement may fail to exist."""
    try:
        x = array(x)
    except (TypeError, ValueError):
        raise ValueError(f"key number {name}: {argument} is {x!r}; it must be one number.") from None
    if x.size != 1:
        raise ValueError(f"key number {name}: {argument} has shape {x.shape}; it must be one number.")
    return float(x.reshape(()))


def finite(name, argument, x):
    """One finite number."""
    x = scalar(name, argument, x)
    if not math.isfinite(x):
        raise ValueError(f"key number {name}: {argument} is {x}; it must be a finite number.")
    return x


def tolerance(name, book, tol, rtol):
    """The absolute tolerance, from exactly one of the two ways to state it."""
    if (tol is None) == (rtol is None):
        raise ValueError(f"key number {name}: tol is {tol} and rtol is {rtol}; exactly one of the two must be given.")
    allowed = finite(name, "tol", tol) if rtol is None else finite(name, "rtol", rtol) * abs(book)
    if not allowed > 0:
        raise ValueError(f"key number {name}: at book = {book:g} the tolerance is {allowed:g}; it must be above 0.")
    return allowed


def claim(name, ends, book):
    """The two ends of the claim, ``None`` where a side is open; the book's value lies between them."""
    if not isinstance(ends, tuple | list) or len(ends) != 2 or all(end is None for end in ends):
        raise ValueError(f"key number {name}: claim is {ends!r}; it must be (lo, hi), where one of them may be None.")
    lo, hi = (None if end is None else finite(name, "claim", end) for end in ends)
    if lo is not None and hi is not None and not lo < hi:
        raise ValueError(f"key number {name}: claim is ({lo:g}, {hi:g}); its lower end must be below its upper end.")
    if not inside(book, (lo, hi)):
        raise ValueError(f"key number {name}: book = {book:g} must lie inside the claim, {row.span((lo, hi))}.")
    return [lo, hi]


def inside(value, ends):
    """Whether a value lies in the claim, of which one side at least is closed; NaN lies in none."""
    lo, hi = ends
    return (lo is None or value >= lo) and (hi is None or value <= hi)


def alternatives(name, argument, pairs):
    """At least one named alternative that would have made the call fail."""
    if not isinstance(pairs, dict) or not pairs:
        raise ValueError(
            f"key number {name}: {argument} is {pairs!r}; it must be a dict of at least one alternative that would "
            "have failed, because a number that cannot fail is not a test."
        )
    return pairs


def rivals(name, excludes, ends):
    """The rival values, none of which the claim admits."""
    values = {}
    for rival, x in alternatives(name, "excludes", excludes).items():
        values[rival] = finite(name, f"excludes[{rival!r}]", x)
        if inside(values[rival], ends):
            raise ValueError(
                f"key number {name}: the claim, {row.span(ends)}, admits the rival {rival!r} = "
                f"{row.short(values[rival])}; it must exclude every rival."
            )
    return values


def seeds(name, values):
    """The statistic per seed, or None."""
    values = None if values is None else array(values)
    if values is not None and (values.ndim != 1 or values.size < SEEDS):
        raise ValueError(
            f"key number {name}: seeds has shape {values.shape}; it must hold one number a seed, at least {SEEDS}."
        )
    return values


def interval(name, ends):
    """The interval of a pooled fit, or None."""
    ends = None if ends is None else array(ends)
    if ends is not None and (ends.shape != (2,) or ends[0] > ends[1]):
        raise ValueError(f"key number {name}: interval is {ends.tolist()}; it must be (lo, hi) with lo <= hi.")
    return ends


def origin(name, result):
    """Scale, device, command and fresh seed of a Dataset; a page computes at the book's scale on the CPU."""
    attrs = dict(scale="book", device="cpu") if result is None else getattr(result, "attrs", {})
    if "scale" not in attrs or "device" not in attrs:
        raise ValueError(f"key number {name}: result must be a Dataset with scale and device, as a sweep returns it.")
    return {key: str(attrs.get(key, "")) for key in ("scale", "device", "command", "fresh_seed")}
