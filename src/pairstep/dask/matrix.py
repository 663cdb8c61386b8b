"""The training data as a fit sees them: a matrix whose rows lie with the shares.

Rows that the coordinator has been sent are kept in its library. Those that have moved are in the
store of every share, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.machine import Kernel
from .cluster import Line, Shares
from .share import Calls, Summary


class ClusterMatrix:
    """What an estimator and the engine ask of a data matrix."""

    def __init__(self, shares: Shares, names: Any):
        self.shares, self.names = shares, names
        shares.restoring = self._restoring
        self.kernel: Any = None  # once it is known
        self.oracle: Any = None  # the one that is at work
        summaries: list[Summary] = [summary for (summary,) in shares.ask_all([("summary",)])]
        counts = np.array([summary.rows for summary in summaries], np.float64)
        first = summaries[0]
        self.shape = int(counts.sum()), first.features
        self.sparse, self.dtype = first.sparse, first.dtype
        self.size = self.shape[0] * self.shape[1]
        self.largest_square = max(summary.largest_square for summary in summaries)
        self.mean: Array = np.average([s.mean for s in summaries], axis=0, weights=counts)
        levels = np.array([s.mean.mean() for s in summaries])
        within = np.array([s.variance for s in summaries])
        self.variance = float(np.average(within + (levels - self.mean.mean()) ** 2, weights=counts))

    def measure(self) -> tuple[float, float]:
        """Give the variance of all entries, and the largest squared norm of a row."""
        return self.variance, self.largest_square

    def open(self, kernel: Kernel) -> None:
        """Have the shares ready for duals with this kernel."""
        self.kernel = kernel
        self.center = None
        if kernel.name == "rbf":
            self.center = self.mean.astype(np.float32).astype(np.float64)
        self.library = _core.Library(kernel.native, self.center)
        self.places = np.full(self.shape[0], -1, np.int64)  # of rows in the library
        self.count = 0
        self.slots = np.full(self.shape[0], -1, np.int64)  # of rows in the shares' stores
        self.stored: list[Indices] = []  # rows in the order of the stores
        self.n_stored = 0
        self.shares.ask_all([("open", kernel, self.center)], again=[])

    def _restoring(self, line: Line) -> Calls:
        if self.kernel is None:
            return []
        calls: Calls = [("open", self.kernel, self.center)]
        if self.stored:
            calls.append(("append", self.library.take(self.places[np.concatenate(self.stored)])))
        if self.oracle is not None:
            calls += self.oracle.restoring(line)
        return calls

    def learn(self, rows: Indices, features: Any) -> None:
        """Keep rows that have come."""
        new = self.places[rows] < 0
        if not new.all():  # of a share that was restored
            known = _core.Library(self.kernel.native, self.center)
            known.append(features)
            rows, features = rows[new], known.take(np.flatnonzero(new))
        if len(rows) == 0:
            return
        self.library.append(features)
        self.places[rows] = self.count + np.arange(len(rows))
        self.count += len(rows)

    def require(self, rows: Indices) -> None:
        """Have these rows in the library."""
        missing = np.unique(rows[self.places[rows] < 0])
        if len(missing) == 0:
            return
        asked: list[Calls] = []
        for line in self.shares.lines:
            own = missing[(missing >= line.begin) & (missing < line.end)]
            asked.append([("features", own - line.begin)] if len(own) else [])
        for line, answer in zip(self.shares.lines, self.shares.ask(asked), strict=True):
            if answer:
                own = missing[(missing >= line.begin) & (missing < line.end)]
                self.learn(own, answer[0])

    def store(self, rows: Indices) -> tuple[Calls, Indices]:
        """Have these rows in the stores of all shares: what to tell them, and where they are."""
        new = np.unique(rows[self.slots[rows] < 0])
        if len(new) == 0:
            return [], self.slots[rows]
        self.require(new)
        self.slots[new] = self.n_stored + np.arange(len(new))
        self.n_stored += len(new)
        self.stored.append(new)
        return [("append", self.library.take(self.places[new]))], self.slots[rows]

    def fill_block(self, rows: Indices, exact: bool, threads: int, out: Array) -> None:
        """The kernel of some rows with each other."""
        self.require(rows)
        self.library.fill_block(self.places[rows], exact, threads, out)

    def local(self, rows: Indices) -> Any:
        """Some rows as native code takes them."""
        self.require(rows)
        return self.library.take(self.places[rows])

    def __getitem__(self, rows: Indices) -> Any:
        rows = np.asarray(rows, np.int64)
        found = self.local(rows)
        if not self.sparse:
            return found
        starts, columns, values, features = found
        return scipy.sparse.csr_matrix((values, columns, starts), (len(rows), features))
