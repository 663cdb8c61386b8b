"""Run a function in a forked process with a time limit."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable


def in_child(work: Callable[[Callable[[object], None]], None], budget: float):
    """Yield what `work` sends from a forked process.

    The process is killed if it sends nothing within the budget, in seconds.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        warnings.simplefilter("ignore")
        work(there.send)

    child = context.Process(target=run, daemon=True)
    child.start()
    there.close()
    try:
        while here.poll(budget):
            yield here.recv()
        yield "timeout"
    except EOFError:
        child.join()
        if child.exitcode:
            yield f"crashed ({child.exitcode})"
    finally:
        child.kill()
        child.join()
