"""The course around the book: its assignments, their public tests, and how they are graded.

A lecturer's side (`handouts`, `grading`) runs in a checkout, by ``make assignments`` and ``make grade``; it needs the
extra ``course``. A student's notebook asks this package for the tests that it may see, and needs nothing else of it.
"""

import tempfile
from pathlib import Path

PUBLIC = Path(__file__).with_name("public")


def public_tests(name: str) -> str:
    """A folder with the public tests of an assignment, one file a question, as otter-grader reads them.

    Parameters
    ----------
    name
        Of the assignment, as ``"decomposition"``.

    Returns
    -------
    str
        A new temporary folder, because the installed package may lie where nobody may write.
    """
    names = sorted(path.name for path in PUBLIC.glob("*") if path.is_dir())
    if name not in names:
        raise ValueError(f"there is no assignment {name!r}; there are {', '.join(names) or 'none yet'}.")
    folder = Path(tempfile.mkdtemp(prefix=f"flbook-{name}-"))
    for file in PUBLIC.joinpath(name).glob("*.txt"):  # stored as text: they are data, and no module of the library
        folder.joinpath(f"{file.stem}.py").write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    return str(folder)
