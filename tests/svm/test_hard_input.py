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
        decisions(machine, X), decisions(machine.to_sklearn().fit(X, y), X), atol=1e-3
    )


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


@pytest.mark.unsanitized
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


@pytest.mark.parametrize("n", [60, 1500])
def test_data_whose_squares_are_large(n):
    """As they are otherwise: with gamma="scale" a factor of the data does not matter."""
    X = np.random.default_rng(1).normal(size=(n, 3))
    y = (X[:, 0] > 0).astype(int)
    expected = SVC(tol=1e-6).fit(X, y).decision_function(X)
    for factor in (1e30, 1e100, 1e-30):
        machine = SVC(tol=1e-6).fit(X * factor, y)
        check_finite(machine, X * factor)
        np.testing.assert_allclose(machine.decision_function(X * factor), expected, atol=1e-4)
    single = (X * 1e25).astype(np.float32)
    np.testing.assert_allclose(
        SVC(tol=1e-6).fit(single, y).decision_function(single), expected, atol=1e-4
    )
    with pytest.raises(ValueError, match="gamma must be finite, got inf: the variance of X is too"):
        SVC().fit(X * 1e-160, y)


@pytest.mark.parametrize("Machine", ALL)
@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        ({"gamma": 1e39}, 1e-3), ({"gamma": 1e39}, 1.0), ({"kernel": "poly", "degree": 12}, 1e4),
        ({"kernel": "poly", "gamma": 1e30}, 1.0), ({"kernel": "sigmoid", "gamma": 1e39}, 1.0),
        ({"kernel": "sigmoid"}, 1e30), ({"kernel": "linear"}, 1e30), ({}, 1e30),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_decisions_are_never_nan(Machine, settings, factor):
    """In float32, where intermediate numbers overflow: float64 takes over."""
    X, y = IRIS[0].astype(np.float32), IRIS[1]
    machine = Machine(**settings, time_limit=1.0).fit(X, y)
    new = (X * factor).astype(np.float32)
    found = decisions(machine, new)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, decisions(machine, new.astype(np.float64)))


def test_decisions_that_overflow():
    X, y = IRIS
    for kernel, factor in (("poly", 1e150), ("linear", 1e307)):
        machine = SVC(kernel=kernel, C=1e3).fit(X, y)
        with pytest.raises(ValueError, match=r"X\[0\] is too large: its kernel with the support"):
            machine.predict(X[:5] * factor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Machine", ALL)
def test_an_asymmetric_kernel(Machine, dtype):
    K = (IRIS[0] @ IRIS[0].T).astype(dtype)
    nearly = K * (1 + 8 * np.finfo(dtype).eps * RNG.uniform(-1, 1, K.shape).astype(dtype))
    nu = {"nu": 0.2} if "nu" in Machine().get_params() else {}
    Machine(kernel="precomputed", **nu).fit(nearly, IRIS[1])
    K[3, 7] += 1
    message = r"must be symmetric, but entry \[3, 7\] is \d.* and entry \[7, 3\] is \d"
    with pytest.raises(ValueError, match="a precomputed kernel " + message):
        Machine(kernel="precomputed", **nu).fit(K, IRIS[1])
    with pytest.raises(ValueError, match="the matrix that kernel gives " + message):
        Machine(kernel=lambda X, Y: K, **nu).fit(*IRIS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("Machine", [SVC, NuSVC, SVR, NuSVR])
def test_targets_that_are_not_finite(Machine, bad):
    X, y = IRIS[0], IRIS[1].astype(float)
    y[3] = bad
    for kernel in ("rbf", lambda A, B: A @ B.T):
        with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
            Machine(kernel=kernel).fit(X, y)


@pytest.mark.parametrize("Machine", ALL)
def test_weights_that_overflow(Machine):
    X, y = IRIS
    with pytest.raises(ValueError, match=r"sample_weight must have a finite sum.* up to 1e\+308"):
        Machine().fit(X, y, np.full(150, 1e308))


@pytest.mark.parametrize("Machine", [SVC, SVR, NuSVR])
def test_limits_that_overflow(Machine):
    X, y = IRIS
    with pytest.raises(ValueError, match=r"finite sum, got C=1e\+10 and weights up to 1e\+300"):
        Machine(C=1e10).fit(X, y, np.full(150, 1e300))
    with pytest.raises(ValueError, match="finite sum, got C=1 and weights up to inf"):
        SVC(class_weight={0: 1e200, 1: 1, 2: 1}).fit(X, y, np.full(150, 1e200))


def test_more_than_the_machine_has():
    """As much memory, and as many iterations, as there can be."""
    X, y = IRIS
    expected = SVC().fit(X, y)
    for settings in ({"cache_size": 1e14}, {"cache_size": 10**400}, {"max_iter": 10**30}):
        machine = SVC(**settings).fit(X, y)
        np.testing.assert_array_equal(machine.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("C", [1e11, 1e12, 1e13])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intercept_at_a_large_C(C):
    """A point with both labels has coefficients of C; the intercept is -1 all the same."""
    machine = SVC(kernel="linear", C=C).fit([[0.0], [0.0], [1.0], [3.0]], [1, -1, -1, 1])
    assert machine.intercept_[0] == pytest.approx(-1, abs=1e-2)


def test_intercept_beside_a_broken_target():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), 0.5 + 0.01 * rng.normal(size=100)
    y[0] = 1e13
    machine, theirs = SVR().fit(X, y), sklearn.svm.SVR().fit(X, y)
    assert machine.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=1e-2)


@pytest.mark.parametrize("Machine", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_symmetric_problem_has_no_intercept(Machine, scale):
    """Exactly none, whatever the unit of the targets: it is a tie."""
    X = np.array([[-3.0, 1.0], [-1.0, -2.0], [-0.5, 0.3], [0.5, -0.3], [1.0, 2.0], [3.0, -1.0]])
    y = np.array([-1.0, -2.0, -0.5, 0.5, 2.0, 1.0]) * scale
    settings = {"C": scale, "tol": 1e-3 * scale} if "C" in Machine().get_params() else {}
    if Machine in (SVC, NuSVC):
        settings, y = {}, np.sign(y)
    elif Machine is SVR:
        settings["epsilon"] = 0.1 * scale
    for kernel in ("linear", "rbf"):
        assert Machine(kernel=kernel, **settings).fit(X, y).intercept_[0] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degree": 2**31}, r"'degree' parameter .* range \[0, 2147483647\]"),
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
        r"StandardScaler or MinMaxScaler. The KKT violation is \d.* \(tol=0.001\) after 3 "
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


def test_iterations_used_up_are_told_of_at_the_optimum_too():
    X, y = [[-1.0], [1.0]], [0, 1]
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\)."):
        machine = SVC(max_iter=1).fit(X, y)
    assert machine.fit_status_ == 1
    assert machine.optimality_.status == ["optimal"]
    assert SVC(max_iter=2).fit(X, y).fit_status_ == 0


@pytest.mark.unsanitized
def test_time_limit():
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="stopped by time_limit=0.5"):
        machine = SVC(time_limit=0.5, **LONG).fit(*ENDLESS)
    assert time.perf_counter() - began < 4
    assert machine.optimality_.status.tolist() == ["time_limit"]
    assert machine.optimality_.kkt_violation[0] > LONG["tol"]
    assert np.isfinite(machine.decision_function(ENDLESS[0])).all()


@pytest.mark.unsanitized
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
