"""What both gears share: the task they are given and the outcome they hand back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices, Layout
from ..objectives import Objective, value_and_gradient
from ..result import History, Progress, Status
from ..rules import Rule
from .steps import StepPlan

Callback = Callable[[Progress], object]


class Seen(NamedTuple):
    """What the problem says of a point: derived from it, not kept up to date by a loop."""

    value: float
    gradient: Array
    certificate: tuple[float, float, Array]  # KKT violation, Frank-Wolfe gap, multiplier per group


@dataclass
class Task:
    """A problem in accounts, and how to solve it. Gears change `z` and `n_iter` as they go."""

    objective: Objective
    layout: Layout
    rule: Rule
    plan: StepPlan
    z: Array
    tol: float
    max_iter: int
    time_limit: float
    callback: Callback | None
    rng: np.random.Generator
    record: bool
    finish: bool
    n_iter: int = 0
    began: float = field(default_factory=time.perf_counter)
    rows: list[Array] = field(default_factory=list)

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self.began

    @property
    def patience(self) -> int:
        """Iterations without progress after which a gear gives up.

        An unguided rule needs many tries to hit a pair that gains, the more so the more unequal
        the odds.
        """
        n = self.layout.n
        if self.rule.guided:
            return 1000 + 10 * n
        odds = 1.0
        if self.rule.weighted and self.plan.lipschitz is not None:
            odds = min(float(self.plan.lipschitz.mean() / self.plan.lipschitz.min()), 1000.0)
        return 1000 + int(20 * odds * n**2)

    def place(self) -> tuple[Array, Array, Array, Array | None, Array | None, Indices]:
        """What the native functions call a point, the gradient apart."""
        layout = self.layout
        weight, pivot = self.objective.kinks or (None, None)
        return self.z, layout.lower, layout.upper, weight, pivot, layout.starts

    def settle(self) -> None:
        """Make the sums of z exact."""
        kinks = self.objective.kinks
        self.layout.settle(self.z, None if kinks is None else kinks[1])

    def look(self) -> Seen:
        """What the problem says of z."""
        value, gradient = value_and_gradient(self.objective, self.z)
        return Seen(value, gradient, _core.certify(gradient, *self.place()))

    def violation_of(self, gradient: Array) -> float:
        """The KKT violation at z, given a gradient."""
        return _core.certify(gradient, *self.place())[0]

    def threshold_of(self, gradient: Array) -> float:
        """The violation at which the point counts as optimal."""
        return self.tol * (1.0 + float(np.abs(gradient).max()))

    def stationary(self, remark: str = "", seen: Seen | None = None) -> Outcome:
        """What to call a stationary point: the optimum if the function is convex where we look.

        A stationary point of any other is at best a local minimum. Small quadratics are checked
        whole, larger ones along all pairs and on the face of free accounts; beyond a few thousand
        of those the factorisation would cost too much.
        """
        if remark:
            return Outcome(Status.STALLED, remark, seen)
        convex = self._convexity()
        if convex == 0:
            return Outcome(Status.STALLED, NOT_CONVEX, seen)
        return Outcome(Status.OPTIMAL, ROUNDED if convex == 1 else "", seen)

    def _convexity(self) -> int:
        hessian, layout = self.objective.hessian, self.layout
        if hessian is None:
            return 2
        if getattr(self.objective, "least_pair_curvature", 0.0) < -1e-9 and len(layout.totals) == 1:
            return 0
        free = None
        if layout.n > 300:
            free = np.flatnonzero((self.z > layout.lower) & (self.z < layout.upper))
            if len(free) > 3000:
                return 2
        convex = _core.convex_along(hessian, free, layout.starts)
        # A face is singular more often than not; only the whole matrix is worth a remark.
        return convex if layout.n <= 300 else min(2 * convex, 2)

    def stopped_by_callback(self, value: float, violation: float) -> bool:
        """Tell the callback, if there is one; whether it asks to stop."""
        if self.callback is None:
            return False
        x = self.layout.to_coordinates(self.z)
        return bool(self.callback(Progress(self.n_iter, value, violation, x, self.elapsed)))

    def history(self) -> History | None:
        """The rows recorded, as columns."""
        if not self.record:
            return None
        value, violation, moved, interior, seconds = np.concatenate(self.rows).T
        return History(
            value.copy(),
            violation.copy(),
            moved.astype(np.int64),
            interior.astype(np.int64),
            seconds.copy(),
        )


NOT_CONVEX = "the Hessian is not positive semidefinite, so x is at best a stationary point"
ROUNDED = "the Hessian is indefinite, but only as rounding makes it; taken as semidefinite"


@dataclass(frozen=True)
class Outcome:
    """Why a gear stopped, a remark for the message, and z as last seen, if z is still the same."""

    status: Status
    remark: str = ""
    seen: Seen | None = None
