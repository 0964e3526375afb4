"""The two questions at the end of every lecture, which check its goals.

In a notebook they are a section of Markdown before the exercises: two folded admonitions of the class `question`, each
a numbered list of choices with a reason below every choice. A lecture reads so without scripts; `predict.js` makes the
choices answerable. What is written wrongly is refused when the book is built.
"""

import json
import re
from dataclasses import dataclass

HEADING = "## Two questions"
RIGHT = "Right: "  # what the reason below the right choice begins with, for whoever reads without scripts
_SECTION = re.compile(rf"^{HEADING}$.*?(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE)
_BOX = re.compile(r"^:::\{admonition\} ([^\n]+)\n:class: question dropdown answer-(\d+)\n(.*?)^:::$", re.DOTALL | re.M)
_PLACE = "<!-- questions -->"


@dataclass(frozen=True)
class Question:
    """A question as it is written: its title, its choices with the reason below each, and which choice is right."""

    title: str
    choices: tuple[tuple[str, str], ...]
    answer: int  # counted from one

    def fault(self):
        """What is wrong with it, in a few words; None if nothing is."""
        count = len(self.choices)
        if not 3 <= count <= 4:
            return f"has {count} choices; it must have three or four"
        if not 1 <= self.answer <= count:
            return f"says that choice {self.answer} of {count} is right"
        if len({choice for choice, _ in self.choices}) < count:
            return "has a choice twice"
        for number, (_, reason) in enumerate(self.choices, start=1):
            if not reason:
                return f"has no reason below choice {number}"
            if reason.startswith(RIGHT) != (number == self.answer):
                return f"must have {RIGHT.strip()!r} before the reason of choice {self.answer}, and before no other"
        return None


def read(text):
    """The two questions of a lecture, from its Markdown; none where it has no section of questions.

    Parameters
    ----------
    text
        What a person wrote as Markdown, cells joined.

    Raises
    ------
    ValueError
        If the section is not one of two questions, or a question is not as it should be.

    Examples
    --------
    >>> choices = "1. One\\n   - It is odd.\\n2. Two\\n   - Right: it is even.\\n3. Three\\n   - It is odd, too.\\n"
    >>> box = f":::{{admonition}} Which is even?\\n:class: question dropdown answer-2\\n{choices}:::\\n"
    >>> [question.answer for question in read(f"## Two questions\\n\\n{box}\\n{box}")]
    [2, 2]
    """
    sections = _SECTION.findall(text)
    if not sections:
        return []
    found = [_question(*box) for section in sections for box in _BOX.findall(section)]
    if len(sections) > 1 or len(found) != 2:
        raise ValueError(f"it has {len(sections)} sections of {len(found)} questions; it must be one of two.")
    for question in found:
        if fault := question.fault():
            raise ValueError(f"the question {question.title!r} {fault}.")
    return found


def without(text):
    """The prose of a lecture without its questions, which are folded and no part of its reading time."""
    return _SECTION.sub("", text)


def with_count(text, book):
    """A Markdown page in which the mark ``<!-- questions -->`` became a line with the number of questions in the book.

    Parameters
    ----------
    text
        The page's source.
    book
        The folder of the pages, whose lectures' questions are counted.

    Raises
    ------
    ValueError
        If the questions of a lecture are not as they should be.
    """
    if _PLACE not in text:
        return text
    count = sum(map(_count, sorted(book.glob("*/*.ipynb"))))
    said = f"Every lecture ends with two questions, {count} in all. What you answer stays in this browser."
    box = f'<div class="questions-so-far" data-questions="{count}"><p>{said}</p></div>'
    return text.replace(_PLACE, f"```{{raw}} html\n{box}\n```")


def _question(title, answer, body):
    """One question, from the three parts of its admonition."""
    items = (item.partition("\n   - ") for item in re.split(r"^\d+\. ", body, flags=re.MULTILINE)[1:])
    return Question(title.strip(), tuple((_flat(choice), _flat(reason)) for choice, _, reason in items), int(answer))


def _flat(text):
    return " ".join(text.split())


def _count(path):
    """How many questions a lecture has."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    try:
        return len(read(text))
    except ValueError as error:
        raise ValueError(f"{path.parent.name}/{path.name}: {error}") from None
