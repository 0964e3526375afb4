"""The files that a package index takes, source and wheel: ``python -m flbook.book.dist OUT [TAG]``.

They are made by the hooks that pip itself calls. A tag that is not the version is refused, and so is a wheel that
lacks a file of the library.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from flbook import __version__
from flbook.book import lectures

HOOKS = """
import sys
from setuptools import build_meta

out = sys.argv[1]  # the hooks write their own there
build_meta.build_sdist(out)
build_meta.build_wheel(out)
"""


def write(root, out, tag=""):
    """Make source and wheel; returns the files.

    Parameters
    ----------
    root
        The folder of `pyproject.toml`, a checkout.
    out
        Folder for the files, made if it is missing.
    tag
        The release's tag, as ``"v0.2.0"``; none is no release yet.

    Raises
    ------
    ValueError
        If the tag is not the version, nothing could be made, or the wheel lacks a file.
    """
    if tag and tag != f"v{__version__}":
        raise ValueError(f"the tag is {tag!r}, but the version is {__version__!r}: it must be 'v{__version__}'.")
    out.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([sys.executable, "-c", HOOKS, str(out.resolve())], cwd=root, capture_output=True, text=True)
    if made.returncode:
        raise ValueError(f"setuptools could not make the package: {made.stderr.strip().splitlines()[-1]}")
    files = sorted(out.glob(f"flbook-{__version__}*"))
    lacking = missing(root, next(file for file in files if file.suffix == ".whl"))
    if lacking:
        raise ValueError(f"the wheel lacks {len(lacking)} files of the library: {', '.join(lacking[:5])}.")
    return files


def missing(root, wheel):
    """The library's committed files that a wheel does not hold.

    Parameters
    ----------
    root
        The folder of `pyproject.toml`, a checkout.
    wheel
        The wheel.
    """
    listed = subprocess.run(["git", "ls-files", "lib/flbook"], cwd=root, capture_output=True, text=True, check=True)
    committed = {name.removeprefix("lib/") for name in listed.stdout.splitlines() if (root / name).is_file()}
    return sorted(committed - set(zipfile.ZipFile(wheel).namelist()))


def main(argv):
    """Make what the arguments name; returns the exit status."""
    if len(argv) not in (1, 2):
        print("usage: python -m flbook.book.dist OUT [TAG]", file=sys.stderr)
        return 2
    try:
        files = write(lectures.root(), Path(argv[0]), *argv[1:])
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    print(*files, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
