"""Names of the library in a page's code lead to their definitions, and nothing else does."""

import re
from pathlib import Path

import pytest

from flbook.book.definitions import definition, imported

ROOT = Path(__file__).parents[2]
LINK = re.compile(r'<a class="defined" href="([^"#]+)#L(\d+)"><span class="n">(\w+)</span></a>')


def line(file: str, number: int) -> str:
    return (ROOT / "lib" / file).read_text().splitlines()[number - 1]


@pytest.mark.parametrize(("name", "said"), [
    (("flbook", "SignalNoise"), "class SignalNoise"),
    (("flbook", "fit"), "def fit("),  # a module of this name holds it
    (("flbook", "plots", "series"), "def series("),
    (("flbook", "WeightTraining", "of"), "def of("),
    (("flbook.lectures.benign_overfitting", "relu_heatmap", "experiment"), "experiment = "),
])
def test_a_name_is_found_where_it_is_defined(name, said):
    assert said in line(*definition(*name))


@pytest.mark.parametrize("name", [("flbook", "nothing"), ("flbook", "fit", "nothing"), ("numpy", "array")])
def test_what_the_sources_do_not_say_is_not_found(name):
    assert definition(*name) is None


def test_names_that_a_page_gives_another_value_are_not_the_library_s():
    cells = [
        "try:\n    import flbook\nexcept ImportError:\n    %pip install flbook\n\nfrom flbook import fit, plots as p",
        "from numpy import array\n\ndef fit():\n    pass",
        "no Python",
    ]
    assert imported(cells) == {"p": ("flbook", "plots")}


def test_links_of_every_lecture_lead_to_lines_that_define_the_name(built, lectures):
    same = []
    for lecture in lectures:
        text = (built / f"{lecture.name}.html").read_text()
        found = LINK.findall(text)  # what the reference has leads there: tests/book/test_reference.py
        assert len(found) + text.count('<a class="defined" href="../reference.html#') >= 5 and found, lecture.name
        for address, number, name in found:
            there = line(address.partition("/blob/main/lib/")[2], int(number))
            assert number == "1" or re.match(r"\s*(def|class) |.*=", there), (lecture.name, name)
            same.append(number == "1" or name in there)
    assert sum(same) > 0.9 * len(same)  # the others are imported under another name


def test_an_argument_and_an_attribute_of_something_else_are_no_links(built):
    text = (built / "book/benign_overfitting/relu_heatmap.html").read_text()
    assert '<a class="defined"' in text
    assert not re.search(r'<span class="o">\.</span><a class="defined"[^>]*><span class="n">(shape|mean|sum)<', text)
    assert not re.search(r'</span></a><span class="o">=</span><', re.sub(r'<span class="w">.*?</span>', "", text))
