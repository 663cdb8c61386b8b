"""Selection rules: which coordinates to move.

Each rule stands here twice: in readable NumPy, the executable specification, one file per idea;
and in C++ (`cpp/isa/rules`), which makes the same moves and is what `propose` and the solvers run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
from .accounts import Array, Move, box_accounts, no_move
from .gs_1 import gs_1
from .gs_1_lipschitz import gs_1_lipschitz
from .gs_q import gs_q
from .gs_q_lipschitz import gs_q_lipschitz
from .gs_s import gs_s
from .libsvm import libsvm
from .ratio import gs_1_ratio, gs_s_ratio
from .unguided import cyclic, random, random_lipschitz

__all__ = ["RULES", "Move", "Rule", "propose", "specification"]


@dataclass(frozen=True)
class Rule:
    """A rule's native code, its specification, and what it needs.

    `weighted` rules need coordinate-wise Lipschitz constants (libsvm takes them where they are
    known); `draws` and `in_turn` say what an unguided rule draws on; `one_norm` rules measure
    moves in the 1-norm, which doubles their step size (L1 = L2 / 2).
    """

    code: int
    in_numpy: Callable[..., Move]
    weighted: bool = False
    draws: bool = False
    in_turn: bool = False
    one_norm: bool = False
    uses_alpha: bool = False

    @property
    def guided(self) -> bool:
        """Whether the rule looks at the prices to choose."""
        return not (self.draws or self.in_turn)


RULES = {
    "random": Rule(0, random, draws=True),
    "random-lipschitz": Rule(1, random_lipschitz, draws=True, weighted=True),
    "cyclic": Rule(2, cyclic, in_turn=True),
    "greedy": Rule(3, gs_s),
    "gs-s": Rule(3, gs_s),
    "gs-q": Rule(4, gs_q, uses_alpha=True),
    "gs-1": Rule(5, gs_1, one_norm=True, uses_alpha=True),
    "gs-q-lipschitz": Rule(6, gs_q_lipschitz, weighted=True),
    "gs-1-lipschitz": Rule(7, gs_1_lipschitz, weighted=True, one_norm=True),
    "ratio": Rule(8, gs_s_ratio, weighted=True),
    "gs-s-ratio": Rule(8, gs_s_ratio, weighted=True),
    "gs-1-ratio": Rule(9, gs_1_ratio, weighted=True, one_norm=True),
    "libsvm": Rule(10, libsvm),
}


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
    gradient, x : array_like of shape (n,)
        The gradient at x, and x itself, within its bounds.
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
        _core.Choice(_core.Rule(RULES[rule].code), task.alpha, task.lipschitz, generator),
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
    accounts = box_accounts(task.gradient, task.x, task.lower, task.upper, task.lipschitz)
    extra = (task.rng,) if RULES[rule].draws else (turn,) if RULES[rule].in_turn else ()
    return RULES[rule].in_numpy(accounts, task.alpha, *extra)


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
    point = array("x", x, 1)
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
