"""What every experiment owes whoever runs it, where nothing hangs on a last digit: presets that the command line
reaches and whose cost is known, the device that it is given, one sentence for bad input, small stored results."""

import typing
from dataclasses import fields
from pathlib import Path

import pytest
from pretended_gpu import PretendedGPU
from whole_library import wrong_values

from flbook import __main__, devices, lectures
from flbook.runs import Experiment, Grid, costs
from flbook.runs.shelf import Shelf

SHELF = Shelf(lectures)
NAMES = list(SHELF.modules())
EVERY = pytest.mark.parametrize("name", NAMES)
FOLDER = Path(lectures.__path__[0])


@EVERY
def test_every_preset_is_reached_from_the_command_line_and_its_cost_is_known(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = SHELF.find(name)
    assert experiment.name == name and {"tiny", "book"} <= set(experiment.presets)
    known = costs.read(FOLDER / "costs.json").get(name, {})
    for preset, sentence in experiment.presets.items():
        assert __main__.main(["run", name, "--scale", preset, "--dry-run"]) == 0, preset
        size = costs.size(experiment.setting(preset))
        assert f"{name}, version {experiment.version}" in capsys.readouterr().out
        assert preset in known and (known[preset].size, known[preset].says) == (size, sentence), (
            f"python -m flbook cost {name} writes down what {preset} costs")


@EVERY
def test_it_uses_the_device_or_refuses_it(name, monkeypatch):
    experiment = SHELF.find(name)
    if "cuda" not in experiment.devices:
        with pytest.raises(ValueError, match=f"^device must be cpu for {name}; got 'cuda'$"):
            experiment.run("tiny", device="cuda")
        return
    check = Experiment.check_device
    monkeypatch.setattr(Experiment, "check_device", lambda one, device: check(one, device.replace("meta", "cuda")))
    monkeypatch.setattr(devices, "KINDS", ("cpu", "meta"))
    with PretendedGPU() as gpu:
        experiment.measure("tiny", device="meta")
    assert gpu.operations["gpu"] > gpu.operations["cpu"], gpu.operations


@EVERY
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_gets_one_sentence_that_names_it(name):
    experiment = SHELF.find(name)
    assert isinstance(experiment, Experiment) and issubclass(experiment.Setting, Grid)
    hints, tiny = typing.get_type_hints(experiment.Setting, include_extras=True), experiment.setting("tiny")
    for field in fields(tiny):
        for value in wrong_values(hints[field.name]):
            with pytest.raises(ValueError, match=f"^{field.name} ") as error:
                tiny.thinned(**{field.name: value})
            assert "\n" not in str(error.value), field.name
    with pytest.raises(ValueError, match="^chunk names 'colour', which is no axis"):
        experiment.run(tiny, chunk={"colour": 1})


def test_stored_results_fit_the_package():
    files = sorted(FOLDER.glob("*/*/*.nc"))
    assert len(files) > 30 and sum(file.stat().st_size for file in files) <= 15_000_000
    assert all(file.stat().st_size <= 500_000 for file in files)
    stored = [name for name in NAMES if SHELF.file(name).with_name(name.rpartition("/")[2] + ".nc").is_file()]
    assert {file.stem.partition("-")[0] for file in files} == {name.rpartition("/")[2] for name in stored}
