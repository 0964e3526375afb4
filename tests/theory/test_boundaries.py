"""What random filters can do at best, against a discriminant fitted to many samples."""

import numpy as np
import pytest

from flbook import theory


@pytest.mark.parametrize("clusters, size", [(2, 0.35), (4, 0.5)])
def test_the_best_readout_of_random_filters(clusters, size):
    rng, m, draws, errors = np.random.default_rng(0), 20, 60_000, []
    for _ in range(6):
        u, v = size * rng.standard_normal((2, 2 * m))  # what unit filters see of the signals, in units of the noise
        y = rng.choice([-1.0, 1.0], draws)[:, None]
        seen = y * u if clusters == 2 else rng.choice([-1.0, 1.0], draws)[:, None] * np.where(y > 0, u, v)
        phi = np.maximum(seen, 0) + np.maximum(rng.standard_normal((draws, 2 * m)), 0)
        one, other = phi[y[:, 0] > 0], phi[y[:, 0] < 0]
        within = (np.cov(one.T) + np.cov(other.T)) / 2
        a = np.linalg.solve(within, one.mean(0) - other.mean(0))
        f = (phi - (one.mean(0) + other.mean(0)) / 2) @ a
        errors.append(float((f * y[:, 0] <= 0).mean()))
    assert np.mean(errors) == pytest.approx(theory.random_filters_error(m, size**2, clusters), abs=0.02)


def test_other_numbers_of_clusters_are_refused():
    with pytest.raises(ValueError, match="clusters must be among 2, 4; got 3"):
        theory.random_filters_error(10, 0.1, clusters=3)
