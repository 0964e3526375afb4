"""Public names that were renamed: the old one works for a while, and says what it is called now."""

import warnings


def renamed(old: str, new: str, since: str, until: str) -> str:
    """Warn that a public name is called otherwise now.

    Parameters
    ----------
    old
        What was asked for.
    new
        The public name that took its place.
    since
        The version that renamed it, as ``"0.2.0"``.
    until
        The version in which the old name goes, a later one.

    Returns
    -------
    str
        The new name.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     name = renamed("AGOP", "agop", since="0.2.0", until="0.4.0")
    >>> name, str(said[0].message)
    ('agop', 'flbook.AGOP is called flbook.agop since version 0.2.0; the old name goes with version 0.4.0')
    """
    told = f"flbook.{old} is called flbook.{new} since version {since}; the old name goes with version {until}"
    warnings.warn(told, FutureWarning, stacklevel=3)  # where the name was asked for
    return new
