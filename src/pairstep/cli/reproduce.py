"""`pairstep reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
import importlib.util
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

from .command import complain

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM  # as shells say it
GRACE = 10.0  # seconds that a run may take to end once it is told to
FIGURES = (
    "figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "theory", "scaling",
    "support_vectors", "simplex", "weights",
)  # fmt: skip

EXAMPLES = """\
examples:
  pairstep reproduce --quick --out /tmp/results
  pairstep reproduce --figure figure1 --figure theory --seeds 3 7 9

figures:
"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and write a report",
        description="Run the paper's experiments and a few beyond it. Leaves CSV files, figures,\n"
        "claims.json and report.html in a folder. Interrupted, it continues where it stopped.",
        epilog=f"{EXAMPLES}  {', '.join(FIGURES)}",
    )
    parser.add_argument(
        "--figure", metavar="NAME", action="append", choices=FIGURES,
        help="only this one; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", metavar="SEED", type=seed, nargs="+",
        help="of the random problems (default: 0 1 2 3)",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("results"), help="default: results"
    )
    parser.add_argument("--quick", action="store_true", help="small problems, within 20 seconds")
    parser.add_argument(
        "--redraw", action="store_true", help="only draw anew, from the CSV files in DIR"
    )
    parser.set_defaults(run=run)


def seed(text: str) -> int:
    """Read a whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def run(options: argparse.Namespace) -> int:
    """Run it; what the system refuses is said in a line."""
    kept = f" Finished parts are in {options.out / '.parts'}; the same command continues."
    farewell = f"\nInterrupted.{'' if options.redraw else kept}"
    try:
        with terminated_like_interrupted(farewell):
            return experiment(options)
    except KeyboardInterrupt as stop:
        print(farewell, file=sys.stderr)
        return int(stop.args[0]) if stop.args else INTERRUPTED
    except OSError as error:
        return complain(f"{error.filename or options.out}: {error.strerror or error}")
    except BrokenExecutor:
        return complain(
            "a worker was killed, perhaps for want of memory; the same command continues"
        )


def experiment(options: argparse.Namespace) -> int:
    """Measure and draw, or only draw."""
    if importlib.util.find_spec("matplotlib") is None:
        return complain("drawing needs matplotlib: pip install 'pairstep[plots]'")
    from .. import experiments
    from ..experiments.experiment import QUICK, Scale

    out: Path = options.out
    if out.exists() and not out.is_dir():
        return complain(f"--out {out} is not a folder")
    if options.redraw:
        if not (out / "claims.json").exists():
            return complain(f"there is nothing to draw in {out}: no claims.json")
        print(experiments.redraw(out))
        return 0
    scale = QUICK if options.quick else Scale()
    if options.seeds:
        scale = replace(scale, seeds=tuple(dict.fromkeys(options.seeds)))
    print(experiments.reproduce(out, figures=options.figure, scale=scale, command=options.line))
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
