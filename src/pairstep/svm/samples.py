"""Training samples that change from update to update, and kernel rows of some of them.

An update adds or removes a few rows of a large matrix. Copying the matrix would take longer than
the rest of most updates, so rows never move: each has a slot in a matrix with room for more, and
the samples are a list of slots. A slot is written once. Models that share a matrix, such as a model
and its shallow copy, therefore do not see each other's new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import DTypeLike, NDArray

from .._validation import Array
from ..constraints import Indices

# Slots for new rows, as a fraction of the samples, and at least this many. With fewer, the matrix
# would be copied more often; with more, it would take more memory.
SPARE = 0.25
MIN_SPARE = 64
# The matrix is copied without removed rows once it has this many slots per sample.
MAX_SLOTS_PER_SAMPLE = 3
# Kernel rows that are allocated at first. Their number doubles when more are needed.
FIRST_ROWS = 64
# Kernel rows that are computed together. More would need more memory for their float64 values;
# fewer would pack the samples for the kernel tiles more often.
ROWS_AT_ONCE = 64
# Rows whose multiples are summed in the type of the rows before they are added to a sum in float64.
# More would let rounding errors of float32 grow above those of the kernel values.
ROWS_PER_SUM = 16

# The kernel of some slots with others: one row for each of the former.
KernelValues = Callable[[Indices, Indices], Array]


@dataclass
class Samples:
    """Samples in the order of the training set, as slots of a matrix."""

    data: Any  # the matrix; a dense one has more rows than are in use
    slots: Indices
    used: int  # number of slots in use, including those of removed samples
    # Which update wrote the slots from a given one on. Only one of several models that share the
    # matrix may continue it, because `setdefault` succeeds once. Its identity is that of the slots.
    claims: dict[int, object] = field(default_factory=dict)
    # The slots of the last support vectors, and their rows.
    known: tuple[Indices, Any] | None = None

    @staticmethod
    def of(X: Any) -> Samples:
        """Return samples with a copy of the rows of a matrix."""
        return _copied(X, np.arange(X.shape[0]), None)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of samples and of features."""
        return len(self.slots), int(self.data.shape[1])

    @property
    def dtype(self) -> Any:
        """The type of the entries."""
        return self.data.dtype

    @property
    def capacity(self) -> int:
        """The number of slots that fit, or a limit for sparse rows, whose matrix is replaced."""
        if scipy.sparse.issparse(self.data):
            return MAX_SLOTS_PER_SAMPLE * (len(self.slots) + MIN_SPARE)
        return int(self.data.shape[0])

    def __getitem__(self, rows: Indices) -> Any:
        slots = self.slots[rows]
        if self.known is not None and np.array_equal(slots, self.known[0]):
            return self.known[1]
        return self.data[slots]

    def in_use(self, first: int = 0) -> Any:
        """Return the rows of all slots in use, from some slot on."""
        return self.data[first : self.used]

    def matrix(self) -> Any:
        """Return the samples as a matrix."""
        return self.data[self.slots]

    def changed(self, kept: Indices, X_new: Any) -> Samples:
        """Return the samples that stay, then new ones, without changing these."""
        slots = self.slots if len(kept) == len(self.slots) else self.slots[kept]
        count = 0 if X_new is None else X_new.shape[0]
        if self.data.shape[0] > MAX_SLOTS_PER_SAMPLE * (len(slots) + count + MIN_SPARE):
            return _copied(self.data, slots, X_new)
        if count == 0:
            return Samples(self.data, slots, self.used, self.claims, self.known)
        token = object()
        end = self.used + count
        is_sparse = scipy.sparse.issparse(self.data)
        fits = is_sparse or end <= self.data.shape[0]
        if not fits or self.claims.setdefault(self.used, token) is not token:
            return _copied(self.data, slots, X_new)
        data = self.data
        if is_sparse:
            data = scipy.sparse.vstack([data, X_new], format="csr", dtype=data.dtype)
        else:
            data[self.used : end] = X_new
        slots = np.concatenate([slots, np.arange(self.used, end)])
        return Samples(data, slots, end, self.claims, self.known)


def _copied(X: Any, rows: Indices, X_new: Any) -> Samples:
    """Return samples with copies of some rows of a matrix, then of new ones."""
    count = len(rows) + (0 if X_new is None else X_new.shape[0])
    if scipy.sparse.issparse(X):
        data = X[rows]
        if X_new is not None:
            data = scipy.sparse.vstack([data, X_new], format="csr", dtype=X.dtype)
        return Samples(data, np.arange(count), count)
    data = np.zeros((count + max(int(SPARE * count), MIN_SPARE), X.shape[1]), X.dtype)
    np.take(X, rows, axis=0, out=data[: len(rows)], mode="clip")
    if X_new is not None:
        data[len(rows) : count] = X_new
    return Samples(data, np.arange(count), count)


class KernelRows:
    """Kernel rows of some samples with all slots, which updates keep.

    The samples whose variables changed in one update often change in the next one as well. If there
    is no room for more rows, those that were not needed for the longest time are replaced.
    """

    def __init__(self, samples: Samples, max_bytes: int, dtype: DTypeLike):
        self.claims = samples.claims
        self.width = samples.capacity
        row_bytes = max(self.width, 1) * np.dtype(dtype).itemsize
        self.max_rows = min(max_bytes // row_bytes, self.width)
        self.values: NDArray[Any] = np.zeros((min(FIRST_ROWS, self.max_rows), self.width), dtype)
        self.place = np.full(self.width, -1)  # of a slot: its row, or -1
        self.owner = np.full(self.max_rows, -1)  # of a row: its slot, or -1
        self.filled = np.zeros(self.max_rows, np.int64)  # of a row: number of its values
        self.age = np.zeros(self.max_rows, np.int64)  # of a row: when it was last needed
        self.now = 0
        # The last kernel matrix of some slots. Its entries are read faster than those of the rows.
        self.block_slots: Indices = np.zeros(0, np.int64)
        self.last_block: NDArray[Any] = np.zeros((0, 0), dtype)

    def fits(self, samples: Samples, dtype: DTypeLike) -> bool:
        """Return whether the rows are of these samples."""
        same = samples.claims is self.claims and samples.used <= self.width
        return same and self.values.dtype == dtype

    def combined(
        self, samples: Samples, slots: Indices, weights: Array, compute: KernelValues
    ) -> Array | None:
        """Return the sum of the kernel rows of some slots times weights, for all slots in use.

        The result is None if there is no room for all their rows.
        """
        rows = self._rows(samples, slots, compute)
        if rows is None:
            return None
        factors = np.zeros(len(self.values), self.values.dtype)
        factors[rows] = weights
        sums = np.zeros(samples.used)
        # Rows that are next to each other are read in place. A copy would take as long as the sum.
        for part in np.unique(rows // ROWS_PER_SUM).tolist():
            some = slice(ROWS_PER_SUM * part, ROWS_PER_SUM * (part + 1))
            sums += factors[some] @ self.values[some, : samples.used]
        return sums

    def block(self, slots: Indices, compute: KernelValues) -> NDArray[Any]:
        """Return the kernel matrix of some slots, each of them once, and keep it."""
        count = len(slots)
        place = np.full(self.width, -1)
        place[self.block_slots] = np.arange(len(self.block_slots))
        before = place[slots]
        known, missing = np.flatnonzero(before >= 0), np.flatnonzero(before < 0)
        matrix = np.empty((count, count), self.values.dtype)
        matrix[np.ix_(known, known)] = self.last_block[np.ix_(before[known], before[known])]
        rows = self.place[slots[missing]]
        # A row may lack the values for the newest slots.
        last = slots.max(initial=0)
        is_row = (rows >= 0) & (self.filled[rows] > last)
        if is_row.any():
            at = missing[is_row]
            matrix[at] = self.values[np.ix_(rows[is_row], slots)]
            matrix[:, at] = matrix[at].T
        rest = missing[~is_row]
        for k in range(0, len(rest), ROWS_AT_ONCE):
            at = rest[k : k + ROWS_AT_ONCE]
            matrix[at] = compute(slots[at], slots)
            matrix[:, at] = matrix[at].T
        self.block_slots, self.last_block = slots, matrix
        return matrix

    def _rows(self, samples: Samples, slots: Indices, compute: KernelValues) -> Indices | None:
        """Return which rows belong to some slots, after computing what is missing."""
        if len(slots) > self.max_rows:
            return None
        self.now += 1
        found = self.place[slots]
        missing = slots[found < 0]
        self.age[found[found >= 0]] = self.now
        if len(missing):
            to = self._vacant(len(missing))
            columns = np.arange(samples.used)
            for k in range(0, len(missing), ROWS_AT_ONCE):
                some, rows = missing[k : k + ROWS_AT_ONCE], to[k : k + ROWS_AT_ONCE]
                self.values[rows, : samples.used] = compute(some, columns)
                self.owner[rows], self.place[some] = some, rows
                self.filled[rows], self.age[rows] = samples.used, self.now
            found = self.place[slots]
        old = found[self.filled[found] < samples.used]
        if len(old):
            columns = np.arange(self.filled[old].min(), samples.used)
            self.values[old, columns[0] : samples.used] = compute(self.owner[old], columns)
            self.filled[old] = samples.used
        return np.asarray(found)

    def _vacant(self, count: int) -> Indices:
        """Return rows to write, none of which is needed now."""
        vacant = np.flatnonzero(self.owner < 0)[:count]
        if len(vacant) < count:
            used = np.flatnonzero(self.owner >= 0)
            used = used[np.argsort(self.age[used], kind="stable")][: count - len(vacant)]
            self.place[self.owner[used]] = -1
            self.owner[used] = -1
            vacant = np.concatenate([vacant, used])
        have = len(self.values)
        if count and vacant.max() >= have:
            more = min(max(2 * have, int(vacant.max()) + 1), self.max_rows)
            values = np.zeros((more, self.width), self.values.dtype)
            values[:have] = self.values
            self.values = values
        return vacant
