"""The constraint as the user states it: a sum, bounds and groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from .._validation import (
    LARGE,
    LARGE_FACTOR,
    Array,
    frozen,
    number_or_vector,
    numbers_for_message,
    unexpected_keywords,
    vector,
)
from ..labels import Axis, aligned
from .groups import (
    GroupLabels,
    GroupLimit,
    Groups,
    GroupTotal,
    grouped,
    own_group_total,
    own_groups,
    per_group,
)
from .layout import Layout
from .rows import Rows
from .translate import layout_of

# Total number of variables in the layouts that one constraint caches, at about 30 bytes per
# variable. Building a layout takes about as long as a small solve, so layouts are cached. A
# constraint without arrays may be used with many different n, so the cache is limited.
MAX_VARIABLES_CACHED = 100_000

Total = float | tuple[ArrayLike, ArrayLike] | ArrayLike | None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SumBox:
    """Variables that sum to a total and stay within bounds.

    A constraint is immutable. Arrays are copied, so later changes to them have no effect. Numbers
    of size 1e100 or more are rejected, because products would overflow. The exceptions are bounds
    and range ends that allow more than that: those are treated as infinite by the solver, and the
    result still satisfies them.

    Parameters
    ----------
    total : float, pair of floats, array_like or None
        Required value of the (weighted) sum of all variables. A tuple ``(low, high)`` lets the sum
        lie in a range. With `groups`, an array (or a tuple of arrays) gives a total (or a range)
        for each group instead, in the order of the sorted labels; a pandas Series indexed by group
        may be in any order. None leaves the sum of all variables free.
    lower, upper : float, array_like, Series or None
        Bounds. An infinite value, or ``upper=None``, means no bound. Arguments with labels are
        aligned with each other and with the objective; see `pairstep.labels`.
    coefficients : array_like or Series, optional
        Coefficients of the constraint ``sum(coefficients * x) = total``, each between 1e-50 and
        1e50 in size. They are not portfolio weights: those are the solution x. To start a solve at
        current holdings pass them as `x0`; to stay close to them pass `l1` and `center`.
    groups : array_like, Series, sequence or mapping, optional
        The group of each variable: sectors, countries, strata. Any hashable label. A mapping gives
        the group for each variable's label, as PyPortfolioOpt's ``sector_mapper`` does.
    group_total : mapping, Series or DataFrame, optional
        Limits on the (weighted) sum of each group. A pair ``{"tech": (0.0, 0.4)}`` is a range; a
        number ``{"tech": 0.4}`` is an equality. In a pandas DataFrame each row is a pair, in a
        polars DataFrame each column is. Groups that are not named have no limit.
    group_lower, group_upper : mapping or Series, optional
        Lower and upper limits of the same sums, as in ``group_upper={"tech": 0.4}``. A group may be
        named here or in `group_total`, not in both. They are stored in the attribute `group_total`.
    rows : array_like, DataFrame or scipy.sparse array of shape (k, n), optional
        Further linear constraints ``rows_lower <= rows @ x <= rows_upper``: factor exposures, beta,
        groups that overlap. At most a few hundred rows. They hold to 1e-12 of their terms.
    rows_lower, rows_upper : float, array_like or Series of shape (k,), optional
        The limits of the rows. Equal limits are equations; an infinite limit is none. The three are
        stored in the attribute `rows`, as ``rows.matrix``, ``rows.low`` and ``rows.high``.

    Notes
    -----
    Rows are handled by an active-set solver: `solve_qp`, `simplex_lstsq`, `minimize`, `path` and
    `efficient_frontier` take them; `coordinate_descent` and batches do not.

    Examples
    --------
    >>> import pairstep
    >>> box = pairstep.SumBox(total=1.0, lower=0.0, upper=[0.5, 0.5, 0.2])
    >>> [round(float(v), 12) for v in box.start(3)]
    [0.4, 0.4, 0.2]

    A total for all variables, and an upper limit for one group:

    >>> sectors = pairstep.SumBox(
    ...     total=1.0, groups=["tech", "tech", "energy"], group_upper={"tech": 0.5}
    ... )
    >>> sectors.start().tolist()
    [0.25, 0.25, 0.5]
    """

    total: Total = 1.0
    lower: ArrayLike = 0.0
    upper: ArrayLike = math.inf
    coefficients: ArrayLike | None = None
    groups: GroupLabels | None = None
    group_total: GroupTotal | None = None
    rows: Rows | None = None
    variables: Axis = field(init=False, default_factory=Axis)
    _groups: Groups | None = field(init=False, default=None)
    _layouts: dict[int, Layout] = field(init=False, default_factory=dict)
    _plain: SumBox | None = field(init=False, default=None)  # see `without_rows`

    def __init__(
        self,
        total: Total = 1.0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike | None = math.inf,
        coefficients: ArrayLike | None = None,
        groups: GroupLabels | None = None,
        group_total: GroupTotal | None = None,
        *,
        group_lower: GroupLimit | None = None,
        group_upper: GroupLimit | None = None,
        rows: Any = None,
        rows_lower: ArrayLike | None = None,
        rows_upper: ArrayLike | None = None,
        **unexpected: Never,
    ):
        if unexpected:
            raise unexpected_keywords("SumBox", unexpected)
        self._set(
            total, lower, math.inf if upper is None else upper, coefficients, groups,
            (group_total, group_lower, group_upper), (rows, rows_lower, rows_upper),
        )  # fmt: skip

    def _set(
        self,
        total: Any,
        lower: Any,
        upper: Any,
        coefficients: Any,
        groups: Any,
        group_limits: tuple[Any, Any, Any],
        rows: tuple[Any, Any, Any],
    ) -> None:
        """Check the arguments, copy them, and store them in this frozen object."""
        axis = Axis()
        lower, upper, coefficients, groups = (
            aligned("lower", lower, axis),
            aligned("upper", upper, axis),
            aligned("coefficients", coefficients, axis),
            aligned("groups", groups, axis),
        )
        own: dict[str, Any] = {
            "lower": number_or_vector("lower", lower),
            "upper": number_or_vector("upper", upper),
            "coefficients": None if coefficients is None else _own_coefficients(coefficients),
            "groups": None if groups is None else own_groups(groups),
            "group_total": None,
            "rows": Rows.of(*rows, axis),
            "variables": axis,
            "_groups": None,
            "_layouts": {},
            "_plain": None,
        }
        if own["groups"] is not None:
            own["_groups"] = grouped(own["groups"])
        own["total"] = _own_total(total, own["_groups"])
        if any(limit is not None for limit in group_limits):
            own["group_total"] = own_group_total(*group_limits, own["_groups"])
            if per_group(own["total"]):
                raise ValueError(
                    "give the totals of the groups in total or in group_total (or group_lower and "
                    f"group_upper), not in both: total = {total!r}"
                )
        if own["total"] is None and own["groups"] is None:
            raise ValueError(
                "total may be None only if there are groups: give total, or groups with limits in "
                "group_total, group_lower or group_upper"
            )
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
        vectors = self.lower, self.upper, self.coefficients, self.groups
        return self.total, *vectors, group_total, self.rows, self.variables

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        total, lower, upper, coefficients, groups, group_total, rows, variables = state
        self._set(
            total, lower, upper, coefficients, groups, (group_total, None, None), (rows, None, None)
        )
        object.__setattr__(self, "variables", variables)

    def _key(self) -> tuple[object, ...]:
        *arguments, _, _ = self.__getstate__()
        rows = None if self.rows is None else self.rows.key()
        return (*(_comparable(value) for value in arguments), rows, self.variables.names)

    def along(self, variables: Axis) -> SumBox:
        """Return the same constraint with its variables in the order of these labels."""
        own = self.variables
        if own.labels is None or variables.labels is None:
            return self
        order = variables.order(own.source, own.labels)
        if order is None:
            return self
        total, *vectors, group_total, _, _ = self.__getstate__()
        moved = (v[order] if isinstance(v, np.ndarray) else v for v in vectors)
        rows = None if self.rows is None else self.rows.in_order(order)
        return _restored(total, *moved, group_total, rows, variables)

    def with_rows(self, rows: Rows | None) -> SumBox:
        """Return the same constraint with these rows in place of its own."""
        *parts, _, variables = self.__getstate__()
        return _restored(*parts, rows, variables)

    def without_rows(self) -> SumBox:
        """Return the same constraint without its rows."""
        if self.rows is None:
            return self
        if self._plain is None:
            object.__setattr__(self, "_plain", self.with_rows(None))
        assert self._plain is not None
        return self._plain

    @property
    def size(self) -> int | None:
        """The number of variables, or None if no argument is an array."""
        for given in (self.lower, self.upper, self.coefficients, self.groups):
            if isinstance(given, np.ndarray):
                return len(given)
        return None if self.rows is None else self.rows.matrix.shape[1]

    def start(self, n: int | None = None) -> Array:
        """Return a feasible point: the total spread as evenly as the bounds allow."""
        if self.rows is not None:
            return self._nearest(np.zeros(self._size_or(n)))
        layout = self._layout(self._size_or(n))
        return layout.from_layout(layout.project(np.zeros(layout.n)))

    def project(self, y: ArrayLike) -> Array:
        """Return the feasible point nearest to y.

        With coefficients, distances are measured in the variables ``coefficients * x``.
        """
        point = vector("y", aligned("y", y, Axis.of(self)), limit=LARGE)
        if self.rows is not None:
            return self._nearest(point)
        layout = self._layout(len(point))
        return layout.from_layout(layout.nearest(point))

    def _nearest(self, y: Array) -> Array:
        """Return the feasible point nearest to y, with rows: that is a quadratic program."""
        from ..solve.rows import nearest

        return nearest(self, y)

    def layout(self, n: int) -> Layout:
        """Return the layout for n variables, as solvers use it. Its arrays are read-only."""
        return self._layout(n).read_only()

    def _layout(self, n: int) -> Layout:
        """Return the cached layout for solvers, which do not write into its arrays.

        These arrays are writable, because passing read-only arrays to native code is slower, by a
        few percent of a small solve.
        """
        if self.rows is not None:
            raise ValueError(
                "rows need the active-set solver of solve_qp, simplex_lstsq, minimize, path and "
                "efficient_frontier; use one of these, or a constraint without rows"
            )
        known = self._layouts.get(n)
        if known is None:
            known = layout_of(self, n)
            self._evict_layouts_for(n)
            self._layouts[n] = known
        return known

    def _evict_layouts_for(self, n: int) -> None:
        """Drop the oldest layouts until one of n variables fits into the cache."""
        sizes = list(self._layouts)
        most = MAX_VARIABLES_CACHED - n
        while sizes and sum(sizes) > most:
            self._layouts.pop(sizes.pop(0), None)  # another thread may have removed it already

    def _size_or(self, n: int | None) -> int:
        size = self.size if n is None else n
        if size is None:
            raise ValueError(
                "the number of variables is unknown because no bound is an array: call start(n)"
            )
        return size


class Simplex(SumBox):
    """Non-negative variables that sum to a total.

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


def _own_coefficients(coefficients: ArrayLike) -> Array:
    if np.ndim(coefficients) > 1:
        raise ValueError(
            "coefficients must be one row, with a number for each variable, got shape "
            f"{np.shape(coefficients)}: further linear constraints are the argument rows; see also "
            "efficient_frontier for target returns, L1Penalized for turnover costs, and groups "
            "with group_total for sums of parts"
        )
    own = frozen(vector("coefficients", coefficients, limit=LARGE_FACTOR))
    i = int(np.argmin(np.abs(own))) if len(own) else 0
    if len(own) and abs(own[i]) < 1 / LARGE_FACTOR:
        least, found = numbers_for_message(1 / LARGE_FACTOR, own[i])
        raise ValueError(
            f"coefficients must be at least {least} in size, but coefficients[{i}] = {found}: they "
            "multiply the variables in the sum; pass current holdings as x0 or center instead"
        )
    return own


def _comparable(value: object) -> object:
    if isinstance(value, dict):
        return frozenset(value.items())
    if isinstance(value, tuple):
        return tuple(_comparable(end) for end in value)
    # An array becomes a nested tuple, to distinguish it from a range, which is a plain pair.
    return (tuple(value.tolist()),) if isinstance(value, np.ndarray) else value
