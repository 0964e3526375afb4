"""The syllabus: its plans keep the order that the lectures ask for, and say of these what they say themselves."""

import json
import re
from pathlib import Path

import pytest

from flbook.book import lectures, metadata

ROOT = Path(__file__).parents[2]
SYLLABUS = (ROOT / "book/course/syllabus.md").read_text()
LINK = re.compile(r"\{doc\}`([^`<]+) <\.\./(\w+/\w+)>` \((\d+) minutes\)")
ASSIGNMENT = re.compile(r"- \*\*Assignment\.\*\* \{doc\}`\.\./assignments/(\w+)`")
HOURS = re.compile(r"- \*\*Hours\.\*\* ([\d.]+): (.*)\.")


def plan(title: str) -> list[str]:
    """The weeks of a plan, in order."""
    (text,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", SYLLABUS, flags=re.M | re.S)
    return re.split(r"^### ", text, flags=re.M)[1:]


@pytest.fixture(scope="module")
def book():
    return {lecture.name: lecture for lecture in metadata.collect(ROOT)}


@pytest.fixture(params=["Six weeks", "Twelve weeks"])
def weeks(request):
    return plan(request.param)


def first_cell(path: Path) -> str:
    return "".join(json.loads(path.read_text())["cells"][0]["source"])


def test_its_plans_are_as_long_as_they_say():
    short, long = plan("Six weeks"), plan("Twelve weeks")
    assert (len(short), len(long)) == (6, 12)
    in_class = [line for week in short for line in re.findall(r"- \*\*In class\.\*\*.*?(?=\n- )", week, flags=re.S)]
    assert sum(len(LINK.findall(line)) for line in in_class) == 12
    for weeks in (short, long):
        assert [int(re.match(r"Week (\d+):", week)[1]) for week in weeks] == list(range(1, len(weeks) + 1))


def test_nothing_stands_before_what_it_needs(weeks, book):
    seen = set()
    for week in weeks:
        for _, name, _ in LINK.findall(week):
            assert name not in seen, f"{name} stands twice"
            assert set(book[name].needs) <= seen, name
            seen.add(name)


def test_lectures_in_class_need_nothing_optional(weeks, book):
    seen = set()
    for week in weeks:
        seen |= {name for _, name, _ in LINK.findall(week.partition("- **Further.**")[0])}
        assert not [(name, need) for name in seen for need in book[name].needs if need not in seen], week[:40]


def test_the_long_plan_holds_every_lecture():
    named = [name for week in plan("Twelve weeks") for _, name, _ in LINK.findall(week)]
    assert sorted(named) == sorted(lectures.listed(ROOT)), "each lecture has its week in book/course/syllabus.md"


def test_an_assignment_comes_after_its_lectures(weeks):
    seen, asked = set(), []
    for week in weeks:
        seen |= {name for _, name, _ in LINK.findall(week.partition("- **Further.**")[0])}
        for name in ASSIGNMENT.findall(week):
            text = first_cell(ROOT / f"book/assignments/{name}.ipynb")
            assert set(re.findall(r"\(\.\./(\w+/\w+)\.ipynb\)", text)) <= seen, name
            asked.append(name)
    given = {path.stem for path in (ROOT / "book/assignments").glob("*.ipynb")} - {"capstone"}
    assert len(asked) == len(set(asked)) and set(asked) == given


def test_topics_and_reading_times_are_the_lectures_own(book):
    for topic, name, minutes in LINK.findall(SYLLABUS):
        assert topic == book[name].topic, name
        line = first_cell(ROOT / f"book/{name}.ipynb").split("\n")[2]
        assert f" {minutes} minutes" in line, f"{name}: in book/course/syllabus.md {minutes}, under its title {line}"


def test_hours_add_up(weeks):
    for week in weeks:
        total, parts = HOURS.search(week).groups()
        assert sum(map(float, re.findall(r"\w+ ([\d.]+)", parts))) == float(total), week[:40]
