"""Selection rules: which coordinates to move.

Each rule stands here twice: in readable NumPy, the executable specification, one file per idea;
and in C++ (`cpp/isa/rules`), which makes the same moves and is what `propose` and the solvers run.
What a rule is called and what it needs is said in C++; its NumPy form is the function of its name
in any module here (`gs_q` for "gs-q"), and is found by that.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._validation import (
    array,
    choice,
    finite_number,
    full_array,
    of_length,
    positive_number,
    require_finite,
    require_no_nan,
)
from ..labels import Axis, aligned
from .accounts import Accounts, Array, Move, box_accounts, no_move
from .units import guided_in_units, in_units

__all__ = ["RULES", "Accounts", "Move", "PythonRule", "Rule", "propose", "specification"]

PythonRule = Callable[[Accounts, float], Move]


@dataclass(frozen=True)
class Rule:
    """A rule's name, its specification, its native code (-1 where there is none), its needs.

    `weighted` rules need coordinate-wise Lipschitz constants; `uses_alpha` says that the choice
    depends on the step size; `one_norm` rules measure moves in the 1-norm, which doubles their
    step size (L1 = L2 / 2); `curved` rules take the curvature of pairs from the Hessian where it
    is at hand; `draws` and `in_turn` say what an unguided rule draws on.
    """

    name: str
    in_numpy: Callable[..., Move]
    code: int = -1
    weighted: bool = False
    uses_alpha: bool = False
    one_norm: bool = False
    curved: bool = False
    draws: bool = False
    in_turn: bool = False

    @property
    def guided(self) -> bool:
        """Whether the rule looks at the prices to choose."""
        return not (self.draws or self.in_turn)

    @property
    def native(self) -> bool:
        """Whether the native core knows the rule."""
        return self.code >= 0

    def asked(self, rng: np.random.Generator | None, turn: int) -> PythonRule:
        """The NumPy form, given what an unguided rule draws on."""
        extra = (rng,) if self.draws else (turn,) if self.in_turn else ()
        return lambda accounts, alpha: self.in_numpy(accounts, alpha, *extra)


def _all_rules() -> Iterator[Rule]:
    """Every rule of the native core with its NumPy form, once for each of its names."""
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
    """Describe a rule that is given by its name or as a Python function.

    The functions in this package are known with their needs; of any other it is assumed that its
    choice depends on the step size.
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
) -> Move:
    """Ask a rule for its move at x.

    Parameters
    ----------
    rule : str
        One of the names in `pairstep.rules.RULES`.
    gradient, x : array_like or Series of shape (n,)
        The gradient at x, and x itself, within its bounds. Labels are aligned; see
        `pairstep.labels`.
    lower, upper : float or array_like of shape (n,)
        The bounds; infinite where there are none.
    alpha : float
        Step size of the rule's model: the move minimises ``g'd + |d|^2 / (2 alpha)`` in the
        rule's norm. That is the 2-norm for random, cyclic, gs-s and gs-q, the 1-norm for gs-1;
        with Lipschitz constants ``sum L_i d_i^2`` or, for gs-1-lipschitz and gs-1-ratio,
        ``(sum sqrt(L_i) |d_i|)^2``, where ``alpha=1`` is the paper's step.
    lipschitz : array_like of shape (n,), optional
        Coordinate-wise Lipschitz constants, for the rules that use them.
    rng : numpy.random.Generator or int, optional
        For the random rules.
    turn : int
        How many pairs came before, for the cyclic rule.

    Returns
    -------
    Move
        `indices`, `delta` (summing to 0) and `decrease`, minus the model at the move.

    Examples
    --------
    >>> import pairstep
    >>> move = pairstep.propose("gs-s", [3.0, 1.0, 2.0], [0.5, 0.2, 0.3], 0.0, 1.0, alpha=0.1)
    >>> [int(i) for i in move.indices], [float(d) for d in move.delta]
    ([0, 1], [-0.1, 0.1])
    """
    task = _prepared(rule, gradient, x, lower, upper, alpha, lipschitz, rng, turn)
    generator = None if task.rng is None else task.rng.bit_generator.capsule
    starts = np.array([0, len(task.x)], np.int64)
    indices, delta, decrease, suspect = _core.propose(
        _core.Point(task.x, task.lower, task.upper, None, None, starts),
        task.gradient,
        _core.Choice(RULES[rule].code, task.alpha, task.lipschitz, generator),
        turn,
    )
    if suspect >= 0:
        _require_valid(task)
    return Move(indices, delta, decrease)


def specification(
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
) -> Move:
    """Give the same answer as `propose`, from the rule's readable NumPy form."""
    task = _prepared(rule, gradient, x, lower, upper, alpha, lipschitz, rng, turn)
    _require_valid(task)
    if len(task.x) < 2:
        return no_move()
    spec = RULES[rule]
    constants = task.lipschitz if spec.weighted or spec.curved else None
    accounts = box_accounts(task.gradient, task.x, task.lower, task.upper, constants)
    ask = guided_in_units if spec.guided else in_units
    return ask(spec.asked(task.rng, turn), accounts, task.alpha)


@dataclass(frozen=True)
class _Task:
    gradient: Array
    x: Array
    lower: Array
    upper: Array
    alpha: float
    lipschitz: Array | None
    rng: np.random.Generator | None


def _prepared(
    rule: str,
    gradient: ArrayLike,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    alpha: float,
    lipschitz: ArrayLike | None,
    rng: np.random.Generator | int | None,
    turn: int,
) -> _Task:
    """Check shapes and options; the native rule checks the numbers as it reads them."""
    spec = RULES[choice("rule", rule, RULES)]
    coordinates = Axis()
    given = {"x": x, "gradient": gradient, "lower": lower, "upper": upper, "lipschitz": lipschitz}
    x, gradient, lower, upper, lipschitz = (
        aligned(name, value, coordinates) for name, value in given.items()
    )
    point = np.require(array("x", x, 1), requirements="W")  # native points may be moved
    n = len(point)
    if spec.weighted and lipschitz is None:
        raise ValueError(f"rule {rule!r} needs lipschitz, the coordinate-wise Lipschitz constants")
    if not isinstance(turn, (int, np.integer)) or turn < 0:
        raise ValueError(f"turn must be a whole number of at least 0, got {turn!r}")
    return _Task(
        gradient=of_length("gradient", array("gradient", gradient, 1), n),
        x=point,
        lower=full_array("lower", lower, n),
        upper=full_array("upper", upper, n),
        alpha=positive_number("alpha", finite_number("alpha", alpha)),
        lipschitz=None if lipschitz is None else checked_constants(lipschitz, n),
        rng=np.random.default_rng(rng) if spec.draws else None,
    )


def _require_valid(task: _Task) -> None:
    """Name the number that is not finite or outside its bounds."""
    require_finite("gradient", task.gradient)
    require_finite("x", task.x)
    require_no_nan("lower", task.lower)
    require_no_nan("upper", task.upper)
    outside = (task.x < task.lower) | (task.x > task.upper)
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(
            f"x[{i}] = {task.x[i]:g} is outside its bounds [{task.lower[i]:g}, {task.upper[i]:g}]"
        )


def checked_constants(lipschitz: ArrayLike, n: int) -> Array:
    """Validate coordinate-wise Lipschitz constants: finite and positive."""
    constants = full_array("lipschitz", lipschitz, n)
    if n and not (constants.min() > 0 and constants.max() < np.inf):
        require_finite("lipschitz", constants)
        i = int(np.argmin(constants))
        raise ValueError(
            f"lipschitz constants must be positive, but lipschitz[{i}] = {constants[i]:g}"
        )
    return constants
