"""Execute lectures, in place and reproducibly, or under fresh seeds without storing anything.

``python -m flbook.book.executor run [LECTURES]`` executes each notebook on one core with one thread, writes it only if
every cell ran and every claim of its file was checked once and holds, and leaves an unchanged lecture's file as it is.

``python -m flbook.book.executor seeds "1 2" [LECTURES]`` executes each notebook once a seed, and prints the claims that
fell.

Both execute as many lectures at a time as there are cores, at most four unless ``--jobs`` says otherwise. What a
lecture costs is written where it ran alone.
"""

import argparse
import asyncio
import json
import math
import os
import queue
import re
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import nbformat
import psutil
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete, CellExecutionError, CellTimeoutError, DeadKernelError

from flbook.book import facts, kinds, lectures, ledger, template, tidy
from flbook.book.cost import cost
from flbook.claims import row, statements
from flbook.runs import files

CELL_SECONDS = 600
ANSWER_SECONDS = 30  # within which a kernel starts, takes up a cell, and replies once the cell is done, or works at it
WORKS = 0.02  # share of a processor that says so: on a crowded machine it gets little, but a silent one takes none

# The last cell of a run, never stored: what the kernel alone knows.
_PROBE = """
import json, os, pathlib, platform, resource, sys
torch = sys.modules.get("torch")
gpu = torch is not None and torch.cuda.is_initialized()
status = pathlib.Path("/proc/self/status")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if status.exists():  # where it does, the other number may be that of the process which started the kernel
    peak = 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
packages = "flbook torch numpy scipy xarray matplotlib".split()
versions = {name: str(sys.modules[name].__version__) for name in packages if name in sys.modules}
versions["python"] = platform.python_version()
device = torch.cuda.get_device_name() if gpu else "cpu"
seconds = sum(os.times()[:4])  # of the processor: what else the machine does is no cost of the lecture
print(json.dumps(dict(versions=versions, device=device, peak=peak, seconds=seconds)))
"""


class LectureError(RuntimeError):
    """A lecture that does not run through; says which notebook and cell, and why."""


class Silence(RuntimeError):
    """A kernel that does not start, or that runs and does not answer."""


class _Client(NotebookClient):
    """A client that knows by when its kernel has to give the next sign of life.

    A kernel says at once that it takes up a cell, may then compute for long, and replies as soon as it is idle again.
    """

    due = math.inf

    def expect(self, **_):
        self.due = time.monotonic() + ANSWER_SECONDS

    def rest(self, **_):
        self.due = math.inf

    def process_message(self, *message):
        self.rest()  # it computes; nbclient looks every second whether the process lives
        try:
            return super().process_message(*message)
        except CellExecutionComplete:
            self.expect()
            raise

    async def watched(self, **how):
        """Start the kernel and execute the notebook, and stop at the first silence."""
        self.create_kernel_manager()
        try:
            await self.async_start_new_kernel(**how)
            self.expect()
            await self.answered(self.async_start_new_kernel_client())
        except RuntimeError as error:
            raise Silence(str(error)) from None
        self.rest()
        return await self.answered(self.async_execute())

    async def answered(self, work):
        """Wait as long as the kernel answers in time, or works."""
        work, worked = asyncio.ensure_future(work), self.processor_seconds()
        while not (await asyncio.wait([work], timeout=1))[0]:
            if time.monotonic() <= self.due:
                continue
            before, worked = worked, self.processor_seconds()
            if worked - before < WORKS * ANSWER_SECONDS:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                if self.km and await ensure_async(self.km.is_alive()):  # where it was still starting
                    await ensure_async(self.km.shutdown_kernel(now=True))
                raise Silence(f"no answer in {ANSWER_SECONDS} s")
            self.expect()
        return work.result()

    def processor_seconds(self):
        """What the kernel's process has used; 0 once it is gone."""
        pid = getattr(getattr(self.km, "provisioner", None), "pid", None)
        try:
            return sum(psutil.Process(pid).cpu_times()[:2]) if pid else 0.0
        except psutil.Error:
            return 0.0


def execute(path, *, seed="", strict=True, allow_errors=False):
    """Execute a notebook's cells in a fresh kernel, or in a second one where the first falls silent.

    Returns the executed notebook (nothing is written) and what the kernel says of itself, its processor seconds too.
    """
    with suppress(Silence):
        return _execute(path, seed, strict, allow_errors)
    try:
        return _execute(path, seed, strict, allow_errors)
    except Silence as error:
        where = f"{path.parent.name}/{path.name}"
        raise LectureError(f"{where}: the kernel, started twice, does not answer: {error}.") from None


def _execute(path, seed, strict, allow_errors):
    try:
        nb = nbformat.read(path, as_version=4)
    except ValueError:
        raise LectureError(f"{path.parent.name}/{path.name} is not a notebook: it holds no JSON.") from None
    nb.cells.append(nbformat.v4.new_code_cell(_PROBE))
    at = [0]
    with tempfile.TemporaryDirectory(prefix="flbook-") as cache, one_core():
        client = _Client(
            nb,
            kernel_name="python3",
            startup_timeout=CELL_SECONDS,  # it is ended before, unless it works
            timeout=CELL_SECONDS,
            iopub_timeout=ANSWER_SECONDS,  # after the reply: without its outputs a cell is not executed
            raise_on_iopub_timeout=True,
            allow_errors=allow_errors,
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--log-level=50"],  # the kernel's own messages are not the lecture's
            resources={"metadata": {"path": str(path.parent)}},
            on_cell_start=lambda cell, cell_index: at.__setitem__(0, cell_index),
        )
        client.on_notebook_start = client.on_cell_execute = client.expect
        client.on_cell_executed = client.rest
        try:
            asyncio.run(client.watched(env=environment(cache, seed, strict)))
        except CellExecutionError as error:
            raise LectureError(f"{_where(path, nb, at[0])}: {error.ename}: {_plain(error.evalue)}") from None
        except DeadKernelError:
            raise LectureError(f"{_where(path, nb, at[0])}: the kernel died.") from None
        except CellTimeoutError as error:
            if "IOPub" in str(error):
                raise Silence(f"no outputs in {ANSWER_SECONDS} s") from None
            raise LectureError(f"{_where(path, nb, at[0])}: not done in {CELL_SECONDS} s.") from None
    probe = nb.cells.pop()
    return nb, json.loads(probe.outputs[-1].text)


def environment(cache, seed="", strict=True):
    """Environment of a lecture's kernel: one thread, an empty cache, and strict unless fresh seeds are tried."""
    dropped = ("FLBOOK_SEED", "FLBOOK_STRICT", "MPLBACKEND")
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    kept = {name: text for name, text in os.environ.items() if name not in dropped}
    return (
        kept
        | threads
        | {"FLBOOK_CACHE": cache}
        | ({"FLBOOK_SEED": seed} if seed else {"FLBOOK_STRICT": str(int(strict))})
    )


@contextmanager
def one_core():
    """Pin what is started inside to one core, where the system allows it; which one depends on the process."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[os.getpid() % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def stated(path):
    """The statements of a notebook's lecture, by name; none if it has no claims file."""
    file = _claims_file(path)
    try:
        found = statements.read(file) if file.is_file() else {}
        statements.check_cited(path.stem, found, lectures.bibliography(path.parents[1]))
    except ValueError as error:
        raise LectureError(str(error)) from None
    return found


def check_complete(path, found, records):
    """Refuse a page that leaves out a claim of its file, or checks one twice."""
    checked = [record["name"].partition(".")[2] for record in records]
    for name in found:
        if (times := checked.count(name)) != 1:
            said = "never" if not times else f"{times} times"
            raise LectureError(
                f"{path.parent.name}/{path.name}: the claim [{name}] is checked {said}; it must be once."
            )


def run(path, alone=True):
    """Execute one lecture and store it if it changed, its cost if it was `alone`; says in one line what happened."""
    found = stated(path)
    nb, probe = execute(path)
    check_complete(path, found, ledger.records(nb))
    warnings = tidy.warnings(nb)
    try:
        tidy.notebook(nb, {"versions": probe["versions"], "device": probe["device"]})
    except ValueError as error:
        raise LectureError(f"{path.name}: {error}") from None
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = cost(cell.source, probe["seconds"], probe["peak"], alone)
    facts.write(nb, path, lectures.papers(path.parents[1]))
    text = nbformat.writes(nb).rstrip("\n") + "\n"
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        _replace(path, text)
    held = sum(record["holds"] is True for record in ledger.records(nb))
    said = f"{probe['seconds']:.0f} s, {probe['peak'] / 1e9:.1f} GB, {held} claims hold"
    notes = [*warnings, *_drafts(ledger.records(nb)), *template.reminder(path)]
    return "\n".join([f"{said}, {'stored' if changed else 'unchanged'}", *(f"    {note}" for note in notes)])


def _drafts(records):
    """What was measured of the claims that have no book value yet, and how to put it in; a line each."""
    found = [record for record in records if record["kind"] == "claim" and record["book"] is None]
    if not found:
        return []
    lecture = found[0]["name"].partition(".")[0]
    return [
        *(f"{record['name']} measured {row.value(record)}, and has no book value yet" for record in found),
        f"`python -m flbook accept {lecture}` writes what was measured into its claims file",
    ]


def accept(path):
    """Execute one lecture, and write what it measured as the book's values into its claims file; says what moved.

    Nothing is written if a cell fails, or if a claim does not hold: a book value may be accepted, a claim may not.
    """
    found, file = stated(path), _claims_file(path)
    nb, _ = execute(path, strict=False)
    records = ledger.records(nb)
    check_complete(path, found, records)
    for record in records:
        if not record["acceptable"]:
            raise LectureError(f"{path.stem}, [{record['name'].partition('.')[2]}] does not hold: {record['note']}.")
    measured = [record for record in records if record["kind"] == "claim"]
    moved = [r for r in measured if r["book"] is None or not abs(r["value"] - r["book"]) <= r["tol"]]
    text = file.read_text(encoding="utf-8") if moved else ""
    for record in moved:
        text = _with_book(text, record["name"].partition(".")[2], row.exact(record))
    if moved:
        _check_accepted(path, text, moved)
        _replace(file, text)
    return [f"{record['name']}: {row.short(record['book'])} -> {row.exact(record)}" for record in moved]


def _check_accepted(path, text, moved):
    """Refuse a text of a claims file that does not have every new value where it belongs."""
    tables = tomllib.loads(text)
    for record in moved:
        name = record["name"].partition(".")[2]
        if tables[name].get("book") != float(row.exact(record)):
            raise LectureError(
                f"claims of {path.stem}, [{name}]: its table is not written line by line, so "
                f"book = {row.exact(record)} was not put in; write it by hand."
            )


def _claims_file(path):
    """The claims file beside the experiment of a notebook's lecture, in the same checkout."""
    return path.parents[2] / "lib/flbook/lectures" / path.parent.name / path.stem / "claims.toml"


def _with_book(text, name, value):
    """The text of a claims file with a book value in one table, put before its tolerance if there was none.

    Everything else, comments too, stays.
    """
    table = rf"(^\[{name}\][ \t]*(?:#.*)?\n(?:(?!\[).*\n)*?)"
    new, count = re.subn(rf"{table}book = \S+", rf"\g<1>book = {value}", text, count=1, flags=re.MULTILINE)
    if count:
        return new
    return re.sub(rf"{table}(?=r?tol = )", rf"\g<1>book = {value}\n", text, count=1, flags=re.MULTILINE)


def fallen(path, seed):
    """Execute one lecture under a fresh seed: the claims that fell, and the number compared."""
    try:
        nb, _ = execute(path, seed=seed, allow_errors=True)
    except LectureError as error:
        return [("-", "-", str(error))], 0
    records = [record for record in ledger.records(nb) if record["holds"] is not None]
    fell = [(r["name"], row.value(r), row.span(r["claim"])) for r in records if not r["holds"]]
    errors = [
        (f"cell {number}", "-", f"{error.ename}: {_plain(error.evalue)}")
        for number, cell in enumerate(nb.cells, start=1)
        for error in cell.get("outputs", [])
        if error.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", [])
    ]
    return fell + errors[:1], len(records)  # what follows the first error is mostly its consequence


def _where(path, nb, index):
    lines = [line for line in kinds.untitled(nb.cells[index].source).splitlines() if line.strip()] or [""]
    return f"{path.parent.name}/{path.name}, cell {index + 1} ({lines[0].strip()[:60]})"


def _plain(text):
    """An error's text in one line, without the colours of a terminal."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def _replace(path, text):
    """Write a file so that an interruption leaves the old one; who may read it stays as it is."""
    mode = path.stat().st_mode
    files.write(path, text.encode("utf-8"))
    os.chmod(path, mode)


def main(argv=None):
    """Command line of the executor; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m flbook.book.executor", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="execute lectures and store those that changed")
    many = commands.add_parser("seeds", help="execute lectures under fresh seeds; print the claims that fell")
    many.add_argument("seeds", help='seeds, as in "1 2 3"')
    for command in (one, many):
        command.add_argument("--jobs", type=_jobs, default=min(4, len(_cores())), help="lectures at a time")
        command.add_argument("lectures", nargs="*", help="names such as signal_noise/decomposition; default: all")
    arguments = parser.parse_args(argv)
    try:
        chosen = lectures.chosen(lectures.root(), " ".join(arguments.lectures).split())
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    if arguments.command == "run":
        lectures.write_cited(lectures.root())
        return _run_all(chosen, arguments.jobs)
    return _seeds_all(chosen, arguments.seeds.split(), arguments.jobs)


def _jobs(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"how many lectures at a time, at least 1; got {text}")
    return int(text)


def _cores():
    """The processor's cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else list(range(os.cpu_count() or 1))


def _side_by_side(work, items, jobs):
    """What `work` makes of each item, in order, so many at a time, each on a core of its own as far as they go."""
    cores, places = _cores(), queue.SimpleQueue()
    for job in range(jobs):
        places.put(cores[job % len(cores)])

    def settle():
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {places.get()})  # of this thread, and of the kernels that it starts

    with ThreadPoolExecutor(jobs, initializer=settle) as pool:
        yield from pool.map(work, items)


def _run_all(chosen, jobs):
    alone = jobs == 1 or len(chosen) == 1

    def said(path):
        try:
            return run(path, alone), 0
        except LectureError as error:
            return f"not stored\n    {error}", 1

    failed = 0
    for name, (text, missed) in zip(chosen, _side_by_side(said, chosen.values(), jobs), strict=True):
        failed += missed
        print(f"{name}: {text}", flush=True)
    return 1 if failed else 0


def _seeds_all(chosen, seeds, jobs):
    compared, total = 0, 0
    print(f"{'seed':<6}{'lecture':<40}{'claim':<44}{'value':<12}allowed")
    todo = [(seed, name) for seed in seeds for name in chosen]
    results = _side_by_side(lambda one: fallen(chosen[one[1]], one[0]), todo, jobs)
    for (seed, name), (fell, count) in zip(todo, results, strict=True):
        compared, total = compared + count, total + len(fell)
        for claim, value, allowed in fell:
            print(f"{seed:<6}{name:<40}{claim:<44}{value:<12}{allowed}", flush=True)
    print(f"{compared} claims compared in {len(chosen)} lectures under seeds {', '.join(seeds)}")
    print("no claim fell" if not total else f"{total} claim{'s' if total > 1 else ''} fell")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
