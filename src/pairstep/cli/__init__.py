"""The `pairstep` command. Each subcommand has a module with its arguments and its `run` function.

User errors print one line to stderr, and the exit code is 2.
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
from . import info, predict, reproduce, solve, train, tune
from .command import Parser, complain, first_line
from .libsvm_options import translate

COMMANDS = (train, predict, tune, solve, info, reproduce)

INTERRUPTED = 128 + signal.SIGINT  # as shells report a process that a signal has ended

DESCRIPTION = """\
Support vector machines, and quadratic programs whose variables sum to a total.

  pairstep train data.svm model        fit an SVM to labeled samples
  pairstep predict test.svm model      predict with it and print its accuracy
  pairstep tune data.svm model         search for C and gamma, then fit
  pairstep solve problem.csv           find the weights of a portfolio or mixture
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    top = parser()
    options = top.parse_args(translate(given))
    if options.command is None:
        top.print_help()
        return 2
    options.line = shlex.join(["pairstep", *given])
    with warnings.catch_warnings():
        warnings.showwarning = warn
        # NumPy warns of overflow and invalid values. The results are checked anyway.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            code = int(options.run(options))
            print(end="", flush=True)
            return code
        except KeyboardInterrupt:
            print("\nInterrupted.", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:
            # The reader of our output has exited. At exit Python flushes what is still buffered.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return complain(f"{where}{error.strerror or error}")
        except MemoryError as error:
            return complain(f"not enough memory: {first_line(error)}")
        except (ValueError, TypeError, ImportError) as error:
            return complain(first_line(error))


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = Parser(
        prog="pairstep",
        description=DESCRIPTION,
        epilog="The help of each command has examples: pairstep train --help",
    )
    top.add_argument("--version", action="version", version=f"pairstep {__version__}")
    commands = top.add_subparsers(dest="command", metavar="command")
    for command in COMMANDS:
        command.add_to(commands)
    return top


def warn(message: Warning | str, *location: Any, **more: Any) -> None:
    """Print a warning on one line."""
    print(f"pairstep: {first_line(message)}", file=sys.stderr)
