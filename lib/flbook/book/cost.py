"""The line of a lecture that says what executing it costs."""

import math
import re

_LINE = re.compile(r"^\*\*Cost\.\*\*(?: (\d+) s and (\d+\.?\d*) GB on one core\.)?(.*)$", flags=re.MULTILINE)


def cost(source, seconds, peak, alone=True):
    """Rewrite the line that begins with ``**Cost.**`` if it is off by more than a quarter; `peak` is in bytes.

    Beside other lectures one takes longer: if not `alone`, only a line that says nothing yet is written.
    """
    new_seconds, new_gigabytes = 5 * math.ceil(seconds / 5), math.ceil(peak / 1e8) / 10

    def line(match):
        old_seconds, old_gigabytes, rest = match.groups()
        if old_seconds and not alone:
            return match[0]
        if old_seconds and not _moved(float(old_seconds), seconds, new_seconds):
            if not _moved(float(old_gigabytes), peak / 1e9, new_gigabytes):
                return match[0]
        kept = rest if old_seconds else ""
        return f"**Cost.** {new_seconds} s and {new_gigabytes:.1f} GB on one core.{kept}"

    return _LINE.sub(line, source)


def seconds(text):
    """What the line says, in a notebook's text or a page's; 0 where it says nothing yet."""
    stated = re.search(r"\*\*Cost\.\*\* (\d+) s and", text)
    return int(stated[1]) if stated else 0


def _moved(stated, measured, rounded):
    """More than a quarter above, or rounded up still more than a quarter below."""
    return measured > 1.25 * stated or rounded < 0.75 * stated
