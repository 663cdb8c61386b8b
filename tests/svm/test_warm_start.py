"""Warm starts reach the optimum of a cold start in fewer iterations."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, Y = make_classification(400, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=1)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


def model_of(Estimator, **settings):
    nu = {"nu": 0.4} if Estimator in (NuSVC, NuSVR, OneClassSVM) else {}
    return Estimator(gamma=0.2, tol=1e-7, warm_start=True, **nu, **settings)


def check_same(warm, data, y, weights=None):
    fresh = clone(warm).fit(data, y, weights)
    decide = "predict" if isinstance(warm, (SVR, NuSVR)) else "decision_function"
    np.testing.assert_allclose(
        getattr(warm, decide)(data), getattr(fresh, decide)(data), rtol=1e-4, atol=1e-4
    )
    assert warm.fit_status_ == 0
    return np.sum(warm.n_iter_), np.sum(fresh.n_iter_)


@pytest.mark.parametrize("Estimator", ALL)
def test_other_weights(Estimator):
    weights = np.random.default_rng(0).uniform(0, 2, 400) * (np.arange(400) % 5 > 0)
    model = model_of(Estimator).fit(X, Y)
    check_same(model.fit(X, Y, weights), X, Y, weights)
    check_same(model.fit(X, Y), X, Y)


def test_other_class_weights():
    model = model_of(SVC).fit(X, Y)
    check_same(model.set_params(class_weight={0: 5.0, 2: 0.3}).fit(X, Y), X, Y)


@pytest.mark.parametrize("Estimator", ALL)
def test_fewer_rows_and_other_data(Estimator):
    """Earlier data do not affect the result of the next fit."""
    model = model_of(Estimator).fit(X, Y)
    check_same(model.fit(X[200:], Y[200:]), X[200:], Y[200:])
    check_same(model.fit(-X, 2 - Y), -X, 2 - Y)
    two = (Y > 0).astype(int)
    check_same(model.fit(X, two), X, two)


def test_no_warm_start_by_default():
    model = model_of(SVC).fit(X, Y)
    fresh = model.n_iter_
    assert (pickle.loads(pickle.dumps(model)).fit(X, Y).n_iter_ < fresh).all()
    model.set_params(warm_start=False).fit(X, Y)
    np.testing.assert_array_equal(model.n_iter_, fresh)
    assert not hasattr(model, "_last_duals")
