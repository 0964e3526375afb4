"""A key number decides: it falls when it should, refuses to be a call that cannot fall, and says so in words."""

import json
import os

import numpy as np
import pytest
import torch
import xarray as xr

from flbook import keynumbers
from flbook.book import row

SEEDS = -0.26 + 0.01 * np.linspace(-1, 1, 12)
GOOD = dict(
    book=-0.26,
    tol=0.01,
    claim=(-0.30, -0.20),
    why="finite n: corrections of order 1/n",
    excludes={"no dependence on n": 0.0, "n^(-1/2)": -0.5},
    source="kou2023benign, Theorem 4.2",
)


@pytest.fixture
def shown(monkeypatch):
    """Collect what would be displayed, as a notebook would store it."""
    outputs = []
    shell = type("shell", (), {"get_ipython": staticmethod(lambda: object())})
    monkeypatch.setitem(keynumbers.sys.modules, "IPython", shell)
    display = type("display", (), {"display": lambda data, raw, metadata: outputs.append((data, metadata))})
    monkeypatch.setitem(keynumbers.sys.modules, "IPython.display", display)
    return outputs


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setenv("FLBOOK_STRICT", "1")


def call(value=-0.262, **changes):
    keynumbers.key_number("relu_heatmap.slope_in_n", value, **{**GOOD, **changes})


def record(outputs):
    return outputs[0][1]["flbook"]


def test_row_and_glue(shown, strict):
    call(-0.262345, seeds=SEEDS)
    (bundle, metadata), (glue, scrapbook) = shown
    assert metadata["flbook"] == json.loads(json.dumps(metadata["flbook"]))  # as a notebook keeps it
    kept = {
        key: metadata["flbook"][key] for key in ("value", "book", "tol", "rtol", "holds", "kind", "scale", "device")
    }
    assert kept == dict(
        value=-0.262, book=-0.26, tol=0.01, rtol=None, holds=True, kind="key_number", scale="book", device="cpu"
    )
    assert metadata["flbook"]["seeds"] == [round(x, 3) for x in SEEDS]  # a tenth of the tolerance
    assert glue == {"application/papermill.record/text/plain": "-0.262"}
    assert scrapbook["scrapbook"] == {
        "name": "relu_heatmap.slope_in_n",
        "mime_prefix": "application/papermill.record/",
    }
    for said in ("holds", "-0.3 to -0.2", "corrections of order 1/n", "n^(-1/2)", "12 seeds", "Theorem 4.2", "± 0.01"):
        assert said in bundle["text/plain"]
        assert said in bundle["text/html"].replace("\N{MINUS SIGN}", "-")


def test_without_a_notebook_the_row_is_printed(capsys):
    call()
    assert capsys.readouterr().out.startswith("[holds] relu_heatmap.slope_in_n = -0.262   (book -0.26 ± 0.01)")


@pytest.mark.parametrize(
    "value, changes, said",
    [
        (-0.31, dict(tol=0.1), "-0.31 lies outside the claim, -0.3 to -0.2"),
        (-0.245, {}, "0.015 off the book's value, 0.01 is allowed"),
        (-0.245, dict(tol=None, rtol=0.02), "0.015 off the book's value, 0.0052 is allowed"),
        (float("nan"), {}, "outside the claim"),
        (-0.26, dict(seeds=-0.26 + 0.3 * np.linspace(-1, 1, 12)), "four standard errors"),
        (-0.26, dict(seeds=-0.31 + 0 * SEEDS), "the mean over seeds, -0.31, is -0.01 from the end of the claim"),
        (-0.26, dict(seeds=[float("nan"), *SEEDS]), "four standard errors"),
        (-0.26, dict(interval=(-0.29, -0.24)), "it needs the width of its interval, 0.05"),
    ],
)
def test_misses(shown, strict, value, changes, said):
    with pytest.raises(keynumbers.KeyNumberMiss, match="^key number relu_heatmap.slope_in_n = ") as miss:
        call(value, **changes)
    assert said in str(miss.value)
    assert record(shown)["holds"] is False and said in record(shown)["note"]  # the row was shown before
    assert "differs: did you change something?" in shown[0][0]["text/plain"]
    json.dumps(record(shown), allow_nan=False)
    os.environ["FLBOOK_STRICT"] = "0"
    call(value, **changes)  # a student may play


def test_what_is_just_enough_holds(shown, strict):
    call(-0.25)  # exactly the tolerance away
    call(-0.26, interval=(-0.2799, -0.24))  # its width is less than what is left on the narrower side
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.26, interval=(-0.2801, -0.24))
    noise = np.tile([-1.0, 1.0], 6)
    noise *= 0.04 / 4 * np.sqrt(12) / noise.std(ddof=1)  # four standard errors are 0.04, as is the room
    call(-0.26, seeds=-0.26 + 0.999 * noise)
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.26, seeds=-0.26 + 1.001 * noise)
    call(-0.26, claim=(None, -0.2), excludes={"none": 0.0})  # an open side


@pytest.mark.parametrize(
    "changes, said",
    [
        (dict(book=-0.35), "book = -0.35 must lie inside the claim, -0.3 to -0.2"),
        (dict(excludes={"rival": -0.25}), "admits the rival 'rival' = -0.25"),
        (dict(excludes={"rival": float("nan")}), "must be a finite number"),
        (dict(excludes={}), "a number that cannot fail is not a test"),
        (dict(seeds=SEEDS[:9]), r"seeds has shape \(9,\); it must hold one number a seed, at least 10"),
        (dict(seeds=SEEDS[:, None]), r"seeds has shape \(12, 1\)"),
        (dict(tol=None), "exactly one of the two must be given"),
        (dict(rtol=0.1), "exactly one of the two must be given"),
        (dict(tol=0.0), "the tolerance is 0; it must be above 0"),
        (dict(claim=(-0.2, -0.3)), "its lower end must be below its upper end"),
        (dict(claim=(None, None)), r"it must be \(lo, hi\)"),
        (dict(interval=(-0.2, -0.3)), "it must be .lo, hi. with lo <= hi"),
        (dict(value=[1.0, 2.0]), r"value has shape \(2,\); it must be one number"),
        (dict(value="much"), "value is 'much'; it must be one number"),
        (dict(why=""), "why is ''"),
        (dict(result=xr.Dataset()), "must be a Dataset with scale and device"),
    ],
)
def test_mistakes_in_the_call(shown, changes, said):
    with pytest.raises(ValueError, match=said) as mistake:
        call(**changes)
    assert str(mistake.value).count("\n") == 0 and not shown
    with pytest.raises(ValueError, match="without spaces"):
        keynumbers.key_number("slope in n", -0.26, **GOOD)


def test_fresh_seeds_compare_the_claim_only(shown, strict, monkeypatch):
    monkeypatch.setenv("FLBOOK_SEED", "7")
    call(-0.29, seeds=-0.26 + 0.3 * np.linspace(-1, 1, 12))  # neither book nor room
    assert record(shown)["holds"] is True
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.31)
    with pytest.raises(ValueError, match="admits the rival"):
        call(excludes={"rival": -0.25})


def test_a_stored_result_is_skipped_under_fresh_seeds(shown, strict, monkeypatch):
    result = xr.Dataset(attrs=dict(scale="paper", device="cuda", command="python -m flbook run x", fresh_seed=""))
    call(-0.262, result=result)
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.31, result=result)
    assert "stored, paper scale, on cuda, python -m flbook run x" in shown[0][0]["text/plain"]
    monkeypatch.setenv("FLBOOK_SEED", "7")
    call(-0.31, result=result)
    assert shown[-2][1]["flbook"]["holds"] is None
    assert "stored: skipped" in shown[-2][0]["text/plain"]
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.31, result=result.assign_attrs(fresh_seed="7"))  # computed under this very seed


def test_another_device_is_allowed_ten_times_the_tolerance(shown, strict):
    gpu = xr.Dataset(attrs=dict(scale="book", device="cuda"))
    call(-0.27, tol=0.002, result=gpu)
    assert "ten times the tolerance" in record(shown)["note"] and record(shown)["holds"] is True
    with pytest.raises(keynumbers.KeyNumberMiss):
        call(-0.285, tol=0.002, result=gpu)
    with pytest.raises(keynumbers.KeyNumberMiss):  # what a file holds does not depend on the device
        call(-0.27, tol=0.002, result=gpu.assign_attrs(scale="paper"))


def test_identity(shown, strict):
    w = torch.tensor([[1.0, -2.0], [0.0, 4.0]], dtype=torch.float64, requires_grad=True)
    keynumbers.identity("x.w", w * (1 + 1e-13), w, rtol=1e-10, source="here", broken={"twice": 2 * w})
    assert {key: record(shown)[key] for key in ("value", "tol", "claim", "excludes", "holds", "kind")} == dict(
        value=0.0, tol=1e-10, claim=[None, 1e-10], excludes={"twice": 1.0}, holds=True, kind="identity"
    )
    assert shown[1][0] == {"application/papermill.record/text/plain": "below 1e-11"}
    assert "relative error below 1e-11" in shown[0][0]["text/plain"] and "twice: 1" in shown[0][0]["text/plain"]
    off = np.array([[1.0, -2.0], [4e-9, 4.0]])  # relative to the largest entry: 1e-9
    with pytest.raises(keynumbers.KeyNumberMiss, match="largest relative error is 1e-09"):
        keynumbers.identity("x.w", off, w, rtol=1e-10, source="here", broken={"twice": 2 * w})
    with pytest.raises(keynumbers.KeyNumberMiss):
        keynumbers.identity("x.w", w * float("nan"), w, rtol=1e-10, source="here", broken={"twice": 2 * w})
    assert keynumbers.identity("x.w", off, w, rtol=1e-8, source="here", broken={"twice": 2 * w}) is None


@pytest.mark.parametrize(
    "arguments, said",
    [
        (dict(expected=np.ones(3)), r"computed has shape \(2,\) and expected has shape \(3,\)"),
        (dict(expected=np.zeros(2)), "not zero everywhere"),
        (dict(broken={"same": np.ones(2)}), "relative error 0; it must be finite and above rtol"),
        (dict(broken={"none": np.full(2, np.nan)}), "it must be finite"),
        (dict(broken={}), "a number that cannot fail is not a test"),
        (dict(rtol=0.0), "it must be above 0"),
    ],
)
def test_mistakes_in_an_identity(shown, arguments, said):
    good = dict(computed=np.ones(2), expected=np.ones(2), rtol=1e-10, source="here", broken={"twice": 2 * np.ones(2)})
    keynumbers.identity("x.y", **good)
    shown.clear()
    with pytest.raises(ValueError, match=said):
        keynumbers.identity("x.y", **{**good, **arguments})
    assert not shown


@pytest.mark.parametrize(
    "value, tol, text",
    [(0.25, 0.01, "0.250"), (1234.5, 100, "1230"), (3.21e-9, 1e-9, "3.2e-09"), (0.0, 0.5, "0.00"), (12.0, 1, "12.0")],
)
def test_digits_follow_the_tolerance(value, tol, text):
    one = dict(kind="key_number", tol=tol, value=row.rounded(value, row.decimals(tol)))
    assert row.value(one) == text


def test_html_is_escaped_and_knows_its_minus(shown):
    call(excludes={"<b>bold</b>": -0.5, "n^(-1/2)": 0.0})
    html = shown[0][0]["text/html"]
    assert "&lt;b&gt;bold" in html and "<b>bold" not in html
    assert "\N{MINUS SIGN}0.5" in html and "n^(-1/2)" in html
