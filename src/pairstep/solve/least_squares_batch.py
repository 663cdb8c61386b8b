"""Least squares with a matrix per problem, as quadratic programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._validation import Array, finite_number
from ..result import BatchResult
from .derivatives import Derivatives
from .qps import Problems, solve_qps


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
    problems = LeastSquaresProblems(**vars(batch._problems), A=A, b=np.asarray(b, float))
    object.__setattr__(result, "_problems", problems)
    object.__setattr__(result, "_results", batch._results)
    return result


@dataclass(frozen=True)
class LeastSquaresProblems(Problems):
    """Least-squares problems as quadratic programs, with their own arguments for derivatives."""

    A: Array  # (count, m, n)
    b: Array  # (count, m) or (m,)

    def _residuals(self, x: Array) -> Array:
        return np.asarray(np.matmul(self.A, x[:, :, None])[:, :, 0] - self.b)

    def derivatives(self, found: Derivatives, x: Array) -> Derivatives:
        """Return derivatives with respect to A, b and the ridge in place of Q and c."""

        def w() -> Array:
            return np.asarray(-found["c"])

        def of_A() -> Array:
            Aw = np.matmul(self.A, w()[:, :, None])
            residuals = self._residuals(x)[:, :, None]
            return np.asarray(-(residuals * w()[:, None, :] + Aw * x[:, None, :]))

        def of_b() -> Array:
            each = np.matmul(self.A, w()[:, :, None])[:, :, 0]
            return np.asarray(each.sum(axis=0) if self.b.ndim == 1 else each)

        own: dict[str, Callable[[], Any]] = {
            "A": of_A, "b": of_b, "ridge": lambda: float(-(w() * x).sum()),
        }  # fmt: skip
        others = {name: partial(found.__getitem__, name) for name in found if name not in "Qc"}
        return Derivatives(own | others, found.degenerate)

    def changes(self, given: dict[str, Any], x: Array) -> dict[str, Any]:
        """Return changes of A, b and the ridge as changes of the linear term."""
        linear = np.zeros_like(x)
        own = dict(given)
        if "A" in own:
            dA = np.asarray(own.pop("A"), float)
            linear += np.matmul(dA.transpose(0, 2, 1), self._residuals(x)[:, :, None])[:, :, 0]
            moved = np.matmul(dA, x[:, :, None])
            linear += np.matmul(self.A.transpose(0, 2, 1), moved)[:, :, 0]
        if "b" in own:
            db = np.broadcast_to(np.asarray(own.pop("b"), float), self.A.shape[:2])
            linear -= np.matmul(self.A.transpose(0, 2, 1), db[:, :, None])[:, :, 0]
        if "ridge" in own:
            linear += float(own.pop("ridge")) * x
        return own | {"c": linear}
