"""SimplexRegressor against SLSQP, closed forms and scikit-learn's own checks."""

import math
import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from oracles import kkt_violation, problem, reference_solution, sum_error_in_ulps
from sklearn.base import clone
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairstep.simplex import SimplexRegressor

M, N = 40, 7
RNG = np.random.default_rng(3)
X = RNG.normal(size=(M, N)) + 2.0
SHARES = np.array([0.5, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0])
Y = X @ SHARES + 0.3 * RNG.normal(size=M)
MANY = np.column_stack([Y, X[:, 3] + RNG.normal(size=M), RNG.normal(size=M)])
IMPORTANCE = RNG.integers(0, 4, M)

SETTINGS = {
    "default": {},
    "ridge": {"ridge": 5.0},
    "short": {"total": 1.0, "lower": -0.5, "upper": 0.4},
    "bounds": {"total": 2.0, "lower": 0.1, "upper": np.linspace(0.2, 0.8, N)},
    "range": {"total": (0.2, 0.9)},
}


@parametrize_with_checks(
    [
        SimplexRegressor(),
        SimplexRegressor(fit_intercept=True),
        SimplexRegressor(total=(0.5, 1.0), lower=-1.0, upper=2.0, ridge=0.1),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def stated(y, importance, intercept, settings):
    """The problem as documented, with the intercept eliminated last."""
    settings = dict(settings)
    ridge = settings.pop("ridge", 0.0)

    def residual(w):
        r = X @ w - y
        return r - np.average(r, weights=importance) if intercept else r

    def value(w):
        return 0.5 * importance @ residual(w) ** 2 + 0.5 * ridge * w @ w

    def gradient(w):
        # d/dw of the profiled value: the best constant has derivative 0.
        return X.T @ (importance * residual(w)) + ridge * w

    if settings.get("upper") is None:
        settings["upper"] = np.inf
    return problem(value, gradient, N, **settings)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_coefficients_are_optimal(name, intercept, weighted):
    settings = SETTINGS[name]
    importance = IMPORTANCE.astype(float) if weighted else np.ones(M)
    model = SimplexRegressor(fit_intercept=intercept, **settings)
    model.fit(X, Y, sample_weight=importance if weighted else None)
    p, w = stated(Y, importance, intercept, settings), model.coef_
    size = 1 + np.abs(p.gradient(w)).max()
    assert (w >= p.lower).all()
    assert (w <= p.upper).all()
    assert kkt_violation(p, w) <= 1e-7 * size
    start = np.clip(np.full(N, p.low[0] / N), p.lower, p.upper)
    best = p.value(reference_solution(p, start))
    assert p.value(w) <= best + 1e-9 * (1 + abs(best))
    assert model.n_features_in_ == N
    if p.low[0] == p.high[0]:
        assert sum_error_in_ulps(w, p.low[0]) <= 1
    residual = Y - X @ w
    expected = np.average(residual, weights=importance) if intercept else 0.0
    assert model.intercept_ == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(model.predict(X), X @ w + model.intercept_, rtol=1e-13)


def test_agrees_with_nnls():
    """With an unlimited sum, it is nonnegative least squares."""
    expected, _ = scipy.optimize.nnls(X, MANY[:, 2])
    model = SimplexRegressor(total=(0.0, math.inf)).fit(X, MANY[:, 2])
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_sample_weight_is_repetition(intercept):
    weighted = SimplexRegressor(fit_intercept=intercept).fit(X, MANY, sample_weight=IMPORTANCE)
    rows = np.repeat(np.arange(M), IMPORTANCE)
    repeated = SimplexRegressor(fit_intercept=intercept).fit(X[rows], MANY[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_each_output_has_its_own_weights(intercept):
    model = SimplexRegressor(fit_intercept=intercept, upper=0.6).fit(X, MANY)
    assert model.coef_.shape == (3, N)
    assert model.intercept_.shape == (3,) if intercept else not np.any(model.intercept_)
    assert model.predict(X).shape == MANY.shape
    assert np.shape(model.n_iter_) == (3,)
    for k in range(3):
        alone = SimplexRegressor(fit_intercept=intercept, upper=0.6).fit(X, MANY[:, k])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-9)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), atol=1e-8)
        assert sum_error_in_ulps(model.coef_[k], 1.0) <= 1


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("y", [Y, MANY], ids=["one", "many"])
def test_sparse(container, y):
    thin = np.where(X > 2, X, 0.0)
    dense = SimplexRegressor().fit(thin, y, sample_weight=IMPORTANCE)
    sparse = SimplexRegressor().fit(container(thin), y, sample_weight=IMPORTANCE)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
    np.testing.assert_allclose(sparse.predict(container(thin)), dense.predict(thin), atol=1e-8)


def test_final_estimator_of_stacking():
    models = [
        ("line", LinearRegression()),
        ("tree", DecisionTreeRegressor(max_depth=3, random_state=0)),
        ("near", KNeighborsRegressor()),
    ]
    stack = StackingRegressor(models, final_estimator=SimplexRegressor(), cv=3).fit(X, Y)
    shares = stack.final_estimator_.coef_
    assert shares.min() >= 0
    assert math.fsum(shares) == 1.0
    average = sum(w * m.predict(X) for w, m in zip(shares, stack.estimators_, strict=True))
    np.testing.assert_allclose(stack.predict(X), average, rtol=1e-12)


def test_works_with_scikit_learn_tools():
    search = GridSearchCV(SimplexRegressor(), {"ridge": [0.0, 1.0], "total": [0.5, 1.0]}, cv=3)
    assert search.fit(X, Y).best_params_["total"] == 1.0
    model = pickle.loads(pickle.dumps(SimplexRegressor(total=(0.5, 1.0)).fit(X, Y)))
    assert clone(model).total == (0.5, 1.0)
    assert model.result_.status == "optimal"
    assert model.predict(X).shape == (M,)


@pytest.mark.parametrize("y", [Y, MANY], ids=["one", "many"])
def test_warns_when_not_converged(y):
    hard = np.vander(np.linspace(0.5, 1.0, M), 20)
    y = y - y.mean(axis=0)
    lower = -math.inf
    with pytest.warns(ConvergenceWarning, match=r"KKT violation.*\d.*tol.*\d"):
        model = SimplexRegressor(max_iter=1, tol=1e-14, lower=lower).fit(hard, y)
    assert np.all(np.isfinite(model.coef_))
