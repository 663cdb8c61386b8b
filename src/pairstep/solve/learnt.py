"""Curvature learnt from gradients, as a quadratic that the gears can solve."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Layout
from ..objectives import FactorModel
from ..objectives.objective import Indices

MEMORY = 10  # steps
# A step along which the gradient hardly rises says nothing of a convex model's curvature.
CAUTION = 1e-10


class Pair(NamedTuple):
    """A step, the change of the gradient, and their product."""

    step: Array
    change: Array
    along: float


class Learnt:
    """The last steps and what they changed in the gradient."""

    def __init__(self) -> None:
        self._steps: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)

    def learn(self, step: Array, change: Array) -> None:
        """Take a step and the change of the gradient along it into account."""
        self._steps.append((step, change))

    def __bool__(self) -> bool:
        """Whether there is anything that could be forgotten."""
        return len(self._steps) > 1

    def forget(self) -> None:
        """Drop all steps but the last, which tells the size of the curvature."""
        while self:
            self._steps.popleft()

    def bend(self, moving: Indices, layout: Layout, guess: float) -> Bend:
        """What the steps say of some of the accounts, `guess` if nothing.

        Sums stay, so that a part of the gradient that all of a group share is of no account.
        """
        starts = np.unique(np.searchsorted(moving, layout.sharing))
        theta, pairs = 0.0, []
        for step, change in self._steps:
            s, y = centered(step[moving], starts), centered(change[moving], starts)
            along, length = _core.dot(s, y), _core.dot(s, s)
            size = float(np.sqrt(length * _core.dot(y, y)))
            if along > CAUTION * size:
                pairs.append(Pair(s, y, along))
                theta = size / length
        return Bend(theta or guess, pairs, starts)


def centered(values: Array, starts: Indices) -> Array:
    """The same less the mean of each group."""
    count = np.diff(starts)
    return values - np.repeat(np.add.reduceat(values, starts[:-1]) / count, count)


class Bend(NamedTuple):
    """A Hessian by BFGS.

    After a step s that changed the gradient by y, BFGS replaces B by
    ``B - (Bs)(Bs)'/s'Bs + yy'/y's``, which stays positive definite as long as ``y's > 0``; other
    steps are passed over. Beginning with a multiple of the identity, k steps give
    ``theta I + F' diag(weight) F`` with two rows in F for each, one of them with a negative weight:
    a factor model, whose n x n matrix need not be formed.

    Without any steps the model's minimum is the spectral projected gradient step of Birgin,
    Martinez and Raydan: theta is the curvature along the last step.
    """

    theta: float
    pairs: list[Pair]
    starts: Indices

    def step(self, gradient: Array) -> Array:
        """The step to the model's minimum where no bound is in the way (Nocedal's two loops)."""
        step = -centered(gradient, self.starts)
        shares = []
        for pair in reversed(self.pairs):
            shares.append(_core.dot(pair.step, step) / pair.along)
            step -= shares[-1] * pair.change
        step /= self.theta
        for pair in self.pairs:
            step += (shares.pop() - _core.dot(pair.change, step) / pair.along) * pair.step
        return step

    def around(self, z: Array) -> FactorModel:
        """``(y - z)'B(y - z) / 2`` as a function of y."""
        count = len(self.pairs)
        rows, weight = np.zeros((2 * count, len(z))), np.tile([1.0, -1.0], count)
        for k, (step, change, along) in enumerate(self.pairs):
            before = rows[: 2 * k]
            across = weight[: 2 * k] * _core.times_vector(before, step)
            bent = self.theta * step + _core.transposed_times_vector(before, across)
            rows[2 * k] = change / np.sqrt(along)
            rows[2 * k + 1] = bent / np.sqrt(_core.dot(step, bent))
        return FactorModel.around(z, rows, self.theta, weight)
