"""The constants and convergence rates of the paper, as functions.

The tests check them on small quadratics. In some places the paper's bounds are loose, or its claims
go beyond its proofs:

- *Random selection* (eq:random) is loose by a factor of about n without bounds; see
  `sharp_random_rate`. The paper's claim that greedy is faster by a factor between O(n) and O(n^2)
  is based on it. Relative to the sharp rate the factor is between 2 (n - 1)/n and n - 1. With
  bounds, the number of steps of random selection can grow as n^2/2.
- ``mu_1 <= mu_2`` is loose by a factor of 2; see `one_norm_strong_convexity_bounds`.
- *L2* as defined in eq:L2-smooth, with the 2-norm of both partial derivatives, exceeds the constant
  that the proofs use unless ``H_ii = H_jj``; see `two_coordinate_constant`.
- ``L1 = L2/2`` bounds steps of more than two coordinates, such as those of GS-1 with bounds, only
  for convex f; see `one_norm_constant`.
- *Larger blocks* may not have a better rate, because their constant grows as well; see
  `block_rate`.
- Under ``sum a_i x_i = c`` the paper's greedy rule divides by ``a_i + a_j``. GS-q divides by
  ``sqrt(a_i^2 + a_j^2)``. The variables that turn the constraint into a plain sum are ``a_i x_i``,
  not ``x_i / a_i``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ._validation import (
    Array,
    array,
    choice,
    finite_number,
    full_vector,
    positive_number,
    require_finite,
    vector,
)
from .objectives import Objective

__all__ = [
    "block_constant",
    "block_descent",
    "block_rate",
    "lipschitz_constants",
    "one_norm_constant",
    "one_norm_strong_convexity",
    "one_norm_strong_convexity_bounds",
    "rate",
    "sharp_random_rate",
    "strong_convexity",
    "two_coordinate_constant",
]

# Largest n for `one_norm_strong_convexity`. Each additional variable doubles its time and memory.
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
    """Return L2, the largest ``(H_ii + H_jj - 2 H_ij)/2`` of a pair (prop:second-order-def).

    This is the constant that the descent lemma needs. Taken literally, eq. (L2-smooth) is
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
    """Return L1 = L2/2, the Lipschitz constant in the 1-norm on sum-zero vectors (prop:L12).

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
    """Return ``(mu_2/n, mu_2)``, bounds of mu_1 (appendix C of the paper).

    On sum-zero vectors, ``mu_1 <= mu_2/2`` holds as well: there ``|d|_inf <= |d|_1/2``, so
    ``|d|_2^2 <= |d|_inf |d|_1 <= |d|_1^2/2``.

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
    H = _hessian(objective)
    n = len(H)
    if n > MAX_SIGN_VARIABLES:
        raise ValueError(
            "mu_1 is found by trying 2^(n-1) sign vectors, for n <= "
            f"{MAX_SIGN_VARIABLES}; n is {n}. Use one_norm_strong_convexity_bounds"
        )
    if strong_convexity(objective) == 0:
        return 0.0
    Z = scipy.linalg.null_space(np.ones((1, n)))
    M = Z @ np.linalg.solve(Z.T @ H @ Z, Z.T)
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    signs = 2.0 * bits - 1
    return 1 / float(np.einsum("ki,ki->k", signs @ M, signs).max())


# The arguments that the theorem of each rule needs besides L2, and its rate.
_RATES: dict[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "greedy": (("mu_1",), lambda l2, mu_1: 1 - 2 * mu_1 / l2),  # eq:greedyEqnRate
    "random": (("n", "mu_2"), lambda l2, n, mu_2: 1 - mu_2 / (n**2 * l2)),  # eq:random
    "gs-q": (("n", "mu_2"), lambda l2, n, mu_2: 1 - mu_2 / (l2 * (n - 1))),  # convergence_box
    "gs-1": (("mu_1",), lambda l2, mu_1: 1 - 2 * mu_1 / l2),  # eq:greedyRate
}


def rate(
    rule: str,
    *,
    l2: float,
    mu_1: float | None = None,
    mu_2: float | None = None,
    n: int | None = None,
) -> float:
    """Return the factor per iteration by which the theorems guarantee that ``f - f*`` shrinks.

    ======  ====================  ======  =======================================
    rule    factor                bounds  theorem
    ======  ====================  ======  =======================================
    greedy  1 - 2 mu_1/L2         no      eq:mainThm
    random  1 - mu_2/(n^2 L2)     no      eq:random, in expectation; loose, see `sharp_random_rate`
    gs-q    1 - mu_2/(L2 (n-1))   yes     theorem:convergence_box
    gs-1    1 - 2 mu_1/L2         yes     eq:greedyRate, for convex f
    ======  ====================  ======  =======================================

    The step size is 1/L2, and 1/L1 = 2/L2 for gs-1.

    Parameters
    ----------
    rule : str
        "greedy", "random", "gs-q" or "gs-1".
    l2 : float
        The 2-coordinate constant.
    mu_1, mu_2 : float, optional
        Proximal-PL constants in the 1-norm and the 2-norm, such as those of strong convexity.
    n : int, optional
        The number of variables.

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
    """
    needs, factor = _RATES[choice("rule", rule, _RATES)]
    given = {"n": n, "mu_1": mu_1, "mu_2": mu_2}
    missing = [name for name in needs if given[name] is None]
    if missing:
        raise ValueError(f"the rate of rule {rule!r} needs {' and '.join(missing)}")
    constants = {name: finite_number(name, given[name]) for name in needs}
    return factor(_checked(l2, **constants), **constants)


def sharp_random_rate(*, l2: float, mu_2: float, n: int, bounds: bool = False) -> float:
    """Return the rate of uniformly random pairs, sharper than the paper's eq. (random).

    *Without bounds:* the pair (i, j) gains ``(g_i - g_j)^2/(4 L2)`` with the step 1/L2. The mean
    over all pairs is ``|Pg|^2/(2 (n-1) L2)``, where Pg is the gradient minus its mean, and ``|Pg|^2
    >= 2 mu_2 (f - f*)``. So the rate is ``1 - mu_2/((n-1) L2)``, that of gs-q. It is attained by H
    = I.

    *With bounds:* the best step of all coordinates is a sum of at most n - 1 conformal pairs, which
    together gain as much (the proof of prop:gs-q-general-rate). Each pair is drawn with probability
    ``2/(n (n-1))``, so the rate is ``1 - 2 mu_2/(n (n-1) L2)``. It is attained if only one pair can
    change.

    Examples
    --------
    >>> sharp_random_rate(l2=2.0, mu_2=1.0, n=3)
    0.75
    >>> rate("random", l2=2.0, mu_2=1.0, n=3)
    0.9444444444444444
    """
    _checked(l2, n=n, mu_2=mu_2)
    pairs = n * (n - 1) / 2 if bounds else n - 1
    return 1 - mu_2 / (pairs * l2)


def block_rate(n: int, tau: int, l2: float, mu_2: float) -> float:
    """Return the rate of GS-q with blocks of size tau, ``1 - mu_2/(L2 (n - tau + 1))``.

    This is prop:gs-q-general-rate, for the constraint ``A x = c`` and separable convex h. The paper
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
    return 1 - mu_2 / (_checked(l2, n=n, mu_2=mu_2) * (n - tau + 1))


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
    low, high = (full_vector(*b, n, infinite=True) for b in (("lower", lower), ("upper", upper)))
    if (x < low).any() or (x > high).any():
        i = int(np.argmax((x < low) | (x > high)))
        raise ValueError(
            f"x0 is infeasible: x0[{i}] = {x[i]:g} is outside its bounds [{low[i]:g}, {high[i]:g}]"
        )
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


def _matrix(A: ArrayLike, n: int) -> Array:
    matrix = array("A", A, 2)
    require_finite("A", matrix)
    if matrix.shape[1] != n:
        raise ValueError(f"A must have {n} columns, one per variable, got shape {matrix.shape}")
    return matrix


def _checked(l2: float, n: float = 2, mu_1: float = 0.0, mu_2: float = 0.0) -> float:
    """Return l2, after checking that the constants of a rate are consistent."""
    positive_number("l2", finite_number("l2", l2))
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n:g}")
    for name, mu, most in (("mu_1", mu_1, l2 / 2), ("mu_2", mu_2, l2)):
        if not 0 <= finite_number(name, mu) <= most * (1 + INPUT_ROUNDING):
            raise ValueError(f"{name} must be between 0 and {most:g} for l2 = {l2:g}, got {mu:g}")
    return l2
