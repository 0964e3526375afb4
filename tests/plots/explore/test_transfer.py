"""The rate of a linear network at four widths: risks, sharpness and best rates of the figure are the library's."""

import numpy as np
import pytest

from flbook.lectures.representation.rate_transfer import width_moments

TARGET = [1.5, 0.0, -0.5, 0.0, 0.25]


@pytest.mark.parametrize("name", width_moments.NAMES)
def test_it_trains_as_the_library_does(tab, name):
    width, rate, steps = 64, 0.004 if name == "standard" else 0.2, 12
    begin = tab.evaluate("([n, s]) => flbookLive.transfer.start(n, s)", [width, 3])
    found = tab.evaluate("([b, n, w, t, r, T]) => flbookLive.transfer.train(b, n, w, t, r, T)",
                         [begin, name, width, TARGET, rate, steps])
    state = width_moments.WidthMoments(*(np.array(begin[part]) for part in "Mqs"))
    scale, target = width_moments.scale(name, width), np.array(TARGET)
    g, g_v = scale.rates(rate)
    risk, kernel, u = [], [], target / np.linalg.norm(target)
    for _ in range(steps + 1):
        e = width_moments.error(state, target, scale.gamma)
        risk.append(e @ e / (target @ target))
        kernel.append(state.s + scale.ratio * u @ state.M @ u)
        state = width_moments.step(state, e, g, g_v)
    np.testing.assert_allclose(found["risk"], risk, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(found["kernel"], kernel, rtol=1e-8)


def test_its_starts_have_the_law_of_gaussian_pairs(tab):
    starts = tab.evaluate("() => [...Array(400).keys()].map(k => flbookLive.transfer.start(64, k))")
    s, M = np.array([one["s"] for one in starts]), np.array([one["M"] for one in starts])
    # s is a chi-squared number of 32 degrees over 32: mean 1, variance 2/32; an entry of M beside the diagonal has 1/32
    assert abs(s.mean() - 1) < 4 * (2 / 32 / 400) ** 0.5
    assert abs(M[:, 0, 1].var() * 32 - 1) < 0.4
    np.testing.assert_allclose(M, M.swapaxes(1, 2))


def test_its_best_rate_is_lowest(tab):
    call = """() => { const {start, sweep, best, RATES} = flbookLive.transfer;
        const losses = sweep(start(4096, 0), "tangent", 4096, [2, 0, 0, 0, 0], 1);
        return [losses, RATES, best(losses)]; }"""
    losses, rates, best = tab.evaluate(call)
    assert best == rates[int(np.argmin(losses))] and abs(best - 0.5) < 0.03


def test_it_opens_with_a_verdict(opened):
    tab = opened("transfer")
    assert "does not transfer" in tab.inner_text(".fll-say")
    tab.select_option("[name=parametrisation]", "tangent")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('features do, too')")
    tab.select_option("[name=parametrisation]", "maximal")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('learns features')")
    assert tab.complaints == []
