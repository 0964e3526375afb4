"""What a report cannot be made from: one sentence each, before any work, and no file is left behind."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from flbook import __main__, report

STATE = {"0.weight": torch.zeros(8, 5), "0.bias": torch.zeros(8), "2.weight": torch.zeros(1, 8),
         "2.bias": torch.zeros(1)}


@pytest.fixture
def refuse(folder, capsys):
    """Run the command, and return the one sentence that it says."""
    before = set(folder.rglob("*"))

    def run(command: str) -> str:
        there = set(folder.rglob("*")) | before
        assert __main__.main(["observe", *command.split()]) == 1
        out, err = capsys.readouterr()
        assert not out and err.startswith("flbook: ") and err.count("\n") == 1, err
        assert {path for path in set(folder.rglob("*")) - there if "__pycache__" not in path.parts} == set()
        return err

    return run


@pytest.mark.parametrize("network, says", [
    ("gone.py:make", "there is no file 'gone.py'"),
    ("nets.py", "must be named FILE.py:FUNCTION, such as my_module.py:make; got 'nets.py'"),
    ("nets.py:gone", "nets.py has no function 'gone'; it has Residual, Reader, Words, Constant, mlp"),
    ("nets.py:number", "number() in nets.py must return a torch.nn.Module; it returned an object of type int"),
    ("nets.py:broken", ": NameError: name 'undefined' is not defined"),
    ("nets.py:half", "must all be float32 or all float64; they are bfloat16"),
    ("nets.py:frozen", "Linear has no parameter that is trained"),
    ("nets.py:pair", "the network must return one tensor; it returned an object of type tuple"),
    ("nets.py:exploded", "the network's outputs are not finite"),
    ("nets.py:deep", "outputs must have the shape (n,) or (n, k) with n = 30; got (30, 2, 2)"),
    ("nets.py:Residual", "the network does not take x of shape (30, 5): "),
])
def test_networks(refuse, network, says):
    assert says in refuse(f"{network} --data values.npz")


def test_files_that_do_not_run(refuse, folder):
    (folder / "bad.py").write_text("def make(:\n")
    assert "bad.py, line 1: SyntaxError: " in refuse("bad.py:make --data values.npz")
    (folder / "ends.py").write_text("import sys\n\nsys.exit(2)\n")
    assert "ends.py, line 3: SystemExit: 2" in refuse("ends.py:make --data values.npz")
    (folder / "asks.py").write_text("def make(width):\n    return width\n")
    assert "asks.py: TypeError: make() missing 1 required" in refuse("asks.py:make --data values.npz")


X, Y = np.ones((4, 5)), np.ones(4)


@pytest.mark.parametrize("arrays, says", [
    ({"x": X}, "must hold x and y, and may hold x_test and y_test; it holds x"),
    ({"a": X, "b": Y}, "it holds a, b"),
    ({"x": X, "y": Y, "x_test": X}, "may hold x_test and y_test; it holds x, y, x_test"),
    ({"x": X, "y": Y[:3]}, "y the length n, with n of at least 2; in d.npz they have (4, 5) and (3,)"),
    ({"x": X[0], "y": X[0]}, "x must have the shape (n, ...)"),
    ({"x": X[:1], "y": Y[:1]}, "n of at least 2"),
    ({"x": X * np.nan, "y": Y}, "x in d.npz must be finite"),
    ({"x": X, "y": np.array(list("abcd"))}, "y in d.npz must be an array of numbers; it is of type <U1"),
    ({"x": X, "y": np.array([{}, 1, 2, 3], dtype=object)}, "d.npz is no npz file of numbers"),
    ({"x": X, "y": np.ones((4, 2))}, "the squared loss asks for labels of the outputs' shape (4,); y has the type"),
    ({"x": X, "y": np.arange(4)}, "the logistic loss asks for one output and labels of 0 and 1 or of -1 and 1"),
    ({"x": X[:, :4], "y": Y}, "the network does not take x of shape (4, 4): "),
])
def test_data(refuse, arrays, says):
    np.savez("d.npz", **arrays)
    assert says in refuse("nets.py:mlp --data d.npz")


def test_data_of_another_kind(refuse, folder):
    assert "there is no file 'gone.npz'" in refuse("nets.py:mlp --data gone.npz")
    (folder / "text.npz").write_text("x, y")
    assert "text.npz is no npz file of numbers" in refuse("nets.py:mlp --data text.npz")
    (folder / "cut.npz").write_bytes((folder / "values.npz").read_bytes()[:700])
    assert "cut.npz is no npz file of numbers" in refuse("nets.py:mlp --data cut.npz")
    np.save("one.npy", X)
    assert "one.npy is no npz file of numbers" in refuse("nets.py:mlp --data one.npy")
    np.savez("classes.npz", x=np.ones((4, 3, 6, 6)), y=np.arange(4))
    assert "classes must be 0 to 2, one for each of the 3 outputs; y holds 0 to 3" in refuse(
        "nets.py:Residual --data classes.npz")
    assert "the cross-entropy loss asks for whole numbers, one a sample; y has the type float64" in refuse(
        "nets.py:mlp --data values.npz --loss cross-entropy")


@pytest.mark.parametrize("change, says", [
    ({"2.bias": None}, "does not fit the network: 2.bias is missing"),
    ({"2.bias": None, "0.bias": None}, "0.bias is missing, and 1 more"),
    ({"0.weight": torch.zeros(3, 5)}, "0.weight has the shape (3, 5) there and (8, 5) in the network"),
    ({"4.bias": torch.zeros(1)}, "the network has no 4.bias"),
])
@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_checkpoints_that_do_not_fit(refuse, change, says, ending):
    state = {name: tensor for name, tensor in {**STATE, **change}.items() if tensor is not None}
    (torch.save if ending == "pt" else save_file)(state, f"state.{ending}")
    assert says in refuse(f"nets.py:mlp --data values.npz --checkpoints state.{ending}")


class Anything:
    """What a state dict does not hold."""


def test_checkpoints_that_cannot_be_read(refuse, folder):
    ask = "nets.py:mlp --data values.npz --checkpoints"
    assert "there is no checkpoint 'gone.pt'" in refuse(f"{ask} gone.pt")
    (folder / "empty").mkdir()
    assert "the folder empty holds no checkpoint" in refuse(f"{ask} empty")
    for ending in ("pt", "safetensors"):
        (folder / f"text.{ending}").write_text("no tensors here")
        assert f"the checkpoint text.{ending} is " in refuse(f"{ask} states text.{ending}")
    whole = (folder / "states" / "step_9.pt").read_bytes()
    (folder / "cut.pt").write_bytes(whole[:len(whole) // 2])
    assert "the checkpoint cut.pt is " in refuse(f"{ask} cut.pt")
    torch.save(Anything(), "object.pt")
    assert "holds more than tensors; save a state dict" in refuse(f"{ask} object.pt")
    torch.save([1.0], "list.pt")
    assert "list.pt holds an object of type list in place of tensors by name" in refuse(f"{ask} list.pt")


def test_where_it_is_written_and_computed(refuse, folder):
    ask = "nets.py:mlp --data values.npz"
    assert "there is no folder 'nowhere'" in refuse(f"{ask} --out nowhere/page.html")
    assert "--out must name a file, but 'states' is a folder" in refuse(f"{ask} --out states")
    assert "device must be 'cpu' or 'cuda', not 'gpu'" in refuse(f"{ask} --device gpu")
    assert "the loss must be cross-entropy, logistic, squared; got 'hinge'" in refuse(f"{ask} --loss hinge")


def test_an_interruption_leaves_the_old_page(folder, monkeypatch, capsys):
    (folder / "page.html").write_text("old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(report.sheet, "_section", stop)
    assert __main__.main("observe nets.py:line --data values.npz --out page.html".split()) == 130
    assert "flbook: stopped; nothing was written." in capsys.readouterr().err
    assert (folder / "page.html").read_text() == "old" and not list(folder.glob(".*"))
