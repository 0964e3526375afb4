"""The tied denoiser by hand, and what it refuses."""

import math

import pytest
import torch

from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser


@pytest.mark.parametrize("power", [1, 2])
def test_two_neurons_by_hand(power):
    model = TiedDenoiser(d=3, m=2, power=power, dtype=torch.float64)
    w = torch.tensor([[1.0, 2, 0], [0, 1, -1]]).double()
    model.w.data = w
    x = torch.tensor([[[1.0, 1, 1], [0, 2, 0]]]).double()  # one sample of two patches
    first = (3.0**power * w[0] + 0.0 * w[1]) / math.sqrt(2)
    second = (4.0**power * w[0] + 2.0**power * w[1]) / math.sqrt(2)
    torch.testing.assert_close(model(x), torch.stack([first, second])[None])


def test_only_the_square_is_blind_to_the_sign_of_its_input():
    x = torch.randn(4, 2, 5)
    for power, sign in ((1, -1), (2, 1)):
        model = TiedDenoiser(5, 3, 0.5, power)
        torch.testing.assert_close(model(-x), sign * model(x))


def test_patches_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"^patches of shape \(2, 2, 4\) do not fit neurons of shape \(20, 5\)$"):
        TiedDenoiser(5)(torch.zeros(2, 2, 4))
    with pytest.raises(ValueError, match="^sigma_0 must be"):
        TiedDenoiser(5, sigma_0=-1.0)
