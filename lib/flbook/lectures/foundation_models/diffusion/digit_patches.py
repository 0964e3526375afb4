"""Digits 0 and 1 beside noise: pictures as they are, so that the two class means are far from orthogonal."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.images import ImageNoise, digits
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining
from flbook.lectures.foundation_models.diffusion.noise_prediction import noising
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser
from flbook.models.activations import square
from flbook.models.cnn import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, Momentum


class DigitPatches(NamedTuple):
    """Training and test samples; patches are a picture and noise."""

    means: Float[Tensor, "2 d"]  # of the classes, over all pictures
    x: Float[Tensor, "n 2 d"]
    y: Float[Tensor, " n"]
    x_test: Float[Tensor, "points 2 d"]
    y_test: Float[Tensor, " points"]

    @property
    def cosine(self) -> float:
        """Between the two class means."""
        return float(torch.nn.functional.cosine_similarity(*self.means, dim=0))


@checked_arguments
def digit_patches(snr: Positive, n: Count = 50, seed: Natural = 0) -> DigitPatches:
    """Pictures of zeros and ones, 16 x 16 pixels, brightness as it is, scaled to a mean |mu| of SNR sqrt(d)."""
    data = ImageNoise(digits((0, 1), enlarge=2), n=n)
    pictures, y = data.images.pixels.double().flatten(1), data.images.y.double()
    means = torch.stack([pictures[y > 0].mean(0), pictures[y < 0].mean(0)])
    size = snr * math.sqrt(data.d) / means.norm(dim=1).mean()
    both = []
    for places, drawn in zip(data.split(seed), (data.draw(seed), data.draw_test(seed)), strict=True):
        both += [torch.stack([size * pictures[places], drawn.xi], 1), y[places]]
    return DigitPatches(size * means, *both)


@checked_arguments
def denoised(data: DigitPatches, m: Count = 20, t: Positive = 0.2, steps: Count = 1500) -> tuple[float, float]:
    """Mean response of a trained denoiser to the class means and to the noise patches, in size.

    The means stand among the patches with no weight in the loss, so that their responses come for free.
    """
    n, d = data.x.shape[0], data.x.shape[-1]
    alpha, beta = noising(t)
    patches = torch.cat([data.means, data.x[:, 0], data.x[:, 1]])
    share = torch.tensor([0.0] * 2 + [1 / n] * 2 * n, dtype=torch.float64)
    problem = DenoisingTraining.of(patches, share, TiedDenoiser(d, m, 0.03, dtype=torch.float64), alpha, beta)
    bend = torch.linalg.eigvalsh((patches * share[:, None]).T @ patches)[-1]
    lr = 0.4 / (beta ** (4 / 3) * max((alpha / beta) ** 2 * float(bend), 6.0))
    z = problem.responses(fit(problem, Momentum(lr, averaged=True), steps).params).abs()
    return float(z[:, :2].mean()), float(z[:, 2 + n :].mean())


@checked_arguments
def classified(data: DigitPatches, m: Count = 20, steps: Count = 300) -> tuple[float, float, float]:
    """A quadratic classifier: largest response to a class mean, to a noise patch, and its test accuracy."""
    n, d = data.x.shape[0], data.x.shape[-1]
    vectors, mix = torch.cat([data.x[:, 0], data.x[:, 1]]), torch.zeros(n, 2, 2 * n)
    mix[torch.arange(n), 0, torch.arange(n)] = 1
    mix[torch.arange(n), 1, n + torch.arange(n)] = 1
    cnn = TwoLayerCNN(d, m, 0.001, square, dtype=torch.float64)
    problem = PatchTraining.of(vectors, mix, data.y, cnn)
    params = fit(problem, GradientDescent(10 / float(vectors.square().sum(-1).max())), steps).params
    cnn.w.data += (params["c"] @ vectors).unflatten(0, (2, m))
    responses = cnn.w.detach().flatten(0, 1)
    right = (cnn(data.x_test) * data.y_test > 0).double().mean()
    on_means, on_noise = (responses @ data.means.T).abs().max(), (responses @ data.x[:, 1].T).abs().max()
    return float(on_means), float(on_noise), float(right)
