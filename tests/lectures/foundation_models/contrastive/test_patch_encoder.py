"""Encoders: features by hand, ensembles, refusals."""

import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.shared.info_nce import similarities


def test_features_by_hand():
    encoder = PatchEncoder(d=4, m=3, sigma_0=1.0, seed=1, dtype=torch.float64)
    x = rng.normal((5, 2, 4), 0, "input")
    expected = [[[max(0.0, float(w @ patch)) for w in encoder.w.detach()] for patch in sample] for sample in x]
    torch.testing.assert_close(encoder(x), torch.tensor(expected, dtype=torch.float64))


def test_similarity_of_flat_features_is_the_sum_over_patches():
    encoder = PatchEncoder(d=4, m=3, sigma_0=1.0, dtype=torch.float64)
    x, other = rng.normal((2, 5, 2, 4), 0, "input").unbind(0)
    patchwise = sum(similarities(encoder(x)[:, p], encoder(other)[:, p]) for p in range(2))
    torch.testing.assert_close(similarities(encoder.flat(x), encoder.flat(other)), patchwise)
    across = similarities(encoder.embedding(x), encoder.embedding(other))  # another similarity: it mixes patches
    assert not torch.allclose(across, patchwise)


def test_ensemble_equals_loop():
    x = rng.normal((3, 5, 2, 4), 0, "input").float()
    together = PatchEncoder(d=4, m=3, seed=(0, 1, 2)).embedding(x)
    alone = torch.stack([PatchEncoder(d=4, m=3, seed=s).embedding(x[s]) for s in range(3)])
    torch.testing.assert_close(together, alone)


def test_refusals():
    with pytest.raises(ValueError, match="sigma_0 must be a number above 0"):
        PatchEncoder(d=4, sigma_0=-1.0)
