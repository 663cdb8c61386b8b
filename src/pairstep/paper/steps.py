"""Step lengths: how far to go along the step that a rule has chosen.

A step assumes a curvature along the chosen direction d and goes to the minimum of the resulting
parabola, or to the nearest bound or breakpoint:

- ``"1/L2"``: the 2-coordinate constant (``1/L1`` with ``L1 = L2/2`` for the 1-norm rules);
- ``"lipschitz"``: the coordinate-wise constants, eq. (deltaLi) of the paper;
- ``"exact"``: the true ``d'Hd`` of a quadratic;
- ``"backtracking"``: halves the step until the objective decreases enough, for any smooth function;
- a number: the step size alpha of the rule's model; a callable: ``step(progress) -> alpha``.

To add a step, give it a name here and its curvature in `loop.assumed_curvature` and
`cpp/paper/descent.hpp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._validation import Array, choice, finite_number, positive_number
from ..objectives import Objective
from ..result import Progress
from .rules import Rule

StepOption = str | float | Callable[[Progress], float]

STEPS = ("auto", "1/L2", "lipschitz", "exact", "backtracking")


Length = _core.StepLength  # formula of the step length
BACKTRACKING = None  # takes the place of a `Length`, because no formula gives the step length


@dataclass(frozen=True)
class StepPlan:
    """The step length for a given rule and objective.

    Attributes
    ----------
    length : _core.StepLength or None
        The curvature that the step length assumes; None for backtracking.
    alpha : float
        Step size of the model by which the rule chooses; NaN if unknown.
    one_norm_constant : float
        The L1 of `_core.StepLength.norm`.
    lipschitz : ndarray or None
        Coordinate-wise constants, if the rule or the step uses them.
    next_alpha : callable or None
        The user's function that returns alpha before each iteration.
    """

    length: Any
    alpha: float = 1.0
    one_norm_constant: float = 0.0
    lipschitz: Array | None = None
    next_alpha: Callable[[Progress], float] | None = None


def plan(rule: Rule, step: StepOption, objective: Objective) -> StepPlan:
    """Return the plan for a step, or raise if the objective lacks what it needs."""
    if isinstance(step, str):
        choice("step", step, STEPS)
        if step == "auto":
            step = "exact" if objective.is_quadratic else "backtracking"
    elif not callable(step):
        step = positive_number("step", finite_number("step", step))

    if step == "exact" and not objective.is_quadratic:
        raise ValueError(
            f"step 'exact' needs a quadratic objective, but {objective!r} has no constant "
            "Hessian; use step='backtracking'"
        )
    uses_constants = rule.weighted or step == "lipschitz"
    constants = _constants(rule, step, objective) if uses_constants else None
    if constants is None and not rule.native:  # a Python rule gets them if they are known
        known = objective.lipschitz
        constants = known if known is not None and known.min() > 0 else None
    # gs-q and gs-1 choose by a model that needs a step size, whatever the step length.
    alpha = 1.0
    if rule.uses_alpha and isinstance(step, str) and step != "backtracking":
        alpha = _one_over_l2(rule, step, objective)

    if callable(step):
        length = Length.norm if rule.curved else Length.model
        return StepPlan(length, lipschitz=constants, next_alpha=step)
    if isinstance(step, float):
        if rule.curved:  # its model uses the Hessian's curvature
            return StepPlan(Length.norm, lipschitz=constants, one_norm_constant=1 / (2 * step))
        return StepPlan(Length.model, step, lipschitz=constants)
    if step == "1/L2":
        alpha = _one_over_l2(rule, step, objective)
        if rule.weighted or rule.curved:
            one_norm = 1 / alpha if rule.one_norm else 1 / (2 * alpha)
            return StepPlan(Length.norm, 1.0, one_norm, constants)
        return StepPlan(Length.model, alpha, lipschitz=constants)
    if step == "lipschitz":
        return StepPlan(Length.lipschitz, alpha, lipschitz=constants)
    if step == "exact":
        return StepPlan(Length.exact, alpha, lipschitz=constants)
    if rule.weighted:
        return StepPlan(BACKTRACKING, lipschitz=constants)
    l2 = objective.two_coordinate_constant()
    return StepPlan(BACKTRACKING, 1 / l2 if l2 else math.nan)


def _constants(rule: Rule, step: StepOption, objective: Objective) -> Array:
    user = f"rule {rule.name!r}" if rule.weighted else f"step {step!r}"
    constants = objective.lipschitz
    if constants is None:
        raise ValueError(
            f"{user} needs coordinate-wise Lipschitz constants: give lipschitz to {objective!r}"
        )
    if constants.min() < 0:
        i = int(np.argmin(constants))
        raise ValueError(
            f"{user} needs positive Lipschitz constants, but coordinate {i} has {constants[i]:g}: "
            "the objective is not convex"
        )
    # Any positive number is a Lipschitz constant of a coordinate without curvature. The smallest
    # constant of the others neither excludes the coordinate from the weighted rules nor prefers it.
    positive = constants[constants > 0]
    return np.where(constants > 0, constants, positive.min() if len(positive) else 1.0)


def _one_over_l2(rule: Rule, step: StepOption, objective: Objective) -> float:
    l2 = objective.two_coordinate_constant()
    if l2 is None:
        raise ValueError(
            f"rule {rule.name!r} with step {step!r} needs the 2-coordinate constant L2: give "
            f"lipschitz to {objective!r}, or use step='backtracking'"
        )
    alpha = 1 / l2 if l2 > 0 else 1.0
    return 2 * alpha if rule.one_norm else alpha
