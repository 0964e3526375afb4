"""Checkpoints: what goes in comes out, another setting is refused with what differs, no half-written file stands."""

from dataclasses import dataclass

import pytest
import torch

from flbook.data import LinearPrompts
from flbook.runs import checkpoints

TENSORS = {"w": torch.tensor([[1.0, 2.5]]), "steps": torch.tensor(7)}


@dataclass(frozen=True)
class Setting:
    d: int = 3
    link: object = torch.tanh
    data: LinearPrompts = LinearPrompts(d=2, covariance=(1.0, 2.0))


def test_what_goes_in_comes_out(tmp_path):
    checkpoints.save(tmp_path / "one", TENSORS, Setting())
    found = checkpoints.load(tmp_path / "one", Setting())
    assert found.keys() == TENSORS.keys() and all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)
    checkpoints.save(tmp_path / "half", TENSORS, Setting(), dtype=torch.float16)
    half = checkpoints.load(tmp_path / "half", dtype=torch.float32)
    assert half["w"].dtype == torch.float32 and half["steps"] == 7 and torch.equal(half["w"], TENSORS["w"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half", "one"]


def test_another_setting_is_refused_with_what_differs(tmp_path):
    checkpoints.save(tmp_path / "one", TENSORS, Setting())
    other = Setting(d=4, data=LinearPrompts(d=2, covariance=(1.0, 3.0)))
    with pytest.raises(ValueError, match=r"checkpoint one is of another setting: d is 3 there and 4 here; "
                                         r"data.covariance is \[1.0, 2.0\] there and \[1.0, 3.0\] here"):
        checkpoints.load(tmp_path / "one", other)


def test_a_broken_or_absent_file_is_one_sentence(tmp_path):
    checkpoints.save(tmp_path / "one", TENSORS, {})
    content = (tmp_path / "one").read_bytes()
    (tmp_path / "one").write_bytes(content[:-2])
    with pytest.raises(ValueError, match="checkpoint one is truncated"):
        checkpoints.load(tmp_path / "one")
    with pytest.raises(ValueError, match="there is no checkpoint two"):
        checkpoints.load(tmp_path / "two")
