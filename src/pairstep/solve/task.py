"""What all gears share: the task they are given and the outcome they hand back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import _core, log
from .._validation import Array
from ..constraints import Layout
from ..kept import kept
from ..objectives import Objective, value_and_gradient
from ..result import History, Progress, Status
from ..rules import Rule
from .steps import StepPlan

Callback = Callable[[Progress], object]

GAIN, ROUNDING = _core.GAIN, _core.ROUNDED  # see core/certify.hpp
# What a gradient elsewhere counts against the one at hand, where the Hessian is not constant.
ELSEWHERE = 1e-3


class Seen(NamedTuple):
    """What the problem says of a point: derived from it, not kept up to date by a loop."""

    value: float
    gradient: Array
    violation: float
    bound: float  # the Frank-Wolfe gap
    nearby: float  # the same where no account goes further than the largest is
    scale: float  # the size of the terms that cancel in the gradient
    size: float  # and of those that cancel in the objective, where they are known
    multiplier: Array  # one per group; of nested groups first that of their total


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
    verbose: bool = False
    n_iter: int = 0
    began: float = field(default_factory=time.perf_counter)
    rows: list[Array] = field(default_factory=list)
    strictness: float = 1.0  # the share of `tol` that is aimed at; see `aim_lower`
    least_scale: float = 0.0  # see `start_at`
    first_value: float = 0.0
    next_line: float = field(default_factory=lambda: log.EVERY)  # when the log is due, in seconds

    @property
    def heard(self) -> bool:
        """Whether anybody reads the log."""
        return log.heard(self.verbose)

    @property
    def line_is_due(self) -> bool:
        """Whether it is time for a line in the log."""
        return self.heard and self.elapsed >= self.next_line

    def tell(self, value: float, violation: float) -> None:
        """Write a line into the log."""
        line = f"iteration {self.n_iter}: value {value:.9g}, KKT violation {violation:.2e}"
        log.tell(f"{line}, {self.elapsed:.1f} s", self.verbose)
        self.next_line = self.elapsed + log.EVERY

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self.began

    @property
    def time_left(self) -> float:
        """Seconds until the time limit."""
        return max(self.time_limit - self.elapsed, 0.0)

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

    @kept
    def point(self) -> Any:
        """What the native functions call a point, the gradient apart; it refers to z."""
        layout = self.layout
        weight, pivot = self.objective.kinks or (None, None)
        return _core.Point(
            self.z,
            layout.lower,
            layout.upper,
            weight,
            pivot,
            layout.starts,
            layout.low,
            layout.high,
        )

    @kept
    def choice(self) -> Any:
        """How the native rule is to choose."""
        return self.choice_with(self.plan.alpha)

    def choice_with(self, alpha: float) -> Any:
        """The same with another step size."""
        generator = self.rng.bit_generator.capsule if self.rule.draws else None
        return _core.Choice(self.rule.code, alpha, self.plan.lipschitz, generator)

    def settle(self) -> None:
        """Make the sums of z exact."""
        kinks = self.objective.kinks
        self.layout.settle(self.z, None if kinks is None else kinks[1])

    def look(self) -> Seen:
        """What the problem says of z."""
        return self.seen_at(*value_and_gradient(self.objective, self.z))

    def seen_at(self, value: float, gradient: Array) -> Seen:
        """The same, given value and gradient."""
        return Seen(value, gradient, *_core.certify(self.point, gradient, self._constant_gradient))

    @property
    def _constant_gradient(self) -> Array | None:
        """The part of the gradient that no x changes, where it is known."""
        if self.objective.linear is not None:
            return self.objective.linear
        return getattr(self.objective, "constant_gradient", None)

    def violation_of(self, gradient: Array) -> float:
        """The KKT violation at z, given a gradient."""
        return _core.certify(self.point, gradient)[0]

    def start_at(self, value: float, gradient: Array) -> float:
        """Take the measure of the problem at the start; returns the violation to aim at.

        Tolerances are relative to the terms that cancel in the gradient: |Qx|, |c| and the kinks.
        Of a function that is not quadratic they are not known: the gradient itself stands for
        them, and a small share of what it was elsewhere, for it may be 0 at the optimum. Where all
        terms vanish at the optimum, a millionth of what would have done at the start does.
        """
        scale = _core.scale(self.point, gradient, self._constant_gradient)
        self.least_scale = 1e-6 * scale
        if self.objective.linear is None:
            if value == math.inf:
                raise ValueError(
                    "the objective's value at the start is inf or nan: give x0 inside its domain"
                )
            scale = max(scale, self._scale_elsewhere(gradient))
            self.least_scale = ELSEWHERE * scale
        self.first_value = value
        return self.tol * scale

    def _scale_elsewhere(self, gradient: Array) -> float:
        spread = self.layout.project(np.zeros(self.layout.n))
        if not np.array_equal(spread, self.z):
            with np.errstate(all="ignore"):
                gradient = value_and_gradient(self.objective, spread)[1]
        other = float(np.abs(gradient).max())
        return other if math.isfinite(other) else 0.0

    def tolerance_at(self, seen: Seen) -> float:
        """The violation up to which a point may be called optimal."""
        return self.tol * max(seen.scale, self.least_scale)

    def threshold_at(self, seen: Seen) -> float:
        """The violation to aim at."""
        return self.strictness * self.tolerance_at(seen)

    def is_optimal(self, seen: Seen) -> bool:
        """Whether a point may be called optimal, as far as its derivatives tell."""
        if seen.violation > self.tolerance_at(seen):
            return False
        if seen.nearby <= self._gain_allowed(seen):
            return True
        return seen.violation <= self.rounding_at(seen)

    def is_rounded(self, seen: Seen) -> bool:
        """Whether a point where nothing falls any more is the optimum but for its rounding."""
        return self.tol >= ROUNDING and seen.violation <= self.rounding_at(seen)

    def rounding_at(self, seen: Seen) -> float:
        """The violation that the rounding of z and of what adds up to the gradient may leave.

        Terms may all vanish at the optimum, as those of a portfolio without risk do, or variables
        be so large that their last bits count: the products in ``sum_j Q_ij x_j`` tell.
        """
        products = getattr(self.objective, "products", None)
        least = self.least_scale if products is None else products(self.z)
        # What sums of very many products are off by grows with the root of their number.
        share = max(ROUNDING, np.finfo(float).eps * math.sqrt(self.layout.n))
        return share * max(seen.scale, least)

    def _gain_allowed(self, seen: Seen) -> float:
        size = max(seen.size, abs(seen.value))
        if self.objective.linear is None:
            size = max(size, abs(self.first_value - seen.value))
        # Where x itself vanishes at the optimum, prices and amounts are both what rounding left.
        return max(GAIN * self.tol * size, ROUNDING**2 * abs(self.first_value))

    def aim_lower(self, seen: Seen) -> bool:
        """Aim at a smaller violation, for the one reached allows too much gain; False if too small.

        Only to be asked where the violation aimed at was reached and the point is not optimal.
        """
        if seen.violation > self.tolerance_at(seen):
            return True  # the running gradient was off: the aim is right
        least = 0.1 * self.rounding_at(seen) / self.tolerance_at(seen)
        if self.strictness <= least:
            return False
        share = min(max(0.5 * self._gain_allowed(seen) / seen.nearby, 1e-3), 0.1)
        self.strictness = max(share * self.strictness, least)
        return True

    def stationary(self, remark: str = "", seen: Seen | None = None) -> Outcome:
        """What to call a stationary point: the optimum if the function is convex where we look.

        A stationary point of any other is at best a local minimum. Small quadratics are checked
        whole, larger ones along all pairs and on the face of free accounts; beyond a few thousand
        of those the factorisation would cost too much.
        """
        if remark:
            return Outcome(Status.STALLED, remark, seen)
        convex = self._convexity()
        if convex == _core.Convex.no:
            return Outcome(Status.STALLED, NOT_CONVEX, seen)
        rounded = convex == _core.Convex.but_for_rounding
        return Outcome(Status.OPTIMAL, ROUNDED if rounded else "", seen)

    def endless(self, remark: str) -> Outcome:
        """What to call a point from which the function falls as far as can be seen.

        Some are known to have a minimum: then it is their curvature that cannot be seen.
        """
        if getattr(self.objective, "has_minimum", False):
            return Outcome(Status.STALLED, DROWNED)
        return Outcome(Status.UNBOUNDED, remark)

    def _convexity(self) -> Any:
        hessian, layout = self.objective.hessian, self.layout
        if hessian is None:
            return _core.Convex.yes
        if getattr(self.objective, "least_pair_curvature", 0.0) < -1e-9 and len(layout.totals) == 1:
            return _core.Convex.no
        if layout.n <= 300:
            return _core.convex_along(hessian, None, layout.sharing)
        free = np.flatnonzero((self.z > layout.lower) & (self.z < layout.upper))
        if len(free) > 3000:
            return _core.Convex.yes
        # A face is singular more often than not; only the whole matrix is worth a remark.
        convex = _core.convex_along(hessian, free, layout.sharing)
        return _core.Convex.no if convex == _core.Convex.no else _core.Convex.yes

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
DROWNED = "the curvature is below its rounding, so that the minimum is out of sight"
NO_PROGRESS = "nothing falls any more but by rounding"


@dataclass(frozen=True)
class Outcome:
    """Why a gear stopped, a remark for the message, and z as last seen, if z is still the same."""

    status: Status
    remark: str = ""
    seen: Seen | None = None
