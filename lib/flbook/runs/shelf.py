"""A shelf: the experiments of a package, found by name without reading or importing their files.

Each of its chapters, a subpackage, lists in ``EXPERIMENTS`` where its experiments are: ``"momentum"`` is the folder or
file `momentum` of the chapter, ``"distilled_attention.layer_costs"`` a file in a lecture's folder. The object is called
`experiment` there. A user's own file is asked for by its path.
"""

import ast
import difflib
import importlib
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from flbook.runs.experiment import Experiment


class Shelf:
    """The experiments of a package, such as that of the lectures.

    Parameters
    ----------
    package
        The package; its subpackages are the chapters.
    """

    def __init__(self, package: ModuleType):
        self.package = package

    def modules(self) -> dict[str, str]:
        """Every experiment as ``"chapter/name"``, and its module; chapters are imported, experiments are not.

        Returns
        -------
        dict[str, str]
            Names of modules, sorted by those of the experiments.
        """
        found = {}
        for chapter in pkgutil.iter_modules(self.package.__path__):
            home = f"{self.package.__name__}.{chapter.name}"
            for entry in getattr(importlib.import_module(home), "EXPERIMENTS", ()):
                found[f"{chapter.name}/{entry.rpartition('.')[2]}"] = f"{home}.{entry}"
        return dict(sorted(found.items()))

    def file(self, name: str) -> Path:
        """The file of an experiment, which is not imported.

        Parameters
        ----------
        name
            ``"chapter/name"``.

        Returns
        -------
        Path
            An ``__init__.py`` where the experiment is a folder.
        """
        parts = self.modules()[name].removeprefix(f"{self.package.__name__}.").split(".")
        path = Path(self.package.__path__[0], *parts)
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def says(self, name: str) -> str:
        """The first line of an experiment's file.

        Parameters
        ----------
        name
            ``"chapter/name"``.

        Returns
        -------
        str
            Empty if the file has no docstring.
        """
        return (ast.get_docstring(ast.parse(self.file(name).read_bytes())) or "").partition("\n")[0]

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The experiments of chapters, lectures or names; all if none is given. Raises ValueError as `find` does.

        Parameters
        ----------
        names
            Of chapters, lectures or experiments.

        Returns
        -------
        list[str]
            Each as ``"chapter/name"``, once.
        """
        found = []
        for name in names:
            inside = [full for full, module in self.modules().items() if name == full.partition("/")[0]
                      or f".{name.replace('/', '.')}." in f"{module}."]
            found += inside or [self.full(name)]
        return list(dict.fromkeys(found)) if names else list(self.modules())

    def find(self, name: str) -> Experiment:
        """The experiment of a name alone, of ``"chapter/name"``, or of a file, ``"my_file.py"`` or with ``":name"``.

        Raises ValueError, in one sentence with the nearest names, if there is none or several.

        Parameters
        ----------
        name
            What the experiment is asked for by.

        Returns
        -------
        Experiment
            Its module is imported.
        """
        if name.partition(":")[0].endswith(".py"):
            return of_file(name)
        return importlib.import_module(self.modules()[self.full(name)]).experiment

    def full(self, name: str) -> str:
        """The name as ``"chapter/name"``. Raises ValueError, with the nearest names, if there is none or several.

        Parameters
        ----------
        name
            With or without its chapter.

        Returns
        -------
        str
            As `modules` has it.
        """
        known = self.modules()
        hits = [full for full in known if name in (full, full.rpartition("/")[2])]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise ValueError(f"the name {name!r} is not unique: it may be {' or '.join(hits)}")
        last = {full.rpartition("/")[2]: full for full in known}
        near = [last[one] for one in difflib.get_close_matches(name.rpartition("/")[2], last, n=3, cutoff=0.4)]
        hint = f"the nearest: {', '.join(near)}" if near else f"there are {', '.join(known)}"
        raise ValueError(f"no experiment is called {name!r}; {hint}")


def of_file(name: str) -> Experiment:
    """The experiment of a user's file: imported as running it would find it, so that worker processes can import it.

    Raises ValueError if the file is not there, has another module's name, or has no or several experiments.

    Parameters
    ----------
    name
        ``"my_file.py"``, or ``"my_file.py:name"`` where it has several experiments.

    Returns
    -------
    Experiment
        The only one, or that of the name.
    """
    path, _, wanted = name.partition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {path!r}")
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    if Path(getattr(module, "__file__", None) or ".").resolve() != file:
        raise ValueError(f"the file {file.name} has the name of another module, {file.stem!r}; rename it")
    found = {key: value for key, value in vars(module).items()
             if isinstance(value, Experiment) and value.module == module.__name__}
    if wanted in found or len(found) == 1 and not wanted:
        return found[wanted or next(iter(found))]
    raise ValueError(f"{file.name} has {'the experiments ' + ', '.join(found) if found else 'no experiment'}"
                     + (f", not {wanted!r}" if wanted else "; ask for one as FILE:NAME" if found else ""))
