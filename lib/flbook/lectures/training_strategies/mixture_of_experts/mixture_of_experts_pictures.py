"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, brace, op, out, strip

KINDS = {"cubic": "cubic", "linear": "linear"}
MODEL = Schematic(
    "A mixture of experts with its router",
    [
        ("four patches", {
            "v": strip(r"$y\,\alpha_i\,v_k$", "signal", "signal"), "c": strip(r"$\beta_i\,c_k$", "centre", "context"),
            "v'": strip(r"$y'\gamma_i\,v_{k'}$", "misleading", "-signal"), "xi": strip(r"$\xi$", "noise", "noise"),
        }),
        ("", {"x": brace()}),
        ("sum", {"S": op(r"$\Sigma$", r"$x_\Sigma$", lane=-1.5)}),
        ("router", {"router": box(r"$\max_m\,\langle\theta_m,x_\Sigma\rangle+r_{im}$", holds="context", lane=-1.5,
                                  alt="the largest score, theta m times the sum of the patches plus noise")}),
        ("experts", {"f*": box(r"$f_{m^*}$", lane=0, alt="the chosen one"),
                     "f1": box(r"$f_1$", faint=True, lane=0.9), "fM": box(r"$f_M$", faint=True, lane=1.8)}),
        ("gate", {"times": op(r"$\times$", lane=0, alt="the score times the answer")}),
        ("output", {"F": out(r"$F(x)$", lane=0)}),
    ],
    ["x > S > router", "x >> f* f1 fM", "router ~> f* | $m^*$", "f* > times > F", "router > times | $h_{m^*}$"],
    says="The router scores the sum of the patches and asks one expert; the others, dashed, stay idle. "
    "The score is the gate.",
)  # fmt: skip


def finding(racing: xr.Dataset) -> Figure:
    """Test error and dispatch entropy over training, cubic and linear experts."""
    fig, (left, right) = plots.panels(2, sharex=True)
    error, entropy = (racing[name].to_dataset("expert") for name in ("test_error", "entropy"))
    plots.learning_curves(error, KINDS, log="", levels={"1/8": 1 / 8}, title="Test error",
                          ylabel="test error [fraction]", ax=left)
    plots.learning_curves(entropy, KINDS, log="", levels={"ln 4": np.log(4)},
                          title="What the expert does not tell", ylabel="dispatch entropy [nats]", ax=right)
    left.set_ylim(-0.01, 0.56)
    return fig


def dispatch(counts: xr.DataArray, step: int) -> Figure:
    """Which share of a cluster goes to which expert, cubic above linear: dimensions (expert, number, cluster)."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.2)
    share = (counts / counts.sum("number")).transpose("expert", "cluster", "number")
    gap = np.full((1, share.sizes["number"]), np.nan)
    mesh = ax.imshow(np.concatenate([share[0], gap, share[1]]), vmin=0, vmax=1, cmap="viridis", aspect="auto")
    names = [f"{kind}, k = {k}" for kind in counts.expert.values for k in range(1, share.sizes["cluster"] + 1)]
    ax.set(xticks=range(share.sizes["number"]), xticklabels=range(1, share.sizes["number"] + 1), xlabel="expert m",
           yticks=[*range(4), *range(5, 9)], yticklabels=names, title=f"After {step} steps")
    ax.tick_params(length=0)
    fig.colorbar(mesh, ax=ax, label="share of the cluster", pad=0.02)
    return fig


def before_the_loss_moves(racing: xr.Dataset, last: int) -> Figure:
    """Largest share of one signal in an expert's skill, and the router's separation, over the first steps."""
    fig, (left, right) = plots.panels(2, sharex=True)
    early = racing.sel(step=slice(0, last))
    first, second = early.lead.to_dataset("expert"), early.agreement.dropna("step").to_dataset("expert")
    plots.learning_curves(first, KINDS, log="", title="Experts: lead of the best cluster",
                          ylabel="relative lead", ax=left)
    plots.learning_curves(second, KINDS, log="", title="Router: correlation with skills",
                          ylabel="correlation", ax=right)
    return fig


def rivals(errors: dict[str, np.ndarray]) -> Figure:
    """Test error of each model, a dot for each data set and its mean as a line; dotted, 1/8."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(7.2, 0.32 * len(errors) + 0.9)
    for row, values in enumerate(errors.values()):
        values = np.asarray(values, dtype=float)
        ax.plot(values, np.full(values.shape, row), "o", ms=4, alpha=0.55, color=plots.TEST, mec="none")
        ax.plot([values.mean()] * 2, [row - 0.32, row + 0.32], color=plots.TRAIN, lw=1.6)
    ax.axvline(1 / 8, ls=":", color=plots.CHANCE, lw=1.2)
    ax.text(0.128, -0.62, "1/8", color=plots.look.ink(plots.TRAIN), fontsize=9, va="bottom")
    ax.set(yticks=range(len(errors)), yticklabels=list(errors), xlabel="test error [fraction]", xlim=(-0.008, 0.31),
           title="Who beats 1/8?")
    ax.invert_yaxis()
    return fig
