r"""The data of this lecture: M clients, each with a signal of its own and with patches [y mu_k, xi].

Signals have the inner products :math:`\langle\mu_k, \mu_l\rangle = \chi\,\|\mu\|^2`: each is a mixture of one common
feature and one feature of the client,

.. math:: \mu_k = \|\mu\|\big(\sqrt\chi\,e_0 + \sqrt{1-\chi}\,e_k\big),

and noise is Gaussian and orthogonal to all of these features. Every client has as many samples of either label.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import devices, measures, rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Count, NonNegative, Positive
from flbook.dynamics.patches import Basis, PatchTraining
from flbook.models.activations import ReLUPower
from flbook.models.cnn import initial_weights
from flbook.runs import Grid
from flbook.shapes import signs
from flbook.training.problem import Params


@dataclass(frozen=True)
class Federation(Grid):
    """What all experiments of this lecture share: network, signal, noise, and how errors are measured."""

    d: Count = 400
    mu: Positive = 1.5  # signal strength
    noise_norm: Positive = 4.0  # length of a noise patch, sigma_xi sqrt(d)
    m: Count = 10  # filters a sign
    sigma_0: NonNegative = 0.01  # initial weights
    points: Count = 256  # fresh noise patches to measure the test error on, each under both labels

    @property
    def sigma_xi(self) -> float:
        """Standard deviation of a coordinate of the noise."""
        return self.noise_norm / self.d**0.5


def agreeing(clients: Any, agreement: Any) -> Any:
    """(1 + (M-1) chi)/M, the mean agreement: squared length of the mean of M signals over that of one."""
    return (1 + (clients - 1) * agreement) / clients


def strengths(clients: int, agreement: float) -> Float[Tensor, "M features"]:
    """Each client's signal in the features: the common one first, then one for each client."""
    common = torch.full((clients, 1), agreement**0.5, dtype=torch.float64)
    return torch.cat([common, (1 - agreement) ** 0.5 * torch.eye(clients, dtype=torch.float64)], 1)


def pooled(
    federation: Federation, signals: Float[Tensor, "M features"], n: int, seed: tuple[int, ...], device: str = "cpu"
) -> PatchTraining:
    """All samples in one pool, those of the first client first: ensemble axis (seed,). Each client has n samples."""
    features, total = signals.shape[1], len(signals) * n
    xi = federation.sigma_xi * rng.normal((total, federation.d), seed, "noise")
    xi[..., :features] = 0
    vectors = torch.cat([federation.mu * torch.eye(features, federation.d).expand(len(seed), -1, -1), xi], 1)
    w = initial_weights(federation.d, 2 * federation.m, federation.sigma_0, seed)
    y = alternating_labels(n).repeat(len(signals))
    signal = torch.cat([y[:, None] * signals.double().repeat_interleave(n, 0), xi.new_zeros(total, total)], 1)
    noise = torch.cat([xi.new_zeros(total, features), torch.eye(total, dtype=torch.float64)], 1)
    a = signs(w.shape[-2], w) / federation.m
    training = PatchTraining(Basis.of(vectors, w), torch.stack([signal, noise], 1), y, a, ReLUPower(3),
                            features=features, sigma_xi=federation.sigma_xi, orthogonal=True)
    return training.to(devices.device(device), torch.float32)


def apart(training: PatchTraining, clients: int) -> PatchTraining:
    """The same samples, each with its own client: ensemble axes (seed, client), each client's loss that of its own."""
    mix, observed = (part.unflatten(0, (clients, -1)) for part in (training.mix, training.observed))
    return replace(training, basis=Basis(*(part[:, None] for part in training.basis)), mix=mix, observed=observed)


def own_errors(
    training: PatchTraining, params: Params, signals: Float[Tensor, "M features"], points: int
) -> Float[Tensor, "*E M"]:
    """Test error of each member on the fresh data of each client."""
    standard = measures.sobol_normal(points, training.test_directions).to(training.observed)
    noise = training.fresh_outputs(params, standard)[..., None, :]
    plus, minus = (training.feature_outputs(params, sign * signals)[..., None] + noise for sign in (1, -1))
    return (measures.error_rate(plus) + measures.error_rate(-minus)) / 2
