"""One submission: its cells are executed in order, whatever some of them raise, and its questions are tested.

``python -m flbook.course.submissions`` does so inside the sandbox. It reads a job from its standard input and writes a
line of JSON for every step that it begins or ends, so that whoever waits knows where it stopped, should it stop.
"""

import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from flbook.course import sandbox

_ASKS_OTTER = re.compile(r"\A(?:#.*\n)*grader\.(check|check_all|export)\(")  # the tests run when the cells are done
_LATE = "did not end within"
_LONG = 160  # characters of what a student's code says that are repeated


class Overtime(BaseException):
    """A step took longer than it may: no Exception, so that little of what a student writes catches it."""


class Result(NamedTuple):
    """Of one test: did it pass, and what did the student's own code raise in it, if that was the reason."""

    passed: bool
    raised: str = ""

    @property
    def late(self) -> bool:
        """Whether it was left because its time was over."""
        return self.raised.startswith(_LATE)


def cells(notebook: dict) -> dict[str, str]:
    """The code of a notebook, by the number of its cell as Jupyter shows it, from 1.

    Parameters
    ----------
    notebook
        As its file says.

    Returns
    -------
    dict of str to str
        Without empty cells, and those that ask otter-grader.
    """
    sources = ("".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in notebook["cells"])
    return {
        f"cell {number}": source
        for number, source in enumerate(sources, start=1)
        if source.strip() and not _ASKS_OTTER.match(source)
    }


def execute(
    code: dict[str, str], say: Callable[[dict], None] = lambda event: None, seconds: float = 0
) -> tuple[dict, dict[str, str]]:
    """Execute cells in a fresh namespace.

    Parameters
    ----------
    code
        Sources by name.
    say
        Is told of each cell that begins, and of what it raised.
    seconds
        That each may take; 0 is without a limit.

    Returns
    -------
    namespace : dict
        What the cells left.
    raised : dict of str to str
        What a cell raised, and in which line, by its name.
    """
    names: list[str] = []
    shell, raised = _shell(names), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, source in code.items():
            say({"begin": name})
            names.append(name)
            error = _run(shell, source, seconds)
            if error is not None:
                raised[name] = told(error, seconds)
                say({"raised": name, "error": raised[name]})
    return shell.user_ns, raised


def _shell(names):
    """IPython, in which a traceback calls a cell by the last of the names."""
    from IPython.core.compilerop import CachingCompiler
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Compiler(CachingCompiler):
        def get_code_name(self, raw_code, transformed_code, number):
            return names[-1]

    class Shell(InteractiveShell):
        compiler_class = Compiler  # IPython makes it

    shell = Shell(config=Config({"HistoryManager": {"enabled": False}}))
    for name in ("enable_gui", "showtraceback", "showsyntaxerror"):  # there is no window, and nobody looks
        setattr(shell, name, lambda *_, **__: None)
    return shell


def _run(shell, source, seconds):
    try:
        with _at_most(seconds):
            result = shell.run_cell(source, store_history=False)
    except Overtime as error:  # between two lines of IPython's own
        return error
    return result.error_before_exec or result.error_in_exec


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise Overtime in what runs below once its time is over; who catches it will be ended from outside.

    A process that was forked below goes no further, or it would do the next steps, too.
    """

    def end(*_):
        raise Overtime

    ours, old = os.getpid(), signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if os.getpid() != ours:
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def told(error: BaseException, seconds: float = 0) -> str:
    """What happened, in a sentence without its subject, and the innermost line of the student's where it did.

    Parameters
    ----------
    error
        That a cell or a test raised.
    seconds
        That it could take.

    Returns
    -------
    str
        As ``raised ValueError: not yet (cell 4, line 2: raise ValueError("not yet"))``.
    """
    what = f"raised {type(error).__name__}: {_short(error)}".rstrip(": ")
    if isinstance(error, Overtime):
        what = f"{_LATE} {seconds:g} s"
    where = _place(error)
    return f"{what} ({where})" if where else what


def _place(error):
    """Cell, number and text of the line of a student's code that an error comes from; nothing if from none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if re.fullmatch(r"cell \d+", frame.filename)]
    if isinstance(error, SyntaxError) and re.fullmatch(r"cell \d+", error.filename or ""):
        return f"{error.filename}, line {error.lineno}: {_short(error.text or '')}"
    return f"{own[-1].filename}, line {own[-1].lineno}: {_short(own[-1].line)}" if own else ""


def _short(said):
    try:
        return " ".join(str(said).split())[:_LONG]
    except Exception:  # an error whose text raises
        return "?"


def score(namespace: dict, question: str, test_file: str, seconds: float = 0) -> list[Result]:
    """Test one question against what the cells left.

    Parameters
    ----------
    namespace
        What the cells left.
    question
        Its name.
    test_file
        The text of otter-grader's test file.
    seconds
        That all tests may take together; 0 is without a limit.

    Returns
    -------
    list of Result
        One a test, in the order of the file. A test that was not reached in time did not pass.
    """
    from otter.test_files.exception_test import ExceptionTestFile

    cases = ExceptionTestFile.from_string(test_file, path=f"{question}.py").test_cases
    results = []
    try:
        with warnings.catch_warnings(), _at_most(seconds):
            warnings.simplefilter("ignore")
            for case in cases:
                results.append(_tested(case.body, namespace))
    except Overtime as error:
        results.append(Result(False, told(error, seconds)))
    return (results + [Result(False)] * len(cases))[: len(cases)]


def _tested(test, namespace):
    try:
        test.call_func(namespace)
    except Overtime:
        raise
    except BaseException as error:  # a student may raise what is no Exception
        return Result(False, told(error) if _place(error) else "")
    return Result(True)


def work(job: dict, say: Callable[[dict], None]) -> None:
    """Do a job: the cells and the tests, in order.

    Parameters
    ----------
    job
        Its ``code`` and ``tests`` by name, the ``names`` that the cells should leave, and the ``limits``.
    say
        Takes what there is to say.
    """
    import otter.test_files  # noqa: F401  # before any cell: it is no student's time

    seconds = sandbox.Limits(*job["limits"]).seconds
    namespace, _ = execute(job["code"], say, seconds)
    say({"lacks": [name for name in job["names"] if namespace.get(name) is None]})
    for question, test_file in job["tests"].items():
        say({"begin": question})
        say({"question": question, "results": score(namespace, question, test_file, seconds)})
    say({"begin": ""})


def main() -> None:
    """Read a job and do it; standard output belongs to us, so what the cells print goes nowhere."""
    job = json.load(sys.stdin)
    os.ftruncate(0, 0)  # process 1 of the sandbox has it open, too
    ours, nowhere = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sandbox.restrain(sandbox.Limits(*job["limits"]))
    sys.modules["rfc3987_syntax"] = None  # type: ignore  # three seconds that jsonschema can do without
    token = job.pop("token")
    work(job, lambda event: print(json.dumps(event | {"token": token}), file=ours, flush=True))


if __name__ == "__main__":
    main()
