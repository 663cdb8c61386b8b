"""Workers: calls in parallel on any joblib backend, by processes that end with their parent.

Only the parent answers Ctrl-C, and it ends its workers then. When it is killed and cannot, they
notice.
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

import joblib

BEAT = 0.2  # seconds between two looks at the parent


def in_parallel(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], each: Callable[[Any], None]
) -> None:
    """Call in parallel.

    Parameters
    ----------
    function : callable
        A function at the top level of its module.
    calls : iterable of tuple
        Its arguments, call by call.
    each : callable
        Told of each answer, as soon as it is ready where the joblib backend can do that.
    """
    tasks = [joblib.delayed(function)(*arguments) for arguments in calls]
    if not tasks:
        return
    _, n_jobs = joblib.parallel.get_active_backend()  # the caller's choice, else all cores
    options = {"n_jobs": n_jobs or -1, "initializer": end_with_parent}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:  # a backend that cannot hand out answers one by one
        for answer in joblib.Parallel(**options)(tasks):
            each(answer)
        return
    answers = None
    try:
        with warnings.catch_warnings():
            # Where psutil is installed, loky replaces a worker that has grown by 300 MB, as those
            # that hold matrices do, and warns of a leak.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
            with children_deaf_to_interrupts():
                answers = parallel(tasks)
            for answer in answers:
                each(answer)
    except BaseException as error:
        if answers is None:
            raise
        answers.throw(error)  # joblib ends the workers when it hears of an error, and raises it


@contextmanager
def children_deaf_to_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach; one that comes meanwhile is raised at the end.

    A terminal sends Ctrl-C to all of them, and a worker that is still importing prints a traceback.
    Processes inherit the mask of signals of the thread that starts them, from their first moment.
    """
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # to start it with the first worker would undo the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Let this worker end soon after the process that started it, however that one ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked worker has its parent's handler
        threading.Thread(target=watch, args=(parent,), daemon=True).start()


def watch(parent: BaseProcess) -> None:
    """End this process when its parent is gone."""
    if parent.sentinel is not None:
        parent.join()
    else:  # loky gives its workers nothing to wait for
        while os.getppid() == parent.pid:
            time.sleep(BEAT)
    os._exit(1)
