"""The oracle of the block solver on the GPU.

The gradient is kept in float64. The kernel values that update it have the type of the points,
float32 or float64. Blocks of working sets and recomputed gradients always use float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Dual, noise_of
from .device import Derivatives
from .gram import Gram

# Derivatives are recomputed if they are within this many errors of the extreme one. If larger, more
# derivatives are recomputed; if smaller, the true extreme may be missed, since the errors of most
# derivatives are not known.
ERROR_MARGIN = 8


class Position(NamedTuple):
    """One-sided derivatives of all variables, on the CPU."""

    gradient: Array
    down: Array  # left derivatives
    up: Array  # right derivatives
    free: NDArray[np.bool_]


class KernelOracle:
    """The oracle of one dual, ``z'Kz/2 + linear'z + l1 |z|`` over some rows of the data."""

    def __init__(self, gram: Gram, dual: Dual, points: Any, tol: float):
        self.device, self.gram, self.dual, self.tol = gram.device, gram, dual, tol
        self.points = points
        self.rounding = gram.rounding(points)
        self.largest = gram.largest(points)
        self.block_size = 0  # variables in the last working set
        # The sum of |z|, updated with every step: a pass over all of z in every round would take
        # longer than the selection of candidates on the GPU.
        self.total = float(np.abs(dual.z).sum())
        xp = self.device.xp
        self.derivatives = Derivatives(
            xp.array(dual.linear), xp.array(dual.z), xp.asarray(dual.lower), xp.asarray(dual.upper),
            None if dual.l1 is None else xp.asarray(dual.l1), xp.asarray(dual.starts),
        )  # fmt: skip
        support = np.flatnonzero(dual.z)
        self._add(support, dual.z[support], self.points, self.derivatives.gradient)

    def select_candidates(self, count: int, with_free: bool) -> tuple[Indices, Array, float, float]:
        """Select candidates on the GPU; sort if the derivatives are too close for a histogram."""
        found = self.device.outliers(self.derivatives, count, with_free)
        if found is None:
            found = self._by_sorting(count, with_free)
        return *found, 1.0, noise_of(self.total, self.largest)

    def _by_sorting(self, count: int, with_free: bool) -> tuple[Indices, Array]:
        gradient, down, up, free = self.position()
        chosen = free if with_free else np.zeros(len(free), bool)
        for group in self.dual.groups:
            for score in (down[group], -up[group]):
                chosen[group.start + np.argsort(score)[-count:]] = True
        coordinates = np.flatnonzero(chosen)
        return coordinates, gradient[coordinates]

    def position(self) -> Position:
        """Return the gradient, the left and right derivatives, and which variables are free.

        A derivative is infinite in the direction in which the variable cannot move.
        """
        gradient, dual = self.gradient(), self.dual
        x, l1 = dual.z, dual.l1
        down, up, free = gradient, gradient, (x > dual.lower) & (x < dual.upper)
        if l1 is not None:
            down = gradient + np.where(x > 0, l1, -l1)
            up = gradient + np.where(x < 0, -l1, l1)
            free &= down == up
        down = np.where(x > dual.lower, down, -math.inf)
        return Position(gradient, down, np.where(x < dual.upper, up, math.inf), free)

    def block(self, members: Indices) -> Array:
        """Return the block of the kernel matrix of a working set."""
        self.block_size = len(members)
        return np.asarray(self.device.fetch(self.matrix(members)))

    def matrix(self, members: Indices) -> Any:
        """Return the block of the kernel matrix of some variables, on the GPU."""
        return self.gram.block(self.dual.rows[members])

    def update_gradient(self, moved: Indices, delta: Array) -> None:
        """Update the gradient after these variables have changed by `delta`."""
        z = self.dual.z[moved]
        self.total += float((np.abs(z) - np.abs(z - delta)).sum())
        self.device.scatter(self.derivatives.x, moved, z)
        self._add(moved, delta, self.points, self.derivatives.gradient)

    def recompute_gradient(self) -> None:
        """Recompute the derivatives that may be the extreme ones of a group.

        These are within a margin of the extreme one. The margin is at least `tol`, and at least
        `ERROR_MARGIN` times the error that the rounding of one kernel value could cause. It grows
        to `ERROR_MARGIN` times the largest error found. The method ends when all derivatives within
        the margin are recomputed.
        """
        support = np.flatnonzero(self.dual.z)
        weights = self.dual.z[support]
        self.total = float(np.abs(weights).sum())
        exact = np.zeros(len(self.dual.z), bool)
        error = 0.0
        margin = max(
            self.tol, ERROR_MARGIN * float(np.abs(weights).max(initial=0.0)) * self.rounding
        )
        while True:
            gradient, down, up, _ = self.position()
            close = np.zeros(len(exact), bool)
            for group in self.dual.groups:
                close[group] = (down[group] >= down[group].max() - margin) | (
                    up[group] <= up[group].min() + margin
                )
            chosen = np.flatnonzero(close & ~exact)
            exact[chosen] = True
            if len(chosen) == 0 and margin >= ERROR_MARGIN * error:
                return
            if len(chosen) > 0:
                points = self.gram.points(self.dual.rows[chosen], "float64")
                sums = self.device.sent(self.dual.linear[chosen])
                self._add(support, weights, points, sums)
                truth = np.array(self.device.fetch(sums))
                error = max(error, float(np.abs(truth - gradient[chosen]).max()))
                self.device.scatter(self.derivatives.gradient, chosen, truth)
            margin = max(margin, ERROR_MARGIN * error)

    def gradient(self) -> Array:
        """Return the gradient of all variables."""
        return np.array(self.device.fetch(self.derivatives.gradient))

    def _add(self, coordinates: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Compute sums[p] += sum_k weights[k] k(variable k, point p)."""
        self.gram.add(self.dual.rows[coordinates], weights[None], points, sums[None])
