"""The page of a report: one file, which asks for nothing else, in light and dark, on a screen and on a phone."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import matplotlib.pyplot as plt
import torch

from flbook import __version__
from flbook.observe.functions import outputs
from flbook.plots.picture import png
from flbook.report import findings, progress
from flbook.report.findings import Finding, number
from flbook.report.given import Given, checkpoints, given, state
from flbook.runs import files

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #222; --soft: #555; --rule: #ddd; }
@media (prefers-color-scheme: dark) { :root { --ground: #121212; --ink: #e4e4e4; --soft: #aaa; --rule: #3a3a3a; }
  img { filter: invert(0.93) hue-rotate(180deg); } }
body { background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto;
  padding: 1rem; max-width: 76rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 0 0 .3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 29rem), 1fr)); gap: 2rem 2.5rem; }
section { border-top: 1px solid var(--rule); padding-top: 1rem; min-width: 0; }
img { display: block; width: 100%; max-width: 36rem; height: auto; margin: .5rem 0; background: #fff; }
summary, footer { color: var(--soft); font-size: .9rem; cursor: pointer; } footer { margin-top: 2rem; cursor: auto; }
details p { font-size: .9rem; margin: .3rem 0 0; }
"""
PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>$style</style>
</head>
<body>
<h1>$title</h1>
<dl>
$facts
</dl>
<main>
$sections
</main>
<footer>Made by <code>$command</code> with flbook $version and PyTorch $torch.</footer>
</body>
</html>
""")


COURSE = {"Signal and noise over training": progress.movement, "Tangent kernel over training": progress.alignments,
          "Sharpness over training": progress.curvatures}


def write(network: str, data: str, out: str, loss: str | None = None, states: Sequence[str] = (), device: str = "cpu"
          ) -> int:
    """Observe a network and write the report; a file appears only when it is complete.

    Parameters
    ----------
    network
        ``"my_module.py:make"``: a file, and a function in it that takes nothing and returns an ``nn.Module``.
    data
        An npz file with `x` and `y`.
    out
        The HTML file, which is replaced.
    loss
        ``"cross-entropy"``, ``"logistic"``, ``"squared"``; None chooses by the labels.
    states
        Checkpoints, files or folders: the report is about the last one, and about training over all of them.
    device
        Where to compute.

    Returns
    -------
    int
        How many figures the report has.

    Raises
    ------
    ValueError
        In one sentence, if something is not there, is of another kind, or does not fit.
    """
    here = given(network, data, loss, device)
    kept = checkpoints(states, here.module)
    found: list[Finding] = []
    for title, act in COURSE.items() if kept else ():
        found += findings.tried(title, act, kept, here)
    if kept:
        here = here.at(state(kept[-1], here.module))
    found = [*findings.all_of(here), *found]
    page = PAGE.substitute(title=escape(f"{here.name} observed"), style=STYLE, version=__version__,
                           torch=torch.__version__, facts=_facts(here, kept, device),
                           command=escape(_command(network, data, loss, states, device)),
                           sections="\n".join(map(_section, found)))
    files.write(out, page.encode())
    drawn = [one.figure for one in found if one.figure]
    for figure in drawn:
        plt.close(figure)
    return len(drawn)


def _facts(here: Given, kept: Sequence[Path], device: str) -> str:
    """What is observed, in lines."""
    with torch.no_grad():
        values, loss = outputs(here.f, here.params, here.x), here.loss(here.params).item()
    n, (weights, tensors) = len(here.x), (sum(p.numel() for p in here.params.values()), len(here.params))
    sample = " × ".join(map(str, here.x.shape[1:]))
    lines = {
        "Network": f"{type(here.module).__name__}, {_grouped(weights)} trained parameters in {tensors} tensors, in "
                   "evaluation mode",
        "State": f"the last of {len(kept)} checkpoints, {kept[-1].name}" if kept else
                 "as made, after torch.manual_seed(0)",
        "Data": f"{n} samples of {sample} numbers" + (f", drawn once from {_grouped(here.total)}: all below is on these"
                                                      if here.total > n else ""),
        "Loss": f"{here.loss_name}, {number(loss)}{_right(here, values)}",
        "Device": f"{device}, {str(here.x.dtype).removeprefix('torch.')}",
    }
    return "\n".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>"
                     for name, text in lines.items())


def _grouped(count: int) -> str:
    """A whole number, its thousands apart."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _right(here: Given, values: torch.Tensor) -> str:
    """How many labels the network has right, where they are classes."""
    if here.loss_name == "cross-entropy":
        right = values.argmax(1) == here.y
    elif here.loss_name == "logistic":
        right = values * here.y > 0
    else:
        plain = (here.labels - here.labels.mean(0)).square().sum(1).mean().item()
        return f" (a constant, at its best: {number(plain)})"
    return f"; {right.double().mean().item():.1%} of the labels are right".replace("%", " %")


def _section(one: Finding) -> str:
    """A finding on the page."""
    picture = ""
    if one.figure:
        source = base64.b64encode(png(one.figure)).decode()
        width, height = (round(110 * inches) for inches in one.figure.get_size_inches())
        picture = (f'<img src="data:image/png;base64,{source}" width="{width}" height="{height}" '
                   f'alt="{escape(one.title)}: {escape(one.sentence)}">')
    how = f"<details><summary>How it is measured</summary><p>{escape(one.how)}</p></details>" if one.how else ""
    text = re.sub(" (?=[%×])|(?<=×) ", "\N{NO-BREAK SPACE}", escape(one.sentence))  # numbers stay whole
    return f"<section>\n<h2>{escape(one.title)}</h2>\n<p>{text}</p>\n{picture}\n{how}\n</section>"


def _command(network: str, data: str, loss: str | None, states: Sequence[str], device: str) -> str:
    """What makes this report."""
    parts = ["python -m flbook observe", network, "--data", data, *(["--loss", loss] if loss else ()),
             *(["--checkpoints", *states] if states else ()), *(["--device", device] if device != "cpu" else ())]
    return " ".join(parts)
