"""Parallel calls on any joblib backend, in processes that exit with their parent.

Only the parent handles Ctrl-C, and then ends its workers. If the parent is killed, the workers
notice and exit.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from ..extras import needed

joblib = needed("joblib", by="reproduce")

PARENT_CHECK_SECONDS = 0.2  # between two checks whether the parent is alive


def in_parallel(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], each: Callable[[Any], None]
) -> None:
    """Call a function in parallel.

    Parameters
    ----------
    function : callable
        A function at the top level of its module.
    calls : iterable of tuple
        The arguments of each call.
    each : callable
        Called with each result, as soon as it is ready if the joblib backend supports that.
    """
    tasks = [joblib.delayed(function)(*arguments) for arguments in calls]
    if not tasks:
        return
    _, n_jobs = joblib.parallel.get_active_backend()  # set by the caller, or None for all cores
    options = {"n_jobs": n_jobs or -1, "initializer": end_with_parent}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:  # the backend cannot return results one by one
        for result in joblib.Parallel(**options)(tasks):
            each(result)
        return
    results = None
    try:
        with warnings.catch_warnings():
            # If psutil is installed, loky replaces a worker that has grown by 300 MB and warns of a
            # leak. Workers that hold matrices grow that much.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
            with interrupts_blocked_in_children():
                results = parallel(tasks)
            for result in results:
                each(result)
    except BaseException as error:
        if results is None:
            raise
        results.throw(error)  # makes joblib end the workers and raise the error


@contextmanager
def interrupts_blocked_in_children() -> Iterator[None]:
    """Block Ctrl-C in the processes that are started here. It reaches this one at the end.

    A terminal sends Ctrl-C to all processes, and a worker that is still importing would print a
    traceback. A process inherits the signal mask of the thread that starts it.
    """
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # otherwise it starts with the first worker and unblocks
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Make this worker exit soon after the process that started it, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        signal.signal(
            signal.SIGTERM, signal.SIG_DFL
        )  # a forked worker inherits its parent's handler
        threading.Thread(target=watch, args=(parent,), daemon=True).start()


def watch(parent: BaseProcess) -> None:
    """Exit when the parent is gone."""
    if parent.sentinel is not None:
        parent.join()
    else:  # loky's workers have no handle of the parent to wait for
        while os.getppid() == parent.pid:
            time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)
