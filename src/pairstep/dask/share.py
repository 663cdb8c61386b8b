"""A worker's side: a long task that owns rows and answers what the coordinator asks of them.

A message is a list of calls, each the name of a method of `Rows` with its arguments; the answer is
the list of what they return. Messages come through the worker's own server, so that the encryption
and authentication of the cluster hold, and no other port is opened.
"""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from distributed import Worker, get_worker, secede
from distributed.comm import Comm, CommClosedError
from distributed.core import Status
from distributed.protocol import Serialized, serialize
from sklearn.utils import check_array

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.base import DATA_CHECKS
from ..svm.machine import Kernel, native

Calls = list[tuple[Any, ...]]
Answer = list[Any]


def packed(message: Calls | Answer | Exception) -> list[Serialized]:
    """A message ready to be sent, to many if need be: all of it pickled at once, arrays apart.

    It is alone in a list: only what is in a container is unpacked by comms within a process, too.
    """
    return [Serialized(*serialize(message, serializers=["pickle"], on_error="raise"))]


SIGN = 1.0  # a share that has not answered yet says every so many seconds that it is there
AT_WORK, WITHOUT_ROWS = "at work", "without rows"
UNCLAIMED = 60.0  # so many seconds a share waits for its coordinator to come


class Summary(NamedTuple):
    """What the coordinator needs to know of some rows."""

    rows: int
    features: int
    sparse: bool
    dtype: Any
    mean: Array
    variance: float  # of all entries
    largest_square: float


class Rows:
    """Rows of a share, and the native part of it once the kernel is known."""

    def __init__(self, parts: list[Any], threads: int):
        checked = [
            check_array(part, ensure_min_samples=0, input_name="X", **DATA_CHECKS) for part in parts
        ]
        if scipy.sparse.issparse(checked[0]):
            self.X = scipy.sparse.vstack(checked, format="csr")
            self.X.sum_duplicates()
        else:
            self.X = np.concatenate(checked) if len(checked) > 1 else checked[0]
        self.X = self.X.astype(np.result_type(self.X.dtype, np.float32), copy=False)
        self.told = np.zeros(self.X.shape[0], bool)  # rows that the coordinator has
        self.threads = threads
        self.share: Any = None
        self.accounts = self.rows = np.zeros(0, np.int64)

    def summary(self) -> Summary:
        """Say what the rows are like."""
        variance, largest = _core.measure(native(self.X))
        mean = np.asarray(self.X.mean(axis=0, dtype=np.float64)).ravel()
        rows, features = self.X.shape
        sparse = scipy.sparse.issparse(self.X)
        return Summary(rows, features, sparse, self.X.dtype, mean, variance, largest)

    def open(self, kernel: Kernel, center: Array | None) -> None:
        """Be ready for duals with this kernel."""
        self.share = _core.Share(native(self.X), center, kernel.native, self.threads)

    def begin(
        self, accounts: Indices, rows: Indices, linear: Array, lower: Array, upper: Array,
        kink: Array | None, starts: Indices, whole: int, cache_bytes: int, single: bool,
    ) -> None:  # fmt: skip
        """Begin a dual of which these accounts are here, for these rows."""
        self.accounts, self.rows = accounts, rows
        x = np.zeros(len(accounts))
        pivot = None if kink is None else np.zeros(len(accounts))
        point = _core.Point(x, lower, upper, kink, pivot, starts)
        self.squares = self.share.begin(accounts, rows, linear, point, whole, cache_bytes, single)

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, Indices, Any]:
        """Accounts worth a look, their gradients, and the rows that the coordinator has not."""
        accounts, gradient = self.share.survey(count, with_free)
        rows = np.unique(self.rows[np.searchsorted(self.accounts, accounts)])
        rows = rows[~self.told[rows]]
        return accounts, gradient, rows, self.features(rows)

    def features(self, rows: Indices) -> Any:
        """Some rows, as native code takes them."""
        self.told[rows] = True
        return native(self.X[rows])

    def ask(self, calls: Calls) -> Answer:
        """Do what a message says: what is not a method here is one of the native share."""
        return [
            (getattr(self, name) if hasattr(self, name) else getattr(self.share, name))(*arguments)
            for name, *arguments in calls
        ]

    def norms(self) -> tuple[float, float]:
        """Give the largest squared norm of the points of the dual, and the sum of all."""
        largest, total = self.squares
        return largest, total


class Desk:
    """Where messages, which come in on the worker's event loop, meet the task and its thread."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[tuple[Calls, Future[list[Serialized]]] | None]
        self.requests = queue.SimpleQueue()
        self.open = False  # once the rows are here

    def ask(self, calls: Calls) -> Future[list[Serialized]]:
        """Hand in a message."""
        future: Future[list[Serialized]] = Future()
        self.requests.put((calls, future))
        return future

    def close(self) -> None:
        """Say that no more will come."""
        self.requests.put(None)

    def serve(self, rows: Rows) -> None:
        """Answer messages until no more will come."""
        self.open = True
        wait: float | None = UNCLAIMED
        while (request := self._next(wait)) is not None:
            wait = None
            calls, future = request
            answer: Answer | Exception
            try:
                answer = rows.ask(calls)
            except Exception as error:
                answer = error  # the coordinator's to deal with
            future.set_result(packed(answer))

    def _next(self, wait: float | None) -> tuple[Calls, Future[list[Serialized]]] | None:
        try:
            return self.requests.get(timeout=wait)
        except queue.Empty:
            return None


_desks: dict[str, Desk] = {}  # by the names of shares


def hold(parts: list[Any], name: str) -> None:
    """Own rows until the coordinator lets go of them: the long task."""
    worker = get_worker()
    secede()  # other tasks may use the worker meanwhile
    desk = _desks.setdefault(name, Desk())
    try:
        desk.serve(Rows(parts, worker.state.nthreads))
    finally:
        _desks.pop(name, None)


def receive(dask_worker: Worker) -> None:
    """Make a worker take messages for shares; to be run on it."""
    dask_worker.handlers["pairstep"] = correspond


async def correspond(comm: Comm, share: str) -> Status:
    """Pass messages on to the task, and its answers back, as long as the coordinator is there."""
    desk = _desks.setdefault(share, Desk())
    try:
        while True:
            (calls,) = await comm.read()
            work = asyncio.wrap_future(desk.ask(calls))
            while not (await asyncio.wait([work], timeout=SIGN))[0]:
                await comm.write(AT_WORK if desk.open else WITHOUT_ROWS)
            await comm.write(work.result())
    except CommClosedError:
        return Status.dont_reply
    finally:
        desk.close()
