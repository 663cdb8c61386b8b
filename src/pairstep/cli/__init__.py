"""The `pairstep` command: a file per subcommand, with its arguments and what it does.

What a user got wrong is told in one line, with the exit code 2.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from . import bench, info, predict, reproduce, solve, train, tune
from .command import Parser, complain, first_line
from .completion import Completion

COMMANDS = (train, predict, tune, solve, info, reproduce, bench)
INTERRUPTED, CLOSED = 128 + signal.SIGINT, 141  # as shells say it; the latter for SIGPIPE

DESCRIPTION = """\
Support vector machines, and quadratic programmes whose variables add up to a total.

  pairstep train data.svm model        fit a machine to labelled samples
  pairstep predict test.svm model      predict with it, and print how well
  pairstep tune data.svm model         search C and gamma first
  pairstep solve problem.csv           weights of a portfolio or mixture
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # a shell may close it
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    top = parser()
    options = top.parse_args(given)
    if options.command is None:
        top.print_help()
        return 2
    options.line = shlex.join(["pairstep", *given])
    with warnings.catch_warnings():
        warnings.showwarning = warn
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers, whose results are checked
        try:
            code = int(options.run(options))
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            print("\nInterrupted.", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:
            # Whoever read our output has gone; what is left of it has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return CLOSED
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return complain(f"{where}{error.strerror or error}")
        except MemoryError as error:
            return complain(f"not enough memory: {first_line(error)}")
        except (ValueError, TypeError, ImportError) as error:
            return complain(first_line(error))


def parser() -> argparse.ArgumentParser:
    """Describe what the command understands."""
    top = Parser(
        prog="pairstep",
        description=DESCRIPTION,
        epilog="Each command has examples: pairstep train --help",
    )
    top.add_argument("--version", action="version", version=f"pairstep {__version__}")
    top.add_argument("--completion", action=Completion)
    commands = top.add_subparsers(dest="command", metavar="command")
    for command in COMMANDS:
        command.add_to(commands)
    return top


def warn(message: Warning | str, *place: Any, **more: Any) -> None:
    """Print a warning in a line."""
    print(f"pairstep: {first_line(message)}", file=sys.stderr)
