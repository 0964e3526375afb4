"""What a lecture says of itself: its topic, its paper, how hard it is, which lectures and tools it builds on.

It stands in the notebook's own metadata, as the object ``"lecture"``, where it is edited with the page:

    "lecture": {"topic": "XOR", "paper": "meng2024benign", "level": 2, "needs": ["benign_overfitting/relu_heatmap"],
     "tools": ["concentration"]}

Read with the standard library alone, because the pages are rendered where nothing else is installed.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from flbook.book import facts, lectures, ledger

LEVELS = {1: "first year", 2: "graduate", 3: "research"}
LONGEST = 40  # characters of a topic, so that it fits a box of the picture of dependencies
MOST = 3  # lectures that one may need
_KEYS = ("topic", "paper", "level", "needs", "tools")


@dataclass(frozen=True)
class Lecture:
    """A lecture, as its notebook describes it.

    Parameters
    ----------
    name
        Chapter and lecture, as ``"benign_overfitting/xor"``.
    title
        The first heading of its page.
    topic
        The field's short name for it.
    paper
        Keys of the bibliography: the papers that it is about.
    level
        1 for a first-year graduate student who read no chapter before, 3 for research.
    needs
        Names of the lectures that one should have read.
    """

    name: str
    title: str
    topic: str
    paper: tuple[str, ...]
    level: int
    needs: tuple[str, ...]

    @property
    def chapter(self):
        """The folder of its chapter."""
        return self.name.partition("/")[0]


def read(path):
    """The lecture of a notebook, checked against the bibliography and the table of contents around it.

    Raises
    ------
    ValueError
        If the metadata are missing, or say what cannot be; one sentence that names the notebook.
    """
    path = Path(path)
    folder = lectures.root(path.parent)
    return _read(path, lectures.bibliography(folder / "book"), lectures.listed(folder))


def collect(folder=None):
    """All lectures below `folder`, which defaults to the checkout around the working directory, in the book's order."""
    folder = lectures.root() if folder is None else Path(folder)
    known, keys = lectures.listed(folder), lectures.bibliography(folder / "book")
    return [_read(path, keys, known) for path in known.values()]


def _read(path, keys, known):
    """A checked lecture; `keys` are those of the bibliography, `known` the lectures of the book."""
    where = f"{path.parent.name}/{path.name}"
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{where} is not a notebook: it holds no JSON.") from None
    said = notebook.get("metadata", {}).get("lecture")
    if not isinstance(said, dict):
        raise ValueError(f'{where}: its metadata have no object "lecture" with {", ".join(_KEYS)}.')
    for key in _KEYS:
        if key not in said:
            raise ValueError(f'{where}: {key} is missing in the metadata\'s object "lecture".')
    for key in said:
        if key not in _KEYS:
            raise ValueError(f'{where}: {key!r} is no key of the metadata\'s object "lecture"; {", ".join(_KEYS)} are.')
    paper = [said["paper"]] if isinstance(said["paper"], str) else said["paper"]
    _check(where, said["topic"], paper, said["level"], said["needs"], keys)
    if not isinstance(said["tools"], list) or not said["tools"] or set(map(str, said["tools"])) - facts.TOOLS.keys():
        raise ValueError(f"{where}: tools is {said['tools']!r}; it must be a list among {', '.join(facts.TOOLS)}.")
    name = path.parent.name + "/" + path.stem
    for need in said["needs"]:
        if need not in known or need == name:
            raise ValueError(f"{where}: it needs {need!r}, which is no other lecture of the book.")
    return Lecture(name, ledger.title(notebook), said["topic"], tuple(paper), said["level"], tuple(said["needs"]))


def _check(where, topic, paper, level, needs, keys):
    """Refuse values that no lecture can have."""
    if not isinstance(topic, str) or not topic.strip():
        raise ValueError(f"{where}: topic is {topic!r}; it must be a few words.")
    if len(topic) > LONGEST:
        raise ValueError(f"{where}: topic has {len(topic)} characters; it may have {LONGEST}.")
    if not isinstance(paper, list) or not paper:
        raise ValueError(f"{where}: paper is {paper!r}; it must be a key of the bibliography or a list of keys.")
    for key in paper:
        if key not in keys:
            raise ValueError(f"{where}: the paper {key!r} is not in the bibliography.")
    if isinstance(level, bool) or level not in LEVELS:
        raise ValueError(f"{where}: level is {level!r}; it must be 1, 2 or 3.")
    if not isinstance(needs, list) or len(needs) > MOST or len(set(map(str, needs))) < len(needs):
        raise ValueError(f"{where}: needs is {needs!r}; it must be a list of at most {MOST} different lectures.")
