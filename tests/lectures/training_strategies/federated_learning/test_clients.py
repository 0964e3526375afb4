"""Federated averaging: one local step is pooled descent, many are not, and means are those of the shares."""

import torch

from flbook.data import SignalNoise
from flbook.lectures.training_strategies.federated_learning.clients import FederatedAveraging
from flbook.models import TwoLayerCNN
from flbook.models.activations import softplus
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

CLIENTS, N, D = 3, 4, 20


def federation() -> tuple[Training, Training]:
    """Clients with data of their own and one start, and one network on all of it."""
    sample = SignalNoise(n=N, d=D, mu_norm=2.0).draw(tuple(range(CLIENTS)))
    alike = TwoLayerCNN(D, 3, 0.1, softplus, seed=(7,) * CLIENTS, dtype=torch.float64)
    alone = TwoLayerCNN(D, 3, 0.1, softplus, seed=7, dtype=torch.float64)
    pooled = Training(alone, sample.x.flatten(0, 1), sample.observed.flatten(0, 1))
    return Training(alike, sample.x, sample.observed), pooled


def test_one_local_step_is_gradient_descent_on_the_pooled_data():
    clients, pooled = federation()
    together = fit(pooled, GradientDescent(0.3), 40).params["w"]
    for shares in (None, (1 / 3, 1 / 3, 1 / 3)):
        each = fit(clients, FederatedAveraging(GradientDescent(0.3), shares=shares), 40).params["w"]
        torch.testing.assert_close(each, together.expand_as(each), rtol=0, atol=1e-10)
    five = fit(clients, FederatedAveraging(GradientDescent(0.3), every=5), 40).params["w"]
    alone = fit(clients, GradientDescent(0.3), 40).params["w"]
    assert (five[0] - together).abs().max() > 1e-6 and (alone[0] - alone[1]).abs().max() > 1e-2


def test_the_mean_is_that_of_the_shares_and_comes_every_few_steps():
    clients, _ = federation()
    shares = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    two = fit(clients, Momentum(0.1), 2).params["w"]
    third = fit(clients, Momentum(0.1), 3).params["w"]
    found = fit(clients, FederatedAveraging(Momentum(0.1), 3, tuple(shares.tolist())), 3).params["w"]
    torch.testing.assert_close(found, torch.einsum("k,k...->...", shares, third).expand_as(found), rtol=0, atol=1e-12)
    torch.testing.assert_close(fit(clients, FederatedAveraging(Momentum(0.1), 3), 2).params["w"], two)
