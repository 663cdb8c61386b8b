"""Timeouts of a fit on a cluster: no wait is unlimited.

There is one timeout, dask's setting `pairstep.timeout`. It limits how long the scheduler may take
to answer, how long a worker or a partition may be silent, and how long no worker may compute what a
fit waits for (see `ProgressWatch`). A worker that does not answer is unregistered, and dask moves
its tasks to others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import Client, Future, futures_of
from distributed.utils import wait_for

# The default of dask's setting pairstep.timeout.
DEFAULT_TIMEOUT = "30s"
# Number of checks per timeout whether workers still compute what a fit waits for. Each one is a
# request to the scheduler; with fewer checks, a stalled fit ends later.
CHECKS_PER_TIMEOUT = 10
# A worker counts as silent only after missing this many heartbeats, however short the timeout is: a
# single heartbeat may be late.
MISSED_HEARTBEATS = 3
NO_WORKERS_LEFT = "the cluster has no workers left"


def timeout() -> float:
    """Return the timeout in seconds."""
    return float(parse_timedelta(dask.config.get("pairstep.timeout", DEFAULT_TIMEOUT)))


async def query_scheduler(client: Client, query: Callable[[], Awaitable[Any]]) -> Any:
    """Return the scheduler's answer to a query; raise ConnectionError if there is none."""
    try:
        if client.status != "running":
            raise ConnectionError(f"the client is {client.status}")
        return await wait_for(query(), timeout())
    except OSError as error:
        raise ConnectionError(
            f"the dask scheduler of {client} is gone, so the fit cannot continue; connect a new "
            "client and fit again"
        ) from error


async def workers_of(client: Client) -> dict[str, int]:
    """Return the number of threads of each worker, by address."""
    found = await query_scheduler(client, lambda: client.scheduler.ncores(workers=None))
    return dict(sorted(found.items()))


async def abandon_worker(client: Client, worker: str) -> None:
    """Unregister a worker that dask may still consider alive, so that its tasks move elsewhere."""
    stimulus = f"pairstep-lost-{time.time()}"
    await query_scheduler(
        client, lambda: client.scheduler.unregister(address=worker, stimulus_id=stimulus)
    )


class ProgressWatch:
    """Checks that the workers compute some futures; `check` raises if no worker has for too long.

    A task may take any time while its worker sends heartbeats, and so may a transfer while data
    arrive.
    """

    def __init__(self, client: Client, futures: Sequence[Future], what: str):
        self.client, self.futures, self.what = client, futures, what
        self.copies = 0  # of the futures and their dependencies, on all workers
        self.last_progress = time.monotonic()

    async def check(self) -> None:
        """Check for progress, and unregister the workers of these tasks that are silent."""
        query = _progress_query([future.key for future in self.futures], timeout())
        busy, copies, silent = await query_scheduler(
            self.client, lambda: self.client.run_on_scheduler(query)
        )
        for worker in silent:
            await abandon_worker(self.client, worker)
        if busy or copies > self.copies:
            self.last_progress = time.monotonic()
            self.copies = copies
        elif time.monotonic() - self.last_progress > timeout():
            raise RuntimeError(await self._message())

    async def _message(self) -> str:
        if not await workers_of(self.client):
            return NO_WORKERS_LEFT
        return (
            f"{self.what}: no worker has computed this for {timeout():g} s. dask's dashboard shows "
            "tasks that no worker may run and workers that are busy with other tasks; dask's "
            "setting pairstep.timeout changes how long to wait"
        )


def _progress_query(
    keys: list[Any], max_silence: float
) -> Callable[..., tuple[bool, int, list[str]]]:
    """Return the function that the scheduler runs to report on these keys and their dependencies.

    It returns whether a worker is processing one, how many copies of them are on workers, and which
    of these workers have been silent for too long. It is a closure, which is sent by value, because
    pairstep may not be installed where the scheduler runs.
    """

    def report(dask_scheduler: Any) -> tuple[bool, int, list[str]]:
        from distributed.scheduler import heartbeat_interval

        tasks, workers = dask_scheduler.tasks, dask_scheduler.workers
        left = [tasks[key] for key in keys if key in tasks]
        known, concerned = set(left), set()
        busy, copies = False, 0
        while left:
            task = left.pop()
            if task.processing_on is not None:
                busy = True
                concerned.add(task.processing_on)
            copies += len(task.who_has or ())
            concerned.update(task.who_has or ())
            new = set(task.dependencies) - known
            known |= new
            left.extend(new)
        interval = heartbeat_interval(len(workers))
        oldest = time.time() - max(max_silence, MISSED_HEARTBEATS * interval)
        silent = [worker.address for worker in concerned if worker.last_seen < oldest]
        return busy, copies, silent

    return report


def compute(client: Client, collection: Any, name: str) -> Any:
    """Compute a dask collection; return anything else unchanged."""

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        return client.sync(gathered, client, client.get(graph, keys, sync=False, **options), name)

    (result,) = dask.compute(collection, traverse=False, scheduler=get)
    return result


async def gathered(client: Client, futures: Any, name: str) -> Any:
    """Return the results of futures and release them; raise their errors, or if they stall."""
    flat = futures_of(futures)
    watch = ProgressWatch(client, flat, name)
    work = asyncio.gather(client.gather(futures), return_exceptions=True)
    try:
        while not (await asyncio.wait([work], timeout=timeout() / CHECKS_PER_TIMEOUT))[0]:
            await watch.check()
        await workers_of(client)  # raises ConnectionError if the scheduler is gone
        (result,) = work.result()
        if isinstance(result, BaseException):
            raise result
        return result
    finally:
        for future in flat:
            future.release()  # also ends the coroutines that wait for the future
