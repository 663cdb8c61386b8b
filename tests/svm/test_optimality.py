"""Objectives against LIBSVM's, violations and gaps against their definitions."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from pairwise import pairwise
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler

import pairstep.svm
from pairstep import _core
from pairstep.svm import SVC, SVR
from pairstep.svm.engine import Dual, Kernel, verify

RNG = np.random.default_rng(5)
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.05},
    "poly": {"gamma": 0.1, "coef0": 1.0, "degree": 2},
    "sigmoid": {"gamma": 0.002},
}
ESTIMATORS = {
    "SVC": {"C": 3.0},
    "NuSVC": {"nu": 0.2},
    "SVR": {"C": 3.0, "epsilon": 0.2},
    "NuSVR": {"C": 2.0, "nu": 0.4},
    "OneClassSVM": {"nu": 0.15},
}


def scaled(load, n):
    X, y = load(return_X_y=True)
    rows = RNG.permutation(len(y))[:n]
    return StandardScaler().fit_transform(X[rows]), y[rows]


DATA = {
    "classes": scaled(load_breast_cancer, 180),
    "three classes": scaled(load_wine, 150),
    "numbers": scaled(load_diabetes, 180),
}
WEIGHTS = RNG.uniform(0.0, 3.0, 200) * (RNG.random(200) > 0.15)  # some are zero


def data_for(name):
    X, y = DATA["numbers" if "SVR" in name else "classes"]
    if name == "OneClassSVM":
        return X + 1.5, y  # around the origin a linear model would be 0
    return X, (y - y.mean()) / y.std() if "SVR" in name else y


def gram(X, kernel):
    return pairwise_kernels(X, metric=kernel, filter_params=True, **KERNELS[kernel])


def one_dual(model, weights, i=0, j=1):
    """Return z of the dual of class i against class j, over all rows."""
    rows, z = model.support_, np.zeros(len(weights))
    if not hasattr(model, "optimality_"):  # scikit-learn drops the rows without weight
        rows = np.flatnonzero(weights > 0)[rows]
    coefficients = model.dual_coef_
    coefficients = coefficients.toarray() if scipy.sparse.issparse(coefficients) else coefficients
    if len(coefficients) == 1:
        z[rows] = coefficients[0]
        return z
    ends = np.cumsum([0, *model.n_support_])
    for own, other in ((i, j - 1), (j, i)):
        members = slice(ends[own], ends[own + 1])
        z[rows[members]] = coefficients[other, members]
    return z


def objective(name, z, K, y, weights):
    """Return the dual objective; NuSVC divides its z by the margin, which is undone here."""
    if name == "NuSVC":
        z = z * ESTIMATORS[name]["nu"] * weights.sum() / 2 / z[z > 0].sum()
    value = z @ K @ z / 2
    if name == "SVC":
        return value - np.abs(z).sum()
    if "SVR" in name:
        return value - y @ z + ESTIMATORS[name].get("epsilon", 0.0) * np.abs(z).sum()
    return value


@pytest.mark.parametrize(
    ("name", "kernel", "weighted", "storage"),
    pairwise(ESTIMATORS, KERNELS, [False, True], ["dense", "sparse", "sparse and made dense"]),
)
def test_the_objective_equals_that_of_libsvm(name, kernel, weighted, storage):
    X, y = data_for(name)
    # Many zeros, so that they are skipped; the sigmoid kernel is then so far from convex that
    # solvers end at other stationary points.
    if storage == "sparse" and kernel != "sigmoid":
        X = X * (np.random.default_rng(0).random(X.shape) < 0.2)
    weights = WEIGHTS[: len(y)] if weighted else np.ones(len(y))
    data = X if storage == "dense" else scipy.sparse.csr_array(X)
    settings = {"kernel": kernel, **KERNELS[kernel], **ESTIMATORS[name]}
    ours = getattr(pairstep.svm, name)(tol=1e-6, **settings).fit(data, y, weights)
    theirs = getattr(sklearn.svm, name)(tol=1e-7, **settings).fit(X, y, weights)
    K = gram(X, kernel)
    value, best = (objective(name, one_dual(m, weights), K, y, weights) for m in (ours, theirs))
    assert value == pytest.approx(best, rel=1e-6)
    assert ours.fit_status_ == 0
    assert ours.optimality_.kkt_violation.max() <= 1e-6
    decide = "predict" if "SVR" in name else "decision_function"
    expected = getattr(theirs, decide)(X)
    difference = np.abs(getattr(ours, decide)(data) - expected).max()
    assert difference <= 1e-3 * (1 + np.abs(expected).max())


def primal(name, model, X, y, weights, z, K):
    """Return the primal objective at the decision function of the model."""
    decision = model.predict(X) if name == "SVR" else model.decision_function(X)
    norm = z @ K @ z / 2
    if name == "SVC":
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        return norm + 3.0 * weights @ np.maximum(1 - sign * decision, 0)
    if name == "SVR":
        return norm + 3.0 * weights @ np.maximum(np.abs(y - decision) - 0.2, 0)
    offset = model.offset_[0]
    return norm - 0.15 * weights.sum() * offset + weights @ np.maximum(-decision, 0)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_gap_bounds_the_distance_to_the_primal(name, tol):
    """Primal minus dual at the fitted model, computed without the solver and without LIBSVM."""
    X, y = data_for(name)
    weights = WEIGHTS[: len(y)]
    model = getattr(pairstep.svm, name)(tol=tol, **KERNELS["rbf"], **ESTIMATORS[name])
    model.fit(X, y, weights)
    K, z = gram(X, "rbf"), one_dual(model, np.ones(len(y)))
    dual = -objective(name, z, K, y, weights)
    gap = primal(name, model, X, y, weights, z, K) - dual
    reported = model.optimality_.duality_gap[0]
    slack = 1e-12 * (1 + abs(dual))
    assert -slack <= gap <= weights.sum() * 3 * tol + slack
    assert reported <= gap + slack  # its bias is optimal for these coefficients
    assert model.optimality_.kkt_violation[0] <= tol


@pytest.mark.parametrize("tol", [1e-1, 1e-6])
def test_violation_matches_its_definition(tol):
    X, y = data_for("SVC")
    model = pairstep.svm.SVC(tol=tol, **KERNELS["rbf"], **ESTIMATORS["SVC"]).fit(X, y)
    z, sign = one_dual(model, np.ones(len(y))), np.where(y == 1, 1.0, -1.0)
    gradient = gram(X, "rbf") @ z - sign
    upper, lower = np.maximum(3 * sign, 0), np.minimum(3 * sign, 0)
    violation = gradient[z > lower].max() - gradient[z < upper].min()
    assert model.optimality_.kkt_violation[0] == pytest.approx(max(violation, 0), abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cache_of_either_type_reaches_the_tolerance(dtype):
    X, y = data_for("SVC")
    model = pairstep.svm.SVC(C=100.0, gamma=0.05, tol=1e-9, dtype=dtype).fit(X, y)
    assert model.fit_status_ == 0
    assert model.optimality_.kkt_violation[0] <= 1e-9


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_a_wrong_gradient_of_an_outlier_is_found(name):
    """The row with the largest kernel values is compared even if it does not look extreme."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[7] *= 1e6
    parameters = KERNELS[name]
    kernel = Kernel(name, **parameters)
    matrix = pairwise_kernels(X, metric=name, **parameters)
    z = np.zeros(40)
    z[[0, 1]] = 0.5, -0.5
    dual = Dual(
        np.arange(40), -np.ones(40), np.full(40, -1.0), np.ones(40), np.array([0, 40]), np.zeros(1),
        z,
    )  # fmt: skip
    z[7], dual.upper[7] = 0.0, 0.0  # it can only decrease, which its true gradient favors
    true = matrix @ z - 1.0
    if true[7] < 0:
        z *= -1
        true = matrix @ z - 1.0
    wrong = true.copy()
    wrong[7] = -1e9
    verify(X, None, kernel, dual, wrong, _core.StopReason.optimal, 1, tol=1e-3, threads=1)
    np.testing.assert_allclose(wrong, true, rtol=1e-9, atol=1e-6)


def test_optimal_means_within_the_tolerance():
    """Fits that a limit ends anywhere: also just above the tolerance, they are not optimal."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)

    def fitted(tol, max_iter):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return SVC(C=10.0, tol=tol, max_iter=max_iter).fit(X, y).optimality_

    above = 0
    for max_iter in range(5, 100, 5):
        (violation,) = fitted(1e-6, max_iter).kkt_violation
        found = fitted(violation / 1.5, max_iter)
        assert (found.status[0] == "optimal") == (found.kkt_violation[0] <= violation / 1.5)
        above += found.kkt_violation[0] == violation
    assert above > 0


def test_intercepts_are_those_of_data_that_are_far_from_0():
    """A linear kernel is centered where that cancels; the intercept belongs to the given data."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    near = SVR(kernel="linear").fit(X, y).predict(X)
    far = SVR(kernel="linear").fit(X + 1000.0, y).predict(X + 1000.0)
    np.testing.assert_allclose(far, near, atol=5e-3)
    near = SVC(kernel="linear").fit(X, y > 0).decision_function(X)
    far = SVC(kernel="linear").fit(X + 1000.0, y > 0).decision_function(X + 1000.0)
    np.testing.assert_allclose(far, near, atol=5e-3)
