"""Selection rules: which variables a step changes, and by how much.

The variables have a fixed sum, so a step must change at least two of them. A rule chooses them from
the derivatives, the distances to the bounds and, for some rules, Lipschitz constants. `RULES` lists
the rules by name, `propose` returns the step that a rule takes at a point, and
`coordinate_descent(..., rule=...)` uses a rule in a solve.

A rule can also be a Python function ``rule(coordinates, alpha)`` that returns a `Step`;
`Coordinates` documents what it receives. An empty `Step` ends the solve. A return value
that is not a `Step`, such as None, raises TypeError.

Every rule has two forms. The NumPy form in this package is the executable specification: one module
per idea, with the proofs and the section of the paper. The C++ form in `cpp/paper/rules` takes the
same steps, and `propose` and the solvers run it. The C++ form also declares the names of a rule and
what it needs. The NumPy form is found by name: it is the function in any module of this package
with the name of the rule (`gs_q` for "gs-q").
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import _core
from ..._validation import (
    array,
    checked_constants,
    choice,
    finite_number,
    full_array,
    numbers_for_message,
    of_length,
    positive_number,
    require_finite,
    require_no_nan,
)
from ...coordinates import Array, Coordinates, Step
from ...labels import Axis, aligned
from .pairs import box_coordinates, no_step
from .units import guided_in_units, in_units

__all__ = ["RULES", "PythonRule", "Rule", "propose", "rule_of", "specification"]

PythonRule = Callable[[Coordinates, float], Step]


@dataclass(frozen=True)
class Rule:
    """A selection rule: its name, its NumPy form, and what it needs.

    Attributes
    ----------
    name : str
        The name of the rule.
    in_numpy : callable
        The NumPy form. It takes `Coordinates`, the step size alpha and, for rules that do not use
        the derivatives, a random generator or a counter.
    code : int
        Index of the rule in the native table; -1 for a Python function.
    weighted : bool
        Whether the rule needs coordinate-wise Lipschitz constants.
    uses_alpha : bool
        Whether the choice of variables depends on the step size.
    one_norm : bool
        Whether the rule measures steps in the 1-norm. This doubles the step size (L1 = L2 / 2).
    curved : bool
        Whether the rule uses the curvature of pairs from the Hessian, if the Hessian is stored.
    draws : bool
        Whether the rule draws random pairs.
    in_turn : bool
        Whether the rule takes the pairs in a fixed order.
    """

    name: str
    in_numpy: Callable[..., Step]
    code: int = -1
    weighted: bool = False
    uses_alpha: bool = False
    one_norm: bool = False
    curved: bool = False
    draws: bool = False
    in_turn: bool = False

    @property
    def guided(self) -> bool:
        """Whether the choice depends on the derivatives."""
        return not (self.draws or self.in_turn)

    @property
    def native(self) -> bool:
        """Whether the rule has a native form."""
        return self.code >= 0

    def choice(
        self, alpha: float, lipschitz: Array | None, rng: np.random.Generator | None
    ) -> _core.Choice:
        """Return the native options of the rule."""
        generator = None if rng is None else rng.bit_generator.capsule
        return _core.Choice(self.code, alpha, lipschitz, generator)

    def as_function(self, rng: np.random.Generator | None, turn: int) -> PythonRule:
        """Return the NumPy form as a function of coordinates and alpha.

        Random rules draw from `rng`. The cyclic rule takes the pair number `turn`.
        """
        extra = (rng,) if self.draws else (turn,) if self.in_turn else ()
        return lambda coordinates, alpha: self.in_numpy(coordinates, alpha, *extra)


def _all_rules() -> Iterator[Rule]:
    """Yield every native rule with its NumPy form, once for each of its names."""
    modules = [
        import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)
    ]
    for names, about in _core.rules():
        function = names[0].replace("-", "_")
        found = [getattr(module, function) for module in modules if hasattr(module, function)]
        if not found:
            raise ImportError(f"rule {names[0]!r} has no NumPy form: no {function}() in {__name__}")
        for name in names:
            yield Rule(name, found[0], **about)


RULES = {rule.name: rule for rule in _all_rules()}


def rule_of(rule: str | PythonRule) -> Rule:
    """Return the `Rule` of a name or of a Python function.

    For a NumPy form of this package, the needs of the rule are known. Any other function is assumed
    to use the step size.
    """
    if isinstance(rule, str):
        return RULES[rule]
    for known in RULES.values():
        if known.in_numpy is rule:
            return replace(known, code=-1)
    return Rule(getattr(rule, "__name__", repr(rule)), rule, uses_alpha=True)


def propose(
    rule: str,
    gradient: ArrayLike,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    alpha: float,
    lipschitz: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    turn: int = 0,
) -> Step:
    """Return the step that a rule takes at a point.

    The variables have a fixed sum and bounds. The step minimizes the rule's model of the objective,
    at least approximately, and keeps the sum and the bounds.

    Parameters
    ----------
    rule : str
        Name of the rule, one of `pairstep.paper.rules.RULES`.
    gradient, x : array_like or Series of shape (n,)
        The gradient at x, and the point x within its bounds. Labeled arguments are aligned; see
        `pairstep.labels`.
    lower, upper : float or array_like of shape (n,)
        The bounds; infinite for a variable without a bound.
    alpha : float
        Step size. The model is ``g'd + |d|^2 / (2 alpha)`` with the norm of the rule. Rules without
        Lipschitz constants use the 2-norm, except gs-1, which uses the 1-norm. With Lipschitz
        constants, ``|d|^2`` is ``sum_i L_i d_i^2``, or ``(sum_i sqrt(L_i) |d_i|)^2`` for
        gs-1-lipschitz and gs-1-ratio. The paper has two step lengths for these rules. Its
        experiments use ``(g_i - g_j) / (L_i + L_j)`` for every rule: this is ``alpha=1`` for
        gs-q-lipschitz, and ``step="lipschitz"`` in `coordinate_descent` for all of them. Its
        theory (appendix E.3) uses ``alpha=1/L_L`` for gs-1-lipschitz, with
        `theory.weighted_norm_constant`. L_L is at most 1 for convex f, so ``alpha=1`` is safe
        without knowing it.
    lipschitz : array_like of shape (n,), optional
        Coordinate-wise Lipschitz constants of the gradient, for the rules that use them.
    rng : numpy.random.Generator or int, optional
        Source of randomness, or a seed, for the random rules.
    turn : int
        Number of the pair in the fixed order, from 0, for the cyclic rule.

    Returns
    -------
    Step
        The changes `delta` of the variables `indices`, which sum to 0, and `decrease`, the decrease
        of the model. The step is empty if no step decreases the model.

    Raises
    ------
    ValueError
        If an argument is not finite, x is outside its bounds, or the rule needs `lipschitz`.

    Examples
    --------
    >>> import pairstep
    >>> step = pairstep.propose("gs-s", [3.0, 1.0, 2.0], [0.5, 0.2, 0.3], 0.0, 1.0, alpha=0.1)
    >>> [int(i) for i in step.indices], [float(d) for d in step.delta]
    ([0, 1], [-0.1, 0.1])
    """
    task = _prepared(
        rule, gradient, x, lower, upper, alpha=alpha, lipschitz=lipschitz, rng=rng, turn=turn
    )
    indices, delta, decrease, suspect = _core.propose(
        _core.Point(
            task.x, task.lower, task.upper, None, None, np.array([0, len(task.x)], np.int64)
        ),
        task.gradient,
        task.rule.choice(task.alpha, task.lipschitz, task.rng),
        turn,
    )
    if suspect >= 0:
        _require_valid(task)
    return Step(indices, delta, decrease)


def specification(rule: str, *at: ArrayLike, **options: Any) -> Step:
    """Return the step of `propose`, which has the same arguments, by the NumPy form of the rule."""
    task = _prepared(rule, *at, **options)
    _require_valid(task)
    if len(task.x) < 2:
        return no_step()
    constants = task.lipschitz if task.rule.weighted or task.rule.curved else None
    coordinates = box_coordinates(task.gradient, task.x, task.lower, task.upper, constants)
    call = guided_in_units if task.rule.guided else in_units
    return call(task.rule.as_function(task.rng, task.turn), coordinates, task.alpha)


@dataclass(frozen=True)
class _Task:
    """The arguments of `propose`, checked and converted."""

    rule: Rule
    gradient: Array
    x: Array
    lower: Array
    upper: Array
    alpha: float
    lipschitz: Array | None
    rng: np.random.Generator | None
    turn: int


def _prepared(
    rule: str,
    gradient: ArrayLike,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    alpha: float,
    lipschitz: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    turn: int = 0,
) -> _Task:
    """Check shapes and options. The native rule checks the numbers while it reads them."""
    chosen = RULES[choice("rule", rule, RULES)]
    coordinates = Axis()
    given = {"x": x, "gradient": gradient, "lower": lower, "upper": upper, "lipschitz": lipschitz}
    x, gradient, lower, upper, lipschitz = (
        aligned(name, value, coordinates) for name, value in given.items()
    )
    point = np.require(array("x", x, 1), requirements="W")  # the native solvers write to x
    n = len(point)
    if chosen.weighted and lipschitz is None:
        raise ValueError(f"rule {rule!r} needs lipschitz=, the coordinate-wise Lipschitz constants")
    if not isinstance(turn, (int, np.integer)) or turn < 0:
        raise ValueError(f"turn must be an integer >= 0, got {turn!r}")
    return _Task(
        rule=chosen,
        gradient=of_length("gradient", array("gradient", gradient, 1), n),
        x=point,
        lower=full_array("lower", lower, n),
        upper=full_array("upper", upper, n),
        alpha=positive_number("alpha", finite_number("alpha", alpha)),
        lipschitz=None if lipschitz is None else checked_constants(lipschitz, n),
        rng=np.random.default_rng(rng) if chosen.draws else None,
        turn=turn,
    )


def _require_valid(task: _Task) -> None:
    """Raise ValueError for a number that is not finite or an x outside its bounds."""
    require_finite("gradient", task.gradient)
    require_finite("x", task.x)
    require_no_nan("lower", task.lower)
    require_no_nan("upper", task.upper)
    require_within("x", task.x, task.lower, task.upper)


def require_within(name: str, x: Array, lower: Array, upper: Array) -> None:
    """Raise ValueError for an entry of x outside its bounds."""
    outside = (x < lower) | (x > upper)
    if outside.any():
        i = int(np.argmax(outside))
        value, low, high = numbers_for_message(x[i], lower[i], upper[i])
        raise ValueError(f"{name}[{i}] = {value} is outside its bounds [{low}, {high}]")
