"""After any sequence of calls an estimator represents its last completed fit."""

import pickle
import signal
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, engine, plan

pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on")

CLASSIFIERS, REGRESSORS = (SVC, NuSVC), (SVR, NuSVR)


class Interrupt:
    """A callback that raises KeyboardInterrupt at one moment of a fit."""

    def __init__(self, moment):
        self.moment = moment

    def setup(self, estimator, context):
        self.at("setup")

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.at(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.at(f"end {context.task_name}")
        return False

    def at(self, moment):
        if moment == self.moment:
            raise KeyboardInterrupt


def solve_and_tell(*what, keep_going, **how):
    """Report progress at every chance, because small problems end before the first report."""
    for violation in (1.0, how["tol"]):
        keep_going(violation, 1, 0)
    return engine.solve(*what, **how)


# And whether the fit is complete at that moment; callbacks may inspect the estimator.
MOMENTS = {"setup": False, "begin fit": False, "end percent": False, "end fit": True}


def dot(A, B):
    """Inner products without a BLAS, whose bits depend on the alignment of arrays."""
    A, B = (M.toarray() if scipy.sparse.issparse(M) else np.asarray(M) for M in (A, B))
    return (A[:, None] * B).sum(axis=2)


def asymmetric(A, B):
    return dot(A @ np.triu(np.ones((A.shape[1],) * 2)), B)


def samples(n, features, classes, shift, sparse):
    """Rows around a point for each class, and the names of these classes."""
    rng = np.random.default_rng([n, features, classes, shift])
    y = np.arange(n) % classes
    X = rng.normal(size=(n, features)) + shift
    X[:, 0] += 2 * y
    names = np.array(["ant", "bee", "cat", "dog"])
    return scipy.sparse.csr_array(X) if sparse else X, names[y + shift]


SAMPLES = st.builds(
    samples, st.sampled_from([24, 30, 48]), st.integers(2, 3), st.integers(2, 3),
    st.integers(0, 1), st.booleans(),
)  # fmt: skip
KERNELS = st.sampled_from(["rbf", "linear", dot])


def with_nan(X):
    X = X.copy()
    (X.data if scipy.sparse.issparse(X) else X).flat[-1] = np.nan
    return X


# Each takes an estimator and samples to fit it to.
REFUSED = {
    "parameter": lambda m, X, y: m.set_params(tol=0.0).fit(X, y),
    "threads": lambda m, X, y: m.set_params(n_jobs=0).fit(X, y),
    "NaN": lambda m, X, y: m.set_params(kernel="rbf").fit(with_nan(X), y),
    "weights": lambda m, X, y: m.fit(X, y, np.zeros(len(y))),
    "weights that overflow": lambda m, X, y: m.fit(X, y, np.full(len(y), 1e308)),
    "overflow": lambda m, X, y: m.set_params(kernel="rbf").fit(X * 1e300, y),
    "kernel matrix": lambda m, X, y: m.set_params(kernel="precomputed").fit(X, y),
    "kernel function": lambda m, X, y: m.set_params(kernel=asymmetric).fit(X, y),
    "too few targets": lambda m, X, y: m.fit(X, y[:-1]),
    "NaN as target": lambda m, X, y: m.fit(X, np.where(np.arange(len(y)) % 2, 0, np.nan)),
    "one class": lambda m, X, y: m.fit(X, np.full(len(y), "ant")),
    "infeasible nu": lambda m, X, y: m.set_params(nu=0.9).fit(X, np.arange(len(y)) > 1),
}


def refusals(Estimator):
    among = dict(REFUSED)
    if Estimator is not NuSVC:
        del among["infeasible nu"]
    if Estimator not in CLASSIFIERS:
        del among["one class"]
    if Estimator is OneClassSVM:
        del among["too few targets"], among["NaN as target"]
    return among


def plain(value):
    """A form that == compares bit for bit."""
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            value.tolist() if value.dtype == object else bytes(value),
        )
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if scipy.sparse.issparse(value):
        return plain([value.shape, value.indptr, value.indices, value.data])
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    return value


def state(model):
    """Return all attributes of an estimator except its parameters and its training data.

    Pickles have no training data.
    """
    others = {*model.get_params(), "_training"}
    return plain({name: v for name, v in vars(model).items() if name not in others})


class Life(RuleBasedStateMachine):
    """An estimator, with its attributes and predictions after its last completed fit."""

    Estimator = None

    @initialize(warm_start=st.booleans())
    def create(self, warm_start):
        self.model = self.Estimator(gamma=0.3, tol=1e-7, warm_start=warm_start, n_jobs=1)
        self.known, self.fitted = state(self.model), None

    def targets(self, names):
        return names if self.Estimator in CLASSIFIERS else np.unique(names, return_inverse=True)[1]

    def decide(self, model, X):
        return (model.predict if self.Estimator in REGRESSORS else model.decision_function)(X)

    def complete(self, X, y):
        """Compare the fit that has just been completed with that of a new estimator."""
        fresh = clone(self.model).fit(X, y)
        np.testing.assert_allclose(
            self.decide(self.model, X), self.decide(fresh, X), rtol=1e-4, atol=1e-4
        )
        assert set(vars(self.model)) == set(vars(fresh))
        for name in ("n_features_in_", "classes_", "class_weight_", "shape_fit_", "fit_status_"):
            np.testing.assert_array_equal(
                getattr(self.model, name, None), getattr(fresh, name, None)
            )
        self.known = state(self.model)
        self.fitted = X, self.decide(self.model, X), self.model.predict(X)

    @rule(given=SAMPLES, kernel=KERNELS)
    def fit(self, given, kernel):
        X, y = given[0], self.targets(given[1])
        self.model.set_params(kernel=kernel).fit(X, y)
        self.complete(X, y)

    @rule(given=SAMPLES, kernel=KERNELS, data=st.data())
    def refused(self, given, kernel, data):
        refit = data.draw(st.sampled_from(list(refusals(self.Estimator).values())))
        parameters = self.model.get_params()
        with pytest.raises((TypeError, ValueError)):
            refit(self.model.set_params(kernel=kernel), given[0], self.targets(given[1]))
        self.model.set_params(**parameters)

    @rule(given=SAMPLES, kernel=KERNELS, moment=st.sampled_from(list(MOMENTS)))
    def interrupted(self, given, kernel, moment):
        X, y, before = given[0], self.targets(given[1]), self.model.kernel
        self.model.set_params(kernel=kernel).set_callbacks(Interrupt(moment))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "solve", solve_and_tell)
            with pytest.raises(KeyboardInterrupt):
                self.model.fit(X, y)
        self.model.set_callbacks()
        if MOMENTS[moment]:
            self.complete(X, y)
        else:
            self.model.set_params(kernel=before)

    @rule(gamma=st.sampled_from([0.1, 0.3, "scale"]), scale=st.sampled_from([0.3, 1.0, 30.0]))
    def set_parameters(self, gamma, scale):
        strength = {"C": scale} if self.Estimator in (SVC, SVR, NuSVR) else {"nu": 0.5 * scale / 30}
        self.model.set_params(gamma=gamma, **strength)

    @rule(warm_start=st.booleans())
    def set_warm_start(self, warm_start):
        self.model.set_params(warm_start=warm_start)

    @rule()
    def pickled(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @rule()
    def cloned(self):
        copy = clone(self.model)
        assert copy.get_params() == self.model.get_params()
        with pytest.raises(NotFittedError):
            copy.predict(np.zeros((1, 2)))

    @precondition(lambda self: self.fitted is not None)
    @rule()
    def other_features_are_refused(self):
        X = self.fitted[0]
        with pytest.raises(ValueError):  # noqa: PT011
            self.model.predict(np.zeros((3, X.shape[1] + 1)))

    @invariant()
    def the_last_fit_answers(self):
        assert state(self.model) == self.known
        if self.fitted is None:
            with pytest.raises(NotFittedError):
                self.model.predict(np.zeros((1, 2)))
            return
        X, decisions, predictions = self.fitted
        np.testing.assert_array_equal(self.decide(self.model, X), decisions)
        np.testing.assert_array_equal(self.model.predict(X), predictions)


@pytest.mark.parametrize("Estimator", [*CLASSIFIERS, *REGRESSORS, OneClassSVM])
def test_the_last_completed_fit_answers(Estimator):
    life = type(f"Life{Estimator.__name__}", (Life,), {"Estimator": Estimator})
    run_state_machine_as_test(life, settings=settings(max_examples=15, stateful_step_count=12))


# ------------------------------------------------------------------ other refusals

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OTHER = RNG.normal(size=(40, 5)) * 100
LABELS = np.array(["cat"] * 38 + ["dog"] * 2)
ENDLESS = RNG.normal(size=(3000, 20)), RNG.integers(0, 2, 3000)  # minutes of work


def check_untouched(model, refit, error):
    parameters, before = model.get_params(), state(model)
    with pytest.raises(error):
        refit(model)
    assert state(model) == before
    model.set_params(**parameters)


@pytest.mark.parametrize("Estimator", [*CLASSIFIERS, *REGRESSORS, OneClassSVM])
def test_a_refused_fit_changes_nothing(Estimator):
    model = Estimator(warm_start=True).fit(X, Y)
    for refit in refusals(Estimator).values():
        check_untouched(model, lambda m, refit=refit: refit(m, OTHER, Y[:40]), ValueError)


def test_names_of_features_stay():
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = SVC().fit(named, Y)
    check_untouched(model, lambda m: m.fit(OTHER, np.full(40, np.nan)), ValueError)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    model.fit(OTHER, np.arange(40) % 2)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(kernel=dot).fit(OTHER, np.arange(40) % 2)
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
    check_untouched(model, lambda m: m.fit(OTHER, LABELS, np.zeros(40)), ValueError)
    assert model.fit(X, Y).n_iter_[0] < first


def test_a_refit_drops_the_samples_of_a_callable_kernel():
    model = SVC(kernel=dot).fit(X, Y).set_params(kernel="linear").fit(OTHER, LABELS)
    assert X.tobytes() not in pickle.dumps(model)
