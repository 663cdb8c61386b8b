"""The block gear's four questions, answered on the device.

Prices are kept in float64. Kernel values on the way are of the oracle's type, float32 or float64;
blocks of working sets and verified prices are always made of float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._validation import Array
from ..constraints import Indices
from ..svm.machine import Dual
from .device import Prices
from .gram import Gram


class KernelOracle:
    """Answers for one dual, ``z'Kz/2 + linear'z + kink |z|`` over some rows of the data."""

    def __init__(self, gram: Gram, dual: Dual, points: Any, tol: float):
        self.device, self.gram, self.dual, self.tol = gram.device, gram, dual, tol
        self.points = points
        self.rounding = gram.rounding(points)
        self.block_size = 0  # of the last working set
        xp = self.device.xp
        self.linear = xp.asarray(dual.linear)
        self.prices = Prices(
            self.linear.copy(), xp.array(dual.z), xp.asarray(dual.lower), xp.asarray(dual.upper),
            None if dual.kink is None else xp.asarray(dual.kink), xp.asarray(dual.starts),
        )  # fmt: skip
        support = np.flatnonzero(dual.z)
        self._add(support, dual.z[support], self.points, self.prices.gradient)

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, float]:
        """Select on the device; sort where prices are so even that it would select too many."""
        found = self.device.outliers(self.prices, count, with_free)
        if found is None:
            found = self._by_sorting(count, with_free)
        return *found, 1.0

    def _by_sorting(self, count: int, with_free: bool) -> tuple[Indices, Array]:
        xp = self.device.xp
        down, up, free = self.standing()
        chosen = free if with_free else xp.zeros(len(free), bool)
        for group in self.dual.groups:
            for score in (down[group], -up[group]):
                chosen[group.start + xp.argsort(score)[-count:]] = True
        accounts = xp.flatnonzero(chosen)
        gradient = np.array(self.device.fetch(self.prices.gradient[accounts]))
        return np.array(self.device.fetch(accounts), np.int64), gradient

    def standing(self) -> tuple[Any, Any, Any]:
        """Prices at which accounts sell and buy (infinite where they cannot), and who is free."""
        xp = self.device.xp
        gradient, x, lower, upper, kink, _ = self.prices
        down, up, free = gradient, gradient, (x > lower) & (x < upper)
        if kink is not None:
            down = gradient + xp.where(x > 0, kink, -kink)
            up = gradient + xp.where(x < 0, -kink, kink)
            free &= down == up
        return xp.where(x > lower, down, -math.inf), xp.where(x < upper, up, math.inf), free

    def block(self, members: Indices) -> Array:
        """Their part of the kernel matrix."""
        self.block_size = len(members)
        return np.asarray(self.device.fetch(self.matrix(members)))

    def matrix(self, members: Indices) -> Any:
        """The same, where it is made."""
        return self.gram.block(self.dual.rows[members])

    def advance(self, moved: Indices, delta: Array) -> None:
        """Add the kernel of all points with those that have moved."""
        xp = self.device.xp
        self.prices.x[xp.asarray(moved)] = xp.asarray(self.dual.z[moved])
        self._add(moved, delta, self.points, self.prices.gradient)

    def verify(self) -> None:
        """Compute prices anew that are close to being the dearest or the cheapest.

        Closer than eight times the largest error that was found on the way or that one support
        vector alone could make (all of them if need be).
        """
        xp, gradient = self.device.xp, self.prices.gradient
        support = np.flatnonzero(self.dual.z)
        weights = self.dual.z[support]
        exact = xp.zeros(len(gradient), bool)
        error = 0.0
        margin = max(self.tol, 8 * float(np.abs(weights).max(initial=0.0)) * self.rounding)
        while True:
            down, up, _ = self.standing()
            close = xp.zeros(len(exact), bool)
            for group in self.dual.groups:
                close[group] = (down[group] >= down[group].max() - margin) | (
                    up[group] <= up[group].min() + margin
                )
            close &= ~exact
            exact |= close
            chosen = xp.flatnonzero(close)
            if len(chosen) == 0 and margin >= 8 * error:
                return
            truth = self.linear[chosen]
            accounts = np.array(self.device.fetch(chosen), np.int64)
            if len(accounts) > 0:
                points = self.gram.points(self.dual.rows[accounts], "float64")
                self._add(support, weights, points, truth)
                error = max(error, float(xp.abs(truth - gradient[chosen]).max()))
                gradient[chosen] = truth
            margin = max(margin, 8 * error)

    def _add(self, accounts: Indices, weights: Array, points: Any, sums: Any) -> None:
        """sums[p] += sum_k weights[k] k(account k, point p)."""
        self.gram.add(self.dual.rows[accounts], weights[None], points, sums[None])
