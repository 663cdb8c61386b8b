"""Fits that continue from the last one end where a fresh one does, sooner."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X, Y = make_classification(400, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=1)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


def machine_of(Machine, **settings):
    nu = {"nu": 0.4} if Machine in (NuSVC, NuSVR, OneClassSVM) else {}
    return Machine(gamma=0.2, tol=1e-7, warm_start=True, **nu, **settings)


def check_same(warm, data, y, weights=None):
    fresh = clone(warm).fit(data, y, weights)
    decide = "predict" if isinstance(warm, (SVR, NuSVR)) else "decision_function"
    np.testing.assert_allclose(
        getattr(warm, decide)(data), getattr(fresh, decide)(data), rtol=1e-4, atol=1e-4
    )
    assert warm.fit_status_ == 0
    return np.sum(warm.n_iter_), np.sum(fresh.n_iter_)


@pytest.mark.parametrize("Machine", ALL)
def test_the_same_again(Machine):
    machine = machine_of(Machine).fit(X, Y)
    again, fresh = check_same(machine.fit(X, Y), X, Y)
    assert again < fresh / 2


@pytest.mark.parametrize("change", [0.1, 0.9, 1.1, 10.0])
@pytest.mark.parametrize("Machine", [SVC, SVR, NuSVR])
def test_another_C(Machine, change):
    machine = machine_of(Machine).fit(X, Y)
    check_same(machine.set_params(C=change).fit(X, Y), X, Y)


@pytest.mark.parametrize("Machine", ALL)
def test_appended_rows(Machine):
    machine = machine_of(Machine).fit(X[:390], Y[:390])
    warm, fresh = check_same(machine.fit(X, Y), X, Y)
    if Machine in (SVC, SVR):  # the totals of the others change with the number of rows
        assert warm < fresh


@pytest.mark.parametrize("Machine", ALL)
def test_other_weights(Machine):
    weights = np.random.default_rng(0).uniform(0, 2, 400) * (np.arange(400) % 5 > 0)
    machine = machine_of(Machine).fit(X, Y)
    check_same(machine.fit(X, Y, weights), X, Y, weights)
    check_same(machine.fit(X, Y), X, Y)


def test_other_class_weights():
    machine = machine_of(SVC).fit(X, Y)
    check_same(machine.set_params(class_weight={0: 5.0, 2: 0.3}).fit(X, Y), X, Y)


@pytest.mark.parametrize("Machine", [NuSVC, NuSVR, OneClassSVM])
def test_another_nu(Machine):
    machine = machine_of(Machine).fit(X, Y)
    check_same(machine.set_params(nu=0.2).fit(X, Y), X, Y)


@pytest.mark.parametrize("Machine", ALL)
def test_fewer_rows_and_other_data(Machine):
    """Nothing that a machine remembers can make its next fit wrong."""
    machine = machine_of(Machine).fit(X, Y)
    check_same(machine.fit(X[200:], Y[200:]), X[200:], Y[200:])
    check_same(machine.fit(-X, 2 - Y), -X, 2 - Y)
    two = (Y > 0).astype(int)
    check_same(machine.fit(X, two), X, two)


def test_only_where_asked():
    machine = machine_of(SVC).fit(X, Y)
    fresh = machine.n_iter_
    assert (pickle.loads(pickle.dumps(machine)).fit(X, Y).n_iter_ < fresh).all()
    machine.set_params(warm_start=False).fit(X, Y)
    np.testing.assert_array_equal(machine.n_iter_, fresh)
    assert not hasattr(machine, "_last_duals")
