"""`pairstep reproduce`: run the paper's experiments."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..extras import needed
from ..figures import Figure
from .command import complain

# Exit codes of a process that a signal has ended, as shells report them.
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM

# Seconds that a run has to end its workers after SIGTERM, before it exits without waiting.
SHUTDOWN_SECONDS = 10.0

EXAMPLES = """\
examples:
  pairstep reproduce --quick --out /tmp/results
  pairstep reproduce --figure figure1 --figure theory --seeds 3 7 9

figures:
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and write a report",
        description="Run the paper's experiments and a few more. Writes CSV files, figures,\n"
        "claims.json and report.html to a folder. Run it again to continue after an interrupt.",
        epilog=f"{EXAMPLES}  {', '.join(Figure)}",
    )
    parser.add_argument(
        "--figure", metavar="NAME", action="append", choices=[figure.value for figure in Figure],
        help="run only this experiment; can be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", metavar="SEED", type=seed, nargs="+",
        help="seeds of the random problems (default: 0 to 9; with --quick: 0 1)",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results"),
        help="folder for the results (default: results)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small problems and two seeds, without verdicts; less than 30 seconds",
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="only redraw the figures and the report from the files in DIR",
    )
    parser.set_defaults(run=run)


def seed(text: str) -> int:
    """Parse a nonnegative integer."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def run(options: argparse.Namespace) -> int:
    """Run the experiments; print system errors on one line."""
    folder = options.out / ".parts"
    kept = f" Finished parts are in {folder}; run the same command again to continue."
    message = f"\nInterrupted.{'' if options.redraw else kept}"
    try:
        with terminated_like_interrupted(message):
            return experiment(options)
    except KeyboardInterrupt as stop:
        print(message, file=sys.stderr)
        return int(stop.args[0]) if stop.args else INTERRUPTED
    except OSError as error:
        return complain(f"{error.filename or options.out}: {error.strerror or error}")
    except BrokenExecutor:
        return complain(
            "a worker process was killed, perhaps for lack of memory; run the same command again "
            "to continue"
        )


def experiment(options: argparse.Namespace) -> int:
    """Measure and draw, or only draw; return the exit code."""
    needed("matplotlib", by="reproduce")
    from ..paper import reproduce
    from ..paper.experiment import QUICK, Scale

    out: Path = options.out
    if out.exists() and not out.is_dir():
        return complain(f"--out {out} is not a folder")
    if options.redraw:
        if not (out / "claims.json").exists():
            return complain(f"{out} has no claims.json to draw from; run without --redraw first")
        print(reproduce.redraw(out))
        return 0
    scale = QUICK if options.quick else Scale()
    if options.seeds:
        scale = replace(scale, seeds=tuple(dict.fromkeys(options.seeds)))
    print(reproduce.reproduce(out, figures=options.figure, scale=scale, command=options.line))
    return 0


@contextmanager
def terminated_like_interrupted(message: str) -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, which also ends the workers.

    A process pool can wait forever if it is interrupted at an unlucky moment. So a timer ends this
    process if the shutdown takes too long; the workers exit when their parent is gone.
    """

    def leave() -> None:
        print(message, file=sys.stderr)
        os._exit(TERMINATED)

    timer = threading.Timer(SHUTDOWN_SECONDS, leave)
    timer.daemon = True

    def stop(number: int, frame: object) -> None:
        if not timer.is_alive():
            timer.start()
        raise KeyboardInterrupt(TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        timer.cancel()
