"""Curvature estimated from gradients by BFGS, as a quadratic model for the solvers.

The compact form of the BFGS matrix, and the diagonal it starts from, are described in `BfgsHessian`
and `curvature_of_each`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from .. import _core
from .._validation import LARGE, Array
from ..constraints import Layout
from ..objectives import FactorModel
from ..objectives.objective import Indices

# Number of recent steps from which the diagonal is estimated; at least this many are stored. More
# steps would include outdated curvature, and fewer would make the estimate noisier.
RECENT_STEPS = 10
# Size limit, in numbers, of the stored steps, and the same again for the changes of the gradient.
# Up to n steps are stored within it, and RECENT_STEPS steps even beyond it. A larger limit improves
# the estimate if n exceeds its square root, but makes each iteration slower.
MAX_NUMBERS_STORED = 20_000
# A step is ignored if the cosine of the angle between the step and its change of the gradient is
# smaller than this. The curvature along such a step is negative or lost in rounding errors.
MIN_COSINE = 1e-10
# Number of fixed-point iterations for the diagonal and the mean change of each group, which depend
# on each other. More of them would match the two more closely, but take longer.
DIAGONAL_ROUNDS = 2
# Largest ratio between the curvature of one variable and the common curvature, in either direction.
# A larger ratio would trust variables whose steps were tiny; a smaller one would ignore differences
# in scale.
MAX_CURVATURE_RATIO = 1e4


class GradientHistory:
    """The last steps and the changes of the gradient along them."""

    def __init__(self, n: int) -> None:
        self._steps: deque[tuple[Array, Array]] = deque(
            maxlen=max(RECENT_STEPS, min(n, MAX_NUMBERS_STORED // n))
        )
        self._spectral = 0.0

    def append(self, step: Array, change: Array) -> None:
        """Store a step and the change of the gradient along it."""
        self._steps.append((step, change))

    def __bool__(self) -> bool:
        """Whether any steps are stored."""
        return bool(self._steps)

    def forget(self) -> None:
        """Drop all steps but keep the curvature along the last one, for a spectral step."""
        step, change = self._steps[-1]
        along = _core.dot(step, change)
        self._spectral = along / _core.dot(step, step) if along > 0 else 0.0
        self._steps.clear()

    def hessian(self, moving: Indices, layout: Layout, guess: float) -> BfgsHessian:
        """Return the Hessian estimate of the variables `moving`.

        If no stored step is usable, it is a multiple of the identity: the curvature that `forget`
        kept, or else `guess`. The sums do not change, so a part of the gradient that all variables
        of a group share is irrelevant.
        """
        starts, n = np.unique(np.searchsorted(moving, layout.sharing)), len(moving)
        steps = np.array([step[moving] for step, _ in self._steps]).reshape(-1, n)
        changes = np.array([change[moving] for _, change in self._steps]).reshape(-1, n)
        length = np.sqrt(row_products(steps, steps))[:, None]
        diagonal = np.ones(n)
        steps, changes = (centered(v / length, starts, diagonal) for v in (steps, changes))
        along, size = row_products(steps, changes), np.sqrt(row_products(changes, changes))
        rising = along > MIN_COSINE * size
        steps, changes, along = steps[rising], changes[rising], along[rising]
        if not rising.any():
            return BfgsHessian((self._spectral or guess) * diagonal, steps, changes, along, starts)
        for _ in range(DIAGONAL_ROUNDS):
            diagonal = curvature_of_each(steps[-RECENT_STEPS:], changes[-RECENT_STEPS:])
            changes = centered(changes, starts, 1 / diagonal)
        return BfgsHessian(diagonal, steps, changes, along, starts)


def row_products(left: Array, right: Array) -> Array:
    """Return the inner products of corresponding rows."""
    return np.asarray(np.einsum("ki,ki->k", left, right))


def centered(values: Array, starts: Indices, weight: Array) -> Array:
    """Subtract the weighted mean of each group, row by row."""
    sums = np.add.reduceat(values * weight, starts[:-1], axis=-1)
    mean = sums / np.add.reduceat(weight, starts[:-1])
    return np.asarray(values - np.repeat(mean, np.diff(starts), axis=-1))


def curvature_of_each(steps: Array, changes: Array) -> Array:
    """Return the diagonal that BFGS starts from.

    The common curvature is the size of the last change relative to its step. If the changes of a
    variable are proportional to its steps, as for a separable function, their ratio is the
    variable's own curvature. The estimate is ``common (own / common)^(R^2)``, where R^2 is that of
    the regression of the variable's changes on its steps through the origin.
    """
    theta = float(np.sqrt(_core.dot(changes[-1], changes[-1]) / _core.dot(steps[-1], steps[-1])))
    changes = changes / theta
    moved, changed = np.einsum("ki,ki->i", steps, steps), np.einsum("ki,ki->i", changes, changes)
    together = np.einsum("ki,ki->i", steps, changes)
    known = (together > 0) & (moved * changed > np.finfo(float).tiny)
    moved, changed = np.where(known, moved, 1.0), np.where(known, changed, 1.0)
    exponent = np.where(known, together**2 / (moved * changed), 0.0)
    own = np.clip(np.sqrt(changed / moved), 1 / MAX_CURVATURE_RATIO, MAX_CURVATURE_RATIO)
    return np.minimum(theta * own**exponent, LARGE)


class BfgsHessian(NamedTuple):
    """A BFGS approximation of the Hessian.

    After a step s that changed the gradient by y, BFGS replaces B by
    ``B - (Bs)(Bs)'/s'Bs + yy'/y's``, which stays positive definite if ``y's > 0``; other steps are
    skipped. Starting from a diagonal D, k steps give ``D + F' diag(weight) F`` with two rows of F
    per step, one with a negative weight. This is a factor model, whose n x n matrix is not formed.

    Without steps, the minimum of the model is a projected gradient step. After `forget` its length
    is the spectral one of Birgin, Martinez and Raydan, with the curvature along the last step.
    """

    diagonal: Array
    steps: Array
    changes: Array
    along: Array  # inner products of steps and changes
    starts: Indices

    def step(self, gradient: Array) -> Array:
        """Return the step to the model's minimum, ignoring the bounds."""
        downhill = -centered(gradient, self.starts, 1 / self.diagonal)
        return _core.divide_by_hessian(
            self.steps, self.changes, self.along, self.diagonal, downhill
        )

    def around(self, z: Array) -> FactorModel:
        """Return ``(y - z)'B(y - z) / 2`` as a function of y."""
        rows = _core.factor_hessian(self.steps, self.changes, self.along, self.diagonal)
        weight = np.tile([1.0, -1.0], len(self.steps))
        return FactorModel.around(z, rows, self.diagonal, weight)
