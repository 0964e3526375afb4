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
SEMINAR = "What is being found out now"
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


@pytest.fixture
def seminar():
    return plan(SEMINAR)


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
    seminar = {name for week in plan(SEMINAR) for name in ASSIGNMENT.findall(week)}
    given = {path.stem for path in (ROOT / "book/assignments").glob("*.ipynb")} - {"capstone"} - seminar
    assert len(asked) == len(set(asked)) and set(asked) == given


def test_topics_and_reading_times_are_the_lectures_own(book):
    for topic, name, minutes in LINK.findall(SYLLABUS):
        assert topic == book[name].topic, name
        line = first_cell(ROOT / f"book/{name}.ipynb").split("\n")[2]
        assert f" {minutes} minutes" in line, f"{name}: in book/course/syllabus.md {minutes}, under its title {line}"


def test_hours_add_up(weeks, seminar):
    for week in weeks + seminar:
        total, parts = HOURS.search(week).groups()
        assert sum(map(float, re.findall(r"\w+ ([\d.]+)", parts))) == float(total), week[:40]


def test_the_seminar_is_as_long_as_it_says(seminar):
    words = ["One week", "Two weeks", "Three weeks", "Four weeks", "Five weeks", "Six weeks"]
    assert f"## {SEMINAR}\n\n{words[len(seminar) - 1]} of " in SYLLABUS
    assert [int(re.match(r"Week (\d+):", week)[1]) for week in seminar] == list(range(1, len(seminar) + 1))


def test_a_week_of_the_seminar_has_a_lecture_papers_a_run_and_a_question(seminar):
    for week in seminar:
        parts = dict(re.findall(r"^- \*\*([\w ]+)\.\*\* (.*?)(?=^- \*\*|\Z)", week, flags=re.M | re.S))
        assert list(parts) == ["Needs", "Lecture", "Reading", "To run", *["Assignment"] * ("Assignment" in parts),
                               "Open question", "Hours"], week[:40]
        assert len(LINK.findall(parts["Lecture"])) == 1
        assert len(set(re.findall(r"\{cite:t\}`(\w+)`", parts["Reading"]))) >= 2, week[:40]
        assert "?" in parts["Open question"]


def test_papers_of_the_seminar_stand_in_the_bibliography(seminar):
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text(), flags=re.M))
    assert set(re.findall(r"\{cite:t\}`(\w+)`", "".join(seminar))) <= keys


def test_the_seminar_names_what_its_lectures_need(seminar, book):
    seen, lectured = set(), []
    for week in seminar:
        needs, _, rest = week.partition("- **Lecture.**")
        seen |= {name for _, name, _ in LINK.findall(needs)}
        ((_, name, _),) = LINK.findall(rest)
        assert set(book[name].needs) <= seen, name
        seen.add(name)
        lectured.append(name)
        for assignment in ASSIGNMENT.findall(week):
            text = first_cell(ROOT / f"book/assignments/{assignment}.ipynb")
            assert set(re.findall(r"\(\.\./(\w+/\w+)\.ipynb\)", text)) <= set(lectured), assignment
    assert len(lectured) == len(set(lectured))
