"""Curvature learnt from gradients, as a quadratic that the gears can solve."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from .. import _core
from .._validation import LARGE, Array
from ..constraints import Layout
from ..objectives import FactorModel
from ..objectives.objective import Indices

RECENT = 10  # steps, of those that are kept
# All that tell of the curvature of few variables are kept, of many no more than the recent ones.
ROOM = 20_000  # numbers
# A step along which the gradient hardly rises says nothing of a convex model's curvature.
CAUTION = 1e-10
ROUNDS = 2
SPREAD = 1e4  # how far the curvature of one variable may be from that of all


class Learnt:
    """The last steps and what they changed in the gradient."""

    def __init__(self, n: int) -> None:
        self._steps: deque[tuple[Array, Array]] = deque(maxlen=max(RECENT, min(n, ROOM // n)))
        self._spectral = 0.0

    def learn(self, step: Array, change: Array) -> None:
        """Take a step and the change of the gradient along it into account."""
        self._steps.append((step, change))

    def __bool__(self) -> bool:
        """Whether there is anything that could be forgotten."""
        return bool(self._steps)

    def forget(self) -> None:
        """Drop all steps, but for the curvature along the last: a spectral step is next."""
        step, change = self._steps[-1]
        along = _core.dot(step, change)
        self._spectral = along / _core.dot(step, step) if along > 0 else 0.0
        self._steps.clear()

    def bend(self, moving: Indices, layout: Layout, guess: float) -> Bend:
        """What the steps say of some of the accounts, `guess` if nothing.

        Sums stay, so that a part of the gradient that all of a group share is of no account.
        """
        starts, n = np.unique(np.searchsorted(moving, layout.sharing)), len(moving)
        steps = np.array([step[moving] for step, _ in self._steps]).reshape(-1, n)
        changes = np.array([change[moving] for _, change in self._steps]).reshape(-1, n)
        length = np.sqrt(row_products(steps, steps))[:, None]
        diagonal = np.ones(n)
        steps, changes = (centered(v / length, starts, diagonal) for v in (steps, changes))
        along, size = row_products(steps, changes), np.sqrt(row_products(changes, changes))
        rising = along > CAUTION * size
        steps, changes, along = steps[rising], changes[rising], along[rising]
        if not rising.any():
            return Bend((self._spectral or guess) * diagonal, steps, changes, along, starts)
        for _ in range(ROUNDS):  # what a group shares depends on the diagonal, and this on that
            diagonal = curvature_of_each(steps[-RECENT:], changes[-RECENT:])
            changes = centered(changes, starts, 1 / diagonal)
        return Bend(diagonal, steps, changes, along, starts)


def row_products(left: Array, right: Array) -> Array:
    """The inner products of the rows of two matrices."""
    return np.asarray(np.einsum("ki,ki->k", left, right))


def centered(values: Array, starts: Indices, weight: Array) -> Array:
    """The same less the weighted mean of each group, row by row."""
    sums = np.add.reduceat(values * weight, starts[:-1], axis=-1)
    mean = sums / np.add.reduceat(weight, starts[:-1])
    return np.asarray(values - np.repeat(mean, np.diff(starts), axis=-1))


def curvature_of_each(steps: Array, changes: Array) -> Array:
    """A diagonal for BFGS to begin with.

    One number for all is the size of the last change against that of its step. Where the changes
    of a variable follow its own steps, as they do if the function is separable, their ratio is its
    own curvature. It counts as much as it explains: by the share R^2 of a line through the origin.
    """
    theta = float(np.sqrt(_core.dot(changes[-1], changes[-1]) / _core.dot(steps[-1], steps[-1])))
    changes = changes / theta
    moved, changed = np.einsum("ki,ki->i", steps, steps), np.einsum("ki,ki->i", changes, changes)
    together = np.einsum("ki,ki->i", steps, changes)
    known = (together > 0) & (moved * changed > np.finfo(float).tiny)
    moved, changed = np.where(known, moved, 1.0), np.where(known, changed, 1.0)
    share = np.where(known, together**2 / (moved * changed), 0.0)
    own = np.clip(np.sqrt(changed / moved), 1 / SPREAD, SPREAD)
    return np.minimum(theta * own**share, LARGE)


class Bend(NamedTuple):
    """A Hessian by BFGS.

    After a step s that changed the gradient by y, BFGS replaces B by
    ``B - (Bs)(Bs)'/s'Bs + yy'/y's``, which stays positive definite as long as ``y's > 0``; other
    steps are passed over. Beginning with a diagonal D, k steps give ``D + F' diag(weight) F`` with
    two rows in F for each, one of them with a negative weight: a factor model, whose n x n matrix
    need not be formed.

    Without any steps the model's minimum is a projected gradient step: once steps were forgotten,
    the spectral one of Birgin, Martinez and Raydan, with the curvature along the last of them.
    """

    diagonal: Array
    steps: Array
    changes: Array
    along: Array  # the products of the two
    starts: Indices

    def step(self, gradient: Array) -> Array:
        """The step to the model's minimum where no bound is in the way."""
        downhill = -centered(gradient, self.starts, 1 / self.diagonal)
        return _core.divide_by_hessian(
            self.steps, self.changes, self.along, self.diagonal, downhill
        )

    def around(self, z: Array) -> FactorModel:
        """``(y - z)'B(y - z) / 2`` as a function of y."""
        rows = _core.factor_hessian(self.steps, self.changes, self.along, self.diagonal)
        weight = np.tile([1.0, -1.0], len(self.steps))
        return FactorModel.around(z, rows, self.diagonal, weight)
