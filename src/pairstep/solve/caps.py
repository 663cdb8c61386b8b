"""Caps on turnover, tracking error and risk: one multiplier each.

The Lagrangian of a quadratic objective with these caps is

    w/2 x'Qx + c'x + sum_i k_i |x_i - p_i| + r/2 x'Qx + e/2 (x - b)'Q(x - b) + s sum_i |x_i - p_i|

with the multipliers r (risk), e (tracking error) and s (turnover), and w = 1, or 0 if the objective
is linear. Divided by its curvature w + r + e = 1/a, it has the Hessian Q, the linear term
``a c - a e Qb`` and L1 weights ``a (k + s)``. While one multiplier changes, these move along a
straight line, so the parametric solver follows the solution from corner to corner and stops exactly
where the cap is reached. If several caps are active, all but one multiplier are found by Brent's
method, around the exact path of that one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .._validation import LARGE, Array, finite_number, numbers_for_message, vector
from ..constraints import SumBox
from ..constraints.groups import per_group
from ..labels import Axis, aligned
from ..objectives import FactorModel, L1Penalized, Quadratic, Slopes
from ..result import Result, Status
from .minimize import X0_SLACK, minimize
from .parametric import ARRIVED, CAPPED, Curvature, ParametricProblem, rows_of
from .rows import MAX_GAP, changed, verified

VARIANCE, DISTANCE = 1, 2  # Cap::Measure
# Difference of a turnover from its limit, relative to the holdings, that is only rounding.
ROUNDING = 1e-13
# Distance of a measure beyond its limit, relative to its terms, that is rounding error.
CAP_ROUNDING = 1e-10
# Multipliers, in units of the objective's derivatives, at which caps that are still violated count
# as contradicting each other.
MAX_MULTIPLIER = 1e12
# Least multiple of Q that a linear objective gets while its multipliers are being found, relative
# to the multiple at which both have about the same weight.
LEAST_CURVATURE = 1e-9


@dataclass(frozen=True)
class Cap:
    """A cap: its name, the point it measures from, and its limit."""

    name: str
    point: Array
    limit: float

    @property
    def is_risk(self) -> bool:
        """Whether it limits a standard deviation."""
        return self.name != "turnover"


def read_caps(
    variables: Axis,
    n: int,
    constraint: SumBox,
    turnover: tuple[ArrayLike, float] | None,
    tracking_error: tuple[ArrayLike, float] | None,
    max_risk: float | None,
) -> list[Cap]:
    """Check the arguments of the caps; those of risk come first."""
    caps = []
    if max_risk is not None:
        caps.append(Cap("max_risk", np.zeros(n), _limit("max_risk", max_risk, positive=True)))
    if tracking_error is not None:
        benchmark, limit = _pair("tracking_error", tracking_error, "benchmark", variables, n)
        _require_total(constraint, benchmark)
        limit = _limit("the limit of tracking_error", limit, positive=True)
        caps.append(Cap("tracking_error", benchmark, limit))
    if turnover is not None:
        before, limit = _pair("turnover", turnover, "x_before", variables, n)
        caps.append(Cap("turnover", before, _limit("the limit of turnover", limit, positive=False)))
    return caps


def _pair(name: str, value: Any, first: str, variables: Axis, n: int) -> tuple[Array, Any]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"{name} must be a pair ({first}, limit), got {value!r}")
    point = vector(f"{name}[0]", aligned(f"{name}[0]", value[0], variables), n, limit=LARGE)
    return np.ascontiguousarray(point), value[1]


def _limit(name: str, value: Any, positive: bool) -> float:
    number = finite_number(name, value)
    if number < 0 or (positive and number == 0):
        raise ValueError(
            f"{name} must be {'positive' if positive else 'at least 0'}, got {number:g}"
        )
    return number


def _require_total(constraint: SumBox, benchmark: Array) -> None:
    """Raise if a benchmark does not satisfy the sum, which is probably a mistake."""
    total = constraint.total
    if total is None or per_group(total):
        return
    low, high = total if isinstance(total, tuple) else (total, total)
    a = 1.0 if constraint.coefficients is None else np.asarray(constraint.coefficients)
    found = float((a * benchmark).sum())
    slack = X0_SLACK * max(float(np.abs(a * benchmark).sum()), abs(low), 1e-300)
    if not low - slack <= found <= high + slack:
        wanted, has = numbers_for_message(low if found < low else high, found)
        raise ValueError(
            f"the benchmark of tracking_error sums to {has}, but total = {wanted}: scale it to the "
            "total"
        )


def min_return_row(
    constraint: SumBox, variables: Axis, n: int, min_return: tuple[ArrayLike, float]
) -> SumBox:
    """Return the constraint with a row for the least return, which comes last."""
    mean, limit = _pair("min_return", min_return, "mean", variables, n)
    limit = finite_number("the limit of min_return", limit)
    rows = rows_of(constraint, n).with_row(mean, limit, math.inf, "min_return")
    return constraint.with_rows(rows)


def solve_with_caps(
    Q: Any,
    c: ArrayLike | None,
    covariance: Any,
    l1: Slopes | None,
    center: ArrayLike,
    build_constraint: Callable[[Axis], SumBox],
    caps: dict[str, Any],
    options: dict[str, Any],
) -> Result:
    """Solve a quadratic program with caps; see `solve_qp`."""
    began = time.perf_counter()
    if covariance is not None and Q is not None:
        raise ValueError(
            "give Q or covariance, not both: covariance is the matrix of max_risk and "
            "tracking_error if the objective c'x is linear; otherwise they use Q"
        )
    matrix = Q if covariance is None else covariance
    if matrix is None:
        raise ValueError("give Q, or covariance if the objective is linear")
    if isinstance(matrix, tuple):
        if len(matrix) != 2:
            raise ValueError(f"Q as factors must be a pair (F, D), got {len(matrix)} items")
        quadratic: Any = FactorModel(*matrix, c)
    else:
        quadratic = Quadratic(matrix, c)
    n, variables = quadratic.n, Axis.of(quadratic)
    constraint = build_constraint(variables)
    min_return = caps["min_return"]
    found = read_caps(
        variables, n, constraint, caps["turnover"], caps["tracking_error"], caps["max_risk"]
    )
    if min_return is not None:
        constraint = min_return_row(constraint, variables, n, min_return)
    if Q is None and not any(cap.is_risk for cap in found):
        raise ValueError(
            "a linear objective needs max_risk or tracking_error; give Q for other problems"
        )
    objective = quadratic if l1 is None else L1Penalized(quadratic, l1, center)
    if found:
        problem = _Capped(objective, quadratic, Q is not None, constraint, found, options, began)
        result = problem.solve()
    else:
        result = minimize(objective, constraint, **options)
    if min_return is not None:
        multipliers = dict(result.row_multipliers or {})
        last = list(multipliers)[-1]
        of_caps = {**(result.cap_multipliers or {}), "min_return": multipliers.pop(last)}
        result = changed(result, row_multipliers=multipliers or None, cap_multipliers=of_caps)
    return changed(result, variables=variables, solve_time=time.perf_counter() - began)


class _Capped:
    """A problem with caps, and the native solver at the solution of its current multipliers."""

    def __init__(
        self,
        objective: Any,
        quadratic: Any,
        has_curvature: bool,
        constraint: SumBox,
        caps: list[Cap],
        options: dict[str, Any],
        began: float,
    ):
        self.objective, self.quadratic, self.constraint = objective, quadratic, constraint
        self.caps, self.options, self.began = caps, options, began
        self.own_weight = 1.0 if has_curvature else 0.0
        n = quadratic.n
        self.curvature = Curvature.of(quadratic)
        self.c = np.ascontiguousarray(objective.linear, float)  # with the tilt of asymmetric costs
        self.k, self.center = self._l1_terms(n)
        plain = quadratic.with_linear(np.zeros(n))
        self.products = {cap.name: plain.gradient(cap.point) for cap in caps if cap.is_risk}
        self.multipliers = {cap.name: 0.0 for cap in caps}
        largest = float(np.abs(self.c).max()) or 1.0
        balance = largest / (float(quadratic.lipschitz.max()) or 1.0)
        self.least_weight = 0.0 if has_curvature else LEAST_CURVATURE * balance
        # A linear objective starts where only its first cap on risk counts.
        self.terms = self._current_terms() if has_curvature else self._terms_of(caps[0])
        self.problem, self.solver = self._first_solution()
        # Native solvers to start from: at the first solution, and where only one cap counts.
        self.starts = {"": (self.solver.copy(), self.terms)}

    def _l1_terms(self, n: int) -> tuple[Array, Array | None]:
        """Return the weights of the costs, and the center that costs and turnover share."""
        own = self.objective.l1_terms
        weight = np.zeros(n) if own is None else np.broadcast_to(own[0], n).astype(float)
        center = None if own is None else np.broadcast_to(own[1], n).astype(float)
        for cap in self.caps:
            if cap.is_risk:
                continue
            if center is None:
                center = cap.point
            apart = (weight > 0) & (center != cap.point)
            if apart.any():
                i = int(np.argmax(apart))
                places = numbers_for_message(center[i], cap.point[i])
                raise ValueError(
                    "turnover and the costs l1 must start from the same holdings, but "
                    f"center[{i}] = {places[0]} and turnover[0][{i}] = {places[1]}"
                )
            center = cap.point
        return weight, None if center is None else np.ascontiguousarray(center)

    @property
    def curvature_weight(self) -> float:
        """The multiple of Q in the Lagrangian."""
        risk = sum(self.multipliers[cap.name] for cap in self.caps if cap.is_risk)
        return max(self.own_weight + risk, self.least_weight)

    def _current_terms(self) -> tuple[Array, Array]:
        """Return the linear term and the L1 weights of the normalized problem."""
        weight, linear = self.curvature_weight, self.c.copy()
        for cap in self.caps:
            if cap.is_risk:
                linear -= self.multipliers[cap.name] * self.products[cap.name]
        return linear / weight, (self.k + self.multipliers.get("turnover", 0.0)) / weight

    def _terms_of(self, cap: Cap) -> tuple[Array, Array]:
        """Return the same where only one cap on risk counts: its multiplier is infinite."""
        return -self.products[cap.name], np.zeros(len(self.c))

    def _first_solution(self) -> tuple[ParametricProblem, Any]:
        linear, l1 = self.terms
        objective = self.quadratic.with_linear(linear)
        if self.center is not None:
            objective = L1Penalized(objective, l1, self.center)
        relaxed = minimize(
            objective, self.constraint.without_rows(), tol=self.options["tol"],
            max_iter=self.options["max_iter"], time_limit=self.options["time_limit"],
        )  # fmt: skip
        l1_terms = None if self.center is None else (l1, self.center)
        problem = ParametricProblem(self.curvature, linear, l1_terms, self.constraint)
        found = problem.solve(relaxed.x, self._seconds())
        return problem, self._give_up() if found is None else found.solver

    def _seconds(self) -> float:
        limit = self.options["time_limit"]
        return math.inf if limit is None else max(limit - (time.perf_counter() - self.began), 0.0)

    def _give_up(self) -> Any:
        if self._seconds() <= 0:
            limit = self.options["time_limit"]
            raise TimeoutError(
                f"no portfolio within the caps was found after time_limit = {limit:g} seconds: "
                "raise time_limit"
            )
        raise RuntimeError("the parametric solver stopped without a solution; report this problem")

    def solve(self) -> Result:
        """Find the multipliers, and verify the solution as a minimum of the Lagrangian."""
        if self.own_weight == 0:
            result = self._linear_program()
            if result is not None:
                return result
        on_risk = [cap for cap in self.caps if cap.is_risk]
        on_turnover = [cap for cap in self.caps if not cap.is_risk]
        self._enforce(on_risk)
        if any(self.measure(cap, self.solver.x) > cap.limit for cap in on_turnover):
            self._enforce([*on_turnover, *on_risk])
        lagrangian = self.quadratic.with_linear(self.terms[0])  # divided by the weight of Q
        if self.center is not None:
            lagrangian = L1Penalized(lagrangian, self.terms[1], self.center)
        rows = self.problem.of_rows(self.solver.multipliers)
        checked = verified(lagrangian, self.constraint, self.solver.x, rows, self.options["tol"])
        weight = self.curvature_weight
        return self._report(checked, weight, weight * self.terms[1])

    def _report(self, checked: Result, weight: float, l1: Array) -> Result:
        """Return the result of the problem, given that of its Lagrangian divided by `weight`."""
        x = checked.x
        gap, gaps = 0.0, []
        for cap in self.caps:
            value, multiplier = self.measure(cap, x), self.multipliers[cap.name]
            missing = 0.5 * (cap.limit**2 - value**2) if cap.is_risk else cap.limit - value
            gap += abs(multiplier * missing)
            if value > cap.limit + CAP_ROUNDING * max(cap.limit, self._size(cap)):
                gaps.append(f"{cap.name} is {value:.17g}, but its limit is {cap.limit:.17g}")
        value = self.value(x)
        status, remark = checked.status, checked.remark
        size = max(abs(value), abs(float(self.c @ x)), abs(weight * checked.fun))
        if status == Status.OPTIMAL and gaps:
            status, remark = Status.STALLED, gaps[0]
        if status == Status.OPTIMAL and gap > MAX_GAP * size:
            status, remark = Status.STALLED, "caps with multipliers are not at their limits"
        gradient = self.own_weight * (self.quadratic.gradient(x) - self.quadratic.linear) + self.c
        groups, by_row = checked.group_multipliers, checked.row_multipliers
        return replace(
            checked, fun=value, status=status, remark=remark, gradient=gradient,
            kkt_violation=weight * checked.kkt_violation, tolerance=weight * checked.tolerance,
            suboptimality_bound=weight * checked.suboptimality_bound + gap,
            sum_multiplier=weight * checked.sum_multiplier,
            group_multipliers=groups and {k: weight * v for k, v in groups.items()},
            row_multipliers=by_row and {k: weight * v for k, v in by_row.items()},
            pull=gradient - weight * (checked.gradient - checked.pull),
            l1_terms=None if self.center is None else (l1, self.center),
            cap_multipliers=self._reported(), n_iter=self.solver.changes,
        )  # fmt: skip

    def _linear_program(self) -> Result | None:
        """Return the solution of a linear objective if no cap on risk is active, or else None.

        A linear program has jumps where the parametric solver needs curvature, so HiGHS solves it.
        Variables are x and, with costs or a cap on turnover, the distances from the center.
        """
        n, problem = len(self.c), self.problem
        matrix, low, high = problem.matrix, problem.low, problem.high
        on_turnover = [cap for cap in self.caps if not cap.is_risk]
        costs, bounds = self.c, [problem.lower, problem.upper]
        if self.center is not None:
            eye = np.eye(n)
            beyond = np.block([[eye, -eye], [-eye, -eye]])  # x - p <= d and p - x <= d
            limit = on_turnover[0].limit if on_turnover else math.inf
            matrix = np.vstack([
                np.hstack([matrix, np.zeros((len(matrix), n))]), beyond,
                np.r_[np.zeros(n), np.ones(n)],
            ])  # fmt: skip
            low = np.r_[low, np.full(2 * n + 1, -math.inf)]
            high = np.r_[high, self.center, -self.center, limit]
            costs = np.r_[self.c, self.k]
            bounds = [np.r_[bounds[0], np.zeros(n)], np.r_[bounds[1], np.full(n, math.inf)]]
        equal, below, above = low == high, np.isfinite(high), np.isfinite(low)
        below, above = below & ~equal, above & ~equal
        found = scipy.optimize.linprog(
            costs, A_ub=np.vstack([matrix[below], -matrix[above]]),
            b_ub=np.r_[high[below], -low[above]], A_eq=matrix[equal], b_eq=low[equal],
            bounds=np.stack(bounds, axis=1), method="highs",
        )  # fmt: skip
        if found.x is None:
            return None  # unbounded, or infeasible: the path names the reason
        x = np.clip(found.x[:n], problem.lower, problem.upper)
        if self.center is not None:
            near = np.abs(x - self.center) <= ROUNDING * float(np.abs(x).max())
            x = np.where(near, self.center, x)
        if any(self.measure(cap, x) > cap.limit for cap in self.caps if cap.is_risk):
            return None
        multipliers = np.zeros(len(matrix))
        multipliers[equal] = found.eqlin.marginals
        of_upper, of_lower = np.split(found.ineqlin.marginals, [int(below.sum())])
        multipliers[below] += of_upper
        multipliers[above] -= of_lower
        for cap in on_turnover:
            self.multipliers[cap.name] = -float(multipliers[-1])
        lagrangian: Any = FactorModel(np.zeros((1, n)), 0.0, self.c)
        l1 = self.k + self.multipliers.get("turnover", 0.0)
        if self.center is not None:
            lagrangian = L1Penalized(lagrangian, l1, self.center)
        of_rows = multipliers[problem.n_sums : len(problem.matrix)]
        checked = verified(lagrangian, self.constraint, x, of_rows, self.options["tol"])
        return self._report(checked, 1.0, l1)

    def _reported(self) -> dict[str, float]:
        """Return the derivative of the optimal value with respect to each limit."""
        return {
            cap.name: -self.multipliers[cap.name] * (cap.limit if cap.is_risk else 1.0) + 0.0
            for cap in self.caps
        }

    def value(self, x: Array) -> float:
        """Return the objective."""
        own = float((self.quadratic.gradient(x) - self.quadratic.linear) @ x)
        found = 0.5 * self.own_weight * own + float(self.c @ x)
        if self.objective is not self.quadratic:
            # `c` contains the tilt, so the L1 terms are those with equal slopes.
            weight, center = self.objective.l1_terms
            tilt = float((self.objective._tilt * center).sum())
            found += float((weight * np.abs(x - center)).sum()) - tilt
        return found

    def measure(self, cap: Cap, x: Array) -> float:
        """Return what a cap limits: a standard deviation, or the turnover."""
        apart = x - cap.point
        if not cap.is_risk:
            return float(np.abs(apart).sum())
        return math.sqrt(max(float(self.curvature.square(apart[None])[0]), 0.0))

    def _size(self, cap: Cap) -> float:
        """Return the size of the terms of a measure."""
        if not cap.is_risk:
            return float(np.abs(cap.point).sum())
        return math.sqrt(float(self.quadratic.lipschitz.max())) * float(np.abs(cap.point).sum())

    def _enforce(self, caps: list[Cap]) -> None:
        """Set the multipliers of caps, given those of the others: the first by an exact path."""
        if not caps:
            return
        *inner, cap = caps
        if not inner:
            (self._follow_risk if cap.is_risk else self._follow_turnover)(cap)
            return

        def excess(multiplier: float) -> float:
            self.multipliers[cap.name] = multiplier
            self._enforce(inner)
            return self.measure(cap, self.solver.x) - cap.limit

        if excess(0.0) <= 0:
            return
        low, high = 0.0, self._scale(cap)
        while excess(high) > 0:
            low, high = high, 4 * high
            if high > MAX_MULTIPLIER * self._scale(cap):
                others = ", ".join(f"{other.name} at most {other.limit:.9g}" for other in inner)
                least = self.measure(cap, self.solver.x)
                raise ValueError(
                    f"the caps contradict each other: with {others}, {cap.name} is at least "
                    f"{least:.9g}, above its limit {cap.limit:.9g}"
                )
        found = scipy.optimize.brentq(excess, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps)
        excess(found)

    def _scale(self, cap: Cap) -> float:
        """Return the size of a multiplier at which a cap is about as important as the objective."""
        if cap.is_risk:
            return 1.0
        product = self.quadratic.gradient(self.solver.x) - self.quadratic.linear
        return float(np.abs(self.c).max() + np.abs(product).max()) or 1.0

    def _move_to(self, terms: tuple[Array, Array]) -> None:
        linear, l1 = (there - here for there, here in zip(terms, self.terms, strict=True))
        if linear.any() or l1.any():
            status, *_ = self.solver.follow(
                linear, None if self.center is None else l1, distance=1.0, seconds=self._seconds()
            )
            if status != ARRIVED:
                self._give_up()
        self.terms = terms

    def _follow_risk(self, cap: Cap) -> None:
        """Set the multiplier of a cap on risk, given those of the others.

        With 1/a = others + multiplier, the problem has the linear term
        ``a (c - rest) - (1 - a others) Qb``, and ``a (k + s)`` as L1 weights. The path leads from
        a = 0, where only this cap counts, to a = 1 / others, where its multiplier is 0.
        """
        self.multipliers[cap.name] = 0.0
        others, product = self.curvature_weight, self.products[cap.name]
        linear = self.c + others * product
        for other in self.caps:
            if other.is_risk and other is not cap:
                linear -= self.multipliers[other.name] * self.products[other.name]
        l1 = self.k + self.multipliers.get("turnover", 0.0)
        self._start_from(cap.name, self._terms_of(cap))
        least = self.measure(cap, self.solver.x)
        if least > cap.limit:
            wanted, found = numbers_for_message(cap.limit, least)
            raise ValueError(
                f"{cap.name} cannot be as small as {wanted}: under the other constraints it is at "
                f"least {found}"
            )
        status, *_ = self.solver.follow(
            linear, None if self.center is None else l1,
            distance=1 / others if others > 0 else math.inf, measure=VARIANCE, b=cap.point,
            product=product, limit=cap.limit**2, seconds=self._seconds(),
        )  # fmt: skip
        reached = self.solver.t
        self.terms = reached * linear - product, reached * l1
        if status == CAPPED:
            self.multipliers[cap.name] = max(1 / reached - others, 0.0)
        elif status == ARRIVED:  # the cap is not active
            self._move_to(self._current_terms())
        else:
            self._give_up()

    def _start_from(self, name: str, terms: tuple[Array, Array]) -> None:
        """Continue from a copy of the solver at these terms; the first time, move it there."""
        if name not in self.starts:
            self._move_to(terms)
            self.starts[name] = self.solver, terms
        solver, self.terms = self.starts[name]
        self.solver = solver.copy()

    def _follow_turnover(self, cap: Cap) -> None:
        """Set the multiplier of a cap on turnover, given those of the others."""
        self.multipliers[cap.name] = 0.0
        self._start_from("", self.terms)
        self._move_to(self._current_terms())
        if self.measure(cap, self.solver.x) <= cap.limit:
            return
        weight = self.curvature_weight
        slope = np.full(len(self.c), 1 / weight)
        # A turnover of 0 would be reached only up to rounding errors.
        limit = max(cap.limit, 0.1 * ROUNDING * self._size(cap))
        status, *_ = self.solver.follow(
            np.zeros(len(self.c)), slope, measure=DISTANCE, limit=limit, seconds=self._seconds()
        )
        least = self.measure(cap, self.solver.x)
        if status == ARRIVED and least > cap.limit + ROUNDING * self._size(cap):
            wanted, found = numbers_for_message(cap.limit, least)
            raise ValueError(
                f"turnover cannot be as small as {wanted}: the other constraints need at least "
                f"{found}"
            )
        if status not in (ARRIVED, CAPPED):
            self._give_up()
        self.multipliers[cap.name] = self.solver.t
        self.terms = self.terms[0], self.terms[1] + self.solver.t * slope
