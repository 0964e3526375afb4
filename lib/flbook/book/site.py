"""The site that is published: a version of the book beside others: ``python -m flbook.book.site _build SITE VERSION``.

A version is a folder of the site, ``latest/`` or ``0.2.0/``: the built pages, and beside their index the PDF of the
book, those of its chapters and the EPUB. At the top stand `switcher.json`, from which the theme's switch learns which
versions there are, and a page that leads to one. While the pages are rendered, `FLBOOK_VERSION` tells the extension
`published` that they will stand there; `FLBOOK_SITE` says where, if not where GitHub serves the repository's pages.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from flbook.book import lectures, press

LATEST = "latest"
PDF, EPUB, SWITCHER = "feature-learning.pdf", "feature-learning.epub", "switcher.json"
DOOR = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="refresh" content="0; url={version}/"><link rel="canonical" href="{version}/"></head>
<body><p><a href="{version}/">{title}</a></p></body></html>
"""


def address(repository):
    """Where the site is served, without a slash at its end.

    Parameters
    ----------
    repository
        Address of the repository, as ``"https://github.com/owner/name"``.

    Raises
    ------
    ValueError
        If the repository is not on GitHub and `FLBOOK_SITE` is not set.

    Examples
    --------
    >>> address("https://github.com/owner/name")
    'https://owner.github.io/name'
    """
    given = os.environ.get("FLBOOK_SITE", "").rstrip("/")
    found = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", repository)
    if given:
        return given
    if not found:
        raise ValueError(f"where are the pages of {repository} served? Set FLBOOK_SITE=https://... to say it.")
    return f"https://{found[1].lower()}.github.io/{found[2]}"


def add(built, site, version):
    """Put a version into the site, in the place of one of the same name.

    Parameters
    ----------
    built
        The folder with ``html``, ``pdf`` and the EPUB.
    site
        The folder of the site, made if it is missing.
    version
        ``"latest"`` or as ``"0.2.0"``.

    Raises
    ------
    ValueError
        If a part is not made, or the version has a name of another kind.
    """
    if not re.fullmatch(rf"{LATEST}|\d+(\.\d+)*", version):
        raise ValueError(f"a version of the site is {LATEST!r} or as 1.2.0; it was {version!r}.")
    prints = [*sorted((built / "pdf").glob("*.pdf")), built / EPUB]
    for part in (built / "html" / "index.html", built / "pdf" / PDF, built / EPUB):
        if not part.is_file():
            raise ValueError(f"the site lacks {part.relative_to(built)}: run `make site`.")
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built / "html", site / version, ignore=shutil.ignore_patterns(".*"))
    for file in prints:
        shutil.copy(file, site / version)


def finish(site, title, where):
    """Write what stands above the versions: the list of them, and the page that leads to the first.

    Parameters
    ----------
    site
        The folder of the site.
    title
        Title of the book.
    where
        Where the site is served.
    """
    found = sorted((folder.parent.name for folder in site.glob("*/index.html")), key=_newest_first)
    listed = [{"version": name, "url": f"{where}/{name}/", "preferred": name == found[0]} for name in found]
    (site / SWITCHER).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(DOOR.format(title=title, version=found[0]), encoding="utf-8")


def _newest_first(version):
    return (version != LATEST, [-int(part) for part in version.split(".")] if version != LATEST else [])


def main(argv):
    """Put what is built into the site that the arguments name; returns the exit status."""
    if len(argv) != 3:
        print("usage: python -m flbook.book.site BUILT SITE VERSION", file=sys.stderr)
        return 2
    built, site = map(Path, argv[:2])
    try:
        described = press.edition(lectures.root(built))
        add(built, site, argv[2])
        finish(site, described.title, address(described.address))
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
