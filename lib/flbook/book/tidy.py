"""What of an executed notebook is stored: the same bytes whenever the lecture is the same.

Dropped are timings, widgets (they need a kernel), standard error (progress bars) and what differs by chance: memory
addresses and random identifiers. Alt texts go where the page's builder looks for them, and every code cell is marked by
its kind.
"""

import re
from itertools import count
from uuid import UUID

from flbook.book import kinds

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
WIDGET = "application/vnd.jupyter.widget-view+json"
_TRACES = ("execution", "ExecuteTime", "executionInfo", "outputId", "collapsed", "scrolled")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


def notebook(nb, environment):
    """Bring an executed notebook, in place, into the form that is stored; `environment` is its versions and device."""
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata.pop("widgets", None)
    nb.metadata.update(KERNEL, flbook=environment)
    for number, cell in enumerate(nb.cells, start=1):
        cell.setdefault("id", f"cell-{number}")
        for trace in _TRACES:
            cell.metadata.pop(trace, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_output, cell.outputs) if output is not None]
            _alt(cell, number)
    kinds.mark_all(nb.cells)


def warnings(nb):
    """The warnings that a lecture's cells wrote to standard error, which the stored notebook will not show."""
    streams = (output for cell in nb.cells for output in cell.get("outputs", []) if output.get("name") == "stderr")
    return [line.strip() for output in streams for line in output.text.splitlines() if "Warning" in line]


def _output(output):
    """One output as it is stored, or None."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    if output.output_type == "error":  # only a cell that is meant to raise gets here; its frames hold local paths
        output.traceback = [f"{output.ename}: {output.evalue}"]
        return output
    data = output.data
    if data.pop(WIDGET, None) is not None and set(data) <= {"text/plain"}:
        return None
    numbers = {}
    fresh = count(1)
    for kind in {"text/plain", "text/html"} & set(data):
        text = _UUID.sub(lambda m: numbers.setdefault(m[0], str(UUID(int=next(fresh), version=4))), data[kind])
        data[kind] = _ADDRESS.sub("at 0x0", text)
    return output


def _alt(cell, number):
    """Copy the alt text of the cell's picture to the cell, where MyST-NB reads it; it knows one a cell."""
    pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
    alts = {_alt_text(output) for output in pictures if "text/html" not in output.data} - {None}
    if len(alts) > 1:
        raise ValueError(f"cell {number} shows {len(alts)} pictures with alt texts; show one picture a cell.")
    for alt in alts:
        cell.metadata.setdefault("mystnb", {}).setdefault("image", {})["alt"] = alt


def _alt_text(output):
    for key in ("image/png", "flbook"):
        if alt := output.metadata.get(key, {}).get("alt"):
            return " ".join(alt.split())
    return None
