"""The command line of flbook: the ledger of claims, the experiments, and runs of them.

python -m flbook ledger                                   every claim of the lectures, and its verdict
python -m flbook accept relu_heatmap                      write new book values, where the claims hold
python -m flbook list                                     the experiments and their presets, and what these cost
python -m flbook run relu_heatmap --scale paper           run one, and keep its result in a file
python -m flbook run my_file.py --dry-run                 the same for an experiment of one's own
python -m flbook cost relu_heatmap                        measure what its presets cost
python -m flbook observe my_net.py:make --data my.npz     write a report on a network of one's own
"""

import argparse
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path


def main(argv=None):
    """Run one command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        status = arguments.act(arguments)
        sys.stdout.flush()  # here, where a reader that has gone away can still be noticed
        return status
    except BrokenPipeError:  # as in `list | head`; what is still to be written at exit goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, RuntimeError, OSError) as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        rest = "nothing was written" if arguments.act is observe else "the same command resumes where it was"
        print(f"flbook: stopped; {rest}.", file=sys.stderr)
        return 130


def ledger(arguments):
    """Print every claim and what was measured."""
    from flbook.book import ledger as book

    records = book.collect()
    print(book.as_json(records) if arguments.json else book.as_text(records))
    return 0


def accept(arguments):
    """Execute a lecture and write what it measured into its claims file."""
    from flbook.book import executor, lectures

    try:
        (path,) = lectures.chosen(lectures.root(), [arguments.lecture]).values()
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    moved = executor.accept(path)
    print("\n".join(moved) or "no book value moved by more than its tolerance")
    return 0


def listing(arguments):
    """Print every preset of every experiment: its size, what it took or is estimated to take, and on which device."""
    from flbook.runs import costs

    shelf = _shelf()
    known, names = costs.read(_costs(shelf)), shelf.chosen(arguments.names)
    for name in names:
        presets = {preset: cost for preset, cost in known.get(name, {}).items()
                   if arguments.scale in (None, preset)}
        if presets or arguments.scale is None:
            print(f"{name:<52}{shelf.says(name)}".rstrip())
        for row in _rows(presets):
            print(row)
    return 0


def cost(arguments):
    """Measure what presets cost, and write it where `list` reads it."""
    from flbook.runs import costs

    shelf = _shelf()
    for name in shelf.chosen(arguments.names):
        found = costs.costs(shelf.find(name))
        costs.write(_costs(shelf), costs.read(_costs(shelf)) | {name: found})
        print(name, *_rows(found), sep="\n", flush=True)
    return 0


def run(arguments):
    """Run one experiment and write its result."""
    from flbook.runs import files

    try:
        experiment = _shelf().find(arguments.experiment)
        setting = experiment.setting(arguments.scale)
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    name = experiment.name.rpartition("/")[2]
    if arguments.store and arguments.out:
        raise ValueError("--store keeps the result beside its experiment; it takes no --out.")
    usual = f"{name.replace(':', '_')}-{arguments.scale}.nc"
    out = _file(experiment.path(preset=arguments.scale) if arguments.store else arguments.out or usual)
    how = {"device": arguments.device, "chunk": dict(arguments.chunk or experiment.chunk)}
    if arguments.dry_run:
        return _dry(experiment, setting, out, how)

    begin = time.perf_counter()
    with _pool(arguments.workers) as pool:
        dataset = experiment.run(setting, executor=pool, **how)
    whole = arguments.scale != experiment.larger and not arguments.store
    kept = dataset if whole else experiment.trimmed(dataset)
    kept = kept.assign_attrs(command=experiment.command(arguments.scale, arguments.device))
    files.save(kept, out)
    print(f"{name} at the {arguments.scale} scale on {arguments.device}: {time.perf_counter() - begin:.0f} s")
    for variable, values in kept.data_vars.items():
        if values.dtype.kind in "iufb":
            print(f"    {variable:<24}{float(values.min()):.4g} to {float(values.max()):.4g}")
    if kept.attrs.get("not_finite"):
        print(f"    not finite              {kept.attrs['not_finite']}")
    print(f"written to {out} ({out.stat().st_size / 1e3:.0f} kB)")
    return 0


def observe(arguments):
    """Write a report on a network of one's own."""
    out = _file(arguments.out or f"{arguments.network.rpartition(':')[2]}-report.html")
    from flbook import report

    begin = time.perf_counter()
    figures = report.write(arguments.network, arguments.data, str(out), arguments.loss, arguments.checkpoints,
                           arguments.device)
    print(f"{figures} figures in {time.perf_counter() - begin:.0f} s, written to {out} "
          f"({out.stat().st_size / 1e3:.0f} kB)")
    return 0


def _file(name):
    """A file that can be written, as far as one sees before any work."""
    out = Path(name)
    if not out.parent.is_dir():
        raise ValueError(f"--out is {str(out)!r}, but there is no folder {str(out.parent)!r}.")
    if out.is_dir():
        raise ValueError(f"--out must name a file, but {str(out)!r} is a folder.")
    return out


def _dry(experiment, setting, out, how):
    """Say what a run would do, and refuse what it would refuse."""
    from flbook.runs import closure, costs
    from flbook.runs.sweep import plan

    chunks = plan(experiment.whole, setting, **how)
    print(f"{experiment.name}, version {experiment.version}, "
          f"digest {experiment.source} of {len(experiment.files)} files")
    here = sum(chunk.path.exists() for chunk in chunks)
    print(f"    {costs.size(setting)} cells in {len(chunks)} chunks, {here} of them in the cache")
    print(f"    would be computed on {how['device']} and written to {out}")
    for line in closure.unseen(experiment.files):
        print(f"    not followed, a module is imported by a computed name: {line}")
    return 0


def _rows(presets):
    """A line for what each preset costs."""
    return [f"    {preset:<12} {cost}" for preset, cost in presets.items()]


def _shelf():
    from flbook import lectures
    from flbook.runs.shelf import Shelf

    return Shelf(lectures)


def _costs(shelf):
    return Path(shelf.package.__path__[0], "costs.json")


def _pool(workers):
    """Processes that share this machine's threads; a spawned one starts clean, which CUDA and OpenMP both need."""
    if workers == 1:
        return nullcontext()
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for library in ("OMP", "MKL"):  # read by the workers when they import torch
        os.environ[f"{library}_NUM_THREADS"] = str(max(1, cores // workers))
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _width(text):
    axis, _, width = text.partition("=")
    return axis, _count(width)


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m flbook", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    one = commands.add_parser(
        "ledger",
        help="every claim of the lectures: theory, our number, strongest rival, verdict",
        description="Print the claims that the lectures' stored notebooks checked. Call it inside a checkout.",
    )
    one.add_argument("--json", action="store_true", help="one JSON object a line, with the values per seed")
    one.set_defaults(act=ledger)

    one = commands.add_parser(
        "accept",
        help="write a lecture's new numbers into its claims file",
        description="Execute a lecture; where its claims hold, write what is new or moved as book values. Read it.",
    )
    one.add_argument("lecture", metavar="LECTURE", help="its name, such as relu_heatmap")
    one.set_defaults(act=accept)

    one = commands.add_parser(
        "list",
        help="the experiments, their presets, and what these cost",
        description="Print every preset of every experiment: size, time, memory, device. Nothing is run.",
    )
    one.add_argument("names", nargs="*", metavar="NAME", help="a chapter, a lecture or an experiment (default: all)")
    one.add_argument("--scale", metavar="PRESET", help="only those that have this preset")
    one.set_defaults(act=listing)

    one = commands.add_parser(
        "cost",
        help="measure what presets cost, for `list`",
        description="Run the book's preset of experiments and parts of the others, and write down time and memory.",
    )
    one.add_argument("names", nargs="*", metavar="NAME", help="a chapter, a lecture or an experiment (default: all)")
    one.set_defaults(act=cost)

    one = commands.add_parser(
        "run",
        help="run an experiment and write its result to a file",
        description="Run an experiment and write its result as one netCDF file. An interrupted run resumes.",
        epilog="Open the file with xarray.open_dataset, or draw it with flbook.plots.",
    )
    one.add_argument("experiment", metavar="EXPERIMENT", help="its name, as `list` prints it, or FILE.py[:NAME]")
    one.add_argument("--scale", default="book", metavar="PRESET", help="its preset (default: book)")
    one.add_argument("--dry-run", action="store_true", help="say what would be computed, and compute nothing")
    one.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where to compute (default: cpu)")
    one.add_argument("--workers", type=_count, default=1, metavar="N", help="processes to share the work (default: 1)")
    one.add_argument("--chunk", action="append", type=_width, metavar="AXIS=N", help="at most N values of it a chunk")
    one.add_argument("--out", metavar="FILE", help="the file (default: EXPERIMENT-SCALE.nc in this folder)")
    one.add_argument("--store", action="store_true", help="keep it beside its experiment, as a stored result")
    one.set_defaults(act=run)
    _observer(commands)
    return parser


def _observer(commands):
    one = commands.add_parser(
        "observe",
        help="write a report on a network of one's own: one HTML page",
        description="Observe a network on data and write a report, one HTML page that asks for nothing else. "
        "Nothing is executed but the network's own file.",
    )
    one.add_argument("network", metavar="FILE.py:FUNCTION", help="a function that returns a torch.nn.Module")
    one.add_argument("--data", required=True, metavar="FILE.npz", help="an array x of inputs and an array y of labels")
    one.add_argument("--loss", metavar="LOSS", help="cross-entropy, logistic or squared (default: by the labels)")
    one.add_argument("--checkpoints", nargs="+", default=(), metavar="PATH",
                     help="state dicts of torch or safetensors, or folders of them: training over time")
    one.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where to compute (default: cpu)")
    one.add_argument("--out", metavar="FILE", help="the page (default: FUNCTION-report.html in this folder)")
    one.set_defaults(act=observe)


if __name__ == "__main__":
    sys.exit(main())
