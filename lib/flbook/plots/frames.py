"""A figure to play with on a static page: a slider over precomputed frames, without a kernel and without a library.

One output carries the self-contained HTML (slider, keyboard, alt text per frame) and, for places that show no HTML, one
frame as a PNG.
"""

import base64
import hashlib
import json
from html import escape

from flbook.plots.picture import drawn, holds_map, small, under

FRAME_LIMIT = 25_000  # bytes of PNG a frame
TOTAL_LIMIT = 400_000  # bytes of PNG a lecture, so certainly a figure
SHOWN = 96  # pixels an inch on the page, so that 9 pt in the figure are 9 pt on the page
QUALITY = {144: (64, 32), 96: (64, 32)}  # pixels an inch, and colours, as saved: the first that fits

# The box follows the theme of the book, of JupyterLab or of the system. Frames are drawn on white: on a dark ground
# their lightness is turned round and their hues stay, except where colours are a scale, which keeps its light ground.
_DARK = (
    ":is(html[data-theme=dark],html[theme=dark],body[data-jp-theme-light=false]) .flf{rules}",
    "@media (prefers-color-scheme:dark)"
    "{{html:not([data-theme]):not([theme]) body:not([data-jp-theme-light]) .flf{rules}}}",
)
_STYLE = (
    ".flf{max-width:46rem;margin:.75em 0;padding:.5em;background:#fff;color:#1a1a1a;color-scheme:light;"
    "border:1px solid #d0d4d9;border-radius:.4em;box-sizing:border-box}"
    ".flf img{display:block;width:100%;height:auto;margin:0;background:#fff}"
    ".flf div{display:flex;flex-wrap:wrap;align-items:center;gap:.2em .8em;padding:.3em .2em 0;font:1em/1.5 sans-serif}"
    ".flf strong{display:inline-block;min-width:4em}"
    ".flf input{flex:1 1 12em;min-width:0;height:2em;margin:0;accent-color:#0072B2}"
) + "".join(
    rule.format(rules=rules)
    for rules in (
        "{background:#1b1e23;color:#e8e8e8;color-scheme:dark;border-color:#444a52}",
        " img:not(.map){filter:invert(1) hue-rotate(180deg);mix-blend-mode:screen}",
    )
    for rule in _DARK
)

# Every id is made from the frames' digest, so that an unchanged figure gives an unchanged notebook. The first frame is
# in the markup already: it is what a page shows whose scripts were removed.
_HTML = """\
<style>{style}</style>
<div id="{id}" class="flf" role="group" aria-label="{label}">
<img class="dark-light{map}" src="data:image/png;base64,{image}" alt="{alt}" width="{width}" height="{height}">
<div>
<span>{label}: <strong>{text}</strong></span>
<input type="range" min="0" max="{last}" step="1" value="{first}" autocomplete="off" aria-label="{label}" \
aria-valuetext="{text}">
</div>
</div>
<script>
for (const figure of document.querySelectorAll('[id="{id}"]')) {{
  const [image, shown, slider] = ["img", "strong", "input"].map(tag => figure.querySelector(tag));
  const frames = {frames};
  frames[{first}].png = image.src.split(",")[1];
  slider.oninput = () => {{
    const frame = frames[slider.value];
    image.src = "data:image/png;base64," + frame.png;
    image.alt = frame.alt;
    shown.textContent = frame.text;
    slider.setAttribute("aria-valuetext", frame.text);
  }};
}}
</script>"""


def frames(draw, values, *, label, alt, caption="", name="", opens=None):
    """Show one figure per value, with a slider that moves between them.

    Parameters
    ----------
    draw
        Function of one value that returns a Matplotlib figure, best of one panel (two stand above each other); called
        once per value. Inches are inches of the page: a figure of four inches is readable on a phone.
    values
        The values, in the order of the slider; at least two.
    label
        What the slider changes, as in ``"noise level"``.
    alt
        Function of one value that returns the alt text of its frame.
    caption, name
        Under the figure, and by which the page refers to it; see `flbook.plots.show`.
    opens
        The value that is shown first; without it, the middle one.

    Raises
    ------
    ValueError
        If ``opens`` is none of the values, if a frame is above 25 kB or all of them are above 400 kB, or if an alt text
        is empty.
    """
    from IPython.display import display

    values = list(values)
    if len(values) < 2:
        raise ValueError(f"frames: values has {len(values)} entries; a slider needs at least two.")
    if opens is not None and opens not in values:
        raise ValueError(f"frames: opens must be one of {values}; got {opens!r}.")
    first = len(values) // 2 if opens is None else values.index(opens)
    alts = [str(alt(value)).strip() for value in values]
    if not all(alts):
        raise ValueError(f"frames: alt({values[alts.index('')]!r}) is empty; it must describe the frame in words.")
    figures = [_closed(draw(value)) for value in values]
    for pngs in _saved(figures):
        if max(map(len, pngs)) <= FRAME_LIMIT and sum(map(len, pngs)) <= TOTAL_LIMIT:
            break
    else:
        largest = max(range(len(pngs)), key=lambda i: len(pngs[i]))
        raise ValueError(
            f"frames: all {len(pngs)} take {sum(map(len, pngs)) / 1e3:.0f} kB of at most {TOTAL_LIMIT // 1000}, the "
            f"largest, at {values[largest]!r}, {len(pngs[largest]) / 1e3:.0f} kB of at most {FRAME_LIMIT // 1000}; "
            "draw one panel, fewer points, fewer frames, or a smaller figure."
        )
    size = [round(inches * SHOWN) for inches in figures[0].get_size_inches()]
    maps = any(holds_map(ax) for ax in figures[0].axes)
    png = base64.b64encode(pngs[first]).decode()
    display(
        {"text/html": _html(pngs, size, values, label, alts, first, maps), "image/png": png, "text/plain": alts[first]},
        raw=True,
        metadata={"image/png": {"alt": alts[first]}, "flbook": {"alt": alts[first], "frames": len(values)}},
    )
    under(caption, name)


def still(figure, alt):
    """One frame as HTML, in the box of the others but with nothing to slide: what a kernel puts anew in its place.

    Parameters
    ----------
    figure
        The Matplotlib figure.
    alt
        What it shows, in words.

    Returns
    -------
    str
        Self-contained HTML.
    """
    image = base64.b64encode(small(drawn(figure, 150))).decode()
    kind = "map" if any(holds_map(ax) for ax in figure.axes) else ""
    width = round(figure.get_figwidth() * SHOWN * 1.1)
    return (f'<style>{_STYLE}</style><div class="flf" style="max-width:{width}px">'
            f'<img class="{kind}" src="data:image/png;base64,{image}" alt="{escape(alt)}"></div>')


def _closed(figure):
    """The figure, no longer known to pyplot, which would show it once more under the cell."""
    import matplotlib.pyplot as plt

    plt.close(figure)
    return figure


def _saved(figures):
    """All frames as PNGs, in one quality after the other."""
    for dpi, palettes in QUALITY.items():
        pictures = [drawn(figure, dpi) for figure in figures]
        yield from ([small(picture, colours) for picture in pictures] for colours in palettes)


def _number(value):
    """A number as a reader says it: 8 000 000 and no 8e+06."""
    whole = 10_000 <= abs(value) < 1e15 and value == int(value)
    return f"{int(value):,}".replace(",", "\u202f") if whole else f"{value:.4g}"


def _html(pngs, size, values, label, alts, first, map=False):
    """The figure with its slider; all of it derives from the arguments, so it is the same at every run."""
    texts = [value if isinstance(value, str) else _number(value) for value in values]
    images = [base64.b64encode(png).decode() for png in pngs]
    identity = "frames-" + hashlib.sha256("".join([label, *texts, *alts, *images]).encode()).hexdigest()[:12]
    rows = [
        dict(text=text, alt=alt, png="" if i == first else image)
        for i, (text, alt, image) in enumerate(zip(texts, alts, images, strict=True))
    ]
    # A label or an alt text must not be able to end the script.
    data = json.dumps(rows).replace("<", "\\u003c")
    return _HTML.format(
        id=identity,
        style=_STYLE,
        map=" map" if map else "",
        image=images[first],
        alt=escape(alts[first]),
        label=escape(label),
        text=escape(texts[first]),
        width=size[0],
        height=size[1],
        last=len(pngs) - 1,
        first=first,
        frames=data,
    )
