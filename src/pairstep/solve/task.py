"""The task that a solver works on, the optimality test, and the outcome that it returns."""

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
from ..constraints.layout import SUM_ROUNDING
from ..kept import kept
from ..objectives import Objective, rounding_errors, value_and_gradient
from ..objectives.objective import (
    Indices,
    constant_gradient,
    has_minimum,
    is_convex,
    least_pair_curvature,
    lower_bound,
    products,
)
from ..result import History, Progress, Status
from .quadratic_recession import direction_of_fall

Callback = Callable[[Progress], object]

# cpp/core/policy.hpp explains these two: the gain that may remain nearby at an optimal point, in
# units of tol times the objective, and the relative rounding error of a derivative.
GAIN_PER_TOL = _core.NumericalPolicy.gain_per_tol
ROUNDING = _core.NumericalPolicy.gradient_rounding
# Curvature along z, relative to that of the single variables, below which a ray of descent is
# looked for. A larger value costs products with Q; a smaller one may miss a ray because of rounding
# errors.
ZERO_CURVATURE = 1e-10
# The scale of the gradient of a function that is not quadratic counts as at least this fraction of
# the scale at the start, because the gradient may be 0 at the optimum. A larger fraction loosens
# the tolerance of such problems; a smaller one asks for violations that rounding may not allow.
MIN_SCALE_FRACTION = 1e-3
# A gain that rounding errors of the gradient leave possible does not put the optimum in doubt if it
# is at most this many times the rounding error of the value.
MAX_VALUE_ERRORS = 16

# A quadratic is not convex if the curvature of some pair, relative to the largest entry of Q, is
# below minus this number. Smaller negative numbers may be rounding errors.
NEGATIVE_CURVATURE = 1e-9
# Convexity is tested with a Cholesky factorization of the whole Hessian up to this many variables,
# and of the free variables' Hessian up to this many free variables: the cost grows with the cube.
MAX_CHECKED_WHOLE = 300
MAX_FREE_CHECKED = 3000


class Evaluation(NamedTuple):
    """Value, gradient and certificates of a point, computed from the problem."""

    value: float
    gradient: Array
    violation: float
    bound: float  # the Frank-Wolfe gap
    nearby: float  # the gap if no variable may exceed the largest one in size
    scale: float  # the size of the terms that cancel in the gradient
    size: float  # the size of the terms that cancel in the objective, if known
    multiplier: Array  # one per group; for nested groups, that of their total comes first
    residual: float  # effect on f of the distance of the sums from their totals
    excess: float  # the largest violation of a pair minus its own tolerance
    allowed: float  # the tolerance of that pair
    tolerance: float  # the tolerance of the pair with the largest violation
    unshared_residual: float  # the residual without a number that all costs of a sum share
    constant: float = 0.0  # the part of the value that a number shared by all costs contributes
    curvature: float = 0.0  # x'Qx, for a quadratic


@dataclass(kw_only=True)
class Task:
    """A problem in the variables of a layout, with options. Solvers change `z` and `n_iter`."""

    objective: Objective
    layout: Layout
    z: Array
    tol: float
    max_iter: int
    time_limit: float
    callback: Callback | None
    record: bool
    verbose: bool = False
    n_iter: int = 0
    began: float = field(default_factory=time.perf_counter)
    rows: list[Array] = field(default_factory=list)
    strictness: float = 1.0  # fraction of `tol` that the solver aims at; see `aim_lower`
    least_scale: float = 0.0  # see `start_at`
    first_value: float = 0.0
    last_evaluation: tuple[Array, Evaluation] | None = (
        None  # with its z; only if there is a time limit
    )
    first_largest: float = 0.0  # largest variable at the start; all may be 0 at the optimum
    next_line: float = field(default_factory=lambda: log.SECONDS_BETWEEN_LINES)  # in seconds

    @property
    def logs(self) -> bool:
        """Whether log lines are printed or logged."""
        return log.is_enabled(self.verbose)

    @property
    def line_is_due(self) -> bool:
        """Whether a log line is due."""
        return self.logs and self.elapsed >= self.next_line

    def log_line(self, value: float, violation: float) -> None:
        """Write a log line."""
        line = f"iteration {self.n_iter}: value {value:.9g}, KKT violation {violation:.2e}"
        log.write(f"{line}, {self.elapsed:.1f} s", self.verbose)
        self.next_line = self.elapsed + log.SECONDS_BETWEEN_LINES

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self.began

    @property
    def time_left(self) -> float:
        """Seconds until the time limit."""
        return max(self.time_limit - self.elapsed, 0.0)

    @kept
    def point(self) -> Any:
        """The native view of z, bounds and L1 terms; it refers to z."""
        layout = self.layout
        weight, breakpoint = self.objective.l1_terms or (None, None)
        return _core.Point(
            self.z,
            layout.lower,
            layout.upper,
            weight,
            breakpoint,
            layout.starts,
            layout.low,
            layout.high,
        )

    def restore_sums(self) -> None:
        """Make the sums of z exact, in place."""
        l1_terms = self.objective.l1_terms
        self.layout.restore_sums(self.z, None if l1_terms is None else l1_terms[1])

    def evaluate(self) -> Evaluation:
        """Compute value, gradient and certificates at z."""
        return self.evaluation_from(*value_and_gradient(self.objective, self.z))

    def evaluation_from(self, value: float, gradient: Array) -> Evaluation:
        """Compute the certificates at z, given value and gradient."""
        objective, totals = self.objective, self.layout.totals
        if objective.linear is None:
            known = constant_gradient(objective)
            certificate = _core.certify(self.point, gradient, known, totals)
            violation, _, _, scale, *_ = certificate
            tolerance = self.tol * max(scale, self.least_scale)
            excess = violation - tolerance, tolerance, tolerance
            current = Evaluation(value, gradient, *certificate, *excess, certificate[-1])
        else:
            certificates = _core.certify_quadratic(
                self.point, gradient, objective.linear, objective.lipschitz, totals, self.tol
            )
            current = Evaluation(value, gradient, *certificates)
        if self.time_limit < math.inf:
            self.last_evaluation = self.z.copy(), current
        return current

    def out_of_time(self) -> Outcome:
        """Return the outcome if the time limit interrupts a gradient.

        It is the last point whose gradient is known, or the start with unknown certificates.
        """
        layout = self.layout
        if self.last_evaluation is not None:
            remark = ""
            self.z[:], current = self.last_evaluation
        else:
            remark = "before the first gradient was known"
            n_sums = len(layout.starts) - 1 + layout.nested
            gradient, multiplier = np.full(layout.n, math.nan), np.full(n_sums, math.nan)
            current = Evaluation(
                value=math.nan, gradient=gradient, violation=math.inf, bound=math.inf,
                nearby=math.inf, scale=0.0, size=0.0, multiplier=multiplier, residual=0.0,
                excess=math.inf, allowed=0.0, tolerance=0.0, unshared_residual=0.0,
            )  # fmt: skip
        if self.record and not self.rows:
            interior = int(((self.z > layout.lower) & (self.z < layout.upper)).sum())
            row = current.value, current.violation, 0, interior, self.elapsed
            self.rows.append(np.array([row]))
        return Outcome(Status.TIME_LIMIT, remark, current)

    def _terms(self, gradient: Array) -> Array:
        """Return the size of the terms that cancel in each derivative of a quadratic."""
        linear, l1_terms = self.objective.linear, self.objective.l1_terms
        assert linear is not None
        terms = np.maximum(np.abs(gradient - linear), np.abs(linear))
        if l1_terms is not None:
            terms = np.maximum(terms, l1_terms[0])
        if self.objective.lipschitz is None:
            return terms
        # The term Q_ii x_i may cancel with those of other variables, too.
        own = self.objective.lipschitz * np.abs(self.z)
        return np.asarray(np.maximum(terms, np.minimum(own, terms.max())))

    def violation_of(self, gradient: Array) -> float:
        """Return the KKT violation at z, given a gradient."""
        return _core.certify(self.point, gradient)[0]

    def start_at(self, value: float, gradient: Array) -> float:
        """Record the scale of the problem at the start; return the violation to aim at.

        The tolerance of a quadratic is relative to the terms that cancel in each derivative: |Qx|,
        |c| and the L1 weight. For other functions these terms are unknown. The largest derivative
        is used instead, and at least `MIN_SCALE_FRACTION` of the largest derivative at the start
        and at the even spread of the total, because the gradient may be 0 at the optimum.
        """
        self.first_value, self.first_largest = value, _core.largest_size(self.z)
        known = constant_gradient(self.objective)
        scale = _core.scale(self.point, gradient, known)
        if self.objective.linear is None:
            if value == math.inf:
                raise ValueError(
                    "the objective's value at the start is inf or nan: give x0 inside its domain"
                )
            if self.time_limit < math.inf:  # the limit may interrupt the next gradient
                self.evaluation_from(value, gradient)
            scale = max(scale, self._scale_elsewhere(gradient))
            self.least_scale = MIN_SCALE_FRACTION * scale
            return self.tol * scale
        return self._threshold(scale, gradient)

    def _scale_elsewhere(self, gradient: Array) -> float:
        """Return the largest derivative at the even spread of the total; 0 if it is not finite."""
        spread = self.layout.project(np.zeros(self.layout.n))
        if not np.array_equal(spread, self.z):
            with np.errstate(all="ignore"):
                gradient = value_and_gradient(self.objective, spread)[1]
        other = float(np.abs(gradient).max())
        return other if math.isfinite(other) else 0.0

    def threshold_at(self, current: Evaluation) -> float:
        """Return the violation to aim at, not below the rounding error of the gradient."""
        return self._threshold(current.scale, current.gradient)

    def _threshold(self, scale: float, gradient: Array) -> float:
        aim = self.strictness * self.tol * max(scale, self.least_scale)
        if aim < self._largest_rounding(scale):
            return max(aim, self._least_aim(scale, gradient))
        return aim

    def is_optimal(self, current: Evaluation) -> bool:
        """Return whether a point is optimal, judging by its derivatives."""
        if current.excess > 0 or not self._sums_are_exact_enough(current):
            return False
        return current.nearby <= self.gain_allowed(current) or self._is_within_rounding(current)

    def is_rounded(self, current: Evaluation) -> bool:
        """Return whether a point where progress stopped is optimal up to rounding errors."""
        if self.tol < ROUNDING or not self._sums_are_exact_enough(current):
            return False
        return self._is_within_rounding(current) or self._is_within_last_bits(current)

    def tolerance_at(self, current: Evaluation) -> float:
        """Return the tolerance to report, below the violation if and only if z is not optimal."""
        if current.excess <= 0:
            return current.tolerance
        if self.is_rounded(current):
            return _core.excess(self.point, current.gradient, self._last_bits(current))[2]
        return min(current.allowed, current.tolerance)

    def _rounding(self, scale: float, gradient: Array) -> Array:
        """Return a bound on the rounding error of each derivative.

        The terms of a derivative may all vanish at the optimum, as for a riskless portfolio, or
        variables may be so large that their last bits matter. So the products in ``sum_j Q_ij x_j``
        are used as well.
        """
        # The rounding error of a sum of n products grows with the square root of n.
        relative_error = 0.5 * max(ROUNDING, np.finfo(float).eps * math.sqrt(self.layout.n))
        if self.objective.linear is None:
            least, errors = self.least_scale, rounding_errors(self.objective, self.z)
            if errors is not None:  # known errors replace `least_scale`
                least = min(least, float(errors[1].max()) / relative_error)
            return np.full(self.layout.n, relative_error * max(scale, least))
        terms = self._terms(gradient)
        sizes = products(self.objective, self.z)
        return relative_error * (terms if sizes is None else np.maximum(terms, sizes))

    def _largest_rounding(self, scale: float) -> float:
        """Return a cheap upper bound on the rounding error, by the Cauchy-Schwarz inequality."""
        constants = self.objective.lipschitz
        if self.objective.linear is None or constants is None:
            return 0.0
        # The scale leaves out what all costs share, which is rounded like the rest.
        costs = _core.largest_size(self.objective.linear)
        return 10 * ROUNDING * max(scale, costs, _core.largest_product(constants, self.z))

    def _least_aim(self, scale: float, gradient: Array) -> float:
        """Return the smallest violation that rounding errors allow to aim at."""
        return 0.3 * _core.excess(self.point, gradient, self._rounding(scale, gradient))[1]

    def _least_aim_below(self, aim: float, current: Evaluation) -> float:
        """Return `_least_aim`, or 0 if a cheap bound shows that it is below `aim`."""
        if 0 < self._largest_rounding(current.scale) < aim:
            return 0.0
        return self._least_aim(current.scale, current.gradient)

    def _is_within_rounding(self, current: Evaluation) -> bool:
        rounding = self._rounding(current.scale, current.gradient)
        return _core.excess(self.point, current.gradient, rounding)[0] <= 0

    def _is_within_last_bits(self, current: Evaluation) -> bool:
        """Return whether the last bits of the largest variable can explain the violation.

        The remaining gain must also be at most `_least_cost`.
        """
        excess = _core.excess(self.point, current.gradient, self._last_bits(current))[0]
        return excess <= 0 and current.nearby <= self._least_cost

    def _last_bits(self, current: Evaluation) -> Array:
        """Return the effect of the last bits of the largest variable on each derivative.

        A sum is exact only up to these bits. So variables that vanish at the optimum, such as risky
        assets if there is a riskless one, may keep values of that size.
        """
        rounding = self._rounding(current.scale, current.gradient)
        constants = self.objective.lipschitz
        if self.objective.linear is None or constants is None:
            return rounding
        return rounding + np.finfo(float).eps * self._largest * np.abs(constants)

    def _sums_are_exact_enough(self, current: Evaluation) -> bool:
        """Return whether the rounding errors of the sums are small relative to the objective."""
        residual = current.unshared_residual
        return residual <= self.gain_allowed(current) or residual <= self._least_cost

    @property
    def _largest(self) -> float:
        return max(_core.largest_size(self.z), self.first_largest)

    @property
    def _least_cost(self) -> float:
        """Rounding error of the smallest positive term ``Q_ii x^2`` for the largest variable x."""
        constants = self.objective.lipschitz
        if self.objective.linear is None or constants is None or not constants.max() > 0:
            return 0.0
        return ROUNDING * float(constants[constants > 0].min()) * (self._largest * self._largest)

    def with_rounding(self, current: Evaluation) -> tuple[float, str]:
        """Return the bound on ``f(x) - f*`` with rounding errors, and a remark if they leave doubt.

        Each derivative may be wrong by the error of the gradient, in either direction. This is as
        if each variable had a concave L1 term at its value. There is no doubt if, even with these
        errors, little can be gained nearby, or hardly more than the rounding error of the value.
        """
        errors = rounding_errors(self.objective, self.z)
        if errors is None:
            return current.bound, ""
        value_error, error = errors
        known = max(current.value - lower_bound(self.objective), 0.0) + value_error
        if not (math.isfinite(value_error) and np.isfinite(error).all()):
            return (math.inf if math.isnan(known) else known), INEXACT.format(math.inf)
        z, layout, gradient, l1 = self.z, self.layout, current.gradient, -error
        if self.objective.l1_terms is not None:
            # A breakpoint that z is not at only reduces the gain beyond it, so it is ignored.
            weight, breakpoint = self.objective.l1_terms
            at_breakpoint = np.abs(z - breakpoint) <= SUM_ROUNDING * float(np.abs(z).max())
            gradient = gradient + np.where(at_breakpoint, 0.0, np.sign(z - breakpoint) * weight)
            l1 = np.where(at_breakpoint, weight, 0.0) - error
        point = _core.Point(
            z, layout.lower, layout.upper, l1, z, layout.starts, layout.low, layout.high
        )
        _, bound, nearby, *_ = _core.certify(point, gradient)
        doubt = nearby > max(
            current.nearby, self.gain_allowed(current), MAX_VALUE_ERRORS * value_error
        )
        bound += current.residual + value_error
        return min(bound, known), INEXACT.format(nearby) if doubt else ""

    def gain_allowed(self, current: Evaluation) -> float:
        """Return the gain that may remain nearby at a point that is called optimal."""
        if self.objective.linear is None:
            size = max(current.size, abs(current.value), abs(self.first_value - current.value))
        else:
            size = max(current.size, abs(current.value - current.constant))
        # If x is 0 at the optimum, derivatives and variables are both rounding errors.
        return max(GAIN_PER_TOL * self.tol * size, ROUNDING**2 * abs(self.first_value))

    def aim_lower(self, current: Evaluation) -> bool:
        """Aim at a smaller violation than the one reached; return False if that is not possible.

        The violation that was aimed at is not small enough if the variables with the largest excess
        have smaller terms than others, and so a smaller tolerance, or if too much gain remains.
        """
        aimed = self.threshold_at(current)
        if aimed <= self._least_aim_below(aimed, current):
            return not self._is_within_rounding(current)
        if current.nearby == 0 and current.excess <= 0:
            return False  # no smaller violation makes the sums more exact
        if current.violation > aimed:
            return True  # the updated gradient was inaccurate: keep the aim
        if current.excess > 0:
            wanted = 0.5 * min(aimed, current.allowed)
        else:
            wanted = aimed * min(max(0.5 * self.gain_allowed(current) / current.nearby, 1e-3), 0.1)
        self.strictness *= max(wanted, self._least_aim_below(wanted, current)) / aimed
        return True

    def stationary(self, remark: str = "", current: Evaluation | None = None) -> Outcome:
        """Return the outcome at a stationary point: optimal if the function is convex.

        A stationary point of other functions is at best a local minimum. Small quadratics are
        checked as a whole, larger ones along all pairs and on the free variables. With more than
        `MAX_FREE_CHECKED` of them the factorization would cost too much.
        """
        if remark:
            return Outcome(Status.STALLED, remark, current)
        convex = self._convexity()
        if convex == _core.Convex.no:
            return Outcome(Status.STALLED, NOT_CONVEX, current)
        rounded = convex == _core.Convex.but_for_rounding
        return Outcome(Status.OPTIMAL, ROUNDED if rounded else "", current)

    def unbounded(self, remark: str, ray: tuple[Indices, Array] | None = None) -> Outcome:
        """Return the outcome if the function seems to fall without bound along a ray.

        It is unbounded only if that is verified. Otherwise the curvature is hidden by rounding
        errors.
        """
        if self.objective.linear is None:  # `recession.review` decides later
            return Outcome(Status.UNBOUNDED, remark)
        direction = self.z
        if ray is not None:
            direction = np.zeros(self.layout.n)
            direction[ray[0]] = ray[1]
        found = self.direction_of_fall(direction)
        if found is not None:
            return Outcome(Status.UNBOUNDED, remark, direction=found)
        return Outcome(Status.STALLED, remark or HIDDEN_CURVATURE)

    def direction_of_fall(self, ray: Array) -> Array | None:
        """Return the direction of the ray, if a quadratic provably falls without bound along it."""
        if has_minimum(self.objective):
            return None
        return direction_of_fall(self.objective, self.layout, self.z, ray)

    def ray_of_descent(self, current: Evaluation) -> Array | None:
        """Return the direction of z, if a quadratic falls without bound along it.

        A product with Q is needed only if the curvature along z is nearly 0.
        """
        linear, constants = self.objective.linear, self.objective.lipschitz
        if linear is None or constants is None or has_minimum(self.objective):
            return None
        flat = abs(current.curvature) <= ZERO_CURVATURE * _core.dot(
            np.abs(constants) * self.z, self.z
        )
        if not flat or (
            np.isfinite(self.layout.lower).all() and np.isfinite(self.layout.upper).all()
        ):
            return None
        return self.direction_of_fall(self.z)

    def _convexity(self) -> Any:
        hessian, layout = self.objective.hessian, self.layout
        if hessian is None or is_convex(self.objective):
            return _core.Convex.yes
        if least_pair_curvature(self.objective) < -NEGATIVE_CURVATURE and len(layout.totals) == 1:
            return _core.Convex.no
        if layout.n <= MAX_CHECKED_WHOLE:
            return _core.convex_along(hessian, None, layout.sharing)
        free = np.flatnonzero((self.z > layout.lower) & (self.z < layout.upper))
        if len(free) > MAX_FREE_CHECKED:
            return _core.Convex.yes
        # The Hessian of the free variables is often singular, so do not report `but_for_rounding`.
        convex = _core.convex_along(hessian, free, layout.sharing)
        return _core.Convex.no if convex == _core.Convex.no else _core.Convex.yes

    def stopped_by_callback(self, value: float, violation: float) -> bool:
        """Call the callback, if there is one; return whether it asks to stop."""
        if self.callback is None:
            return False
        x = self.layout.from_layout(self.z)
        return bool(self.callback(Progress(self.n_iter, value, violation, x, self.elapsed)))

    def history(self) -> History | None:
        """Return the recorded rows as columns."""
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
ROUNDED = "the Hessian is indefinite only within rounding error; treated as semidefinite"
HIDDEN_CURVATURE = "the curvature is below its rounding error, so the minimum cannot be located"
INEXACT = "with rounding errors of the gradient, f(x) - f* may be as large as {:.1e}"
OUT_OF_RANGE = "variables exceed 1e100 in size, beyond which sums are not exact"
NO_PROGRESS = "no further progress above rounding error"


@dataclass(frozen=True)
class Outcome:
    """Why a solver stopped, a remark for the message, and the evaluation of z if it is known."""

    status: Status
    remark: str = ""
    evaluation: Evaluation | None = None
    direction: Array | None = None  # a ray along which f falls without bound, if known
