"""A report: its figures are there, its sentences follow from numbers known in closed form, and it asks for nothing."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from flbook import __main__, observe
from flbook.report import findings, given, progress

HERE = ["Feature matrix", "First layer", "Tangent kernel", "Tangent kernel and labels", "Curvature of the loss"]
COURSE = ["Signal and noise over training", "Signal and noise by layer", "Tangent kernel over training",
          "Sharpness over training"]


def report(*words: str) -> int:
    """The command."""
    return __main__.main(["observe", *" ".join(words).split()])


def sentence(page, title: str) -> str:
    """What stands beside a picture."""
    return next(alt for alt in page.pictures if alt.startswith(f"{title}: "))


@pytest.mark.parametrize("network, data, loss", [
    ("Residual", "crops", "cross-entropy"), ("Reader", "prompts", "logistic"), ("mlp", "values", "squared")])
def test_a_network_that_the_book_does_not_have(folder, read, capsys, network, data, loss):
    assert report(f"nets.py:{network} --data {data}.npz --out page.html") == 0
    assert capsys.readouterr().out.startswith("5 figures in ")
    page = read(folder / "page.html")
    assert page.headings == HERE and len(page.pictures) == 5 and not page.asked
    assert f"{loss}, " in " ".join(page.words) and "Left out" not in " ".join(page.words)
    assert not re.search(r"not finite|\bnan\b", " ".join(page.words))
    assert all(re.search(r"\d", alt) for alt in page.pictures)
    assert not list(folder.glob(".*")), "nothing half-written is left"


def test_sentences_follow_from_the_numbers(folder, read):
    """A linear network: one direction, one Hessian."""
    assert report("nets.py:line --data values.npz --out page.html") == 0
    page, x = read(folder / "page.html"), np.load("values.npz")["x"]
    assert "100 % of the outputs' squared gradient lies in one direction and 90 % in 1;" in sentence(page, HERE[0])
    assert sentence(page, HERE[0]).endswith("directions is 1.")
    cosine = float(re.search(r"is (\d\.\d\d);", sentence(page, HERE[1]))[1])
    assert cosine == 1.0 and f"it would be {1 / np.sqrt(5):.2f}" in sentence(page, HERE[1])
    values = np.linalg.eigvalsh(x @ x.T)[::-1]
    assert f"first eigenvalue is {100 * values[0] / values.sum():.0f} % of" in sentence(page, HERE[2])
    assert "within 0.01 of" in sentence(page, HERE[3]), "its tangent kernel is the inputs' own"
    y = np.load("values.npz")["y"]
    k = (x - x.mean(0)) @ (x - x.mean(0)).T
    aligned = (y - y.mean()) @ k @ (y - y.mean()) / np.linalg.norm(k) / np.square(y - y.mean()).sum()
    assert f"alignment with the labels is {aligned:.2f}, " in sentence(page, HERE[3])
    hessian = np.linalg.eigvalsh(2 * x.T @ x / len(x))
    said = [float(n) for n in re.findall(r"(?:is|interval|to) (\d+(?:\.\d+)?)", sentence(page, HERE[4]))]
    assert said[0] == pytest.approx(hessian[-1], rel=0.01) and said[2] <= hessian.sum() <= said[3]
    assert f"2/λ = {findings.number(2 / hessian[-1])} " in sentence(page, HERE[4])


def test_checkpoints_come_in_order_and_the_last_is_described(folder, read):
    assert report("nets.py:mlp --data values.npz --checkpoints states --out page.html") == 0
    page = read(folder / "page.html")
    assert page.headings == HERE + COURSE and len(page.pictures) == 9
    assert "the last of 3 checkpoints, step_10.pt" in page.words
    assert "From step_0 to step_10 the loss goes from" in sentence(page, COURSE[3])
    shares = [float(n.replace("−", "-")) for n in re.findall(r"(−?[\d.]+) %", sentence(page, COURSE[0]))]
    assert sum(shares) == pytest.approx(100, abs=2)
    found = given.given("nets.py:mlp", "values.npz")
    there = found.at(given.state(folder / "states" / "step_10.pt", found.module))
    assert f"squared, {findings.number(there.loss(there.params).item())} " in " ".join(page.words)
    assert not torch.equal(found.params["0.weight"], there.params["0.weight"]), "each has a module of its own"


def test_signal_and_noise_over_training_add_up(folder):
    """Shares of the parts so far are those of one call over the whole path."""
    here = given.given("nets.py:mlp", "values.npz")
    files = sorted((folder / "states").iterdir(), key=lambda file: int(file.stem[5:]))
    path = [here.at(given.state(file, here.module)).params for file in files]
    whole = observe.signal_and_noise(here.f, path, (here.x, here.y), here.held_out, given.LOSSES["squared"])
    three = [whole[name][:3] for name in here.params]
    figure = progress.movement(files, here)[0].figure
    drawn = [line.get_ydata()[-1] for line in figure.axes[0].get_lines()]
    np.testing.assert_allclose(drawn, progress.shares(three), rtol=1e-6)
    one = {name: progress.shares([three[k]]) for k, name in enumerate(here.params)}
    np.testing.assert_allclose(one["0.weight"], whole["0.weight"].shares, rtol=1e-6)


def test_what_does_not_apply_is_left_out_in_a_sentence(folder, read):
    assert report("nets.py:Words --data words.npz --out page.html") == 0
    text = " ".join(read(folder / "page.html").words)
    assert "Left out: the inputs are whole numbers, along which there is no gradient." in text
    assert report("nets.py:Constant --data values.npz --checkpoints one.pt --out page.html") == 1
    torch.save({"state_dict": {"out": torch.ones(1)}, "step": 3}, "one.pt")
    assert report("nets.py:Constant --data values.npz --checkpoints one.pt --out page.html") == 0
    text = " ".join(read(folder / "page.html").words)
    for reason in ("the outputs do not vary with the inputs", "the network calls no linear or convolutional layer",
                   "a single checkpoint shows no course of training"):
        assert f"Left out: {reason}" in text, reason


def test_samples_of_a_large_data_set_are_said(folder, read):
    x = np.random.default_rng(1).normal(size=(given.SAMPLES + 900, 5))
    np.savez("many.npz", x=x, y=x[:, 0])
    assert report("nets.py:line --data many.npz --out page.html") == 0
    page = read(folder / "page.html")
    assert any(f"{given.SAMPLES} samples of 5 numbers, drawn once from 1" in words for words in page.words)
    assert f"On {findings.KERNEL} of the samples, " in sentence(page, "Tangent kernel")


class Strided(nn.Module):
    """One convolution without and one with padding, and products."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Linear(27, 2)

    def forward(self, x):
        return self.head(self.conv(x).tanh().flatten(1))


def test_the_feature_matrix_of_patches_is_that_of_a_network_on_unfolded_patches():
    torch.manual_seed(0)
    module, x = Strided().double(), torch.randn(7, 2, 5, 5).double()
    here = given.Given("", module, x, torch.zeros(7, 2).double(), torch.zeros(7, 2).double(), "squared", 7, None)
    name, layer = findings.first_of(module, x)
    weight = layer.weight.detach().flatten(1)
    ours = weight.T @ findings.gradients_of(here, layer) @ weight
    patches = functional.unfold(x, 3, padding=1, stride=2).mT  # (7, 9, 18)

    def unfolded(params, patches):
        hidden = (patches @ params["conv.weight"].flatten(1).T + params["conv.bias"]).mT.flatten(1)
        return hidden.tanh() @ params["head.weight"].T + params["head.bias"]

    whole = observe.agop(unfolded, here.params, patches).reshape(9, 18, 9, 18)
    torch.testing.assert_close(ours, torch.einsum("paqb,pq->ab", whole, torch.eye(9).double()))
    assert name == "conv"


def test_the_feature_matrix_of_a_dense_first_layer_is_that_of_the_inputs():
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)).double(), torch.randn(9, 5).double()
    here = given.Given("", module, x, torch.zeros(9, 2).double(), torch.zeros(9, 2).double(), "squared", 9, None)
    weight = module[0].weight.detach()
    ours = weight.T @ findings.gradients_of(here, module[0]) @ weight
    torch.testing.assert_close(ours, observe.agop(here.f, here.params, x))


def test_shares_of_directions():
    one, other = torch.diag(torch.tensor([3.0, 2.0, 1.0])), torch.diag(torch.tensor([3.0, 1.0, 2.0]))
    np.testing.assert_allclose(findings.overlaps(one, other, 3), [1, 0.5, 1], atol=1e-12)
    y = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    np.testing.assert_allclose(findings.labels_along(y @ y.T, y)[0], 1)
    assert findings.effective(np.array([0.5, 0.5, 0.0])) == 2


def test_labels_become_what_the_loss_asks_for(folder):
    signs = given.given("nets.py:Reader", "prompts.npz")
    assert set(signs.y.tolist()) == {-1.0, 1.0} and signs.labels.shape == (20, 1)
    classes = given.given("nets.py:Residual", "crops.npz", "squared")
    assert classes.loss_name == "squared" and classes.y.sum(1).eq(1).all()
    x = classes.x[:1]
    torch.testing.assert_close(given.LOSSES["squared"](classes.module(x), classes.y[:1]),
                               (classes.module(x) - classes.y[:1]).square().sum(1))
