"""What a head-to-head found: printed, and kept in ``bench/results/NAME.json``."""

import json
from pathlib import Path


def record(name: str, found: dict) -> None:
    """Print the findings and write them beside this file."""
    for key, value in found.items():
        print(f"{key:58s} {value}")
    out = Path(__file__).parent / "results" / f"{name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(found, indent=1) + "\n")
