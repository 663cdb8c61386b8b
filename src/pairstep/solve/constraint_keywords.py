"""The keywords that state a constraint, shared by all functions that take them."""

from __future__ import annotations

import math
from typing import Any

from ..constraints import SumBox
from ..constraints.rows import Rows
from ..labels import Axis, aligned

DEFAULTS: dict[str, Any] = {
    "total": 1.0, "lower": 0.0, "upper": None, "coefficients": None, "groups": None,
    "group_total": None, "group_lower": None, "group_upper": None, "rows": None,
    "rows_lower": None, "rows_upper": None,
}  # fmt: skip


def constraint_from(variables: Axis, constraint: SumBox | None, **given: Any) -> SumBox:
    """Return the constraint that was given as an object or by keywords.

    Parameters
    ----------
    variables : Axis
        The labels of the objective's variables. Keywords without labels are in their order.
    constraint : SumBox or None
        The constraint as an object.
    **given
        The arguments of `SumBox`.
    """
    if constraint is not None:
        require_defaults(given)
        if not isinstance(constraint, SumBox):
            raise TypeError(f"constraint must be a SumBox or a Simplex, got {constraint!r}")
        aligned_constraint = constraint.along(variables)
        if variables.labels is None:
            variables.adopt(constraint.variables)
        return aligned_constraint
    by_variable = ("lower", "upper", "coefficients", "groups")
    own = {name: aligned(name, given[name], variables) for name in by_variable}
    if own["upper"] is None:
        own["upper"] = math.inf
    rows, low, high = (given.pop(name, None) for name in ("rows", "rows_lower", "rows_upper"))
    stated = SumBox(**{**given, **own, "rows": Rows.of(rows, low, high, variables)})
    stated.variables.adopt(variables)
    return stated


def require_defaults(given: dict[str, Any]) -> None:
    """Raise if a constraint was given both as an object and by keywords."""
    for name, value in given.items():
        default = DEFAULTS[name]
        is_default = value is default or (isinstance(value, (int, float)) and value == default)
        if not is_default:
            raise ValueError(
                f"give constraint or {name}, not both: {name} is part of the constraint"
            )
