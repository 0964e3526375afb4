"""Neurons under noise: the law on the grid, its guarantee, its slowest rate and the steps are the library's."""

import numpy as np
import pytest
import torch

from flbook import fit
from flbook.lectures.in_context_learning import mean_field_langevin as lecture
from flbook.lectures.in_context_learning.mean_field_langevin.convergence import holley_stroock
from flbook.lectures.in_context_learning.mean_field_langevin.langevin import Langevin
from flbook.lectures.in_context_learning.mean_field_langevin.neurons import Neurons, tanh_unit
from flbook.training.losses import squared
from flbook.training.network import Training

LAM = 0.15
SETTING = lecture.experiment.setting(lam=(LAM,), cells=201, dt=0.05, time=3.0, every=0.25)
FLOWS = {
    "tanh": lecture.grid(SETTING),
    "cos": lecture.mirrored(SETTING),
    "tilted": lecture.mirrored(SETTING, tilt=0.3),
}


@pytest.mark.parametrize("unit", FLOWS)
def test_its_law_is_the_librarys(tab, unit):
    call = """([unit, lam]) => {
        const L = flbookLive.langevin, g = L.grid(unit, lam), path = L.flow(g, L.start(g, -2.5, 0.25), 0.05, 3, 5);
        return {path: path.map(mu => [...mu]), end: [...L.equilibrium(g)],
          objective: path.map(mu => L.objective(g, mu)),
          energy: path.map(mu => L.energy(g, mu)), entropy: path.map(mu => L.entropy(g, mu)),
          potential: [...L.potential(g, path[2])], rate: L.slowest(g, L.equilibrium(g))};
    }"""
    found, flow = tab.evaluate(call, [unit, LAM]), FLOWS[unit]
    path = flow.flow(flow.normal(-2.5, 0.25), SETTING.times, SETTING.dt)
    end = flow.equilibrium()
    np.testing.assert_allclose(found["path"], path[:, 0], atol=1e-12)
    np.testing.assert_allclose(found["end"], end[0], atol=1e-9)
    np.testing.assert_allclose(found["potential"], flow.potential(path[2])[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found["objective"], [flow.free_energy(mu)[0] for mu in path], rtol=1e-9)
    energies = [(flow.risk(mu) + flow.decay / 2 * mu @ flow.theta**2)[0] for mu in path]
    np.testing.assert_allclose(found["energy"], energies, rtol=1e-9)
    np.testing.assert_allclose(found["energy"] + LAM * np.array(found["entropy"]), found["objective"], rtol=1e-9)
    assert found["rate"] == pytest.approx(float(flow.slowest(end)[0][0]), rel=1e-4)


def test_its_guarantee_is_the_librarys(tab):
    call = """lam => {
        const L = flbookLive.langevin, g = L.grid("tanh", lam), end = L.equilibrium(g);
        const path = L.flow(g, L.start(g, -2.5, 0.25));
        return [L.bound(g, path, path.map(mu => L.objective(g, mu) - L.objective(g, end))), L.guaranteed(g, end)];
    }"""
    (bound, rest), flow = tab.evaluate(call, LAM), FLOWS["tanh"]
    longer = lecture.experiment.setting(lam=(LAM,), cells=201, dt=0.05, time=20.0, every=0.25)
    np.testing.assert_allclose(bound, lecture.descent(longer).bound.sel(lam=LAM), rtol=1e-8)
    rates, end = lecture.rates(flow, 0.05), flow.equilibrium()
    varies = np.ptp(flow.forces(end), axis=-1)
    assert rest["varies"] == pytest.approx(float(2 * LAM * holley_stroock(varies, LAM, flow.decay)[0]), rel=1e-7)
    assert rest["bends"] == pytest.approx(float(rates.curved[0]), rel=1e-6) and rest["bends"] > 2 * rest["varies"]


def test_its_neurons_take_the_librarys_steps(tab):
    theta, xi = np.linspace(-3, 2, 7), torch.randn(20, 7, generator=torch.Generator().manual_seed(0)).double()
    call = """([theta, xi, lam]) => {
        let k = 0;
        const {path, energies} = flbookLive.langevin.walk("tanh", theta, lam, () => xi[k++], 20, 5);
        return [[...path[4]], energies[4]];
    }"""
    found, energy = tab.evaluate(call, [theta.tolist(), xi.flatten().tolist(), LAM])
    x, y = (torch.tensor(part) for part in (SETTING.inputs, SETTING.targets))
    problem = Training(Neurons(tanh_unit, torch.tensor(theta)[:, None]), x[:, None], y, squared)
    params, _ = fit(problem, Langevin(0.05, LAM, 0.2, given=xi[:, :, None]), 20)
    np.testing.assert_allclose(found, params["theta"].detach()[:, 0], rtol=1e-9)
    expected = float(problem.train_loss(params)) + 0.1 * float(params["theta"].square().mean())
    assert energy == pytest.approx(expected, rel=1e-9)


def test_it_forgets_its_start_unless_a_barrier_is_left(opened):
    tab = opened("langevin")
    forgotten = "document.querySelector('.fll-say').textContent.includes('they are forgotten')"
    tab.fill("[name=t]", "80")
    tab.wait_for_function(forgotten)
    tab.fill("[name=lam]", "-1.3")
    tab.select_option("[name=unit]", "cos")
    tab.wait_for_function(f"!({forgotten})")
    assert "nothing from the curvature" in tab.inner_text(".fll-say")
    tab.click("[name=play]")  # from the end: it begins anew
    tab.wait_for_function("+document.querySelector('[name=t]').value > 2")
    tab.click("[name=play]")
    assert tab.inner_text("[name=play]") == "Play" and tab.complaints == []
