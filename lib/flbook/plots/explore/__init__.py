"""Live figures: they compute in the reader's browser, in plain JavaScript, with the formulas and names of the library.

`core.js` holds what they share, each other file is one figure. An output carries both, and a still picture for places
that run no script; so a figure lives on the page, in Jupyter and on Colab, without a kernel and without a request.
"""

import base64
import hashlib
import json
from difflib import get_close_matches
from html import escape
from importlib import resources

import matplotlib.pyplot as plt

from flbook.plots.picture import png, under

# What a page may set of each figure, with what it starts from otherwise.
FIGURES = {
    "benign": dict(n=20, d=2000, mu=3.0, p=0.1, m=10, seed=0, model="network", steps=600),
    "one_step": dict(eta=25.0, psi_1=8.0, d=80, psi_2=2.0, link="erf", seed=0),
    "clusters": dict(n=40, d=2000, angle=90, mu=8.0, stretch=1.0, p=0.1, patches=2, model="network", seed=0, draws=6),
    "search": dict(link=2, d=1000, lr=0.5, start=1.0, seed=0),
    "prompt": dict(n=10, trained=10, noise=0.5, inputs="line", seed=0),
    "rules": dict(rule="sam", mu=1.2, d=200, factor=1.0, activation="relu", radius=0.5, p=0.3, beta=0.98, n=20, seed=0),
    "denoiser": dict(mu=5.0, t=0.2, n=30, m=20),
    "environments": dict(beta_1=0.1, beta_2=0.2, weight=1000.0, alpha=0.25, penalty="irm", start="spurious"),
    "memory": dict(memory=50.0, beta=0.1, seen=0.05, share=0.2),
    "committee": dict(difference=1e-4, K=2, lr=0.5, noise=0.0),
    "drift": dict(noise=0.5, drift=0.02, step=0.14, forget=0.02, d=4, seed=0),
    "pool": dict(M=8, noise=0.5, n=8, task="own", d=2, seed=0),
    "ladder": dict(r1=0.97, a1=10, r2=0.04, a2=70, n=4096),
    "langevin": dict(lam=0.1, unit="tanh", N=100, t=5.0),
    "transfer": dict(parametrisation="standard", length=2.0, steps=8, rate=0.2, seed=0),
    "update": dict(p=0.5, r1=0.0, r2=-1.0, r3=-1.0, seed=0),
    "modalities": dict(n_snr2=1.25, ratio=3.0, negatives=20, labels="other", d=2000, seed=0),
    "grokking": dict(share=0.8, split="random", round=4, seed=0),
    "spectral": dict(alpha=2.0, d=48, steps=5, seed=0),
    "chain": dict(n=1000.0, d=32, flip=0, node="last", seed=0),
    "clocks": dict(n=64, d=8, kept=0.8),
    "parent": dict(S=3, N=300.0, rho=0.0, seed=0),
    "edge": dict(c=0.3, height=0.1, drift=0.0, residual=-3),
}

# The same figure on every run has the same id. Without scripts the picture stays where it is.
_HTML = """\
<div id="{id}"><img class="dark-light" src="data:image/png;base64,{still}" alt="{alt}" \
style="max-width:100%;height:auto"></div>
<script>{core}</script>
<script>{figure}</script>
<script>for (const box of document.querySelectorAll('[id="{id}"]')) flbookLive["{name}"].mount(box, {given})</script>"""


def script(name):
    """The JavaScript of a figure, or of the ``"core"``.

    Parameters
    ----------
    name
        Of the figure, one of `FIGURES`, or ``"core"``.

    Returns
    -------
    str
        The text of the file.
    """
    return (resources.files(__name__) / f"{name}.js").read_text(encoding="utf-8")


def live(name, still, *, alt, caption="", label="", **given):
    """Show a live figure; a still picture stands in its place where no script runs.

    Parameters
    ----------
    name
        ``"benign"``: a two-layer network on labels of which some are wrong, trained in coefficients at any dimension.
        ``"one_step"``: one gradient step on the first layer, its singular values, what ridge regression predicts on it.
        ``"clusters"``: exclusive or beside noise, a trained network against three rivals that learn no feature.
        ``"search"``: twelve runs of online SGD look for the direction of a single-index model, by the overlap's exact
        chain; `start` is the overlap at the start in units of :math:`d^{-1/2}`.
        ``"prompt"``: linear attention and other predictors on a regression prompt whose examples can be moved.
        ``"rules"``: one network and data set, trained in weights by one of six rules (``"gd"``, ``"sam"``, ``"noise"``,
        ``"momentum"``, ``"adam"``, ``"sign"``); `factor` multiplies the step size of each.
        ``"denoiser"``: a denoiser and a classifier on the same patches, in their smallest form, all neurons alike: what
        they see of signal and noise over training.
        ``"environments"``: an invariant and a spurious feature under the risk of two environments and a penalty,
        ``"irm"`` or ``"vrex"``; it starts after ``"risk"``, at the ``"spurious"`` feature alone or from ``"zero"``.
        ``"memory"``: the smallest model of momentum, a feature that coasts and then races the noise for hard samples of
        the margin `beta`; `seen` is what a filter sees of a noise patch at the start.
        ``"committee"``: students taught by two teachers, by the equations of SGD in high dimension; `K` of them, alike
        but for a `difference` at the start.
        ``"drift"``: a linear task that drifts while a prompt is read: a memory of labels, one of residuals, and the
        Kalman filter.
        ``"pool"``: the Bayes rule of a pool of `M` tasks and ridge regression, on tasks of the pool and on fresh ones;
        the prompt that is drawn has a `task` of its ``"own"`` pool or a ``"fresh"`` one; `M` is one of the sizes
        offered.
        ``"langevin"``: `N` neurons with one weight each, and infinitely many, under gradient descent with noise from
        two starts; `unit` is ``"tanh"``, ``"cos"`` or ``"tilted"``, the latter a cosine whose sides the data see.
        ``"ladder"``: two learned features below attention at the points (r, a) of a disk of true ones, with a prompt of
        `n` examples (a power of two; from 4096 on infinitely many): rungs, saddles, and gradient flow.
        ``"transfer"``: the rate of a two-layer linear network at four widths, in a `parametrisation` (``"standard"``,
        ``"tangent"``, ``"maximal"``), towards a target of some `length`: risk over the rate, sharpness over the steps.
        ``"update"``: networks of two hidden layers and four widths, whose output weights start at the size n^-p and
        whose layers have the rates n^r1, n^r2, n^r3: the curves of the widths fan out or fall together.
        ``"modalities"``: contrastive training in coefficients with one modality and with two, `ratio` times as strong;
        `negatives` (even, 20 at most) are of the ``"other"`` label or of ``"any"``.
        ``"chain"``: the first gradient of a node of a parity's chain, the ``"last"`` or a ``"first"`` one, from `n`
        samples of `d` bits, `flip` per cent of whose steps are wrong.
        ``"grokking"``: a kernel machine that learns its metric learns sums modulo 17 from a `share` of them, a
        ``"random"`` one or one with ``"equal"`` or ``"uneven"`` counts of the difference; its profile at a `round`.
        ``"spectral"``: one step from zero on facts whose frequencies follow a power law `alpha`; `steps` of Newton and
        Schulz, 12 for the exact polar factor.
        ``"clocks"``: a denoiser on fixed features of `n` samples in `d` dimensions, at the noise that leaves the share
        `kept` of the variance: losses over the training time, and when it learns and memorises.
        ``"parent"``: contexts in which every token follows from the one before, of `S` tokens and stickiness `rho`: the
        slope of the first gradient of attention at every pair of places, from `N` of them.
        ``"edge"``: one mode of two layers that starts at a `height` above the edge of stability, with the step size `c`
        over its strength and a first `residual` of that power of ten; a `drift` lifts its sharpness at every step.
    still
        A Matplotlib figure that shows the same.
    alt
        What the still picture shows, in words.
    caption, label
        Under the figure, and by which the page refers to it; see `flbook.plots.show`.
    **given
        Where the controls start, by name, as in ``d=2000``; see `FIGURES`.

    Raises
    ------
    ValueError
        If there is no such figure or control, or no words for the picture.
    """
    from IPython.display import display

    if name not in FIGURES:
        raise ValueError(f"live: there is no figure {name!r}; there are {', '.join(FIGURES)}.")
    for key in given:
        if key not in FIGURES[name]:
            near = get_close_matches(key, FIGURES[name], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(FIGURES[name])}."
            raise ValueError(f"live: the figure {name!r} has no setting {key!r}; {hint}")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("live: alt is empty; it must say in words what the still picture shows.")
    picture = base64.b64encode(png(still)).decode()
    shown = {"text/html": _html(name, picture, alt, given), "image/png": picture, "text/plain": alt}
    plt.close(still)  # or pyplot would show it once more under the cell
    display(shown, raw=True, metadata={"image/png": {"alt": alt}, "flbook": {"alt": alt, "live": name}})
    under(caption, label)


def _html(name, picture, alt, given):
    """The output; all of it derives from the arguments, so it is the same at every run."""
    options = json.dumps(given).replace("<", "\\u003c")  # a text must not be able to end the script
    identity = hashlib.sha256("".join([name, alt, options, picture]).encode()).hexdigest()[:12]
    return _HTML.format(
        id=f"live-{identity}",
        name=name,
        still=picture,
        alt=escape(alt),
        core=script("core"),
        figure=script(name),
        given=options,
    )
