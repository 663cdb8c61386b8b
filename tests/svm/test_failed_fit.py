"""A fit that is refused or interrupted leaves every attribute of the estimator unchanged."""

import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OTHER = RNG.normal(size=(40, 5)) * 100
LABELS = np.array(["cat"] * 38 + ["dog"] * 2)
ENDLESS = RNG.normal(size=(3000, 20)), RNG.integers(0, 2, 3000)  # minutes of work
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


def linear(A, B):
    return np.asarray(A) @ np.asarray(B).T


def asymmetric(A, B):
    return np.asarray(A) @ np.triu(np.ones((np.shape(A)[1],) * 2)) @ np.asarray(B).T


def state(model):
    return pickle.dumps({k: v for k, v in vars(model).items() if k not in model.get_params()})


def check_untouched(model, refit, error):
    parameters, before = model.get_params(), state(model)
    with pytest.raises(error):
        refit(model)
    assert state(model) == before
    model.set_params(**parameters)
    return model


# Refused at every stage: by parameters, data, targets, weights, kernel, duals, and by their number.
REFUSED = {
    "parameters": lambda m: m.set_params(tol=-1.0).fit(OTHER, np.arange(40) % 2),
    "NaN": lambda m: m.fit(np.full((40, 5), np.nan), np.arange(40) % 2),
    "weights": lambda m: m.fit(OTHER, np.arange(40) % 2, np.zeros(40)),
    "weights that overflow": lambda m: m.fit(OTHER, np.arange(40) % 2, np.full(40, 1e308)),
    "overflow": lambda m: m.fit(OTHER * 1e300, np.arange(40) % 2),
    "sparse overflow": lambda m: m.fit(scipy.sparse.csr_array(OTHER * 1e300), np.arange(40) % 2),
    "kernel matrix": lambda m: m.set_params(kernel="precomputed").fit(OTHER, np.arange(40) % 2),
    "kernel function": lambda m: m.set_params(kernel=asymmetric).fit(OTHER, np.arange(40) % 2),
    "threads": lambda m: m.set_params(n_jobs=0).fit(OTHER, np.arange(40) % 2),
}


@pytest.mark.parametrize("refusal", REFUSED)
@pytest.mark.parametrize("Estimator", ALL)
def test_a_refused_fit_changes_nothing(Estimator, refusal):
    model = Estimator(warm_start=True).fit(X, Y)
    decisions = model.predict(X)
    check_untouched(model, REFUSED[refusal], ValueError)
    np.testing.assert_array_equal(model.predict(X), decisions)


def test_refused_by_the_duals():
    model = NuSVC(nu=0.3).fit(X, np.where(Y, "right", "left"))
    check_untouched(model, lambda m: m.fit(OTHER, LABELS), ValueError)
    assert set(model.predict(X)) == {"left", "right"}
    model = SVC(class_weight="balanced").fit(X, Y)
    one_class = (LABELS == "cat").astype(float)
    check_untouched(model, lambda m: m.fit(OTHER, LABELS, one_class), ValueError)
    model = NuSVR().fit(X, Y)
    check_untouched(model, lambda m: m.set_params(C=np.inf).fit(OTHER, np.ones(40)), ValueError)


def test_names_of_features_stay():
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = SVC().fit(named, Y)
    check_untouched(model, lambda m: m.fit(OTHER, np.full(40, np.nan)), ValueError)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    model.fit(OTHER, np.arange(40) % 2)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(kernel=linear).fit(OTHER, np.arange(40) % 2)
    assert not hasattr(model, "n_features_in_")


def test_interrupted_by_a_signal():
    def interrupt(*_):
        raise KeyboardInterrupt

    def refit(model):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        model.set_params(C=1e5, gamma=0.02, tol=1e-10).fit(*ENDLESS)

    model = SVC(warm_start=True).fit(X, Y)
    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        check_untouched(model, refit, KeyboardInterrupt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)


def test_a_warning_that_is_an_error_refuses():
    model = SVR().fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_untouched(
            model, lambda m: m.set_params(max_iter=1).fit(X + 1, X[:, 0]), ConvergenceWarning
        )


def test_a_warm_start_survives_a_refusal():
    model = SVC(warm_start=True, C=100.0).fit(X, Y)
    first = model.n_iter_[0]
    check_untouched(model, REFUSED["weights"], ValueError)
    assert model.fit(X, Y).n_iter_[0] < first


def test_a_refit_drops_the_samples_of_a_callable_kernel():
    model = SVC(kernel=linear).fit(X, Y).set_params(kernel="linear").fit(OTHER, LABELS)
    assert X.tobytes() not in pickle.dumps(model)
