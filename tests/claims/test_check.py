"""A claim decides: it falls when it should, refuses what cannot fall, and says so in one line."""

import json
import os
import sys

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.claims import row
from flbook.claims.check import ClaimMiss, Claims
from flbook.fits import Fit

SEEDS = -0.26 + 0.01 * np.linspace(-1, 1, 12)
SLOPE = dict(
    says='"The signal that is needed falls like n^(-1/4)"',
    theory="-0.25",
    claim="[-0.30, -0.20]",
    why='"finite n: corrections of order 1/n"',
    because='"the next order is 0.01 at this n"',
    excludes='{ "no dependence on n" = 0.0, "n^(-1/2)" = -0.5 }',
    source='"kou2023benign, Theorem 4.2"',
    book="-0.26",
    tol="0.01",
)
SAME = dict(says='"Both forms train the same network"', rtol="1e-10", source='"derived here"')


@pytest.fixture
def shown(monkeypatch):
    """Collect what would be displayed, as a notebook would store it."""
    outputs = []
    shell = type("shell", (), {"get_ipython": staticmethod(lambda: object())})
    monkeypatch.setitem(sys.modules, "IPython", shell)
    display = type("display", (), {"display": lambda data, raw, metadata: outputs.append((data, metadata))})
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return outputs


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setenv("FLBOOK_STRICT", "1")


@pytest.fixture
def lecture_of(tmp_path):
    """A function that writes a claims file, with changes of the slope's table, and opens it."""

    def write(**changes):
        table = {key: text for key, text in {**SLOPE, **changes}.items() if text is not None}
        file = tmp_path / "relu_heatmap" / "claims.toml"
        file.parent.mkdir(exist_ok=True)
        texts = [
            "\n".join([f"[{name}]", *(f"{key} = {text}" for key, text in one.items())])
            for name, one in (("slope_in_n", table), ("same", SAME))
        ]
        file.write_text("\n\n".join(texts))
        return Claims(str(file))

    return write


@pytest.fixture
def check(lecture_of):
    """A function that checks a slope; names of the table's keys change the file, the rest goes to the call."""

    def call(measured=-0.262, *, how=None, **changes):
        lecture_of(**changes).check("slope_in_n", measured, **(how or {}))

    return call


def record(outputs):
    return outputs[0][1]["flbook"]


def test_line_and_glue(shown, strict, check):
    check(SEEDS)
    (bundle, metadata), (glue, scrapbook) = shown
    assert metadata["flbook"] == json.loads(json.dumps(metadata["flbook"]))  # as a notebook keeps it
    kept = {
        key: record(shown)[key] for key in "name value book tol rtol theory holds kind headline scale device".split()
    }
    assert kept == dict(
        name="relu_heatmap.slope_in_n", value=-0.26, book=-0.26, tol=0.01, rtol=None, theory=-0.25, holds=True,
        kind="claim", headline=False, scale="book", device="cpu",
    )  # fmt: skip
    assert record(shown)["seeds"] == [round(x, 3) for x in SEEDS]  # a tenth of the tolerance
    assert glue == {"application/papermill.record/text/plain": "\N{MINUS SIGN}0.260"}
    assert scrapbook["scrapbook"] == {"name": "relu_heatmap.slope_in_n", "mime_prefix": "application/papermill.record/"}
    line = "The signal that is needed falls like n^(-1/4): measured -0.260 ± 0.002, theory -0.25 (5.3 s.e. off: the"
    line += " next order is 0.01 at this n); no dependence on n would give 0"
    assert bundle["text/plain"] == "≈ " + line.replace(" -", " \N{MINUS SIGN}")
    html = bundle["text/html"].replace("\N{MINUS SIGN}", "-")
    for said in ("-0.3 to -0.2", "corrections of order 1/n", "n^(-1/2): -0.5", "12 seeds", "± 0.01", "Kou et al. 2023"):
        assert said in html.partition("</summary>")[2]
    assert html.startswith('<details class="flbook-claim"') and " open>" not in html


def test_without_a_notebook_the_line_is_printed(capsys, check):
    check()
    said = capsys.readouterr().out.replace("\N{MINUS SIGN}", "-")
    assert said.startswith("≈ The signal that is needed falls like n^(-1/4): measured -0.262,")


def test_what_a_measurement_may_be(shown, strict, check):
    check(xr.DataArray(SEEDS, dims="seed"))
    check(torch.tensor(SEEDS))
    fit = Fit(-0.262, (-0.27, -0.25), SEEDS)
    check(fit)
    check(-0.262, how=dict(seeds=SEEDS, interval=(-0.27, -0.25)))
    records = [metadata["flbook"] for _, metadata in shown[::2]]
    assert [one["value"] for one in records] == [-0.26, -0.26, -0.262, -0.262]
    check(-0.262, how=dict(seeds=SEEDS[1:11]))  # ten are enough
    check(-0.262, how=dict(interval=(-0.262, -0.262)))  # an interval may be a point
    assert records[2]["interval"] == [-0.27, -0.25] and records[0]["interval"] is None
    assert all(one["seeds"] == records[0]["seeds"] for one in records)


@pytest.mark.parametrize(
    "measured, how, said",
    [
        (-0.31, dict(tol="0.1"), "-0.31 lies outside the claim, -0.3 to -0.2"),
        (-0.245, {}, "0.015 off the book's value, 0.01 is allowed"),
        (-0.245, dict(tol=None, rtol="0.02"), "0.015 off the book's value, 0.0052 is allowed"),
        (float("nan"), {}, "outside the claim"),
        (-0.26 + 0.3 * np.linspace(-1, 1, 12), {}, "four standard errors"),
        (
            -0.26,
            dict(how=dict(seeds=-0.31 + 0 * SEEDS)),
            "the mean over seeds, -0.31, is -0.01 from the end of the claim",
        ),
        (-0.26, dict(how=dict(seeds=[float("nan"), *SEEDS])), "four standard errors"),
        (-0.26, dict(how=dict(interval=(-0.29, -0.24))), "it needs the width of its interval, 0.05"),
    ],
)
def test_misses(shown, strict, check, measured, how, said):
    with pytest.raises(ClaimMiss, match="^relu_heatmap.slope_in_n = ") as miss:
        check(measured, **how)
    assert said in str(miss.value)
    assert record(shown)["holds"] is False and said in record(shown)["note"]  # the line was shown before
    assert "missed: did you change something?" in shown[0][0]["text/plain"] and " open>" in shown[0][0]["text/html"]
    json.dumps(record(shown), allow_nan=False)
    os.environ["FLBOOK_STRICT"] = "0"
    check(measured, **how)  # a student may play


def test_only_what_holds_can_be_accepted(shown, check):
    check(-0.24)  # off the book's value, inside the claim
    check(-0.31)
    check(-0.26 + 0.3 * np.linspace(-1, 1, 12))
    accepted = [(one["flbook"]["holds"], one["flbook"]["acceptable"]) for _, one in shown[::2]]
    assert accepted == [(False, True), (False, False), (False, False)]


def test_a_draft_shows_what_was_measured_and_does_not_hold_yet(shown, strict, check, monkeypatch):
    check(-0.262, book=None)
    draft = record(shown)
    assert (draft["value"], draft["book"], draft["holds"], draft["acceptable"]) == (-0.262, None, None, True)
    text, html = (shown[0][0][kind].replace("\N{MINUS SIGN}", "-") for kind in ("text/plain", "text/html"))
    assert "measured -0.262, theory -0.25" in text and "[draft: the book has no value of it yet]" in text
    assert "draft: the book has" in html and "none ±" not in html
    check(-0.262, book=None, tol=None, rtol="0.01")
    assert shown[-2][1]["flbook"]["tol"] == pytest.approx(0.00262), "relative to what was measured"
    with pytest.raises(ClaimMiss, match="lies outside the claim"):
        check(-0.31, book=None)
    monkeypatch.setenv("FLBOOK_SEED", "7")  # where no claim is compared with its book value
    check(-0.29, book=None)
    assert shown[-2][1]["flbook"]["holds"] is True


def test_a_relative_tolerance_is_said_in_percent(shown, strict, check):
    check(-0.26, book="-0.26", tol=None, rtol="0.02")
    assert dict(row.facts(record(shown)))["book"] == "-0.26 ± 2 %"


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_a_draft_may_measure_nothing(shown, check, value):
    check(value, book=None, tol=None, rtol="0.01")
    assert record(shown)["holds"] is False and record(shown)["acceptable"] is False


def test_what_is_just_enough_holds(shown, strict, check):
    check(-0.25)  # exactly the tolerance away
    check(-0.26, how=dict(interval=(-0.2799, -0.24)))  # its width is less than what is left on the narrower side
    with pytest.raises(ClaimMiss):
        check(-0.26, how=dict(interval=(-0.2801, -0.24)))
    noise = np.tile([-1.0, 1.0], 6)
    noise *= 0.04 / 4 * np.sqrt(12) / noise.std(ddof=1)  # four standard errors are 0.04, as is the room
    check(-0.26 + 0.999 * noise)
    with pytest.raises(ClaimMiss):
        check(-0.26 + 1.001 * noise)
    check(-0.26, claim="[-inf, -0.2]", excludes='{ "none" = 0.0 }')  # an open side


def test_theory_and_rivals_of_the_page(shown, strict, check):
    near = dict(theory=None, claim=None, within="0.05")
    check(-0.26, how=dict(theory=torch.tensor(-0.25), excludes={"measured rival": -0.35}), **near)
    assert record(shown)["claim"] == [-0.3, -0.2] and record(shown)["theory"] == -0.25
    assert record(shown)["excludes"] == {"no dependence on n": 0.0, "n^(-1/2)": -0.5, "measured rival": -0.35}
    assert record(shown)["sharpness"] == pytest.approx(2.0)  # 0.1 over 0.05
    with pytest.raises(ValueError, match="the call must give theory"):
        check(-0.26, **near)
    with pytest.raises(ValueError, match="theory is -0.25 in the claims file"):
        check(-0.26, how=dict(theory=-0.25))
    with pytest.raises(ValueError, match="theory = -0.5 lies outside the claim"):
        check(-0.26, how=dict(theory=-0.5), theory=None)


@pytest.mark.parametrize(
    "how, changes, said",
    [
        (dict(excludes={"rival": -0.25}), {}, "admits the rival 'rival' = -0.25"),
        (dict(excludes={"rival": float("nan")}), {}, "'rival'.* is nan; it must be one finite number"),
        (dict(excludes={"rival": [0.1, 0.2]}), {}, r"'rival'.* has shape \(2,\); it must be one finite number"),
        ({}, dict(excludes=None), "a number that cannot fail is not a test"),
        (dict(seeds=SEEDS[:9]), {}, r"seeds has shape \(9,\); it must hold one number per seed, at least 10"),
        (dict(seeds=SEEDS[:, None]), {}, r"seeds has shape \(12, 1\)"),
        (dict(interval=(-0.2, -0.3)), {}, "it must be .lo, hi. with lo <= hi"),
        (dict(measured=[1.0, 2.0]), {}, r"seeds has shape \(2,\)"),
        (dict(measured=[1.0, 2.0], seeds=SEEDS), {}, "with seeds= it must be one number"),
        (dict(measured="much"), {}, "what was measured is 'much'"),
        (dict(result=xr.Dataset()), {}, "must be a Dataset with scale and device"),
    ],
)
def test_mistakes_in_the_call(shown, lecture_of, how, changes, said):
    with pytest.raises(ValueError, match=said) as mistake:
        lecture_of(**changes).check("slope_in_n", **{"measured": -0.26, **how})
    assert str(mistake.value).startswith("claims of relu_heatmap, [slope_in_n]: ")
    assert str(mistake.value).count("\n") == 0 and not shown


def test_what_was_not_written_down_cannot_be_checked(shown, lecture_of):
    with pytest.raises(ValueError, match=r"there is no table \[slope\]; write the claim down first"):
        lecture_of().check("slope", -0.26)
    with pytest.raises(ValueError, match="it is an identity; ask claims.identity"):
        lecture_of().check("same", 1.0)
    with pytest.raises(ValueError, match="it is a measurement; ask claims.check"):
        lecture_of().identity("slope_in_n", 1.0, 1.0, broken={"twice": 2.0})
    assert not shown and list(lecture_of()) == ["slope_in_n", "same"]


def test_fresh_seeds_compare_the_claim_only(shown, strict, check, monkeypatch):
    monkeypatch.setenv("FLBOOK_SEED", "7")
    check(-0.29 + 0.3 * np.linspace(-1, 1, 12))  # neither book nor room
    assert record(shown)["holds"] is True
    with pytest.raises(ClaimMiss):
        check(-0.31)
    with pytest.raises(ValueError, match="admits the rival"):
        check(how=dict(excludes={"rival": -0.25}))


def test_a_stored_result_is_skipped_under_fresh_seeds(shown, strict, check, monkeypatch):
    result = xr.Dataset(attrs=dict(scale="longer", device="cuda", command="python -m flbook run x", fresh_seed=""))
    check(-0.262, how=dict(result=result))
    with pytest.raises(ClaimMiss):
        check(-0.31, how=dict(result=result))
    assert "stored result, on cuda, python -m flbook run x" in shown[0][0]["text/html"]
    monkeypatch.setenv("FLBOOK_SEED", "7")
    check(-0.31, how=dict(result=result))
    assert shown[-2][1]["flbook"]["holds"] is None
    assert "stored: skipped" in shown[-2][0]["text/plain"]
    with pytest.raises(ClaimMiss):
        check(-0.31, how=dict(result=result.assign_attrs(fresh_seed="7")))  # computed under this very seed


def test_another_device_is_allowed_ten_times_the_tolerance(shown, strict, check):
    gpu = xr.Dataset(attrs=dict(scale="book", device="cuda"))
    check(-0.27, how=dict(result=gpu), tol="0.002")
    assert "ten times the tolerance" in record(shown)["note"] and record(shown)["holds"] is True
    with pytest.raises(ClaimMiss):
        check(-0.285, how=dict(result=gpu), tol="0.002")
    with pytest.raises(ClaimMiss):  # what a file holds does not depend on the device
        check(-0.27, how=dict(result=gpu.assign_attrs(command="python -m flbook run x")), tol="0.002")


def test_identity(shown, strict, lecture_of):
    w = torch.tensor([[1.0, -2.0], [0.0, 4.0]], dtype=torch.float64, requires_grad=True)
    lecture_of().identity("same", w * (1 + 1e-13), w, broken={"twice": 2 * w, "a bit more": 1.1 * w})
    assert {key: record(shown)[key] for key in "value tol claim excludes holds kind sharpness z".split()} == dict(
        value=0.0, tol=1e-10, claim=[None, 1e-10], excludes={"twice": 1.0, "a bit more": 0.1}, holds=True,
        kind="identity", sharpness=None, z=None,
    )  # fmt: skip
    assert shown[1][0] == {"application/papermill.record/text/plain": "below 1e-11"}
    line = "✓ Both forms train the same network: relative error below 1e-11, not 0.1 (a bit more)"
    assert shown[0][0]["text/plain"] == line
    off = np.array([[1.0, -2.0], [4e-9, 4.0]])  # relative to the largest entry: 1e-9
    for computed, said in ((off, "largest relative error is 1e-09"), (w * float("nan"), "nan")):
        with pytest.raises(ClaimMiss, match=said):
            lecture_of().identity("same", computed, w, broken={"twice": 2 * w})


@pytest.mark.parametrize(
    "arguments, said",
    [
        (dict(expected=np.ones(3)), r"computed has shape \(2,\) and expected has shape \(3,\)"),
        (dict(expected=np.zeros(2)), "not zero everywhere"),
        (dict(broken={"same": np.ones(2)}), "relative error 0; it must be finite and above rtol"),
        (dict(broken={"none": np.full(2, np.nan)}), "it must be finite"),
        (dict(broken={}), "a number that cannot fail is not a test"),
    ],
)
def test_mistakes_in_an_identity(shown, lecture_of, arguments, said):
    good = dict(computed=np.ones(2), expected=np.ones(2), broken={"twice": 2 * np.ones(2)})
    with pytest.raises(ValueError, match=said):
        lecture_of().identity("same", **{**good, **arguments})
    assert not shown


@pytest.mark.parametrize(
    "value, tol, text",
    [
        (0.25, 0.01, "0.250"), (1234.5, 100, "1230"), (3.21e-9, 1e-9, "3.2e-09"), (0.0, 0.5, "0.00"), (12.0, 1, "12.0"),
        (0.000123, 1e-5, "0.000123"), (0.0000123, 1e-6, "1.23e-05"),  # six decimal places are read, seven are not
    ],
)
def test_digits_follow_the_tolerance(value, tol, text):
    one = dict(kind="claim", tol=tol, value=row.rounded(value, row.decimals(tol)), seeds=None, interval=None)
    assert row.value(one) == row.exact(one) == row.measured(one) == text


@pytest.mark.parametrize(
    "value, error, tol, text, exact",
    [
        (-0.29624, 0.0052, 1e-4, "-0.2962 ± 0.0052", "-0.29624"),
        (1234.56, 130.0, 0.1, "1230 ± 130", "1234.56"),
        (0.5, 0.0004, 0.1, "0.50 ± 0.0004", "0.50"),  # no digit that is not recorded
        (3.214e-9, 1.1e-10, 1e-11, "3.21e-09 ± 1.1e-10", "3.214e-09"),
    ],
)
def test_digits_follow_the_standard_error(value, error, tol, text, exact):
    half = 1.96 * error
    one = dict(kind="claim", tol=tol, value=value, seeds=None, interval=[value - half, value + half])
    assert row.measured(one) == text and row.exact(one) == exact


@pytest.mark.parametrize(
    "changes, measured, mark",
    [
        (dict(because=None), SEEDS + 0.01, "agrees"),  # theory itself
        (dict(because=None, book="-0.255", tol="1e-3"), SEEDS + 0.01 - 0.0055, "agrees"),  # 2.9 s.e. of 0.0019
        (dict(book="-0.256", tol="1e-3"), SEEDS + 0.01 - 0.0059, "close"),  # 3.1
        (dict(because=None, theory=None), SEEDS, "holds"),
        (dict(because=None, differs='"we measure less"', theory="-0.1"), SEEDS, "differs"),
        (dict(because=None, differs='"we measure less"'), SEEDS + 0.01, "agrees"),
        (dict(because=None, book="-0.255", tol="0.005"), -0.2549, "agrees"),  # without a spread: the tolerance
        (dict(book="-0.255", tol="0.005"), -0.2551, "close"),
    ],
)
def test_the_mark_says_how_it_stands_to_theory(shown, strict, check, changes, measured, mark):
    check(measured, **changes)
    assert record(shown)["mark"] == row.mark(record(shown)) == mark
    sign = dict(agrees="✓", holds="✓", close="≈", differs="✗")[mark]
    assert shown[0][0]["text/plain"].startswith(sign) and f"{sign} {mark}</span>" in shown[0][0]["text/html"]
    said = shown[0][0]["text/plain"]
    assert ("we measure less" in said) == (mark == "differs") and ("the next order" in said) == (mark == "close")


def test_what_is_off_theory_says_why(shown, strict, check, monkeypatch):
    off = SEEDS - 0.02  # mean -0.28, sixteen standard errors of 0.0019 from theory
    with pytest.raises(ClaimMiss, match="it lies 16 standard errors from theory, -0.25; write in because why"):
        check(off, because=None, book="-0.28")
    assert record(shown)["mark"] == "missed"
    with pytest.raises(ClaimMiss, match="it lies further than the tolerance from theory"):
        check(-0.275, because=None, book="-0.275")
    check(SEEDS - 0.0045, because=None)  # another processor's last digits: three standard errors and the tolerance
    monkeypatch.setenv("FLBOOK_SEED", "7")
    check(off, because=None)  # one draw in four hundred lies as far off


def test_only_the_first_rival_of_a_page_has_a_verb(shown, lecture_of):
    claims = lecture_of()
    claims.check("slope_in_n", -0.26)
    claims.check("slope_in_n", -0.26)
    first, second = (bundle["text/plain"] for bundle, _ in shown[::2])
    assert first.endswith("; no dependence on n would give 0") and second.endswith("; not 0 (no dependence on n)")


@pytest.mark.parametrize(
    "theory, value, claim, rivals, sharp",
    [
        (-0.25, -0.26, [-0.3, -0.2], {"a": 0.0, "b": -0.5}, 5.0),  # 0.25 over 0.05
        (None, -0.26, [-0.3, -0.2], {"a": 0.0, "b": -0.5}, 4.8),  # measured, no theory: from the value
        (None, 0.9, [0.7, None], {"chance": 0.5}, 2.0),  # 0.4 over 0.2
        (0.7, 0.9, [0.7, None], {"chance": 0.5}, 1.0),  # the bound itself: from there, as wide as the value is above
        (None, None, [0.7, None], {"chance": 0.5}, None),
    ],
)
def test_sharpness(theory, value, claim, rivals, sharp):
    one = dict(kind="claim", theory=theory, value=value, claim=claim, excludes=rivals)
    assert row.sharpness(one) == (sharp if sharp is None else pytest.approx(sharp))


def test_distance_from_theory_in_standard_errors():
    one = dict(theory=0.5, value=0.6, seeds=[0.5, 0.7] * 8, interval=None)  # standard deviation 0.1033, sixteen seeds
    assert row.z(one) == pytest.approx(0.1 / (0.10328 / 4), rel=0.01)
    assert row.z({**one, "seeds": None, "interval": [0.5, 0.7]}) == pytest.approx(1.96)
    assert row.z({**one, "theory": None}) is None and row.z({**one, "seeds": None}) is None


def test_html_is_escaped_and_knows_its_minus(shown, check):
    check(how=dict(excludes={"<b>bold</b>": -0.5}))
    html = shown[0][0]["text/html"]
    assert "&lt;b&gt;bold" in html and "<b>bold" not in html
    assert "\N{MINUS SIGN}0.5" in html and "n^(-1/2)" in html
