"""The paper's algorithm: coordinate descent by a selection rule, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._validation import Array, choice
from ..constraints import SumBox
from ..objectives import Objective
from ..result import Result
from ..solve.choose_solver import (
    COMMON_MEMBERS,
    NATIVE_ITERATIONS,
    PYTHON_ITERATIONS,
    require_members,
)
from ..solve.greedy import run_until_solved
from ..solve.minimize import Options, Prepared, as_problem, solve
from ..solve.task import Callback, Outcome
from . import loop
from .rule_task import RuleTask
from .rules import RULES, PythonRule, rule_of
from .steps import BACKTRACKING, StepOption, plan


def coordinate_descent(
    objective: Objective | Callable[[Array], Any],
    constraint: SumBox | None = None,
    *,
    rule: str | PythonRule = "gs-1",
    step: StepOption = "auto",
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    history: bool = False,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Result:
    """Minimize by coordinate descent: choose variables by a rule, take a step, repeat.

    This is the algorithm of the paper and nothing else, in order to study rules and steps.
    `minimize` chooses the fastest solver instead.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth, callable, or any object with their members
        The function to minimize, as in `minimize`.
    constraint : SumBox or Simplex, optional
        The sum and the bounds; the probability simplex by default. General linear rows are not
        supported.
    rule : str or callable
        Which variables change in an iteration: a name in `pairstep.paper.rules.RULES`, or a
        function ``rule(coordinates, alpha) -> Step``. The function is called in each iteration, for
        each group of variables that share a sum, with their derivatives and their distances to the
        next bound or breakpoint (`pairstep.coordinates.Coordinates`) and with the step size alpha.
        The step with the largest `decrease` is used. Groups under a common total are also passed
        together. A step must keep the sum and stay within the distances. The solve ends if the rule
        returns an empty step, or one along which the objective does not decrease.
    step : str, float or callable
        Step length: "1/L2", "lipschitz", "exact", "backtracking", a step size, or a function from
        the progress so far to a step size. "auto" is exact for quadratics and backtracking for
        other functions. Every step ends at the first bound or breakpoint that it reaches.
    x0 : array_like or Series, optional
        A feasible starting point. By default the total is spread evenly within the bounds.
    tol : float
        Relative tolerance, as in `minimize`. With 0, only `max_iter` and `time_limit` end the
        solve, unless no step makes progress.
    max_iter : int, optional
        Maximum number of iterations. The default is 1 000 000 in native code, which runs named
        rules on an explicit Hessian with steps other than backtracking and functions, and 100 000
        otherwise.
    time_limit : float, optional
        Maximum number of seconds, as in `minimize`.
    seed : int or numpy.random.Generator, optional
        Seed of the random rules.
    history : bool
        Whether to record value, violation, time and the numbers of changed and free variables for
        each iteration; see `Result.plot`.
    callback : callable, optional
        Called with a `Progress` after each iteration. The solve stops if it returns a true value.
    verbose : bool
        Whether to print a line every second and at the end, as in `minimize`.

    Returns
    -------
    Result
        The last point, with certificates recomputed from the problem.

    See Also
    --------
    propose : The step of a rule at one point.
    theory : The constants and rates below, as functions.

    Notes
    -----
    The theorems bound the factor by which ``f(x) - f*`` falls in each iteration, for a function
    that satisfies the proximal-PL inequality with constants mu_1, mu_2 and mu_L in the norms of
    the rules:

    ======================  ==================  ==============================  ===================
    rule                    step                factor                          result
    ======================  ==================  ==============================  ===================
    greedy, without bounds  "1/L2" or "exact"   ``1 - 2 mu_1 / L2``             theorem 2.3
    random, without bounds  "1/L2"              ``1 - mu_2 / ((n - 1) L2)``     proposition 9
    gs-q                    "1/L2"              ``1 - mu_2 / ((n - 1) L2)``     theorem 3.1
    gs-1                    "1/L2"              ``1 - 2 mu_1 / L2``             theorem 3.2
    gs-1-lipschitz          ``1 / L_L``         ``1 - mu_L / L_L``              appendix E.3
    ======================  ==================  ==============================  ===================

    With bounds, the last two need a convex f. Then gs-1 finds the variables that end at a bound
    after finitely many iterations (section 3.3), while gs-s and libsvm can make arbitrarily little
    progress per step. The pages "Results without bounds" and "Results with bounds" of the
    documentation prove all of these statements. The paper is Ramesh et al., "Analyzing and
    Improving Greedy 2-Coordinate Updates for Equality-Constrained Optimization via Steepest Descent
    in the 1-Norm", 2023.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk = pairstep.Quadratic(np.diag([1.0, 2.0, 4.0]))
    >>> result = pairstep.coordinate_descent(risk, rule="gs-q", step="1/L2")
    >>> str(result.status), result.x.round(6)
    ('optimal', array([0.571429, 0.285714, 0.142857]))

    The rate of theorem 3.2 holds in every iteration:

    >>> run = pairstep.coordinate_descent(risk, rule="gs-1", step="1/L2", history=True)
    >>> gap = run.history.value - 2 / 7
    >>> l2 = pairstep.theory.two_coordinate_constant(risk)
    >>> mu_1 = pairstep.theory.one_norm_strong_convexity(risk)
    >>> factor = pairstep.theory.rate("gs-1", l2=l2, mu_1=mu_1)
    >>> bool((gap[1:] <= factor * gap[:-1] + 1e-15).all())
    True

    A rule as a function, which exchanges between the largest and the smallest derivative:

    >>> def steepest(coordinates, alpha):
    ...     i, j = np.argmax(coordinates.left_derivative), np.argmin(coordinates.right_derivative)
    ...     gap = coordinates.left_derivative[i] - coordinates.right_derivative[j]
    ...     amount = min(alpha * gap / 2, coordinates.max_decrease[i], coordinates.max_increase[j])
    ...     return pairstep.Step(np.array([i, j]), np.array([-amount, amount]), amount * gap)
    >>> pairstep.coordinate_descent(risk, rule=steepest).x.round(6)
    array([0.571429, 0.285714, 0.142857])
    """
    members = (*COMMON_MEMBERS, "two_coordinate_constant")
    function, constraint = as_problem(objective, constraint, members, "coordinate_descent")
    if constraint.rows is not None:
        raise ValueError(
            "coordinate_descent cannot keep the rows of the constraint, because a rule sees only "
            "sums and bounds; use minimize"
        )
    if not callable(rule):
        choice("rule", rule, RULES)
    prepared = Prepared.of(function, constraint, x0)
    chosen = rule_of(rule)
    steps = plan(chosen, step, prepared.problem)
    has_formula = steps.length is not BACKTRACKING and steps.next_alpha is None
    native = chosen.native and has_formula and prepared.problem.hessian is not None
    if not native:
        require_members(prepared.problem, ("curvature",), "coordinate_descent")
    options = Options(x0, tol, max_iter, time_limit, callback, history, verbose)
    fields = prepared.task_fields(options, NATIVE_ITERATIONS if native else PYTHON_ITERATIONS)
    z = prepared.given_start()
    if z is None:
        z = prepared.even_start()
    rng = np.random.default_rng(seed) if chosen.draws else None
    task = RuleTask(z=z, rule=chosen, plan=steps, rng=rng, **fields)
    return solve(prepared, task, _run_native if native else loop.run)


def _run_native(task: RuleTask) -> Outcome:
    """Run the rule in the native coordinate-descent solver, without Newton steps."""

    def begin(value: float, gradient: Array) -> _core.GreedySolve:
        hessian = task.objective.hessian
        assert hessian is not None  # `native` is false without one
        return _core.coordinate_descent(
            hessian, task.point, gradient, value, task.choice, step=task.plan.length,
            one_norm_constant=task.plan.one_norm_constant, patience=task.patience,
            record=task.record,
        )  # fmt: skip

    return run_until_solved(task, begin)
