"""Matrices that objectives are made of: dense or sparse, checked, and as native code takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core, threads
from .._validation import LARGE, Array, require_finite

# The block gear reads its data about so often, which tells how many threads it is worth.
ROUNDS = 20


def native(matrix: Any) -> Any:
    """A matrix as the native code takes it: dense, or the parts of a CSR array."""
    if not scipy.sparse.issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    return (
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1]
    )  # fmt: skip


def sparse_matrix(name: str, matrix: Any, limit: float) -> Any:
    """A sparse argument as a float64 CSR array of numbers up to the limit in size."""
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    result = scipy.sparse.csr_array(matrix, dtype=np.float64)
    require_finite(f"{name}.data", result.data, limit)
    return result


def symmetric(matrix: Any) -> tuple[Any, float]:
    """The matrix, rid of rounding's asymmetry; an error if it is visibly asymmetric.

    Also the least curvature of a pair relative to the largest entry, which comes with the pass
    (0 where it is not known): below 0 the function is not convex.
    """
    least = 0.0
    if scipy.sparse.issparse(matrix):
        difference = abs(matrix - matrix.T).tocoo()
        largest = abs(matrix).max() if matrix.nnz else 0.0
        worst = int(np.argmax(difference.data)) if difference.nnz else 0
        amount = float(difference.data[worst]) if difference.nnz else 0.0
        i, j = (int(a[worst]) for a in difference.coords) if difference.nnz else (0, 0)
    else:
        amount, largest, i, j, least = _core.asymmetry(matrix, threads.worth(matrix.size))
        if not largest <= LARGE:
            require_finite("Q", matrix, LARGE)
    if amount > 1e-8 * largest:
        raise ValueError(
            f"Q must be symmetric, but Q[{i}, {j}] = {matrix[i, j]:g} "
            f"and Q[{j}, {i}] = {matrix[j, i]:g}"
        )
    relative = least / largest if largest > 0 else 0.0
    return matrix if amount == 0 else (matrix + matrix.T) / 2, relative


def sums_of_squares(matrix: Any, x: Array) -> Array:
    """``sum_j (M_ij x_j)^2`` for each row i; the matrix may be sparse."""
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix) @ (x * x))
    return np.asarray(np.einsum("ij,ij,j->i", matrix, matrix, x * x))


def largest_pair(diagonal: Array, rows_of: Callable[[slice], Array]) -> float:
    """``max_ij (H_ii + H_jj - 2 H_ij) / 2`` from blocks of rows."""
    largest = 0.0
    for begin in range(0, len(diagonal), 256):
        rows = slice(begin, begin + 256)
        pairs = diagonal[rows, None] + diagonal - 2 * rows_of(rows)
        pairs[np.arange(len(pairs)), begin + np.arange(len(pairs))] = 0.0
        largest = max(largest, float(pairs.max()) / 2)
    return largest
