"""The closed form of coins: one direction by hand, and a network with many samples."""

import math

import pytest
import torch

from flbook.lectures.representation import loss_path_kernel
from flbook.lectures.representation.loss_path_kernel.coin_law import coin_law, curvatures
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import RedrawnLabels, even_or_odd
from flbook.models import TwoLayer


def test_one_direction_by_hand():
    law = coin_law(torch.tensor([0.5], dtype=torch.float64), n=10, time=2.0)
    assert law.gap == pytest.approx((1 - math.exp(-1)) / 10) and law.own == pytest.approx(0.1)
    assert law.fall == pytest.approx((1 - math.exp(-2)) / 20)
    assert law.bound == pytest.approx(2 * math.sqrt(law.fall * law.own))


def test_a_network_follows_it():
    setting = loss_path_kernel.Setting(time=(1.0,), portion=(1.0,), n=(480,), seed=tuple(range(8)), width=16)
    found = loss_path_kernel.experiment.measure(setting).mean("seed").squeeze()
    law = coin_law(curvatures(TwoLayer(64, 16, scale=1 / 16), RedrawnLabels(even_or_odd()).x[::4]), 480, 1.0)
    assert float(found.own) == pytest.approx(law.own, rel=0.1)
    assert math.log(2) - float(found.train_loss) == pytest.approx(law.fall, rel=0.3)
