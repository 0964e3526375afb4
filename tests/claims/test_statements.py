"""Claims files: what is written down before it is measured is complete and can fall, or is refused."""

import pytest

from flbook.claims import statements

GOOD = """
[slope_in_n]
says = "The signal that is needed falls like n^(-1/4)"
theory = -0.25
claim = [-0.30, -0.20]
why = "finite n: corrections of order 1/n"
excludes = { "no dependence on n" = 0.0, "n^(-1/2), cao2022benign" = -0.5 }
source = "kou2023benign, Theorem 4.2"
book = -0.26
tol = 0.01
headline = true

[above]
says = "The error stays above the floor"
claim = [0.1, inf]
why = "a bound"
source = "measured"
book = 0.2
rtol = 0.05

[near]
says = "The height is the closed form's"
within = 0.02
why = "finite d"
source = "derived here"
book = 0.6
tol = 0.01

[same]
says = "Coefficients train the same network as weights"
rtol = 1e-10
source = "derived here"
"""


def written(tmp_path, text):
    folder = tmp_path / "relu_heatmap"
    folder.mkdir(exist_ok=True)
    (folder / "claims.toml").write_text(text)
    return folder / "claims.toml"


def test_a_good_file(tmp_path):
    found = statements.read(written(tmp_path, GOOD))
    assert list(found) == ["slope_in_n", "above", "near", "same"]
    assert [statement.kind for statement in found.values()] == ["claim", "claim", "claim", "identity"]
    assert found["slope_in_n"].span() == (-0.30, -0.20) and found["above"].span() == (0.1, float("inf"))
    assert found["near"].span(0.6) == pytest.approx((0.58, 0.62))
    assert found["above"].tolerance == pytest.approx(0.01) and found["same"].tolerance == 1e-10
    assert found["slope_in_n"].cited == {"kou2023benign", "cao2022benign"} and not found["near"].cited
    statements.check_cited("relu_heatmap", found, {"kou2023benign", "cao2022benign"})
    with pytest.raises(ValueError, match=r"\[slope_in_n\]: 'cao2022benign' is not in the bibliography"):
        statements.check_cited("relu_heatmap", found, {"kou2023benign"})


def test_a_claim_without_a_book_value_is_a_draft(tmp_path):
    text = GOOD.replace("book = -0.26\n", "").replace("book = 0.6\n", "")
    found = statements.read(written(tmp_path, text))
    assert [statement.kind for statement in found.values()] == ["claim", "claim", "claim", "identity"]
    assert [statement.draft for statement in found.values()] == [True, False, True, False]
    with pytest.raises(ValueError, match="theory = -0.5 lies outside the claim"):
        statements.read(written(tmp_path, text.replace("theory = -0.25", "theory = -0.5")))


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("book = -0.26", "book = -0.35", "book = -0.35 must lie inside the claim, -0.3 to -0.2"),
        ("theory = -0.25", "theory = -0.5", "theory = -0.5 lies outside the claim.* belongs to excludes"),
        ('n" = 0.0', 'n" = -0.21', "admits the rival 'no dependence on n' = -0.21"),
        ('n" = 0.0', 'n" = nan', "excludes.* is nan; it must be a finite number"),
        ("tol = 0.01", "toll = 0.01", "unknown key 'toll'; did you mean 'tol'"),
        ("tol = 0.01", "", "exactly one of tol and rtol"),
        ("tol = 0.01", "tol = 0.01\nrtol = 0.1", "exactly one of tol and rtol"),
        ("tol = 0.01", "tol = 0.0", "the tolerance is 0; it must be above 0"),
        ("claim = [-0.30, -0.20]", "claim = [-0.20, -0.30]", "lo must be below hi"),
        ("claim = [-0.30, -0.20]", "claim = [-inf, inf]", "one of them finite"),
        ("claim = [-0.30, -0.20]", "claim = -0.3", r"it must be \[lo, hi\]"),
        ("claim = [-0.30, -0.20]", "", "exactly one of claim and within"),
        ("claim = [-0.30, -0.20]", "claim = [-0.3, -0.2]\nwithin = 0.1", "exactly one of claim and within"),
        ("within = 0.02", "within = 0.0", "within is 0; it must be above 0"),
        ('says = "The signal that', 'sayd = "The signal that', "unknown key 'sayd'; did you mean 'says'"),
        ('source = "measured"', "", "source is missing; it must be a sentence"),
        ('says = "The error stays above the floor"', 'says = " "', "says is ' '"),
        ("above the floor", "above the floor.", "says ends with a full stop"),
        ('why = "a bound"', "", "why is missing"),
        ("headline = true", "headline = 1", "headline is 1; it must be true or false"),
        ("[slope_in_n]", "[Slope]", "a name is lower-case letters"),
        ("[slope_in_n]", "slope = 1\n[slope_in_n]", "every entry of a claims file is a table"),
        ("[slope_in_n]", "[slope_in_n", "claims.toml is not TOML"),
        ('rtol = 1e-10\nsource = "derived here"', 'source = "derived here"', "neither claim nor rtol"),
        ("rtol = 1e-10", "rtol = 1e-10\ntheory = 0.0", "unknown key 'theory'"),
        ("book = -0.26\ntol = 0.01", "tol = 0.0", "the tolerance is 0; it must be above 0"),  # a draft, too, is checked
    ],
)
def test_mistakes_in_a_file(tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(ValueError, match=said) as mistake:
        statements.read(written(tmp_path, GOOD.replace(old, new, 1)))
    assert str(mistake.value).startswith("claims of relu_heatmap") and "\n" not in str(mistake.value)


def test_at_most_four_headlines(tmp_path):
    table = GOOD.split("[above]")[0]
    many = "".join(table.replace("slope_in_n", f"slope_{k}") for k in range(5))
    with pytest.raises(ValueError, match="5 headlines, slope_0, .* at most 4"):
        statements.read(written(tmp_path, many))


def test_files_by_name(tmp_path, monkeypatch):
    (tmp_path / "chapter").mkdir()
    file = written(tmp_path / "chapter", GOOD)
    monkeypatch.setattr(statements, "LECTURES", tmp_path)
    assert statements.path("relu_heatmap") == statements.path("chapter/relu_heatmap") == file
    assert statements.path(str(file)) == file
    with pytest.raises(ValueError, match="no lecture 'relu_heat' with a claims file; near it: relu_heatmap"):
        statements.path("relu_heat")
    with pytest.raises(ValueError, match="there is no file 'mine.toml'"):
        statements.read(tmp_path / "mine.toml")
