"""What commands share: how they are described, how they speak, where their output goes."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..files import replacing
from ..log import logger

DASH = "-"  # standard input or output


class Parser(argparse.ArgumentParser):
    """A parser that keeps the line breaks of examples and says in one line what is wrong."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """End with the exit code 2."""
        self.exit(complain(f"{message} (see {self.prog} --help)"))


def complain(message: str) -> int:
    """Say what is wrong; returns the exit code."""
    print(f"pairstep: {message}", file=sys.stderr)
    return 2


def first_line(error: object) -> str:
    """What an error says, in a line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def report(line: str, *outputs: str) -> None:
    """Print a line where it does not mix with the output: on stderr if that goes to stdout."""
    print(line, file=sys.stderr if DASH in outputs else sys.stdout, flush=True)


def require_writable(path: str) -> None:
    """Say at once that a file cannot be written, not only after hours of work."""
    folder = Path(os.path.realpath(path)).parent
    reason = None
    if path == DASH:
        return
    if os.path.isdir(path):
        reason = errno.EISDIR
    elif not folder.is_dir():
        reason = errno.ENOENT
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        reason = errno.EACCES
    if reason is not None:
        raise OSError(reason, os.strerror(reason), path)


@contextmanager
def output(path: str) -> Iterator[BinaryIO]:
    """A file to write to, or standard output; a file is there whole or not at all."""
    if path == DASH:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(path) as file:
            yield file


@contextmanager
def progress() -> Iterator[None]:
    """Show what the logger is told, each line in the place of the last; on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    handler = Ticker()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.clear()


class Ticker(logging.Handler):
    """Writes lines to one place on the screen."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        print(f"\r\x1b[K{record.getMessage()}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the place empty."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
