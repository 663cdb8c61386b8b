"""`pairstep reproduce`: run the paper's experiments."""

from __future__ import annotations

import argparse
import signal
import sys
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..extras import needed
from ..figures import Figure
from .command import complain

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
    parser.set_defaults(run=run)


def seed(text: str) -> int:
    """Parse a nonnegative integer."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def run(options: argparse.Namespace) -> int:
    """Run the experiments; print system errors on one line."""
    needed("matplotlib", by="reproduce")
    from ..paper.experiment import QUICK, Scale
    from ..paper.reproduce import reproduce

    out: Path = options.out
    if out.exists() and not out.is_dir():
        return complain(f"--out {out} is not a folder")
    scale = QUICK if options.quick else Scale()
    if options.seeds:
        scale = replace(scale, seeds=tuple(dict.fromkeys(options.seeds)))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends the workers, like Ctrl-C
    try:
        print(reproduce(out, figures=options.figure, scale=scale, command=options.line))
    except KeyboardInterrupt:
        again = "run the same command again to continue"
        print(f"\nInterrupted. Finished parts are in {out / '.cache'}; {again}.", file=sys.stderr)
        return 128 + signal.SIGINT  # as shells report it
    except (OSError, Warning) as error:  # joblib warns if it cannot write to its cache
        place = getattr(error, "filename", None) or out
        return complain(f"{place}: {getattr(error, 'strerror', None) or error}")
    except BrokenExecutor:
        return complain(
            "a worker process was killed, perhaps for lack of memory; run the same command again "
            "to continue"
        )
    return 0
