"""One submission: its cells are executed in order, whatever some of them raise, and its questions are tested.

``python -m flbook.course.submissions`` does so inside the sandbox. It reads a job from its standard input and writes a
line of JSON for every step that it begins or ends, so that whoever waits knows where it stopped, should it stop.
"""

import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple, cast

_ASKS_OTTER = re.compile(r"\A(?:#.*\n)*grader\.(check|check_all|export)\(")  # the tests run when the cells are done


class Outcome(NamedTuple):
    """A question's points, and what its failed tests say."""

    points: float
    said: tuple[str, ...]


def cells(notebook: dict) -> dict[str, str]:
    """The code of a notebook, by the number of its cell as Jupyter shows it, from 1."""
    sources = ("".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in notebook["cells"])
    return {
        f"cell {number}": source
        for number, source in enumerate(sources, start=1)
        if source.strip() and not _ASKS_OTTER.match(source)
    }


def execute(code: dict[str, str], begin: Callable[[str], None] = lambda step: None) -> tuple[dict, dict[str, str]]:
    """Execute cells in a fresh namespace; returns it, and what was raised, by cell.

    Parameters
    ----------
    code
        Sources by name.
    begin
        Called with the name of each cell before it runs.
    """
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.enable_gui = lambda *_, **__: None  # `%matplotlib inline` asks for one; there is none, and nobody looks
    raised = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, source in code.items():
            begin(name)
            result = shell.run_cell(source, store_history=False)
            error = result.error_before_exec or result.error_in_exec
            if error is not None:
                raised[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return shell.user_ns, raised


def score(namespace: dict, question: str, test_file: str) -> Outcome:
    """Test one question against what the cells left; `test_file` is the text of otter's test file."""
    from otter.test_files.exception_test import ExceptionTestFile

    file = ExceptionTestFile.from_string(test_file, path=f"{question}.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.run(namespace)
    failed = [result.test_case for result in file.test_case_results if not result.passed]
    passed = [result.test_case for result in file.test_case_results if result.passed]
    points = [cast(float, case.points) for case in passed]  # otter knows them, and a master has every message
    return Outcome(sum(points), tuple(cast(str, case.failure_message) for case in failed))


def work(job: dict, say: Callable[[dict], None]) -> None:
    """Do a job: the cells and tests that are not to be skipped, in order."""
    code = {name: source for name, source in cells(job["notebook"]).items() if name not in job["skip"]}
    namespace, raised = execute(code, begin=lambda step: say({"begin": step}))
    for name, error in raised.items():
        say({"raised": name, "error": error})
    for question, test_file in job["tests"].items():
        if question not in job["skip"]:
            say({"begin": question})
            say({"question": question, "outcome": score(namespace, question, test_file)})
    say({"begin": ""})


def main() -> None:
    """Read a job and do it; standard output belongs to us, so what the cells print goes nowhere."""
    job = json.load(sys.stdin)
    ours, nowhere = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    work(job, lambda event: print(json.dumps(event), file=ours, flush=True))


if __name__ == "__main__":
    main()
