"""The index of theorems of the built book: titles with numbers, not the labels that authors gave the boxes."""

import re
from html import unescape
from pathlib import Path

from flbook.book import theorems

ROOT = Path(__file__).parents[2]


def test_the_index_lists_titles_and_numbers(built):
    page = (built / "prf-prf.html").read_text()
    rows = re.findall(r'<a href="([^"]+)#([^"]+)"><code class="xref">(.*?)</code></a>(.*?)</tr>', page, flags=re.DOTALL)
    entries = {label: (unescape(name), re.search(r"<em>(\w+)\s+[\d.]+</em>", rest)) for _, label, name, rest in rows}
    known = {box.label: box for _, inside in theorems.collect(ROOT) for box in inside if box.label}
    assert known.keys() <= entries.keys()
    for label, box in known.items():
        name, number = entries[label]
        assert re.sub(r"\W", "", name) == re.sub(r"\W", "", box.title), label  # quotes are set as type
        assert number and number[1].lower() == box.kind, label
    jumps = re.findall(r'<a href="#cap-([^"]*)"', page)
    assert jumps == sorted(jumps) and all(len(jump) == 1 for jump in jumps), "letters, in order"
