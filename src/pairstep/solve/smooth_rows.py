"""The SQP solver with rows: quadratic models under the same sums, bounds and rows.

`smooth` describes the method without rows. Here every model is minimized by the parametric solver
from the current point. The multipliers of its rows are those with which the point is verified.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from .._validation import Array
from ..constraints import SumBox
from ..labels import Axis
from ..objectives import Objective, value_and_gradient
from ..objectives.objective import second_order
from ..result import Progress, Result, Status
from .parametric import Curvature, ParametricProblem, rows_of
from .rows import changed, smooth_part, start, verified
from .smooth import (
    FIRST_DAMPING,
    LAST_DAMPING,
    MIN_STEP_FRACTION,
    SUFFICIENT_DECREASE,
    VALUE_ROUNDING,
)

MAX_ITER = 1000  # default; a solve with a Hessian needs about ten iterations
# Number of iterations without a smaller value or violation after which a solve stops.
PATIENCE = 10
# Powell's damping of BFGS: the curvature along a step counts as at least this fraction of the
# model's, so that the estimate stays positive definite.
MIN_CURVATURE_FRACTION = 0.2


def minimize_smooth(
    objective: Objective, constraint: SumBox, variables: Axis, options: Any
) -> Result:
    """Minimize a smooth function under a constraint with rows."""
    began = time.perf_counter()
    n = objective.n or constraint.size
    assert n is not None  # rows have a column for each variable
    rows_of(constraint, n)
    solver = _Solver(objective, constraint, options, began)
    status = solver.run(start(constraint, n, options.x0, variables))
    result = solver.result
    if status is not None and result.status != Status.OPTIMAL:
        result = changed(result, status=status, remark="")
    return changed(
        result, n_iter=solver.n_iter, variables=variables, solve_time=time.perf_counter() - began
    )


class _Solver:
    def __init__(self, objective: Objective, constraint: SumBox, options: Any, began: float):
        self.objective, self.constraint, self.options = objective, constraint, options
        self.max_iter = MAX_ITER if options.max_iter is None else options.max_iter
        self.deadline = math.inf if options.time_limit is None else began + options.time_limit
        self.began, self.n_iter = began, 0
        self.estimate: Array | None = None  # of the Hessian
        self.result: Result

    def run(self, x: Array) -> Status | None:
        """Iterate; return why the solve stopped, None if the result itself says it."""
        value, gradient = value_and_gradient(self.objective, x)
        if not math.isfinite(value):
            raise ValueError(
                "the objective's value at the start is inf or nan: give x0 inside its domain"
            )
        multipliers = np.zeros(len(rows_of(self.constraint, len(x)).matrix))
        damping, idle, least = 0.0, 0, math.inf
        while True:
            hessian = self._hessian(x, gradient)
            largest = float(np.abs(hessian.diagonal()).max()) or 1.0
            model = hessian + damping * largest * np.eye(len(x)) if damping else hessian
            found = self._minimum(model, x, gradient)
            if found is not None:
                multipliers = found.multipliers
            self.result = verified(
                self.objective, self.constraint, x, multipliers, self.options.tol
            )
            violation = self.result.kkt_violation
            if self.result.success:
                return None
            if self.n_iter and self._stopped_by_callback(x, value, violation):
                return Status.STOPPED
            if self.n_iter >= self.max_iter:
                return Status.MAX_ITER
            if time.perf_counter() >= self.deadline:
                return Status.TIME_LIMIT
            idle = 0 if violation < 0.5 * least else idle + 1
            least = min(least, violation)
            step = None if found is None else self._search(x, value, gradient, found.x)
            if step is None:
                if damping >= LAST_DAMPING or idle > PATIENCE:
                    return Status.STALLED
                damping = max(10 * damping, FIRST_DAMPING)
                continue
            point, new_value, new_gradient = step
            if value - new_value > VALUE_ROUNDING * max(abs(value), abs(float(gradient @ x))):
                idle = 0
            elif idle > PATIENCE:
                return Status.STALLED
            self._learn(point - x, new_gradient - gradient)
            x, value, gradient = point, new_value, new_gradient
            self.n_iter += 1
            damping = damping / 10 if damping > FIRST_DAMPING else 0.0

    def _hessian(self, x: Array, gradient: Array) -> Array:
        model = second_order(smooth_part(self.objective), x, np.arange(len(x)))
        if model is not None:
            return np.asarray(model.block(np.arange(len(x))))
        if self.estimate is None:
            size = float(np.abs(x).max()) or 1.0
            self.estimate = np.eye(len(x)) * (float(np.ptp(gradient)) or 1.0) / size
        return self.estimate

    def _learn(self, step: Array, change: Array) -> None:
        """Update the estimate of the Hessian by damped BFGS."""
        if self.estimate is None:
            return
        product = self.estimate @ step
        curvature, along = float(step @ product), float(step @ change)
        if not curvature > 0:
            return
        if along < MIN_CURVATURE_FRACTION * curvature:
            part = (1 - MIN_CURVATURE_FRACTION) * curvature / (curvature - along)
            change = part * change + (1 - part) * product
            along = float(step @ change)
        self.estimate = (
            self.estimate
            - np.outer(product, product) / curvature
            + np.outer(change, change) / along
        )

    def _minimum(self, hessian: Array, x: Array, gradient: Array) -> Any:
        problem = ParametricProblem(
            Curvature(np.ascontiguousarray(hessian)), gradient - hessian @ x,
            self.objective.l1_terms, self.constraint,
        )  # fmt: skip
        return problem.solve(x, max(self.deadline - time.perf_counter(), 0.0))

    def _search(
        self, x: Array, value: float, gradient: Array, target: Array
    ) -> tuple[Array, float, Array] | None:
        """Return a point towards the target with a smaller value, its value and gradient."""
        direction = target - x
        slope = float(gradient @ direction)
        if self.objective.l1_terms is not None:
            weight, center = self.objective.l1_terms
            slope += float((weight * (np.abs(target - center) - np.abs(x - center))).sum())
        if not slope < 0:
            return None
        noise = VALUE_ROUNDING * max(abs(value), abs(float(gradient @ x)))
        length = 1.0
        while length > MIN_STEP_FRACTION:
            point = target if length == 1 else x + length * direction
            with np.errstate(all="ignore"):
                new_value, new_gradient = value_and_gradient(self.objective, point)
            fall = value - new_value
            if fall >= -SUFFICIENT_DECREASE * length * slope or abs(fall) <= noise:
                return point, new_value, new_gradient
            length *= 0.5
        return None

    def _stopped_by_callback(self, x: Array, value: float, violation: float) -> bool:
        callback = self.options.callback
        if callback is None:
            return False
        elapsed = time.perf_counter() - self.began
        return bool(callback(Progress(self.n_iter, value, violation, x.copy(), elapsed)))
