"""Hard and bad input: a clear answer, or a clear error, always in finite time."""

import signal
import time

import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

RNG = np.random.default_rng(11)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
IRIS = load_iris(return_X_y=True)
# Labels without rhyme or reason at a large C: minutes of work.
ENDLESS = RNG.normal(size=(3000, 20)), RNG.integers(0, 2, 3000)
LONG = {"C": 1e5, "gamma": 0.02, "tol": 1e-10}


def decisions(machine, X):
    return machine.predict(X) if "SVR" in type(machine).__name__ else machine.decision_function(X)


def check_finite(machine, X):
    assert np.isfinite(machine.intercept_).all()
    assert np.isfinite(decisions(machine, X)).all()
    assert machine.fit_status_ == 0
    assert (machine.optimality_.kkt_violation <= machine.tol).all()


@pytest.mark.parametrize("Machine", ALL)
def test_two_samples(Machine):
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    machine = Machine(kernel="linear").fit(X, y)
    check_finite(machine, X)
    if Machine is SVC:
        np.testing.assert_allclose(machine.decision_function([[0.25]]), -0.25)  # x - 1/2: C binds
    np.testing.assert_allclose(
        decisions(machine, X), decisions(_libsvm(machine).fit(X, y), X), atol=1e-3
    )


def _libsvm(machine):
    names = set(sklearn.svm.SVC().get_params()) | {"nu", "epsilon"}
    settings = {k: v for k, v in machine.get_params().items() if k in names}
    return getattr(sklearn.svm, type(machine).__name__)(**settings)


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
def test_one_class(Machine):
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1"):
        Machine().fit(IRIS[0], np.ones(150))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("Machine", ALL)
def test_duplicated_points_with_opposite_labels(Machine, kernel):
    X = np.repeat(RNG.normal(size=(10, 2)), 2, axis=0)
    machine = Machine(kernel=kernel, C=100.0) if hasattr(Machine(), "C") else Machine(kernel=kernel)
    machine.fit(X, np.tile([0, 1], 10))
    check_finite(machine, X)


@pytest.mark.parametrize("Machine", ALL)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_constant_features(Machine, kernel):
    X, y = np.ones((12, 3)), np.tile([0, 1], 6)
    machine = Machine(kernel=kernel).fit(X, y)
    check_finite(machine, X)
    if Machine in (SVR, NuSVR):
        np.testing.assert_allclose(machine.predict(X), 0.5, atol=0.5)


@pytest.mark.parametrize("X", [np.zeros((6, 2)), scipy.sparse.csr_array((6, 2))])
@pytest.mark.parametrize("Machine", ALL)
def test_zeros(Machine, X):
    check_finite(Machine().fit(X, [0, 1, 0, 1, 0, 1]), X)


def test_all_bounded_bias_is_the_midpoint():
    """At a small C every variable is at its bound; the bias is not determined, LIBSVM's is."""
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), [0, 0, 1, 1]
    settings = {"kernel": "linear", "C": 1e-3, "tol": 1e-8}
    ours, theirs = SVC(**settings).fit(X, y), sklearn.svm.SVC(**settings).fit(X, y)
    assert (np.abs(ours.dual_coef_) == 1e-3).all()
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-12)


def test_all_bounded_one_class():
    """With nu = 1 all are at their bound, on one side only: scikit-learn gives up."""
    X = RNG.normal(size=(20, 2))
    machine = OneClassSVM(nu=1.0).fit(X)
    check_finite(machine, X)
    assert machine.decision_function(X).max() == pytest.approx(0.0, abs=1e-12)


def test_constant_target():
    machine = SVR().fit(IRIS[0], np.full(150, 7.0))
    assert machine.support_.size == 0
    np.testing.assert_array_equal(machine.predict(IRIS[0]), 7.0)
    sparse = SVR(kernel="linear").fit(scipy.sparse.csr_array(IRIS[0]), np.full(150, 7.0))
    assert sparse.dual_coef_.shape == (1, 0)
    assert sparse.coef_.shape == (1, 4)
    np.testing.assert_array_equal(sparse.predict(IRIS[0]), 7.0)


@pytest.mark.parametrize("nu", [0.21, 0.5, 1.0])
def test_infeasible_nu(nu):
    with pytest.raises(ValueError, match=r"nu is infeasible.* nu must be in \(0, 0.2\]; got nu="):
        NuSVC(nu=nu).fit(RNG.normal(size=(20, 2)), [0] * 18 + [1] * 2)


@pytest.mark.parametrize("n", [3, 7, 10, 29])
def test_largest_nu(n):
    X = RNG.normal(size=(60, 2))
    machine = NuSVC(nu=2 * n / 60).fit(X, np.arange(60) < n)
    check_finite(machine, X)
    assert machine.n_support_[1] == n  # all of the small class


def test_infeasible_nu_names_weights():
    y, weights = np.array(["a", "b", "b", "a"]), [1.0, 3.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"class 'a' weigh 1 and those of class 'b' 3, so nu must"):
        NuSVC(nu=0.6).fit(np.eye(4), y, weights)


@pytest.mark.parametrize("Machine", ALL)
def test_weights_that_vanish(Machine):
    X, y = IRIS
    machine = Machine(
        gamma=0.1, tol=1e-6, **({"nu": 0.2} if "nu" in Machine().get_params() else {})
    )
    zero, negative = np.ones(150), np.ones(150)
    zero[::3], negative[::3] = 0.0, -2.0
    kept = zero > 0
    expected = decisions(machine.fit(X[kept], y[kept]), X)
    for weights in (zero, negative):
        machine.fit(X, y, weights)
        assert kept[machine.support_].all()
        np.testing.assert_array_equal(X[machine.support_], machine.support_vectors_)
        np.testing.assert_allclose(decisions(machine, X), expected, atol=1e-4)


@pytest.mark.parametrize("Machine", ALL)
def test_tiny_weights(Machine):
    X, y = IRIS
    weights = np.ones(150)
    weights[::4] = 1e-12
    machine = Machine(gamma=0.1, **({"nu": 0.2} if "nu" in Machine().get_params() else {}))
    check_finite(machine.fit(X, y, weights), X)


def test_classes_without_weight_are_never_predicted():
    X, y = IRIS
    machine = SVC().fit(X, y, (y != 1).astype(float))
    assert machine.classes_.tolist() == [0, 1, 2]
    assert set(machine.predict(X)) == {0, 2}
    four = np.where(np.arange(150) % 7 == 0, 3, y)
    machine = SVC().fit(X, four, (four % 2 == 0).astype(float))  # two of four: 1 and 3
    assert set(machine.predict(X)) == {0, 2}


@pytest.mark.parametrize("gamma", [1e-12, 1e6])
@pytest.mark.parametrize("Machine", ALL)
def test_extreme_gamma(Machine, gamma):
    X, y = IRIS
    check_finite(Machine(gamma=gamma).fit(X, y), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 1e3), (10.0, 0.0)])
def test_violation_at_extreme_gamma(gamma, dtype, scale, shift):
    """The kernel recomputed from differences: no digits are lost to large norms."""
    X = scale * np.random.default_rng(4).normal(size=(40, 3)) + shift
    machine = OneClassSVM(gamma=gamma, dtype=dtype).fit(X)
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    z = np.zeros(40)
    z[machine.support_] = machine.dual_coef_[0]
    gradient = K @ z
    assert gradient[z > 0].max() - gradient[z < 1].min() <= 1.1 * machine.tol
    np.testing.assert_allclose(machine.score_samples(X), gradient, rtol=1e-6, atol=1e-6)


def test_enormous_polynomial():
    """scikit-learn does not come back from this one."""
    X, y = IRIS
    began = time.perf_counter()
    machine = SVC(kernel="poly", degree=8, gamma=4000).fit(X, y)
    assert time.perf_counter() - began < 10
    assert machine.score(X, y) > 0.9
    assert (machine.optimality_.kkt_violation <= 1e-3).all()


@pytest.mark.parametrize("Machine", ALL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unscaled_data(Machine):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = X * np.logspace(-3, 4, X.shape[1])
    if Machine in (SVC, NuSVC):
        y = y > np.median(y)
    machine = Machine(kernel="linear", time_limit=1).fit(X, y)
    assert np.isfinite(decisions(machine, X)).all()
    check_finite(Machine().fit(X, y), X)


@pytest.mark.parametrize("C", [1e-6, 1e10])
@pytest.mark.parametrize("Machine", [SVC, SVR])
def test_extreme_C(Machine, C):
    X, y = IRIS
    check_finite(Machine(C=C).fit(X, y), X)


def test_data_that_overflow():
    X = np.finfo(float).max * RNG.uniform(size=(10, 2))
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        with pytest.raises(ValueError, match="coefficients or intercepts are not finite"):
            SVC(kernel=kernel).fit(X, np.tile([0, 1], 5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"kernel": "gauss"}, "'kernel' parameter"),
        ({"gamma": -0.1}, "'gamma' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"rule": "smo"}, "'rule' parameter"),
        ({"dtype": np.int32}, "'dtype' parameter"),
        ({"time_limit": -1.0}, "'time_limit' parameter"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"kernel": lambda X, Y: X @ X.T * np.nan}, "NaN or infinite"),
        ({"kernel": lambda X, Y: X}, r"shape \(150, 150\) for 150 samples, got \(150, 4\)"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SVC(**settings).fit(*IRIS)


def test_infinite_C_has_no_share():
    with pytest.raises(ValueError, match="C must be finite"):
        NuSVR(C=np.inf).fit(*IRIS)


@pytest.mark.parametrize("Machine", [SVC, SVR])
def test_convergence_warning(Machine):
    X, y = IRIS
    message = (
        r"Solver terminated early \(max_iter=3\).  Consider pre-processing your data with "
        r"StandardScaler or MinMaxScaler. The KKT violation is \d.* above tol=0.001 after 3 "
        r"iterations: raise max_iter, time_limit or tol, or lower C."
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        machine = Machine(max_iter=3).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert machine.fit_status_ == 1
    assert (machine.optimality_.status == "max_iter").all()
    assert np.all(machine.n_iter_ == 3)
    assert np.isfinite(decisions(machine, X)).all()


def test_time_limit():
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="stopped by time_limit=0.5"):
        machine = SVC(time_limit=0.5, **LONG).fit(*ENDLESS)
    assert time.perf_counter() - began < 4
    assert machine.optimality_.status.tolist() == ["time_limit"]
    assert machine.optimality_.kkt_violation[0] > LONG["tol"]
    assert np.isfinite(machine.decision_function(ENDLESS[0])).all()


def test_interrupt_is_answered_within_a_second():
    def interrupt(*_):
        nonlocal sent
        sent = time.perf_counter()
        raise KeyboardInterrupt

    sent, earlier = 0.0, signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            SVC(**LONG).fit(*ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)
    assert time.perf_counter() - sent < 1
