r"""Draw the model of a lecture from a few words: things in stages, wires between them, one style for the whole book.

A thing has a formula, words for who does not see it, and what it holds. The things are `strip`, `stack`, `op`, `curve`,
`box`, `encoder`, `matrix`, `bar`, `across` (one operation over a stage), `brace` (a stage taken together), `dots` and
`out`. They hold signal, noise, context (what selects or matches), label or grey: `signal*3 noise*2` side by side,
`signal+noise` a sum, `-signal` hollow (it only looks like one); for a matrix their first letters, capital if faint.

Wires: `a > b`; `a b > c d` in pairs; `a b >> c d` each to each; `~>` dashed, a choice and not data; `a > b | $g$` with
a label.
"""

import io
import re
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle
from matplotlib.path import Path
from PIL import Image

from flbook.plots.look import styled

NAMES = "signal noise context label grey line text muted".split()
LIGHT = dict(zip(NAMES, "#0072B2 #D55E00 #5A4FB0 #009E73 #8A939C #6B747D #1F2328 #57606A".split(), strict=True))
DARK = dict(zip(NAMES, "#4FA8E0 #FF8B3D #A79BFF #35C99A #88939E #97A1AB #E8EAED #AEB6BF".split(), strict=True))
WIDTH, PHONE = 720, 360  # pixels of the picture for a page, and of the one for a phone
PX, BIG, SMALL, CELL = 100, 11.5, 10.0, 14.5  # pixels an inch; points of a formula and of a word; pixels of a cell
CURVES = {"relu": lambda z: 1.5 * np.maximum(z, 0) - 0.5, "cube": lambda z: z**3, "linear": lambda z: z,
          "tanh": lambda z: np.tanh(2 * z), "square": lambda z: 1.5 * z**2 - 0.5,
          "squared_relu": lambda z: 1.5 * np.maximum(z, 0) ** 2 - 0.5,
          "leaky_relu": lambda z: np.maximum(1.4 * z, 0.3 * z) - 0.4}
SIZES = dict(op=(34, 34), curve=(38, 38), stack=(58, 45), bar=(54, 14), encoder=(66, 62),
             across=(36, 0), brace=(10, 0), dots=(34, 12))  # fmt: skip
INSIDE = ("box", "out", "op", "encoder", "across", "dots")  # these have their formula inside


@dataclass(frozen=True)
class Node:
    """One thing in the picture, made by `strip`, `box` and the others.

    Attributes
    ----------
    kind
        How it is drawn.
    label
        Its formula.
    words
        A word or two beside the formula.
    holds
        What it holds, as in ``"signal*3 noise*2"``; of a curve, ``"relu"``, ``"cube"``, ``"square"``,
        ``"squared_relu"``, ``"leaky_relu"`` or ``"linear"``.
    lane
        Where it stands across the flow; without it the things of a stage stand evenly about 0.
    faint
        Idle: dashed.
    value
        Length of a bar, from 0 to 1.
    alt
        What the alt text says in place of the formula and the words.
    """

    kind: str
    label: str = ""
    words: str = ""
    holds: str = "grey"
    lane: float | None = None
    faint: bool = False
    value: float = 1.0
    alt: str = ""

    def contents(self) -> list[str]:
        """What each cell holds.

        Returns
        -------
        list[str]
            As in `holds`, one for each cell.
        """
        if self.kind == "matrix":
            return [next((n for n in NAMES if n[0] == one.lower()), "-grey") for one in self.holds.replace(" ", "")]
        pairs = (part.split("*") if "*" in part else (part, 6) for part in self.holds.split())
        return [kind for kind, count in pairs for _ in range(int(count))]

    def room(self, phone: bool) -> tuple[float, float]:
        """Its size along the flow and across it: boxes stay upright on a phone, everything else turns.

        Parameters
        ----------
        phone
            Does the picture run from top to bottom?

        Returns
        -------
        tuple[float, float]
            In pixels.
        """
        w, h = _extent(self.label, BIG)
        upright, rows = (max(w + 22, 36), max(h + 16, 36))[:: -1 if phone else 1], len(self.holds.split())
        square = (min(CELL * rows, 62),) * 2
        own = dict(strip=(CELL * len(self.contents()), 17), matrix=square, box=upright, out=upright)
        width, height = {**SIZES, **own}[self.kind]
        return width, height


strip, stack, op, curve, box, encoder, matrix, bar, across, brace, dots, out = (
    partial(Node, kind) for kind in "strip stack op curve box encoder matrix bar across brace dots out".split()
)


@lru_cache
def _extent(text, size):
    """Width and height of a text, in pixels."""
    fig = Figure(dpi=PX)
    found = fig.text(0, 0, text, size=size).get_window_extent(FigureCanvasAgg(fig).get_renderer())
    return (found.width, found.height) if text else (0.0, 0.0)


def _spoken(text):
    """A formula as it is read out."""
    for old, new in ((r"\\langle\\,,\\rangle|\\mathrm|\$", ""), (r"\\[,;! ]", " "), (r"\\Sigma", "sum"),
                     (r"\^\*", " star"),
                     (r"\\langle(.*?),(.*?)\\rangle", r" inner product of \1 and \2 "), (r"^[-]$", "minus"),
                     (r"\\(tilde|hat|bar)\s*\{?(\\?\w)\}?", r"\2 \1"), (r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2"),
                     (r"^\+$", "plus"), (r"[_{}\\^]", " "), (r" +(?=[ ,)]|$)", "")):  # fmt: skip
        text = re.sub(old, new, text)
    return text.strip()


def _wires(text):
    """Source, target, label, and dashed or not, of the wires in `a b >> c > d | label`."""
    text, _, label = text.partition("|")
    parts = re.split(r"(~?>>?)", text)
    for left, arrow, right in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        left, right = left.split(), right.split()
        paired = not arrow.endswith(">>") and len(left) == len(right)
        for a, b in zip(left, right, strict=True) if paired else ((a, b) for a in left for b in right):
            yield a, b, label.strip(), arrow.startswith("~")


class Schematic:
    """A model: stages of named things from the input to the output, and wires between them.

    Parameters
    ----------
    title
        What it is, in words; the alt text begins with it.
    stages
        Pairs of a stage's name, which stands above it, and its things by name, from the input to the output.
    wires
        As in ``"x y > f g"``; see this module.
    says
        What else the picture shows, in a sentence; the alt text ends with it.

    Raises
    ------
    ValueError
        If a wire names a thing that there is not, or two things have one name.

    Examples
    --------
    >>> from flbook.plots.schematic import Schematic, out, strip
    >>> stages = [("input", {"x": strip("$x$", "a patch", "signal")}), ("output", {"f": out("$f(x)$")})]
    >>> Schematic("A linear network", stages, ["x > f"]).alt
    'Schematic. A linear network. Input: a patch, x. Output: f(x).'
    """

    def __init__(self, title: str, stages: list, wires: list[str], says: str = ""):
        self.title, self.says, self.stages = title, says, [(name, list(nodes)) for name, nodes in stages]
        self.stage = {key: i for i, (_, keys) in enumerate(self.stages) for key in keys}
        middle = {key: (len(nodes) - 1) / 2 - i for _, nodes in stages for i, key in enumerate(nodes)}
        nodes = {key: node for _, nodes in stages for key, node in nodes.items()}
        self.nodes = {k: replace(n, lane=-middle[k]) if n.lane is None else n for k, n in nodes.items()}
        self.wires = [wire for text in wires for wire in _wires(text)]
        if twice := [key for key in self.nodes if sum(key in keys for _, keys in self.stages) > 1]:
            raise ValueError(f"two things are called {twice[0]!r}; every thing of a schematic needs a name of its own")
        if unknown := {key for wire in self.wires for key in wire[:2]} - set(self.nodes):
            raise ValueError(f"wires name {sorted(unknown)}; the things are {', '.join(self.nodes)}")

    @property
    def alt(self) -> str:
        """The picture in words, made of the same words.

        Returns
        -------
        str
            One sentence for each stage.
        """
        says = [f"Schematic. {self.title}"]
        for name, keys in self.stages:
            nodes = (self.nodes[k] for k in keys)
            things = filter(None, (n.alt or _spoken(", ".join(filter(None, (n.words, n.label)))) for n in nodes))
            said = "; ".join(dict.fromkeys(things))
            says += [f"{name[0].upper()}{_spoken(name[1:])}" + f": {said}" * bool(said)] if name else []
        return ". ".join([*says, self.says]).strip()

    @styled
    def draw(self, dark: bool = False, phone: bool = False) -> Figure:
        """The picture: 720 pixels wide, left to right; on a phone 360, top to bottom.

        Parameters
        ----------
        dark
            With lighter colours, for a dark ground.
        phone
            With its axes exchanged.

        Returns
        -------
        Figure
            Its ground is transparent.

        Raises
        ------
        ValueError
            If the things do not fit in.
        """
        self.c: dict[str, str] = {**(DARK if dark else LIGHT)}
        self.phone = phone
        size = self._place((WIDTH, PHONE)[phone])
        fig = Figure(figsize=(size[0] / PX, size[1] / PX), dpi=PX, facecolor="none", layout=cast(Any, "none"))
        self.ax = fig.add_axes((0, 0, 1, 1), xlim=(0, size[0]), ylim=(size[1], 0))
        self.ax.axis("off")
        for wire in self.wires:
            self._wire(*wire)
        for key, node in self.nodes.items():
            self._thing(node, *self.at[key], *self.size[key])
            (x, y), turned = self._xy(*self.at[key]), 90 * (node.kind == "across" and not phone)
            for dx, dy, text, points, ha, colour in self.texts[key]:
                self._say(x + dx, y + dy, text, points, "muted" if node.faint else colour, ha, turned)
        for name, keys in () if phone else self.stages:
            self._say(self.at[keys[0]][0], 13, name, SMALL, "muted")
        return fig

    @styled
    def pictures(self) -> dict[str, bytes]:
        """The four pictures as PNGs on a transparent ground.

        Returns
        -------
        dict[str, bytes]
            ``light``, ``dark``, ``phone`` and ``phone_dark``.
        """
        looks = dict(light=(False, False), dark=(True, False), phone=(False, True), phone_dark=(True, True))
        return {name: _transparent(self.draw(*look)) for name, look in looks.items()}

    def _xy(self, m, c):
        return (c, m) if self.phone else (m, c)

    def _say(self, x, y, text, points=SMALL, colour="text", ha="center", rotation=0):
        va = "center_baseline" if points > BIG else "center"
        self.ax.text(x, y, text, size=points, ha=ha, va=va, color=self.c[colour], rotation=rotation)

    def _texts(self, key, node, w, h, middle):
        """The texts of a thing, as offsets from its middle: inside, around, or on one side of it."""
        crowd = len(self.stages[self.stage[key]][1]) > 2
        source, outer = key not in self.ends and node.kind != "brace", "left" if node.lane < middle - 0.2 else "right"
        side = "above" if source else outer if key in self.starts else "below"
        side = side if self.phone else "left" if crowd and source else "around"
        label = re.sub("=.*", "$", node.label) if self.phone and crowd else node.label
        rows = [(label, BIG, "text")] * (node.kind not in INSIDE) + [(node.words, SMALL, "muted")]
        rows = [(*row, _extent(*row[:2])[1] + 5) for row in rows if row[0]]
        if node.kind in INSIDE and node.kind != "dots":
            yield 0, 0, node.label, BIG + 2 * (node.kind == "op"), "center", "text"
        high = sum(row[3] for row in rows)
        y = dict(above=-h / 2 - high, below=h / 2 + 5).get(side, -high / 2 + 2.5)
        x, ha = dict(left=(-w / 2 - 9, "right"), right=(w / 2 + 9, "left")).get(side, (0, "center"))
        for text, points, colour, tall in rows:
            around = (-1 if colour == "text" else 1) * (h / 2 + tall / 2 + 3)
            yield x, around if side == "around" else y + (tall - 5) / 2, text, points, ha, colour
            y += tall

    def _frame(self, key, node, middle):
        """Room a thing needs with its texts: before and after it, and on its two sides across."""
        w, h = self._xy(*self.size[key])
        self.texts[key] = list(self._texts(key, node, w, h, middle))
        frame = [-w / 2, w / 2, -h / 2, h / 2]
        for dx, dy, text, points, ha, _ in self.texts[key] if node.kind != "across" else ():
            tw, th = _extent(text, points)
            left = dx - dict(left=0, center=tw / 2, right=tw)[ha]
            frame[::2] = min(frame[0], left), min(frame[2], dy - th / 2)
            frame[1::2] = max(frame[1], left + tw), max(frame[3], dy + th / 2)
        return frame[2:] + frame[:2] if self.phone else frame

    def _pitch(self, need, lanes):
        """Pixels from lane to lane: so many that no two neighbours of a stage touch."""
        pitch = 84 if self.phone and len(set(lanes)) < 4 else 36
        for _, keys in self.stages:
            order = sorted(keys, key=lambda k: self.nodes[k].lane)
            for a, b in zip(order, order[1:], strict=False):
                room = need[a][3] - need[b][2] + (10 if self.phone else 15)
                pitch = max(pitch, room / (self.nodes[b].lane - self.nodes[a].lane))
        return pitch

    def _gaps(self, width, halves, across):
        """Pixels between stages: equal ones that fill the width, and on a phone what the wires need."""
        gaps = [8 * (self.nodes[keys[0]].kind == "brace") for _, keys in self.stages[1:]]
        even = (width - sum(map(sum, halves)) - sum(gaps) - 16) / max(gaps.count(0), 1)
        if (across > width) if self.phone else even < 14:
            raise ValueError(
                f"{self.title!r} does not fit{' on a phone' * self.phone}: {even:.0f} pixels between stages (14 are "
                f"needed), {across:.0f} across them; use fewer stages, fewer things in a stage, or shorter formulas"
            )
        ends = [(self.nodes[w[0]], self.nodes[w[1]], self.stage[w[1]] - 1) for w in self.wires]
        turns = {i for a, b, i in ends if a.lane != b.lane and "across" not in (a.kind, b.kind)}
        return [gap or ((54 if i in turns else 30) if self.phone else even) for i, gap in enumerate(gaps)]

    def _place(self, width):
        """Where everything stands; the size of the picture."""
        phone, lanes = self.phone, [n.lane for n in self.nodes.values()]
        self.starts, self.ends = ({wire[i] for wire in self.wires} for i in (0, 1))
        self.texts, self.size = {}, {key: node.room(phone) for key, node in self.nodes.items()}
        need = {key: self._frame(key, node, (min(lanes) + max(lanes)) / 2) for key, node in self.nodes.items()}
        pitch = self._pitch(need, lanes)
        low = min(n.lane * pitch + need[k][2] for k, n in self.nodes.items())
        high = max(n.lane * pitch + need[k][3] for k, n in self.nodes.items())
        halves = [(max(-need[k][0] for k in keys), max(need[k][1] for k in keys)) for _, keys in self.stages]
        titles = [0 if phone else _extent(name, SMALL)[0] / 2 for name, _ in self.stages]
        halves = [(max(a, t), max(b, t)) for (a, b), t in zip(halves, titles, strict=True)]
        gaps = self._gaps(width, halves, high - low)
        zero, at, self.at, self.stops = ((width - high - low) / 2 if phone else 36 - low), 8, {}, []
        for i, ((before, after), gap) in enumerate(zip(halves, [*gaps, 8], strict=True)):
            self._stand(i, at + before, zero, pitch)
            at += before + after + gap
            self.stops.append(at - gap)
        return (width, at) if phone else (width, zero + high + 8)

    def _stand(self, stage, at, zero, pitch):
        """Put the things of a stage into their lanes; one over a whole stage is as long as the stage before it."""
        keys = self.stages[stage][1]
        self.at |= {key: (at, zero + self.nodes[key].lane * pitch) for key in keys}
        if self.nodes[one := keys[0]].kind in ("across", "brace"):
            last = [(self.at[k][1], self.size[k][1] / 2) for k in self.stages[stage - 1][1]]
            lo, hi = min(p - s for p, s in last), max(p + s for p, s in last)
            self.size[one], self.at[one] = (self.size[one][0], hi - lo + 8), (at, (lo + hi) / 2)

    def _wire(self, source, target, label, dashed):
        a, b, (m0, c0), (m1, c1) = self.nodes[source], self.nodes[target], self.at[source], self.at[target]
        c0, c1 = c1 if a.kind == "across" else c0, c0 if b.kind == "across" else c1
        m0, m1 = m0 + self.size[source][0] / 2 + 4, m1 - self.size[target][0] / 2 - 3
        far = self.stage[target] - self.stage[source] > 1  # such a wire stays in its lane up to the last gap
        bend = max(m0, self.stops[self.stage[target] - 1]) if far else m0
        path = [(m0, c0), (bend, c0), ((bend + m1) / 2, c0), ((bend + m1) / 2, c1), (m1, c1)]
        given = a.kind in ("bar", "box", "op", "matrix") or source not in self.ends  # weights pass on a number: grey
        held = {one.lstrip("-") for one in a.contents()} if given and b.kind != "across" else set()
        colour = self.c.get(held.pop().replace("grey", "line") if len(held) == 1 else "line")
        look: dict[str, Any] = dict(lw=0.8 + 2.4 * a.value if a.kind == "bar" else 1.5)
        look |= dict(ls=(0, (3, 2)) if dashed else "-")
        look |= dict(lw=1.1, alpha=0.5) if a.faint or b.faint else {}
        look |= dict(arrowstyle="-|>", mutation_scale=9, capstyle="butt", color=colour or self.c["line"])
        self.ax.add_patch(FancyArrowPatch(path=Path([self._xy(*p) for p in path], [1, 2, 4, 4, 4]), **look))
        (w, h), level = _extent(label, SMALL), far or c0 == c1
        x, y = self._xy(
            (m0 + (bend if far else m1)) / 2, c0 if level else c0 + (c1 - c0) * (0.62 if self.phone else 0.5)
        )
        away = (-1 if self.phone and c0 < 180 else 1) * (w / 2 + 8)  # beside a steep line, above a level one
        self._say(*((x + away, y) if level == self.phone else (x, y - h / 2 - 5)), label)

    def _cell(self, m, c, dm, dc, kind, tone=1.0):
        hollow, kinds = kind.startswith("-"), kind.lstrip("-").split("+")
        for i, one in enumerate(kinds):  # a sum: both in one cell
            corner = self._xy(m + 0.75 + 0.5 * hollow, c + i * dc / len(kinds) + 0.5 * hollow)
            size, fill = self._xy(dm - 1.5 - hollow, dc / len(kinds) - hollow), "none" if hollow else self.c[one]
            self.ax.add_patch(Rectangle(corner, *size, fc=fill, ec=self.c[one], lw=1.1 * hollow, alpha=tone))

    def _cells(self, kinds, m, c, main, cross, seed=3):
        tones, step = np.random.default_rng(seed).permutation(np.linspace(0.35, 1, len(kinds))), main / len(kinds)
        for i, kind in enumerate(kinds):  # noise and weights are uneven, a signal is even: never colour alone
            even = kind.lstrip("-") in ("signal", "context", "label")
            self._cell(m - main / 2 + i * step, c - cross / 2, step, cross, kind, 1 if even else tones[i])

    def _thing(self, node, m, c, main, cross):
        (x, y), (left, top), size = self._xy(m, c), self._xy(m - main / 2, c - cross / 2), self._xy(main, cross)
        line: dict[str, Any] = dict(fc="none", ec=self.c["line"], lw=1.4)
        t = np.linspace(-1, 1, 201)
        if node.kind == "strip":
            self._cells(node.contents(), m, c, main, cross)
        elif node.kind == "stack":
            for k in (-1, 0, 1):
                self._cells([node.holds] * 5, m, c + 16 * k, main, 12, 5 + k)
        elif node.kind == "bar":
            self._cell(m - main / 2, c - 0.5, main, 1, "grey", 0.6)
            self._cell(m - main / 2, c - 6, max(node.value * main, 4), 12, node.holds)
        elif node.kind == "matrix":
            rows, tones = node.holds.split(), np.random.default_rng(1).uniform(0.15, 1, len(node.contents()))
            for k, kind in enumerate(node.contents()):
                (i, j), step = divmod(k, len(rows)), main / len(rows)
                tone = 0.4 if rows[i][j] == "." else 0.2 if rows[i][j].isupper() else tones[k] if kind == "noise" else 1
                m, c = self._xy(left + j * step, top + i * step)  # upright on a phone, too
                self._cell(m, c + 0.75, step, step - 1.5, kind, tone)
        elif node.kind == "op":
            self.ax.add_patch(Circle((x, y), main / 2, **line | {"ec": self.c[node.holds.replace("grey", "line")]}))
        elif node.kind == "dots":
            self.ax.scatter(*np.transpose([self._xy(m, c + k) for k in (-6, 0, 6)]), s=4, color=self.c["line"])
        elif node.kind == "brace":
            bend = np.tanh(14 * (1 - abs(t))) / 2 + np.exp(-abs(t) * cross / 9) / 2 - 0.5
            self.ax.plot(*self._xy(m + main * bend, c + t * cross / 2), color=self.c["line"], lw=1.4)
        elif node.kind == "encoder":
            corners = [(m + a * main / 2, c + b * cross / 2) for a, b in ((-1, -1), (1, -0.6), (1, 0.6), (-1, 1))]
            self.ax.add_patch(Polygon([self._xy(*p) for p in corners], joinstyle="round", **line))
        else:
            line |= {"ec": self.c["text"], "lw": 1.9} if node.kind == "out" else {}
            line |= {"alpha": 0.5, "ls": (0, (3, 2))} if node.faint else {}
            self.ax.add_patch(FancyBboxPatch((left, top), *size, boxstyle="round,pad=0,rounding_size=7", **line))
            if node.kind == "curve":
                self.ax.plot(x + 12 * t, y - 12 * CURVES[node.holds](t), color=self.c["text"], lw=2)


def two_layer_cnn(signal: Node | None = None, activation: str = "relu", called: str = "ReLU") -> Schematic:
    r"""The book's two-layer convolutional network on a patch of signal and a patch of noise.

    Parameters
    ----------
    signal
        The first patch; without it the signal of the label, :math:`y\mu`.
    activation, called
        What a `curve` holds, and its name.

    Returns
    -------
    Schematic
        Two patches, filters for either label, activation, mean over the filters of a label, and their difference.
    """
    labels = {"+": "+1", "-": "-1"}
    stages = [
        ("two patches", {
            "mu": signal or strip(r"$y\mu$", "signal", "signal", alt="the signal, y times mu"),
            "xi": strip(r"$\xi$", "noise", "noise", alt="the noise, xi"),
        }),
        ("filters", {f"w{sign}": stack(rf"$w_{{{j},r}}$", rf"for label ${j}$", alt=f"those for the label {j}")
                     for sign, j in labels.items()}),
        ("activation", {f"s{sign}": curve(r"$\sigma$", holds=activation, alt=called) for sign in labels}),
        ("mean over $r$", {f"F{sign}": op(r"$\Sigma$", rf"$F_{{{j}}}$", alt=f"of the filters for {j}")
                           for sign, j in labels.items()}),
        ("difference", {"minus": op("$-$", alt="the first mean minus the second")}),
        ("output", {"f": out(r"$f(W,x)$", alt="f(W, x)")}),
    ]  # fmt: skip
    wires = ["mu xi >> w+ w-", "w+ w- > s+ s- > F+ F-", "F+ F- > minus > f"]
    return Schematic("A two-layer convolutional network", stages, wires, "Every filter meets both patches.")


def _transparent(fig: Figure) -> bytes:
    """The figure as a PNG with a palette, at two dots a pixel; its ground stays transparent."""
    fig.dpi = 2 * PX
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba()), "RGBA")
    saved = io.BytesIO()
    picture.quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(saved, "png", optimize=True)
    return saved.getvalue()
