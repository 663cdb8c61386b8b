"""The coordinator's side: the rows, partitioned over the workers, and the connections to them.

A partition is lost if its connection breaks or its worker is silent for too long. It is then moved
to another worker: dask sends the rows again, and `Partitions.restore_calls` has the calls that
bring the new owner up to date. After a few failures in a row the fit is given up; `waiting.py` says
how long each attempt may take.
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
from .partition import WAITING_FOR_ROWS, Answer, Calls, hold_rows, pack, register_handler
from .waiting import NO_WORKERS_LEFT, ProgressWatch, abandon_worker, timeout, workers_of

# Seconds that a lost worker has to restart before its rows go to a worker that already has rows. If
# larger, a fit waits longer for a worker that never returns; if smaller, one worker more often has
# twice the rows, and memory, of the others.
RESTART_GRACE = 5.0
# Number of times in a row that partitions may be lost before the fit is given up.
MAX_ATTEMPTS = 5
# Seconds between two queries for a new worker. Each one is a request to the scheduler.
POLL_INTERVAL = 0.1


class LostError(Exception):
    """A partition does not answer. `worker` is the worker that caused it, if one did."""

    def __init__(self, message: str, worker: str | None = None):
        super().__init__(message)
        self.worker = worker


@dataclass
class Connection:
    """The coordinator's record of a partition: rows from `begin` to `end`, on a worker."""

    number: int
    begin: int
    end: int
    worker: str = ""
    task: Future | None = None  # the task that holds the rows
    rows: ProgressWatch | None = None  # checks that dask sends the rows
    comm: Comm | None = None


@dataclass
class Traffic:
    """The network traffic of a fit.

    Attributes
    ----------
    rounds : int
        Messages to all partitions, each of which waited for all answers.
    sent, received : int
        Bytes of arrays sent to all partitions, and received from them.
    recoveries : int
        Partitions that were lost and moved to another worker.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0
    recoveries: int = 0


@dataclass
class Partitions:
    """The rows of a dask array, balanced over the workers by their number of threads.

    ``restore_calls(connection)`` returns the calls that bring the new owner of a partition up to
    date.
    """

    client: Client
    X: Any
    restore_calls: Callable[[Connection], Calls] = lambda connection: []
    traffic: Traffic = field(default_factory=Traffic)

    def __post_init__(self) -> None:
        workers = self.client.sync(workers_of, self.client)
        if not workers:
            raise RuntimeError(
                "the cluster of this client has no workers; start some, for example with "
                "cluster.scale(2)"
            )
        rows = int(self.X.shape[0])
        chosen = dict(list(workers.items())[: max(min(len(workers), rows), 1)])
        ends = (np.cumsum(list(chosen.values())) * rows // sum(chosen.values())).tolist()
        self.connections = [
            Connection(k, begin, end, worker)
            for k, (begin, end, worker) in enumerate(
                zip([0, *ends[:-1]], ends, chosen, strict=True)
            )
        ]

    def __enter__(self) -> Self:
        """Start every partition on its worker."""
        try:
            self._start(self.connections)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the tasks of all partitions, which frees the memory of the workers."""
        for connection in self.connections:
            self._release(connection)

    def call_all(self, calls: Calls, again: Calls | None = None) -> list[Answer]:
        """Send the same calls to all partitions; return their answers. See `call_each`."""
        return self.call_each([calls] * len(self.connections), again)

    def call_each(self, each: Sequence[Calls], again: Calls | None = None) -> list[Answer]:
        """Send each partition its calls; return their answers.

        A partition that had to be restored gets the calls `again` instead, because restoring it has
        already applied all changes that the coordinator knows of. By default it gets its calls.
        """
        self.traffic.rounds += 1
        answers = self._exchange(self.connections, each)
        failures = 0
        while lost := [
            connection
            for connection in self.connections
            if isinstance(answers[connection.number], LostError)
        ]:
            reasons = [answers[connection.number] for connection in lost]
            failures += 1
            if failures > MAX_ATTEMPTS:
                raise RuntimeError(
                    f"partitions were lost {failures} times in a row ({reasons[0]}), so "
                    "the fit was given up; check the logs of the workers"
                ) from reasons[0]
            self._replace(lost, reasons)
            calls = [each[connection.number] if again is None else again for connection in lost]
            restore_calls = [self.restore_calls(connection) for connection in lost]
            both = [[*first, *then] for first, then in zip(restore_calls, calls, strict=True)]
            for connection, first, answer in zip(
                lost, restore_calls, self._exchange(lost, both), strict=True
            ):
                is_lost = isinstance(answer, LostError)
                answers[connection.number] = answer if is_lost else answer[len(first) :]
        return answers

    def _exchange(self, connections: Sequence[Connection], each: Sequence[Calls]) -> list[Any]:
        """Send calls to some partitions; return each answer, or the LostError."""
        # A message to all partitions is serialized only once.
        messages = {id(calls): pack(calls) for calls in each}
        self.traffic.sent += sum(_bytes(calls) for calls in each)
        answers = self._gather(
            self._call(connection, messages[id(calls)])
            for connection, calls in zip(connections, each, strict=True)
        )
        self.traffic.received += _bytes(answers)
        return answers

    def _gather(self, exchanges: Iterable[Awaitable[Any]]) -> list[Any]:
        """Run exchanges with partitions at the same time; return each result, or the LostError."""

        async def gather() -> list[Any]:
            return await asyncio.gather(*exchanges, return_exceptions=True)

        results: list[Any] = self.client.sync(gather)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, LostError):
                raise result
        return results

    async def _call(self, connection: Connection, message: list[Serialized]) -> Answer:
        if connection.comm is None or connection.task is None or connection.rows is None:
            raise LostError(f"worker {connection.worker} cannot be reached", connection.worker)
        await _within_timeout(connection, connection.comm.write(message))
        # Strings are heartbeats; the answer is a list.
        while isinstance(
            received := await _within_timeout(connection, connection.comm.read()), str
        ):
            if connection.task.status == "error":
                await connection.task  # raises the error of the computation of the rows
            if connection.task.status != "pending":
                raise LostError(
                    f"the task of partition {connection.number} on {connection.worker} has ended"
                )
            if received == WAITING_FOR_ROWS:
                await connection.rows.check()
        (answer,) = received
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    def _replace(self, lost: Sequence[Connection], reasons: Sequence[LostError]) -> None:
        """Move lost partitions to other workers, or restart them if the worker is not the cause."""
        for connection, reason in zip(lost, reasons, strict=True):
            log.write(f"partition {connection.number} is lost: {reason}", False)
            self.traffic.recoveries += 1
            self._release(connection)
            connection.worker = ""
        self._gather(
            abandon_worker(self.client, worker)
            for worker in {reason.worker for reason in reasons if reason.worker}
        )
        began = time.monotonic()
        for connection in lost:
            connection.worker = self._replacement(began)
        self._start(lost)

    def _replacement(self, began: float) -> str:
        """Return a worker without a partition or, after a while, the one with the fewest rows."""
        load = {connection.worker: 0 for connection in self.connections}
        for connection in self.connections:
            load[connection.worker] += connection.end - connection.begin
        while True:
            workers: dict[str, int] = self.client.sync(workers_of, self.client)
            idle = [worker for worker in workers if worker not in load]
            if idle:
                return idle[0]
            waited = time.monotonic() - began
            if workers and waited > RESTART_GRACE:
                return min(workers, key=lambda worker: load[worker])
            if waited > max(RESTART_GRACE, timeout()):
                raise RuntimeError(NO_WORKERS_LEFT)
            time.sleep(POLL_INTERVAL)

    def _start(self, connections: Sequence[Connection]) -> None:
        """Start the tasks of partitions on their workers, and connect to them."""
        for connection in connections:
            # Rows may be computed elsewhere, which is necessary when a worker is lost.
            parts = self.client.compute(
                self.X[connection.begin : connection.end].to_delayed().ravel().tolist(),
                workers=[connection.worker], allow_other_workers=True,
            )  # fmt: skip
            name = f"pairstep-partition-{connection.number}-{uuid.uuid4().hex}"
            connection.task = self.client.submit(
                hold_rows, parts, name, key=name, workers=[connection.worker]
            )
            connection.rows = ProgressWatch(
                self.client, parts,
                f"rows {connection.begin} to {connection.end}, which worker {connection.worker} "
                "waits for",
            )  # fmt: skip
        # A partition that is lost here is found by the next call.
        self._gather(self._connect(connection) for connection in connections)

    async def _connect(self, connection: Connection) -> None:
        """Register the message handler on a worker, and connect to its partition.

        Raises the error of the worker, for example if pairstep is not installed there.
        """
        assert connection.task is not None
        await _within_timeout(
            connection, self.client.run(register_handler, workers=[connection.worker])
        )
        connecting = connect(connection.worker, **self.client.connection_args)
        connection.comm = await _within_timeout(connection, connecting)
        await _within_timeout(
            connection, connection.comm.write({"op": "pairstep", "partition": connection.task.key})
        )

    def _release(self, connection: Connection) -> None:
        if connection.comm is not None:
            self.client.loop.add_callback(connection.comm.abort)
        if connection.task is not None:
            connection.task.release()
        connection.comm = connection.task = connection.rows = None


async def _within_timeout(connection: Connection, exchange: Awaitable[Any]) -> Any:
    """Return the result of an exchange; raise LostError if it fails or takes too long."""
    try:
        return await wait_for(exchange, timeout())
    except TimeoutError as error:
        message = f"worker {connection.worker} has been silent for {timeout():g} s"
        raise LostError(message, connection.worker) from error
    except OSError as error:
        raise LostError(
            f"the connection to worker {connection.worker} broke ({error})", connection.worker
        ) from error


def _bytes(message: Any) -> int:
    """Return the bytes of the arrays in a message."""
    if isinstance(message, np.ndarray):
        return int(message.nbytes)
    if isinstance(message, (list, tuple)):
        return sum(_bytes(part) for part in message)
    return 0
