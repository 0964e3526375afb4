"""Linear attention: unbiased features, averages of what came before, equal to its own rows, linear in length."""

import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import (
    RandomFeatureAttention,
    causal_average,
    exponents,
)


def drawn(*shape, role="x"):
    return rng.normal(shape, 0, role)


def attention(seed=(0, 1), features=6):
    one = RandomFeatureAttention.draw(features, heads=2, k=4, seed=seed).double()
    torch.nn.init.normal_(one.log_weight, generator=torch.Generator().manual_seed(0))
    return one


def parts(*lead, length=37):
    return [drawn(*lead, 2, length, 4, role=role) for role in "qkv"]


def test_the_mean_of_the_features_is_the_kernel():
    x, z = drawn(5, 3), drawn(300_000, 3, role="z")
    phi = exponents(x, z).exp()
    kernel = (x @ x.T / 3**0.5).exp()
    sd = ((phi[:, None] * phi).std(-1) / 300_000**0.5)
    assert ((phi @ phi.T / 300_000 - kernel).abs() < 5 * sd).all()


@pytest.mark.parametrize("chunk", [1, 5, 37, 64])
def test_running_sums_are_the_rows_times_the_values(chunk):
    q, k, v = parts(1, 3)
    one = attention()
    features = one.features(q, k)
    found = causal_average(*features, v, chunk)
    torch.testing.assert_close(found, one.rows(q, k) @ v, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(one(q, k, v), found, rtol=1e-10, atol=1e-12)
    assert found.shape == (2, 3, 2, 37, 4)


def test_rows_by_hand():
    q, k, _ = (part[0] for part in parts(1, 1, length=3))
    one = attention(seed=(0,), features=2)
    z, a = one.z[0, 1], one.log_weight[0, 1].exp()

    def phi(x):
        return (z @ x / 4**0.25 - x @ x / 4).exp()

    kernel = torch.stack([(a * phi(q[0, 1, 2]) * phi(k[0, 1, i])).sum() for i in range(3)])
    rows = one.rows(q[None], k[None])[0]
    torch.testing.assert_close(rows[0, 1, 2], kernel / kernel.sum())
    assert rows[0, 0, 0].tolist() == [1.0, 0.0, 0.0]


def test_a_later_token_changes_nothing_before_it():
    q, k, v = parts(1, 1)
    other_k, other_v = k.clone(), v.clone()
    other_k[..., 20, :] += 3.0
    other_v[..., 20, :] += 1.0
    one = attention()
    before, after = one(q, k, v), one(q, other_k, other_v)
    torch.testing.assert_close(after[..., :20, :], before[..., :20, :], rtol=1e-10, atol=1e-12)
    assert (after[..., 20:, :] - before[..., 20:, :]).abs().amin(-1).min() > 0


def test_an_ensemble_is_the_loop_and_fewer_features_are_the_first():
    q, k, v = parts(1, 3)
    both = RandomFeatureAttention.draw(40, 2, 4, seed=(3, 1))
    for member, seed in enumerate((3, 1)):
        alone = RandomFeatureAttention.draw(40, 2, 4, seed=(seed,))
        assert torch.equal(both.z[member], alone.z[0])
        torch.testing.assert_close(both.double()(q, k, v)[member], alone.double()(q, k, v)[0])
    fewer = RandomFeatureAttention.draw(20, 2, 4, seed=(3, 1))
    torch.testing.assert_close(fewer.z, both.z[:, :, :20].float())


def test_many_features_are_softmax_attention():
    from flbook.models.transformer import softmax_attention

    q, k, v = (0.3 * part for part in parts(1, 2))
    far = (RandomFeatureAttention.draw(20_000, 2, 4, (0,)).double()(q, k, v)[0] - softmax_attention(q, k, v)[0]).abs()
    near = (RandomFeatureAttention.draw(20, 2, 4, (0,)).double()(q, k, v)[0] - softmax_attention(q, k, v)[0]).abs()
    assert far.max() < 0.01 < near.max()


def test_large_keys_do_not_overflow():
    q, k, v = (part.float() for part in parts(1, 1))
    assert attention().float()(30 * q, 30 * k, v).isfinite().all()


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="k = 3 coordinates, as queries and keys have; got 4"):
        exponents(drawn(2, 3), drawn(2, 4))
    with pytest.raises(ValueError, match="^features must be a whole number of at least 1; got 0"):
        RandomFeatureAttention.draw(0, 1, 1)
