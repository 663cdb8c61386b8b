"""The reference cost of a fit with an RBF kernel: its kernel values, computed once.

That is one float32 product of the support vectors with all rows, and one exp of each entry, in
blocks that stay in cache, on all threads. For several classes, it is the sum over the binary
problems. For sparse rows, it is the faster of a sparse and a dense product.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from .svm_truth import Binary

ROWS, COLUMNS = 1024, 1024  # of a block; the fastest sizes of those tried
SPARSE_ROWS = 64  # support vectors in a block of a sparse product


def reference_cost(X: Any, duals: list[Binary], gamma: float, threads: int) -> float:
    """Return the seconds that the kernel values of all duals take."""
    X = X.astype(np.float32)
    methods = [sparse_blocks, dense_blocks] if scipy.sparse.issparse(X) else [dense_blocks]
    best = np.inf
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        for method in methods:
            prepared = [method(X, dual, gamma) for dual in duals]
            blocks = [block for blocks in prepared for block in blocks]
            spent = 0.0
            for _ in range(5):
                began = time.perf_counter()
                list(pool.map(lambda block: block(), blocks))
                seconds = time.perf_counter() - began
                best, spent = min(best, seconds), spent + seconds
                if spent > 5:
                    break
    return best


def dense_blocks(X: Any, dual: Binary, gamma: float) -> list[Callable[[], None]]:
    own = X[dual.rows]
    own = own.toarray() if scipy.sparse.issparse(own) else np.ascontiguousarray(own)
    support = own[np.flatnonzero(dual.z)] * np.float32(-gamma)
    memory = local()

    def block(i: int, j: int) -> None:
        if not hasattr(memory, "buffer"):
            memory.buffer = np.empty(ROWS * COLUMNS, np.float32)
        a, b = support[i : i + ROWS], own[j : j + COLUMNS]
        out = memory.buffer[: len(a) * len(b)].reshape(len(a), len(b))
        np.exp(np.matmul(a, b.T, out=out), out=out)

    return [lambda i=i, j=j: block(i, j)
            for i in range(0, len(support), ROWS)
            for j in range(0, len(own), COLUMNS)]  # fmt: skip


def sparse_blocks(X: Any, dual: Binary, gamma: float) -> list[Callable[[], None]]:
    own = X[dual.rows]
    support = own[np.flatnonzero(dual.z)] * np.float32(-gamma)

    def block(i: int) -> None:
        dots = own @ np.ascontiguousarray(support[i : i + SPARSE_ROWS].toarray().T)
        np.exp(dots, out=dots)

    return [lambda i=i: block(i) for i in range(0, support.shape[0], SPARSE_ROWS)]
