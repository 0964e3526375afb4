"""The command line of flbook: the ledger of claims, the experiments, and runs of them.

python -m flbook ledger                                   every claim of the lectures, and its verdict
python -m flbook accept relu_heatmap                      write new book values, where the claims hold
python -m flbook list                                     the experiments
python -m flbook run relu_heatmap --scale paper           run one, and keep its result in a file
"""

import argparse
import ast
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
        print("flbook: stopped; the same command resumes where it was.", file=sys.stderr)
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
    """Print the experiments, one a line."""
    from flbook.runs import settings

    for name, file in settings.homes().items():
        tree = ast.parse(file.read_text("utf-8"))
        if arguments.scale is None or _has_preset(tree, arguments.scale):
            print(f"{name:<48}{(ast.get_docstring(tree) or '').partition(chr(10))[0]}".rstrip())
    return 0


def run(arguments):
    """Run one experiment and write its result."""
    from flbook.runs import files, results, settings

    try:
        experiment = settings.find(arguments.experiment)
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    name = experiment.__name__.rpartition(".")[2]
    preset = getattr(experiment.Setting, arguments.scale, None)
    if preset is None:
        raise ValueError(f"the experiment {name!r} has no {arguments.scale} scale.")
    if arguments.store and (arguments.scale != "paper" or arguments.out):
        raise ValueError("--store keeps the paper scale in its lecture's folder; it takes --scale paper and no --out.")
    out = Path(arguments.out or f"{name}-{arguments.scale}.nc")
    out = results.path(arguments.experiment) if arguments.store else out
    if not out.parent.is_dir():
        raise ValueError(f"--out is {str(out)!r}, but there is no folder {str(out.parent)!r}.")

    begin = time.perf_counter()
    with _pool(arguments.workers) as pool:
        how = {} if pool is None else {"executor": pool}
        how |= {"chunk": dict(arguments.chunk)} if arguments.chunk else {}
        dataset = experiment.run(preset(), device=arguments.device, **how)
    trim = getattr(experiment, "stored", None) if arguments.scale == "paper" else None
    kept = trim(dataset) if trim else dataset
    command = f"python -m flbook run {name} --scale {arguments.scale} --device {arguments.device}"
    kept = kept.assign_attrs({**dataset.attrs, **kept.attrs, "command": command})
    files.save(kept, out)
    print(f"{name} at the {arguments.scale} scale on {arguments.device}: {time.perf_counter() - begin:.0f} s")
    for variable, values in kept.data_vars.items():
        if values.dtype.kind in "iufb":
            print(f"    {variable:<24}{float(values.min()):.4g} to {float(values.max()):.4g}")
    print(f"written to {out} ({out.stat().st_size / 1e3:.0f} kB)")
    return 0


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


def _has_preset(tree, scale):
    """Whether the source of an experiment gives its Setting a preset of this name."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Setting")
    return any(isinstance(node, ast.FunctionDef) and node.name == scale for one in classes for node in one.body)


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
        description="Execute a lecture; where its claims hold, write what moved as book values. Read the difference.",
    )
    one.add_argument("lecture", metavar="LECTURE", help="its name, such as relu_heatmap")
    one.set_defaults(act=accept)

    one = commands.add_parser("list", help="the experiments", description="Print the experiments, one a line.")
    one.add_argument("--scale", choices=("book", "paper"), help="only those that have this preset")
    one.set_defaults(act=listing)

    one = commands.add_parser(
        "run",
        help="run an experiment and write its result to a file",
        description="Run an experiment and write its result as one netCDF file. An interrupted run resumes.",
        epilog="Open the file with xarray.open_dataset, or draw it with flbook.plots.",
    )
    one.add_argument("experiment", metavar="EXPERIMENT", help="its name, as `python -m flbook list` prints it")
    one.add_argument("--scale", choices=("book", "paper"), default="book", help="its preset (default: book)")
    one.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where to compute (default: cpu)")
    one.add_argument("--workers", type=_count, default=1, metavar="N", help="processes to share the work (default: 1)")
    one.add_argument("--chunk", action="append", type=_width, metavar="AXIS=N", help="at most N values of it a chunk")
    one.add_argument("--out", metavar="FILE", help="the file (default: EXPERIMENT-SCALE.nc in this folder)")
    one.add_argument("--store", action="store_true", help="keep it in its lecture's folder, as the stored result")
    one.set_defaults(act=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
