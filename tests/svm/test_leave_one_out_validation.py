"""Searches with cv="loo" score the leave-one-out predictions of each candidate."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from pairstep.svm import SVC, SVCCV, SVR, SVRCV, leave_one_out


def test_scores_of_a_classifier_are_those_of_scikit_learns_splitter():
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.1, 1.0]}
    found = SVCCV(cv="loo", **grid).fit(X, y)
    expected = SVCCV(cv=LeaveOneOut(), **grid).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert found.n_splits_ == 1
    assert found.best_params_ == expected.best_params_


def test_the_score_of_a_regressor_is_that_of_all_predictions():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80] / X.std(axis=0), (y[:80] - y.mean()) / y.std()
    found = SVRCV(cv="loo", Cs=[0.1, 1.0], gammas=[0.05]).fit(X, y)
    for C, score in zip([0.1, 1.0], found.cv_results_["mean_test_score"], strict=True):
        predictions = cross_val_predict(SVR(C=C, gamma=0.05), X, y, cv=LeaveOneOut())
        assert score == pytest.approx(r2_score(y, predictions), abs=1e-3)


def test_weights():
    X, y = load_iris(return_X_y=True)
    weight = np.linspace(0.5, 1.5, len(y))
    search = SVCCV(cv="loo", Cs=[0.1, 1.0], gammas=[0.1]).fit(X, y, sample_weight=weight)
    for C, score in zip([0.1, 1.0], search.cv_results_["mean_test_score"], strict=True):
        model = SVC(C=C, gamma=0.1).fit(X, y, sample_weight=weight)
        assert score == leave_one_out(model, X, y, sample_weight=weight).score


def test_candidates_without_a_fit_are_reported():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="single sample"):
        SVCCV(cv="loo", Cs=[1.0], gammas=[0.1]).fit(X[:101], y[:101])
