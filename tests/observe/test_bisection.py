"""Borders whose place is known, and what is refused."""

import numpy as np
import pytest

from flbook import observe


def test_a_border_and_its_interval_over_seeds():
    places = dict(enumerate([8.0, 10.0, 12.0, 9.0, 11.0]))
    found = observe.border(lambda n, seed: np.tanh(n - places[seed]), 1.0, 1000.0, level=0.0, tol=1e-4)
    np.testing.assert_allclose(found.per_seed, list(places.values()), rtol=1e-4)
    assert found.value == pytest.approx(np.exp(np.log(list(places.values())).mean()), rel=1e-4)
    low, high = found.interval
    assert low < found.value < high and 7 < low and high < 13
    assert found.runs < 5 * 25, "a grid of this step has 69,000 values a seed"


def test_a_falling_quantity_is_bisected_alike():
    found = observe.border(lambda n, seed: 1 / (n + seed), 0.1, 50.0, level=0.2, seeds=(0, 1))
    np.testing.assert_allclose(found.per_seed, [5, 4], rtol=0.02)


@pytest.mark.parametrize("change, sentence", [
    (dict(low=5.0, high=2.0), "low must lie below high; got 5.0 and 2.0"),
    (dict(seeds=(0,)), "at least two seeds; got 1"),
    (dict(level=9.0), "seed 0 is at or below the level 9 at both ends, 1 and 4; widen them"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        observe.border(**(dict(run=lambda n, seed: n, low=1.0, high=4.0, level=2.0) | change))
