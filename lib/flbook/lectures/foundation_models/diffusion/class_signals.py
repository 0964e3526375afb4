"""The signal-noise data with a signal of its own for each class, as a denoiser without labels sees them."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import SignalNoise
from flbook.domains import Range


@dataclass(frozen=True)
class ClassSignals(SignalNoise):
    r"""Patches :math:`x = [\mu_y, \xi]` with :math:`\mu_{+1} \perp \mu_{-1}` of one length, noise orthogonal to both.

    Everything else is `SignalNoise`. A sample's ``mu`` holds the two signals, that of +1 first.

    Source: Han et al. (2025a), Definition 2.1; that the noise is orthogonal to both is as reported.

    Examples
    --------
    >>> sample = ClassSignals(n=6, d=50, mu_norm=5.0).draw(seed=(0, 1))
    >>> sample.x.shape, sample.mu.shape, float((sample.xi @ sample.mu.T).abs().max())
    (torch.Size([2, 6, 2, 50]), torch.Size([2, 50]), 0.0)
    """

    d: Annotated[int, Range(3)] = 1000  # two coordinates for the signals, others for noise
    orthogonal: bool = True

    def __post_init__(self):
        super().__post_init__()
        if not self.orthogonal:
            raise ValueError("orthogonal must be True: the noise of this model is orthogonal to both signals")

    @property
    def mu(self) -> Float[Tensor, "2 d"]:
        """The two signals, along the first two axes."""
        return self.mu_norm * torch.eye(2, self.d, dtype=torch.float64)

    def signal(self, y: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n d"]:
        """Signal patches of given labels."""
        return self.mu[(y < 0).long()]

    def noise(self, standard: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """Noise patches from standard normal numbers."""
        return self.sigma_xi * torch.cat([torch.zeros_like(standard[..., :2]), standard[..., 2:]], dim=-1)

    @property
    def test_law(self):
        """Not that of one signal: fresh patches meet a network as `flbook.dynamics.patches.PatchTraining` says."""
        raise ValueError("ClassSignals has no test law for one signal; use PatchTraining with features=2")
