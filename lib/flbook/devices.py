"""Devices: where a computation runs. Nothing moves to a GPU unless it is asked to."""

import torch

KINDS = ("cpu", "cuda")


def device(name: str | torch.device = "cpu") -> torch.device:
    """The torch device of this name.

    Parameters
    ----------
    name
        Name such as ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or a torch device.

    Returns
    -------
    torch.device
        A device that this machine has.

    Raises
    ------
    ValueError
        If the name is unknown or this machine does not have it.

    Examples
    --------
    >>> device()
    device(type='cpu')
    """
    try:
        found = torch.device(name)
    except RuntimeError:
        found = None
    if found is None or found.type not in KINDS:
        raise ValueError(f"device must be 'cpu' or 'cuda', not {str(name)!r}")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {str(name)!r} is absent: PyTorch sees no GPU on this machine; use device='cpu'")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {str(name)!r} is absent: this machine has {torch.cuda.device_count()} GPU(s)")
    return found


def present() -> list[str]:
    """The devices of this machine, by name: always 'cpu', and 'cuda' where there is one.

    Returns
    -------
    list of str
        Names that `device` takes.
    """
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
