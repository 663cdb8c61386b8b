"""Which solver runs, by what the objective provides.

======================  ===================================================  ======================
solver                  runs if                                              module
======================  ===================================================  ======================
SQP                     f is not quadratic                                   `smooth`
block                   blocks of the Hessian are cheaper than all of it,    `block`
                        or the whole does not fit into memory
coordinate descent      otherwise: the Hessian is one dense array            `greedy`
======================  ===================================================  ======================

The first row that applies is used. `small` solves small dense quadratics before this choice is
made, and the SQP solver hands its quadratic models to the other two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..constraints import Layout
from ..objectives import L1Penalized, Objective
from ..objectives.objective import Fixed
from . import block, greedy, smooth
from .task import Outcome, Task

# Defaults of max_iter. Iterations of native code take microseconds, those in Python up to
# milliseconds.
NATIVE_ITERATIONS = 1_000_000
PYTHON_ITERATIONS = 100_000


# Members that every solve needs: to translate the objective, to choose a solver and to certify.
COMMON_MEMBERS = (
    "n", "value", "gradient", "in_layout", "is_quadratic", "lipschitz", "hessian", "linear",
    "l1_terms", "prefers_blocks",
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


def choose_solver(objective: Objective, layout: Layout) -> Solver:
    """Choose the solver for an objective in the variables of a layout."""
    if not objective.is_quadratic:
        solver = SQP
    else:
        solver = BLOCK if block.preferred(objective, layout) else COORDINATE_DESCENT
    require_members(objective, solver.needs, f"the {solver.name} solver")
    return solver


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
