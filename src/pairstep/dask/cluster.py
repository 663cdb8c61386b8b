"""The coordinator's side: rows shared out among the workers of a cluster, and a line to each share.

Nothing here waits without end: every wait is for a sign of life, of a share, of the scheduler or of
the workers that compute something.

A share whose worker is lost, or is silent for too long, is put on another worker: dask brings its
rows again, and whoever asks tells what else the new owner has to know.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import dask
import numpy as np
from dask.utils import parse_timedelta
from distributed import Client, Future, futures_of
from distributed.comm import Comm, connect
from distributed.protocol import Serialized
from distributed.utils import wait_for

from .. import log
from .share import Answer, Calls, hold, packed, receive

LOST = (OSError, asyncio.TimeoutError)  # what asking a share that is lost ends in
SILENCE = "30s"  # a share that says nothing for so long is lost: dask's setting pairstep.timeout
GLANCES = 10  # so many times in that span it is looked whether the workers compute something
SHARE = "pairstep-share-"  # what the names of tasks that own rows begin with
NOBODY = "the cluster has no workers left"
RESTART = 5.0  # so many seconds a lost worker has to come back before another takes its rows
ATTEMPTS = 5  # to have an answer of a share that is lost again and again


@dataclass
class Line:
    """A share as the coordinator knows it: rows from `begin` to `end`, on a worker."""

    number: int
    begin: int
    end: int
    worker: str = ""
    future: Future | None = None
    comm: Comm | None = None


@dataclass
class Traffic:
    """What a fit has sent over the network.

    Attributes
    ----------
    rounds : int
        Messages to all shares, each of which has waited for all answers.
    sent, received : int
        Bytes of numbers to all shares, and from them.
    recoveries : int
        Shares that were lost and put on another worker.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0
    recoveries: int = 0


@dataclass
class Shares:
    """The rows of a dask array, balanced over the workers.

    `restoring` tells what a new owner of a share has to be told before it can go on.
    """

    client: Client
    X: Any
    restoring: Callable[[Line], Calls] = lambda line: []
    traffic: Traffic = field(default_factory=Traffic)

    def __post_init__(self) -> None:
        self.silence = _silence()
        workers = self._workers()
        if not workers:
            raise RuntimeError("the cluster has no workers")
        rows = int(self.X.shape[0])
        chosen = dict(list(workers.items())[: max(min(len(workers), rows), 1)])
        ends = (np.cumsum(list(chosen.values())) * rows // sum(chosen.values())).tolist()
        self.lines = [
            Line(k, begin, end, worker)
            for k, (begin, end, worker) in enumerate(
                zip([0, *ends[:-1]], ends, chosen, strict=True)
            )
        ]

    def __enter__(self) -> Self:
        """Put every share on its worker."""
        try:
            self._put(self.lines)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all shares: their tasks end, and the workers' memory is free."""
        for line in self.lines:
            self._let_go(line)

    def ask_all(self, calls: Calls, again: Calls | None = None) -> list[Answer]:
        """Send all shares the same calls; their answers. See `ask`."""
        return self.ask([calls] * len(self.lines), again)

    def ask(self, each: Sequence[Calls], again: Calls | None = None) -> list[Answer]:
        """Send each share its calls; their answers.

        A share that had to be restored is asked `again`, because it has been told the present state
        of the coordinator; its calls, if nothing else is said.
        """
        self.traffic.rounds += 1
        answers = self._exchange(self.lines, each)
        for _ in range(ATTEMPTS):
            lost = [line for line in self.lines if _is_lost(answers[line.number])]
            if not lost:
                return answers
            self._replace(lost)
            calls = [each[line.number] if again is None else again for line in lost]
            restoring = [self.restoring(line) for line in lost]
            both = [[*first, *then] for first, then in zip(restoring, calls, strict=True)]
            for line, first, answer in zip(
                lost, restoring, self._exchange(lost, both), strict=True
            ):
                answers[line.number] = answer if _is_lost(answer) else answer[len(first) :]
        raise RuntimeError(f"workers were lost {ATTEMPTS} times in a row: the fit is given up")

    def _exchange(self, lines: Sequence[Line], each: Sequence[Calls]) -> list[Answer]:
        """Send each of some shares its calls; their answers, or why there is none."""
        messages = {id(calls): packed(calls) for calls in each}  # one that goes to all only once
        self.traffic.sent += sum(_bytes(calls) for calls in each)
        answers = self._at_once(
            self._ask(line, messages[id(calls)]) for line, calls in zip(lines, each, strict=True)
        )
        self.traffic.received += _bytes(answers)
        return answers

    def _at_once(self, talks: Iterable[Awaitable[Any]]) -> list[Any]:
        """Talk to some shares: what comes of it, or how they were lost."""

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*talks, return_exceptions=True)

        results: list[Any] = self.client.sync(all_of_them)
        for result in results:
            if isinstance(result, BaseException) and not _is_lost(result):
                raise result
        return results

    async def _ask(self, line: Line, message: Serialized) -> Answer:
        if line.comm is None:
            raise OSError(f"no line to {line.worker}")
        await wait_for(line.comm.write(message), self.silence)
        answer: Any = "at work"
        at_work = time.monotonic()  # when the share was, or whoever brings its rows
        while isinstance(answer, str):
            answer = await wait_for(line.comm.read(), self.silence)
            if line.future is not None and line.future.status == "error":
                await line.future  # raises why the rows could not be had
            if line.future is not None and line.future.status != "pending":
                raise OSError(f"the task of share {line.number} on {line.worker} has ended")
            if not (isinstance(answer, str) and answer == "without rows") or await self._rows_come(
                line
            ):
                at_work = time.monotonic()
            elif time.monotonic() - at_work > self.silence:
                raise OSError(f"nobody brings the rows of share {line.number}")
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    async def _rows_come(self, line: Line) -> bool:
        """Whether a worker computes or fetches what may be the rows of a share."""
        processing = await _ask_scheduler(self.client, "processing", workers=None)
        return any(
            not str(key).startswith(SHARE) or (line.future is not None and key == line.future.key)
            for keys in processing.values()
            for key in keys
        )

    def _replace(self, lost: Sequence[Line]) -> None:
        """Put lost shares on other workers."""
        for line in lost:
            log.tell(f"share {line.number} on {line.worker} is lost", False)
            self.traffic.recoveries += 1
            self._bury(line)
        for line in lost:
            line.worker = self._replacement()
        self._put(lost)

    def _bury(self, line: Line) -> None:
        """Have dask give up on a worker too: it may think that it is still there, with its data."""
        self._let_go(line)
        if line.worker in self._workers():
            self._ask_scheduler(
                "unregister", address=line.worker, stimulus_id=f"pairstep-lost-{time.time()}"
            )
        line.worker = ""

    def _replacement(self) -> str:
        """The worker for a lost share: one that has none, else the one with the fewest rows."""
        began = time.monotonic()
        load = {line.worker: 0 for line in self.lines}
        for line in self.lines:
            load[line.worker] += line.end - line.begin
        while True:
            workers = self._workers()
            idle = [worker for worker in workers if worker not in load]
            if idle:
                return idle[0]
            waited = time.monotonic() - began
            if workers and waited > RESTART:
                return min(workers, key=lambda worker: load[worker])
            if waited > max(RESTART, self.silence):
                raise RuntimeError(NOBODY)
            time.sleep(0.1)

    def _workers(self) -> dict[str, int]:
        """Workers by their addresses, and their numbers of threads."""
        return dict(sorted(self._ask_scheduler("ncores", workers=None).items()))

    def _ask_scheduler(self, question: str, **arguments: Any) -> Any:
        return self.client.sync(_ask_scheduler, self.client, question, **arguments)

    def _put(self, lines: Sequence[Line]) -> None:
        """Start the tasks of shares on their workers, and open lines to them."""
        self._at_once(self._prepare(line) for line in lines)
        names = {line.number: f"{SHARE}{line.number}-{uuid.uuid4().hex}" for line in lines}
        for line in lines:
            parts = list(self.X[line.begin : line.end].to_delayed().ravel())
            name = names[line.number]
            task = dask.delayed(hold)(parts, name, dask_key_name=name)
            line.future = self.client.compute(
                task, workers=[line.worker], allow_other_workers=False
            )
        self._at_once(self._connect(line, names[line.number]) for line in lines)

    async def _prepare(self, line: Line) -> None:
        """Have a worker take messages; raises what it has against it, such as no pairstep."""
        await wait_for(self.client.run(receive, workers=[line.worker]), self.silence)

    async def _connect(self, line: Line, name: str) -> None:
        connecting = connect(line.worker, **self.client.connection_args)
        line.comm = await wait_for(connecting, self.silence)
        await wait_for(line.comm.write({"op": "pairstep", "share": name}), self.silence)

    def _let_go(self, line: Line) -> None:
        if line.comm is not None:
            self.client.loop.add_callback(line.comm.abort)
        if line.future is not None:
            line.future.release()
        line.comm = line.future = None


def computed(client: Client, collection: Any) -> Any:
    """A dask collection, computed; anything else as it is.

    It is waited for as long as the workers compute, but not for workers that do not come.
    """

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        return client.sync(_gathered, client, client.get(graph, keys, sync=False, **options))

    (result,) = dask.compute(collection, traverse=False, scheduler=get)
    return result


async def _gathered(client: Client, futures: Any) -> Any:
    silence, flat = _silence(), futures_of(futures)
    work = asyncio.gather(client.gather(futures), return_exceptions=True)
    at_work = time.monotonic()  # when some worker was
    try:
        while not (await asyncio.wait([work], timeout=silence / GLANCES))[0]:
            processing = await _ask_scheduler(client, "processing", workers=None)
            on_their_way = all(future.status == "finished" for future in flat)
            if on_their_way or any(processing.values()):
                at_work = time.monotonic()
            elif time.monotonic() - at_work > silence:
                raise RuntimeError(NOBODY)
        if client.status != "running":
            raise _scheduler_is_gone(client)
        (result,) = work.result()
        if isinstance(result, BaseException):
            raise result
        return result
    finally:
        for future in flat:
            future.release()  # which ends what waits for it


async def _ask_scheduler(client: Client, question: str, **arguments: Any) -> Any:
    if client.status != "running":
        raise _scheduler_is_gone(client)
    try:
        return await wait_for(getattr(client.scheduler, question)(**arguments), _silence())
    except LOST as error:
        raise _scheduler_is_gone(client) from error


def _scheduler_is_gone(client: Client) -> Exception:
    return ConnectionError(
        f"the dask scheduler of {client} is gone: a fit over the cluster cannot go on"
    )


def _silence() -> float:
    """Seconds."""
    return float(parse_timedelta(dask.config.get("pairstep.timeout", SILENCE)))


def _is_lost(answer: Any) -> bool:
    return isinstance(answer, LOST)


def _bytes(message: Any) -> int:
    """Of the arrays in a message."""
    if isinstance(message, np.ndarray):
        return int(message.nbytes)
    if isinstance(message, (list, tuple)):
        return sum(_bytes(part) for part in message)
    return 0
