"""The block solver reaches the optimum of the coordinate-descent solver, in limited memory."""

import functools
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from oracles import cancelling, kkt_violation, problem, sum_error_in_ulps

import pairstep
from pairstep import FactorModel, L1Penalized, LeastSquares, Quadratic, SumBox

# A solve that would hang fails after this many seconds.
minimize = functools.partial(pairstep.minimize, time_limit=60.0)


def banded(n, rng):
    """A sparse positive definite matrix too large to be made dense."""
    off = 0.4 * rng.random(n - 1)
    return scipy.sparse.diags_array([off, 1 + rng.random(n), off], offsets=[-1, 0, 1]).tocsr()


def cases(n=1100, m=30, seed=0):
    """Objectives that prefer blocks, each with its dense twin."""
    rng = np.random.default_rng(seed)
    A, y, c = rng.normal(size=(m, n)), rng.normal(size=m), 0.1 * rng.normal(size=n)
    D = 0.05 + rng.random(n)
    thin = scipy.sparse.random_array((m, n), density=0.2, random_state=rng, format="csc")
    return {
        "least squares": (LeastSquares(A, y, 0.1), A.T @ A + 0.1 * np.eye(n), -A.T @ y),
        "no ridge": (LeastSquares(A, y), A.T @ A, -A.T @ y),
        "sparse least squares": (
            LeastSquares(thin, y, 0.1),
            (thin.T @ thin).toarray() + 0.1 * np.eye(n),
            -thin.T @ y,
        ),
        "factors": (FactorModel(A, D, c), A.T @ A + np.diag(D), c),
        "factors and a large diagonal": (FactorModel(A, 100.0, c), A.T @ A + 100.0 * np.eye(n), c),
        "sparse factors": (FactorModel(thin, D, c), (thin.T @ thin).toarray() + np.diag(D), c),
    }


CASES = cases()
N = 1100
RNG = np.random.default_rng(1)
CONSTRAINTS = {
    "simplex": {},
    "tight": {"upper": 0.002},
    "long and short": {"lower": -0.01, "upper": 0.02},
    "no lower bounds": {"lower": -np.inf},
    "no bounds": {"lower": -np.inf, "upper": np.inf},
    "range": {"total": (0.1, 0.7), "upper": 0.01},
    "range without end": {"total": (0.1, np.inf)},
    "groups": {"groups": np.arange(N) % 3, "total": [1.0, 0.5, 2.0]},
    "coefficients": {"coefficients": RNG.choice([-2.0, 0.5, 1.0], N), "lower": -0.1, "upper": 0.1},
}


def assert_twins(objective, Q, c, options, l1_terms=None, tol=1e-8):
    """Check that both solvers agree, and the KKT conditions, recomputed from the dense problem."""
    assert objective.prefers_blocks
    dense = Quadratic((Q + Q.T) / 2, c)
    box = SumBox(**options)
    wrap = (lambda f: f) if l1_terms is None else (lambda f: L1Penalized(f, *l1_terms))
    result = minimize(wrap(objective), box, tol=tol)
    twin = minimize(wrap(dense), box, tol=tol)
    assert result.status == "optimal", result.message
    assert twin.status == "optimal", twin.message
    x = result.x
    p = problem(None, lambda x: Q @ x + c, len(c), **options)
    assert (x >= p.lower).all()
    assert (x <= p.upper).all()
    scale = 1 + np.abs(p.coefficients * x).sum()
    assert (p.sums(x) >= p.low - 1e-14 * scale).all()
    assert (p.sums(x) <= p.high + 1e-14 * scale).all()
    if options.keys() <= {"lower", "upper"}:
        assert sum_error_in_ulps(x, 1.0) <= 1
    value = wrap(dense).value
    assert value(x) == pytest.approx(value(twin.x), rel=1e-8, abs=1e-8)
    if l1_terms is None:
        size = cancelling(p, x)
        assert kkt_violation(p, x) <= tol * size * 1.001 + 1e-13 * size
    return result


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_coordinate_descent_solver(name, constraint):
    objective, Q, c = CASES[name]
    assert_twins(objective, Q, c, CONSTRAINTS[constraint])


@pytest.mark.parametrize(
    "constraint", ["simplex", "long and short", "range", "groups", "coefficients"]
)
@pytest.mark.parametrize("name", ["least squares", "factors", "sparse factors"])
def test_equals_the_coordinate_descent_solver_with_l1_terms(name, constraint):
    objective, Q, c = CASES[name]
    center = np.random.default_rng(2).dirichlet(np.ones(N))
    assert_twins(objective, Q, c, CONSTRAINTS[constraint], (0.02, center))


def test_sparse_quadratic_too_large_to_be_dense():
    rng = np.random.default_rng(3)
    n = 2100
    Q, c = banded(n, rng), rng.normal(size=n) / n
    for options in ({}, {"upper": 0.001}, {"total": (0.5, 2.0)}, {"lower": -np.inf}):
        assert_twins(Quadratic(Q, c), Q.toarray(), c, options)
    assert_twins(Quadratic(Q, c), Q.toarray(), c, {}, (0.001, 1 / n))


def test_tight_tolerance():
    for name, (objective, Q, c) in CASES.items():
        if name != "no ridge":
            assert_twins(objective, Q, c, {"upper": 0.02}, tol=1e-11)


@pytest.mark.parametrize("form", ["least squares", "factors"])
def test_memory_stays_far_below_a_square_array(form):
    rng = np.random.default_rng(5)
    n, m = 20_000, 50
    A = rng.normal(size=(m, n))
    tracemalloc.start()
    began = time.process_time()
    try:
        if form == "factors":
            result = minimize(FactorModel(A, 0.1, rng.normal(size=n) / 10), SumBox(1.0))
        else:
            result = minimize(LeastSquares(A, rng.normal(size=m)), SumBox(1.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.status == "optimal"
    assert peak < 200e6  # n x n would take 3.2 GB; the data takes 8 MB
    assert time.process_time() - began < 6  # of all threads


@pytest.mark.slow
def test_a_hundred_thousand_variables():
    rng = np.random.default_rng(6)
    A = rng.normal(size=(100, 100_000))
    y = rng.normal(size=100)
    result = minimize(LeastSquares(A, y), SumBox(1.0), time_limit=60)
    assert result.status == "optimal"
    g = A.T @ (A @ result.x - y)
    assert g @ result.x - g.min() <= 1e-6 * (1 + np.abs(g).max())


@pytest.mark.unsanitized
def test_more_free_variables_than_a_working_set_holds():
    """All 5000 are free; a working set has at most 4000."""
    rng = np.random.default_rng(7)
    n = 5000
    F, D, c = rng.normal(size=(10, n)) / 3, 1 + rng.random(n), rng.normal(size=n)
    began = time.process_time()
    result = minimize(FactorModel(F, D, c), SumBox(1.0, -np.inf), time_limit=100)
    assert time.process_time() - began < 20  # of all threads

    # By Woodbury: the equality-constrained optimum, in closed form.
    def inverse(v):
        return v / D - (F / D).T @ np.linalg.solve(np.eye(10) + F / D @ F.T, F @ (v / D))

    multiplier = (1 + inverse(c).sum()) / inverse(np.ones(n)).sum()
    best = inverse(multiplier - c)
    assert result.status == "optimal", result.message
    np.testing.assert_allclose(result.x, best, atol=1e-5)
    assert result.sum_multiplier == pytest.approx(multiplier, abs=1e-6)


# ------------------------------------------------------------------ degenerate


@pytest.mark.parametrize("options", [{}, {"upper": 0.002}, {"total": (0.0, 1.0)}])
def test_degenerate_columns(options):
    rng = np.random.default_rng(8)
    n, y = 1200, rng.normal(size=5)
    equal = np.repeat(rng.normal(size=(5, 1)), n, axis=1)
    nothing = np.zeros((5, n))
    some = rng.normal(size=(5, n))
    some[:, ::2] = 0
    for A in (equal, nothing, some, np.repeat(some[:, :300], 4, axis=1)):
        for data in (A, scipy.sparse.csc_array(A)):
            assert_twins(LeastSquares(data, y), A.T @ A, -A.T @ y, options)
            c = 0.01 * rng.normal(size=n)
            assert_twins(FactorModel(data, 0.0, c), A.T @ A, c, options)


def test_a_single_feasible_point_in_blocks():
    objective = CASES["factors"][0]
    for options, value in (({"total": 0.0}, 0.0), ({"total": N * 0.25, "upper": 0.25}, 0.25)):
        result = minimize(objective, SumBox(**options))
        assert result.status == "optimal"
        assert (result.x == value).all()


def test_indefinite_in_blocks_is_not_called_optimal():
    n = 2100
    values = np.ones(n)
    values[:10] = -1.0
    result = minimize(Quadratic(scipy.sparse.diags_array(values).tocsr()), SumBox(1.0, 0.0, 0.3))
    assert result.status != "optimal"
    assert "semidefinite" in result.message


# ------------------------------------------------------------------ limits, callbacks, history


@pytest.mark.parametrize("limit", [0, 1, 5, 10])
def test_max_iter_is_an_upper_bound(limit):
    objective, _, _ = CASES["factors"]
    result = minimize(objective, SumBox(1.0, 0.0, 0.01), max_iter=limit)
    assert result.status == "max_iter"
    assert result.n_iter <= limit
    assert sum_error_in_ulps(result.x, 1.0) <= 1


def test_warm_start_in_blocks():
    objective, _, _ = CASES["factors"]
    cold = minimize(objective, SumBox(1.0, 0.0, 0.01))
    warm = minimize(objective, SumBox(1.0, 0.0, 0.01), x0=cold.x)
    assert warm.n_iter == 0
    np.testing.assert_array_equal(warm.x, cold.x)
