"""The coordinator's side: rows shared out among the workers of a cluster, and a line to each share.

A share that is lost, because the line to it breaks or it is silent for too long, is put on another
worker: dask brings its rows again, and whoever asks tells what else the new owner has to know. That
is tried a few times; `waiting` says how long each try may take.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from distributed import Client, Future
from distributed.comm import Comm, connect
from distributed.protocol import Serialized
from distributed.utils import wait_for

from .. import log
from .share import WITHOUT_ROWS, Answer, Calls, hold, packed, receive
from .waiting import NOBODY, Watch, give_up, span, workers_of

RESTART = 5.0  # so many seconds a lost worker has to come back before another takes its rows
ATTEMPTS = 5  # to have an answer of a share that is lost again and again


class LostError(Exception):
    """A share does not answer, because of its worker or of something else."""

    def __init__(self, message: str, worker: str | None = None):
        super().__init__(message)
        self.worker = worker


@dataclass
class Line:
    """A share as the coordinator knows it: rows from `begin` to `end`, on a worker."""

    number: int
    begin: int
    end: int
    worker: str = ""
    task: Future | None = None  # which owns the rows
    rows: Watch | None = None  # that they come
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
        workers = self.client.sync(workers_of, self.client)
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
        failures = 0
        while lost := [line for line in self.lines if isinstance(answers[line.number], LostError)]:
            reasons = [answers[line.number] for line in lost]
            failures += 1
            if failures > ATTEMPTS:
                raise RuntimeError(
                    f"shares were lost {failures} times in a row: {reasons[0]}; the fit is given up"
                ) from reasons[0]
            self._replace(lost, reasons)
            calls = [each[line.number] if again is None else again for line in lost]
            restoring = [self.restoring(line) for line in lost]
            both = [[*first, *then] for first, then in zip(restoring, calls, strict=True)]
            for line, first, answer in zip(
                lost, restoring, self._exchange(lost, both), strict=True
            ):
                is_lost = isinstance(answer, LostError)
                answers[line.number] = answer if is_lost else answer[len(first) :]
        return answers

    def _exchange(self, lines: Sequence[Line], each: Sequence[Calls]) -> list[Any]:
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
            if isinstance(result, BaseException) and not isinstance(result, LostError):
                raise result
        return results

    async def _ask(self, line: Line, message: list[Serialized]) -> Answer:
        if line.comm is None or line.task is None or line.rows is None:
            raise LostError(f"worker {line.worker} cannot be reached", line.worker)
        await _in_time(line, line.comm.write(message))
        while isinstance(received := await _in_time(line, line.comm.read()), str):
            if line.task.status == "error":
                await line.task  # raises why the rows could not be had
            if line.task.status != "pending":
                raise LostError(f"the task of share {line.number} on {line.worker} has ended")
            if received == WITHOUT_ROWS:
                await line.rows.look()
        (answer,) = received
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    def _replace(self, lost: Sequence[Line], reasons: Sequence[LostError]) -> None:
        """Put lost shares on other workers, or on the same where it was not to blame."""
        for line, reason in zip(lost, reasons, strict=True):
            log.tell(f"share {line.number} is lost: {reason}", False)
            self.traffic.recoveries += 1
            self._let_go(line)
            line.worker = ""
        self._at_once(
            give_up(self.client, worker)
            for worker in {reason.worker for reason in reasons if reason.worker}
        )
        began = time.monotonic()
        for line in lost:
            line.worker = self._replacement(began)
        self._put(lost)

    def _replacement(self, began: float) -> str:
        """The worker for a lost share: one that has none, else the one with the fewest rows."""
        load = {line.worker: 0 for line in self.lines}
        for line in self.lines:
            load[line.worker] += line.end - line.begin
        while True:
            workers: dict[str, int] = self.client.sync(workers_of, self.client)
            idle = [worker for worker in workers if worker not in load]
            if idle:
                return idle[0]
            waited = time.monotonic() - began
            if workers and waited > RESTART:
                return min(workers, key=lambda worker: load[worker])
            if waited > max(RESTART, span()):
                raise RuntimeError(NOBODY)
            time.sleep(0.1)

    def _put(self, lines: Sequence[Line]) -> None:
        """Start the tasks of shares on their workers, and open lines to them."""
        for line in lines:
            # Where rows are computed is a wish: others may have to do it when a worker is lost.
            parts = self.client.compute(
                self.X[line.begin : line.end].to_delayed().ravel().tolist(),
                workers=[line.worker], allow_other_workers=True,
            )  # fmt: skip
            name = f"pairstep-share-{line.number}-{uuid.uuid4().hex}"
            line.task = self.client.submit(hold, parts, name, key=name, workers=[line.worker])
            line.rows = Watch(
                self.client, parts,
                f"the rows {line.begin} to {line.end}, which worker {line.worker} waits for",
            )  # fmt: skip
        self._at_once(self._connect(line) for line in lines)  # who asks will see who is lost

    async def _connect(self, line: Line) -> None:
        """Have a worker take messages, and open a line to its share.

        Raises what the worker has against that, such as no pairstep.
        """
        assert line.task is not None
        await _in_time(line, self.client.run(receive, workers=[line.worker]))
        connecting = connect(line.worker, **self.client.connection_args)
        line.comm = await _in_time(line, connecting)
        await _in_time(line, line.comm.write({"op": "pairstep", "share": line.task.key}))

    def _let_go(self, line: Line) -> None:
        if line.comm is not None:
            self.client.loop.add_callback(line.comm.abort)
        if line.task is not None:
            line.task.release()
        line.comm = line.task = line.rows = None


async def _in_time(line: Line, talk: Awaitable[Any]) -> Any:
    """What comes of talking to a share, if it is not lost."""
    try:
        return await wait_for(talk, span())
    except TimeoutError as error:
        why = f"worker {line.worker} has been silent for {span():g} s"
        raise LostError(why, line.worker) from error
    except OSError as error:
        raise LostError(f"the line to worker {line.worker} broke ({error})", line.worker) from error


def _bytes(message: Any) -> int:
    """Of the arrays in a message."""
    if isinstance(message, np.ndarray):
        return int(message.nbytes)
    if isinstance(message, (list, tuple)):
        return sum(_bytes(part) for part in message)
    return 0
