"""The pages that `_toc.yml` names, in its order, and which of them are lectures: the notebooks in a chapter's folder.

A notebook beside the chapters' folders is a page that computes something. It has no claims. The table
of contents is read by its ``file:`` and ``caption:`` lines, so that no YAML parser is needed where the ledger is made.
"""

import json
import re
from difflib import get_close_matches
from pathlib import Path

from flbook.claims.papers import KEY

CLAIMS, PAPERS = "lib/flbook/lectures", "lib/flbook/claims/papers.json"  # below the folder that holds _toc.yml
ASSIGNMENTS = "assignments/"  # the folder of the course's assignments, as names of pages begin with it


def root(start: str | Path = "."):
    """The folder that holds `_toc.yml`: `start` or the nearest one above it."""
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if (folder / "_toc.yml").is_file():
            return folder
    raise ValueError(f"no _toc.yml in {start.name or start} or above it; call this inside a checkout of the book.")


def parts(folder):
    """The parts of the book, in its order: captions and their pages, as ``"signal_noise/decomposition"`` and files.

    The page that opens a chapter, ``"signal_noise/index"``, begins a part of its own title. The front page stands in a
    part without a caption; a page that is not written yet is left out.
    """
    contents = (folder / "_toc.yml").read_text(encoding="utf-8")
    found = [("", {})]
    for key, text in re.findall(
        r"^\s*(?:-\s+)?(file|root|caption):\s*['\"]?([^'\"#\n]+?)['\"]?\s*(?:#.*)?$", contents, flags=re.MULTILINE
    ):
        if key == "caption":
            found.append((text, {}))
            continue
        page = folder / text.removesuffix(".ipynb").removesuffix(".md")
        file = next((file for file in map(page.with_suffix, (".ipynb", ".md")) if file.is_file()), None)
        if file and folder / "book" in file.parents:
            name = page.relative_to(folder / "book").as_posix()
            if name.endswith("/index"):
                found.append((file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# "), {}))
            found[-1][1][name] = file
    return found


def pages(folder):
    """Names of all pages and their files, in the order of the book."""
    return {name: file for _, below in parts(folder) for name, file in below.items()}


def notebooks(folder):
    """Names of the pages that can be executed, and their notebooks: the lectures, and what stands beside them.

    Assignments are none of them: their answers are still missing.
    """
    found = {name: file for name, file in pages(folder).items() if file.suffix == ".ipynb"}
    return {name: file for name, file in found.items() if not name.startswith(ASSIGNMENTS)}


def listed(folder):
    """Names of the lectures, as ``"signal_noise/decomposition"``, and their notebooks, in the order of the book."""
    return {name: file for name, file in notebooks(folder).items() if "/" in name}


def bibliography(book):
    """The keys of the bibliography in the folder of the pages."""
    file = book / "references.bib"
    return set(re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,", file.read_text(encoding="utf-8"))) if file.is_file() else set()


def papers(book):
    """How each entry of the bibliography is called, by key: ``"Kou, Chen, Chen and Gu 2023"``."""
    return {key: _called(entry) for key, entry in _entries(book).items()}


def cited(folder):
    """How a claim calls the papers that the claims of the book cite, by key: ``"Kou et al. 2023"``.

    It stands in the library (`flbook.claims.papers`), which has no bibliography; `make run` writes it there.
    """
    files = sorted((folder / CLAIMS).glob("*/*/claims.toml"))
    keys = {key for file in files for key in KEY.findall(file.read_text(encoding="utf-8"))}
    found = _entries(folder / "book")
    return {key: _called(found[key], most=2) for key in sorted(keys & found.keys())}


def write_cited(folder):
    """Write the names of the cited papers into the library below a folder, if they are not there yet."""
    text = json.dumps(cited(folder), indent=0, ensure_ascii=False) + "\n"
    file = folder / PAPERS
    if file.is_file() and file.read_text(encoding="utf-8") != text:
        from flbook.runs import files  # needs xarray, which is not there where the ledger is made

        files.write(file, text.encode("utf-8"))


def _entries(book):
    file = book / "references.bib"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return dict(re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,(.*?)\n\}", text, flags=re.DOTALL))


def _called(entry, most=4):
    """Family names and year of an entry; of more authors than that the first."""
    authors, year = (
        re.search(rf"\b{name}\s*=\s*\{{(.*?)\}},?\n", entry + "\n", flags=re.DOTALL) for name in ("author", "year")
    )
    assert authors is not None and year is not None
    people = re.split(r"\s+and\s+", authors[1].strip())
    families = [person.partition(",")[0] if "," in person else person.rpartition(" ")[2] for person in people]
    families = [re.sub(r"[{}]", "", family).strip() for family in families]
    named = f"{families[0]} et al." if len(families) > most else " and ".join(", ".join(families).rsplit(", ", 1))
    return f"{named} {year[1]}"


def chosen(folder, names):
    """The notebooks of these names, all of them if there are none; a name may leave out its chapter."""
    known = notebooks(folder)
    picked = {}
    for name in names:
        plain = name.removeprefix("book/").removesuffix(".ipynb")
        found = [page for page in known if plain in (page, page.rpartition("/")[2])]
        if not found:
            shorts = {page.rpartition("/")[2]: page for page in known}
            near = get_close_matches(plain.rpartition("/")[2], shorts, cutoff=0.4) or sorted(shorts)
            said = ", ".join(shorts[short] for short in near) or "none yet"
            raise ValueError(f"there is no lecture {name!r}; near it: {said}.")
        picked |= {page: known[page] for page in found}
    return picked or known
