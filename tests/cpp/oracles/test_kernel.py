"""Shrinking, and the hand-over from float32 to float64, on problems large enough to need them.

Results do not show whether this happens. These problems were chosen because the block solver
shrinks them, some twice, so that each test fails if its subject is broken.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pairstep.svm import duals
from pairstep.svm.engine import Kernel, solve

EPS = np.finfo(float).eps


def noisy(n, features, noise, seed=0):
    """Points with nearly random targets, so that most variables end at a bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + noise * rng.normal(size=n)


def classes(y, C):
    high = y > np.median(y)
    return duals.c_classification(np.flatnonzero(high), np.flatnonzero(~high), np.full(len(y), C))


def regression(y, C):
    return duals.epsilon_regression(y, np.full(len(y), C), 0.1)


def nu_regression(y, C):
    return duals.nu_regression(y, np.full(len(y), C), 0.3)


# They differ in the levels of shrinking, and in L1 terms and groups.
SHRINKING = {
    "twice": (*noisy(5000, 2, 2.0), classes, 10.0, Kernel("rbf", 0.01)),
    "l1_terms": (*noisy(6000, 4, 1.0), regression, 10.0, Kernel("rbf", 0.05)),
    "groups": (*noisy(5000, 4, 2.0), nu_regression, 10.0, Kernel("rbf", 0.02)),
}


def run(X, dual, kernel, **changes):
    how = {
        "tol": 1e-5, "max_iter": 10**7, "time_limit": 60.0, "cache_bytes": 2**26, "threads": 1,
        "dtype": np.float64,
    }  # fmt: skip
    (solution,) = solve(X, kernel, [dual], **{**how, **changes})
    return solution


def gram(A, B, kernel):
    if kernel.name == "linear":
        return A @ B.T
    return np.exp(-kernel.gamma * cdist(A, B, "sqeuclidean"))


def true_gradient(X, dual, kernel, z):
    """In float64 from the definition, a part of the kernel matrix at a time."""
    own, used = X[dual.rows], np.flatnonzero(z)
    parts = np.array_split(own, 1 + len(own) // 1000)
    products = [gram(part, own[used], kernel) @ z[used] for part in parts]
    return np.concatenate(products) + dual.linear


def true_violation(dual, z, gradient):
    l1 = np.zeros(len(z)) if dual.l1 is None else dual.l1
    saves = np.where(z > dual.lower, gradient + np.where(z > 0, l1, -l1), -np.inf)
    costs = np.where(z < dual.upper, gradient + np.where(z < 0, -l1, l1), np.inf)
    groups = [slice(*ends) for ends in zip(dual.starts[:-1], dual.starts[1:], strict=True)]
    return max(saves[group].max() - costs[group].min() for group in groups)


def value(dual, z, gradient):
    l1 = 0.0 if dual.l1 is None else dual.l1 @ np.abs(z)
    return z @ (gradient + dual.linear) / 2 + l1


def check(X, dual, kernel, solution, tol, off=0.0):
    """Check the derivatives, to within `off` away from the margin, and the reported figures."""
    gradient = true_gradient(X, dual, kernel, solution.z)
    largest = 1.0 if kernel.name == "rbf" else (X**2).sum(axis=1).max()
    rounding = 100 * EPS * np.abs(solution.z).sum() * largest
    np.testing.assert_allclose(solution.gradient, gradient, rtol=0, atol=off + rounding)
    truth = true_violation(dual, solution.z, gradient)
    assert solution.kkt_violation == pytest.approx(truth, abs=2 * rounding)
    assert (solution.status == "optimal") == (truth <= tol)
    return value(dual, solution.z, gradient)


@pytest.mark.parametrize("name", SHRINKING)
def test_after_shrinking_every_derivative_is_right(name):
    """The derivatives of shrunk variables are right too, not only near the margin."""
    X, y, of, C, kernel = SHRINKING[name]
    dual = of(y, C)
    solution = run(X, dual, kernel)
    assert solution.status == "optimal"
    check(X, dual, kernel, solution, 1e-5)


@pytest.mark.parametrize("name", ["twice", "l1_terms"])
def test_stopped_while_shrunk(name):
    X, y, of, C, kernel = SHRINKING[name]
    dual = of(y, C)
    total = run(X, dual, kernel).n_iter
    for fraction in (0.9, 0.99):
        solution = run(X, dual, kernel, max_iter=int(fraction * total))
        assert solution.status == "max_iter"
        check(X, dual, kernel, solution, 1e-5)


@pytest.mark.parametrize("name", ["twice", "l1_terms"])
def test_shrinking_costs_no_iterations(name):
    """An explicit matrix is not shrunk; it takes as many iterations to the same value."""
    X, y, of, C, kernel = SHRINKING[name]
    dual = of(y, C)
    solution = run(X, dual, kernel)
    whole = run(gram(X, X, kernel), dual, Kernel("precomputed"))
    assert solution.n_iter <= 2 * whole.n_iter
    found, expected = (value(dual, s.z, s.gradient) for s in (solution, whole))
    rounding = 1e-13 * abs(expected)
    assert found == pytest.approx(expected, abs=solution.duality_gap + whole.duality_gap + rounding)
    assert solution.duality_gap <= 1e-5 * 2 * C * len(y)


@pytest.mark.parametrize("name", SHRINKING)
def test_violation_is_true_in_float32(name):
    X, y, of, C, kernel = SHRINKING[name]
    dual = of(y, C)
    solution = run(X, dual, kernel, dtype=np.float32, tol=1e-3)
    assert solution.status == "optimal"
    check(X, dual, kernel, solution, 1e-3, off=1e-6 * C * np.sqrt(len(y)))


def test_float64_takes_over_from_float32():
    """With large terms in every derivative, float32 cannot choose among many equal rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (5000, 10)).astype(float)
    y = X[:, 0] / 3 + 0.2 * rng.normal(size=5000)
    dual, kernel = regression(y, 100.0), Kernel("linear")
    solution = run(X, dual, kernel, dtype=np.float32, tol=1e-3)
    assert solution.status == "optimal"
    check(X, dual, kernel, solution, 1e-3)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("of", [regression, classes])
def test_equal_rows_take_few_iterations(of, C):
    """Many equal rows can be free; pair steps alone would take millions of iterations."""
    for n in (1000, 1001, 4000):
        rng = np.random.default_rng(0)
        X = rng.integers(-3, 4, (n, 10)).astype(float)
        dual, kernel = of(X[:, 0] / 3 + 0.2 * rng.normal(size=n), C), Kernel("linear")
        solution = run(X, dual, kernel, tol=1e-3, dtype=np.float32, max_iter=100_000)
        assert solution.status == "optimal"


def separable(n, seed=0):
    """Two classes that a narrow kernel separates: nearly all variables are free at the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("n", [1530, 1540, 2500])
def test_threads_that_divide_the_steps_change_nothing(n):
    """In blocks of 1536 or more variables, the steps are the same bit for bit."""
    X, y = separable(n)
    kernel, dual = Kernel("rbf", 0.3), classes(y, 100.0)
    alone, *others = (run(X, dual, kernel, tol=1e-3, threads=threads) for threads in (1, 2, 8))
    assert alone.status == "optimal"
    for other in others:
        assert other.n_iter == alone.n_iter
        np.testing.assert_array_equal(other.z, alone.z)
