"""The Makefile on macOS: BSD's tools, bash 3.2 and make 3.81 have no such flag, substitution or function."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ONLY_GNU = {
    "sed -i without a suffix": r"\bsed\b[^|;]*? -i(?= |$)",
    "sed -r": r"\bsed\b[^|;]*? -\w*r\b",
    "\\+ \\? \\| \\s \\w \\b in sed": r"\bsed\b[^|;]*?'[^']*\\[+?|swb]",
    "grep -P": r"\bgrep\b[^|;]*? -\w*P",
    "sort -V": r"\bsort\b[^|;]*? -\w*V",
    "sort --version-sort": r"\bsort\b[^|;]*? --",
    "xargs -r": r"\bxargs\b[^|;]*? (-\w*r|--no-run)",
    "date -d": r"\bdate\b (-d|--|-I)",
    "stat -c": r"\bstat\b -c",
    "readlink -f, realpath": r"\breadlink -f|\brealpath\b",
    "mktemp --": r"\bmktemp\b[^|;)]*? --",
    "cp --": r"\bcp\b[^|;]*? (--|-t)",
    "head -n -": r"\bhead\b[^|;]*? -n? ?-\d",
    "find -printf": r"\bfind\b[^|;]*? -(printf|regextype|executable)",
    "a command of coreutils": r"(?<![\w-])(nproc|tac|shuf|timeout|sha256sum|md5sum)\b(?=[ )])",
    "echo -e": r"\becho -[en]",
    "bash 4": r"\b(mapfile|readarray|coproc|declare -A)\b|\|&|&>>|\$\{\w+(,,|\^\^)|\*\*/",
    "make 3.82 and later": r"^\s*\.ONESHELL|\$\((file|let|intcmp) |^[\w-]+ *(!=|::=)|^undefine|\.RECIPEPREFIX",
}


def found(text: str) -> list[str]:
    """What of a Makefile's text macOS does not have, line by line; continued lines are joined, comments left out."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    lines = [re.sub(r"(^|\s)#.*", "", line) for line in lines]
    return [f"{name}: {line.strip()}" for line in lines for name, flag in ONLY_GNU.items() if re.search(flag, line)]


def test_the_makefile_needs_no_gnu():
    assert found((ROOT / "Makefile").read_text()) == []


@pytest.mark.parametrize("line", [
    "\t@sed -i 's/a/b/' file",
    "\t@xargs sed -i \"s|a|b|\"",
    "\t@sed -n 's/a\\+/b/p' file",
    "\t@ls | sort -ruV",
    "\t@ls | xargs -r rm",
    "\t@grep -oP 'a' file",
    "\t@date -d tomorrow",
    "\t@dirname \\\n\t\t$$(readlink -f x)",
    "\t@find . -printf %p",
    "JOBS = $(shell nproc)",
    "\t@mapfile -t lines < file",
    "NOW != date",
    ".ONESHELL:",
])
def test_what_it_would_find(line):
    assert found(line)


@pytest.mark.parametrize("line", [
    "\t@sed -i.bak -e 's/a/b/' file",
    "\t@sort -t. -k2,2 -rnu",
    "\t@date > file",
    "\t@mktemp -d",
    "\t@grep -Eq '^a+$$' && git tag --sort=-version:refname",
    "# sed -i is GNU's",
])
def test_what_it_lets_pass(line):
    assert not found(line)
