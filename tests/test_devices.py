"""Devices: absent ones are refused in a sentence; every part of flbook gives on each device what it gives on the CPU.

The reference is float64 on the CPU, the other side float32 on the device, so that a machine without a GPU still
compares two precisions.
"""

import dataclasses

import pytest
import torch

from flbook import devices, measures, rivals
from flbook.data import SignalNoise
from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.dynamics import gram as gram_module
from flbook.lectures.benign_overfitting import relu_heatmap
from flbook.models import TwoLayerCNN, identity, leaky_relu, relu, relu_power, softplus
from flbook.shapes import per_member
from flbook.training.fit import fit
from flbook.training.losses import hinge, logistic, squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

PRESENT = pytest.mark.parametrize("device", devices.present())
ACTIVATIONS = [relu, relu_power(3.0), leaky_relu(0.2), softplus, identity]
STEPS = 30


def rules():
    """Every optimizer, with scalars for each member."""
    lr = torch.tensor([0.2, 0.1, 0.05], dtype=torch.float64)
    return [GradientDescent(0.2), GradientDescent(lr), Momentum(0.05, 0.8), Momentum(lr / 2, lr * 4)]


def pair(activation=relu, loss=logistic, bias=True):
    """A network with its data in d dimensions, and the same in coefficients."""
    data = SignalNoise(n=8, d=40, mu_norm=2.0, flip_prob=0.2)
    sample = data.draw((0, 1, 2))
    cnn = TwoLayerCNN(40, 3, 0.1, activation, bias=bias, seed=(0, 1, 2), dtype=torch.float64)
    return sample, cnn, dataclasses.replace(GramTraining.of(data, sample, cnn), loss=loss)


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


@PRESENT
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_models(device, activation, bias):
    sample, cnn, _ = pair(activation, bias=bias)
    f = on(device, cnn)(sample.x.to(device, torch.float32))
    torch.testing.assert_close(f.cpu().double(), cnn(sample.x), rtol=1e-4, atol=1e-5)


@PRESENT
@pytest.mark.parametrize("loss", [logistic, hinge, squared], ids=repr)
def test_losses(device, loss):
    f, y = torch.linspace(-40, 40, 83, dtype=torch.float64), flipped_labels(83, 0.1, 0)[0]
    there = f.to(device, torch.float32), y.to(device, torch.float32)
    for of in (loss, loss.slope):
        assert of(*there).device.type == device
        torch.testing.assert_close(of(*there).cpu().double(), of(f, y), rtol=1e-5, atol=1e-6)


@PRESENT
@pytest.mark.parametrize("rule", rules(), ids=["gd", "gd each", "momentum", "momentum each"])
def test_direct_training(device, rule):
    sample, cnn, _ = pair()
    expected = fit(Training(cnn, sample.x, sample.observed), rule, STEPS).params
    problem = Training(on(device, cnn), sample.x, sample.observed)
    assert_agree(fit(problem, rule, STEPS).params, expected, device)
    torch.testing.assert_close(problem.norm(problem.start()).cpu().double(),
                               Training(cnn, sample.x, sample.observed).norm(dict(cnn.named_parameters())).detach())


@PRESENT
@pytest.mark.parametrize("rule", rules(), ids=["gd", "gd each", "momentum", "momentum each"])
@pytest.mark.parametrize("loss", [logistic, hinge, squared], ids=repr)
def test_training_in_coefficients(device, rule, loss):
    _, _, gram = pair(loss=loss)
    params = fit(gram, rule, STEPS).params
    there = gram.to(device, torch.float32)
    assert_agree(fit(there, rule, STEPS).params, params, device)
    lengths = [problem.norm(problem.gradient(problem.start())).cpu().double() for problem in (there, gram)]
    torch.testing.assert_close(*lengths, rtol=1e-4, atol=0)


@PRESENT
@pytest.mark.parametrize("rival", [lambda p: p, rivals.linear, rivals.lazy, rivals.frozen],
                         ids=["network", "linear", "lazy", "frozen"])
@pytest.mark.parametrize("orthogonal", [False, True], ids=["", "orthogonal"])
def test_rivals_and_measures(device, rival, orthogonal):
    data = SignalNoise(n=8, d=40, mu_norm=1.0, flip_prob=0.2, orthogonal=orthogonal)
    y, observed = flipped_labels(8, 0.2, 0)
    gram = draw_gram(8, 6, (40, 80), sigma_0=0.01, orthogonal=orthogonal, seed=(0, 1, 2))
    network = GramTraining(gram.with_signals(torch.tensor([0.5, 1.0, 2.0])), y, observed, 1 / 3, law=data.test_law)
    problem, there = rival(network), rival(network.to(device, torch.float32))
    params, here = fit(there, GradientDescent(0.2), STEPS).params, fit(problem, GradientDescent(0.2), STEPS).params
    assert_agree(params, here, device)
    for measure in (measures.train_error, measures.test_error):
        got = measure(there, params)
        assert got.device.type == device and got.shape == (2, 3, 3)
        torch.testing.assert_close(got.cpu().double(), measure(problem, here), rtol=0, atol=0.003)
    if "xi" in params:
        for measure in (measures.signal_learning, measures.noise_memorization):
            found = measure(there, params).cpu().double()
            torch.testing.assert_close(found, measure(problem, here), rtol=1e-3, atol=1e-4)


@PRESENT
def test_lazy_network_on_given_data(device):
    sample, cnn, _ = pair()
    lazy = [rivals.lazy(Training(net, sample.x, sample.observed)) for net in (on(device, cnn), cnn)]
    there, here = (fit(problem, GradientDescent(0.1), STEPS).params for problem in lazy)
    assert_agree(there, here, device)
    test = SignalNoise(n=8, d=40, mu_norm=2.0).draw_test(200)
    errors = [measures.test_error_on(p, params, test.x, test.y) for p, params in zip(lazy, (there, here), strict=True)]
    torch.testing.assert_close(errors[0].cpu().double(), errors[1], rtol=0, atol=0.006)


@PRESENT
def test_a_scalar_a_member_follows_its_parameters(device):
    like = torch.ones(3, 2, 5, device=device)
    factor = per_member(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), like)
    assert factor.device == like.device and factor.dtype == like.dtype and factor.shape == (3, 1, 1)


@pytest.mark.parametrize("rival", [lambda p: p, rivals.linear, rivals.lazy, rivals.frozen],
                         ids=["network", "linear", "lazy", "frozen"])
@pytest.mark.parametrize("rule", rules(), ids=["gd", "gd each", "momentum", "momentum each"])
def test_no_step_falls_back_to_the_cpu(monkeypatch, rival, rule):
    """PyTorch's meta device has shapes but no numbers, refuses a partner on the CPU, and is there without a GPU."""
    monkeypatch.setattr(gram_module, "check_labels", lambda labels: None)  # the one look at numbers
    problem = rival(pair()[2].to("meta", torch.float32))
    params, state = problem.start(), rule.start(problem.start())
    for _ in range(2):
        params, state = rule.step(problem, params, state)
    found = [*params.values(), problem.norm(params), problem.train_loss(params)]
    found += [measures.train_error(problem, params), measures.test_error(problem, params, 8)]
    assert all(value.device.type == "meta" and value.dtype == torch.float32 for value in found)


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
