"""Students and teachers: the equations, their solution and the plateau, as the library has them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from flbook.lectures.representation import committee
from flbook.lectures.representation.committee.order_parameters import Committee, symmetric

RATE = "([state, lr, noise]) => flbookLive.committee.rate(state, lr, noise)"
RISK = "state => flbookLive.committee.risk(state)"
PATH = "([start, lr, noise, at]) => flbookLive.committee.path(start, lr, noise, at)"
BEGINNING = "([K, difference]) => flbookLive.committee.beginning(K, difference)"


def arrays(state):
    return {name: np.array(value, float) for name, value in state.items()}


def lists(state):
    return {name: np.asarray(value).tolist() for name, value in state.items()}


@pytest.mark.parametrize("K, noise", [(1, 0.0), (2, 0.0), (3, 0.3), (4, 0.3)])
def test_its_equations_are_the_librarys(tab, K, noise):
    w = np.random.default_rng(K).normal(size=(K, 6)) * 0.5
    state = {"Q": w @ w.T, "R": w[:, :2]}
    found = arrays(tab.evaluate(RATE, [lists(state), 0.7, noise]))
    expected = Committee(K, 2, 0.7, noise).rate(state)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(tab.evaluate(RISK, lists(state)), Committee(K, 2).risk(state), rtol=1e-10)


def test_it_solves_them(tab):
    """Over the plateau, against another solver at a hundredth of its tolerance."""
    student, start, at = Committee(2, 2, 0.5, 0.1), symmetric(0.2, 0.02, 0.05, 1e-3), [0.0, 3.0, 100.0, 250.0, 400.0]

    def slope(_, y):
        rate = student.rate({"Q": y[:4].reshape(2, 2), "R": y[4:].reshape(2, 2)})
        return np.concatenate([rate["Q"].ravel(), rate["R"].ravel()])

    first = np.concatenate([start["Q"].ravel(), start["R"].ravel()])
    expected = solve_ivp(slope, (0, 400), first, "DOP853", at, rtol=1e-11, atol=1e-14).y.T
    for state, y in zip(tab.evaluate(PATH, [lists(start), 0.5, 0.1, at]), expected, strict=True):
        np.testing.assert_allclose([*np.ravel(state["Q"]), *np.ravel(state["R"])], y, rtol=1e-5)


def test_its_start_is_the_lectures_and_possible(tab):
    start, expected = arrays(tab.evaluate(BEGINNING, [2, 1e-3])), symmetric(*committee.ALIKE, 1e-3)
    np.testing.assert_allclose([*start["Q"].flat, *start["R"].flat], [*expected["Q"].flat, *expected["R"].flat])
    for K in (1, 2, 3, 4):  # weights with these products exist
        far = arrays(tab.evaluate(BEGINNING, [K, 0.1]))
        assert np.linalg.eigvalsh(far["Q"] - far["R"] @ far["R"].T).min() > 0


def test_it_opens_and_one_student_says_that_it_cannot(opened):
    tab = opened("committee")
    assert "have left the plateau after 3" in tab.inner_text(".fll-say")  # near 318, as the page's equations have it
    tab.focus("[name=K]")
    tab.keyboard.press("Home")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.startsWith('One student')")
    assert tab.complaints == []
