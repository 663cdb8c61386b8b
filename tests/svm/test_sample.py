"""Large fits start from the solution that fits to samples predict.

A fit does not show where it started, so the starts are compared where they are made.
"""

import math

import numpy as np
import pytest

from pairstep.result import Status
from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from pairstep.svm.duals import c_classification, limits
from pairstep.svm.engine import Kernel, solve

SMALLEST = 8000  # number of variables from which a sample is used
RBF = Kernel("rbf", gamma=0.5)


def problem(n, noise, seed=0):
    """Two classes with a fraction of random labels; about that fraction ends at the bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(rng.random(n) < noise, rng.integers(0, 2, n), X[:, 0] > 0)
    return X, y


def dual_of(n, noise, C=1.0, weights=None):
    X, y = problem(n, noise)
    limit = limits(C, np.ones(n) if weights is None else weights)
    return X, c_classification(np.flatnonzero(y == 0), np.flatnonzero(y == 1), limit)


def fitted(X, dual, cold, **options):
    options = {"tol": 1e-3, "max_iter": 10**7, "time_limit": math.inf, "threads": 2} | options
    (solution,) = solve(X, RBF, [dual], cold=cold, cache_bytes=2 * 10**8, **options)
    return solution


def objective(dual, solution):
    return 0.5 * (solution.gradient + dual.linear) @ solution.z


@pytest.mark.parametrize("n", [SMALLEST - 1, SMALLEST, SMALLEST + 1])
def test_the_same_optimum_with_and_without(n):
    X, dual = dual_of(n, noise=0.3)
    sampled, plain = (fitted(X, dual, cold) for cold in (True, False))
    assert sampled.status == plain.status == Status.OPTIMAL
    assert objective(dual, sampled) == pytest.approx(objective(dual, plain), rel=1e-5)
    assert (sampled.n_iter == plain.n_iter) == (n < SMALLEST)


def test_samples_of_samples():
    X, dual = dual_of(4 * SMALLEST, noise=0.5, C=0.1)
    sampled, plain = (fitted(X, dual, cold) for cold in (True, False))
    assert sampled.kkt_violation <= 1e-3
    assert objective(dual, sampled) == pytest.approx(objective(dual, plain), rel=1e-5)
    assert abs(math.fsum(sampled.z)) <= math.ulp(0.1)
    assert (sampled.z >= dual.lower).all()
    assert (sampled.z <= dual.upper).all()


def test_weights_and_rows_without_any():
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 2, 2 * SMALLEST) * (rng.random(2 * SMALLEST) < 0.7)
    X, dual = dual_of(2 * SMALLEST, noise=0.3, weights=weights)
    sampled, plain = (fitted(X, dual, cold) for cold in (True, False))
    assert sampled.kkt_violation <= 1e-3
    assert objective(dual, sampled) == pytest.approx(objective(dual, plain), rel=1e-5)


@pytest.mark.parametrize(("noise", "C"), [(0.0, 1.0), (0.1, math.inf)])
def test_no_start_is_predicted_where_no_variable_is_at_its_bound(noise, C):
    X, y = problem(SMALLEST, noise)
    X[:, 0] += np.where(X[:, 0] > 0, 1.0, -1.0)
    if noise:
        y = X[:, 0] > 0
    dual = c_classification(
        np.flatnonzero(y == 0), np.flatnonzero(y == 1), limits(C, np.ones(SMALLEST))
    )
    sampled, plain = (fitted(X, dual, cold) for cold in (True, False))
    assert (sampled.z == plain.z).all()


def test_repeatable_and_independent_of_the_threads():
    X, dual = dual_of(SMALLEST, noise=0.3)
    first, *others = [fitted(X, dual, True, threads=threads).z for threads in (2, 2, 1, 3)]
    for other in others:
        assert (other == first).all()


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        NuSVC(nu=0.7, tol=1e-5),
        SVR(epsilon=0.2),
        NuSVR(nu=0.3),
        OneClassSVM(nu=0.2),
        SVC(kernel="linear"),
        SVC(kernel="poly", degree=2),
        SVC(dtype=np.float64),
    ],
    ids=str,
)
def test_every_model_reaches_its_optimum(model):
    X, labels = problem(SMALLEST, noise=0.3)
    y = labels if isinstance(model, SVC | NuSVC) else X[:, 0] + labels
    sampled = model.fit(X, y)
    (status,), (violation,) = sampled.optimality_.status, sampled.optimality_.kkt_violation
    assert status == "optimal"
    assert violation <= model.tol
    decisions = sampled.decision_function if hasattr(model, "decision_function") else None
    values = (decisions or sampled.predict)(X[:50])
    # With max_iter, a fit does not start from a sample.
    plain = type(model)(**model.get_params() | {"max_iter": 10**7}).fit(X, y)
    others = (getattr(plain, "decision_function", None) or plain.predict)(X[:50])
    np.testing.assert_allclose(values, others, atol=0.02 * np.abs(others).max())


def test_a_sample_that_cannot_have_the_total():
    # All weight is on a few rows, so a sample may have too little of it.
    X, _ = problem(SMALLEST, noise=0.0)
    weights = np.zeros(SMALLEST)
    weights[::97] = 1.0
    model = OneClassSVM(nu=0.99).fit(X, sample_weight=weights)
    assert model.optimality_.status[0] == "optimal"
