"""One problem of six variables in many forms, and the check of its solutions."""

import numpy as np
import pytest
import scipy.sparse
from oracles import cancelling, kkt_violation, reference_solution

from pairstep import LeastSquares, Quadratic, Smooth, SumBox, coordinate_descent, minimize


def solve_by(rule, objective, constraint=None, **options):
    """Solve by `minimize` if the rule is "auto", or by coordinate descent with the rule."""
    if rule == "auto":
        return minimize(objective, constraint, **options)
    return coordinate_descent(objective, constraint, rule=rule, seed=0, **options)


N = 6
RNG = np.random.default_rng(0)
A = RNG.normal(size=(9, N)) * np.linspace(0.7, 1.6, N)
B = RNG.normal(size=9)
RIDGE = 0.3
H = A.T @ A + RIDGE * np.eye(N)
L2 = max((H[i, i] + H[j, j] - 2 * H[i, j]) / 2 for i in range(N) for j in range(N) if i != j)


def least_squares(x):
    return 0.5 * np.sum((A @ x - B) ** 2) + 0.5 * RIDGE * np.sum(x**2)


def least_squares_gradient(x):
    return A.T @ (A @ x - B) + RIDGE * x


def logistic(x):
    """Smooth, convex, not quadratic: its second derivatives are at most those of |Ax - B|^2 / 2."""
    r = A @ x - B
    return 4 * np.sum(np.logaddexp(0, r) - 0.3 * r) + 0.5 * RIDGE * np.sum(x**2)


def logistic_gradient(x):
    r = A @ x - B
    return A.T @ (4 / (1 + np.exp(-r)) - 1.2) + RIDGE * x


LIPSCHITZ = np.diag(H).copy()
SQUARES = least_squares, least_squares_gradient
CURVED = logistic, logistic_gradient
# A constructor, the function it represents up to a constant, and the information it provides.
OBJECTIVES = {
    "quadratic": (lambda: Quadratic(H, -A.T @ B), SQUARES, {"lipschitz", "quadratic"}),
    "least-squares": (lambda: LeastSquares(A, B, RIDGE), SQUARES, {"lipschitz", "quadratic"}),
    "sparse": (
        lambda: LeastSquares(scipy.sparse.csr_array(A), B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "least-squares, no gram": (
        lambda: LeastSquares(A, B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "sparse, no gram": (
        lambda: LeastSquares(scipy.sparse.csr_array(A), B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "smooth": (lambda: Smooth(*CURVED), CURVED, set()),
    "smooth-lipschitz": (lambda: Smooth(*CURVED, lipschitz=LIPSCHITZ), CURVED, {"lipschitz"}),
}
CONSTRAINT = {"total": 0.7, "lower": -0.1, "upper": [0.2, 0.3, np.inf, 0.2, 0.5, 0.4]}
OPTIMAL_VALUES = {}


def assert_solved(p, result, tol=1e-8, rel=1e-9, key=None):
    """Check feasibility and the KKT conditions, and compare the value with SciPy's.

    Problems with the same key are equal, so that SciPy solves only the first of them.
    """
    x = result.x
    assert result.status == "optimal", result.message
    assert (x >= p.lower).all()
    assert (x <= p.upper).all()
    scale = 1 + np.abs(p.coefficients * x).sum()
    sums = p.sums(x)
    assert (sums >= p.low - 1e-14 * scale).all()
    assert (sums <= p.high + 1e-14 * scale).all()
    size = cancelling(p, x)
    violation = kkt_violation(p, x)
    assert violation <= tol * size * (1 + 1e-6) + 1e-13 * size
    assert result.kkt_violation == pytest.approx(violation, rel=1e-3, abs=1e-12 * size)
    best = OPTIMAL_VALUES.get(key)
    if best is None:
        best = p.value(reference_solution(p, x0=x + 0.1))
    if key is not None:
        OPTIMAL_VALUES[key] = best
    value = p.value(x)
    assert value == pytest.approx(best, rel=rel, abs=rel)
    return value


CONSTRAINTS = {
    "simplex": {},
    "negative total": {"total": -2.5, "lower": -np.inf},
    "no bounds": {"total": 0.0, "lower": -np.inf},
    "fixed variables": {"lower": [0.1, 0, 0, -1, 0, 0], "upper": [0.1, 1, 0, 1, 0.4, 1]},
    "single point": {"total": 3.0, "lower": 0.5, "upper": 0.5},
    "coefficients": {"coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0], "upper": 2.0},
    "negative coefficients": {"total": -1.0, "coefficients": [-1.0, -2.0, -0.7, -1.5, -1.0, -2.5]},
    "coefficients, no bounds": {"coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0], "lower": -np.inf},
    "groups": {"total": [1.0, -0.5], "lower": -1.0, "groups": [0, 1, 0, 1, 1, 0]},
    "a total for each group": {"total": [0.4, 0.4, 0.4], "groups": [7, 3, 7, 3, 5, 5]},
    "group of one": {"total": [0.3, 0.5], "groups": [1, 1, 0, 1, 1, 1]},
    "weighted groups": {
        "total": [1.0, -0.5],
        "lower": -1.0,
        "upper": 4.0,
        "groups": [0, 1, 0, 1, 1, 0],
        "coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, -1.0],
    },
    "range, slack": {"total": (-50.0, 50.0), "lower": -np.inf},
    "range, at its low end": {"total": (3.0, 4.0)},
    "range, at its high end": {"total": (-4.0, -3.0), "lower": -10.0},
    "range, open below": {"total": (-np.inf, 0.1), "lower": -1.0},
    "range, open above": {"total": (2.0, np.inf)},
    "range, open on both sides": {"total": (-np.inf, np.inf), "lower": -1.0, "upper": 0.1},
    "range and coefficients": {
        "total": (2.0, 5.0),
        "coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0],
    },
    "ranges per group": {
        "total": ([-1.0, 1.0], [0.0, 1.0]),
        "lower": -1.0,
        "groups": [0, 1, 0, 1, 1, 0],
    },
}


def slow_quadratic(n=60):
    """A quadratic that takes a greedy rule many thousands of iterations."""
    rng = np.random.default_rng(4)
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return Quadratic((basis * np.logspace(0, 7, n)) @ basis.T, rng.normal(size=n))


def readable(objective):
    """The same function from callables, for the reference solver."""
    return Smooth(objective.value, objective.gradient, lipschitz=objective.lipschitz)


SOLVERS = {"native": lambda f: f, "readable": readable}
FREE = SumBox(0.0, -np.inf)
UNBOUNDED = {
    "linear": Quadratic(np.zeros((3, 3)), [1.0, 2.0, 3.0]),
    "indefinite": Quadratic(np.diag([1.0, -3.0, 1.0]), [1.0, 2.5, 3.0]),
    "flat direction": LeastSquares([[1.0, 1.0, 1.0]], [1.0]),
}
