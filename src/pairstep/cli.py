"""The `pairstep` command."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import __version__

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM  # as shells say it
GRACE = 10.0  # seconds that a run may take to end once it is told to


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["bench"]:
        return bench(given[1:])
    options = parser().parse_args(given)
    if options.command is None:
        parser().print_help()
        return 2
    return reproduce(options, shlex.join(["pairstep", *given]))


def parser() -> argparse.ArgumentParser:
    """Describe what the command understands."""
    top = argparse.ArgumentParser(
        prog="pairstep",
        description="Minimise functions of variables that add up to a fixed total.",
    )
    top.add_argument("--version", action="version", version=f"pairstep {__version__}")
    commands = top.add_subparsers(dest="command", metavar="command")
    commands.add_parser("bench", help="run a benchmark of a source checkout, such as `bench rules`")
    run = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and write a report",
        description="Run the paper's experiments and a few beyond it. Leaves CSV files, figures, "
        "claims.json and report.html in a folder. Interrupted, it continues where it stopped.",
    )
    run.add_argument(
        "--figure", metavar="NAME", action="append", help="only this one; may be repeated"
    )
    run.add_argument("--seeds", metavar="N", type=positive, help="number of seeds (default 4)")
    run.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("results"), help="default: results"
    )
    run.add_argument("--quick", action="store_true", help="small problems, within 20 seconds")
    run.add_argument(
        "--redraw", action="store_true", help="only draw anew, from the CSV files in DIR"
    )
    return top


def positive(text: str) -> int:
    """Read a whole number above 0."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def reproduce(options: argparse.Namespace, command: str) -> int:
    """Run `pairstep reproduce`; what the system refuses is said in a line."""
    kept = f" Finished parts are in {options.out / '.parts'}; the same command continues."
    farewell = f"\nInterrupted.{'' if options.redraw else kept}"
    try:
        with terminated_like_interrupted(farewell):
            return experiment(options, command)
    except KeyboardInterrupt as stop:
        print(farewell, file=sys.stderr)
        return int(stop.args[0]) if stop.args else INTERRUPTED
    except OSError as error:
        return complain(f"{error.filename or options.out}: {error.strerror or error}")
    except BrokenExecutor:
        return complain(
            "a worker was killed, perhaps for want of memory; the same command continues"
        )


def experiment(options: argparse.Namespace, command: str) -> int:
    """Measure and draw, or only draw."""
    if importlib.util.find_spec("matplotlib") is None:
        return complain("drawing needs matplotlib: pip install 'pairstep[plots]'")
    from . import experiments
    from .experiments.experiment import QUICK, Scale

    out: Path = options.out
    unknown = set(options.figure or ()) - set(experiments.EXPERIMENTS)
    if unknown:
        there = ", ".join(experiments.EXPERIMENTS)
        return complain(f"no figure {', '.join(sorted(unknown))}; there are {there}")
    if out.exists() and not out.is_dir():
        return complain(f"--out {out} is not a folder")
    if options.redraw:
        if not (out / "claims.json").exists():
            return complain(f"there is nothing to draw in {out}: no claims.json")
        try:
            print(experiments.redraw(out))
        except ValueError as error:
            return complain(str(error))
        return 0
    scale = QUICK if options.quick else Scale()
    if options.seeds:
        scale = replace(scale, seeds=options.seeds)
    print(experiments.reproduce(out, figures=options.figure, scale=scale, command=command))
    return 0


@contextmanager
def terminated_like_interrupted(farewell: str) -> Iterator[None]:
    """Let SIGTERM end a run in the way of Ctrl-C, which ends the workers too.

    A pool of processes that is interrupted at a bad moment waits for ever: after a while the run
    ends without it, and its workers notice.
    """

    def leave() -> None:
        print(farewell, file=sys.stderr, flush=True)
        os._exit(TERMINATED)

    insist = threading.Timer(GRACE, leave)
    insist.daemon = True

    def stop(number: int, frame: object) -> None:
        if not insist.is_alive():
            insist.start()
        raise KeyboardInterrupt(TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        insist.cancel()


def bench(arguments: list[str]) -> int:
    """Run a module of `benchmarks`, which only a source checkout has."""
    root = next(
        (p for p in (Path.cwd(), Path(__file__).parents[2]) if (p / "benchmarks").is_dir()), None
    )
    if root is None:
        return complain("benchmarks are in the source checkout of pairstep: run this from there")
    names = sorted(p.stem for p in (root / "benchmarks").glob("[!_]*.py"))
    if not arguments or arguments[0] not in names:
        return complain(f"say which benchmark to run: {', '.join(names)}")
    sys.path.insert(0, str(root))
    sys.argv = [f"pairstep bench {arguments[0]}", *arguments[1:]]
    runpy.run_module(f"benchmarks.{arguments[0]}", run_name="__main__", alter_sys=True)
    return 0


def complain(message: str) -> int:
    """Say what is wrong."""
    print(f"pairstep: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
