"""The training data on a cluster, with the interface of a matrix.

The coordinator keeps the rows that it has received in its library. Every partition has a store of
the rows whose variables have changed, all in the same order.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Duals, Kernel, cancel, needs_differences
from .cluster import Connection, Partitions
from .partition import MIXED, Calls, Summary


def _check(connection: Connection, summary: Summary, first: Summary) -> None:
    """Raise if a partition has another size than dask expects, or other columns than the first."""
    expected = connection.end - connection.begin
    rows = f"rows {connection.begin} to {connection.end} of X"
    if summary.rows != expected:
        raise ValueError(
            f"{rows} must be {expected} rows, but their blocks have {summary.rows}; call "
            "X.compute_chunk_sizes()"
        )
    if summary.features != first.features:
        raise ValueError(
            f"{rows} have {summary.features} columns, but the first rows have {first.features}"
        )
    if summary.sparse != first.sparse:
        raise ValueError(MIXED)


# A mean is far from 0 if its square exceeds this many times the mean squared distance of the rows
# from it. Inner products then lose digits to rounding, which centering avoids. If the mean is
# closer, centering would save at most two decimal digits.
FAR_MEAN = 100


class ClusterMatrix:
    """A data matrix whose rows are on the workers, as an estimator and the back end use it."""

    def __init__(self, partitions: Partitions, names: Any):
        self.partitions, self.names = partitions, names
        partitions.restore_calls = self._restore_calls
        self.kernel: Any = None  # set by `open`
        self.oracle: Any = None  # the oracle in use
        self.dtype: Any = None  # of all rows, set below
        summaries: list[Summary] = [summary for (summary,) in partitions.call_all([("summary",)])]
        for connection, summary in zip(partitions.connections, summaries, strict=True):
            _check(connection, summary, summaries[0])
        counts = np.array([summary.rows for summary in summaries], np.float64)
        self.shape = int(counts.sum()), summaries[0].features
        self.sparse = summaries[0].sparse
        self.dtype = np.result_type(*(summary.dtype for summary in summaries))
        if any(summary.dtype != self.dtype for summary in summaries):
            partitions.call_all([("astype", self.dtype)], again=[])
        self.size = self.shape[0] * self.shape[1]
        self.largest_square = max(summary.largest_square for summary in summaries)
        self.mean: Array = np.average([s.mean for s in summaries], axis=0, weights=counts)
        levels = np.array([s.mean.mean() for s in summaries])
        within = np.array([s.variance for s in summaries])
        self.variance = float(np.average(within + (levels - self.mean.mean()) ** 2, weights=counts))

    def measure(self) -> tuple[float, float]:
        """Return the variance of all entries, and the largest squared norm of a row."""
        return self.variance, self.largest_square

    def open(self, kernel: Kernel, duals: Duals | None = None, tol: float = math.inf) -> Kernel:
        """Prepare the partitions for these duals.

        Returns the kernel, which computes distances by differences if the tolerance requires it.
        """
        self.center = None
        if kernel.name == "rbf" and not needs_differences(kernel, self.largest_square, duals, tol):
            self.center = self.mean.astype(np.float32).astype(np.float64)
        elif kernel.name == "rbf":
            kernel = replace(kernel, differences=True)
        elif kernel.name == "linear" and not self.sparse and self._is_far() and cancel(duals):
            self.center = self.mean.astype(np.float32).astype(np.float64)
        self.kernel = kernel
        self.library = _core.Library(kernel.native, self.center)
        self.places = np.full(self.shape[0], -1, np.int64)  # of each row in the library, or -1
        self.count = 0
        self.slots = np.full(self.shape[0], -1, np.int64)  # of each row in the stores, or -1
        self.stored: list[Indices] = []  # rows in the order of the stores
        self.n_stored = 0
        self.partitions.call_all([("open", kernel, self.center)], again=[])
        return kernel

    def _is_far(self) -> bool:
        """Return whether the mean is far from 0 relative to the distances of the rows from it."""
        of_mean = float(self.mean @ self.mean)
        of_rows = self.shape[1] * (self.variance + float(self.mean.mean()) ** 2)
        return of_mean > FAR_MEAN * (of_rows - of_mean)

    def _restore_calls(self, connection: Connection) -> Calls:
        calls: Calls = [] if self.dtype is None else [("astype", self.dtype)]
        if self.kernel is None:
            return calls
        calls.append(("open", self.kernel, self.center))
        if self.stored:
            calls.append(("append", self.library.take(self.places[np.concatenate(self.stored)])))
        if self.oracle is not None:
            calls += self.oracle.restore_calls(connection)
        return calls

    def add_rows(self, rows: Indices, features: Any) -> None:
        """Add received rows to the library."""
        new = self.places[rows] < 0
        if not new.all():  # a partition that was restored sends rows again
            known = _core.Library(self.kernel.native, self.center)
            known.append(features)
            rows, features = rows[new], known.take(np.flatnonzero(new))
        if len(rows) == 0:
            return
        self.library.append(features)
        self.places[rows] = self.count + np.arange(len(rows))
        self.count += len(rows)

    def fetch_rows(self, rows: Indices) -> None:
        """Fetch those of these rows that the library lacks."""
        missing = np.unique(rows[self.places[rows] < 0])
        if len(missing) == 0:
            return
        calls: list[Calls] = []
        for connection in self.partitions.connections:
            own = missing[(missing >= connection.begin) & (missing < connection.end)]
            calls.append([("features", own - connection.begin)] if len(own) else [])
        for connection, answer in zip(
            self.partitions.connections, self.partitions.call_each(calls), strict=True
        ):
            if answer:
                own = missing[(missing >= connection.begin) & (missing < connection.end)]
                self.add_rows(own, answer[0])

    def store(self, rows: Indices) -> tuple[Calls, Indices]:
        """Add rows to the stores; return the calls that do so, and the slots of these rows."""
        new = np.unique(rows[self.slots[rows] < 0])
        if len(new) == 0:
            return [], self.slots[rows]
        self.fetch_rows(new)
        self.slots[new] = self.n_stored + np.arange(len(new))
        self.n_stored += len(new)
        self.stored.append(new)
        return [("append", self.library.take(self.places[new]))], self.slots[rows]

    def fill_block(self, rows: Indices, exact: bool, threads: int, out: Array) -> None:
        """Compute the kernel of some rows with each other."""
        self.fetch_rows(rows)
        self.library.fill_block(self.places[rows], exact, threads, out)

    def local(self, rows: Indices) -> Any:
        """Return some rows in the form that native code takes."""
        self.fetch_rows(rows)
        return self.library.take(self.places[rows])

    def __getitem__(self, rows: Indices) -> Any:
        rows = np.asarray(rows, np.int64)
        found = self.local(rows)
        if not self.sparse:
            return found
        starts, columns, values, features = found
        return scipy.sparse.csr_matrix((values, columns, starts), (len(rows), features))
