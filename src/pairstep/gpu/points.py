"""Rows of a data matrix as points on the GPU, in stripes if they do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from .._validation import Array
from ..constraints import Indices
from .device import SLAB, Device, Packed

# Fraction of the free GPU memory that the data may use, and fraction that the points of a dual may
# use. The rest is for other duals, working sets and candidates. If larger, these may not fit; if
# smaller, more data are sent repeatedly.
MEMORY_FRACTION = 0.25

# A stripe takes at most this fraction of the memory for points. Only the stripes that do not fit
# are sent again. Smaller stripes waste less of that memory, but take more launches.
STRIPE_FRACTION = 0.25

# Bytes of rows that are sent to the GPU at a time. Sparse rows are first copied to a dense array of
# this size in CPU memory.
BLOCK_BYTES = 2**28


class Data:
    """A dense or CSR matrix whose rows are sent to the GPU when they are needed.

    X has the form that native code takes. If all of it fits into GPU memory it is sent once, and
    the rows of a working set need no transfer.
    """

    def __init__(self, device: Device, X: Any, center: Array | None):
        if isinstance(X, tuple):
            starts, columns, values, features = X
            X = scipy.sparse.csr_array((values, columns, starts), (len(starts) - 1, features))
        self.device, self.X, self.shape = device, X, X.shape
        self.origin = np.zeros(X.shape[1]) if center is None else center
        self.center = device.xp.asarray(self.origin)
        self.on_device: Any = None
        free = device.free_bytes()
        dense = 8.0 * X.shape[0] * X.shape[1]
        if scipy.sparse.issparse(X) and dense > free:
            raise ValueError(
                f"X is sparse, and as a dense matrix it would need {dense / 2**30:.3g} GB of GPU "
                f"memory, of which {free / 2**30:.3g} GB are free; use "
                'device="cpu", where X stays sparse'
            )
        if dense <= MEMORY_FRACTION * free:
            self.on_device = self._sent()

    def _sent(self) -> Any:
        """Send all rows to the GPU; sparse rows are made dense block by block."""
        xp = self.device.xp
        rows = max(BLOCK_BYTES // (8 * max(self.shape[1], 1)), 1)
        sent = xp.empty(self.shape, _entry(self.X))
        for first in range(0, self.shape[0], rows):
            self.device.send(_dense(self.X[first : first + rows]), sent[first : first + rows])
        return sent

    def pack(self, rows: Indices | slice, dtype: str) -> Packed:
        """Return some rows as points."""
        xp = self.device.xp
        if self.on_device is None:
            return self.device.pack(xp.asarray(_dense(self.X[rows])), None, self.center, dtype)
        if isinstance(rows, slice):
            return self.device.pack(self.on_device[rows], None, self.center, dtype)
        return self.device.pack(self.on_device, self.device.sent(rows), self.center, dtype)

    def pack_sum(self, rows: Indices, weights: Array, dtype: str) -> Packed:
        """Return the weighted sum of some rows, minus the center, as a point."""
        total = weights @ (_dense(self.X[rows]) - self.origin)
        xp = self.device.xp
        return self.device.pack(xp.asarray(total[None]), None, xp.zeros(len(total)), dtype)


class Points:
    """Points in stripes. As many stripes as fit stay on the GPU; others are sent for each pass."""

    def __init__(self, data: Data, rows: Indices, dtype: str):
        self.data, self.rows, self.dtype = data, rows, dtype
        features = data.X.shape[1] + SLAB
        free = max(MEMORY_FRACTION * data.device.free_bytes(), 1.0)
        whole = float(np.dtype(dtype).itemsize) * features * len(rows)
        stripes = max(int(np.ceil(whole / (STRIPE_FRACTION * free))), 1) if whole > free else 1
        ends = np.linspace(0, len(rows), stripes + 1).astype(np.int64)
        self.parts = [slice(begin, end) for begin, end in pairwise(ends)]
        kept = int(stripes * min(free / whole, 1.0)) if whole > 0 else 1
        self.kept = [self._pack(part) for part in self.parts[:kept]]

    def __iter__(self) -> Iterator[tuple[slice, Packed]]:
        """Yield the range of each stripe and its points."""
        for k, part in enumerate(self.parts):
            yield part, self.kept[k] if k < len(self.kept) else self._pack(part)

    def _pack(self, part: slice) -> Packed:
        return self.data.pack(self.rows[part], self.dtype)


def _dense(X: Any) -> Any:
    if scipy.sparse.issparse(X):
        X = X.toarray()
    return np.ascontiguousarray(X, _entry(X))


def _entry(X: Any) -> type[np.floating[Any]]:
    return np.float32 if X.dtype == np.float32 else np.float64
