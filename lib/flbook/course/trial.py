"""One run of a submission in the sandbox, and what it is believed."""

import json
import secrets

from flbook.course import sandbox
from flbook.course.handouts import Handout
from flbook.course.submissions import Result
from flbook.course.walls import Walls

_LONG = 500  # characters of what a run says that are kept


class Trial:
    """What is run and what was heard of it: steps in the order in which we asked for them, and nothing else.

    Parameters
    ----------
    code
        The cells by name.
    handout
        The assignment.
    skip
        Cells and questions that stopped an earlier run.
    """

    def __init__(self, code: dict[str, str], handout: Handout, skip: list[str]):
        self.code = {name: text for name, text in code.items() if name not in skip}
        self.tests = {name: text for name, text in handout.tests.items() if name not in skip}
        self.names = [*handout.set_up, *(name for question in handout.questions for name in question.needs)]
        self.step = "the start"  # empty when all is done
        self.raised: dict[str, str] = {}
        self.results: dict[str, list[Result]] = {}
        self.lacks: tuple[str, ...] = ()
        self._count = {question.name: len(question.tests) for question in handout.questions}
        self._steps = iter([*self.code, *self.tests, ""])
        self._token = secrets.token_hex(16)  # a line without it is not ours

    def follow(self, limits: sandbox.Limits, walls: Walls | None, until: float) -> str:
        """Let it run.

        Parameters
        ----------
        limits
            What it may take.
        walls
            Around it; none if nothing can be lost here.
        until
            When all has to be over, by `time.monotonic`.

        Returns
        -------
        str
            What ended it, if that was not its end.
        """
        job = {"token": self._token, "code": self.code, "tests": self.tests, "names": self.names}
        try:
            for line in sandbox.lines(["-m", "flbook.course.submissions"], job, limits, walls, until):
                self._hear(line)
        except sandbox.Stopped as error:
            return str(error)
        return "ended the process"

    def _hear(self, line):
        try:
            event = dict(json.loads(line))
            if event.pop("token") != self._token:
                raise ValueError
            self._take(event)
        except (ValueError, KeyError, TypeError, RecursionError, StopIteration):
            raise sandbox.Stopped("wrote what it should not") from None

    def _take(self, event):
        if "begin" in event:
            self._fits(event["begin"] == next(self._steps))
            self.step = event["begin"]
        elif "raised" in event:
            self._fits(event["raised"] == self.step and self.step in self.code and self.step not in self.raised)
            self.raised[self.step] = str(event["error"])[:_LONG]
        elif "lacks" in event:
            self.lacks = tuple(name for name in self.names if name in event["lacks"])
        else:
            results = [Result(passed is True, str(raised)[:_LONG]) for passed, raised in event["results"]]
            self._fits(event["question"] == self.step and self.step not in self.results)
            self._fits(len(results) == self._count[self.step])
            self.results[self.step] = results

    def _fits(self, does):
        if not does:
            raise ValueError
