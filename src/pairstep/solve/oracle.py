"""The door for problems that live elsewhere: the four questions that the block gear asks.

Any object that answers them can be solved, see `solve_oracle`: the block gear needs nothing else of
a problem, however large or far away it is.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..objectives import Objective
from ..rules.accounts import Accounts, accounts_at

Indices = NDArray[np.int64]


class Oracle(Protocol):
    """What the block gear asks. Accounts are numbered from 0; groups are side by side.

    The gear owns the point; an oracle is told of every change by `advance`.
    """

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, float]:
        """The accounts worth a look: (accounts, their gradients, scale).

        At least the `count` dearest sellers and cheapest buyers of each group (accounts with the
        largest left derivative that can fall, the smallest right derivative that can rise) and, if
        asked, every free account. The violation is judged against ``tol * scale``.
        """

    def block(self, members: Indices) -> Array:
        """Their rows and columns of the Hessian."""

    def advance(self, moved: Indices, delta: Array) -> None:
        """These accounts have changed by `delta`: bring the gradients up to date."""

    def verify(self) -> None:
        """Compute the gradients anew from the problem."""


class ObjectiveOracle:
    """Answers for a quadratic objective in Python, in NumPy."""

    def __init__(self, objective: Objective, z: Array, lower: Array, upper: Array, starts: Indices):
        self.objective = objective
        self.z = z  # the gear's own point
        self.lower, self.upper, self.starts = lower, upper, starts
        self.gradient: Array
        self.verify()

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, float]:
        """Look at all prices."""
        at = self.accounts()
        chosen = at.is_free if with_free else np.zeros(len(self.z), bool)
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            rest = max(end - begin - count, 0)  # who are not among the best
            for score in (at.sellers[begin:end], -at.buyers[begin:end]):
                chosen[begin + np.argsort(score, kind="stable")[rest:]] = True
        found = np.flatnonzero(chosen)
        return found, self.gradient[found], self.scale()

    def accounts(self) -> Accounts:
        """Prices and rooms of all accounts."""
        return accounts_at(self.gradient, self.z, self.lower, self.upper, self.objective.kinks)

    def scale(self) -> float:
        """The size of the terms that cancel in the gradient."""
        linear = self.objective.linear
        terms: list[Any] = [self.gradient] if linear is None else [self.gradient - linear, linear]
        if self.objective.kinks is not None:
            terms.append(self.objective.kinks[0])
        return max(float(np.abs(term).max()) for term in terms)

    def block(self, members: Indices) -> Array:
        """Ask the objective."""
        block = self.objective.block(members)
        assert block is not None
        return block

    def advance(self, moved: Indices, delta: Array) -> None:
        """Compute the gradient afresh."""
        self.verify()

    def verify(self) -> None:
        """Compute the gradient afresh."""
        self.gradient = self.objective.gradient(self.z)
