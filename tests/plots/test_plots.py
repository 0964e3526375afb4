"""Figures: what they draw from which data, how they are labelled, how small they are, and what stands for them."""

import base64
import io
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from PIL import Image

from flbook import fits, plots
from flbook.plots.look import geometric, label

SEEDS = 12


@pytest.fixture
def phases():
    """Test error over dimension and signal strength, both spaced by a factor."""
    rng = np.random.default_rng(0)
    d, mu = np.array([100, 200, 400, 800, 1600]), np.geomspace(1, 8, 9)
    error = 0.5 / (1 + 5 * mu**4 / d[:, None])
    da = xr.DataArray(
        error[..., None] * (1 + 0.05 * rng.standard_normal((5, 9, SEEDS))),
        dims=("d", "mu", "seed"),
        coords={"d": d, "mu": mu},
        name="test_error",
        attrs={"long_name": "test error", "units": "1"},
    )
    da.d.attrs["long_name"] = "dimension $d$"
    da.mu.attrs.update(long_name=r"signal strength $\|\mu\|$", units="V")
    return da


@pytest.fixture
def history():
    """Curves over training steps, from step 0."""
    rng = np.random.default_rng(1)
    step = np.array([0, 1, 3, 10, 30, 100, 300, 1000])
    shapes = {"test_error": 0.1 + 0.4 * np.exp(-step / 100), "gamma": 0.01 * step, "rho": 0.1 * step**0.5}
    long = {"test_error": "test error", "gamma": "signal learning", "rho": "noise memorisation"}
    data = {
        name: (("seed", "step"), curve * (1 + 0.1 * rng.random((SEEDS, 1))), {"long_name": long[name], "units": "1"})
        for name, curve in shapes.items()
    }
    return xr.Dataset(data, coords={"step": ("step", step, {"long_name": "gradient steps"})})


def texts(ax):
    return [text.get_text() for text in ax.texts]


def line_of(ax, style):
    return next(line for line in ax.get_lines() if line.get_linestyle() == style)


def test_a_phase_diagram_shows_the_means_where_they_belong(phases):
    ax = plots.phase_diagram(phases, "mu", "d", title="Benign above the line").axes[0]
    (mesh,) = ax.collections
    np.testing.assert_allclose(mesh.get_array().reshape(5, 9), phases.mean("seed"))
    edges = mesh.get_coordinates()[0, :, 0]
    assert (edges[:-1] < phases.mu.to_numpy()).all() and (phases.mu.to_numpy() < edges[1:]).all()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"signal strength $\|\mu\|$ [V]", "dimension $d$")
    assert ax.figure.axes[1].get_ylabel() == "test error"


def test_a_phase_diagram_turned_round_shows_the_same(phases):
    ax = plots.phase_diagram(phases.transpose("seed", "mu", "d"), "d", "mu", limits=(0, 0.5)).axes[0]
    np.testing.assert_allclose(ax.collections[0].get_array().reshape(9, 5), phases.mean("seed").T)
    assert ax.collections[0].get_clim() == (0, 0.5)


def test_predicted_boundaries_are_dashed_and_measured_ones_dotted(phases):
    found = fits.crossing(phases, "mu", 0.2)
    curves = {"predicted": lambda d: 1.5 * (d / 100) ** 0.25, "measured": found}
    fig = plots.phase_diagram(phases, "d", "mu", boundary=curves, contours=[0.3, 0.1], marks=[(210, 1.1), (1600, 8)])
    ax = fig.axes[0]
    dashed, dots = ax.get_lines()
    np.testing.assert_allclose(dashed.get_ydata(), 1.5 * (dashed.get_xdata() / 100) ** 0.25)
    assert dashed.get_linestyle() == "--" and to_hex(dashed.get_color()).upper() == plots.THEORY
    np.testing.assert_allclose(dots.get_xydata(), np.stack([phases.d, found], 1))
    assert dots.get_linestyle() == "None"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["predicted", "measured"]
    marks = {text.get_text(): text.get_position() for text in ax.texts if text.get_text().isalpha()}
    assert marks == {"A": (200, 1.0), "B": (1600, 8.0)}
    assert {"0.1", "0.3"} <= set(texts(ax))

    turned = plots.phase_diagram(phases, "mu", "d", boundary=found).axes[0]
    np.testing.assert_allclose(turned.get_lines()[0].get_xydata(), np.stack([found, phases.d], 1))


def test_axes_are_logarithmic_where_the_values_are_spaced_by_a_factor():
    assert geometric(np.array([100, 200, 400])) and geometric(np.geomspace(1, 9, 30)[::-1])
    assert (
        not geometric(np.array([100, 200, 300]))
        and not geometric(np.array([0, 1, 10]))
        and not geometric(np.array([1, 10]))
    )


def test_learning_curves_show_mean_and_band_over_seeds(history):
    ax = plots.learning_curves(history, ["test_error"], levels={"chance": 0.5}, theory={"law": lambda t: 1 / t}).axes[0]
    curve, band = line_of(ax, "-"), ax.collections[0]
    inside = history.test_error.isel(step=slice(1, None))
    np.testing.assert_allclose(curve.get_ydata(), inside.mean("seed"))
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(float(inside.quantile(0.1, "seed").min()))
    assert heights.max() == pytest.approx(float(inside.quantile(0.9, "seed").max()))
    assert to_hex(curve.get_color()).upper() == plots.TEST
    np.testing.assert_allclose(line_of(ax, "--").get_ydata(), 1 / inside.step)
    assert set(line_of(ax, ":").get_ydata()) == {0.5}
    assert set(texts(ax)) == {"test error", "chance", "law"}
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "gradient steps", "test error")


def test_labels_at_the_ends_of_lines_stay_apart_and_in_order(history):
    close = xr.Dataset(
        {name: history.gamma * factor for name, factor in zip("abcde", (1, 1.01, 1.02, 1.03, 0), strict=True)}
    )
    ax = plots.learning_curves(
        close.assign_coords(history.coords), dict(zip("abcde", "abcde", strict=True)), log="xy"
    ).axes[0]
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert sorted(heights, key=heights.get) == ["e", "a", "b", "c", "d"]
    assert all(b - a > 0.08 for a, b in pairwise(sorted(heights.values())))
    assert max(heights.values()) <= 1


def test_the_race_has_a_panel_for_each_regime_in_the_colours_of_the_book(history):
    fig = plots.coefficient_race(
        {"signal wins": history, "noise wins": history.assign(gamma=history.gamma.copy(data=history.gamma / 100))}
    )
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["signal wins", "noise wins"]
    for ax in fig.axes:
        assert [to_hex(line.get_color()).upper() for line in ax.get_lines()] == [plots.SIGNAL, plots.NOISE]
        assert len({line.get_marker() for line in ax.get_lines()}) == 2  # never colour alone
    assert fig.axes[0].get_ylim() == fig.axes[1].get_ylim()
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["signal learning", "noise memorisation"]

    both = xr.concat([history, history], xr.DataArray([0.1, 30.0], dims="r", attrs={"long_name": "$r$"}))
    fig = plots.coefficient_race(both, panel="r")
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["$r$ = 0.1", "$r$ = 30"]


def test_a_collapse_draws_every_group_against_the_shared_variable(phases):
    r = xr.DataArray(phases.mu**4 / phases.d, attrs={"long_name": "$r$"})
    fig = plots.collapse(phases.assign_coords(r=r), "r", "d", theory={"law": lambda r: 0.5 / (1 + 5 * r)})
    ax = fig.axes[0]
    dots = [line for line in ax.get_lines() if line.get_linestyle() == "None"]
    assert len(dots) == 5 and len({line.get_marker() for line in dots}) == 5
    for line, d in zip(dots, phases.d.to_numpy(), strict=True):
        np.testing.assert_allclose(line.get_xdata(), phases.mu**4 / d)
        np.testing.assert_allclose(line.get_ydata(), phases.sel(d=d).mean("seed"))
    legend = [text.get_text() for text in fig.legends[0].get_texts()]
    assert legend == ["100", "200", "400", "800", "1600", "law"]
    assert (ax.get_xlabel(), fig.legends[0].get_title().get_text()) == ("$r$", "dimension $d$")

    many = plots.collapse(phases, "d", "mu", theory=np.sqrt)
    assert many.axes[1].get_ylabel() == r"signal strength $\|\mu\|$ [V]" and many.axes[1].get_yscale() == "log"


def test_a_scaling_law_has_its_slope_and_interval_beside_it():
    n = np.array([10, 20, 40, 80])
    noise = np.exp(0.1 * np.random.default_rng(0).standard_normal((4, SEEDS)))
    da = xr.DataArray(n[:, None] ** -0.5 * noise, dims=("n", "seed"), coords={"n": n}, attrs={"long_name": "error"})
    fit = fits.exponent(da, "n")
    ax = plots.scaling(da, "n", fit, guides={"$n^{-1}$": -1}).axes[0]
    fitted, dots, guide = ax.get_lines()
    slopes = [np.polyfit(*np.log(line.get_xydata()).T, 1)[0] for line in (fitted, guide)]
    assert slopes == pytest.approx([fit.value, -1])
    np.testing.assert_allclose(dots.get_ydata(), da.mean("seed"))
    low, high = fit.interval
    assert texts(ax) == ["$n^{-1}$", f"slope {fit.value:.3f}\n[{low:.3f}, {high:.3f}]".replace("-", "\u2212")]
    alone = plots.scaling(da.mean("seed"), "n", fits.exponent(da.mean("seed"), "n")).axes[0]
    assert texts(alone) == [f"slope {fit.value:.3f}".replace("-", "\u2212")]


def test_ticks_of_logarithmic_axes_are_short():
    fig, (ax,) = plots.panels()
    expected = {(1.5, 3.8): "1.5 2 3", (1, 9): "1 2 5", (0.01, 1000): None, (1e-6, 1): None}
    for (low, high), ticks in expected.items():
        ax.set(xscale="log", xlim=(low, high))
        plots.look.log_ticks(ax)
        shown = [text.get_text() for text in ax.get_xticklabels()]
        assert 3 <= len(shown) <= 7 and all(len(text.strip("${}")) <= 7 for text in shown)
        assert ticks is None or " ".join(shown) == ticks
    assert shown[0] == "$10^{-6}$"


def test_labels_come_from_the_attributes():
    assert label(xr.DataArray(0, name="error")) == "error"
    assert label(xr.DataArray(0, name="e", attrs={"long_name": "time", "units": "s"})) == "time [s]"
    long = label(xr.DataArray(0, attrs={"long_name": r"signal strength $\|\mu\| / \sigma$ at test error = 0.2"}))
    assert long == r"signal strength $\|\mu\| / \sigma$ at" + "\ntest error = 0.2"
    assert label(xr.DataArray(0, attrs={"long_name": "a" * 40 + " b"})) == "a" * 40 + "\nb"
    assert label(xr.DataArray(0)) == ""


def all_figures(phases, history):
    r = xr.DataArray(phases.mu**4 / phases.d, attrs={"long_name": "$r$"})
    yield plots.phase_diagram(
        phases, "d", "mu", boundary=lambda d: d**0.25, contours=[0.2], marks=[(100, 1)], title="T"
    )
    yield plots.learning_curves(history, list(history), levels={"chance": 0.5}, title="T")
    yield plots.coefficient_race({"one": history, "other": history})
    yield plots.collapse(phases.assign_coords(r=r), "r", "d", theory=lambda r: 0.5 / (1 + 5 * r))
    found = fits.crossing(phases, "mu", 0.2)
    yield plots.scaling(found, "d", fits.boundary(phases, "mu", "d", 0.2), guides={"$d^{1/4}$": 0.25}, title="T")


def test_every_figure_is_small_readable_and_inside_its_frame(phases, history):
    for fig in all_figures(phases, history):
        picture = plots.png(fig)
        image = Image.open(io.BytesIO(picture))
        assert len(picture) <= 60_000 and image.mode == "P"
        assert image.size == tuple(np.round(fig.get_size_inches() * 200).astype(int))
        border = np.asarray(image.convert("RGB")).astype(int)
        for edge in (border[:4], border[-4:], border[:, :4], border[:, -4:]):
            assert edge.min() > 240  # nothing is cut off: the rim is blank
        written = [text for text in fig.findobj(mpl.text.Text) if text.get_text() and text.get_visible()]
        assert min(text.get_fontsize() for text in written) >= 9
        assert fig.get_figwidth() <= 6.8 and all(ax.get_xlabel() or ax.get_ylabel() for ax in fig.axes)


def test_a_picture_is_the_same_every_time(phases):
    one, other = (plots.png(plots.phase_diagram(phases, "d", "mu")) for _ in range(2))
    assert one == other and b"Software" not in one


def test_drawing_leaves_the_style_of_the_session_alone(phases):
    before = dict(mpl.rcParams)
    plots.phase_diagram(phases, "d", "mu")
    assert dict(mpl.rcParams) == before
    with mpl.rc_context():
        plots.style()
        assert mpl.rcParams["figure.dpi"] == 110 and mpl.rcParams["savefig.dpi"] == 200


def test_show_is_one_output_with_its_text_and_closes_the_figure(phases, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *args, **kwargs: shown.append((args, kwargs)))
    plots.show(plots.phase_diagram(phases, "d", "mu"), alt="The error falls.")
    ((data,), options), *rest = shown
    assert not rest and not plt.get_fignums()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG") and data["text/plain"] == "The error falls."
    assert options["raw"] is True
    assert options["metadata"]["image/png"] == {"width": 572, "alt": "The error falls."}
    assert options["metadata"]["flbook"]["alt"] == "The error falls."


@pytest.mark.parametrize("alt", ["", "  "])
def test_a_figure_without_words_is_refused(alt):
    fig, _ = plots.panels()
    with pytest.raises(ValueError, match="^alt must say in words what the figure shows"):
        plots.show(fig, alt=alt)


@pytest.mark.parametrize(
    "draw, sentence",
    [
        (lambda da, ds: plots.phase_diagram(da, "d", "snr"), r"^test_error must have the dimensions \('snr', 'd'\)"),
        (
            lambda da, ds: plots.learning_curves(ds.expand_dims(r=2), ["rho"]),
            r"^rho must have the dimensions \('step',\)",
        ),
        (lambda da, ds: plots.collapse(da, "r", "d"), "^collapse needs x = 'r' as a coordinate"),
        (lambda da, ds: plots.panels(3), "^count must be 1 or 2 panels"),
        (
            lambda da, ds: plots.phase_diagram(da, "d", "mu", boundary=ds.rho.mean("seed")),
            "^boundary 'predicted boundary' must have the one dimension 'd' or 'mu'",
        ),
    ],
)
def test_what_cannot_be_drawn_gets_a_sentence(phases, history, draw, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw(phases, history)


def test_series_carry_their_spread_and_the_lines_beside_them():
    grid = np.array([1.0, 10.0, 100.0])
    risk = xr.DataArray(np.outer([1, 2, 3.0], grid), dims=("seed", "n"), coords={"n": grid}, name="risk")
    fig = plots.series({"a": risk, "b": 2 * risk.mean("seed")}, "n", paint={"a": plots.SIGNAL},
                     lines={"closed form": (grid, grid)}, levels={"floor": 0.5}, ylim=(0.1, 1e3), title="t")
    ax = fig.axes[0]
    drawn = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_allclose(drawn["a"].get_ydata(), 2 * grid)
    assert drawn["a"].get_color() == plots.SIGNAL != drawn["b"].get_color() and drawn["a"].get_linestyle() == "None"
    assert drawn["closed form"].get_color() == plots.THEORY and set(drawn) == {"a", "b", "closed form", "floor"}
    bars = ax.collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], np.outer(grid, [1.2, 2.8]))
    assert ax.get_ylim() == (0.1, 1e3) and len(fig.legends[0].get_texts()) == 4
