"""Factor models with many free variables: direct solves, compared with the dense matrix."""

import numpy as np
import pytest
from oracles import sum_error_in_ulps

from pairstep import FactorModel, L1Penalized, Quadratic, SumBox, minimize


def model(seed, m, n, ridge, linear=0.1):
    rng = np.random.default_rng(seed)
    F, c = rng.normal(size=(m, n)), linear * rng.normal(size=n)
    return F, np.broadcast_to(ridge, n), c


def dense(F, D, c):
    return Quadratic(F.T @ F + np.diag(D), c)


@pytest.mark.parametrize("seed", range(12))
def test_ridges_of_many_sizes(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(201, 600)), int(rng.integers(1, 20))
    F, D, c = model(seed, m, n, 10.0 ** rng.uniform(-4, 3, n), linear=10.0 ** rng.uniform(-3, 1))
    where = SumBox(float(rng.normal()), -rng.random(n), rng.random(n))
    result = minimize(FactorModel(F, D, c), where)
    expected = minimize(dense(F, D, c), where)
    assert result.status == "optimal"
    size = max(abs(expected.fun), abs(c @ expected.x))
    assert abs(result.fun - expected.fun) <= 1e-8 * size


@pytest.mark.parametrize("linear", [0.0, 1.0])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-np.inf, np.inf), (-1.0, 1.0), (0.0, 3 / 5000), (0.0, np.inf)],
)
def test_few_rounds_with_any_bounds(lower, upper, ridge, linear):
    """Without bounds, or with wide or tight ones: far fewer rounds than pair steps would need."""
    F, D, c = model(5, 30, 5000, ridge, linear)
    result = minimize(FactorModel(F, D, c), SumBox(1.0, lower, upper))
    assert result.status == "optimal"
    assert result.n_iter < 5000
    assert sum_error_in_ulps(result.x, 1.0) <= 1
    gradient = F.T @ (F @ result.x) + D * result.x + c
    min_right = gradient[result.x < upper].min(initial=np.inf)
    max_left = gradient[result.x > lower].max(initial=-np.inf)
    assert max_left - min_right <= 1.01 * result.tolerance


@pytest.mark.parametrize(
    ("seed", "m", "n", "ridge", "rtol"), [(6, 30, 5000, 1e-3, 1e-6), (0, 50, 100_000, 1e-6, 1e-4)]
)
def test_a_direct_solve_is_exact_where_all_gradient_terms_vanish(seed, m, n, ridge, rtol):
    """Derivatives decrease from 1e4 to 1e-7; rounding errors of the start do not remain.

    With 100,000 variables, rounding errors of Fx cause larger errors in the gradient.
    """
    F = np.random.default_rng(seed).normal(size=(m, n))
    result = minimize(FactorModel(F, ridge), SumBox(1.0, -1.0, 1.0))
    assert result.status == "optimal", result.message
    direction = 1 - F.T @ np.linalg.solve(ridge * np.eye(m) + F @ F.T, F.sum(axis=1))
    np.testing.assert_allclose(result.x, direction / direction.sum(), rtol=rtol)


def test_no_direct_solve_without_a_ridge_or_with_l1_terms():
    F, D, c = model(6, 10, 400, np.where(np.arange(400) < 3, 0.0, 1.0))
    where = SumBox(1.0, -1.0, 1.0)
    expected = minimize(dense(F, D, c), where)
    assert minimize(FactorModel(F, D, c), where).fun == pytest.approx(expected.fun, rel=1e-9)
    l1_penalized = minimize(L1Penalized(FactorModel(F, D + 1, c), 0.01, 0.5), where)
    expected = minimize(L1Penalized(dense(F, D + 1, c), 0.01, 0.5), where)
    assert l1_penalized.status == "optimal"
    assert l1_penalized.fun == pytest.approx(expected.fun, rel=1e-9)


def exact_value(F, D, c, total):
    """The minimum without bounds, by the Woodbury formula in long double."""
    F, D, c = (a.astype(np.longdouble) for a in (F, np.broadcast_to(D, F.shape[1]), c))
    columns = np.vstack([F, -np.ones(F.shape[1])])  # x = -(c + columns' unknown) / D
    system = (columns / D) @ columns.T
    system[np.diag_indices(len(F))] += 1
    right = -(columns / D) @ c
    right[-1] += total
    table = np.column_stack([system, right])
    for p in range(len(table)):
        q = p + int(np.argmax(np.abs(table[p:, p])))
        table[[p, q]] = table[[q, p]]
        for r in range(len(table)):
            if r != p:
                table[r] -= table[p] * (table[r, p] / table[p, p])
    x = -(c + columns.T @ (table[:, -1] / np.diag(table))) / D
    return float(((F @ x) ** 2).sum() / 2 + (D * x * x).sum() / 2 + c @ x)


DIAGONALS = {
    "equal": lambda rng, n: np.full(n, 10.0 ** rng.uniform(-12, 12)),
    "alike": lambda rng, n: 10.0 ** (rng.uniform(-9, 9) + rng.uniform(-3, 3, n)),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [5, 150, 199, 201, 600])
@pytest.mark.parametrize("diagonal", DIAGONALS)
def test_diagonals_from_tiny_to_huge(diagonal, n, seed):
    """Without bounds, variables may be so large that rounding affects the derivatives."""
    rng = np.random.default_rng([seed, n])
    m = int(rng.integers(1, min(12, n)))
    F, _, c = model(seed, m, n, 1.0, linear=10.0 ** rng.uniform(-4, 4))
    D, total = DIAGONALS[diagonal](rng, n), float(rng.normal())
    free = minimize(FactorModel(F, D, c), SumBox(total, -np.inf))
    assert free.status == "optimal", free.message
    expected = exact_value(F, D, c, total)
    assert abs(free.fun - expected) <= 1e-9 * max(abs(expected), abs(c @ free.x))
    assert sum_error_in_ulps(free.x, total) <= 1
    slack = abs(total) / n
    box = minimize(
        FactorModel(F, D, c), SumBox(total, -rng.random(n) - slack, rng.random(n) + slack)
    )
    assert box.status == "optimal", box.message
    assert box.kkt_violation <= box.tolerance
    assert box.fun >= expected - 1e-9 * abs(expected)


def test_small_diagonals_beside_large_factors_are_not_lost():
    """F'F + D in float64 loses D, and is then not convex without bounds."""
    F, D, c = model(7, 5, 150, 1e-12, linear=1.0)
    result = minimize(FactorModel(F, D, c), SumBox(1.0, -np.inf))
    assert result.status == "optimal"
    assert result.fun == pytest.approx(exact_value(F, D, c, 1.0), rel=1e-9)


def test_rounding_counts_as_optimal_only_without_progress():
    """A tolerance of 0 is never met, and a limit on iterations is still reported."""
    F, D, c = model(8, 5, 300, 1e-6, linear=1.0)
    where = SumBox(1.0, -np.inf)
    assert minimize(FactorModel(F, D, c), where, tol=0).status == "stalled"
    assert minimize(FactorModel(F, D, c), where, max_iter=0).status == "max_iter"
