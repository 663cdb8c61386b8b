"""Constraints: sums and bounds, and their translation into accounts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._validation import (
    LARGE,
    LARGE_FACTOR,
    Array,
    as_given,
    finite_number,
    frozen,
    full_array,
    full_vector,
    number_or_vector,
    of_length,
    require_finite,
    require_no_nan,
    too_large,
    vector,
)
from .labels import Axis, aligned

Indices = NDArray[np.int64]
Total = float | tuple[ArrayLike, ArrayLike] | ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class SumBox:
    """Variables that add up to a total and stay within bounds.

    A constraint cannot be changed: arrays are copied, so that changing them afterwards has no
    effect. Numbers are refused from 1e100 on in size, where products overflow, but for bounds and
    ends of a range beyond which nothing lies: those count as infinite, and are kept nevertheless.

    Parameters
    ----------
    total : float, pair of floats, or array_like
        What the (weighted) sum must be. A tuple ``(low, high)`` lets the sum lie in a range. With
        groups, an array gives one total per group, in the order of the sorted group labels; a
        pandas Series labelled by groups may have any order.
    lower, upper : float, array_like or Series
        Bounds, infinite where there are none. Those with labels, and weights and groups with
        labels, are aligned with each other and with the objective; see `pairstep.labels`.
    weights : array_like, optional
        The constraint is ``sum(weights * x) = total``; any numbers from 1e-50 to 1e50 in size.
    groups : array_like of int, optional
        A label per variable: each group has a sum of its own.

    Examples
    --------
    >>> import pairstep
    >>> budget = pairstep.SumBox(total=1.0, lower=0.0, upper=[0.5, 0.5, 0.2])
    >>> [round(float(v), 12) for v in budget.start(3)]
    [0.4, 0.4, 0.2]
    """

    total: Total = 1.0
    lower: ArrayLike = 0.0
    upper: ArrayLike = math.inf
    weights: ArrayLike | None = None
    groups: ArrayLike | None = None
    variables: Axis = field(init=False, default_factory=Axis)
    _layouts: dict[int, Layout] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        lower, upper, weights, groups = (
            aligned(name, getattr(self, name), self.variables)
            for name in ("lower", "upper", "weights", "groups")
        )
        own = {
            "lower": number_or_vector("lower", lower),
            "upper": number_or_vector("upper", upper),
            "weights": None if weights is None else _own_weights(weights),
            "groups": None if groups is None else _own_groups(groups),
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "total", _own_total(self.total, self.groups))

    def __repr__(self) -> str:
        arguments = ((f, getattr(self, f.name)) for f in fields(self) if f.init)
        shown = [
            f"{f.name}={value!r}"
            for f, value in arguments
            if f.name == "total" or isinstance(value, np.ndarray) or value not in (None, f.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, SumBox) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> tuple[object, ...]:
        return self.total, self.lower, self.upper, self.weights, self.groups, self.variables

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *arguments, variables = state
        SumBox.__init__(self, *arguments)
        object.__setattr__(self, "variables", variables)

    def _key(self) -> tuple[object, ...]:
        *arguments, _ = self.__getstate__()
        return (*(_comparable(value) for value in arguments), self.variables.names)

    def along(self, variables: Axis) -> SumBox:
        """The same constraint, with its variables in the order of others' labels."""
        own = self.variables
        if own.labels is None or variables.labels is None:
            return self
        order = variables.order(own.source, own.labels)
        if order is None:
            return self
        total, *vectors, _ = self.__getstate__()
        return _restored(
            total, *(v[order] if isinstance(v, np.ndarray) else v for v in vectors), variables
        )

    @property
    def size(self) -> int | None:
        """The number of variables, where an argument tells it."""
        for given in (self.lower, self.upper, self.weights, self.groups):
            if isinstance(given, np.ndarray):
                return len(given)
        return None

    def start(self, n: int | None = None) -> Array:
        """Return a feasible point: the total spread as evenly as the bounds allow."""
        layout = self.layout(self._size_or(n))
        return layout.to_coordinates(layout.project(np.zeros(layout.n)))

    def project(self, y: ArrayLike) -> Array:
        """Return the feasible point nearest to y (with weights: in the variables weights * x)."""
        point = vector("y", aligned("y", y, Axis.of(self)), limit=LARGE)
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

    def __init__(self, total: Total = 1.0):
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

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Take what is said of each account to its coordinate."""
        if self.source is None or self.held is None:
            return values
        result = np.empty(len(self.bounds[0]), values.dtype)
        result[self.source[self.held]] = values[self.held]
        return result

    def pull(self, multiplier: Array) -> Array:
        """What the sums add to the gradient of each coordinate: multiplier times weight."""
        if self.source is None and self.weights is None:
            return multiplier  # of the only sum
        each = np.repeat(multiplier, np.diff(self.starts))
        each = each if self.weights is None else each * self.weights
        return self.gather(each)

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
        low, high = self.bounds
        if self.source is None and self.weights is None:
            # Bounds that count as infinite hold nevertheless.
            return z.copy() if low is self.lower and high is self.upper else np.clip(z, low, high)
        x = np.empty(len(low))
        accounts = slice(None) if self.held is None else np.flatnonzero(self.held)
        at = accounts if self.source is None else self.source[accounts]
        if self.weights is None:
            x[at] = np.clip(z[accounts], low[at], high[at])
            return x
        weights = self.weights[accounts]
        at_low, at_high = z[accounts] == self.lower[accounts], z[accounts] == self.upper[accounts]
        low, high = low[at], high[at]
        floor, ceiling = np.where(weights > 0, low, high), np.where(weights > 0, high, low)
        inside = np.clip(z[accounts] / weights, low, high)
        x[at] = np.where(at_low, floor, np.where(at_high, ceiling, inside))
        return x


def _layout(constraint: SumBox, n: int) -> Layout:
    given = full_array("lower", constraint.lower, n), full_array("upper", constraint.upper, n)
    lower, upper = _bounds_that_count(*given)
    weights: Array | None = None
    if constraint.weights is not None:
        weights = of_length("weights", np.asarray(constraint.weights), n)
        lower, upper = _weighted(weights, lower, upper)

    starts, order = np.array([0, n], np.int64), None
    if constraint.groups is not None:
        labels = np.asarray(constraint.groups)
        if len(labels) != n:
            raise ValueError(
                f"groups must give a label for each of the {n} variables, got shape {labels.shape}"
            )
        order = np.argsort(labels, kind="stable")
        changes = np.flatnonzero(labels[order][1:] != labels[order][:-1]) + 1
        starts = np.concatenate([[0], changes, [n]]).astype(np.int64)
    low, high = _totals(constraint.total, len(starts) - 1)
    if order is not None:
        lower, upper = lower[order], upper[order]
        weights = None if weights is None else weights[order]
    # Products are rounded, so that weighted sums hold to rounding only.
    slack = 0.0 if weights is None else 2 * np.finfo(float).eps
    _require_feasible(lower, upper, starts, low, high, slack)
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
    """Add to each group an account for what its range leaves over: sum + cash = anchor.

    The anchor is the sum nearest to 0, so that a far end of the range does not drown the variables.
    """
    anchor = np.clip(0.0, low, high)
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


def _restored(*state: Any) -> SumBox:
    constraint = object.__new__(SumBox)
    constraint.__setstate__(state)
    return constraint


def _own_total(total: Total, groups: ArrayLike | None) -> object:
    if isinstance(total, (int, float)):
        return number_or_vector("total", total)
    by_group = Axis() if groups is None else Axis(np.unique(groups).tolist(), "groups")
    if not isinstance(total, tuple):
        return number_or_vector("total", aligned("total", total, by_group))
    if len(total) != 2:
        raise ValueError(f"total as a range must be a pair (low, high), got {total!r}")
    names = "total[0]", "total[1]"
    ends = (aligned(name, end, by_group) for name, end in zip(names, total, strict=True))
    return tuple(number_or_vector(*named) for named in zip(names, ends, strict=True))


def _own_weights(weights: ArrayLike) -> Array:
    own = frozen(vector("weights", weights, limit=LARGE_FACTOR))
    i = int(np.argmin(np.abs(own))) if len(own) else 0
    if len(own) and abs(own[i]) < 1 / LARGE_FACTOR:
        raise ValueError(
            f"weights must be at least {1 / LARGE_FACTOR:g} in size, but weights[{i}] = {own[i]:g}"
        )
    return own


def _own_groups(groups: ArrayLike) -> NDArray[Any]:
    labels = as_given("groups", groups)
    if labels.ndim != 1:
        raise ValueError(f"groups must give a label for each variable, got shape {labels.shape}")
    if labels.dtype.kind not in "iub":
        raise ValueError(f"groups must be whole numbers, got dtype {labels.dtype}")
    return frozen(labels)


def _comparable(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_comparable(end) for end in value)
    # A tuple in a tuple, for a plain pair is a range.
    return (tuple(value.tolist()),) if isinstance(value, np.ndarray) else value


def _totals(total: object, n_groups: int) -> tuple[Array, Array]:
    """The range of each group's sum; its ends are one array where the sum is fixed."""
    if isinstance(total, float):
        if abs(finite_number("total", total)) > LARGE:
            raise ValueError(too_large("total", total, LARGE))
        value = np.full(n_groups, total)
        return value, value
    if isinstance(total, np.ndarray):
        value = vector("total", total, n_groups, limit=LARGE)
        return value, value
    assert isinstance(total, tuple)
    low = full_vector("total[0]", total[0], n_groups, infinite=True)
    high = full_vector("total[1]", total[1], n_groups, infinite=True)
    if (low > high).any():
        k = int(np.argmax(low > high))
        raise ValueError(f"the range of total is empty: {low[k]:g} > {high[k]:g}")
    for name, end, beyond in (("total[0]", low, low >= LARGE), ("total[1]", high, high <= -LARGE)):
        if beyond.any():
            k = int(np.argmax(beyond))
            if math.isinf(end[k]):
                raise ValueError(f"{name} = {end[k]} leaves no finite sum")
            raise ValueError(too_large(name, end[k], LARGE))
    return np.where(low <= -LARGE, -math.inf, low), np.where(high >= LARGE, math.inf, high)


def _bounds_that_count(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The bounds, checked; infinite where they are too far out to matter."""
    i = _core.first_odd(lower, upper, LARGE)
    if i < 0:
        return lower, upper
    require_no_nan("lower", lower)
    require_no_nan("upper", upper)
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(
            f"lower must not exceed upper, but lower[{i}] = {lower[i]:g}, upper[{i}] = {upper[i]:g}"
        )
    if lower.max() == math.inf or upper.min() == -math.inf:
        raise ValueError("lower must be below inf and upper above -inf")
    for name, bound, beyond in (
        ("lower", lower, lower >= LARGE),
        ("upper", upper, upper <= -LARGE),
    ):
        if beyond.any():
            i = int(np.argmax(beyond))
            raise ValueError(too_large(f"{name}[{i}]", bound[i], LARGE))
    return np.where(lower <= -LARGE, -math.inf, lower), np.where(upper >= LARGE, math.inf, upper)


def _weighted(weights: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The bounds of ``weights * x``."""
    ends = lower * weights, upper * weights
    low, high = np.minimum(*ends), np.maximum(*ends)
    if _core.first_odd(low, high, LARGE) >= 0:
        for name, end in zip(("lower", "upper"), ends, strict=True):
            require_finite(f"(weights * {name})", np.where(np.isfinite(end), end, 0.0), LARGE)
    return low, high


def _require_feasible(
    lower: Array, upper: Array, starts: Indices, low: Array, high: Array, slack: float
) -> None:
    """Raise unless each group has a sum in its range: within an ulp, and `slack` of its terms."""
    for k, (least, most, miss) in enumerate(_core.spans(lower, upper, starts, low, high)):
        if miss == 0:
            continue
        below = least - high[k] > low[k] - most
        bound, end = (lower, high[k]) if below else (upper, low[k])
        terms = np.abs(bound[starts[k] : starts[k + 1]])
        if miss <= math.ulp(max(abs(end), terms.max(initial=0.0))) + slack * terms.sum():
            continue
        which = "" if len(starts) == 2 else f" of group {k}"
        # Where rounding is the matter, all digits are.
        digits = ".6g" if miss > 1e-5 * abs(end) else ".17g"
        wanted = f"{low[k]:{digits}}"
        if low[k] != high[k]:
            wanted = f"({wanted}, {high[k]:{digits}})"
        raise ValueError(
            f"infeasible: the bounds{which} allow sums from {least:{digits}} to {most:{digits}}; "
            f"total is {wanted}"
        )
