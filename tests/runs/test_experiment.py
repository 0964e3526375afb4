"""An experiment as an object: what its frame loops, stacks, labels, stores and refuses."""

import os
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.domains import Natural, Positive
from flbook.runs import Experiment, Grid, axis, files

here = None  # the experiment that a test makes; a sweep finds it by its name at the top level


@dataclass(frozen=True)
class Setting(Grid):
    """Two loops and two axes that are left."""

    model: tuple[str, ...] = axis(["network", "forecast"], "model")
    lr: tuple[Positive, ...] = axis([0.1, 0.2], "step size", "1/s")
    seed: tuple[Natural, ...] = axis(range(3), "seed")
    n: tuple[Natural, ...] = axis([5, 7], "samples")
    scale: Positive = 1.0


LOSS = {"loss": ("training loss", "nats")}


@pytest.fixture
def made(monkeypatch):
    """A function that makes an experiment of a cell, under the name that a sweep can find."""
    def make(cell, **how):
        one = Experiment(Setting, version=how.pop("version", 1), **({"loops": ("model", "lr"), "gives": LOSS} | how))
        one.cell(cell)
        monkeypatch.setitem(globals(), "here", one)
        return one

    return make


def value(s, device="cpu"):
    """A number of every cell that tells its place."""
    first = {"network": 1.0, "forecast": 2.0}[s.model]
    return {"loss": first + s.lr + torch.tensor(s.seed)[:, None] * 10 + torch.tensor(s.n) * 100}


def test_loops_come_first_and_every_number_stands_in_its_place(made):
    found = made(value).measure(Setting())
    assert found.loss.dims == ("model", "lr", "seed", "n") and found.loss.dtype == "float32"
    assert float(found.loss.sel(model="forecast", lr=0.2, seed=2, n=7)) == pytest.approx(722.2)
    assert found.loss.attrs == {"long_name": "training loss", "units": "nats"}
    assert found.lr.attrs == {"long_name": "step size", "units": "1/s"}


def test_the_order_of_the_axes_that_are_left_may_differ_from_the_setting(made):
    one = made(lambda s, device: {"loss": value(s)["loss"].T}, left=("n", "seed"))
    found = one.measure(Setting())
    assert found.loss.dims == ("model", "lr", "n", "seed")
    assert float(found.loss.sel(model="network", lr=0.1, seed=1, n=5)) == pytest.approx(511.1)


def test_presets_are_settings_with_fields_changed(made):
    one = made(value, presets={"tiny": ("A blink", {"lr": (0.5,)}), "longer": ("More", {"seed": tuple(range(9))})})
    assert one.setting() == Setting() and one.setting("tiny", scale=2.0) == Setting(lr=(0.5,), scale=2.0)
    assert one.presets == {"book": "What the page runs", "tiny": "A blink", "longer": "More"}
    assert one.scale_of(Setting(lr=(0.5,))) == "tiny" and one.scale_of(Setting(scale=3.0)) == "custom"
    assert one.run("tiny").attrs["scale"] == "tiny" and one.measure("tiny").sizes["lr"] == 1


def test_a_name_that_some_cells_leave_out_is_nan_there(made):
    def cell(s, device):
        return value(s) | ({"error": torch.zeros(3, 2)} if s.model == "network" else {})

    found = made(cell, gives=LOSS | {"error": ("test error", "fraction")}).measure(Setting())
    assert (found.error.sel(model="network") == 0).all() and found.error.sel(model="forecast").isnull().all()


def test_a_variable_may_lack_loops_and_have_axes_of_its_own(made):
    gives = {"limit": ("limit", "1", ("lr",)), "share": ("share", "1", ("model", "lr", "layer", "seed"))}
    one = made(lambda s, device: {"limit": 2 * s.lr, "share": torch.ones(4, 3)}, gives=gives,
               beside={"layer": (lambda setting: range(4), "layer")})
    found = one.measure(Setting())
    assert found.limit.values.tolist() == [0.2, 0.4]
    assert found.share.dims == ("model", "lr", "layer", "seed") and found.layer.attrs["long_name"] == "layer"


def test_a_cell_may_give_a_labelled_dataset(made):
    def cell(s, device):
        about = {"long_name": "loss", "units": "nats"}
        values = np.full((4, 3, 2), s.lr)
        return xr.Dataset({"loss": (("step", "seed", "n"), values, about)},
                          {"step": ("step", [0, 1, 5, 9], {"long_name": "step", "units": "1"})})

    found = made(cell, gives=None).measure(Setting())
    assert found.loss.dims == ("model", "lr", "seed", "n", "step") and found.step.values.tolist() == [0, 1, 5, 9]
    assert float(found.loss.sel(lr=0.2, step=9).mean()) == pytest.approx(0.2)


@pytest.mark.parametrize("over, times", [((), 1), (("model",), 2), (("lr",), 2), (("model", "lr"), 4)])
def test_what_cells_share_is_made_once_for_each_value(made, over, times):
    calls = []

    def cell(s, device):
        drawn(s, device)
        return value(s)

    one = made(cell)

    @one.shared(*over)
    def drawn(s, device):
        calls.append([getattr(s, name) for name in over])
        return len(calls)

    one.measure(Setting())
    assert len(calls) == times
    one.measure(Setting())
    assert len(calls) == 2 * times, "nothing is kept from one measurement to the next"


def test_what_is_shared_cannot_depend_on_a_loop_that_it_is_shared_over(made):
    one = made(lambda s, device: drawn(s, device))

    @one.shared("model")
    def drawn(s, device):
        return s.lr

    with pytest.raises(ValueError, match="^what cells share cannot depend on lr, over which it is shared$"):
        one.measure(Setting())
    with pytest.raises(ValueError, match="^what is shared is shared over loops, model, lr; got seed$"):
        one.shared("seed")


def test_a_cell_is_an_instance_of_its_setting(made):
    seen = []
    made(lambda s, device: seen.append(s) or value(s)).measure(Setting())
    assert all(isinstance(s, Setting) for s in seen) and [(s.model, s.lr) for s in seen] == [
        ("network", 0.1), ("network", 0.2), ("forecast", 0.1), ("forecast", 0.2)]


@pytest.mark.parametrize("cell, how, sentence", [
    (lambda s, device: {"loss": torch.ones(2)}, {}, r"the cell gives loss of shape \(2,\); its axes \('seed', 'n'\) "),
    (lambda s, device: {"los": torch.ones(3, 2)}, {}, "^the cell gives 'los', which gives does not name: loss$"),
    (lambda s, device: {"loss": s.lr}, {"gives": {"loss": ("loss", "nats", ("model",))}},
     "^loss is said to lack the axis lr, but differs along it$"),
])
def test_a_cell_that_breaks_its_word_is_told_so(made, cell, how, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(cell, **how).measure(Setting())


@pytest.mark.parametrize("how, sentence", [
    ({"loops": ("modle",)}, "^loops and left must share the axes model, lr, seed, n between them; got"),
    ({"loops": ("model",), "left": ("seed",)}, "^loops and left must share the axes"),
    ({"stored": "paper"}, "^stored must be a preset, book; got 'paper'$"),
])
def test_an_experiment_that_cannot_be_is_refused(how, sentence):
    with pytest.raises(ValueError, match=sentence):
        Experiment(Setting, version=1, **how)


def test_questions_that_have_no_answer_get_one_sentence(made):
    one = made(value, presets={"tiny": ("A blink", {})})
    for ask, sentence in [
        (lambda: one.setting("huge"), "^test_experiment:here has no preset 'huge'; it has book, tiny$"),
        (lambda: one.setting("tiny", colour=1), "^the setting has no field 'colour'"),
        (lambda: one.run("tiny", chunk={"colour": 1}), "^chunk names 'colour', which is no axis"),
        (lambda: one.stored(), "stores no result; name one of its presets, book, tiny"),
        (lambda: Experiment(Setting, version=1).measure(Setting()), "^the experiment has no cell"),
    ]:
        with pytest.raises(ValueError, match=sentence) as error:
            ask()
        assert "\n" not in str(error.value)


def test_a_device_that_the_cell_cannot_use_is_refused_before_any_work(made):
    def cell(s, device):
        raise AssertionError("work was done")

    one = made(cell, devices=("cpu",))
    for ask in (one.run, one.measure):
        with pytest.raises(ValueError, match="^device must be cpu for .*; got 'cuda:0'$"):
            ask(Setting(), device="cuda:0")


def test_run_keeps_its_chunks_and_what_else_is_computed(made, tmp_path, monkeypatch):
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path))
    calls = []
    one = made(lambda s, device: calls.append(s) or value(s), chunk={"lr": 1})

    def total(setting, device="cpu"):
        calls.append("total")
        return xr.Dataset({"total": ((), 1.0, {"long_name": "total", "units": "1"})})

    part = one.also(total)
    monkeypatch.setitem(globals(), "total", part)
    for _ in range(2):
        assert one.run(Setting()).attrs["version"] == 1 and float(part("book").total) == 1
    assert len(calls) == 4 + 1 and len(list(tmp_path.iterdir())) == 2 + 1
    made(lambda s, device: calls.append(s) or value(s), chunk={"lr": 1}, version=2).run(Setting())
    assert len(calls) == 4 + 1 + 4, "another version has other numbers"


@pytest.fixture
def stored(made, tmp_path, monkeypatch):
    """An experiment whose file lies in an empty folder, and what it stores."""
    one = made(value, presets={"longer": ("More", {"lr": (0.1, 0.2, 0.4)})}, stored="longer", version=3)
    monkeypatch.setattr(one, "file", tmp_path / "__init__.py")
    monkeypatch.setattr(type(one), "name", "chapter/tiny")
    one.kept(lambda dataset: dataset[["loss"]].mean("seed", keep_attrs=True).drop_attrs(deep=False))
    return one


def test_what_is_stored_is_opened(stored, tmp_path):
    run = stored.run("longer")
    files.save(stored.trimmed(run), stored.path())
    again = stored.stored()
    assert stored.path() == tmp_path / "tiny.nc" and again.loss.dims == ("model", "lr", "n")
    np.testing.assert_allclose(again.loss, run.loss.mean("seed"))
    assert again.attrs["command"] == "python -m flbook run tiny --scale longer --device cpu"
    assert again.attrs["setting"] == run.attrs["setting"] and again.attrs["version"] == 3
    os.remove(stored.path())  # in memory, and the file is closed
    assert float(again.loss.sum()) > 0


def test_a_result_of_another_preset_lies_beside_it(stored, tmp_path):
    files.save(stored.run("book"), stored.path(preset="book"))
    assert [file.name for file in tmp_path.glob("*.nc")] == ["tiny-book.nc"]
    assert stored.stored("book").attrs["scale"] == "book"


@pytest.mark.parametrize("attrs, sentence", [
    ({"version": 2}, "^the stored result tiny.nc is of version 2, not 3; `python -m flbook run tiny --scale longer"),
    ({"setting": "{}"}, "^the stored result tiny.nc is of setting {}, not {.*; `python -m flbook run tiny"),
])
def test_what_answers_another_question_is_refused(stored, attrs, sentence):
    files.save(stored.run("longer").assign_attrs(attrs), stored.path())
    with pytest.raises(ValueError, match=sentence):
        stored.stored()


def test_a_missing_or_damaged_file_is_refused_with_what_makes_it(stored):
    with pytest.raises(ValueError, match="^there is no stored result of 'chapter/tiny' at 'longer'; `python -m flbook"):
        stored.stored()
    files.save(stored.run("longer"), stored.path())
    stored.path().write_bytes(stored.path().read_bytes()[:-4])
    with pytest.raises(ValueError, match="^the stored result tiny.nc is truncated or altered; `python -m flbook run"):
        stored.stored()


def test_a_training_run_inside_a_cell_has_a_file_named_by_all_that_may_change_it(made, tmp_path, monkeypatch):
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path))
    one = made(value)
    first = one.training_file("cpu", 3)
    assert first.parent == tmp_path and first == one.training_file("cpu", 3) != one.training_file("cpu", 4)
    monkeypatch.setenv("FLBOOK_SEED", "7")
    assert one.training_file("cpu", 3) != first
