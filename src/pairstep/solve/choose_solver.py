"""Which solver runs, by objective, rule and step.

======================  ===================================================  ======================
solver                  runs if                                              module
======================  ===================================================  ======================
block                   rule and step are automatic (or step "exact") and    `block`
                        blocks of the Hessian are cheaper than all of it
coordinate descent      the rule is native, the step has a formula and the   `greedy`
                        Hessian is one dense array
SQP                     rule and step are automatic, f is not quadratic      `smooth`
reference (NumPy) loop  otherwise: Python rules, backtracking, steps given   `loop`
                        by a function
======================  ===================================================  ======================

The first row that applies is used. `small` solves small dense quadratics before this choice is
made, and the SQP solver hands its quadratic models to the first two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .._validation import choice
from ..constraints import Layout
from ..objectives import L1Penalized, Objective
from ..objectives.objective import Fixed
from ..rules import RULES, PythonRule, Rule, rule_of
from . import block, greedy, loop, smooth
from .steps import BACKTRACKING, StepOption, StepPlan, plan
from .task import Outcome, Task

# Defaults of max_iter. Iterations of native code take microseconds, those in Python up to
# milliseconds.
NATIVE_ITERATIONS = 1_000_000
PYTHON_ITERATIONS = 100_000


# Members that every solve needs: to translate the objective, to choose a solver and to certify.
COMMON_MEMBERS = (
    "n", "value", "gradient", "in_layout", "is_quadratic", "lipschitz", "hessian", "linear",
    "l1_terms", "prefers_blocks", "two_coordinate_constant",
)  # fmt: skip


class Solver(NamedTuple):
    """A solver, what it needs from an objective, and its default for `max_iter`."""

    name: str
    run: Callable[[Task], Outcome]
    needs: tuple[str, ...]  # members of the objective besides `COMMON_MEMBERS`
    max_iter: int


BLOCK = Solver("block", block.run, ("block",), NATIVE_ITERATIONS)
COORDINATE_DESCENT = Solver("coordinate-descent", greedy.run, ("hessian",), NATIVE_ITERATIONS)
SQP = Solver("SQP", smooth.run, (), PYTHON_ITERATIONS)
REFERENCE = Solver("reference", loop.run, ("curvature",), PYTHON_ITERATIONS)


class Choice(NamedTuple):
    """The solver for a problem, with its rule and step."""

    solver: Solver
    rule: Rule
    plan: StepPlan


def choose_solver(
    objective: Objective, layout: Layout, rule: str | PythonRule, step: StepOption
) -> Choice:
    """Choose solver, rule and step for an objective in the variables of a layout."""
    automatic = isinstance(rule, str) and rule == "auto"
    by_blocks = automatic and step in ("auto", "exact") and block.preferred(objective, layout)
    if automatic:
        rule = "libsvm" if by_blocks or objective.hessian is not None else "gs-1"
    if not callable(rule):
        choice("rule", rule, ("auto", *RULES))
    chosen = rule_of(rule)
    steps = plan(chosen, step, objective)
    has_formula = steps.length is not BACKTRACKING and steps.next_alpha is None

    if by_blocks:
        solver = BLOCK
    elif chosen.native and has_formula and objective.hessian is not None:
        solver = COORDINATE_DESCENT
    elif automatic and step == "auto" and not objective.is_quadratic:
        solver = SQP
    else:
        solver = REFERENCE
    require_members(objective, solver.needs, f"the {solver.name} solver")
    return Choice(solver, chosen, steps)


def require_members(objective: object, names: tuple[str, ...], user: str) -> None:
    """Raise TypeError if the objective lacks one of the members; `user` says what needs them."""
    while isinstance(objective, L1Penalized):
        objective = objective.objective
    if isinstance(objective, Fixed):  # our own objectives have all members
        return
    missing = [name for name in names if not _has(objective, name)]
    if missing:
        raise TypeError(
            "objective must be a Quadratic, LeastSquares or Smooth, a function of x, or an object "
            f"with the members of pairstep.objectives.Objective; {user} needs "
            f"{', '.join(missing)}, which {objective!r} lacks"
        )


def _has(objective: object, name: str) -> bool:
    """Return whether an object has a member, without computing properties such as `hessian`."""
    if hasattr(type(objective), name) or name in getattr(objective, "__dict__", {}):
        return True
    return hasattr(type(objective), "__getattr__") and hasattr(objective, name)
