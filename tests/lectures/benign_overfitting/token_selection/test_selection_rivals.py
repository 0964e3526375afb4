"""Rivals of token selection: guessing without a signal, no errors with a strong one, an ensemble like its members."""

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting import token_selection
from flbook.lectures.benign_overfitting.token_selection import Setting, selection
from flbook.lectures.benign_overfitting.token_selection.selection_rivals import head_values_error, spectral_error

PAIR = Setting(n=(20,), d=(400,), mu=(0.01, 20.0), seed=(0, 1, 2))


def test_the_heads_values_by_their_likelihood():
    errors = head_values_error(np.array([0.01, 5.0, 12.0]))
    assert errors[0] == pytest.approx(0.5, abs=0.01) and errors[2] < 1e-4
    assert errors[1] < selection.uniform_attention_error(5.0) / 2, "the sum is no match for the likelihood"


def test_the_spectral_method_finds_a_strong_signal_and_guesses_without():
    errors = spectral_error(token_selection.problem(PAIR, 20, 400, 0.2), 400, 0.2)
    assert errors.shape == (3, 2)
    assert float(errors[:, 0].mean()) == pytest.approx(0.5, abs=0.05) and (errors[:, 1] < 1e-3).all()


def test_an_ensemble_of_the_spectral_method_is_its_members():
    together = spectral_error(token_selection.problem(PAIR, 20, 400, 0.2), 400, 0.2)
    (alone,) = spectral_error(token_selection.problem(PAIR.thinned(seed=(1,)), 20, 400, 0.2), 400, 0.2)
    torch.testing.assert_close(together[1], alone)
