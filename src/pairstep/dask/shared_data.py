"""Independent tasks on the same data, on workers that may be lost at any moment.

The data are the result of a task of their own, which is part of the graph on the scheduler. When
all workers with the data are lost, the scheduler sends them again and restarts the tasks that
needed them. Scattered data exist only on workers and are lost with the last of them.
"""

from __future__ import annotations

import pickle
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import cloudpickle
from distributed import Client, Future, KilledWorker

from .waiting import CHECKS_PER_TIMEOUT, ProgressWatch, gathered, timeout

Call = tuple[Any, ...]


class Submitted(NamedTuple):
    """A task that has not ended. It holds the future of its data, so that dask keeps them."""

    call: Call
    data: Future
    finished: int  # number of tasks that had finished when this one was submitted


def call_all(
    client: Client, function: Callable[..., Any], data: Any, calls: Iterable[Call], name: str,
    options: dict[str, Any],
) -> Iterator[Any]:  # fmt: skip
    """Yield the result of `function(data, *call)` for each call, as soon as it is known.

    Data are sent to each worker that needs them once. `options` are those of `Client.submit`.

    dask gives up a task after a few workers died that were to run it (its setting
    `distributed.scheduler.allowed-failures`), even if the task had not begun on any of them. It is
    submitted again if another task has finished in the meantime. Otherwise `KilledWorker` is
    raised, because the task itself may be what ends the workers.
    """
    ended: SimpleQueue[Future] = SimpleQueue()
    running: dict[Future, Submitted] = {}
    finished = 0

    def submit(calls: Iterable[Call]) -> None:
        def task(of: Callable[..., Any], name: str, *arguments: Any) -> Future:
            return client.submit(of, *arguments, key=f"{name}-{uuid.uuid4().hex}", **options)

        with warnings.catch_warnings():
            # dask advises against data in the graph, but only there can they not be lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            shared = task(pickle.loads, f"{name}-data", cloudpickle.dumps(data))
        for call in calls:
            future = task(function, name, shared, *call)
            running[future] = Submitted(call, shared, finished)
            future.add_done_callback(ended.put)

    submit(calls)
    try:
        while running:
            future = _first(client, ended, list(running), name)
            submitted = running.pop(future)
            try:
                result = client.sync(gathered, client, future, name)
            except KilledWorker:
                if finished == submitted.finished:
                    raise
                submit([submitted.call])
                continue
            finished += 1
            yield result
    finally:
        for future in running:
            future.release()


def _first(client: Client, ended: SimpleQueue[Future], running: list[Future], name: str) -> Future:
    """Return the first future of a task that ended, whether it succeeded or not."""
    watch = ProgressWatch(client, running, name)
    while True:
        try:
            return ended.get(timeout=timeout() / CHECKS_PER_TIMEOUT)
        except Empty:
            client.sync(watch.check)
