"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.shared import forgetting as theory
from flbook.plots.look import log_ticks
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "One selective state-space layer, the channel of the labels",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*4", lane=-1, alt="the query x q"),
            "x": strip("$x_l$", "examples, in turn", "grey*4", lane=0, alt="the input x l of example l"),
            "y": strip("$y_l$", "label", "label*1", lane=1, alt="its label y l"),
        }),
        ("made of the token", {
            "c": box("$C_q$", "read along", holds="context", lane=-1, alt="the vector C q to read along"),
            "b": box("$B_l$", "write along", holds="context", lane=0, alt="the vector B l to write along"),
        }),
        ("write", {"w": op(r"$\times$", lane=0.5, alt="vector times label")}),
        ("state", {
            "h": box("$h_l$", r"decays by $\alpha$", holds="noise", lane=0.5,
                     alt="the state, alpha times the old one plus what is written"),
        }),
        ("read", {"r": op(r"$\cdot$", lane=0, alt="inner product of state and C q")}),
        ("answer", {"f": out(r"$\hat y$", lane=0, alt="the answer")}),
    ],
    ["q > c > r", "x > b > w", "y > w > h > r > f"],
    says="What is written depends on the token alone, not on the state.",
)  # fmt: skip
READERS = {
    "attention": ("linear attention", plots.TRAIN),
    "mamba": ("Mamba, trained", plots.SIGNAL),
    "lms": ("online gradient descent", plots.NOISE),
    "ridge": ("best: ridge", plots.TEST),
}
MEMORIES = {0.95: plots.NOISE, 0.99: plots.SIGNAL, 1.0: plots.TRAIN}


def risks(found: xr.DataArray, noise: float, d: int = 4) -> Figure:
    """Risk over prompt length at one level of label noise, beside closed forms. found: (predictor, noise, n, seed)."""
    one = np.ones(d)
    laws = {
        "attention": lambda n: theory.attention_risk(one, n, noise),
        "mamba": lambda n: theory.mamba_risk(one, n, noise),
        "lms": lambda n: theory.lms_risk(d, n, noise),
    }
    fig = plots.dots(found.sel(noise=noise), "n", "predictor", READERS, laws, hollow=("attention",), lowest=1e-9,
                     title=f"Label noise {noise:g}: who reads the prompt best?")  # fmt: skip
    fig.axes[0].set_ylim(1e-6 if not noise else 3e-3, 5)
    log_ticks(fig.axes[0])
    return fig


def one_curve(risk: xr.DataArray) -> Figure:
    """Risks of layers over effective examples, for all dimensions together. risk: (d, n, seed), without noise."""
    share = (risk / risk.d).assign_attrs(long_name="share of the risk left, $R/d$", units="1")
    effective = risk.n.copy(data=theory.effective_samples(theory.decay(risk.n), risk.n))
    x = effective / (risk.d + 1)
    attrs = {"long_name": r"effective examples, $n_\mathrm{eff}/(d + 1)$", "units": "1"}
    share = share.assign_coords(x=(("n", "d"), x.transpose("n", "d").values, attrs))
    return plots.collapse(share, x="x", groups="d", theory={"1/(1 + x)": lambda x: 1 / (1 + x)},
                          title="Sixty trained layers, one curve")  # fmt: skip


def drifting(found: xr.DataArray, d: int, n: int, noise: float) -> Figure:
    """Risk over the share forgotten per example; stars: the Kalman filter. found: (memory, alpha, seed)."""
    forgotten = found.assign_coords(alpha=1 - found.alpha).rename(alpha="forgotten")
    forgotten.forgotten.attrs = {"long_name": "share forgotten, 1 − α", "units": "1"}
    laws = {rho: lambda out, rho=rho: theory.drifting_risk(d, n, 1 - out, rho, noise) for rho in MEMORIES}
    fig = plots.dots(forgotten, "forgotten", "memory",
                     {rho: (f"ρ = {rho:g}", colour) for rho, colour in MEMORIES.items()}, laws, log="x",
                     title="A task that moves has a best decay", legend="upper right")  # fmt: skip
    for rho in (0.95, 0.99):
        alpha, least = theory.kalman(d, rho, noise)
        fig.axes[0].plot(1 - alpha, least, "*", color=plots.THEORY, mfc="none", ms=14, zorder=5)
    fig.axes[0].set_ylim(0, 4.6)
    return fig
