"""The data law: patches, shares, moments, weights of samples, and errors on fresh samples."""

from dataclasses import replace

import pytest
import torch

from flbook import Training, TwoLayerCNN, fit
from flbook.lectures.training_strategies.mixup.squares import on_feature, test_error, training, weighted
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.models.activations import Power
from flbook.training.optimizers import GradientDescent

fresh_error = test_error
del test_error  # or it would be collected


def test_patches_are_what_the_model_says():
    data = CommonAndRare(n=20, d=500, share=0.2, noise_square=9.0)
    sample = data.draw((0, 1))
    feature, noise = sample.x.unbind(-2)
    assert sample.rare.sum() == 4 and sample.y.sum() == 0 and (sample.y * sample.rare).sum() == 0
    place = feature.argmax(-1)[0]
    assert torch.equal(place, (sample.y < 0) + 2 * sample.rare) and (feature.sum(-1) == 1).all()
    assert torch.equal(noise, sample.xi) and (noise[..., :4] == 0).all()
    assert noise.square().sum(-1).mean() == pytest.approx(9.0, rel=0.03)
    assert torch.equal(data.draw(1).x, sample.x[1])


def test_signs_and_places_change_nothing_else():
    plain, changed = CommonAndRare(n=20, d=50, share=0.2), CommonAndRare(n=20, d=50, share=0.2, signs=True, places=True)
    one, other = plain.mix((0, 1)), changed.mix((0, 1))
    assert torch.equal(one.sum(-2), other.abs().sum(-2))
    assert not torch.equal(other[0], other[1]) and (other < 0).any() and (other[..., 0, 4:] > 0).any()


def test_coefficients_are_training_in_weights():
    data = CommonAndRare(n=12, d=40, share=1 / 3)
    sample = data.draw((0, 1))
    cnn = TwoLayerCNN(40, 3, 0.1, activation=Power(2), seed=(0, 1), dtype=torch.float64)
    direct, ours = Training(cnn, sample.x, sample.y), training(data, (0, 1), m=3, sigma_0=0.1)
    rule = GradientDescent(0.3)
    one, other = fit(direct, rule, 40).params, fit(ours, rule, 40).params
    torch.testing.assert_close(direct.predict(one), ours.predict(other), rtol=1e-9, atol=1e-12)
    w = one["w"].detach().flatten(1, 2)
    a = torch.tensor([1.0] * 3 + [-1.0] * 3, dtype=torch.float64) / 3
    expected = torch.einsum("k,ekf->ef", a, w[..., :4].square())
    torch.testing.assert_close(on_feature(ours, other, "rare"), expected[:, 2:] * torch.tensor([1.0, -1.0]))
    xi = data.sigma_xi * torch.randn(20000, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    xi[:, :4] = 0
    noise = torch.einsum("k,ekp->ep", a, (w @ xi.T).square())
    for kind, k in (("common", 0), ("rare", 2)):
        wrong = (expected[:, k, None] + noise <= 0).double().mean(-1) + (expected[:, k + 1, None] + noise >= 0).double(
        ).mean(-1)
        torch.testing.assert_close(fresh_error(ours, other, kind), wrong / 2, atol=0.02, rtol=0)


def test_weights_are_samples_counted_several_times():
    data = CommonAndRare(n=12, d=40, share=1 / 3)
    plain = training(data, 0, m=3, sigma_0=0.1)
    often = torch.cat([torch.arange(12), torch.arange(4), torch.arange(4)])  # the first four are rare
    repeated = replace(plain, mix=plain.mix[often], observed=plain.observed[often])
    one, other = weighted(plain, data.rare(), 3.0), repeated
    torch.testing.assert_close(one.gradient(plain.start()), other.gradient(plain.start()))


def test_labels_that_cannot_be_balanced_are_refused():
    for n, share in ((11, 0.5), (20, 0.05)):
        with pytest.raises(ValueError, match="must be even"):
            CommonAndRare(n=n, share=share)
    with pytest.raises(ValueError, match="share"):
        CommonAndRare(share=1.1)
