r"""A denoiser and a classifier of the same shape, on the same signal-noise data: what do their neurons see?

Claim (Han et al. 2025a, Theorems 3.1 and 3.2): the denoiser has a stationary point with
:math:`|\langle w, \mu\rangle|/|\langle w, \xi\rangle| = \Theta(n\,\mathrm{SNR}^2)`; the classifier learns the signal
and nothing of the noise where :math:`n\,\mathrm{SNR}^2` is large, and the reverse where it is small.
"""

import math
from dataclasses import dataclass, replace

import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.dynamics.patches import Basis, PatchTraining
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining, check_depth, draw_basis
from flbook.lectures.foundation_models.diffusion.noise_prediction import noising
from flbook.models.activations import square
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.shapes import Quantity, signs
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, Momentum
from flbook.training.problem import Params


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: diffusion times, at one signal strength.
    """

    n_snr2: tuple[Positive, ...] = axis([0.375, 0.75, 2.0, 6.75], "n SNR²")
    mu: tuple[Positive, ...] = axis([5.0], "signal strength |μ|")
    t: tuple[Positive, ...] = axis([0.05, 0.2, 0.5, 1.0, 2.0], "diffusion time t")
    seed: tuple[Natural, ...] = axis(range(3), "seed")
    n: Count = 30
    d: Count = 1000
    m: Count = 20  # neurons of the denoiser; filters a sign of the classifier
    sigma_0: NonNegative = 0.03  # initial weights
    steps: Count = 1000

    @classmethod
    def at_noise_one(cls, mu: float, **changed) -> "Setting":
        """The paper's data, sigma_xi = 1, at one signal strength, ten seeds and t = 0.2."""
        fixed = {"t": (0.2,), "seed": tuple(range(10))} | changed
        return cls(mu=(mu,), n_snr2=(cls.n * mu**2 / cls.d,), **fixed)

    def check(self) -> None:
        """Refuse a dimension in which vectors are too short, and classes of different size."""
        if self.n % 2:
            raise ValueError(f"n must be even, as many samples of one class as of the other; got {self.n}")
        check_depth(self.n, 2 * self.m, self.d)

    def sigma_xi(self, n_snr2: float, mu: float) -> float:
        """Noise level at which n SNR² has this value."""
        return mu * math.sqrt(self.n / (n_snr2 * self.d))

    def lr(self, n_snr2: float, mu: float, t: float) -> float:
        """Largest stable step of gradient descent, about: the loss bends most along the data it sees most of."""
        alpha, beta = noising(t)
        along = (alpha * mu / beta) ** 2 * max(1 / 2, 1 / n_snr2)
        return 0.5 / (beta ** (4 / 3) * max(along, 6.0))


experiment = Experiment(
    Setting, version=1, loops=("n_snr2", "mu", "t"), chunk={"t": 1},
    gives={
        "ratio": ("signal over noise", "1"),
        "signal": ("response to a signal", "1"),
        "noise": ("response to noise", "1"),
        "gradient": ("length of the gradient", "1"),
    },
    presets={
        "tiny": ("A blink", dict(
            n_snr2=(0.75, 3.0), mu=(2.0, 4.0), t=(0.2, 1.0), seed=(0, 1), n=6, d=60, m=4, sigma_0=0.1, steps=40)),
        "strengths": ("One n SNR², several signal strengths and times", dict(n_snr2=(6.75,), mu=(1.0, 2.0, 5.0, 10.0))),
        "longer": ("A grid in n SNR², signal strength and time, ten data sets, four times the steps", dict(
            n_snr2=lattice(0.1, 20, 9), mu=lattice(0.5, 20, 7), t=lattice(0.05, 2, 7), seed=tuple(range(10)),
            steps=4000)),
    },
)


def products(setting: Setting, n_snr2: float, mu: float) -> Basis:
    """Data and 2 m initial neurons of all seeds, by their inner products."""
    return draw_basis(setting.n, 2 * setting.m, setting.d, mu_norm=mu, sigma_0=setting.sigma_0,
                      sigma_xi=setting.sigma_xi(n_snr2, mu), seed=setting.seed)


def denoiser(setting: Setting, n_snr2: float, mu: float, t: float, device: str = "cpu") -> DenoisingTraining:
    """The denoisers of all seeds: the first m neurons; two signals for half of the samples each, n noise patches."""
    drawn, m, n = products(setting, n_snr2, mu), setting.m, setting.n
    basis = Basis(drawn.b_b, drawn.w_b[..., :m, :], drawn.w_w[..., :m, :m])
    share = torch.tensor([1 / 2] * 2 + [1 / n] * n, dtype=torch.float64)
    return DenoisingTraining(basis, share, *noising(t), setting.d).to(devices.device(device))


def classifier(setting: Setting, n_snr2: float, mu: float, device: str = "cpu") -> PatchTraining:
    """The classifiers of all seeds: 2 m quadratic filters on the same data, clean."""
    n, y = setting.n, torch.tensor([1.0, -1.0]).double().repeat(setting.n // 2)
    mix = torch.zeros(n, 2, n + 2).double()
    mix[torch.arange(n), 0, (y < 0).long()] = 1
    mix[torch.arange(n), 1, 2 + torch.arange(n)] = 1
    a = signs(2 * setting.m, y) / setting.m
    training = PatchTraining(products(setting, n_snr2, mu), mix, y, a, square, features=2, orthogonal=True,
                            sigma_xi=setting.sigma_xi(n_snr2, mu))
    return training.to(devices.device(device))


def seen(training: DenoisingTraining | PatchTraining, params: Params) -> tuple[torch.Tensor, torch.Tensor]:
    """Size of the responses to the signals and to the noise patches, a mean over neurons; of either network."""
    z = training.responses(params) if isinstance(training, DenoisingTraining) else training.preactivations(params)
    return z[..., :2].abs().mean((-2, -1)), z[..., 2:].abs().mean((-2, -1))


def with_classes(training: DenoisingTraining, plus: int) -> DenoisingTraining:
    """The same training with `plus` of the n samples in class +1."""
    n, share = training.share.shape[0] - 2, training.share.clone()
    share[0], share[1] = plus / n, 1 - plus / n
    return replace(training, share=share)


def probed(training: DenoisingTraining, params: Params, points: int = 8000) -> torch.Tensor:
    """How often a linear probe on the neurons' responses tells the class of a signal patch noised as in training.

    Fisher's discriminant from half of the points of each class, asked on the other half; from the exact law.
    """
    z, gram, m = training.responses(params), training.neuron_gram(params), training.basis.w_b.shape[-2]
    generator = torch.Generator().manual_seed(0)
    standard = torch.randn(*z.shape[:-2], 2, points, m, generator=generator, dtype=torch.float64).to(z)
    root = torch.linalg.cholesky(gram + 1e-9 * torch.eye(m).to(gram))
    noise = training.beta * standard @ root.mT[..., None, :, :]  # (*E, class, points, m)
    features = training.alpha * z[..., :2].mT[..., None, :] + noise
    known, asked = features.split(points // 2, -2)
    mean, centred = known.mean(-2), known - known.mean(-2, keepdim=True)
    spread = (centred.mT @ centred).mean(-3) / (points // 2)
    along = torch.linalg.solve(spread, (mean[..., 0, :] - mean[..., 1, :])[..., None])[..., 0]
    side = ((asked - mean.mean(-2)[..., None, None, :]) * along[..., None, None, :]).sum(-1) > 0
    return (side[..., 0, :].double().mean(-1) + 1 - side[..., 1, :].double().mean(-1)) / 2


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one denoiser to the end."""
    training = denoiser(s, s.n_snr2, s.mu, s.t, device)
    params = fit(training, Momentum(s.lr(s.n_snr2, s.mu, s.t), averaged=True), s.steps).params
    signal, noise = seen(training, params)
    return {"ratio": signal / noise, "signal": signal, "noise": noise,
            "gradient": training.norm(training.gradient(params))}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Ratios of denoiser and classifier over gradient descent, at the first cell; dimensions (step, seed)."""
    n_snr2, mu, t = setting.n_snr2[0], setting.mu[0], setting.t[0]
    noisy, labels = denoiser(setting, n_snr2, mu, t, device), classifier(setting, n_snr2, mu, device)
    ours = Quantity("denoiser", lambda params: torch.divide(*seen(noisy, params)), (), "denoiser")
    theirs = Quantity("classifier", lambda params: torch.divide(*seen(labels, params)), (), "classifier")
    rules = GradientDescent(setting.lr(n_snr2, mu, t)), GradientDescent(0.5 * min(1.0, (15 / mu) ** 2))
    parts = [fit(network, rule, setting.steps, [quantity], ("seed",)).history
             for network, rule, quantity in zip((noisy, labels), rules, (ours, theirs), strict=True)]
    return xr.merge(parts).assign_coords(setting.coordinates("seed"))


def accuracy(training: PatchTraining, params: Params, points: int = 2000) -> torch.Tensor:
    """Share of fresh samples whose class a classifier says, from the exact law of fresh noise."""
    generator = torch.Generator().manual_seed(0)
    standard = torch.randn(points, training.test_directions, generator=generator, dtype=torch.float64)
    noise = training.fresh_outputs(params, standard)
    plus, minus = training.feature_outputs(params, torch.eye(2)).unbind(-1)
    right = (plus[..., None] + noise > 0).double() + (minus[..., None] + noise < 0).double()
    return right.mean(-1) / 2
