"""The walls around a stranger's process: it sees the system's programs and this Python, read-only, and nothing else.

Linux gives namespaces to anyone: a view of the disk, a network without an interface, process numbers of its own. Two
ways build the same walls of them, bubblewrap where it is installed and else the tools of util-linux. The process has no
capability and cannot get one, so it cannot take the walls down. It may write to /tmp and /dev/shm, both in memory.

Limits on the number of processes do not hold for root. So where root grades, root builds the walls, and the process
runs as a user that nobody else is.
"""

import os
import secrets
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

_PLACE = 2**29  # bytes that fit into each of the two places that may be written to
_LIBRARY = Path(__file__).parents[1]
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/sys/devices/system/cpu"),
    *(f"/etc/{name}" for name in ("alternatives", "fonts", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d")),
    *(f"/etc/{name}" for name in ("localtime", "nsswitch.conf", "passwd")),
)

_NO_CAPABILITY = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")

# A new root in memory gets what is shown; every mount becomes read-only, and the old root goes. The last shell stays as
# process 1, which would otherwise be deaf to signals, and takes in what its children leave behind.
_BY_HAND = r"""
set -e
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin
new=$1 size=$2
shift 2
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$new"
cd "$new"
mkdir -p old proc tmp dev/shm dev/pts
mount -t proc proc proc
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
for device in null zero full random urandom; do : > dev/$device; mount --bind /dev/$device dev/$device; done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for place in tmp dev/shm; do mount -t tmpfs -o "size=$size" tmpfs $place; done
while [ "$1" != -- ]; do
    if [ "$1" = hide ]; then mount -t tmpfs tmpfs ".$2"
    elif [ -d "$2" ]; then mkdir -p ".$2"; mount --rbind "$2" ".$2"
    else mkdir -p ".${2%/*}"; : > ".$2"; mount --bind "$2" ".$2"; fi
    shift 2
done
shift
while read -r _ _ _ _ at how _; do
    case $at in
    "$new" | "$new"/tmp | "$new"/dev/shm | "$new"/dev/pts) ;;
    "$new"/*) mount -o "remount,bind,ro${how#r[ow]},nosuid" "$(printf %b "$at")" ;;
    esac
done < /proc/self/mountinfo
pivot_root . old
cd /tmp
umount -l /old
rmdir /old
mount -o remount,bind,ro /
exec "$@"
"""


class Layer(NamedTuple):
    """A place that is shown or hidden; of two layers, one inside the other, the inner one holds."""

    path: Path
    shown: bool


class Walls(NamedTuple):
    """How to build them here, and around what."""

    way: str
    layers: tuple[Layer, ...]

    def command(self, work: str) -> list[str]:
        """What stands before a command that shall run inside; `work` is an empty folder for the way by hand."""
        return WAYS[self.way](self.layers, work)

    @property
    def apart(self) -> bool:
        """Whether the process runs as a user that nobody else is."""
        return _root()


def _bubblewrap(layers, work):
    size = ("--perms", "1777", "--size", str(_PLACE), "--tmpfs")
    alone = [f"--unshare-{one}" for one in ("ipc", "pid", "net", "uts", "cgroup-try", *(() if _root() else ("user",)))]
    command = ["bwrap", *alone, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if _root():
        command += [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
    command += ["--proc", "/proc", "--dev", "/dev", *size, "/dev/shm", *size, "/tmp"]
    for above in dict.fromkeys(above for path, _ in layers for above in reversed(path.parents)):
        command += ["--perms", "0755", "--dir", str(above)]  # or nobody else could pass through
    for path, shown in layers:
        command += ["--ro-bind", str(path), str(path)] if shown else ["--tmpfs", str(path)]
    for path in ("/proc", "/dev", *(path for path, shown in layers if not shown), "/"):
        command += ["--remount-ro", str(path)]
    leave = ["setpriv", *_nobody(), *_NO_CAPABILITY] if _root() else []
    return [*command, "--chdir", "/tmp", "--", *leave]


def _by_hand(layers, work):
    words = [word for path, shown in layers for word in ("show" if shown else "hide", str(path))]
    alone = ["--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child"]
    alone += [] if _root() else ["--user", "--map-root-user"]
    build = ["sh", "-c", _BY_HAND, "sh", work, str(_PLACE), *words, "--"]
    leave = ["setpriv", "--pdeathsig", "KILL", *_nobody(), *_NO_CAPABILITY, "sh", "-c", '"$@"; exit $?', "sh"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *alone, *build, *leave]


def _root() -> bool:
    """Is this root itself, not a user of a container that is called so?"""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]


def _nobody():
    """Who runs inside: where root builds the walls, a number that no user has."""
    if not _root():
        return []
    number = 2**30 + secrets.randbelow(2**30)
    return [f"--reuid={number}", f"--regid={number}", "--clear-groups"]


WAYS: dict[str, Callable[[tuple[Layer, ...], str], list[str]]] = {"bubblewrap": _bubblewrap, "by hand": _by_hand}


def python() -> list[Path]:
    """Where the Python that runs this, its packages and this library lie."""
    prefixes = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(sys.executable)]
    packages = [*site.getsitepackages(), site.getusersitepackages(), str(_LIBRARY)]
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return [Path(text) for text in (*prefixes, *packages, *libraries) if os.path.isabs(text) and os.path.isdir(text)]


def layers(shown: Sequence[Path], hidden: Sequence[Path]) -> tuple[Layer, ...]:
    """What has to be mounted, in order, so that the system and `shown` are seen and `hidden` is not.

    Parameters
    ----------
    shown
        Places beside the system's; each also where its links lead.
    hidden
        Places that are not seen even if they lie in one that is shown.

    Returns
    -------
    tuple of Layer
        Outer ones first, without those that change nothing.
    """
    places = dict.fromkeys([path for one in (*map(Path, _SYSTEM), *shown) for path in (one, one.resolve())], True)
    places |= dict.fromkeys([path.resolve() for path in hidden], False)
    found: dict[Path, bool] = {}
    for path in sorted((path for path in places if path.exists()), key=lambda path: len(path.parts)):
        around = next((found[parent] for parent in path.parents if parent in found), False)
        if places[path] != around:
            found[path] = places[path]
    return tuple(Layer(path, shown) for path, shown in found.items())


def build(hidden: Sequence[Path], ways: Sequence[str] = tuple(WAYS)) -> Walls:
    """The first way that works here.

    Parameters
    ----------
    hidden
        Places that must not be seen, wherever they lie.
    ways
        Names of the ways to try.

    Returns
    -------
    Walls
        Tried with this Python.

    Raises
    ------
    ValueError
        If none works, with what each said.
    """
    said = []
    for way in ways:
        walls = Walls(way, layers(python(), hidden))
        fault = _try(walls)
        if not fault:
            return walls
        said.append(f"{way}: {fault}")
    raise ValueError(
        f"no sandbox can be made here ({'; '.join(said)}): install bubblewrap, or grade where nothing can be lost, "
        "in a container or a virtual machine for example, with SANDBOX=no."
    )


def _try(walls):
    """What is wrong with walls, in a few words; nothing if Python runs inside."""
    with tempfile.TemporaryDirectory(prefix="flbook-") as work:
        command = [*walls.command(work), sys.executable, "-c", "import flbook.course"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, cwd="/")
        except OSError:
            return "not installed"
        except subprocess.TimeoutExpired:
            return "it does not answer"
    last = done.stderr.strip().splitlines()[-1:] or ["it fails"]
    return "" if done.returncode == 0 else last[0]
