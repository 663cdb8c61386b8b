"""Sums over the rows of a matrix: what likelihoods, growth rates and losses have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import Array, full_vector
from ..labels import point_of
from .least_squares import LeastSquares
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade, embedded
from .smooth import Smooth

# Up to so many variables a Hessian is formed, of those that move.
DENSE = 4000
# The minimum over one in so many rows is close to that over all: a good start, where a Hessian
# costs so many multiplications at least.
SHARE = 8
WORTH_A_SAMPLE = 10**8


class RowSum(ReadyMade):
    """The function ``sum_i weight_i phi(factor_i a_i'x + offset_i) + linear'x + constant``.

    Value, gradient and the numbers that make the Hessian ``A' diag(weight factor^2 phi'') A`` come
    from one native pass over A. Subclasses say what phi, A and the rest are.
    """

    def __init__(
        self,
        phi: Any,
        A: Array,
        weight: ArrayLike,
        *,
        factor: Array | None = None,
        offset: ArrayLike = 0.0,
        linear: Array | None = None,
        constant: float = 0.0,
    ):
        m, n = A.shape
        self._phi, self._A = phi, A
        self._weight = full_vector("weights", weight, m)
        self._factor = factor
        self._offset = full_vector("offset", offset, m)
        self.constant_gradient, self._constant = linear, constant
        self.n = n
        # A point, and the roots of weight factor^2 phi'' there.
        self._last: tuple[Array, Array] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={len(self._A)}, n={self.n})"

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Both from one pass."""
        point = point_of(self, x).copy()
        value, gradient, root = _core.row_sum(
            self._phi, self._A, self._factor, self._offset, self._weight, point,
            threads.worth(2 * self._A.size),
        )  # fmt: skip
        self._last = point, root
        value += self._constant
        linear = self.constant_gradient
        if linear is None:
            return value, gradient
        return value + float(np.sum(linear * point)), gradient + linear

    def second_order(self, x: Array, moving: Indices) -> Quadratic | LeastSquares:
        """``(y - x)'H(y - x) / 2`` with the Hessian at x, right for moves of some variables."""
        root = self._root_at(x)
        if len(x) > DENSE:
            return LeastSquares.around(x, self._A * root[:, None])
        workers = threads.worth(len(self._A) * len(moving) ** 2 / 2)
        columns = moving if len(moving) < len(x) else None
        block = _core.gram(self._A, columns, workers, root, root)
        return Quadratic.around(x, embedded(block, moving, len(x)))

    def sample(self, x: Array) -> Smooth | None:
        """The same from a share of the rows, where that saves enough; see `SHARE`.

        Half of them are those that bend f most at x: a minimum that does not know of them may be
        at the very end of the domain. The others are drawn, and stand for those that were not.
        """
        m, n = self._A.shape
        count = m // (2 * SHARE)
        if count < n or m * n**2 < WORTH_A_SAMPLE:
            return None
        bend = self._root_at(x) * np.maximum(self._A.max(axis=1), -self._A.min(axis=1))
        order = np.argpartition(bend, m - count)
        drawn = np.random.default_rng(0).permutation(order[: m - count])[:count]
        rows = np.sort(np.r_[order[m - count :], drawn])
        weight = self._weight.copy()
        weight[drawn] *= weight[order[: m - count]].sum() / (weight[drawn].sum() or 1.0)
        return RowSum(
            self._phi, self._A[rows], weight[rows],
            factor=None if self._factor is None else self._factor[rows],
            offset=self._offset[rows], linear=self.constant_gradient, constant=self._constant,
        )  # fmt: skip

    def _root_at(self, x: Array) -> Array:
        last = self._last
        if last is None or not np.array_equal(last[0], x):
            self.value_and_gradient(x)
            last = self._last
        assert last is not None
        return last[1]
