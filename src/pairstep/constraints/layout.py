"""A constraint as solvers see it: accounts, contiguous groups, sums."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import Array
from ..kept import kept

Indices = NDArray[np.int64]

# A difference that is this small against the numbers it is taken of is their rounding.
GRAIN = _core.GRAIN


@dataclass(frozen=True)
class Layout:
    """A constraint in accounts.

    The account of coordinate i holds ``weights_i x_i``. Accounts of one group are contiguous, from
    ``starts[k]`` to ``starts[k + 1]``, and sum to ``totals[k]``. Where a sum is a range, its group
    has one more account, the cash that is left over, which no objective sees.

    Nested groups share one total, ``totals[0]``, and the sum of group k lies between ``low[k]`` and
    ``high[k]``; cash is then a group of its own.
    """

    lower: Array
    upper: Array
    totals: Array
    starts: Indices
    bounds: tuple[Array, Array]  # of the coordinates, exactly as given
    source: Indices | None = None  # coordinate of each account, -1 for cash; None: the identity
    weights: Array | None = None  # of each account
    labels: tuple[Hashable, ...] = ()  # of the groups, but for that of cash
    low: Array | None = None
    high: Array | None = None

    @property
    def n(self) -> int:
        """The number of accounts."""
        return len(self.lower)

    @property
    def nested(self) -> bool:
        """Whether groups share a total."""
        return self.low is not None

    @property
    def sharing(self) -> Indices:
        """Where the accounts start that can trade with each other, if their sums have room."""
        return np.array([0, self.n], np.int64) if self.nested else self.starts

    @kept
    def held(self) -> NDArray[np.bool_] | None:
        """Which accounts belong to a coordinate."""
        return None if self.source is None else self.source >= 0

    @kept
    def group(self) -> Indices:
        """The group of each account."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

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
        return self._project(z, self.lower, self.upper)

    def _project(self, z: Array, lower: Array, upper: Array) -> Array:
        return _core.project(z, lower, upper, self.starts, self.totals, self.low, self.high)

    def among(self, members: Indices, z: Array) -> Layout:
        """The same for some of the accounts, while the others stay as they are in z."""
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

    def fill(self, price: Array, curvature: Array) -> Array:
        """Fill the accounts from finite lower bounds, the cheapest first.

        At most one account of each sum ends between its bounds. The cost of filling one is its
        price and half of what its curvature adds on the way.
        """
        return _core.fill(
            price, curvature, self.lower, self.upper, self.starts, self.totals, self.low, self.high
        )

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Take what is said of each account to its coordinate."""
        if self.source is None or self.held is None:
            return values
        result = np.empty(len(self.bounds[0]), values.dtype)
        result[self.source[self.held]] = values[self.held]
        return result

    def gradient(self, prices: Array) -> Array:
        """Translate a gradient per account back into one per coordinate."""
        return self.gather(prices if self.weights is None else prices * self.weights)

    def pull(self, multiplier: Array) -> Array:
        """What the sums add to the gradient of each coordinate: multiplier times weight."""
        if len(multiplier) == 1 and self.source is None and self.weights is None:
            return multiplier  # of the only sum
        own = multiplier[0] + multiplier[1:] if self.nested else multiplier
        return self.gradient(own[self.group])

    def settle(self, z: Array, pivot: Array | None = None) -> None:
        """Make the sums exact, in place, without moving what is on a bound or a kink."""
        _core.settle(
            z, self.lower, self.upper, self.starts, self.totals, pivot, self.low, self.high
        )

    def nearest(self, y: Array) -> Array:
        """The feasible point nearest to y, in accounts.

        Cash has no place of its own to be near to: it takes what the range allows, and then stays.
        """
        z = self.scatter(y)
        if self.held is None or self.held.all():
            return self.project(z)
        cash = ~self.held
        z[cash] = self.to_accounts(np.clip(y, *self.bounds))[cash]
        return self._project(z, np.where(cash, z, self.lower), np.where(cash, z, self.upper))

    def to_accounts(self, x: Array) -> Array:
        """Translate a feasible point into accounts."""
        z = self.scatter(x)
        if self.held is not None and not self.held.all():
            starts = self.sharing
            sums = np.add.reduceat(z, starts[:-1])
            cash = np.flatnonzero(~self.held)
            group = np.searchsorted(starts, cash, side="right") - 1
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

    def group_rooms(self, z: Array) -> tuple[Array, Array]:
        """How far the sum of each nested group may fall and rise, 0 where rounding is the rest."""
        assert self.low is not None
        assert self.high is not None
        rooms: list[list[float]] = [[], []]
        for k, (begin, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            members = z[begin:end]
            largest = float(np.abs(members).max(initial=0.0))
            for side, (sign, limit) in enumerate(((1, self.low[k]), (-1, self.high[k]))):
                room = math.inf if math.isinf(limit) else sign * math.fsum([*members, -limit])
                rooms[side].append(room if room > GRAIN * max(largest, abs(limit)) else 0.0)
        return np.array(rooms[0]), np.array(rooms[1])

    def times(self, rooms: tuple[Array, Array], indices: Indices, delta: Array) -> float:
        """How many times a move can be made before the sum of a nested group is at its limit."""
        count = len(self.starts) - 1
        change = np.bincount(self.group[indices], delta, count)
        size = np.bincount(self.group[indices], np.abs(delta), count)
        crossing = np.abs(change) > 1e-12 * size  # the rest is what rounding leaves of 0
        room = np.where(change < 0, rooms[0], rooms[1])[crossing]
        return float((room / np.abs(change[crossing])).min(initial=math.inf))

    def require_sums(self, name: str, z: Array) -> None:
        """Raise unless the sums of these accounts are right, but for a billionth of their terms."""
        starts = self.sharing
        sums = np.add.reduceat(z, starts[:-1])
        scale = np.abs(self.totals) + np.add.reduceat(np.abs(z), starts[:-1])
        wrong = np.abs(sums - self.totals) > 1e-9 * scale
        if wrong.any():
            k = int(np.argmax(wrong))
            members = slice(starts[k], starts[k + 1])
            total, held = self.totals[k], z[members]
            wanted = f"{total:.10g}"
            if self.held is not None and not self.held[members].all():
                cash = members.stop - 1
                held = held[:-1]
                wanted = f"({total - self.upper[cash]:.10g}, {total - self.lower[cash]:.10g})"
            raise ValueError(
                f"{name} is infeasible: it sums to {held.sum():.10g}, but total is {wanted}"
            )
        if self.low is None or self.high is None:
            return
        sums = np.add.reduceat(z, self.starts[:-1])
        scale = np.add.reduceat(np.abs(z), self.starts[:-1])
        beyond = np.maximum(self.low - sums, sums - self.high) > 1e-9 * scale
        if beyond.any():
            k = int(np.argmax(beyond))
            raise ValueError(
                f"{name} is infeasible: group {self.labels[k]!r} sums to {sums[k]:.10g}, but its "
                f"group_total is ({self.low[k]:.10g}, {self.high[k]:.10g})"
            )

    def multipliers(self, found: Array) -> tuple[float | Array, dict[Hashable, float] | None]:
        """The multipliers of a certificate: of the total, or one per group; and by label.

        Of nested groups, which share a total, the second is what the limits of each add.
        """
        own = found[1:] if self.nested else found
        by_label = dict(zip(self.labels, own.tolist(), strict=False)) if self.labels else None
        return (float(found[0]) if self.nested or len(found) == 1 else found), by_label
