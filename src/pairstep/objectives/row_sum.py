"""Functions that are sums over the rows of a matrix: likelihoods, growth rates, losses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import Array, full_vector
from ..labels import point_of
from .least_squares import LeastSquares
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade, embedded
from .rounding import EPS, blocks, signs_of_products
from .smooth import Smooth

# Number of variables up to which the Hessian is formed as a dense array, of 128 MB at most. With
# more variables, the model keeps the factors of the Hessian.
MAX_DENSE_VARIABLES = 4000
# Number of rows of A for each row of a sample. A larger number makes the sample cheaper, but its
# minimum is a worse start for the whole problem.
ROWS_PER_SAMPLED_ROW = 8
# Smallest number of multiplications per Hessian for which a start from a sample saves time.
MIN_COST_FOR_SAMPLE = 10**8


class Pass(NamedTuple):
    """What a pass over the matrix has found at a point, without linear terms and constants."""

    x: Array
    root: Array  # sqrt(weight factor^2 phi'') of each row
    value: float
    gradient: Array
    # Sums of weight |factor phi'| and of weight factor^2 phi'', largest and smallest |phi'|
    sizes: tuple[float, float, float, float]


class RowSum(ReadyMade):
    """The function ``sum_i weight_i phi(factor_i a_i'x + offset_i) + linear'x + constant``.

    Value, gradient and the factors of the Hessian ``A' diag(weight factor^2 phi'') A`` are computed
    in one native pass over A. Subclasses define phi, A and the other data.
    """

    _not_negative = False  # whether all entries of A are known to be at least 0

    def __init__(
        self,
        phi: Any,
        A: Array,
        weight: ArrayLike,
        *,
        largest: float,
        factor: Array | None = None,
        offset: ArrayLike = 0.0,
        linear: Array | None = None,
        constant: float = 0.0,
    ):
        m, n = A.shape
        self._phi, self._A = phi, A
        self._largest = largest  # at least the largest absolute value in A
        self._weight = full_vector("weights", weight, m)
        self._factor = factor
        self._offset = full_vector("offset", offset, m)
        self.constant_gradient, self._constant = linear, constant
        self._constant_size = abs(constant)  # size of the terms in the constant
        self.n = n
        # A point and the results of the last pass there; see `_last_at`.
        self._last: Pass | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={len(self._A)}, n={self.n})"

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f(x) and the gradient, from one pass."""
        point = point_of(self, x).copy()
        value, gradient, root, sizes = _core.row_sum(
            self._phi, self._A, self._factor, self._offset, self._weight, point,
            threads.for_work(2 * self._A.size),
        )  # fmt: skip
        self._last = Pass(point, root, value, gradient.copy(), sizes)
        value += self._constant
        linear = self.constant_gradient
        if linear is None:
            return value, gradient
        return value + float(np.sum(linear * point)), gradient + linear

    def second_order(self, x: Array, moving: Indices) -> Quadratic | LeastSquares:
        """Return the model with the Hessian at x, correct for changes of the variables `moving`."""
        root = self._last_at(x).root
        if len(x) > MAX_DENSE_VARIABLES:
            return LeastSquares.around(x, self._A * root[:, None])
        workers = threads.for_work(len(self._A) * len(moving) ** 2 / 2)
        columns = moving if len(moving) < len(x) else None
        block = _core.gram(self._A, columns, workers, root, root)
        return Quadratic.around(x, embedded(block, moving, len(x)), is_convex=True)

    def sample(self, x: Array) -> Smooth | None:
        """Return the function of some of the rows, if that saves enough time.

        Half of the rows are those with the largest curvature at x: without them the minimum may be
        at the end of the domain. The others are drawn at random, and weighted to represent the rows
        that were not drawn.
        """
        m, n = self._A.shape
        count = m // (2 * ROWS_PER_SAMPLED_ROW)
        if count < n or m * n**2 < MIN_COST_FOR_SAMPLE:
            return None
        curvature = self._last_at(x).root * np.maximum(self._A.max(axis=1), -self._A.min(axis=1))
        order = np.argpartition(curvature, m - count)
        drawn = np.random.default_rng(0).permutation(order[: m - count])[:count]
        rows = np.sort(np.r_[order[m - count :], drawn])
        weight = self._weight.copy()
        weight[drawn] *= weight[order[: m - count]].sum() / (weight[drawn].sum() or 1.0)
        return RowSum(
            self._phi, self._A[rows], weight[rows], largest=self._largest,
            factor=None if self._factor is None else self._factor[rows],
            offset=self._offset[rows], linear=self.constant_gradient, constant=self._constant,
        )  # fmt: skip

    def rounding_errors(self, x: Array) -> tuple[float, Array]:
        """Return bounds on the rounding errors of value and gradient at x.

        The inner products ``a_i'x`` may cancel, and phi and its derivative amplify their errors.
        Each sum has as many sequential additions as one SIMD lane of the native pass. Bounds that
        need no pass over A are used if they are tight enough.
        """
        m, n = self._A.shape
        in_products, in_sums = EPS * (n / 2 + 4), EPS * (m / 2 + 12 if m < 128 else m / 128 + 196)
        quick = self._quick_errors(x, in_products, in_sums)
        value, gradient = quick or self._errors_by_rows(x, in_products, in_sums)
        value += 40 * EPS * self._constant_size
        if self.constant_gradient is not None:
            linear = np.abs(self.constant_gradient)
            # The linear term may itself be a sum over the rows.
            value += (in_products + EPS * m) * float(linear @ np.abs(x))
            gradient = gradient + EPS * (m + 4) * linear
        return value, gradient

    def _quick_errors(
        self, x: Array, in_products: float, in_sums: float
    ) -> tuple[float, Array] | None:
        """Return the bounds from the largest entry of A and the last pass; None if too loose."""
        last, total = self._last_at(x), float(self._weight.sum())
        slope_sum, curvature, steepest, flattest = last.sizes
        product = self._largest * float(np.abs(x).sum())
        error = in_products * product  # of each inner product
        if self._phi == _core.RowFunction.logistic:
            change = 0.25 * total * error  # phi'' is at most 1/4
            each = self._largest * (change + in_sums * (slope_sum + change))
            value = slope_sum * error + change * error + in_sums * last.value
            return _if_small(value, np.full(len(x), each), last.gradient)
        if self._factor is not None or not 0 < flattest <= steepest < math.inf:
            return None
        if self._not_negative and x.min() >= 0:  # no cancellation
            relative_error, errors = (
                in_products,
                2 * (in_products + in_sums) * np.abs(last.gradient),
            )
        else:  # phi' = -1/u, so the relative error of u is at most that of the smallest u
            relative_error = error * steepest
            each = self._largest * (2 * error * curvature + in_sums * slope_sum)
            errors = np.full(len(x), each)
        if relative_error > 0.25:
            return None
        log = max(abs(math.log(steepest)), abs(math.log(flattest)))  # largest |log u|
        value = total * (2 * relative_error + in_sums * log)
        return _if_small(value, errors, last.gradient)

    def _errors_by_rows(self, x: Array, in_products: float, in_sums: float) -> tuple[float, Array]:
        """Return the bounds computed row by row, with two products of absolute values."""
        m, n = self._A.shape
        size, counts = np.abs(x), self._weight > 0
        factor = np.ones(m) if self._factor is None else np.abs(self._factor)
        value_error, gradient_error = 0.0, np.zeros(n)
        for rows in blocks(m, n):
            part = self._A[rows][counts[rows]]
            weight, some = self._weight[rows][counts[rows]], factor[rows][counts[rows]]
            u = part @ x
            if self._factor is not None:
                u = u * self._factor[rows][counts[rows]]
            part = np.abs(part)
            # The native pass corrects for the rounding error of adding the offset.
            error = in_products * (some * (part @ size))
            value, slope, change = _sizes(self._phi, u + self._offset[rows][counts[rows]], error)
            if not np.isfinite(slope).all():
                return math.inf, np.full(n, math.inf)
            value_error += float(weight @ (slope * error + in_sums * value))
            gradient_error += (weight * some * (change + in_sums * slope)) @ part
        return value_error, gradient_error

    @property
    def lower_bound(self) -> float:
        """A lower bound on f."""
        return 0.0 if self._phi == _core.RowFunction.logistic else -math.inf

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound as t grows; None if unknown.

        ``-log`` falls without bound if its argument grows, but more slowly than any linear term; if
        the argument decreases, the domain ends. The signs of ``a_i'd`` are exact.
        """
        if self.lower_bound > -math.inf and cost >= 0:
            return False
        if self._phi != _core.RowFunction.minus_log:
            return None
        counts = self._weight > 0
        rows = signs_of_products(self._A, d)[counts]
        if self._factor is not None:
            rows *= np.sign(self._factor[counts])
        if rows.min() < 0:
            return False
        slopes = {float(np.sign(cost))}
        if self.constant_gradient is not None:
            slopes.add(float(signs_of_products(self.constant_gradient[None], d)[0]))
        if slopes >= {-1.0, 1.0}:
            return None
        slope = sum(slopes)
        return bool(slope < 0 or (slope == 0 and rows.max() > 0))

    @property
    def recession_rows(self) -> Array | None:
        """Rows R: f falls without bound along d if ``Rd >= 0`` and an entry of Rd is positive.

        None if that is not the exact condition.
        """
        if self._phi != _core.RowFunction.minus_log or self.constant_gradient is not None:
            return None
        rows = self._A if self._factor is None else self._A * self._factor[:, None]
        return rows[self._weight > 0]

    def _last_at(self, x: Array) -> Pass:
        """Return what a pass over the matrix finds at x; the last one if it was there."""
        last = self._last
        if last is None or not np.array_equal(last.x, x):
            self.value_and_gradient(x)
            last = self._last
        assert last is not None
        return last


# Largest quick bound on the gradient's rounding errors that is used, relative to the largest
# derivative. A larger limit saves passes over A; a smaller one gives tighter bounds.
MAX_QUICK_ERROR = 2e-10


def _if_small(value: float, errors: Array, gradient: Array) -> tuple[float, Array] | None:
    return (value, errors) if errors.max() <= MAX_QUICK_ERROR * np.abs(gradient).max() else None


def _sizes(phi: Any, u: Array, error: Array) -> tuple[Array, Array, Array]:
    """Return the sizes of phi and its derivative near u, and the effect of u's error on phi'."""
    with np.errstate(all="ignore"):
        if phi == _core.RowFunction.minus_log:
            least = np.where(u > error, u - error, 0.0)
            return np.abs(np.log(u)), 1 / least, error / least / least
        miss = 1 / (1 + np.exp(np.maximum(u - error, -700.0)))
        return np.logaddexp(0, -u), miss, np.minimum(miss, 0.25) * error
