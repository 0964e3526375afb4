"""Random views of a picture: moved, brighter or darker, noisy, and perhaps in another colour."""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import CLASSES, repainted

BRIGHTER = 0.3  # the brightness is multiplied by 0.7 to 1.3
NOISE = 0.1  # standard deviation of what is added to every value


def view(
    x: Float[Tensor, "*E n 3 8 8"], seeds: tuple[int, ...], role: str, recoloured: bool = False
) -> Float[Tensor, "*E n 3 8 8"]:
    """One view of each picture: moved by up to a pixel either way, in another brightness, with noise.

    recoloured: also painted in a colour that is drawn from all ten; else the view keeps the picture's colour.
    """
    parts = [_view(one, rng.generator(seed, role), recoloured) for one, seed in zip(x, seeds, strict=True)]
    return torch.stack(parts)


def _view(x: Float[Tensor, "n 3 8 8"], generator: torch.Generator, recoloured: bool) -> Float[Tensor, "n 3 8 8"]:
    n = len(x)
    by = torch.randint(3, (2, n, 1), generator=generator) + torch.arange(8)
    factor = 1 + BRIGHTER * (2 * torch.rand(n, 1, 1, 1, generator=generator) - 1)
    noise = NOISE * torch.randn(n, 3, 8, 8, generator=generator)
    colour = torch.randint(CLASSES, (n,), generator=generator)
    by, factor, noise, colour = (part.to(x.device) for part in (by, factor, noise, colour))
    x = repainted(x, colour) if recoloured else x
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    places = torch.arange(n, device=x.device)[:, None, None]
    moved = padded.movedim(1, -1)[places, by[0][:, :, None], by[1][:, None, :]].movedim(-1, 1)
    return moved * factor + noise
