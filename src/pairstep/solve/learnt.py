"""Curvature learnt from gradients: limited-memory BFGS, as a quadratic that the gears can solve."""

from __future__ import annotations

from collections import deque

import numpy as np

from .. import _core
from .._validation import LARGE, Array
from ..objectives import LeastSquares

MEMORY = 30  # steps
# A step along which the gradient hardly rises says nothing of a convex model's curvature.
CAUTION = 1e-10


class Learnt:
    """What the last steps say of the Hessian.

    After a step s that changed the gradient by y, BFGS replaces B by
    ``B - (Bs)(Bs)'/s'Bs + yy'/y's``, which stays positive definite as long as ``y's > 0``; other
    steps are passed over. Beginning with a multiple of the identity, k steps give
    ``theta I + F' diag(weight) F`` with two rows in F for each, one of them with a negative weight:
    a factor model, whose n x n matrix need not be formed.

    Without any steps the model's minimum is the spectral projected gradient step of Birgin,
    Martinez and Raydan: theta is the curvature along the last step.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
        self._theta = 0.0

    def __bool__(self) -> bool:
        """Whether there is anything that could be forgotten."""
        return bool(self._steps)

    def forget(self) -> None:
        """Drop all steps, but for the size of the curvature."""
        self._steps.clear()

    def learn(self, step: Array, change: Array) -> None:
        """Take a step and the change of the gradient along it into account."""
        along, size = _core.dot(step, change), _core.dot(change, change)
        if along > CAUTION * float(np.sqrt(size * _core.dot(step, step))):
            self._steps.append((step, change, along))
            self._theta = size / along

    def model(self, z: Array, violation: float) -> LeastSquares:
        """``(y - z)'B(y - z) / 2`` as a function of y."""
        # Amounts may be as small as numbers can be, and a curvature no larger than what is allowed.
        theta = min(self._theta or violation / (float(np.abs(z).max()) or 1.0), LARGE)
        rows = np.zeros((2 * len(self._steps), len(z)))
        weight = np.tile([1.0, -1.0], len(self._steps))
        for k, (step, change, along) in enumerate(self._steps):
            before = rows[: 2 * k]
            across = weight[: 2 * k] * _core.times_vector(before, step)
            bent = theta * step + _core.transposed_times_vector(before, across)
            rows[2 * k] = change / np.sqrt(along)
            rows[2 * k + 1] = bent / np.sqrt(_core.dot(step, bent))
        return LeastSquares.around(z, rows, theta, weight)
