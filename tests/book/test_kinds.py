"""The kinds of code cells: told from what a cell does, marked the same however often, and counted by statement."""

import copy

import nbformat
import pytest
import scratch

from flbook.book import kinds

INSTALL = "try:\n    import flbook\nexcept ImportError:  # on Colab\n    %pip install -q flbook\n"
SLIDER = "@ipywidgets.interact(n=(1, 3))\ndef play(n=1):\n    claims.check(n)\n    plots.show(fit(n))"


@pytest.mark.parametrize(
    "source, found",
    [
        (INSTALL, "set-up"),
        (f"{INSTALL}import ipywidgets\ndevice = 'cpu'\nplots.style()", "set-up"),
        ("from flbook import claims as c\nclaims = c.open('relu_heatmap')", "set-up"),
        ("import torch\nx = torch.ones(2)", "teach"),
        ("device = 'cpu'\nn = 20", "teach"),
        ("problem = Training(cnn, x, y)\nprint(fit(problem))", "teach"),
        ("# to be written", "teach"),
        ("", "teach"),
        ("files = !ls", "teach"),  # no Python: nothing is hidden by mistake
        ("total = (a\n    % b)\nfig = plots.collapse(total)", "figure"),  # a line of Python that begins like a magic
        ("%matplotlib inline\nfig.axes[0].set_xlim(0, 1)", "figure"),
        ("def draw(n):\n    fig, ax = plt.subplots()\n    return fig", "figure"),
        ("ax.set(xlabel='x')", "figure"),
        ("colour = plots.SIGNAL", "teach"),
        ("axis_of = figures(result)", "teach"),
        ("claims.check('slope', slope)", "check"),
        ("claims.identity('sum', a, b)", "check"),
        ("claims.check('a', 1)\nplots.show(fig, alt='x')", "check"),
        ("for a in b:\n    claims.identity(a, a, a)", "check"),
        ("network.check(x)", "teach"),
        ("from flbook import Claims\nclaims = Claims('x')", "set-up"),
        ("import ipywidgets", "set-up"),
        (SLIDER, "live"),
        ("from ipywidgets import interact as move\nmove(f, x=(0, 1))", "live"),
        ("momentum.experiment.explore()", "live"),
        ("momentum.experiment.explore(\n    momentum_pictures.race, only=('snr', 'n')\n)", "live"),
        ("explore(experiment)\nx = experiment.explore", "teach"),
    ],
)
def test_the_kind_is_what_a_cell_does(source, found):
    assert kinds.kind(source) == found


def code(source, **metadata):
    return {"cell_type": "code", "source": source, "metadata": metadata}


@pytest.mark.parametrize("source", ["fig = plots.dots(x)", INSTALL, SLIDER, "x = 1", "claims.check('a', x)"])
@pytest.mark.parametrize("solution", [False, True])
def test_marking_twice_is_marking_once(source, solution):
    cell = code(source, tags=["raises-exception"], mystnb={"image": {"alt": "a"}})
    kinds.mark(cell, solution)
    once = copy.deepcopy(cell)
    kinds.mark(cell, solution)
    assert cell == once
    assert cell["metadata"]["tags"][0] == "raises-exception" and cell["metadata"]["mystnb"]["image"] == {"alt": "a"}
    assert kinds.untitled(cell["source"]) == source


def test_a_figure_is_folded_everywhere_and_a_cell_that_teaches_nowhere():
    cell = code("fig = plots.dots(x)", jupyter={"outputs_hidden": True})
    kinds.mark(cell)
    words = "Code of this figure"
    assert cell["source"] == f"# @title {words}\nfig = plots.dots(x)"
    assert cell["metadata"] == {
        "tags": ["kind-figure", "hide-input"],
        "mystnb": {"code_prompt_show": words, "code_prompt_hide": words},
        "jupyter": {"outputs_hidden": True, "source_hidden": True},
        "cellView": "form",
    }
    cell["source"] = "# @title Code of this figure\nx = measure(setting)"  # its author changed it
    kinds.mark(cell)
    assert cell == code("x = measure(setting)", tags=["kind-teach"], jupyter={"outputs_hidden": True})


def test_a_live_cell_is_not_on_the_page():
    cell = code(SLIDER, tags=["live"])
    kinds.mark(cell)
    assert cell == code(SLIDER, tags=["kind-live", "remove-cell"])


def test_a_cell_magic_stays_first():
    cell = code("%%time\nfig = plots.dots(x)")
    kinds.mark(cell)
    assert cell["source"].startswith("%%time") and "hide-input" in cell["metadata"]["tags"]


def test_solutions_are_told_from_their_fences():
    def words(text):
        return {"cell_type": "markdown", "source": text, "metadata": {}}

    fences = [":::{solution-start} ex-1\n:::", ":::{solution-end}\n:::\n\n:::{solution-start} ex-2\n:::"]
    fences += [":::{solution-end}\n:::"]
    cells = [code("x = 0", tags=["solution"]), words(fences[0]), code("x = 1"), words("So."), code("plots.show(x)")]
    cells += [words(fences[1]), code("x = 2", tags=["solution"]), words(fences[2]), code("x = 3")]
    kinds.mark_all(cells)
    tags = [cell["metadata"]["tags"] for cell in cells if cell["cell_type"] == "code"]
    teach = ["kind-teach", "solution"]
    assert tags == [["kind-teach"], teach, ["kind-figure", "solution"], teach, ["kind-teach"]]
    inside = cells[2]
    assert inside["source"] == "# @title Code of this solution\nx = 1" and "mystnb" not in inside["metadata"]
    assert inside["metadata"]["jupyter"] == {"source_hidden": True} and inside["metadata"]["cellView"] == "form"
    assert kinds.visible(cells) == ["x = 0", "x = 3"]


def test_a_marked_notebook_is_valid():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (INSTALL, SLIDER, "x = 1")])
    kinds.mark_all(notebook.cells)
    nbformat.validate(notebook)
    assert nbformat.reads(nbformat.writes(notebook), as_version=4) == notebook


@pytest.mark.parametrize(
    "source, total, content",
    [
        ("import torch\n\n# a comment\nx = torch.ones(\n    2,\n)", 4, 3),
        ("def model(x):\n    '''Twice.'''\n    return 2 * x", 2, 2),
        ("for x in xs:\n    print(x)\n    print(-x)", 3, 0),
        ("if a:\n    x = 1\nelse:\n    print(a)", 4, 3),
        ("try:\n    x = 1\nexcept ValueError:\n    x = 2", 4, 4),
        ("def alt(n):\n    few = n < 3\n    return f'{n} dots'", 3, 0),
        ("r.attrs = {'units': '1'}\nalt = 'A line.'\nplots.show(fig, alt=alt)\nr = r + 1", 4, 1),
        ("torch.manual_seed(0)\nclaims.check('a', x)\nprint(\n    x\n)", 5, 1),
        ("match x:\n    case 1:\n        y = 2\n    case _:\n        print(x)", 5, 4),
    ],
)
def test_lines_are_counted_by_what_they_are(source, total, content):
    assert kinds.content(source) == (total, content)


def test_the_share_is_over_all_pages():
    pages = [[code("x = 1\ny = 2\nprint(x)")], [code("print(1)"), code("plots.show(fig)"), code("z = 3")]]
    assert kinds.share(pages) == 3 / 5


def test_a_cell_from_scratch_uses_nothing_of_the_library():
    cells = [
        {"cell_type": "code", "source": "from flbook import fit as train, plots\nimport torch"},
        {"cell_type": "markdown", "source": "from flbook import nothing"},
        {"cell_type": "code", "source": "# @title Set-up\nfrom flbook.models.activations import relu"},
    ]
    names = scratch.imported(cells)
    assert names == {"flbook", "train", "plots", "relu"}
    assert scratch.from_scratch("w = torch.zeros(2)\nfor _ in range(3):\n    w = w - 0.1 * w", names)
    assert not scratch.from_scratch("f = lambda w, x: relu(x @ w)", names)
    assert not scratch.from_scratch("files = !ls", names), "what cannot be read"
