"""Devices: absent ones are refused in a sentence; every part of flbook gives on each device what it gives on the CPU.

The reference is float64 on the CPU, the other side float32 on the device, so that a machine without a GPU still
compares two precisions.
"""

from operator import methodcaller

import pytest
import torch

from flbook import devices, measures
from flbook.data import SignalNoise
from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting import relu_heatmap
from flbook.models import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.losses import hinge, logistic, squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

LINEAR, LAZY, FROZEN = methodcaller("linear"), methodcaller("lazy"), methodcaller("frozen")  # rivals of a problem
PRESENT = pytest.mark.parametrize("device", devices.present())
STEPS = 30


def pair():
    """A sample, and an ensemble of networks in float64."""
    sample = SignalNoise(n=8, d=40, mu_norm=2.0, flip_prob=0.2).draw((0, 1, 2))
    return sample, TwoLayerCNN(40, 3, 0.1, bias=True, seed=(0, 1, 2), dtype=torch.float64)


def on(device, cnn):
    """A copy of a network in float32 on a device."""
    other = TwoLayerCNN(cnn.w.shape[-1], cnn.w.shape[-2], 0.1, cnn.activation, cnn.scale, cnn.b is not None, (0, 1, 2))
    other.load_state_dict(cnn.state_dict())
    return other.to(device)


def assert_agree(params, expected, device, tol=2e-4):
    assert params.keys() == expected.keys()
    for name, value in params.items():
        assert value.device.type == device and value.dtype == torch.float32, name
        torch.testing.assert_close(value.cpu().double(), expected[name], rtol=tol, atol=tol)


def test_present_devices_can_be_asked_for():
    assert devices.present()[0] == "cpu"
    for name in devices.present():
        assert devices.device(name).type == name
        assert devices.device(torch.device(name)) == torch.device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "mps", "meta", ""])
def test_a_device_of_another_kind_is_one_sentence(name):
    with pytest.raises(ValueError, match=f"device must be 'cpu' or 'cuda', not '{name}'"):
        devices.device(name)


def test_an_absent_device_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device 'cuda' is absent: PyTorch sees no GPU on this machine"):
        devices.device("cuda")
    assert devices.present() == ["cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"device 'cuda:2' is absent: this machine has 2 GPU\(s\)"):
        devices.device("cuda:2")
    assert devices.device("cuda:1").index == 1


LR = torch.tensor([0.2, 0.1, 0.05], dtype=torch.float64)  # one a member


@PRESENT
@pytest.mark.parametrize("loss", [logistic, hinge, squared], ids=repr)
@pytest.mark.parametrize("rule", [GradientDescent(LR), Momentum(LR / 2, LR * 4)], ids=["descent", "momentum"])
@pytest.mark.parametrize("rival", [lambda p: p, LAZY], ids=["network", "lazy"])
def test_direct_training(device, rival, rule, loss):
    sample, cnn = pair()
    here, there = (rival(Training(net, sample.x, sample.observed, loss)) for net in (cnn, on(device, cnn)))
    expected, params = fit(here, rule, STEPS).params, fit(there, rule, STEPS).params
    assert_agree(params, expected, device)
    torch.testing.assert_close(there.norm(params).cpu().double(), here.norm(expected), rtol=1e-4, atol=0)


@PRESENT
@pytest.mark.parametrize("rival", [lambda p: p, LINEAR, LAZY, FROZEN],
                         ids=["network", "linear", "lazy", "frozen"])
@pytest.mark.parametrize("orthogonal", [False, True], ids=["", "orthogonal"])
def test_rivals_and_measures(device, rival, orthogonal):
    data = SignalNoise(n=8, d=40, mu_norm=1.0, flip_prob=0.2, orthogonal=orthogonal)
    y, observed = flipped_labels(8, 0.2, 0)
    gram = draw_gram(8, 6, (40, 80), sigma_0=0.01, orthogonal=orthogonal, seed=(0, 1, 2))
    training = GramTraining(gram.with_signals(torch.tensor([0.5, 1.0, 2.0])), y, observed, 1 / 3, law=data.test_law)
    problem, there = rival(training), rival(training.to(device, torch.float32))
    params, here = fit(there, GradientDescent(0.2), STEPS).params, fit(problem, GradientDescent(0.2), STEPS).params
    assert_agree(params, here, device)
    for measure in (measures.train_error, measures.test_error):
        got = measure(there, params)
        assert got.device.type == device and got.shape == (2, 3, 3)
        torch.testing.assert_close(got.cpu().double(), measure(problem, here), rtol=0, atol=0.003)
    if "xi" in params:
        for name in ("signal_learned", "noise_memorised"):
            found = getattr(there, name)(params).cpu().double()
            torch.testing.assert_close(found, getattr(problem, name)(here), rtol=1e-3, atol=1e-4)


@PRESENT
def test_sweep(device, tmp_path):
    setting = relu_heatmap.Setting(model=("network", "lazy"), n=(6,), d=(30, 60), mu=(0.0, 1.0, 3.0), seed=(0, 1), m=2,
                                   steps=40, points=50)
    here, there = (relu_heatmap.run(setting, device=name, cache=tmp_path / f"{i}")
                   for i, name in enumerate(["cpu", device]))
    assert there.attrs["device"] == device
    for name in here:
        assert abs(there[name] - here[name]).max() <= 0.02, name


def test_a_sweep_on_an_absent_device_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device 'cuda' is absent"):
        relu_heatmap.run(relu_heatmap.Setting(), device="cuda", cache=tmp_path / "cache")
    assert not list(tmp_path.iterdir())
