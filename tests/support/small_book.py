# ruff: noqa: E501 (markup as the book has it)
"""A built book of four pages, with all that a page may hold, and a MathJax that only knows what it is asked here."""

from base64 import b64encode
from io import BytesIO
from pathlib import Path

from PIL import Image

CONTENTS = """format: jb-book
root: book/index
parts:
  - caption: The lectures
    chapters:
      - file: book/chapter/index
        sections:
          - file: book/chapter/lecture
  - caption: Reference
    chapters:
      - file: book/notation
"""
CONFIG = "title: A Small Book\nauthor: Its authors\nrepository:\n  url: https://example.org/small\n"
# The real one draws glyphs; this one writes the formula's source, an error for \broken, and something wide for \wide.
MATHJAX = r"""
const drawn = tex => tex.includes("\\broken") ? "<mjx-merror>Math input error</mjx-merror>"
  : tex.includes("\\wide") ? '<mjx-math style="display:inline-block;width:3000px">wide</mjx-math>' : `<mjx-math>${tex}</mjx-math>`;
for (const node of document.querySelectorAll(".math")) node.innerHTML = `<mjx-container>${drawn(node.textContent)}</mjx-container>`;
window.MathJax = {startup: {promise: Promise.resolve()}, tex2mmlPromise: async tex => '<math xmlns="http://www.w3.org/1998/Math/MathML">'
  + (tex.includes("\\broken") ? "<merror><mtext>no</mtext></merror>" : `<mi data-mjx-texclass="ORD">${tex}</mi>`) + "</math>"};
"""
PAGE = """<!DOCTYPE html><html><head><script defer="defer" src="{up}_static/mathjax/stub.js"></script></head>
<body><nav>Search this book</nav><article class="bd-article">{body}</article></body></html>"""
LECTURE = r"""<section id="signals">
<h1>Signals of length <span class="math notranslate nohighlight">\(\mu\)</span><a class="headerlink" href="#signals">#</a></h1>
<p>What is <em>learned</em><br>first? See <a href="#fig-live">the figure</a>, <a href="../notation.html#mu">the notation</a>,
<a href="#hint">the hint</a>, <a href="../../genindex.html">the index</a> and <a href="https://example.org/paper">the paper</a>.</p>
<div class="cell tag_kind-figure"><details class="hide above-input"><summary>Code of this figure</summary>hidden code</details>
<div class="cell_output"><figure id="fig-live"><div class="output"><div id="live-1"><img src="data:image/png;base64,{png}"
alt="A still & its words" onload="go()"></div><script>live("<p>never")</script></div><figcaption><p>Drag.</p></figcaption></figure></div></div>
<div class="cell"><style>.flf{{}}</style><div class="flf" role="group"><img src="data:image/png;base64,{png}" alt="A frame in words">
<div><span>angle: <strong>90</strong></span><input type="range"></div></div></div>
<div class="cell"><div class="figure two"><picture><source media="(min-width: 700px)" srcset="../../_images/wide.png">
<img src="../../_images/narrow.png" alt="Two panels"></picture></div></div>
<section id="model"><h2>The model</h2>
<div class="cell tag_kind-teach"><div class="cell_input"><div class="highlight"><pre>{code}</pre></div></div></div>
<div class="math notranslate nohighlight">\[{formula}\]</div>
<div class="cell"><details class="flbook-claim" style="color:red"><summary><span>✓</span> It grows: measured 0.25</summary><div>hidden spread
</div></details></div>
<div class="tip predict answer-2 admonition"><p class="admonition-title">Predict</p><ol><li><p>one</p></li><li><p>two</p></li></ol></div>
<div class="exercise admonition" id="ex"><p class="admonition-title">Exercise 1</p><section id="exercise-content"><p>Halve it.</p></section></div>
<div class="exercise admonition"><p class="admonition-title">Exercise 2</p><section id="exercise-content"><p>Double it.</p></section></div>
<div class="tip dropdown admonition" id="hint"><p class="admonition-title">Hint</p><p>hidden hint</p></div></section>
<section id="checks"><h2>Checks</h2><details class="checks"><summary>What else</summary><p>hidden check</p></details></section>
</section>"""
NOTATION = """<section id="notation"><h1>Notation</h1><p id="mu">The signal, of <a href="chapter/lecture.html">the lecture</a>.</p>
<section id="rows"><h2>Rows</h2><div class="dropdown note admonition"><p class="admonition-title">Three rows</p><p>hidden row</p></div></section>
</section>"""
CODE = "x = " + " + ".join(f"number_{i}" for i in range(30))  # three lines of paper


def build(root: Path, formula: str = r"f(x) = \mu", alt: str = "Two panels") -> Path:
    """Write the book's sources and its built pages below `root`; returns the folder of the built pages."""
    site = root / "_build" / "html"
    (root / "_toc.yml").parent.mkdir(parents=True, exist_ok=True)
    (root / "_toc.yml").write_text(CONTENTS)
    (root / "_config.yml").write_text(CONFIG)
    lecture = LECTURE.format(png=b64encode(picture()).decode(), code=CODE, formula=formula).replace("Two panels", alt)
    bodies = {
        "index": '<section id="a-small-book"><h1>A Small Book</h1><p>Welcome to <a href="#top">it</a>.</p></section>',
        "chapter/index": '<section id="the-chapter"><h1>1. The chapter</h1><p>It opens.</p></section>',
        "chapter/lecture": lecture,
        "notation": NOTATION,
    }
    for name, body in bodies.items():
        page, source = site / "book" / f"{name}.html", root / "book" / f"{name}.md"
        for path in (page, source):
            path.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("# A title\n")
        page.write_text(PAGE.format(up="../" * (name.count("/") + 1), body=body))
    for name in ("wide", "narrow"):
        path = site / "_images" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(picture(len(name)))
    (site / "_static" / "mathjax").mkdir(parents=True, exist_ok=True)
    (site / "_static" / "mathjax" / "stub.js").write_text(MATHJAX)
    (root / "book" / "_static").mkdir(exist_ok=True)
    (root / "book" / "_static" / "phase.png").write_bytes(picture(9))
    return site


def picture(size: int = 3) -> bytes:
    """A small PNG of its own."""
    stored = BytesIO()
    Image.new("RGB", (size * 40, 90), (10 * size, 90, 160)).save(stored, format="png")
    return stored.getvalue()
