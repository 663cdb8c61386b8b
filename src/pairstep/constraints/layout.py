"""The constraint in the form that solvers use: contiguous groups with fixed sums.

A layout replaces the user's variables x by variables z. Each z is a coefficient times an x, so that
the constraint is a plain sum. Where a sum may lie in a range, a slack variable takes the difference
to a fixed total. Groups are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import LARGE, Array, numbers_for_message, read_only
from ..kept import kept

Indices = NDArray[np.int64]

# A difference of two numbers counts as rounding if it is below this fraction of their size; see
# cpp/core/policy.hpp.
SUM_ROUNDING = _core.NumericalPolicy.sum_rounding
# Relative error of the sums of a user's x0 that counts as rounding. A larger value would silently
# change x0; a smaller one would reject solutions of other solvers.
MAX_SUM_ERROR = 1e-9


@dataclass(frozen=True)
class Layout:
    """A constraint in the variables z.

    The variable of coordinate i is ``coefficients_i x_i``. The variables of a group are contiguous,
    from ``starts[k]`` to ``starts[k + 1]``, and sum to ``totals[k]``. If the sum may lie in a
    range, the group has one more variable, a slack variable that no objective depends on.

    Nested groups share one total, ``totals[0]``, and the sum of group k lies between ``low[k]`` and
    ``high[k]``. The slack variable of the common total is then a group by itself.
    """

    lower: Array
    upper: Array
    totals: Array
    starts: Indices
    bounds: tuple[Array, Array]  # of the coordinates, exactly as given
    source: Indices | None = None  # coordinate of each variable, -1 for slack; None: the identity
    coefficients: Array | None = None  # of each variable
    labels: tuple[Hashable, ...] = ()  # of the groups, without that of the slack variable
    low: Array | None = None
    high: Array | None = None

    @property
    def n(self) -> int:
        """The number of variables z."""
        return len(self.lower)

    @property
    def nested(self) -> bool:
        """Whether the groups share one total."""
        return self.low is not None

    @property
    def sharing(self) -> Indices:
        """Start indices of the variables that share a total."""
        return np.array([0, self.n], np.int64) if self.nested else self.starts

    @kept
    def held(self) -> NDArray[np.bool_] | None:
        """Which variables belong to a coordinate, and are not slack; None if all do."""
        return None if self.source is None else self.source >= 0

    @kept
    def group(self) -> Indices:
        """The group of each variable."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def read_only(self) -> Layout:
        """Return the same layout with read-only arrays."""
        own = {name: read_only(getattr(self, name)) for name in self.__dataclass_fields__}
        low, high = self.bounds
        return Layout(**own | {"bounds": (read_only(low), read_only(high))})

    def scatter(self, x: Array) -> Array:
        """Convert a point x to z, with 0 for slack variables."""
        z = self._by_coordinate(x)
        return z.copy() if self.coefficients is None else z * self.coefficients

    def derivatives(self, gradient: Array) -> Array:
        """Convert a gradient with respect to x to one with respect to z."""
        g = self._by_coordinate(gradient)
        return g if self.coefficients is None else g / self.coefficients

    def scatter_constants(self, lipschitz: Array) -> Array:
        """Convert Lipschitz constants, 0 for slack: f(z / a) has the constants L / a^2."""
        constants = self._by_coordinate(lipschitz)
        return constants if self.coefficients is None else constants / self.coefficients**2

    def _by_coordinate(self, values: Array) -> Array:
        if self.source is None or self.held is None:
            return values
        return np.where(self.held, values[self.source], 0.0)

    def project(self, z: Array) -> Array:
        """Return the feasible point nearest to z."""
        return self._project(z, self.lower, self.upper)

    def _project(self, z: Array, lower: Array, upper: Array) -> Array:
        return _core.project(z, lower, upper, self.starts, self.totals, self.low, self.high)

    def within_range(self, z: Array) -> Array:
        """Return a feasible point near z with all variables at most 1e100 in size."""
        within = np.clip(np.nan_to_num(z, nan=0.0), -LARGE, LARGE)
        if self.source is not None or self.coefficients is not None:
            return self.project(within)
        low, high = self.bounds
        return self._project(within, np.maximum(low, -LARGE), np.minimum(high, LARGE))

    def among(self, members: Indices, z: Array) -> Layout:
        """Return the layout of the variables `members`; the others keep their values in z."""
        starts = np.searchsorted(members, self.starts)
        present = np.diff(starts) > 0
        starts = np.unique(starts)
        held = np.add.reduceat(z[members], starts[:-1])
        bounds = self.lower[members], self.upper[members]
        part = Layout(*bounds, held, starts, bounds)
        if self.low is None or self.high is None:
            return part
        others = np.add.reduceat(z, self.starts[:-1])[present] - held
        return replace(
            part,
            totals=held.sum(keepdims=True),
            low=np.minimum(self.low[present] - others, held),
            high=np.maximum(self.high[present] - others, held),
        )

    def fill(self, derivative: Array, curvature: Array) -> Array:
        """Raise variables from their finite lower bounds until the sums hold, the cheapest first.

        At most one variable of each sum ends between its bounds. The cost of a variable is its
        derivative plus half of what its curvature adds on the way.
        """
        return _core.fill(
            derivative,
            curvature,
            self.lower,
            self.upper,
            self.starts,
            self.totals,
            self.low,
            self.high,
        )

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder values per variable to values per coordinate, without slack."""
        if self.source is None or self.held is None:
            return values
        result = np.empty(len(self.bounds[0]), values.dtype)
        result[self.source[self.held]] = values[self.held]
        return result

    def gradient(self, derivatives: Array) -> Array:
        """Convert a gradient with respect to z to one with respect to x."""
        return self.gather(
            derivatives if self.coefficients is None else derivatives * self.coefficients
        )

    def direction(self, coordinates: Array) -> Array:
        """Convert a direction of z to a direction of x."""
        return self.gather(
            coordinates if self.coefficients is None else coordinates / self.coefficients
        )

    def pull(self, multiplier: Array) -> Array:
        """Return the multiplier times the coefficient of each coordinate."""
        if len(multiplier) == 1 and self.source is None and self.coefficients is None:
            return multiplier  # broadcasts over all coordinates
        own = multiplier[0] + multiplier[1:] if self.nested else multiplier
        return self.gradient(own[self.group])

    def restore_sums(self, z: Array, breakpoint: Array | None = None) -> None:
        """Make the sums exact, in place. Variables at a bound or breakpoint stay there."""
        _core.restore_sums(
            z, self.lower, self.upper, self.starts, self.totals, breakpoint, self.low, self.high
        )

    def nearest(self, y: Array) -> Array:
        """Return the feasible point nearest to y, as z.

        Slack variables do not count in the distance. They are set first: to the difference between
        the total and the sum of the nearest point when the range is ignored, clipped to the range.
        If clipping changes them, the sum of the nearest point is at an end of the range.
        """
        z = self.scatter(y)
        if self.held is None or self.held.all():
            return self.project(z)
        slack = ~self.held
        z[slack] = 0.0
        sums = np.add.reduceat(np.where(slack, 0.0, self._clipped(z)), self.starts[:-1])
        if self.low is not None and self.high is not None:
            sums = np.minimum(np.maximum(sums, self.low), self.high).sum(keepdims=True)
        z[slack] = (self.totals - sums)[self._sum_of(np.flatnonzero(slack))]
        z[slack] = self._clipped(z)[slack]
        return self._project(z, np.where(slack, z, self.lower), np.where(slack, z, self.upper))

    def to_layout(self, x: Array) -> Array:
        """Convert a feasible point x to z, including the slack variables."""
        z = self.scatter(x)
        if self.held is not None and not self.held.all():
            slack = np.flatnonzero(~self.held)
            sums = np.add.reduceat(z, self.sharing[:-1])
            z[slack] = (self.totals - sums)[self._sum_of(slack)]
            # A sum that differs from an end of its range by rounding errors is at that end.
            near = SUM_ROUNDING * max(float(np.abs(z).max()), float(np.abs(self.totals).max()))
            for end in (self.lower, self.upper):
                z[slack] = np.where(np.abs(z[slack] - end[slack]) <= near, end[slack], z[slack])
        return self._clipped(z)

    def _sum_of(self, coordinates: Indices) -> Indices:
        """Return the index of the total that each variable belongs to."""
        return np.searchsorted(self.sharing, coordinates, side="right") - 1

    def _clipped(self, z: Array) -> Array:
        return np.minimum(np.maximum(z, self.lower), self.upper)

    def from_layout(self, z: Array) -> Array:
        """Convert z to x. A variable at its bound gives exactly the bound of the coordinate."""
        low, high = self.bounds
        if self.source is None and self.coefficients is None:
            # Bounds beyond 1e100 are infinite for the solver, but hold in the result.
            return z.copy() if low is self.lower and high is self.upper else np.clip(z, low, high)
        x = np.empty(len(low))
        coordinates = slice(None) if self.held is None else np.flatnonzero(self.held)
        at = coordinates if self.source is None else self.source[coordinates]
        if self.coefficients is None:
            x[at] = np.clip(z[coordinates], low[at], high[at])
            return x
        coefficients = self.coefficients[coordinates]
        at_low, at_high = (
            z[coordinates] == self.lower[coordinates],
            z[coordinates] == self.upper[coordinates],
        )
        low, high = low[at], high[at]
        at_lower, at_upper = (
            np.where(coefficients > 0, low, high),
            np.where(coefficients > 0, high, low),
        )
        inside = np.clip(z[coordinates] / coefficients, low, high)
        x[at] = np.where(at_low, at_lower, np.where(at_high, at_upper, inside))
        return x

    def group_slacks(self, z: Array) -> tuple[Array, Array]:
        """Return how far each nested group's sum may decrease and increase; 0 within rounding."""
        assert self.low is not None
        assert self.high is not None
        slacks: list[list[float]] = [[], []]
        all_of_them = float(np.abs(z).sum())
        for k, (begin, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            members = z[begin:end]
            for side, (sign, limit) in enumerate(((1, self.low[k]), (-1, self.high[k]))):
                slack = math.inf if math.isinf(limit) else sign * math.fsum([*members, -limit])
                slacks[side].append(
                    slack if slack > SUM_ROUNDING * max(all_of_them, abs(limit)) else 0.0
                )
        return np.array(slacks[0]), np.array(slacks[1])

    def times(self, slacks: tuple[Array, Array], indices: Indices, delta: Array) -> float:
        """Return how many times a step can be taken until a nested group reaches its limit."""
        count = len(self.starts) - 1
        change = np.bincount(self.group[indices], delta, count)
        size = np.bincount(self.group[indices], np.abs(delta), count)
        crossing = np.abs(change) > 1e-12 * size  # smaller changes are rounding errors of 0
        slack = np.where(change < 0, slacks[0], slacks[1])[crossing]
        return float((slack / np.abs(change[crossing])).min(initial=math.inf))

    def require_sums(self, name: str, z: Array) -> None:
        """Raise unless the sums of z hold, up to a relative error of `MAX_SUM_ERROR`."""
        starts = self.sharing
        sums = np.add.reduceat(z, starts[:-1])
        scale = np.abs(self.totals) + np.add.reduceat(np.abs(z), starts[:-1])
        wrong = np.abs(sums - self.totals) > MAX_SUM_ERROR * scale
        if wrong.any():
            k = int(np.argmax(wrong))
            members = slice(starts[k], starts[k + 1])
            total, held = self.totals[k], z[members]
            ends = [total]
            if self.held is not None and not self.held[members].all():
                slack = members.stop - 1
                held = held[:-1]
                ends = [total - self.upper[slack], total - self.lower[slack]]
            found, *limits = numbers_for_message(held.sum(), *ends, digits=".10g")
            wanted = limits[0] if len(limits) == 1 else f"({limits[0]}, {limits[1]})"
            raise ValueError(
                f"{name} is infeasible: it sums to {found}, but total is {wanted}; "
                "SumBox.project returns the nearest feasible point"
            )
        if self.low is None or self.high is None:
            return
        sums = np.add.reduceat(z, self.starts[:-1])
        scale = np.add.reduceat(np.abs(z), self.starts[:-1])
        beyond = np.maximum(self.low - sums, sums - self.high) > MAX_SUM_ERROR * scale
        if beyond.any():
            k = int(np.argmax(beyond))
            found, low, high = numbers_for_message(
                sums[k], self.low[k], self.high[k], digits=".10g"
            )
            raise ValueError(
                f"{name} is infeasible: group {self.labels[k]!r} sums to {found}, but its "
                f"group_total is ({low}, {high}); SumBox.project returns the nearest feasible point"
            )

    def multipliers(self, found: Array) -> tuple[float | Array, dict[Hashable, float] | None]:
        """Return the multiplier of the total, or one per group, and the multipliers by group label.

        For nested groups, the second value is what the limits of each group add to the multiplier
        of the total.
        """
        own = found[1:] if self.nested else found
        by_label = dict(zip(self.labels, own.tolist(), strict=False)) if self.labels else None
        return (float(found[0]) if self.nested or len(found) == 1 else found), by_label
