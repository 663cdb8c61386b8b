"""Sums and bounds as a user gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import LARGE, LARGE_FACTOR, Array, frozen, number_or_vector, vector
from ..labels import Axis, aligned
from .groups import GroupLabels, Groups, GroupTotal, grouped, own_group_total, own_groups, per_group
from .layout import Layout
from .translate import layout_of

Total = float | tuple[ArrayLike, ArrayLike] | ArrayLike | None


@dataclass(frozen=True, eq=False, repr=False)
class SumBox:
    """Variables that add up to a total and stay within bounds.

    A constraint cannot be changed: arrays are copied, so that changing them afterwards has no
    effect. Numbers are refused from 1e100 on in size, where products overflow, but for bounds and
    ends of a range beyond which nothing lies: those count as infinite, and are kept nevertheless.

    Parameters
    ----------
    total : float, pair of floats, array_like or None
        What the (weighted) sum of all variables must be. A tuple ``(low, high)`` lets the sum lie
        in a range. With groups, an array (or a tuple of them) gives instead a total (or a range) to
        each group, in the order of the sorted labels (a pandas Series labelled by groups may have
        any order), and None leaves the sum of all free.
    lower, upper : float, array_like or Series
        Bounds, infinite where there are none. Those with labels, and weights and groups with
        labels, are aligned with each other and with the objective; see `pairstep.labels`.
    weights : array_like, optional
        The constraint is ``sum(weights * x) = total``; any numbers from 1e-50 to 1e50 in size.
    groups : array_like, Series or sequence, optional
        A label per variable, any hashable: sectors, countries, strata.
    group_total : mapping, Series or DataFrame, optional
        For each label the (weighted) sum of its group: a number, or a pair ``(low, high)``, which
        is a row of a pandas DataFrame and a column of one of polars. Groups that are not named may
        have any sum.

    Notes
    -----
    Any other linear constraint belongs in the objective: a target return is a point on a
    `pairstep.efficient_frontier`, and costs of turnover are kinks, `pairstep.Kinked`.

    Examples
    --------
    >>> import pairstep
    >>> budget = pairstep.SumBox(total=1.0, lower=0.0, upper=[0.5, 0.5, 0.2])
    >>> [round(float(v), 12) for v in budget.start(3)]
    [0.4, 0.4, 0.2]

    A total over everything, and ranges within it:

    >>> sectors = pairstep.SumBox(
    ...     total=1.0, groups=["tech", "tech", "energy"], group_total={"tech": (0.0, 0.5)}
    ... )
    >>> sectors.start().tolist()
    [0.25, 0.25, 0.5]
    """

    total: Total = 1.0
    lower: ArrayLike = 0.0
    upper: ArrayLike = math.inf
    weights: ArrayLike | None = None
    groups: GroupLabels | None = None
    group_total: GroupTotal | None = None
    variables: Axis = field(init=False, default_factory=Axis)
    _groups: Groups | None = field(init=False, default=None)
    _layouts: dict[int, Layout] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        lower, upper, weights, groups = (
            aligned(name, getattr(self, name), self.variables)
            for name in ("lower", "upper", "weights", "groups")
        )
        own: dict[str, Any] = {
            "lower": number_or_vector("lower", lower),
            "upper": number_or_vector("upper", upper),
            "weights": None if weights is None else _own_weights(weights),
            "groups": None if groups is None else own_groups(groups),
        }
        if own["groups"] is not None:
            own["_groups"] = grouped(own["groups"])
        own["total"] = _own_total(self.total, own.get("_groups"))
        if self.group_total is not None:
            own["group_total"] = own_group_total(self.group_total, own.get("_groups"))
            if per_group(own["total"]):
                raise ValueError(
                    "give totals per group in total or in group_total, not in both: "
                    f"total = {self.total!r}"
                )
        if own["total"] is None and own["groups"] is None:
            raise ValueError("total may be None only where groups have totals of their own")
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        arguments = ((f, getattr(self, f.name)) for f in fields(self) if f.init)
        shown = [
            f"{f.name}={dict(value) if isinstance(value, Mapping) else value!r}"
            for f, value in arguments
            if f.name == "total" or isinstance(value, np.ndarray) or value not in (None, f.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, SumBox) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> tuple[object, ...]:
        group_total = dict(self.group_total) if isinstance(self.group_total, Mapping) else None
        vectors = self.lower, self.upper, self.weights, self.groups
        return self.total, *vectors, group_total, self.variables

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
        total, *vectors, group_total, _ = self.__getstate__()
        moved = (v[order] if isinstance(v, np.ndarray) else v for v in vectors)
        return _restored(total, *moved, group_total, variables)

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
            self._layouts[n] = layout_of(self, n)
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


def _restored(*state: Any) -> SumBox:
    constraint = object.__new__(SumBox)
    constraint.__setstate__(state)
    return constraint


def _own_total(total: Total, groups: Groups | None) -> object:
    if total is None:
        return None
    if isinstance(total, (int, float)):
        return number_or_vector("total", total)
    by_group = Axis() if groups is None else Axis(list(groups.labels), "groups")
    if not isinstance(total, tuple):
        return number_or_vector("total", aligned("total", total, by_group))
    if len(total) != 2:
        raise ValueError(f"total as a range must be a pair (low, high), got {total!r}")
    names = "total[0]", "total[1]"
    ends = (aligned(name, end, by_group) for name, end in zip(names, total, strict=True))
    return tuple(number_or_vector(*named) for named in zip(names, ends, strict=True))


def _own_weights(weights: ArrayLike) -> Array:
    if np.ndim(weights) > 1:
        raise ValueError(
            f"weights must be one row, a number for each variable, got shape {np.shape(weights)}: "
            "a second linear constraint belongs in the objective; efficient_frontier has target "
            "returns, Kinked costs of turnover, and groups with group_total sums of parts"
        )
    own = frozen(vector("weights", weights, limit=LARGE_FACTOR))
    i = int(np.argmin(np.abs(own))) if len(own) else 0
    if len(own) and abs(own[i]) < 1 / LARGE_FACTOR:
        raise ValueError(
            f"weights must be at least {1 / LARGE_FACTOR:g} in size, but weights[{i}] = {own[i]:g}"
        )
    return own


def _comparable(value: object) -> object:
    if isinstance(value, dict):
        return frozenset(value.items())
    if isinstance(value, tuple):
        return tuple(_comparable(end) for end in value)
    # A tuple in a tuple, for a plain pair is a range.
    return (tuple(value.tolist()),) if isinstance(value, np.ndarray) else value
