"""Which notebooks are lectures: those that `_toc.yml` names, in its order.

The table of contents is read by its ``file:`` lines, so that no YAML parser is needed where the ledger is made.
"""

import re
from difflib import get_close_matches
from pathlib import Path


def root(start="."):
    """The folder that holds `_toc.yml`: `start` or the nearest one above it."""
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if (folder / "_toc.yml").is_file():
            return folder
    raise ValueError(f"no _toc.yml in {start.name or start} or above it; call this inside a checkout of the book.")


def listed(folder):
    """Names of the lectures, as ``"signal_noise/decomposition"``, and their notebooks, in the order of the book."""
    contents = (folder / "_toc.yml").read_text(encoding="utf-8")
    pages = re.findall(
        r"^\s*(?:-\s+)?(?:file|root):\s*['\"]?([^'\"#\n]+?)['\"]?\s*(?:#.*)?$", contents, flags=re.MULTILINE
    )
    notebooks = [folder / f"{page.removesuffix('.ipynb')}.ipynb" for page in pages]
    return {
        notebook.relative_to(folder / "book").with_suffix("").as_posix(): notebook
        for notebook in notebooks
        if notebook.is_file() and folder / "book" in notebook.parents
    }


def bibliography(book):
    """The keys of the bibliography in the folder of the pages."""
    file = book / "references.bib"
    return set(re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,", file.read_text(encoding="utf-8"))) if file.is_file() else set()


def papers(book):
    """How each entry of the bibliography is called, by key: ``"Kou, Chen, Chen and Gu 2023"``."""
    file = book / "references.bib"
    entries = re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,(.*?)\n\}", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {key: _called(entry) for key, entry in entries} if entries else {}


def _called(entry):
    """Family names and year of an entry; of more than four authors the first."""
    authors, year = (
        re.search(rf"\b{name}\s*=\s*\{{(.*?)\}},?\n", entry + "\n", flags=re.DOTALL) for name in ("author", "year")
    )
    people = re.split(r"\s+and\s+", authors[1].strip())
    families = [person.partition(",")[0] if "," in person else person.rpartition(" ")[2] for person in people]
    families = [re.sub(r"[{}]", "", family).strip() for family in families]
    named = f"{families[0]} et al." if len(families) > 4 else " and ".join(", ".join(families).rsplit(", ", 1))
    return f"{named} {year[1]}"


def chosen(folder, names):
    """The lectures of these names, all of them if there are none; a name may leave out its chapter."""
    lectures = listed(folder)
    picked = {}
    for name in names:
        plain = name.removeprefix("book/").removesuffix(".ipynb")
        found = [lecture for lecture in lectures if plain in (lecture, lecture.rpartition("/")[2])]
        if not found:
            shorts = {lecture.rpartition("/")[2]: lecture for lecture in lectures}
            near = get_close_matches(plain.rpartition("/")[2], shorts, cutoff=0.4) or sorted(shorts)
            known = ", ".join(shorts[short] for short in near) or "none yet"
            raise ValueError(f"there is no lecture {name!r}; near it: {known}.")
        picked |= {lecture: lectures[lecture] for lecture in found}
    return picked or lectures
