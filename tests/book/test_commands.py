"""Commands that a page prints, in its text or in its outputs, are commands that work."""

import re
import shlex

import pytest

from flbook import __main__

# As far as words of a command go: a name, a file, options and their values.
COMMAND = re.compile(r"python -m flbook((?: +(?:--?)?[a-z][\w/.:=-]*)+)")


def commands(page) -> set[str]:
    """What follows ``python -m flbook`` on the page, without what a sentence adds behind an experiment's name."""
    outputs = [*page.outputs] if page.source.suffix == ".ipynb" else []
    texts = [page.text, *("".join(one.get("text", "")) for one in outputs)]
    texts += ["".join(one.get("data", {}).get(kind, "")) for one in outputs for kind in ("text/plain", "text/html")]
    if page.source.suffix == ".ipynb":
        texts += [cell["source"] for cell in page.code]
    return {match[1].strip().rstrip(".:") for text in texts for match in COMMAND.finditer(text)}


def without_prose(words: list[str]) -> list[str]:
    """The command alone: ``run NAME`` and its options, each with a value where it takes one."""
    kept = words[:2]
    for word, value in zip(words[2:], [*words[3:], ""], strict=True):
        if word.startswith("--"):
            kept += [word] if word in ("--store", "--dry-run") else [word, value]
    return kept


def test_every_printed_command_works(page, capsys, tmp_path, monkeypatch):
    if not page.source.exists():
        pytest.skip("made of the pages when the book is built")
    monkeypatch.chdir(tmp_path)
    for command in sorted(commands(page)):
        words = shlex.split(command)
        if words[0] == "run" and not words[1].endswith(".py"):
            assert __main__.main([*without_prose(words), "--dry-run"]) == 0, (command, capsys.readouterr().err)
        else:
            assert words[0] in ("run", "list", "cost", "ledger", "accept"), command
