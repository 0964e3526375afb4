"""The first cell of lectures as Colab runs it: ``python tests/support/colab.py [chapter/name ...]``.

It is run by a Python with Colab's packages and without flbook, which the first cell fetches from the repository. Here
git is told to take the last commit of this checkout instead, so that what is tested is what is about to be published.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
result = shell.run_cell(sys.stdin.read())
result.raise_error()
from pathlib import Path
import flbook
assert "site-packages" in Path(flbook.__file__).parts, flbook.__file__
"""


def main(names: list[str]) -> int:
    """Run the first cells; returns how many failed."""
    files = [ROOT / "book" / f"{name}.ipynb" for name in names] or lectures()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **instead_of_the_repository(Path(folder)), "MPLBACKEND": "agg"}
        subprocess.run([sys.executable, "-m", "pip", "uninstall", "-qq", "-y", "flbook"], check=True)
        failed = [file for file in files if not runs(file, folder, environment)]
    print(f"{len(files) - len(failed)} passed, {len(failed)} failed")
    return len(failed)


def lectures() -> list[Path]:
    """The notebooks of the book that fetch flbook: lectures, and what stands beside them."""
    return [file for file in sorted(ROOT.glob("book/**/*.ipynb")) if "%pip install" in first_cell(file)]


def first_cell(file: Path) -> str:
    """The first code cell of a notebook."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def runs(file: Path, folder: str, environment: dict[str, str]) -> bool:
    """Run the first cell of a notebook in a process and a folder of its own; says how it went."""
    name = file.relative_to(ROOT / "book").with_suffix("").as_posix()
    command = [sys.executable, "-c", CELL]
    done = subprocess.run(command, cwd=folder, input=first_cell(file), capture_output=True, text=True, env=environment)
    print(f"{'failed' if done.returncode else 'passed'}  {name}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return not done.returncode


def instead_of_the_repository(folder: Path) -> dict[str, str]:
    """Make a repository that borrows the last commit; what in the environment leads git there from the address."""
    own = ["git", "-c", "safe.directory=*", "rev-parse"]  # in a container the checkout belongs to somebody else
    asked = {"commit": ["HEAD"], "objects": ["--path-format=absolute", "--git-path", "objects"]}
    here = {name: subprocess.check_output([*own, *what], cwd=ROOT, text=True).strip() for name, what in asked.items()}
    copy = folder / "book.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", copy], check=True)
    subprocess.run(["git", "config", "uploadpack.allowFilter", "true"], cwd=copy, check=True)  # pip asks for no history
    (copy / "objects/info/alternates").write_text(here["objects"] + "\n")
    subprocess.run(["git", "update-ref", "refs/heads/main", here["commit"]], cwd=copy, check=True)
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    key = f"url.{copy.as_uri()}.insteadOf"
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": address}


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
