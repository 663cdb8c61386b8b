"""Show progress on a terminal: a bar if rich is installed, otherwise lines. Silent in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` tasks are done. Yields a function to call after each."""
    if not sys.stderr.isatty():
        yield lambda label: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
    except ImportError:
        yield plain(total)
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "{task.description}"
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda label: bar.update(task, advance=1, description=label)


def plain(total: int) -> Callable[[str], None]:
    """Return a function that prints a line after each task."""
    began, count = time.monotonic(), 0

    def done(label: str) -> None:
        nonlocal count
        count += 1
        elapsed = time.monotonic() - began
        print(f"[{count}/{total}] {elapsed:5.1f} s  {label}", file=sys.stderr, flush=True)

    return done
