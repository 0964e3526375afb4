"""What a page may have at most, or has already: pages on the list of todo.toml may only get better."""

import tomllib
from pathlib import Path

TODO = tomllib.loads((Path(__file__).parents[1] / "book" / "todo.toml").read_text())
IN_BROWSER = {"height": 12_000, "first_picture": 900}  # pixels at a width of 1280, everything folded


def within(name: str, count: str, value: float, limit: float, slack: float = 1) -> None:
    """The limit is kept, or the page stands on the list and is no worse than there."""
    listed = TODO.get(name, {}).get(count)
    if listed is None:
        assert value <= limit * slack, f"{count}: {value} of at most {limit}"
    else:
        assert value <= listed * slack, f"{count}: {value}, and the list has {listed}: a page may not get worse"
        assert value > limit / slack, f"{count}: {value} keeps the limit: take it off the list"
