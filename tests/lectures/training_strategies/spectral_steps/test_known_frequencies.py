"""Steps that know the frequencies: the plain sum against its theory."""

import pytest

from flbook.lectures.training_strategies.spectral_steps import known_frequencies


def test_the_best_sum_is_the_best_of_its_neighbours():
    size, best = known_frequencies.best_sum(48, 700)
    assert all(known_frequencies.of_most_frequent(m, 48, 700) < best for m in (size // 2, 2 * size))
    assert known_frequencies.of_most_frequent(10, 48, 700) == pytest.approx(10, rel=0.01), "few facts are all stored"


def test_the_sum_stores_what_theory_says():
    setting = known_frequencies.experiment.setting("tiny", d=(32,), seed=tuple(range(8)))
    found = known_frequencies.run(setting).stored.squeeze("d").mean("seed")
    expected = known_frequencies.best_sum(32, known_frequencies.Setting().count(32))[1]
    assert float(found.sel(rule="most frequent")) == pytest.approx(expected, rel=0.15)
    assert found.sel(rule="most frequent") > 1.4 * found.sel(rule="whitened")
