"""Least squares with a matrix per problem, as quadratic programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import finite_number
from ..result import BatchResult
from .qps import solve_qps


def solve_different(A: Any, b: Any, ridge: float, **options: Any) -> BatchResult:
    """Minimize ``|A_k x - b_k|^2 / 2 + ridge |x|^2 / 2`` for each matrix ``A_k``.

    The Gram matrices are formed, so that accuracy is lost if the columns of a matrix are nearly
    dependent. `fun` is computed from the residuals.
    """
    A, right = np.asarray(A, float), np.asarray(b, float)
    count, m, n = A.shape
    if right.shape not in ((m,), (count, m)):
        raise ValueError(
            f"b must have the shape ({count}, {m}), one row per matrix of A, or ({m},), got "
            f"{right.shape}"
        )
    if finite_number("ridge", ridge) < 0:
        raise ValueError(f"ridge must not be negative, got {ridge:g}")
    right = np.broadcast_to(right, (count, m))
    transposed = A.transpose(0, 2, 1)
    gram = np.matmul(transposed, A)
    gram = (gram + gram.transpose(0, 2, 1)) / 2  # exactly symmetric
    gram[:, np.arange(n), np.arange(n)] += ridge
    linear = -np.matmul(transposed, right[:, :, None])[:, :, 0]
    given = {name: value for name, value in options.items() if value is not None}
    batch = solve_qps(gram, linear, **given)
    residual = np.matmul(A, batch.x[:, :, None])[:, :, 0] - right
    squares = np.einsum("bi,bi->b", residual, residual)
    values = (squares + ridge * np.einsum("bi,bi->b", batch.x, batch.x)) / 2
    if options.get("l1") is not None:
        products = np.matmul(gram, batch.x[:, :, None])[:, :, 0]
        quadratic = np.einsum("bi,bi->b", batch.x, products / 2 + linear)
        values = values + (batch.fun - quadratic)  # the L1 terms
    result = replace(batch, fun=values)
    object.__setattr__(result, "_problems", batch._problems)
    return result
