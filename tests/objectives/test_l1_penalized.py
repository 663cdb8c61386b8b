"""L1 terms with different slopes below and above the center.

Checked by the definition: the value on a fine grid, and left and right derivatives of all pairs.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse

from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    RiskParity,
    Simplex,
    Smooth,
    SumBox,
    coordinate_descent,
    minimize,
    solve_qp,
)
from pairstep.paper.rules import RULES

RNG = np.random.default_rng(1)


def problem(n, seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n + 1, n))
    held = rng.dirichlet(np.ones(n))
    down, up = (rng.choice([0.0, 0.3, 1.0], n) * rng.uniform(0.5, 1.0, n) for _ in range(2))
    return F.T @ F / n, 0.5 * rng.normal(size=n), held, down, up


def cost(x, held, down, up):
    return float(down @ np.maximum(held - x, 0) + up @ np.maximum(x - held, 0))


def violation(x, gradient, held, down, up, lower=0.0, upper=math.inf):
    """The largest left derivative of variables that can decrease minus the smallest right one."""
    left = gradient + np.where(x > held, up, -down)
    right = gradient + np.where(x >= held, up, -down)
    max_left = left[x > lower].max(initial=-math.inf)
    return max(max_left - right[x < upper].min(initial=math.inf), 0.0)


@pytest.mark.parametrize("nested", [False, True])
def test_no_grid_point_is_better(nested):
    """Also with L1 terms of different variables around centers of their own."""
    Q, c, held, down, up = problem(3, 0)
    f = L1Penalized(Quadratic(Q, c), (down, up), held)
    costs = [(held, down, up)]
    if nested:
        inner = L1Penalized(Quadratic(Q, c), [0.5, 0.0, 0.0], [0.9, 0.1, 0.2])
        f = L1Penalized(inner, [0.0, 0.4, 0.0], [0.1, 0.6, 0.7])
        costs = [
            (np.array(center), np.array(l1), np.array(l1))
            for center, l1 in (([0.9, 0.1, 0.2], [0.5, 0, 0]), ([0.1, 0.6, 0.7], [0, 0.4, 0]))
        ]

    def value(x):
        return 0.5 * x @ Q @ x + c @ x + sum(cost(x, *terms) for terms in costs)

    steps = np.linspace(0, 1, 201)
    grid = [np.array([a, b, 1 - a - b]) for a, b in product(steps, steps) if a + b <= 1]
    least = min(map(value, grid))
    result = minimize(f, Simplex())
    assert result.status == "optimal"
    assert least - 1e-3 < result.fun <= least + 1e-12
    assert f.value(grid[7]) == pytest.approx(value(grid[7]))


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule(rule):
    Q, c, held, down, up = problem(8, 3)
    best = solve_qp(Q, c, l1=(down, up), center=held).fun
    f = L1Penalized(Quadratic(Q, c), (down, up), held)
    assert coordinate_descent(f, Simplex(), rule=rule, seed=0).fun == pytest.approx(best, abs=1e-8)


def forms(n):
    rng = np.random.default_rng(n)
    F, b, c = rng.normal(size=(12, n)), rng.normal(size=12), 0.3 * rng.normal(size=n)
    sparse = scipy.sparse.csr_array(scipy.sparse.diags_array(rng.uniform(1, 2, n)))
    dense = F.T @ F + np.eye(n)
    return {
        "quadratic": (Quadratic(dense, c), dense, c),
        "factors": (FactorModel(F, 1.0, c), dense, c),
        "least squares": (LeastSquares(F, b, 1.0), dense, -F.T @ b),
        "sparse": (Quadratic(sparse, c), sparse, c),
        "smooth": (
            Smooth(lambda x: 0.5 * x @ dense @ x + c @ x, lambda x: dense @ x + c), dense, c,
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "n"),
    [
        ("quadratic", 40),
        ("factors", 300),
        ("least squares", 1100),
        ("sparse", 2100),
        ("smooth", 12),
    ],
)
def test_every_objective(form, n):
    f, Q, c = forms(n)[form]
    rng = np.random.default_rng(n)
    held, down, up = np.full(n, 1 / n), rng.uniform(0, 0.5, n), rng.uniform(0, 0.1, n)
    result = minimize(L1Penalized(f, (down, up), held), Simplex())
    assert result.status == "optimal", result.message
    gradient = Q @ result.x + c
    size = max(np.abs(gradient).max(), np.abs(c).max())
    assert violation(result.x, gradient, held, down, up) <= 1e-6 * size


def test_nested_l1_terms_and_negative_coefficients():
    Q, c, held, down, up = problem(5, 9)
    once = L1Penalized(Quadratic(Q, c), (down + 0.1, up + 0.2), held)
    twice = L1Penalized(L1Penalized(Quadratic(Q, c), (down, up), held), (0.1, 0.2), held)
    coefficients = np.array([1.0, -2.0, 0.5, -1.0, 3.0])
    for box in (Simplex(), SumBox(1.0, -1.0, 1.0, coefficients=coefficients), SumBox((0.2, 0.4)),
                SumBox([1.0, 1.0], groups=[0, 1, 0, 1, 1])):  # fmt: skip
        a, b = minimize(once, box), minimize(twice, box)
        assert a.status == b.status == "optimal"
        assert a.fun == pytest.approx(b.fun, rel=1e-9)
    x = RNG.normal(size=5)
    assert once.value(x) == pytest.approx(twice.value(x))
    assert twice.value_and_gradient(x)[0] == pytest.approx(once.value(x))
    costly = L1Penalized(L1Penalized(Quadratic(Q, c), 10.0, held), 1e-3, held)
    assert minimize(costly, Simplex()).x == pytest.approx(held, abs=1e-15)
    # A negative coefficient exchanges the two slopes in the coordinates of the solver.
    result = minimize(once, SumBox(1.0, -1.0, 1.0, coefficients=coefficients))
    derivative = (Q @ result.x + c) / coefficients
    below, above = -(down + 0.1) / coefficients, (up + 0.2) / coefficients
    rises = np.where(coefficients > 0, result.x < 1, result.x > -1)
    falls = np.where(coefficients > 0, result.x > -1, result.x < 1)
    beyond, reached = result.x > held, result.x >= held
    right = derivative + np.where(np.where(coefficients > 0, reached, beyond), above, below)
    left = derivative + np.where(np.where(coefficients > 0, beyond, reached), above, below)
    assert left[falls].max() - right[rises].min() <= 1e-6


def test_equal_slopes_are_a_symmetric_l1_term():
    Q, c, held, _, _ = problem(20, 4)
    one = solve_qp(Q, c, l1=0.2, center=held)
    two = solve_qp(Q, c, l1=(0.2, 0.2), center=held)
    assert one.x.tolist() == two.x.tolist()
    assert one.fun == two.fun


def test_rounding_errors_of_l1_terms_are_bounded():
    """They dominate where the weights are far larger than the rest."""
    rng = np.random.default_rng(0)
    smooth, errors = RiskParity(np.eye(8)), []
    for _ in range(20):
        x, center, weight = rng.uniform(0.1, 1.0, (3, 8))
        f = L1Penalized(smooth, 1e8 * weight, center)
        terms = zip(f.l1_terms[0].tolist(), x.tolist(), center.tolist(), strict=True)
        exact = sum(Fraction(w) * abs(Fraction(a) - Fraction(b)) for w, a, b in terms)
        allowed, _ = f.rounding_errors(x)
        errors.append(abs(float(Fraction(f.value(x)) - exact) - smooth.value(x)))
        assert errors[-1] <= allowed < 1e-5
    assert max(errors) > smooth.rounding_errors(x)[0]
