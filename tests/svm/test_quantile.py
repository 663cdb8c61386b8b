"""Quantile regression: optimality, coverage, crossing, scores and the search."""

import numpy as np
import pytest
from real_data import table
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVR, QuantileSVR

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


def test_linear_weights_of_each_quantile():
    model = QuantileSVR(quantile=QUANTILES, kernel="linear").fit(X, Y)
    predicted = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(np.sort(predicted), model.predict(X), atol=1e-9)


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
