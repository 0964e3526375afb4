"""The vision transformer by hand, as an ensemble, and why one signal of either sign is not enough for it."""

import pytest
import torch

from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals
from flbook.models.patch_attention import VisionTransformer

DATA = TwoSignals(n=4, d=20, snr=2.0, tokens=3)


def test_by_hand():
    model = VisionTransformer(2, h=1, dtype=torch.float64)
    model.q.data, model.k.data = torch.tensor([[1.0], [0.0]]).double(), torch.tensor([[0.0], [2.0]]).double()
    model.v.data = torch.tensor([1.0, 3.0]).double()
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]).double()  # scores: first token asks (0, 2), second (0, 0)
    look = torch.sigmoid(torch.tensor(2.0).double())
    torch.testing.assert_close(model.attention(x)[0, 0], torch.stack([1 - look, look]))
    torch.testing.assert_close(model(x)[0], ((1 - look) * 1 + look * 3 + 2) / 2)


def test_training_the_value_matrix_trains_its_product_with_a_fixed_unit_vector():
    model = VisionTransformer(20, 3, 0.5, 0.5, dtype=torch.float64)
    x, y = DATA.draw(0).x, DATA.draw(0).y
    out = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    out = out / out.norm()
    matrix = (model.v.detach()[:, None] * out).requires_grad_()  # W_V with W_V w_o = v
    torch.nn.functional.softplus(-y * torch.func.functional_call(model, {"v": matrix @ out}, (x,))).mean().backward()
    torch.nn.functional.softplus(-y * model(x)).mean().backward()
    torch.testing.assert_close(matrix.grad @ out, model.v.grad)


def test_a_noise_token_cannot_find_a_signal_of_either_sign():
    model = VisionTransformer(20, 3, 0.5, 0.5, dtype=torch.float64)
    x = DATA.draw(0).x[:1]
    mirrored = torch.cat([-x[:, :1], x[:, 1:]], 1)  # x_1 = y mu with the other y, the same noise
    odds = [(weight[0, 1, 0] / weight[0, 1, 1]).log() for weight in (model.attention(x), model.attention(mirrored))]
    noise = (x[0, 1] @ model.q @ model.k.T @ x[0, 1]).detach()
    torch.testing.assert_close(odds[0] + noise, -(odds[1] + noise))


def test_bad_input_gets_one_sentence():
    with pytest.raises(ValueError, match="do not fit values"):
        VisionTransformer(20)(torch.zeros(2, 3, 7))
