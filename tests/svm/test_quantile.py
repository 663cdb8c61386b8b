"""Quantile regression: optimality, coverage, crossing, scores and the search."""

import pickle

import numpy as np
import pytest
import scipy
from real_data import table
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, make_scorer, mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVR, SVRCV, QuantileSVR, path, save_libsvm_model, to_sklearn

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (300, 1))
Y = np.sin(X.ravel()) + (0.1 + 0.05 * X.ravel()) * RNG.normal(size=300)
QUANTILES = [0.1, 0.5, 0.9]


def pinball(error, quantile):
    return np.maximum(quantile * error, (quantile - 1) * error)


def test_the_median_is_regression_without_a_tube():
    ours = QuantileSVR(C=2.0, gamma=0.3, tol=1e-8).fit(X, Y)
    theirs = SVR(C=1.0, gamma=0.3, epsilon=0.0, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


@pytest.mark.parametrize("quantile", [0.05, 0.3, 0.9])
def test_primal_and_dual_objectives_agree(quantile):
    """Both are computed here from the data, so that they prove each other optimal."""
    C, weight = 3.0, RNG.uniform(0.2, 2.0, len(X))
    model = QuantileSVR(quantile=quantile, C=C, gamma=0.3, tol=1e-8).fit(X, Y, weight)
    z = np.zeros(len(X))
    z[model.support_] = model.dual_coef_[0]
    assert abs(z.sum()) < 1e-12
    limit = C * weight
    assert (z >= -(1 - quantile) * limit).all()
    assert (z <= quantile * limit).all()
    K = rbf_kernel(X, gamma=0.3)
    errors = Y - (K @ z + model.intercept_)
    primal = z @ K @ z / 2 + limit @ pinball(errors, quantile)
    dual = Y @ z - z @ K @ z / 2
    assert primal == pytest.approx(dual, rel=1e-7)


def test_a_linear_kernel_and_a_large_C_give_linear_quantile_regression():
    ours = QuantileSVR(quantile=0.8, kernel="linear", C=1e4, tol=1e-6).fit(X, Y)
    theirs = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, Y)
    loss = pinball(Y - ours.predict(X), 0.8).sum()
    assert loss == pytest.approx(pinball(Y - theirs.predict(X), 0.8).sum(), rel=1e-6)


@pytest.mark.parametrize("quantile", [0.02, 0.25, 0.9])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_fraction_of_training_samples_below(quantile, C):
    tol = 1e-8
    predicted = QuantileSVR(quantile=quantile, C=C, gamma=1.0, tol=tol).fit(X, Y).predict(X)
    assert np.mean(predicted - 2 * tol > Y) <= quantile
    assert np.mean(predicted + 2 * tol < Y) <= 1 - quantile


def test_several_quantiles_are_those_fitted_one_by_one():
    several = QuantileSVR(quantile=QUANTILES, non_crossing=False, tol=1e-8).fit(X, Y)
    assert several.predict(X).shape == (len(X), 3)
    assert several.dual_coef_.shape == (3, len(several.support_))
    assert several.n_iter_.shape == several.intercept_.shape == (3,)
    assert several.optimality_.status.tolist() == ["optimal"] * 3
    for k, quantile in enumerate(QUANTILES):
        one = QuantileSVR(quantile=quantile, tol=1e-8).fit(X, Y)
        assert one.predict(X).shape == (len(X),)
        np.testing.assert_allclose(several.predict(X)[:, k], one.predict(X), atol=1e-5)
    single = QuantileSVR(quantile=[0.5], tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(single.predict(X)[:, 0], several.predict(X)[:, 1], atol=1e-5)


def test_linear_weights_of_each_quantile():
    model = QuantileSVR(quantile=QUANTILES, kernel="linear").fit(X, Y)
    predicted = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(np.sort(predicted), model.predict(X), atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "function", "float32"])
def test_other_data(kind):
    expected = QuantileSVR(quantile=QUANTILES, gamma=0.3, tol=1e-6).fit(X, Y).predict(X)
    model = QuantileSVR(quantile=QUANTILES, gamma=0.3, tol=1e-6)
    data = X
    if kind == "sparse":
        data = scipy.sparse.csr_array(X)
    elif kind == "precomputed":
        model.kernel, data = "precomputed", rbf_kernel(X, gamma=0.3)
    elif kind == "function":
        model.kernel = lambda A, B: rbf_kernel(A, B, gamma=0.3)
    else:
        data = X.astype(np.float32)
    np.testing.assert_allclose(model.fit(data, Y).predict(data), expected, atol=1e-3)


def crossing_model():
    """Fit many quantiles to few samples, so that the predictions cross."""
    quantiles = np.array([0.7, 0.1, 0.5, 0.3, 0.9, 0.6])
    return QuantileSVR(quantile=quantiles, C=100.0, gamma=5.0).fit(X[:40], Y[:40])


def test_predictions_do_not_cross():
    model = crossing_model()
    order = np.argsort(model.quantile)
    new = np.linspace(-1, 11, 500)[:, None]
    given = model.set_params(non_crossing=False).predict(new)
    sorted_ = model.set_params(non_crossing=True).predict(new)
    assert (np.diff(given[:, order]) < 0).any()
    assert (np.diff(sorted_[:, order]) >= 0).all()
    np.testing.assert_array_equal(np.sort(sorted_), np.sort(given))


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.4, 2.0])
def test_sorting_does_not_increase_the_sum_of_pinball_losses(y):
    model = crossing_model()
    new = np.linspace(-1, 11, 500)[:, None]
    given = model.set_params(non_crossing=False).predict(new)
    sorted_ = model.set_params(non_crossing=True).predict(new)
    before, after = (
        pinball(y - predicted, model.quantile).sum(axis=1) for predicted in (given, sorted_)
    )
    crossed = (given != sorted_).any(axis=1)
    assert crossed.any()
    assert (after[crossed] < before[crossed]).all()


def test_the_score_is_d2_of_the_pinball_loss():
    weight = RNG.uniform(size=len(X))
    model = QuantileSVR(quantile=0.9).fit(X, Y)
    expected = d2_pinball_score(Y, model.predict(X), alpha=0.9, sample_weight=weight)
    assert model.score(X, Y, weight) == pytest.approx(expected)
    model = QuantileSVR(quantile=QUANTILES).fit(X, Y)
    columns = zip(QUANTILES, model.predict(X).T, strict=True)
    expected = np.mean([d2_pinball_score(Y, column, alpha=q) for q, column in columns])
    assert model.score(X, Y) == pytest.approx(expected)


def test_clone_pickle_and_warm_start():
    model = QuantileSVR(quantile=QUANTILES, warm_start=True, tol=1e-6).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    fresh = clone(model).set_params(C=2.0).fit(X, Y)
    np.testing.assert_allclose(
        model.set_params(C=2.0).fit(X, Y).predict(X), fresh.predict(X), atol=1e-3
    )


def test_path():
    found = path(X, Y, [0.1, 1.0], model=QuantileSVR(quantile=QUANTILES, gamma=0.3, tol=1e-6))
    model = QuantileSVR(quantile=QUANTILES, gamma=0.3, tol=1e-6).fit(X, Y)
    assert found.coefficients.shape == (2, 3, len(X))
    np.testing.assert_allclose(found.intercept[1], model.intercept_, atol=1e-4)


def test_no_counterpart_elsewhere(tmp_path):
    model = QuantileSVR().fit(X, Y)
    with pytest.raises(TypeError, match="scikit-learn has no quantile"):
        to_sklearn(model)
    with pytest.raises(TypeError, match="LIBSVM has no model type QuantileSVR"):
        save_libsvm_model(model, tmp_path / "model")


GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}


@pytest.mark.parametrize("quantile", [0.9, QUANTILES])
@pytest.mark.parametrize("cache_size", [200, 1e-3])  # with and without a shared matrix
def test_a_search_has_the_scores_of_a_grid_search(quantile, cache_size):
    ours = SVRCV(
        quantile=quantile, Cs=GRID["C"], gammas=GRID["gamma"], tol=1e-6, cv=3, cache_size=cache_size
    ).fit(X, Y)
    theirs = GridSearchCV(QuantileSVR(quantile=quantile, tol=1e-6), GRID, cv=3).fit(X, Y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-5
    )
    assert type(ours.best_estimator_) is QuantileSVR
    assert ours.predict(X).shape == (len(X), *np.shape(quantile))
    assert "epsilon" not in ours.best_params_


def test_a_search_by_the_pinball_loss():
    loss = make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False)
    options = {"Cs": GRID["C"], "gammas": GRID["gamma"], "tol": 1e-6}
    ours = SVRCV(quantile=0.9, scoring=loss, **options).fit(X, Y)
    grid = GridSearchCV(QuantileSVR(quantile=0.9, tol=1e-6), GRID, scoring=loss).fit(X, Y)
    assert ours.best_score_ == pytest.approx(grid.best_score_, abs=1e-5)
    assert clone(ours).fit(X, Y).best_params_ == ours.best_params_


def test_coverage_of_held_out_houses():
    """Coverage is close to the quantiles, and the loss is below or close to those of the peers."""
    data, prices = table("california.csv.gz")
    train, test, y, y_test = train_test_split(
        data, prices / 1e5, train_size=1500, test_size=5000, random_state=0
    )
    ours = make_pipeline(StandardScaler(), QuantileSVR(quantile=[0.1, 0.9], C=30.0, gamma=0.05))
    predicted = ours.fit(train, y).predict(test)
    below = (y_test[:, None] <= predicted).mean(axis=0)
    np.testing.assert_allclose(below, [0.1, 0.9], atol=0.03)
    for k, quantile in enumerate([0.1, 0.9]):
        loss = mean_pinball_loss(y_test, predicted[:, k], alpha=quantile)
        linear = make_pipeline(StandardScaler(), QuantileRegressor(quantile=quantile, alpha=0.0))
        boosting = GradientBoostingRegressor(loss="quantile", alpha=quantile, random_state=0)
        linear_loss, boosting_loss = (
            mean_pinball_loss(y_test, peer.fit(train, y).predict(test), alpha=quantile)
            for peer in (linear, boosting)
        )
        assert loss < 0.95 * linear_loss
        assert loss < 1.05 * boosting_loss
