"""Shared by all commands: the argument parser, messages, output files and progress."""

from __future__ import annotations

import argparse
import difflib
import errno
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..files import replacing
from ..log import logger

DASH = "-"  # standard input or output


INVALID_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors on one line and suggests what was meant."""

    def __init__(self, **options: Any):
        # The raw formatter keeps the line breaks of the examples.
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments. Report unknown ones here, since only the command knows its options."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = next((text for text in unknown if text.startswith("-")), unknown[0])
            hint = did_you_mean(option, self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with code 2."""
        if choice := INVALID_CHOICE.search(message):
            message += did_you_mean(choice[1], choice[2].replace("'", "").split(", "))
        self.exit(complain(f"{message} (see {self.prog} --help)"))


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known word most similar to a given one, or nothing."""
    by_lower = {word.lower(): word for word in known}
    similar = difflib.get_close_matches(given.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[similar[0]]}?" if similar else ""


def complain(message: str) -> int:
    """Print an error message and return the exit code."""
    print(f"pairstep: {message}", file=sys.stderr)
    return 2


def first_line(error: object) -> str:
    """Return the first line of an error message, or the name of the error's class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def report(line: str, *outputs: str) -> None:
    """Print a line to stdout, or to stderr if one of the outputs of the command is stdout."""
    print(line, file=sys.stderr if DASH in outputs else sys.stdout, flush=True)


def require_writable(path: str) -> None:
    """Raise OSError if a file cannot be written. Called before long computations."""
    if path == DASH:
        return
    folder = Path(os.path.realpath(path)).parent
    reasons = {
        errno.EISDIR: os.path.isdir(path),
        errno.ENOENT: not folder.is_dir(),
        errno.EACCES: not os.access(path if os.path.exists(path) else folder, os.W_OK),
    }
    for reason, is_true in reasons.items():
        if is_true:
            raise OSError(reason, os.strerror(reason), path)


@contextmanager
def output(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing, or standard output.

    The file replaces an existing one only after it has been written completely.
    """
    if path == DASH:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(path) as file:
            yield file


@contextmanager
def progress() -> Iterator[None]:
    """Show log messages on one line of the terminal. Without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield
        return
    handler = logging.StreamHandler()
    handler.terminator = ""
    handler.setFormatter(logging.Formatter("\r\x1b[K%(message)s"))  # replaces the line
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
