"""The results of the paper as functions: constants, convergence rates, algorithms and examples.

The tests check them on small quadratics; `docs/theory` has the proofs. In some places the paper's
bounds are loose, or its claims go beyond its proofs:

- *Random selection* (eq. 8) is loose by a factor of about n without bounds; see
  `sharp_random_rate`. The paper's claim that greedy is faster by a factor between O(n) and O(n^2)
  compares this rate with that of greedy selection. The sharp rates differ
  by a factor between 2 (n - 1)/n and n - 1. With bounds, the number of steps of random selection
  can grow as n^2/2.
- ``mu_1 <= mu_2`` is loose by a factor of 2; see `one_norm_strong_convexity_bounds`.
- *The dual of an SVM* is not of the form g(Ax) in general; see `proximal_pl_constants`.
- *L2* as defined in eq. (5), with the 2-norm of both partial derivatives, exceeds the constant
  that the proofs use unless ``H_ii = H_jj``; see `two_coordinate_constant`.
- ``L1 = L2/2`` bounds steps of more than two coordinates, such as those of GS-1 with bounds, only
  for convex f; see `one_norm_constant`.
- *Larger blocks* may not have a better rate, because their constant grows as well; see
  `block_rate`.
- Under ``sum a_i x_i = c`` the variables that turn the constraint into a plain sum are ``a_i x_i``,
  not ``x_i / a_i``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .._validation import (
    Array,
    array,
    checked_constants,
    choice,
    finite_number,
    full_vector,
    positive_number,
    require_finite,
    vector,
)
from ..constraints import SumBox
from ..coordinates import Step
from ..objectives import Objective, Quadratic
from .rules import RULES, propose, require_within
from .rules.pairs import no_step, pair_step

__all__ = [
    "backtracking_rate",
    "block_constant",
    "block_descent",
    "block_rate",
    "conformal_pairs",
    "gs_1_by_selection",
    "gs_q_one_sided",
    "guaranteed_decrease",
    "lipschitz_constants",
    "one_norm_constant",
    "one_norm_strong_convexity",
    "one_norm_strong_convexity_bounds",
    "proximal_pl_constants",
    "proximal_pl_measure",
    "rate",
    "sharp_random_rate",
    "small_progress_example",
    "strong_convexity",
    "three_updates_example",
    "two_coordinate_constant",
    "weighted_norm_constant",
    "weighted_norm_strong_convexity",
]

# Largest n for the constants that enumerate sign vectors or sets of variables. Each additional
# variable doubles their time and memory.
MAX_SIGN_VARIABLES = 16
# Largest number of blocks times sets of active bounds that are enumerated. The time of each
# iteration of `block_descent` is proportional to it.
MAX_ENUMERATED = 1_000_000
# Relative errors that count as rounding: of x0 and of the constants, which the user computes, and
# of a step, which is computed here.
INPUT_ROUNDING = 1e-9
STEP_ROUNDING = 1e-12


def lipschitz_constants(objective: Objective) -> Array:
    """Return the coordinate-wise Lipschitz constants L_i of the gradient, the Hessian's diagonal.

    Examples
    --------
    >>> import pairstep
    >>> lipschitz_constants(pairstep.Quadratic([[2.0, 1.0], [1.0, 3.0]]))
    array([2., 3.])
    """
    constants = objective.lipschitz
    if constants is None:
        raise ValueError(f"the Lipschitz constants of {objective!r} are unknown: pass lipschitz")
    return constants


def two_coordinate_constant(objective: Objective) -> float:
    """Return L2, the largest ``(H_ii + H_jj - 2 H_ij)/2`` of a pair (Proposition B.3).

    This is the constant that the descent lemma needs. Taken literally, eq. (5) is
    ``sqrt(((H_ii - H_ij)^2 + (H_jj - H_ij)^2)/2)``, the root mean square of two numbers instead of
    their mean, which is larger unless ``H_ii = H_jj``.

    Examples
    --------
    >>> import pairstep
    >>> two_coordinate_constant(pairstep.Quadratic([[2.0, 1.0], [1.0, 3.0]]))
    1.5
    """
    constant = objective.two_coordinate_constant()
    if constant is None:
        raise ValueError(
            f"the 2-coordinate constant L2 of {objective!r} is unknown: pass lipschitz"
        )
    return constant


def one_norm_constant(objective: Objective) -> float:
    """Return L1 = L2/2, the Lipschitz constant in the 1-norm on sum-zero vectors (Proposition B.2).

    The proof maximizes the convex ``d'Hd`` over the polytope ``|d|_1 <= 1``, whose extreme points
    are pairs. So it needs a convex f, although the paper assumes only two derivatives. With
    negative curvature along ``e_1 - e_2`` and ``e_3 - e_4``, the step (1, 1, -1, -1) can exceed
    every pair. For steps of two coordinates the constant is valid for any f.

    Examples
    --------
    >>> import pairstep
    >>> one_norm_constant(pairstep.Quadratic([[2.0, 1.0], [1.0, 3.0]]))
    0.75
    """
    return two_coordinate_constant(objective) / 2


def strong_convexity(objective: Objective, A: ArrayLike | None = None) -> float:
    """Return mu_2, the least ``d'Hd / |d|_2^2`` over sum-zero d.

    It is the smallest eigenvalue of the restricted Hessian, and also a constant of the proximal-PL
    inequality in the 2-norm, with any bounds h: strong convexity gives
    ``D(x, mu) >= 2 mu (F - F*)``, and D grows with its second argument, which the theorems set to
    ``L >= mu``. The same holds for mu_1 in the 1-norm. Proximal-PL constants may be larger. They
    may be positive even if f is not strongly convex, as for g(Ax).

    Parameters
    ----------
    objective : Objective
        An objective with a constant Hessian.
    A : array_like of shape (m, n), optional
        Restrict to the null space of A instead, for the constraint ``A x = c``.

    Returns
    -------
    float
        mu_2, or 0 if f is not strongly convex up to rounding.

    Examples
    --------
    >>> import pairstep
    >>> round(strong_convexity(pairstep.Quadratic([[2.0, 1.0], [1.0, 3.0]])), 12)
    1.5
    """
    H = _hessian(objective)
    Z = scipy.linalg.null_space(np.ones((1, len(H))) if A is None else _matrix(A, len(H)))
    if Z.shape[1] == 0:
        raise ValueError(f"the constraint leaves none of the {len(H)} variable(s) free to move")
    values = np.linalg.eigvalsh(Z.T @ H @ Z)
    return float(values[0]) if values[0] > len(H) * np.finfo(float).eps * values[-1] else 0.0


def one_norm_strong_convexity_bounds(objective: Objective) -> tuple[float, float]:
    """Return ``(mu_2/n, mu_2)``, bounds of mu_1 (Lemma C.1 of the paper).

    On sum-zero vectors, ``mu_1 <= mu_2/2`` holds as well: there ``|d|_inf <= |d|_1/2``, so
    ``|d|_2^2 <= |d|_inf |d|_1 <= |d|_1^2/2``. Both bounds also hold for proximal-PL constants, with
    and without bounds, if ``L1 = L2/2``: ``D_2(x, L2)/n <= D_1(x, L1) <= D_2(x, L2)/2``, where D_1
    and D_2 are `proximal_pl_measure` in the two norms.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> [round(mu, 12) for mu in one_norm_strong_convexity_bounds(pairstep.Quadratic(np.eye(4)))]
    [0.25, 1.0]
    """
    mu_2 = strong_convexity(objective)
    return mu_2 / len(_hessian(objective)), mu_2


def one_norm_strong_convexity(objective: Objective) -> float:
    """Return mu_1, the least ``d'Hd / |d|_1^2`` over sum-zero d, exactly, for n <= 16.

    With Z a basis of the sum-zero vectors and ``M = Z (Z'HZ)^-1 Z'``,

        1 / mu_1 = max of s'Ms over sign vectors s in {-1, 1}^n.

    *Proof.* For sum-zero d, put s = sign(d) and use the Cauchy-Schwarz inequality in the inner
    product of the restricted H: ``|d|_1 = s'd <= sqrt(s'Ms) sqrt(d'Hd)``, so mu_1 is at least the
    right-hand side's inverse. For the best s, ``d = Ms`` has ``d'Hd = s'Ms`` and
    ``|d|_1 >= s'd = s'Ms``, so mu_1 is at most that. QED

    Without bounds it is also the proximal-PL constant. There ``D(x, L)`` is the square of the norm
    dual to the 1-norm on sum-zero vectors, half the range of the gradient g, and ``f - f* =
    g'Mg/2``. Adding a constant to g changes neither (M1 = 0), so center g within its range. The
    largest ``g'Mg`` at half range 1 is the maximum of a convex function on the cube, which is
    attained at a vertex.

    s and -s give the same value, so 2^(n-1) vectors are tried. The result is 0 if mu_2 = 0.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> round(one_norm_strong_convexity(pairstep.Quadratic(np.eye(4))), 12)
    0.25
    """
    return _least_ratio(objective, "mu_1", np.ones(len(_hessian(objective))))


def weighted_norm_constant(objective: Objective, lipschitz: ArrayLike | None = None) -> float:
    """Return L_L, the Lipschitz constant of the gradient in the L-norm (appendix E.3).

    The L-norm is ``|d|_L = sum_i sqrt(L_i) |d_i|``. L_L is the largest ``d'Hd / |d|_L^2`` over
    sum-zero d. Like L1, it is attained by a pair, because the vertices of ``|d|_L <= 1`` on
    sum-zero vectors are pairs and ``d'Hd`` is convex:

        L_L = max of (H_ii + H_jj - 2 H_ij) / (sqrt(L_i) + sqrt(L_j))^2.

    With ``L_i = H_ii`` it is at most 1, because ``|H_ij| <= sqrt(L_i L_j)`` for convex f. So the
    step size 1 is safe, and the step size 1/L_L of the theorem is at least as long.

    Parameters
    ----------
    objective : Objective
        A convex objective with a constant Hessian.
    lipschitz : array_like of shape (n,), optional
        Positive weights L_i; by default the coordinate-wise Lipschitz constants.

    Returns
    -------
    float
        L_L.

    Examples
    --------
    >>> import pairstep
    >>> weighted_norm_constant(pairstep.Quadratic([[4.0, 0.0], [0.0, 1.0]]))
    0.5555555555555556
    """
    H = _hessian(objective)
    root = _roots(objective, lipschitz)
    diagonal = np.diag(H)
    curvature = diagonal[:, None] + diagonal - 2 * H
    return float((curvature / (root[:, None] + root) ** 2).max())


def weighted_norm_strong_convexity(
    objective: Objective, lipschitz: ArrayLike | None = None
) -> float:
    """Return mu_L, the least ``d'Hd / |d|_L^2`` over sum-zero d, exactly, for n <= 16.

    It is the constant of strong convexity in the L-norm of `weighted_norm_constant`, and without
    bounds the proximal-PL constant of appendix E.3. The formula and its proof are those of
    `one_norm_strong_convexity`, with ``s_i = sqrt(L_i)`` or ``-sqrt(L_i)`` instead of 1 or -1.

    Parameters
    ----------
    objective : Objective
        An objective with a constant Hessian.
    lipschitz : array_like of shape (n,), optional
        Positive weights L_i; by default the coordinate-wise Lipschitz constants.

    Returns
    -------
    float
        mu_L, or 0 if f is not strongly convex.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.Quadratic([[4.0, 0.0], [0.0, 1.0]])
    >>> round(weighted_norm_strong_convexity(f), 12)
    0.555555555556
    """
    return _least_ratio(objective, "mu_L", _roots(objective, lipschitz))


def _least_ratio(objective: Objective, name: str, weights: Array) -> float:
    """Return the least ``d'Hd / (sum_i weights_i |d_i|)^2`` over sum-zero d."""
    H = _hessian(objective)
    n = len(H)
    if n > MAX_SIGN_VARIABLES:
        hint = ". Use one_norm_strong_convexity_bounds" if name == "mu_1" else ""
        raise ValueError(
            f"{name} is found by trying 2^(n-1) sign vectors, for n <= "
            f"{MAX_SIGN_VARIABLES}; n is {n}{hint}"
        )
    if strong_convexity(objective) == 0:
        return 0.0
    Z = scipy.linalg.null_space(np.ones((1, n)))
    M = Z @ np.linalg.solve(Z.T @ H @ Z, Z.T)
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    signs = (2.0 * bits - 1) * weights
    return 1 / float(np.einsum("ki,ki->k", signs @ M, signs).max())


def _roots(objective: Objective, lipschitz: ArrayLike | None) -> Array:
    """Return the square roots of the given constants, or of those of the objective."""
    given = lipschitz_constants(objective) if lipschitz is None else lipschitz
    return np.sqrt(checked_constants(given, len(_hessian(objective))))


def proximal_pl_measure(
    gradient: ArrayLike,
    x: ArrayLike,
    constant: float,
    *,
    lower: ArrayLike = -math.inf,
    upper: ArrayLike = math.inf,
    norm: str = "1",
    lipschitz: ArrayLike | None = None,
) -> float:
    """Return D(x, L), by which the proximal-PL inequality measures the distance to optimality.

    Definition 2.2 of the paper, and eq. (13) with bounds::

        D(x, L) = -2 L min { g'(y - x) + L/2 |y - x|^2 : sum y = sum x, lower <= y <= upper }.

    The inequality with constant mu is ``D(x, L)/2 >= mu (f(x) - f*)`` at all feasible x. D never
    decreases as L grows. Without bounds it does not depend on L: it is the square of half the range
    of g in the 1-norm, of ``|g - mean(g)|`` in the 2-norm, and of the largest
    ``(g_i - g_j) / (sqrt(L_i) + sqrt(L_j))`` in the L-norm.

    Parameters
    ----------
    gradient, x : array_like of shape (n,)
        The gradient g at the feasible point x.
    constant : float
        L, a Lipschitz constant of the gradient in the same norm.
    lower, upper : float or array_like of shape (n,)
        Bounds, none by default.
    norm : str
        "1", "2" or "L", the weighted 1-norm of `weighted_norm_constant`.
    lipschitz : array_like of shape (n,), optional
        The weights L_i of the L-norm.

    Returns
    -------
    float
        D(x, L).

    Examples
    --------
    >>> x = [0.25, 0.25, 0.5]
    >>> proximal_pl_measure([3.0, 1.0, 2.0], x, 1.0)
    1.0
    >>> proximal_pl_measure([3.0, 1.0, 2.0], x, 1.0, lower=0.0)
    0.75
    """
    L = positive_number("constant", finite_number("constant", constant))
    g, point = vector("gradient", gradient), vector("x", x)
    if choice("norm", norm, ("1", "2", "L")) == "2":
        low, high = _bounds("x", point, lower, upper)
        box = SumBox(total=float(point.sum()), lower=low, upper=high)
        d = box.project(point - g / L) - point
        return -2 * L * float(g @ d + 0.5 * L * (d @ d))
    rule = "gs-1" if norm == "1" else "gs-1-lipschitz"
    step = propose(rule, g, point, lower, upper, alpha=1 / L, lipschitz=lipschitz)
    return 2 * L * step.decrease


def proximal_pl_constants(objective: Objective, *, bounds: bool = False) -> tuple[float, float]:
    """Return proximal-PL constants ``(mu_1, mu_2)`` of a convex quadratic with a singular Hessian.

    Section 2.2 of the paper: ``f(x) = g(Ax)`` with a strongly convex g satisfies the inequality
    even if A is singular. A quadratic has this form on ``sum x = total`` exactly if it is bounded
    below there. (The dual of an SVM need not be; with finite bounds it still satisfies the
    inequality, with constants that depend on the starting point.)

    *Without bounds* the constants are the best ones. Let P be the projection onto sum-zero vectors.
    Then mu_2 is the smallest nonzero eigenvalue of PHP. ``1/mu_1`` is the maximum of ``v'(PHP)^+
    v`` over the v in the cube ``[-1, 1]^n`` that are the sum of a constant and a vector in the
    range of PHP. It is attained at a vertex of this set, and all vertices are tried.

    *With bounds*, of any position, the constants are lower bounds of the best ones. mu_2 is the
    least squared singular value of ``A P_F``, where ``PHP = A'A``, A has full row rank, P_F sets
    the variables outside F to 0 and centers the others, and F runs over the sets for which ``A
    P_F`` has the rank of A. mu_1 is ``mu_2/n`` (Lemma C.1). If PHP has rank n - 1, these sets are
    all variables, and mu_2 is that of `strong_convexity`.

    Parameters
    ----------
    objective : Objective
        A convex objective with a constant Hessian, bounded below on the constraint.
    bounds : bool
        Whether the variables have bounds.

    Returns
    -------
    mu_1, mu_2 : float
        The constants in the 1-norm and in the 2-norm.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> A = np.random.default_rng(0).standard_normal((3, 6))
    >>> f = pairstep.LeastSquares(A, np.ones(3))
    >>> strong_convexity(f)
    0.0
    >>> [round(mu, 4) for mu in proximal_pl_constants(f)]
    [0.202, 0.6836]
    >>> [round(mu, 4) for mu in proximal_pl_constants(f, bounds=True)]
    [0.0011, 0.0063]
    """
    H = _hessian(objective)
    n = len(H)
    if n > MAX_SIGN_VARIABLES:
        raise ValueError(f"the constants are found by enumeration, for n <= 16; n is {n}")
    P = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(P @ H @ P)
    rounding = n * np.finfo(float).eps * np.abs(H).max()
    if values[0] < -rounding:
        raise ValueError(f"the objective is not convex: its curvature is {values[0]:g} somewhere")
    keep = values > rounding
    values, W = values[keep], vectors[:, keep]
    slope = P @ objective.gradient(np.zeros(n))
    if np.abs(slope - W @ (W.T @ slope)).max() > INPUT_ROUNDING * (1 + np.abs(slope).max()):
        raise ValueError("the objective is unbounded below on the sum, so it is not of the form "
                         "g(Ax)")  # fmt: skip
    if not len(values):
        raise ValueError("the objective is constant on the sum: every point is optimal")
    if bounds:
        mu_2 = _least_singular_value(np.sqrt(values)[:, None] * W.T) ** 2
        return mu_2 / n, mu_2
    return 1 / _largest_on_cube(W, values), float(values[0])


def _largest_on_cube(W: Array, values: Array) -> float:
    """Return the maximum of ``v'W diag(1/values) W'v`` for v in the cube and in span(1, W)."""
    n, rank = W.shape
    size = rank + 1
    if math.comb(n, size) * 2**size > MAX_ENUMERATED:
        raise ValueError(f"too many vertices to enumerate for n = {n} and rank {rank}")
    basis = np.column_stack([np.ones(n), W])
    signs = 2.0 * (np.arange(2 ** (size - 1))[:, None] >> np.arange(size) & 1) - 1
    largest = 0.0
    for rows in combinations(range(n), size):
        square = basis[list(rows)]
        if np.linalg.cond(square) > 1 / INPUT_ROUNDING:
            continue  # these rows do not determine a vertex
        v = np.linalg.solve(square, signs.T)
        v = v[:, (np.abs(basis @ v) <= 1 + INPUT_ROUNDING).all(axis=0)]
        # W is orthogonal to the ones, so the coefficients of its columns are W'v.
        largest = max(largest, float((v[1:] ** 2 / values[:, None]).sum(axis=0).max(initial=0.0)))
    return largest


def _least_singular_value(A: Array) -> float:
    """Return the least singular value of ``A P_F`` over all F for which its rank is that of A."""
    rank, n = A.shape
    least = math.inf
    for size in range(rank + 1, n + 1):
        for F in combinations(range(n), size):
            part = A[:, F]
            singular = np.linalg.svd(part - part.mean(axis=1, keepdims=True), compute_uv=False)
            if singular[-1] > INPUT_ROUNDING * singular[0]:
                least = min(least, float(singular[-1]))
    return least


# The constants that the theorem of each rule needs, and its rate.
_RATES: dict[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "greedy": (("l2", "mu_1"), lambda l2, mu_1: 1 - 2 * mu_1 / l2),
    "random": (("l2", "n", "mu_2"), lambda l2, n, mu_2: 1 - mu_2 / (n**2 * l2)),
    "gs-q": (("l2", "n", "mu_2"), lambda l2, n, mu_2: 1 - mu_2 / (l2 * (n - 1))),
    "gs-1": (("l2", "mu_1"), lambda l2, mu_1: 1 - 2 * mu_1 / l2),
    "gs-1-lipschitz": (("l_l", "mu_l"), lambda l_l, mu_l: 1 - mu_l / l_l),
}


def rate(
    rule: str,
    *,
    l2: float | None = None,
    mu_1: float | None = None,
    mu_2: float | None = None,
    n: int | None = None,
    l_l: float | None = None,
    mu_l: float | None = None,
) -> float:
    """Return the factor per iteration by which the theorems guarantee that ``f - f*`` shrinks.

    ==============  ====================  ======  ===============================================
    rule            factor                bounds  source
    ==============  ====================  ======  ===============================================
    greedy          1 - 2 mu_1/L2         no      Theorem 2.3
    random          1 - mu_2/(n^2 L2)     no      eq. (8), in expectation; see `sharp_random_rate`
    gs-q            1 - mu_2/(L2 (n-1))   yes     Theorems 3.1 and D.4
    gs-1            1 - 2 mu_1/L2         yes     Theorem 3.2, for convex f
    gs-1-lipschitz  1 - mu_L/L_L          yes     appendix E.3; with bounds, for convex f
    ==============  ====================  ======  ===============================================

    The step size is 1/L2, 1/L1 = 2/L2 for gs-1, and 1/L_L for gs-1-lipschitz. The paper has the
    last rate without bounds. The proof is the same with bounds, because the rule minimizes its
    model within them. The step that minimizes f along the chosen direction has the same rate; for
    backtracking see `backtracking_rate`.

    Parameters
    ----------
    rule : str
        "greedy", "random", "gs-q", "gs-1" or "gs-1-lipschitz".
    l2 : float, optional
        The 2-coordinate constant.
    mu_1, mu_2 : float, optional
        Proximal-PL constants in the 1-norm and the 2-norm, such as those of strong convexity.
    n : int, optional
        The number of variables.
    l_l, mu_l : float, optional
        The constants `weighted_norm_constant` and `weighted_norm_strong_convexity` in the L-norm.

    Returns
    -------
    float
        The factor.

    Examples
    --------
    >>> rate("greedy", l2=2.0, mu_1=0.25)
    0.75
    >>> rate("gs-q", l2=2.0, mu_2=1.0, n=3)
    0.75
    >>> rate("gs-1-lipschitz", l_l=0.5, mu_l=0.125)
    0.75
    """
    needs, factor = _RATES[choice("rule", rule, _RATES)]
    given = {"l2": l2, "n": n, "mu_1": mu_1, "mu_2": mu_2, "l_l": l_l, "mu_l": mu_l}
    missing = [name for name in needs if given[name] is None]
    if missing:
        raise ValueError(f"the rate of rule {rule!r} needs {' and '.join(missing)}")
    constants = {name: finite_number(name, given[name]) for name in needs}
    _checked(**constants)
    return factor(**constants)


def backtracking_rate(
    factor: float, *, sufficient_decrease: float = 0.25, shrink: float = 0.5
) -> float:
    """Return the factor per iteration if the step 1/L2 is replaced by a backtracking line search.

    Section 2.3 of the paper: "the same rate holds up to a constant". Without bounds, the greedy
    pair has the slope ``gap = g_i - g_j``. Let a step of length t be accepted if f decreases by at
    least ``c t gap``, and otherwise be multiplied by b. The descent lemma ``f(t) <= f(0) - t gap +
    L2 t^2`` accepts every ``t <= (1 - c) gap/L2``. So if the first trial is not shorter than that,
    the accepted t is at least ``b (1 - c) gap/L2``, and the decrease is at least ``4 c (1 - c) b``
    times the ``gap^2/(4 L2)`` of the step 1/L2. The factor ``1 - q`` becomes ``1 - 4 c (1 - c) b
    q``. The solver's backtracking has c = 1/4 and b = 1/2, so the constant is 3/8.

    Parameters
    ----------
    factor : float
        The factor with the step 1/L2, from `rate`.
    sufficient_decrease : float
        c, the fraction of the decrease predicted by the slope that is required.
    shrink : float
        b, by which a rejected step is multiplied.

    Returns
    -------
    float
        The factor with backtracking.

    Examples
    --------
    >>> backtracking_rate(rate("greedy", l2=2.0, mu_1=0.25))
    0.90625
    """
    for name, value in (("sufficient_decrease", sufficient_decrease), ("shrink", shrink)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {value:g}")
    if not 0 <= finite_number("factor", factor) <= 1:
        raise ValueError(f"factor must be between 0 and 1, got {factor:g}")
    return 1 - 4 * sufficient_decrease * (1 - sufficient_decrease) * shrink * (1 - factor)


def sharp_random_rate(*, l2: float, mu_2: float, n: int, bounds: bool = False) -> float:
    """Return the rate of uniformly random pairs, sharper than the paper's eq. (8).

    *Without bounds:* the pair (i, j) gains ``(g_i - g_j)^2/(4 L2)`` with the step 1/L2. The mean
    over all pairs is ``|Pg|^2/(2 (n-1) L2)``, where Pg is the gradient minus its mean, and ``|Pg|^2
    >= 2 mu_2 (f - f*)``. So the rate is ``1 - mu_2/((n-1) L2)``, that of gs-q. It is attained by H
    = I.

    *With bounds:* the best step of all coordinates is a sum of at most n - 1 conformal pairs, which
    together gain as much (the proof of Proposition D.8). Each pair is drawn with probability
    ``2/(n (n-1))``, so the rate is ``1 - 2 mu_2/(n (n-1) L2)``. It is attained if only one pair can
    change.

    Examples
    --------
    >>> sharp_random_rate(l2=2.0, mu_2=1.0, n=3)
    0.75
    >>> rate("random", l2=2.0, mu_2=1.0, n=3)
    0.9444444444444444
    """
    _checked(l2=l2, n=n, mu_2=mu_2)
    pairs = n * (n - 1) / 2 if bounds else n - 1
    return 1 - mu_2 / (pairs * l2)


def guaranteed_decrease(
    rule: str,
    gradient: ArrayLike,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    l2: float,
) -> float:
    """Return the decrease of f that the descent lemma guarantees for the step of a rule.

    It is minus the least ``g'd + L1/2 |d|_1^2`` over the steps d that the rule considers, with ``L1
    = L2/2``. On pairs, ``L1/2 |d|_1^2 = L2/2 |d|_2^2``. GS-1 considers all feasible steps, GS-q all
    pairs, libsvm all pairs with the first variable of GS-s, and GS-s one pair. So at every point

        GS-1 >= GS-q >= libsvm >= GS-s,

    and GS-1 guarantees the most progress (abstract of the paper). Its guarantee needs a convex f.
    The true decrease of f can be in any order.

    Parameters
    ----------
    rule : str
        "gs-1", "gs-q", "libsvm" or "gs-s".
    gradient, x : array_like of shape (n,)
        The gradient at the feasible point x.
    lower, upper : float or array_like of shape (n,)
        The bounds.
    l2 : float
        The 2-coordinate constant.

    Returns
    -------
    float
        The guaranteed decrease.

    Examples
    --------
    >>> at = [3.0, 1.0, 0.0], [0.01, 0.99, 0.0], 0.0, 1.0
    >>> for rule in ("gs-1", "gs-q", "libsvm", "gs-s"):
    ...     print(rule, round(guaranteed_decrease(rule, *at, l2=1.0), 4))
    gs-1 0.27
    gs-q 0.25
    libsvm 0.0299
    gs-s 0.0299
    """
    choice("rule", rule, ("gs-1", "gs-q", "libsvm", "gs-s"))
    alpha = (2 if RULES[rule].one_norm else 1) / positive_number("l2", finite_number("l2", l2))
    return propose(rule, gradient, x, lower, upper, alpha=alpha).decrease


def gs_q_one_sided(
    gradient: ArrayLike,
    x: ArrayLike,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    alpha: float,
) -> Step:
    """Return the step of GS-q in O(n) if there are only lower or only upper bounds (section 3.2).

    With only lower bounds, every variable can increase without limit. The decrease of the model
    for the pair (i, j), ``max d (g_i - g_j) - d^2/alpha`` over ``0 <= d <= x_i - lower_i``, never
    decreases as g_j falls. So a variable j with the smallest derivative is a best partner for every
    i, and one pass over i finds the best pair. With only upper bounds, exchange the roles of i and
    j. The paper attributes this case to Beck (2014).

    Parameters
    ----------
    gradient, x : array_like of shape (n,)
        The gradient at the point x within its bounds.
    lower, upper : float or array_like of shape (n,), optional
        The bounds, of which one must be given.
    alpha : float
        The step size.

    Returns
    -------
    Step
        The step; empty if no pair decreases the model.

    Examples
    --------
    >>> step = gs_q_one_sided([3.0, 1.0, 0.0], [0.01, 0.99, 0.0], lower=0.0, alpha=1.0)
    >>> step.indices.tolist(), step.delta.tolist(), step.decrease
    ([1, 2], [-0.5, 0.5], 0.25)
    """
    g, point = vector("gradient", gradient), vector("x", x)
    positive_number("alpha", finite_number("alpha", alpha))
    if (lower is None) == (upper is None):
        raise ValueError("gs_q_one_sided needs either lower or upper bounds")
    low = -math.inf if lower is None else lower
    low, high = _bounds("x", point, low, math.inf if upper is None else upper)
    slack, sign = (high - point, -1.0) if lower is None else (point - low, 1.0)
    partner = int(np.argmin(sign * g))  # the best partner of every variable, without a bound
    gap = sign * (g - g[partner])
    amount = np.minimum(alpha * gap / 2, slack)
    decrease = amount * (gap - amount / alpha)
    best = int(np.argmax(decrease))
    if not decrease[best] > 0:
        return no_step()
    pair = (best, partner) if lower is not None else (partner, best)
    return pair_step(*pair, float(amount[best]), float(decrease[best]))


def gs_1_by_selection(
    gradient: ArrayLike, x: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, alpha: float
) -> Step:
    """Return the step of GS-1 in O(n), by selection instead of sorting.

    The paper sorts, and expects that randomized algorithms take O(n) (section 6). This algorithm
    does: with the selection algorithm of `numpy.partition`, whose worst case is linear, in O(n)
    time for all inputs.

    Let t be half the 1-norm of the step. The best step of norm 2 t decreases the variables with the
    largest derivatives by t in total, and increases those with the smallest. Let G(t+) and F(t+) be
    the derivatives of the variables that would provide and receive the next unit. The model
    decreases with t as long as ``G(t+) - F(t+) > 4 t/alpha``, and not after that (`docs/theory`).
    So one comparison at a given t shows on which side of it the best t lies.

    Each side keeps a list of the variables that may change by a part of their maximum at the best
    t, and the total of those that change by their maximum. Each round splits the longer list at its
    median derivative. The total of its first half is a trial value of t. The comparison at t needs
    one weighted selection in the other list, which takes linear time as well. It shows that the
    first half changes by its maximum, or that the second half does not change. So a round removes
    at least a sixth of all entries in time proportional to their number. The rounds end with one
    variable on each side, between which the model is a parabola.

    Parameters
    ----------
    gradient, x : array_like of shape (n,)
        The gradient at the point x within its bounds.
    lower, upper : float or array_like of shape (n,)
        The bounds.
    alpha : float
        The step size.

    Returns
    -------
    Step
        The step; empty if no step decreases the model.

    Examples
    --------
    >>> step = gs_1_by_selection([3.0, 1.0, 0.0], [0.01, 0.99, 0.0], 0.0, 1.0, alpha=2.0)
    >>> step.indices.tolist(), step.delta.round(6).tolist(), round(step.decrease, 6)
    ([0, 1, 2], [-0.01, -0.49, 0.5], 0.27)
    """
    g, point = vector("gradient", gradient), vector("x", x)
    positive_number("alpha", finite_number("alpha", alpha))
    low, high = _bounds("x", point, lower, upper)
    sides = [_Side(g, point - low), _Side(-g, high - point)]
    if not all(len(side.score) for side in sides):
        return no_step()
    while max(len(side.score) for side in sides) > 1:
        longer, other = sorted(sides, key=lambda side: -len(side.score))
        half = len(longer.score) // 2
        order = np.argpartition(-longer.score, half - 1)
        first, second = order[:half], order[half:]
        t = longer.base + float(longer.slack[first].sum())
        at_t = longer.score[second].max() + other.score_after(t) - 4 * t / alpha
        if other.base > t or at_t > 0:
            longer.use(first, t)
            longer.keep(second)
        else:
            longer.keep(first)
    least = max(side.base for side in sides)
    most = min(side.base + float(side.slack[0]) for side in sides)
    peak = alpha * float(sides[0].score[0] + sides[1].score[0]) / 4
    total = min(max(peak, least), most)
    if not total > 0:
        return no_step()
    d = np.zeros_like(g)
    for sign, side in zip((-1, 1), sides, strict=True):
        d[side.used] += sign * side.used_slack
        d[side.index[0]] += sign * min(total - side.base, float(side.slack[0]))
    changed = np.flatnonzero(d)
    return Step(changed, d[changed], -float(g @ d) - 2 * total**2 / alpha)


class _Side:
    """The variables of one side of GS-1: the undecided ones, and those that change fully."""

    def __init__(self, score: Array, slack: Array) -> None:
        self.index = np.flatnonzero(slack > 0)
        self.score, self.slack = score[self.index], slack[self.index]
        self.base = 0.0  # total change of the variables that change by their maximum
        self.used = np.empty(0, np.int64)
        self.used_slack = np.empty(0)

    def use(self, which: NDArray[np.int64], base: float) -> None:
        """Let these variables change by their maximum."""
        self.used = np.append(self.used, self.index[which])
        self.used_slack = np.append(self.used_slack, self.slack[which])
        self.base = base

    def keep(self, which: NDArray[np.int64]) -> None:
        """Keep only these variables undecided."""
        self.index, self.score, self.slack = self.index[which], self.score[which], self.slack[which]

    def score_after(self, t: float) -> float:
        """Return the score of the variable that changes next after a total change of t."""
        score, slack, rest = self.score, self.slack, t - self.base
        if not slack.sum() > rest:
            return -math.inf
        while len(score) > 1:
            half = len(score) // 2
            order = np.argpartition(-score, half - 1)
            first, second = order[:half], order[half:]
            in_first = float(slack[first].sum())
            half_with_it = first if in_first > rest else second
            rest -= 0.0 if in_first > rest else in_first
            score, slack = score[half_with_it], slack[half_with_it]
        return float(score[0])


def small_progress_example(n: int, epsilon: float) -> tuple[Quadratic, SumBox, Array]:
    """Return a problem on which GS-s and libsvm make arbitrarily small progress (section 3.1).

    The Hessian is the identity, and each variable lies in [0, 1]. At x0 the first n - 2 variables
    have the derivative 3 but can decrease only by epsilon. The last two have the derivatives 1 and
    0, and a step between them alone decreases f by 1/4. GS-s decreases the variable with the
    largest derivative, so each of its first n - 2 steps decreases f by at most ``3 epsilon``. So
    does every step of the libsvm rule, which chooses the same first variable. Reflected, ``x -> 1 -
    x``, the example applies to rules that choose the variable to increase first, as LIBSVM does.
    GS-q decreases f by 1/4 at once, and GS-1 by more.

    Parameters
    ----------
    n : int
        The number of variables, at least 3.
    epsilon : float
        The distance of the first variables to their lower bound; at most ``1/(2 (n - 2))``.

    Returns
    -------
    objective : Quadratic
        The function f.
    constraint : SumBox
        The sum 1 and the bounds 0 and 1.
    x0 : ndarray of shape (n,)
        The starting point.

    Examples
    --------
    >>> f, box, x0 = small_progress_example(3, 1e-6)
    >>> at = f.gradient(x0), x0, 0.0, 1.0
    >>> round(guaranteed_decrease("gs-s", *at, l2=1.0), 9)
    3e-06
    >>> round(guaranteed_decrease("gs-q", *at, l2=1.0), 9)
    0.25
    """
    if n < 3:
        raise ValueError(f"n must be at least 3, got {n}")
    if not 0 < finite_number("epsilon", epsilon) <= 0.5 / (n - 2):
        raise ValueError(f"epsilon must be between 0 and {0.5 / (n - 2):g}, got {epsilon:g}")
    x0 = np.append(np.full(n - 2, epsilon), [1 - (n - 2) * epsilon, 0.0])
    gradient = np.append(np.full(n - 2, 3.0), [1.0, 0.0])
    box = SumBox(total=1.0, lower=0.0, upper=1.0)
    return Quadratic(np.eye(n), gradient - x0), box, x0


def three_updates_example(epsilon: float = 0.1) -> tuple[Quadratic, SumBox, Array]:
    """Return a problem on which GS-1 changes three variables in every second iteration, forever.

    Section 3.3 of the paper says that GS-1 changes more than two variables only finitely often.
    That holds if the limit is nondegenerate: no variable at a bound there has a derivative equal to
    the multiplier of the sum (`docs/theory`). Here the optimum is 0, where all derivatives are 0
    and all variables are at a bound. The bounds are a cone and f is homogeneous, so each iteration
    depends only on the direction of x. From x0, two iterations shrink x and exchange the roles of
    the variables, ``x -> (-x_2, -x_1, -x_4, -x_3)``, so the iterations repeat. In floating-point
    arithmetic they repeat until x is about 1e-15.

    Parameters
    ----------
    epsilon : float
        Added to the diagonal of the Hessian, to break ties; between 0 and 1/2.

    Returns
    -------
    objective : Quadratic
        The function ``x'Hx/2``.
    constraint : SumBox
        The sum 0 and the bounds [-1, 0], [0, 1], [0, 1] and [-1, 0].
    x0 : ndarray of shape (4,)
        The starting point, ``(-1, 1 - q, q, 0)``, with q to machine precision.

    Examples
    --------
    >>> import pairstep
    >>> f, box, x = three_updates_example()
    >>> for _ in range(6):
    ...     g = f.gradient(x)
    ...     step = pairstep.propose("gs-1", g, x, box.lower, box.upper, alpha=2 / 6.1)
    ...     x[step.indices] += step.delta
    ...     print(len(step.indices), end=" ")
    3 2 3 2 3 2
    """
    if not 0 < finite_number("epsilon", epsilon) <= 0.5:
        raise ValueError(f"epsilon must be between 0 and 1/2, got {epsilon:g}")
    l2 = 6 + epsilon
    q = 0.75
    for _ in range(100):  # a contraction: its fixed point is the direction that repeats
        t = (4 + 8 * q + epsilon) / (2 * l2)
        q = (t - q) / (1 - q - (4 + epsilon) * (2 - q - t) / (2 * l2))
    H = np.array([[4.0, 0, -2, -2], [0, 4, -2, -2], [-2, -2, 4, 4], [-2, -2, 4, 4]])
    box = SumBox(total=0.0, lower=[-1.0, 0, 0, -1], upper=[0.0, 1, 1, 0])
    return Quadratic(H + epsilon * np.eye(4)), box, np.array([-1.0, 1 - q, q, 0.0])


def conformal_pairs(
    d: ArrayLike, groups: Sequence[Sequence[int]] = ()
) -> list[tuple[int, int, float]]:
    """Write a sum-zero step as a sum of at most n - 1 conformal pair steps (Lemma D.3).

    *Conformal* means that a pair decreases only variables with ``d_i < 0`` and increases only those
    with ``d_i > 0``. So if ``x + d`` is within bounds, then so is x plus any of the pairs.

    Groups extend this to a tree of sums: any two groups must be disjoint or nested. The pairs are
    then also conformal for every group: they change its sum in the direction in which d changes it.
    So each of them keeps all limits on group sums that d keeps. (Match inside the smallest groups
    first. What is left in a group after that has the sign of its sum.)

    Parameters
    ----------
    d : array_like of shape (n,)
        A step; its sum must be 0.
    groups : sequence of sequences of int, optional
        The variables of each group.

    Returns
    -------
    list of (int, int, float)
        Triples ``(i, j, amount)``: decrease i and increase j by the positive amount.

    Examples
    --------
    >>> conformal_pairs([-3.0, 1.0, 2.0, 0.0])
    [(0, 1, 1.0), (0, 2, 2.0)]
    >>> conformal_pairs([-1.0, -1.0, 1.0, 1.0], groups=[[0, 2], [1, 3]])
    [(0, 2, 1.0), (1, 3, 1.0)]
    """
    left = vector("d", d).copy()
    n = len(left)
    if abs(math.fsum(left)) > INPUT_ROUNDING * np.abs(left).max(initial=0.0):
        raise ValueError(f"the sum of d must be 0, got {math.fsum(left):g}")
    nodes = sorted((frozenset(group) for group in groups), key=len)
    for node, other in combinations(nodes, 2):
        if node & other and not node <= other:
            raise ValueError(
                f"groups must be disjoint or nested, but {sorted(node)} and {sorted(other)} overlap"
            )
    pairs = []
    for node in [*nodes, frozenset(range(n))]:
        members = sorted(node)
        down = [i for i in members if left[i] < 0]
        up = [j for j in members if left[j] > 0]
        while down and up:
            i, j = down[0], up[0]
            amount = min(-left[i], left[j])
            pairs.append((i, j, float(amount)))
            left[i] += amount
            left[j] -= amount
            if left[i] == 0:
                down.pop(0)
            if left[j] == 0:
                up.pop(0)
    return pairs


def block_rate(n: int, tau: int, l2: float, mu_2: float) -> float:
    """Return the rate of GS-q with blocks of size tau, ``1 - mu_2/(L2 (n - tau + 1))``.

    This is Proposition D.8, for the constraint ``A x = c`` and separable convex h. The paper
    adds that the rate improves with tau. That holds for a fixed L2, but L2 is the constant of
    blocks of size tau, which grows with tau: for ``H = vv' + I/10``, v = (1, 1, 1, -1, -1, -1),
    blocks of 4 have a worse rate than pairs. (Two slips in the proof are harmless: its
    ``|B| <= n-1`` should read ``n - tau + 1``, and its second-to-last step lacks the L2.)

    Examples
    --------
    >>> block_rate(n=6, tau=3, l2=2.0, mu_2=1.0)
    0.875
    """
    if not 1 < tau <= n:
        raise ValueError(f"tau must be between 2 and n = {n}, got {tau}")
    _checked(l2=l2, n=n, mu_2=mu_2)
    return 1 - mu_2 / (l2 * (n - tau + 1))


def block_constant(objective: Objective, A: ArrayLike, tau: int) -> float:
    """Return the Lipschitz constant over steps of tau coordinates that keep ``A x``.

    It is found by enumerating all blocks.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> f = pairstep.Quadratic(np.diag([1.0, 2.0, 3.0]))
    >>> round(block_constant(f, np.ones((1, 3)), 2), 12), two_coordinate_constant(f)
    (2.5, 2.5)
    """
    H = _hessian(objective)
    matrix = _matrix(A, len(H))
    largest = 0.0
    for b in _blocks(matrix, tau):
        Z = scipy.linalg.null_space(matrix[:, b])
        largest = max(largest, float(np.linalg.eigvalsh(Z.T @ H[np.ix_(b, b)] @ Z)[-1]))
    return largest


def block_descent(
    objective: Objective,
    A: ArrayLike,
    c: ArrayLike,
    x0: ArrayLike,
    tau: int,
    n_iter: int,
    *,
    lower: ArrayLike = -math.inf,
    upper: ArrayLike = math.inf,
    l2: float | None = None,
) -> tuple[Array, Array]:
    """Minimize under ``A x = c`` by block coordinate descent with the GS-q rule (appendix D).

    For research on small problems: every iteration tries all blocks of tau coordinates, and in each
    block all sets of active bounds.

    Parameters
    ----------
    objective : Objective
        The function to minimize.
    A : array_like of shape (m, n)
        The constraints.
    c : array_like of shape (m,)
        Their right-hand side.
    x0 : array_like of shape (n,)
        A feasible point.
    tau : int
        The size of a block. It must exceed the rank of A, because smaller blocks cannot change.
    n_iter : int
        Number of iterations.
    lower, upper : float or array_like of shape (n,)
        Bounds, none by default.
    l2 : float, optional
        The curvature of the model; by default `block_constant`.

    Returns
    -------
    x : ndarray of shape (n,)
        The last point.
    values : ndarray of shape (n_iter + 1,)
        The objective at every point, x0 included.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> f = pairstep.Quadratic(np.eye(4), [0.0, 1.0, 2.0, 3.0])
    >>> A = [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 0.0]]
    >>> x, values = block_descent(f, A, [1.0, 0.0], np.full(4, 0.25), tau=3, n_iter=100)
    >>> x.round(6)
    array([ 1.25,  1.25, -0.25, -1.25])
    """
    x = vector("x0", x0).copy()
    n = len(x)
    matrix = _matrix(A, n)
    low, high = _bounds("x0", x, lower, upper)
    residual = np.abs(matrix @ x - vector("c", c, len(matrix))).max()
    if residual > INPUT_ROUNDING * (1 + np.abs(matrix) @ np.abs(x)).max():
        raise ValueError(f"x0 is infeasible: A x0 differs from c by {residual:g}")
    active_sets = 3**tau if np.isfinite([low, high]).any() else 1
    blocks = list(_blocks(matrix, tau, active_sets))
    curvature = block_constant(objective, matrix, tau) if l2 is None else l2
    positive_number("l2", finite_number("l2", curvature))

    values = [objective.value(x)]
    for _ in range(n_iter):
        g = objective.gradient(x)
        steps = [
            (*_block_step(g[b], matrix[:, b], low[b] - x[b], high[b] - x[b], curvature), b)
            for b in blocks
        ]
        _, d, b = min(steps, key=lambda step: step[0])
        x[b] = np.clip(x[b] + d, low[b], high[b])
        values.append(objective.value(x))
    return x, np.array(values)


def _block_step(
    g: Array, A: Array, low: Array, high: Array, curvature: float
) -> tuple[float, Array]:
    """Minimize ``g'd + curvature |d|^2/2`` under ``A d = 0`` and ``low <= d <= high``.

    For given entries of d at bounds, the others solve a problem without bounds. All active sets are
    tried; those that are not optimal give a feasible d that is no better.
    """
    best = 0.0, np.zeros_like(g)
    free = [math.nan]
    options = (free + [e for e in ends if math.isfinite(e)] for ends in zip(low, high, strict=True))
    for choices in product(*options):
        d = np.array(choices)
        at = np.isnan(d)
        fixed = A[:, ~at] @ d[~at]
        # The least-norm solution of A d = 0 for the free entries, plus the projected gradient step.
        inverse = np.linalg.pinv(A[:, at])
        step = g[at] / curvature
        d[at] = -inverse @ fixed - (step - inverse @ (A[:, at] @ step))
        feasible = (low <= d).all() and (d <= high).all()
        if feasible and np.abs(A @ d).max() <= STEP_ROUNDING * (1 + np.abs(A) @ np.abs(d)).max():
            model = float(g @ d + 0.5 * curvature * (d @ d))
            best = min(best, (model, d), key=lambda step: step[0])
    return best


Block = NDArray[np.int64]


def _blocks(A: Array, tau: int, active_sets: int = 1) -> Iterator[Block]:
    """Return all blocks of tau coordinates; raise if they cannot change or are too many."""
    rank, n = int(np.linalg.matrix_rank(A)), A.shape[1]
    if not rank < tau <= n:
        raise ValueError(f"tau must be above the rank {rank} of A and at most n = {n}, got {tau}")
    if math.comb(n, tau) * active_sets > MAX_ENUMERATED:
        raise ValueError(
            f"too much to enumerate: {math.comb(n, tau)} blocks of {tau} among {n} variables"
            + (f", {active_sets} sets of active bounds in each" if active_sets > 1 else "")
            + f"; the limit is {MAX_ENUMERATED} in total, so use a smaller n or tau"
        )
    return (np.array(b, np.int64) for b in combinations(range(n), tau))


def _hessian(objective: Objective) -> Array:
    H = objective.hessian
    if H is None:
        raise ValueError(f"this needs a dense constant Hessian, but {objective!r} has none")
    return H


def _bounds(name: str, x: Array, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
    """Return the bounds of a feasible point as vectors."""
    low = full_vector("lower", lower, len(x), infinite=True)
    high = full_vector("upper", upper, len(x), infinite=True)
    require_within(name, x, low, high)
    return low, high


def _matrix(A: ArrayLike, n: int) -> Array:
    matrix = array("A", A, 2)
    require_finite("A", matrix)
    if matrix.shape[1] != n:
        raise ValueError(f"A must have {n} columns, one per variable, got shape {matrix.shape}")
    return matrix


def _checked(
    l2: float = math.inf,
    n: float = 2,
    mu_1: float = 0.0,
    mu_2: float = 0.0,
    l_l: float = math.inf,
    mu_l: float = 0.0,
) -> None:
    """Check that the constants of a rate are consistent."""
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n:g}")
    for of, constant, name, mu, most in (
        ("l2", l2, "mu_1", mu_1, l2 / 2),
        ("l2", l2, "mu_2", mu_2, l2),
        ("l_l", l_l, "mu_l", mu_l, l_l),
    ):
        positive_number(of, constant)
        if not 0 <= finite_number(name, mu) <= most * (1 + INPUT_ROUNDING):
            raise ValueError(
                f"{name} must be between 0 and {most:g} for {of} = {constant:g}, got {mu:g}"
            )
