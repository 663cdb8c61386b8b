"""Checks and conversions of the dense or sparse matrices in objectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from .. import _core, threads
from .._validation import LARGE, Array, numbers_for_message, require_finite

# Typical number of passes of the block solver over its data. It only decides how many threads are
# worth starting.
PASSES_OF_BLOCK_SOLVER = 20
# Asymmetry that counts as rounding, relative to the largest entry: the larger of MAX_ASYMMETRY and
# MAX_ASYMMETRY_IN_EPS machine epsilons of the dtype in which the matrix was given. Entries are sums
# of products that may have been added in different orders. Larger limits would hide mistakes.
MAX_ASYMMETRY = 1e-8
MAX_ASYMMETRY_IN_EPS = 64
# Rows of the Hessian that `largest_pair` computes at a time. A larger number needs more memory; a
# smaller one makes the products less efficient.
ROWS_AT_A_TIME = 256


def native(matrix: Any) -> Any:
    """Return a matrix as native code expects it: dense, or the arrays of a CSR matrix."""
    if not scipy.sparse.issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    return (
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1]
    )  # fmt: skip


def sparse_matrix(name: str, matrix: Any, limit: float) -> Any:
    """Return a sparse argument as a float64 CSR array, after checking its entries."""
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    result = scipy.sparse.csr_array(matrix, dtype=np.float64)
    require_finite(f"{name}.data", result.data, limit)
    return result


def symmetric(matrix: Any, given: Any = np.float64) -> tuple[Any, float]:
    """Return the matrix made exactly symmetric; raise if it is visibly asymmetric.

    How much asymmetry counts as rounding depends on `given`, the dtype of the user's matrix.

    Also returns the least curvature of a pair relative to the largest entry, which the same pass
    finds (0 if unknown). If it is negative the function is not convex.
    """
    least = 0.0
    if scipy.sparse.issparse(matrix):
        difference = abs(matrix - matrix.T).tocoo()
        largest = abs(matrix).max() if matrix.nnz else 0.0
        worst = int(np.argmax(difference.data)) if difference.nnz else 0
        amount = float(difference.data[worst]) if difference.nnz else 0.0
        i, j = (int(a[worst]) for a in difference.coords) if difference.nnz else (0, 0)
    else:
        amount, largest, i, j, least = _core.asymmetry(matrix, threads.for_work(matrix.size))
        if not largest <= LARGE:
            require_finite("Q", matrix, LARGE)
    if amount > _asymmetry_allowed(given) * largest:
        one, other = numbers_for_message(matrix[i, j], matrix[j, i])
        raise ValueError(
            f"Q must be symmetric, but Q[{i}, {j}] = {one} and Q[{j}, {i}] = {other}; if that is "
            "rounding, pass (Q + Q.T) / 2"
        )
    relative = least / largest if largest > 0 else 0.0
    return matrix if amount == 0 else (matrix + matrix.T) / 2, relative


def _asymmetry_allowed(given: Any) -> float:
    """Return the asymmetry that counts as rounding, relative to the largest entry."""
    kind = np.dtype(given)
    return (
        max(MAX_ASYMMETRY, MAX_ASYMMETRY_IN_EPS * float(np.finfo(kind).eps))
        if kind.kind == "f"
        else MAX_ASYMMETRY
    )


def sums_of_squares(matrix: Any, x: Array) -> Array:
    """Return ``sum_j (M_ij x_j)^2`` for each row i."""
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix.multiply(matrix) @ (x * x))
    return np.asarray(np.einsum("ij,ij,j->i", matrix, matrix, x * x))


def largest_pair(diagonal: Array, rows_of: Callable[[slice], Array]) -> float:
    """Return ``max_ij (H_ii + H_jj - 2 H_ij) / 2``, computed by blocks of rows."""
    largest = 0.0
    for begin in range(0, len(diagonal), ROWS_AT_A_TIME):
        rows = slice(begin, begin + ROWS_AT_A_TIME)
        pairs = diagonal[rows, None] + diagonal - 2 * rows_of(rows)
        pairs[np.arange(len(pairs)), begin + np.arange(len(pairs))] = 0.0
        largest = max(largest, float(pairs.max()) / 2)
    return largest
