"""The worker's side: a long-running task that holds the rows of a partition and handles requests.

A message is a list of calls, each the name of a method of `Rows` (or of the native partition) with
its arguments. The answer is the list of return values. Messages go through the worker's own server,
so the encryption and authentication of the cluster apply, and no other port is opened.
"""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import scipy
from distributed import Worker, get_worker, secede
from distributed.comm import Comm, CommClosedError
from distributed.core import Status
from distributed.protocol import Serialized, serialize
from sklearn.utils import check_array

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.data import DATA_CHECKS
from ..svm.engine import Kernel, native

Calls = list[tuple[Any, ...]]
Answer = list[Any]


def pack(message: Calls | Answer | Exception) -> list[Serialized]:
    """Serialize a message, with its arrays out of band, so that it can be sent to many partitions.

    It is wrapped in a list because connections within a process deserialize only what is in a
    container.
    """
    return [Serialized(*serialize(message, serializers=["pickle"], on_error="raise"))]


# Seconds between two heartbeats of a partition that is still working on its answer. It must be well
# below dask's setting pairstep.timeout, after which a silent partition counts as lost.
HEARTBEAT_INTERVAL = 1.0
# The heartbeat messages: the partition computes, or dask has not delivered its rows yet.
BUSY, WAITING_FOR_ROWS = "busy", "waiting for rows"
# Seconds that a partition waits for the first message. After that, it frees its rows, because its
# coordinator may have died. If smaller, a slow coordinator loses its partitions.
MAX_WAIT_FOR_FIRST_CALL = 60.0


MIXED = (
    "some blocks of X are sparse and others dense; make all of them alike, for example with "
    "X.map_blocks(scipy.sparse.csr_matrix)"
)


class Summary(NamedTuple):
    """What the coordinator needs to know about the rows of a partition."""

    rows: int
    features: int
    sparse: bool
    dtype: Any
    mean: Array
    variance: float  # of all entries
    largest_square: float


class Rows:
    """The rows of a partition, with the native partition once the kernel is known."""

    def __init__(self, parts: list[Any], threads: int):
        checked = [
            check_array(part, ensure_min_samples=0, input_name="X", **DATA_CHECKS) for part in parts
        ]
        checked = [part for part in checked if part.shape[0]] or checked[:1]
        if len({scipy.sparse.issparse(part) for part in checked}) > 1:
            raise ValueError(MIXED)
        if scipy.sparse.issparse(checked[0]):
            self.X = scipy.sparse.vstack(checked, format="csr")
            self.X.sum_duplicates()
        else:
            self.X = np.concatenate(checked) if len(checked) > 1 else checked[0]
        self.X = self.X.astype(np.result_type(self.X.dtype, np.float32), copy=False)
        self.sent = np.zeros(self.X.shape[0], bool)  # rows that the coordinator has received
        self.threads = threads
        self.partition: Any = None
        self.coordinates = self.rows = np.zeros(0, np.int64)

    def astype(self, dtype: Any) -> None:
        """Convert the rows to the type that all partitions use."""
        self.X = self.X.astype(dtype, copy=False)

    def summary(self) -> Summary:
        """Return the summary of the rows."""
        variance, largest = _core.measure(native(self.X))
        mean = np.asarray(self.X.mean(axis=0, dtype=np.float64)).ravel()
        rows, features = self.X.shape
        sparse = scipy.sparse.issparse(self.X)
        return Summary(rows, features, sparse, self.X.dtype, mean, variance, largest)

    def open(self, kernel: Kernel, center: Array | None) -> None:
        """Prepare for duals with this kernel."""
        self.partition = _core.Partition(native(self.X), center, kernel.native, self.threads)

    def begin(
        self, coordinates: Indices, rows: Indices, linear: Array, lower: Array, upper: Array,
        l1: Array | None, starts: Indices, whole: int, cache_bytes: int, single: bool,
    ) -> None:  # fmt: skip
        """Begin a dual; these are its variables in this partition, and their rows."""
        self.coordinates, self.rows = coordinates, rows
        x = np.zeros(len(coordinates))
        breakpoint = None if l1 is None else np.zeros(len(coordinates))
        point = _core.Point(x, lower, upper, l1, breakpoint, starts)
        self.squares = self.partition.begin(
            coordinates, rows, linear, point, whole, cache_bytes, single
        )

    def select_candidates(self, count: int, with_free: bool) -> tuple[Indices, Array, Indices, Any]:
        """Return candidates, their gradients, and those of their rows not sent before."""
        coordinates, gradient = self.partition.select_candidates(count, with_free)
        rows = np.unique(self.rows[np.searchsorted(self.coordinates, coordinates)])
        rows = rows[~self.sent[rows]]
        return coordinates, gradient, rows, self.features(rows)

    def features(self, rows: Indices) -> Any:
        """Return some rows in the form that native code takes."""
        self.sent[rows] = True
        return native(self.X[rows])

    def call(self, calls: Calls) -> Answer:
        """Run the calls of a message; names that this class lacks are native methods."""
        return [
            (getattr(self, name) if hasattr(self, name) else getattr(self.partition, name))(
                *arguments
            )
            for name, *arguments in calls
        ]

    def norms(self) -> tuple[float, float]:
        """Return the largest squared norm of the points of the dual, and the sum of all."""
        largest, total = self.squares
        return largest, total


class RequestHandler:
    """Passes messages from the worker's event loop to the thread of the task."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[tuple[Calls, Future[list[Serialized]]] | None]
        self.requests = queue.SimpleQueue()
        self.open = False  # True once the rows have arrived

    def submit(self, calls: Calls) -> Future[list[Serialized]]:
        """Add a message to the queue; return the future of its answer."""
        future: Future[list[Serialized]] = Future()
        self.requests.put((calls, future))
        return future

    def close(self) -> None:
        """End `serve` after the messages in the queue."""
        self.requests.put(None)

    def serve(self, rows: Rows) -> None:
        """Answer messages until `close` is called. Stop if the first one takes too long."""
        self.open = True
        wait: float | None = MAX_WAIT_FOR_FIRST_CALL
        while (request := self._next(wait)) is not None:
            wait = None
            calls, future = request
            answer: Answer | Exception
            try:
                answer = rows.call(calls)
            except Exception as error:
                answer = error  # raised by the coordinator
            future.set_result(pack(answer))

    def _next(self, wait: float | None) -> tuple[Calls, Future[list[Serialized]]] | None:
        try:
            return self.requests.get(timeout=wait)
        except queue.Empty:
            return None


_handlers: dict[str, RequestHandler] = {}  # by the name of the partition's task


def hold_rows(parts: list[Any], name: str) -> None:
    """Hold rows until the coordinator releases them. This is the long-running task."""
    worker = get_worker()
    secede()  # so that the worker's thread pool can run other tasks
    handler = _handlers.setdefault(name, RequestHandler())
    try:
        handler.serve(Rows(parts, worker.state.nthreads))
    finally:
        _handlers.pop(name, None)


def register_handler(dask_worker: Worker) -> None:
    """Make a worker accept messages for partitions; runs on the worker."""
    dask_worker.handlers["pairstep"] = serve_connection


async def serve_connection(comm: Comm, partition: str) -> Status:
    """Pass messages to the task and answers back until the coordinator closes the connection."""
    handler = _handlers.setdefault(partition, RequestHandler())
    try:
        while True:
            (calls,) = await comm.read()
            work = asyncio.wrap_future(handler.submit(calls))
            while not (await asyncio.wait([work], timeout=HEARTBEAT_INTERVAL))[0]:
                await comm.write(BUSY if handler.open else WAITING_FOR_ROWS)
            await comm.write(work.result())
    except CommClosedError:
        return Status.dont_reply
    finally:
        handler.close()
