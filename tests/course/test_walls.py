"""The walls around a submission hold against what would take them down, by both ways and for root and others alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flbook.course import walls

ROOT = Path(__file__).parents[2]
# Each line prints its word if the attack succeeds; the last one tells that all were tried.
ATTACKS = r"""
try() { word=$1; shift; "$@" > /dev/null 2>&1 && echo "$word"; }
for place in / /usr /proc; do
    try "remounts $place" mount -o remount,bind,rw "$place"
    try "remounts $place as another root" unshare --user --map-root-user --mount mount -o remount,bind,rw "$place"
    try "remounts $place as nobody" unshare --user --mount mount -o remount,bind,rw "$place"
    try "writes to $place" touch "$place/x"
done
try "writes to the library" touch "$LIBRARY/x"
try "reads the masters" ls "$ROOT/book"
try "reads the history" ls "$ROOT/.git"
try "reads a submission" cat "$SUBMISSION"
try "deletes a submission" rm "$SUBMISSION"
try "reads passwords" cat /etc/shadow
try "signals the parent" kill -0 "$PARENT"
try "sees the parent" ls "/proc/$PARENT/status"
try "has an interface" grep -E "^ *(e|w)[a-z0-9]+:" /proc/net/dev
try "has a capability" grep -E "^Cap(Eff|Prm|Bnd|Amb):.*[1-9a-f]" /proc/self/status
try "may get privileges" grep "NoNewPrivs:.0" /proc/self/status
try "sets the kernel" sh -c "echo 1 > /proc/sys/kernel/panic_on_warn"
try "makes a device" mknod /tmp/disk b 254 0
try "fills the memory with files" dd if=/dev/zero of=/tmp/large bs=1M count=600
echo tried
"""


def has(way: str) -> walls.Walls:
    """The walls, or a reason to skip."""
    try:
        return walls.build([ROOT], [way])
    except ValueError as error:
        pytest.skip(str(error))


def attack(around: walls.Walls, work: Path, submission: Path, **who) -> str:
    env = {"ROOT": str(ROOT), "LIBRARY": str(ROOT / "lib/flbook"), "SUBMISSION": str(submission)}
    env |= {"PARENT": str(os.getpid()), "PATH": os.environ["PATH"]}
    command = [*around.command(str(work)), "sh", "-c", ATTACKS]
    done = subprocess.run(command, cwd="/", env=env, timeout=100, text=True, capture_output=True, **who)
    return done.stdout + done.stderr


@pytest.mark.parametrize("way", walls.WAYS)
def test_they_hold(way, tmp_path):
    around, submission = has(way), tmp_path / "other.ipynb"
    submission.write_text("the work of someone else")
    tmp_path.joinpath("work").mkdir()
    assert attack(around, tmp_path / "work", submission) == "tried\n"
    assert submission.read_text() == "the work of someone else"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("way", walls.WAYS)
def test_they_hold_for_another_user(way, monkeypatch):
    """Without this Python, which may lie where only root can read."""
    has(way)
    monkeypatch.setattr(walls, "_root", lambda: False)
    place = Path("/tmp") / f"flbook-{os.getpid()}-{way.split()[0]}"  # pytest's own places are closed to others
    place.mkdir()
    try:
        place.joinpath("work").mkdir()
        place.joinpath("other.ipynb").write_text("the work of someone else")
        for path in (place, place / "work", place / "other.ipynb"):
            os.chown(path, 65534, 65534)
        who = {"user": 65534, "group": 65534, "extra_groups": []}
        around = walls.Walls(way, walls.layers([], [ROOT]))
        assert attack(around, place / "work", place / "other.ipynb", **who) == "tried\n"
        assert place.joinpath("other.ipynb").exists()
    finally:
        for path in (place / "other.ipynb", place / "work"):
            path.unlink() if path.is_file() else path.rmdir()
        place.rmdir()


def test_the_attacks_would_be_noticed(tmp_path):
    """Without walls some succeed: the list above is no dead letter."""
    tmp_path.joinpath("other.ipynb").write_text("the work of someone else")
    env = {"ROOT": str(ROOT), "SUBMISSION": str(tmp_path / "other.ipynb"), "PARENT": str(os.getpid())}
    harmless = ("try()", 'try "reads', 'try "deletes')
    read = "\n".join(line for line in ATTACKS.splitlines() if line.startswith(harmless))
    done = subprocess.run(["sh", "-c", read], env=os.environ | env, text=True, capture_output=True, timeout=60)
    assert {"reads the masters", "reads a submission", "deletes a submission"} <= set(done.stdout.splitlines())


def test_a_way_that_does_not_work_gives_way_to_the_next(tmp_path, monkeypatch):
    """A bubblewrap that fails, as where the system forbids it namespaces, is passed over; nothing at all is refused."""
    has("by hand")
    tmp_path.joinpath("bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    tmp_path.joinpath("bwrap").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        assert walls.build([ROOT]).way == "by hand"
    monkeypatch.setenv("PATH", str(tmp_path))
    said = r"no sandbox can be made here \(bubblewrap: .*No permissions; by hand: not installed\): install bubblewrap"
    with pytest.raises(ValueError, match=said):
        walls.build([ROOT])


def test_of_two_places_the_inner_one_decides(tmp_path):
    for name in ("a/b/c", "a/d", "e"):
        tmp_path.joinpath(name).mkdir(parents=True)
    a, b, c, d, e = (tmp_path / name for name in ("a", "a/b", "a/b/c", "a/d", "e"))
    tmp_path.joinpath("link").symlink_to(e)
    found = walls.layers([a, c, d, tmp_path / "link"], [b, tmp_path / "nowhere", e.parent / "else"])
    own = [layer for layer in found if tmp_path in layer.path.parents]
    assert set(own) == {(a, True), (e, True), (tmp_path / "link", True), (b, False), (c, True)}
    assert [len(layer.path.parts) for layer in found] == sorted(len(layer.path.parts) for layer in found)
    assert set(map(Path, (sys.prefix, sys.base_prefix))) <= set(walls.python())
