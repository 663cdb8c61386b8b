"""How long a fit waits for dask: never without end.

There is one span, dask's setting `pairstep.timeout`. So long the scheduler may take to answer, a
worker to answer a call, and a share to say that it is at work; and for so long nobody may compute
what a fit waits for, see `Watch`. A worker that does not answer is given up, and dask gives what it
had to do to others.
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

SPAN = "30s"  # unless dask's setting pairstep.timeout says otherwise
GLANCES = 10  # so many times in that span it is looked whether workers compute what is waited for
NOBODY = "the cluster has no workers left"


def span() -> float:
    """Seconds."""
    return float(parse_timedelta(dask.config.get("pairstep.timeout", SPAN)))


async def scheduler_says(client: Client, asked: Callable[[], Awaitable[Any]]) -> Any:
    """The answer to a question that is asked of the scheduler."""
    try:
        if client.status != "running":
            raise ConnectionError(f"the client is {client.status}")
        return await wait_for(asked(), span())
    except OSError as error:
        raise ConnectionError(
            f"the dask scheduler of {client} is gone: a fit over the cluster cannot go on"
        ) from error


async def workers_of(client: Client) -> dict[str, int]:
    """Workers by their addresses, and their numbers of threads."""
    found = await scheduler_says(client, lambda: client.scheduler.ncores(workers=None))
    return dict(sorted(found.items()))


async def give_up(client: Client, worker: str) -> None:
    """Have dask do without a worker, which it may think is still there, with its data."""
    stimulus = f"pairstep-lost-{time.time()}"
    await scheduler_says(
        client, lambda: client.scheduler.unregister(address=worker, stimulus_id=stimulus)
    )


class Watch:
    """Sees to it that workers compute some futures: `look` raises when none has for too long.

    A task that a worker has been given is waited for, however long it takes, as long as the worker
    is heard of; and so is what is on its way, as long as something arrives. So the wait ends if the
    tasks do.
    """

    def __init__(self, client: Client, futures: Sequence[Future], what: str):
        self.client, self.futures, self.what = client, futures, what
        self.copies = 0  # of what the futures are made of, on all workers
        self.at_work = time.monotonic()  # when somebody was

    async def look(self) -> None:
        """Look whether somebody is at work; workers that should be and are silent are given up."""
        ask = _standing([future.key for future in self.futures], span())
        at_work, copies, silent = await scheduler_says(
            self.client, lambda: self.client.run_on_scheduler(ask)
        )
        for worker in silent:
            await give_up(self.client, worker)
        if at_work or copies > self.copies:
            self.at_work = time.monotonic()
            self.copies = copies
        elif time.monotonic() - self.at_work > span():
            raise RuntimeError(await self._why())

    async def _why(self) -> str:
        if not await workers_of(self.client):
            return NOBODY
        return (
            f"{self.what}: no worker has been at work on this for {span():g} s. dask's dashboard "
            "tells of tasks that no worker may do, and of workers that are busy with others; "
            "how long to wait is dask's setting pairstep.timeout"
        )


def _standing(keys: list[Any], longest: float) -> Callable[..., tuple[bool, int, list[str]]]:
    """What to ask the scheduler; a closure, which is sent by value, for pairstep may not be there.

    It tells whether a worker computes these keys or what they are made of, how many copies of that
    are on workers, and which of the workers have not been heard of for too long.
    """

    def look(dask_scheduler: Any) -> tuple[bool, int, list[str]]:
        from distributed.scheduler import heartbeat_interval

        tasks, workers = dask_scheduler.tasks, dask_scheduler.workers
        left = [tasks[key] for key in keys if key in tasks]
        known, concerned = set(left), set()
        at_work, copies = False, 0
        while left:
            task = left.pop()
            if task.processing_on is not None:
                at_work = True
                concerned.add(task.processing_on)
            copies += len(task.who_has or ())
            concerned.update(task.who_has or ())
            new = set(task.dependencies) - known
            known |= new
            left.extend(new)
        heard = time.time() - max(longest, 3 * heartbeat_interval(len(workers)))
        silent = [worker.address for worker in concerned if worker.last_seen < heard]
        return at_work, copies, silent

    return look


def computed(client: Client, collection: Any, name: str) -> Any:
    """A dask collection, computed; anything else as it is."""

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        return client.sync(_gathered, client, client.get(graph, keys, sync=False, **options), name)

    (result,) = dask.compute(collection, traverse=False, scheduler=get)
    return result


async def _gathered(client: Client, futures: Any, name: str) -> Any:
    flat = futures_of(futures)
    watch = Watch(client, flat, name)
    work = asyncio.gather(client.gather(futures), return_exceptions=True)
    try:
        while not (await asyncio.wait([work], timeout=span() / GLANCES))[0]:
            await watch.look()
        await workers_of(client)  # raises where what has come is only that the scheduler is gone
        (result,) = work.result()
        if isinstance(result, BaseException):
            raise result
        return result
    finally:
        for future in flat:
            future.release()  # which ends what waits for it
