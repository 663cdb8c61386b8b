"""Constraints: sums and bounds, and their translation into accounts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._validation import (
    Array,
    finite_number,
    full_array,
    full_vector,
    require_no_nan,
    vector,
)

Indices = NDArray[np.int64]


class SumBox:
    """Variables that add up to a total and stay within bounds.

    Parameters
    ----------
    total : float, pair of floats, or array_like
        What the (weighted) sum must be. A tuple ``(low, high)`` lets the sum lie in a range. With
        groups, an array gives one total per group, in the order of the sorted group labels.
    lower, upper : float or array_like
        Bounds, infinite where there are none.
    weights : array_like, optional
        The constraint is ``sum(weights * x) = total``; any non-zero numbers.
    groups : array_like of int, optional
        A label per variable: each group has a sum of its own.

    Examples
    --------
    >>> import pairstep
    >>> budget = pairstep.SumBox(total=1.0, lower=0.0, upper=[0.5, 0.5, 0.2])
    >>> [round(float(v), 12) for v in budget.start(3)]
    [0.4, 0.4, 0.2]
    """

    def __init__(
        self,
        total: float | tuple[ArrayLike, ArrayLike] | ArrayLike = 1.0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = math.inf,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ):
        self.total = total
        self.lower = lower
        self.upper = upper
        self.weights = weights
        self.groups = groups
        self._layouts: dict[int, Layout] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total={self.total!r})"

    @property
    def size(self) -> int | None:
        """The number of variables, where an argument tells it."""
        for given in (self.lower, self.upper, self.weights, self.groups):
            if given is not None and np.ndim(given) == 1:
                return len(given)  # type: ignore[arg-type]
        return None

    def start(self, n: int | None = None) -> Array:
        """Return a feasible point: the total spread as evenly as the bounds allow."""
        layout = self.layout(self._size_or(n))
        return layout.to_coordinates(layout.project(np.zeros(layout.n)))

    def project(self, y: ArrayLike) -> Array:
        """Return the feasible point nearest to y (with weights: in the variables weights * x)."""
        point = vector("y", y)
        layout = self.layout(len(point))
        return layout.to_coordinates(layout.nearest(point))

    def layout(self, n: int) -> Layout:
        """Translate into accounts for n variables; kept, for a solve may be repeated."""
        if n not in self._layouts:
            self._layouts[n] = _layout(self, n)
        return self._layouts[n]

    def _size_or(self, n: int | None) -> int:
        size = self.size if n is None else n
        if size is None:
            raise ValueError("n is not known from the bounds: give it as start(n)")
        return size


class Simplex(SumBox):
    """Non-negative variables that add up to a total.

    Examples
    --------
    >>> import pairstep
    >>> pairstep.Simplex().start(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, total: float | tuple[ArrayLike, ArrayLike] | ArrayLike = 1.0):
        super().__init__(total=total)


@dataclass(frozen=True)
class Layout:
    """A constraint in accounts.

    The account of coordinate i holds ``weights_i x_i``. Accounts of one group are contiguous, from
    ``starts[k]`` to ``starts[k + 1]``, and sum to ``totals[k]``. Where a sum is a range, its group
    has one more account, the cash that is left over, which no objective sees.
    """

    lower: Array
    upper: Array
    totals: Array
    starts: Indices
    bounds: tuple[Array, Array]  # of the coordinates, exactly as given
    source: Indices | None = None  # coordinate of each account, -1 for cash; None: the identity
    weights: Array | None = None  # of each account

    @property
    def n(self) -> int:
        """The number of accounts."""
        return len(self.lower)

    @cached_property
    def held(self) -> NDArray[np.bool_] | None:
        """Which accounts belong to a coordinate."""
        return None if self.source is None else self.source >= 0

    def scatter(self, x: Array) -> Array:
        """Put one number per coordinate into accounts (0 for cash), weights included."""
        z = self._by_account(x)
        return z.copy() if self.weights is None else z * self.weights

    def prices(self, gradient: Array) -> Array:
        """Translate a gradient per coordinate into one per account."""
        g = self._by_account(gradient)
        return g if self.weights is None else g / self.weights

    def scatter_constants(self, lipschitz: Array) -> Array:
        """Translate Lipschitz constants (0 for cash): f(z / w) has the constants L / w^2."""
        constants = self._by_account(lipschitz)
        return constants if self.weights is None else constants / self.weights**2

    def _by_account(self, values: Array) -> Array:
        if self.source is None or self.held is None:
            return values
        return np.where(self.held, values[self.source], 0.0)

    def project(self, z: Array) -> Array:
        """Find the feasible point nearest to z."""
        return _core.project(z, self.lower, self.upper, self.starts, self.totals)

    def fill(self, price: Array, curvature: Array) -> Array:
        """Fill the accounts from finite lower bounds, the cheapest first.

        At most one account of each group ends between its bounds. The cost of filling one is its
        price and half of what its curvature adds on the way.
        """
        return _core.fill(price, curvature, self.lower, self.upper, self.starts, self.totals)

    def gather(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Take what is said of each account to its coordinate."""
        if self.source is None or self.held is None:
            return values
        result = np.empty(len(self.bounds[0]), values.dtype)
        result[self.source[self.held]] = values[self.held]
        return result

    def settle(self, z: Array, pivot: Array | None = None) -> None:
        """Make the sums exact, in place, without moving what is on a bound or a kink."""
        _core.settle(z, self.lower, self.upper, self.starts, self.totals, pivot)

    def nearest(self, y: Array) -> Array:
        """The feasible point nearest to y, in accounts.

        Cash has no place of its own to be near to: it takes what the range allows, and then stays.
        """
        z = self.scatter(y)
        if self.held is None or self.held.all():
            return self.project(z)
        cash = ~self.held
        z[cash] = self.to_accounts(np.clip(y, *self.bounds))[cash]
        lower, upper = np.where(cash, z, self.lower), np.where(cash, z, self.upper)
        return _core.project(z, lower, upper, self.starts, self.totals)

    def to_accounts(self, x: Array) -> Array:
        """Translate a feasible point into accounts."""
        z = self.scatter(x)
        if self.held is not None and not self.held.all():
            sums = np.add.reduceat(z, self.starts[:-1])
            cash = np.flatnonzero(~self.held)
            group = np.searchsorted(self.starts, cash, side="right") - 1
            z[cash] = self.totals[group] - sums[group]
        return np.minimum(np.maximum(z, self.lower), self.upper)

    def to_coordinates(self, z: Array) -> Array:
        """Translate accounts back; an account at its bound gives exactly the coordinate's bound."""
        if self.source is None and self.weights is None:
            return z.copy()
        low, high = self.bounds
        x = np.empty(len(low))
        accounts = slice(None) if self.held is None else np.flatnonzero(self.held)
        at = accounts if self.source is None else self.source[accounts]
        if self.weights is None:
            x[at] = z[accounts]
            return x
        weights = self.weights[accounts]
        at_low, at_high = z[accounts] == self.lower[accounts], z[accounts] == self.upper[accounts]
        low, high = low[at], high[at]
        floor, ceiling = np.where(weights > 0, low, high), np.where(weights > 0, high, low)
        inside = np.clip(z[accounts] / weights, low, high)
        x[at] = np.where(at_low, floor, np.where(at_high, ceiling, inside))
        return x


def _layout(constraint: SumBox, n: int) -> Layout:
    lower = full_array("lower", constraint.lower, n)
    upper = full_array("upper", constraint.upper, n)
    _require_ordered(lower, upper)
    given = lower, upper
    weights = None
    if constraint.weights is not None:
        weights = vector("weights", constraint.weights, n)
        if not weights.all():
            raise ValueError(
                f"weights must not be 0, but weights[{int(np.argmin(np.abs(weights)))}] is"
            )
        with np.errstate(invalid="ignore"):
            ends = lower * weights, upper * weights
        lower, upper = np.minimum(*ends), np.maximum(*ends)

    starts, order = np.array([0, n], np.int64), None
    if constraint.groups is not None:
        labels = np.asarray(constraint.groups)
        if labels.ndim != 1 or len(labels) != n:
            raise ValueError(
                f"groups must give a label for each of the {n} variables, got shape {labels.shape}"
            )
        if labels.dtype.kind not in "iub":
            raise ValueError(f"groups must be whole numbers, got dtype {labels.dtype}")
        order = np.argsort(labels, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(labels[order], prepend=labels.min() - 1)), n)
        starts = starts.astype(np.int64)
    n_groups = len(starts) - 1
    low, high = _totals(constraint.total, n_groups)
    if order is not None:
        lower, upper = lower[order], upper[order]
        weights = None if weights is None else weights[order]
    _require_feasible(lower, upper, starts, low, high)
    if high is low or (low == high).all():
        return Layout(lower, upper, low, starts, given, order, weights)
    return _with_cash(lower, upper, low, high, starts, given, order, weights)


def _with_cash(
    lower: Array,
    upper: Array,
    low: Array,
    high: Array,
    starts: Indices,
    given: tuple[Array, Array],
    order: Indices | None,
    weights: Array | None,
) -> Layout:
    """Add to each group an account for what its range leaves over: sum + cash = anchor."""
    anchor = np.where(np.isfinite(high), high, np.where(np.isfinite(low), low, 0.0))
    source = np.arange(len(lower)) if order is None else order
    ends = starts[1:]
    return Layout(
        lower=np.insert(lower, ends, anchor - high),
        upper=np.insert(upper, ends, anchor - low),
        totals=anchor,
        starts=starts + np.arange(len(starts)),
        bounds=given,
        source=np.insert(source, ends, -1),
        weights=None if weights is None else np.insert(weights, ends, 1.0),
    )


def _totals(total: object, n_groups: int) -> tuple[Array, Array]:
    if isinstance(total, tuple):
        if len(total) != 2:
            raise ValueError(f"total as a range must be a pair (low, high), got {total!r}")
        low = full_vector("total[0]", total[0], n_groups, infinite=True)
        high = full_vector("total[1]", total[1], n_groups, infinite=True)
        if (low > high).any():
            raise ValueError(f"the range of total is empty: {low.max():g} > {high.min():g}")
        return low, high
    if np.ndim(total) == 0:  # type: ignore[arg-type]
        value = np.full(n_groups, finite_number("total", total))
    else:
        value = vector("total", total, n_groups)  # type: ignore[arg-type]
    return value, value


def _require_ordered(lower: Array, upper: Array) -> None:
    i = _core.first_crossed(lower, upper)
    if i < 0:
        return
    require_no_nan("lower", lower)
    require_no_nan("upper", upper)
    if lower[i] > upper[i]:
        raise ValueError(
            f"lower must not exceed upper, but lower[{i}] = {lower[i]:g}, upper[{i}] = {upper[i]:g}"
        )
    raise ValueError("lower must be below inf and upper above -inf")


def _require_feasible(lower: Array, upper: Array, starts: Indices, low: Array, high: Array) -> None:
    for k, (least, most, size) in enumerate(_core.spans(lower, upper, starts)):
        slack = 4e-16 * size + 1e-300  # bounds such as 0.1 are rounded: allow what that adds up to
        if least > high[k] + slack or most < low[k] - slack:
            which = "" if len(starts) == 2 else f" of group {k}"
            wanted = f"{low[k]:g}" if low[k] == high[k] else f"({low[k]:g}, {high[k]:g})"
            raise ValueError(
                f"infeasible: the bounds{which} allow sums from {least:g} to {most:g}; "
                f"total is {wanted}"
            )
