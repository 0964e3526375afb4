"""A new lecture, written from a template that builds, runs and is tested as it is; and what is still to write in it.

``python -m flbook.book.template NAME TITLE`` writes the folder, the notebook and the tests of a lecture, and names it
in its chapter, in the table of contents and in the syllabus. The parts hold an example, and beside each stands a
sentence that begins with "To write:" and says what only the author can write there. It goes when that is written.

``python -m flbook.book.template NAME`` lists the sentences that are still there.
"""

import json
import keyword
import re
import sys
from pathlib import Path

import nbformat

from flbook.book import facts, kinds, lectures, tidy
from flbook.runs import files

PARTS = Path(__file__).parent / "lecture"
LIBRARY = "lib/flbook/lectures"
_SENTENCE = re.compile(r"To write:\*{0,2} (.+?[.])(?=\s|$)", flags=re.MULTILINE)
_CODE = re.compile(r"^```\{code-cell\}\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def write(folder, name, title):
    """Write a lecture into a checkout; nothing if it is refused or interrupted.

    Parameters
    ----------
    folder
        The checkout.
    name
        Chapter and lecture, as ``"benign_overfitting/xor"``; the chapter is there, the lecture is not.
    title
        The heading of its page.

    Returns
    -------
    list[Path]
        The files that were written or changed.

    Raises
    ------
    ValueError
        If the name or the title cannot be, in one sentence.
    """
    _check(folder, name, title)
    texts = {**_made(folder, name, title), **_changed(folder, name)}
    before = {path: path.read_text(encoding="utf-8") if path.is_file() else None for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, text.encode("utf-8"))
    except BaseException:
        _restore(before)
        raise
    return list(texts)


def missing(folder, name):
    """What is still to write in a lecture.

    Parameters
    ----------
    folder
        The checkout.
    name
        Chapter and lecture.

    Returns
    -------
    list[tuple[str, str]]
        The file, from the checkout, and the sentence.
    """
    chapter, _, short = name.partition("/")
    own = [*(folder / LIBRARY / name).glob("*.*"), *(folder / "tests/lectures" / name).glob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(own) if path.suffix in (".py", ".toml")}
    page, opening = folder / f"book/{name}.ipynb", folder / f"book/{chapter}/index.md"
    texts[page] = "\n\n".join("".join(cell["source"]) for cell in json.loads(page.read_text(encoding="utf-8"))["cells"])
    texts[opening] = "".join(re.findall(rf"^- \{{doc\}}`{short}`.*\n", opening.read_text("utf-8"), flags=re.MULTILINE))
    return [
        (path.relative_to(folder).as_posix(), sentence)
        for path in [page, *(path for path in texts if path != page)]
        for sentence in _SENTENCE.findall(texts[path])
    ]


def reminder(path):
    """A line that counts what is still to write in the lecture of a notebook, in a list; empty if nothing is.

    Parameters
    ----------
    path
        The notebook, as ``book/chapter/lecture.ipynb`` of a checkout.
    """
    name = f"{path.parent.name}/{path.stem}"
    in_chapter = (path.parent / "index.md").is_file() and path.parents[1].name == "book"
    count = len(missing(path.parents[2], name)) if in_chapter else 0
    return [f"still to write: {count} parts, which `make lecture NAME={name}` lists"] if count else []


def _check(folder, name, title):
    """Refuse a name that cannot be one or is taken, and a title that is no line."""
    chapters = sorted(path.parent.name for path in (folder / LIBRARY).glob("*/__init__.py"))
    chapter, slash, short = name.partition("/")
    if not slash or chapter not in chapters:
        raise ValueError(f"NAME is {name!r}; it must be chapter/name, where the chapter is {', '.join(chapters)}.")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", short) or keyword.iskeyword(short):
        raise ValueError(f"NAME is {name!r}; after the chapter it must be lower-case words joined by underscores.")
    taken = {path.parent.name if path.stem == "__init__" else path.stem: path
             for path in sorted((folder / "lib/flbook").rglob("*.py"))}  # fmt: skip
    taken |= {path.stem: path for path in (folder / "book" / chapter).glob("*.*")} | {"shared": folder / LIBRARY}
    for stem in (short, f"{short}_pictures"):
        if stem in taken:
            where = taken[stem].relative_to(folder).as_posix()
            raise ValueError(f"NAME is {name!r}, but {stem!r} is taken by {where}; every file has a name of its own.")
    if not title.strip() or "\n" in title:
        raise ValueError(f"TITLE is {title!r}; it must be one line, a claim in plain words.")


def _made(folder, name, title):
    """The files of the lecture, and their texts."""
    chapter, _, short = name.partition("/")
    before = _before(folder, chapter)
    paper = _said(before)["paper"]
    words = {"chapter": chapter, "name": short, "label": short.replace("_", "-"), "title": title.strip(),
             "paper": paper if isinstance(paper, str) else paper[0]}  # fmt: skip
    texts = {}
    for part, place in {
        "experiment.py.txt": f"{LIBRARY}/{name}/__init__.py",
        "pictures.py.txt": f"{LIBRARY}/{name}/{short}_pictures.py",
        "claims.toml": f"{LIBRARY}/{name}/claims.toml",
        "test.py.txt": f"tests/lectures/{name}/test_{short}.py",
        "page.md": f"book/{name}.ipynb",
    }.items():
        text = (PARTS / part).read_text(encoding="utf-8")
        for word, said in words.items():
            text = text.replace(f"@{word}@", said)
        texts[folder / place] = text
    page = folder / f"book/{name}.ipynb"
    said = {"topic": _topic(short), "paper": words["paper"], "level": 2, "needs": [], "tools": ["concentration"]}
    texts[page] = _notebook(texts[page], page, said, lectures.papers(folder / "book"))
    return texts


def _notebook(text, page, said, papers):
    """The text of the notebook that a page in Markdown describes: ``+++`` parts two cells, fences hold code."""
    cells = []
    for number, part in enumerate(_CODE.split(text)):
        if number % 2:
            cells.append(nbformat.v4.new_code_cell(part.rstrip("\n")))
        else:
            cells += [nbformat.v4.new_markdown_cell(one.strip()) for one in re.split(r"^\+\+\+$", part, flags=re.M)]
    cells = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number}"
    nb = nbformat.v4.new_notebook(cells=cells, metadata={"lecture": said, **tidy.KERNEL})
    kinds.mark_all(nb.cells)
    facts.write(nb, page, papers)
    return nbformat.writes(nb).rstrip("\n") + "\n"


def _changed(folder, name):
    """The files that name every lecture, and their texts with this one named in them."""
    chapter, _, short = name.partition("/")
    last = _before(folder, chapter).stem
    listed, opening = folder / LIBRARY / chapter / "__init__.py", folder / f"book/{chapter}/index.md"
    contents, syllabus = folder / "_toc.yml", folder / "book/course/syllabus.md"
    bullet = f"- {{doc}}`{short}`: To write: what the lecture finds, in a sentence; its borders go to the table below."
    places = {  # what the new text stands behind, and the text
        contents: (rf"^( +)- file: book/{chapter}/{last}\n +title: [^\n]*\n",
                   rf"\g<0>\g<1>- file: book/{name}\n\g<1>  title: {_topic(short)}\n"),
        opening: (rf"^- \{{doc\}}`{last}`[^\n]*\n(?:  [^\n]*\n)*", rf"\g<0>{bullet}\n"),
        listed: (r"^EXPERIMENTS = \(\n(?:    [^\n]*\n)*", rf'\g<0>    "{short}",\n'),
        syllabus: (rf"\{{doc\}}`[^`]*<\.\./{chapter}/{last}>` \(\d+ minutes\)(?!.*<\.\./{chapter}/{last}>)",
                   rf"\g<0>,\n  {{doc}}`{_topic(short)} <../{name}>` (5 minutes)"),
    }  # fmt: skip
    texts = {}
    for path, (place, new) in places.items():
        flags = re.MULTILINE | (re.DOTALL if path == syllabus else 0)
        texts[path], count = re.subn(place, new, path.read_text(encoding="utf-8"), count=1, flags=flags)
        if not count:
            where = path.relative_to(folder).as_posix()
            raise ValueError(f"{where} does not name {chapter}/{last} as it should; the new one stands behind it.")
    return texts


def _before(folder, chapter):
    """The notebook of the chapter's last lecture, behind which a new one stands."""
    return [path for name, path in lectures.listed(folder).items() if name.startswith(f"{chapter}/")][-1]


def _said(path):
    """What a lecture says of itself."""
    return json.loads(path.read_text(encoding="utf-8"))["metadata"]["lecture"]


def _topic(short):
    """A topic that is made of the name, until the author finds a better one."""
    return short.replace("_", " ").capitalize()[:40]


def _restore(before):
    """Put files back as they were, and take away those that were not there, and their empty folders."""
    for path, text in before.items():
        if text is not None:
            files.write(path, text.encode("utf-8"))
            continue
        path.unlink(missing_ok=True)
        while path.parent.is_dir() and not any(path.parent.iterdir()):
            path = path.parent
            path.rmdir()


def main(argv):
    """Write a lecture, or list what is still to write in one; returns the exit status."""
    name, title = [*argv, "", ""][:2]
    if not name or len(argv) > 2:
        print('usage: make lecture NAME=chapter/name TITLE="..."', file=sys.stderr)
        return 2
    try:
        folder = lectures.root()
        if not title and name in lectures.listed(folder):
            found = missing(folder, name)
            print("\n".join(f"{path}: {sentence}" for path, sentence in found) or "nothing is left to write")
            return 0
        for path in write(folder, name, title):
            print(path.relative_to(folder).as_posix())
    except (ValueError, OSError) as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    print(f"`make run LECTURES={name}` executes it; `make lecture NAME={name}` lists what is still to write.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
