"""Hard and bad input gives a valid model or a clear error in finite time."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from oracles import dense
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

RNG = np.random.default_rng(11)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
IRIS = load_iris(return_X_y=True)


def decisions(model, X):
    return model.predict(X) if "SVR" in type(model).__name__ else model.decision_function(X)


def check_finite(model, X):
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(decisions(model, X)).all()
    assert model.fit_status_ == 0
    assert (model.optimality_.kkt_violation <= model.tol).all()


@pytest.mark.parametrize("Estimator", ALL)
def test_two_samples(Estimator):
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    model = Estimator(kernel="linear").fit(X, y)
    check_finite(model, X)
    if Estimator is SVC:
        np.testing.assert_allclose(model.decision_function([[0.25]]), -0.25)  # x - 1/2: C binds
    np.testing.assert_allclose(
        decisions(model, X), decisions(model.to_sklearn().fit(X, y), X), atol=1e-3
    )


TINY = np.where(np.arange(150) % 4, 1.0, 1e-12)
PAIRS = np.repeat(RNG.normal(size=(10, 2)), 2, axis=0)
EVERY, RBF = ("linear", "poly", "rbf", "sigmoid"), ("rbf",)
# Kernels, data, weights, and parameters, of which each model takes those that it has.
HARD = {
    "two labels of each point": (EVERY, PAIRS, np.tile([0, 1], 10), None, {"C": 100.0}),
    "constant features": (EVERY, np.ones((12, 3)), np.tile([0, 1], 6), None, {}),
    "zeros only": (EVERY, np.zeros((6, 2)), [0, 1] * 3, None, {}),
    "sparse zeros only": (EVERY, scipy.sparse.csr_array((6, 2)), [0, 1] * 3, None, {}),
    "tiny weights": (RBF, *IRIS, TINY, {"gamma": 0.1, "nu": 0.2}),
    "a tiny gamma": (RBF, *IRIS, None, {"gamma": 1e-12}),
    "a huge gamma": (RBF, *IRIS, None, {"gamma": 1e6}),
    "a tiny C": (RBF, *IRIS, None, {"C": 1e-6}),
    "a huge C": (RBF, *IRIS, None, {"C": 1e10}),
}


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize("name", HARD)
def test_models_of_hard_problems_are_finite(name, Estimator):
    kernels, X, y, weights, given = HARD[name]
    own = {key: value for key, value in given.items() if key in Estimator().get_params()}
    for kernel in kernels:
        check_finite(Estimator(kernel=kernel, **own).fit(X, y, weights), X)


def test_all_bounded_bias_is_the_midpoint():
    """With a small C every variable is at its bound; the bias follows LIBSVM's convention."""
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), [0, 0, 1, 1]
    settings = {"kernel": "linear", "C": 1e-3, "tol": 1e-8}
    ours, theirs = SVC(**settings).fit(X, y), sklearn.svm.SVC(**settings).fit(X, y)
    assert (np.abs(ours.dual_coef_) == 1e-3).all()
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-12)


def test_all_bounded_one_class():
    """With nu = 1 all variables are at their upper bound, which scikit-learn does not handle."""
    X = RNG.normal(size=(20, 2))
    model = OneClassSVM(nu=1.0).fit(X)
    check_finite(model, X)
    assert model.decision_function(X).max() == pytest.approx(0.0, abs=1e-12)


def test_constant_target():
    model = SVR().fit(IRIS[0], np.full(150, 7.0))
    assert model.support_.size == 0
    np.testing.assert_array_equal(model.predict(IRIS[0]), 7.0)
    sparse = SVR(kernel="linear").fit(scipy.sparse.csr_array(IRIS[0]), np.full(150, 7.0))
    assert sparse.dual_coef_.shape == (1, 0)
    assert sparse.coef_.shape == (1, 4)
    np.testing.assert_array_equal(sparse.predict(IRIS[0]), 7.0)


@pytest.mark.parametrize("n", [3, 7, 10, 29])
def test_largest_nu(n):
    X = RNG.normal(size=(60, 2))
    model = NuSVC(nu=2 * n / 60).fit(X, np.arange(60) < n)
    check_finite(model, X)
    assert model.n_support_[1] == n  # all of the small class


@pytest.mark.parametrize("Estimator", ALL)
def test_weights_that_vanish(Estimator):
    X, y = IRIS
    model = Estimator(
        gamma=0.1, tol=1e-6, **({"nu": 0.2} if "nu" in Estimator().get_params() else {})
    )
    zero, negative = np.ones(150), np.ones(150)
    zero[::3], negative[::3] = 0.0, -2.0
    kept = zero > 0
    expected = decisions(model.fit(X[kept], y[kept]), X)
    for weights in (zero, negative):
        model.fit(X, y, weights)
        assert kept[model.support_].all()
        np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
        np.testing.assert_allclose(decisions(model, X), expected, atol=1e-4)


def test_classes_without_weight_are_never_predicted():
    X, y = IRIS
    model = SVC().fit(X, y, (y != 1).astype(float))
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(model.predict(X)) == {0, 2}
    four = np.where(np.arange(150) % 7 == 0, 3, y)
    model = SVC().fit(X, four, (four % 2 == 0).astype(float))  # two of four: 1 and 3
    assert set(model.predict(X)) == {0, 2}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 1e3), (10.0, 0.0)])
def test_violation_at_extreme_gamma(gamma, dtype, scale, shift):
    """The kernel recomputed from differences: no digits are lost to large norms."""
    X = scale * np.random.default_rng(4).normal(size=(40, 3)) + shift
    model = OneClassSVM(gamma=gamma, dtype=dtype).fit(X)
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    z = np.zeros(40)
    z[model.support_] = model.dual_coef_[0]
    gradient = K @ z
    assert gradient[z > 0].max() - gradient[z < 1].min() <= 1.1 * model.tol
    np.testing.assert_allclose(model.score_samples(X), gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.unsanitized
def test_huge_polynomial_kernel_values():
    """scikit-learn does not return on this problem."""
    X, y = IRIS
    began = time.process_time()
    model = SVC(kernel="poly", degree=8, gamma=4000).fit(X, y)
    assert time.process_time() - began < 10
    assert model.score(X, y) > 0.9
    assert (model.optimality_.kkt_violation <= 1e-3).all()


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unscaled_data(Estimator):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = X * np.logspace(-3, 4, X.shape[1])
    if Estimator in (SVC, NuSVC):
        y = y > np.median(y)
    model = Estimator(kernel="linear", time_limit=1).fit(X, y)
    assert np.isfinite(decisions(model, X)).all()
    check_finite(Estimator().fit(X, y), X)


@pytest.mark.parametrize("n", [60, 1500])
def test_data_whose_squares_are_large(n):
    """With gamma="scale", scaling the data does not change the model."""
    X = np.random.default_rng(1).normal(size=(n, 3))
    y = (X[:, 0] > 0).astype(int)
    expected = SVC(tol=1e-6).fit(X, y).decision_function(X)
    for factor in (1e30, 1e100, 1e-30):
        model = SVC(tol=1e-6).fit(X * factor, y)
        check_finite(model, X * factor)
        np.testing.assert_allclose(model.decision_function(X * factor), expected, atol=1e-4)
    single = (X * 1e25).astype(np.float32)
    np.testing.assert_allclose(
        SVC(tol=1e-6).fit(single, y).decision_function(single), expected, atol=1e-4
    )
    with pytest.raises(ValueError, match="gamma must be finite, got inf: the variance of X is too"):
        SVC().fit(X * 1e-160, y)


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        ({"gamma": 1e39}, 1e-3), ({"gamma": 1e39}, 1.0), ({"kernel": "poly", "degree": 12}, 1e4),
        ({"kernel": "poly", "gamma": 1e30}, 1.0), ({"kernel": "sigmoid", "gamma": 1e39}, 1.0),
        ({"kernel": "sigmoid"}, 1e30), ({"kernel": "linear"}, 1e30), ({}, 1e30),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_decisions_are_never_nan(Estimator, settings, factor):
    """If float32 overflows, float64 takes over."""
    X, y = IRIS[0].astype(np.float32), IRIS[1]
    model = Estimator(**settings, time_limit=1.0).fit(X, y)
    new = (X * factor).astype(np.float32)
    found = decisions(model, new)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, decisions(model, new.astype(np.float64)))


def test_decisions_that_overflow():
    X, y = IRIS
    for kernel, factor in (("poly", 1e150), ("linear", 1e307)):
        model = SVC(kernel=kernel, C=1e3).fit(X, y)
        with pytest.raises(ValueError, match=r"X\[0\] is too large: its kernel with the support"):
            model.predict(X[:5] * factor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Estimator", ALL)
def test_an_asymmetric_kernel(Estimator, dtype):
    K = (IRIS[0] @ IRIS[0].T).astype(dtype)
    nearly = K * (1 + 8 * np.finfo(dtype).eps * RNG.uniform(-1, 1, K.shape).astype(dtype))
    nu = {"nu": 0.2} if "nu" in Estimator().get_params() else {}
    Estimator(kernel="precomputed", **nu).fit(nearly, IRIS[1])
    K[3, 7] += 1
    message = r"must be symmetric, but entry \[3, 7\] is \d.* and entry \[7, 3\] is \d"
    with pytest.raises(ValueError, match="a precomputed kernel " + message):
        Estimator(kernel="precomputed", **nu).fit(K, IRIS[1])
    with pytest.raises(ValueError, match="the matrix that kernel returns " + message):
        Estimator(kernel=lambda X, Y: K, **nu).fit(*IRIS)


def test_more_memory_than_the_computer_has():
    """The largest possible cache size and number of iterations."""
    X, y = IRIS
    expected = SVC().fit(X, y)
    for settings in ({"cache_size": 1e14}, {"cache_size": 10**400}, {"max_iter": 10**30}):
        model = SVC(**settings).fit(X, y)
        np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("C", [1e11, 1e12, 1e13])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intercept_at_a_large_C(C):
    """A point with both labels has coefficients of C; the intercept is still -1."""
    model = SVC(kernel="linear", C=C).fit([[0.0], [0.0], [1.0], [3.0]], [1, -1, -1, 1])
    assert model.intercept_[0] == pytest.approx(-1, abs=1e-2)


def test_intercept_with_a_huge_target():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), 0.5 + 0.01 * rng.normal(size=100)
    y[0] = 1e13
    model, theirs = SVR().fit(X, y), sklearn.svm.SVR().fit(X, y)
    assert model.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=1e-2)


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_symmetric_problem_has_no_intercept(Estimator, scale):
    """Exactly 0 for any unit of the targets, because it is a tie."""
    X = np.array([[-3.0, 1.0], [-1.0, -2.0], [-0.5, 0.3], [0.5, -0.3], [1.0, 2.0], [3.0, -1.0]])
    y = np.array([-1.0, -2.0, -0.5, 0.5, 2.0, 1.0]) * scale
    settings = {"C": scale, "tol": 1e-3 * scale} if "C" in Estimator().get_params() else {}
    if Estimator in (SVC, NuSVC):
        settings, y = {}, np.sign(y)
    elif Estimator is SVR:
        settings["epsilon"] = 0.1 * scale
    for kernel in ("linear", "rbf"):
        assert Estimator(kernel=kernel, **settings).fit(X, y).intercept_[0] == 0


@pytest.mark.parametrize("Estimator", [SVC, SVR])
def test_convergence_warning(Estimator):
    X, y = IRIS
    message = (
        r"Solver terminated early \(max_iter=3\).  Consider pre-processing your data with "
        r"StandardScaler or MinMaxScaler. The KKT violation is \d.* \(tol=0.001\) after 3 "
        r"iterations: raise max_iter, time_limit or tol, or lower C."
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = Estimator(max_iter=3).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.fit_status_ == 1
    assert (model.optimality_.status == "max_iter").all()
    assert np.all(model.n_iter_ == 3)
    assert np.isfinite(decisions(model, X)).all()


def test_max_iter_is_reported_at_the_optimum_too():
    X, y = [[-1.0], [1.0]], [0, 1]
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\)."):
        model = SVC(max_iter=1).fit(X, y)
    assert model.fit_status_ == 1
    assert model.optimality_.status == ["optimal"]
    assert SVC(max_iter=2).fit(X, y).fit_status_ == 0


def true_violation(model, K, y):
    """The violation of a binary SVC from its coefficients and a kernel matrix, in long double."""
    z, sign = np.zeros(len(y), np.longdouble), np.where(y == model.classes_[1], 1, -1)
    z[model.support_] = dense(model.dual_coef_)[0]
    gradient = K @ z - sign
    falls = z > np.where(sign > 0, 0, -model.C)
    rises = z < np.where(sign > 0, model.C, 0)
    return float(gradient[falls].max() - gradient[rises].min())


def by_differences(X, gamma):
    X = np.asarray(X, np.longdouble)
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(("n", "scale", "gamma"), [(60, 1e7, 1.0), (300, 1e8, 0.3), (90, 1e3, 1e7)])
def test_violation_is_true_where_norms_are_large(n, scale, gamma, container):
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    model = SVC(C=100.0, gamma=gamma).fit(container(X), y)
    true = true_violation(model, by_differences(X, gamma), y)
    assert model.optimality_.status[0] == "optimal"
    assert true <= model.tol
    np.testing.assert_allclose(model.optimality_.kkt_violation, true, atol=1e-9)
    assert model.score(container(X), y) == 1.0  # the kernel matrix is the identity


def test_outliers_are_fitted_as_other_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    X[:5] = 1e9 * rng.normal(size=(5, 10))
    y = X[:, 1].copy()
    y[:5] = 3.0
    model = SVR(C=10.0, gamma=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:5]), 2.9, atol=2e-3)


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR])
def test_a_constant_column_does_not_change_a_linear_model(Estimator, offset):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 2))
    y = (A[:, 0] + 0.5 * rng.normal(size=50) > 0).astype(int)
    X = np.c_[A, np.full(50, offset)]
    settings = {"C": 100.0} if hasattr(Estimator(), "C") else {}
    model = Estimator(kernel="linear", tol=1e-6, **settings).fit(X, y)
    plain = Estimator(kernel="linear", tol=1e-6, **settings).fit(A, y)
    assert model.optimality_.status[0] == "optimal"
    np.testing.assert_allclose(decisions(model, X), decisions(plain, A), atol=1e-4)
    np.testing.assert_allclose(model.coef_[0, :2], plain.coef_[0], atol=1e-4)
    assert model.coef_[0, 2] == 0


def test_a_filled_column_of_a_sparse_matrix_is_centered():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 20)) * (rng.random(size=(60, 20)) < 0.1)
    y = rng.integers(0, 2, 60)
    X = scipy.sparse.csr_array(np.c_[A, np.full(60, 1e7)])
    model = SVC(kernel="linear", C=10.0).fit(X, y)
    assert model.optimality_.status[0] == "optimal"
    assert true_violation(model, np.asarray(A @ A.T, np.longdouble), y) <= 1.001 * model.tol
    plain = SVC(kernel="linear", C=10.0).fit(A, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(A), atol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_polynomial_of_shifted_data_is_not_falsely_called_optimal(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)) + 1e6, rng.integers(0, 2, 40)
    model = SVC(kernel="poly", degree=2, coef0=1.0, gamma=1.0, C=1e-3)
    with pytest.warns(ConvergenceWarning, match="rounding error of the gradient is about"):
        model.fit(X, y)
    assert model.optimality_.status[0] == "imprecise"
    K = (np.asarray(X, np.longdouble) @ np.asarray(X, np.longdouble).T + 1) ** 2
    true = true_violation(model, K, y)
    assert true > model.tol
    # The reported violation includes a bound on rounding errors.
    assert true / 2 <= model.optimality_.kkt_violation[0] <= 10 * true


def unix_timestamps():
    rng = np.random.default_rng(280)
    age, income = rng.normal(40, 10, 280), rng.normal(5e4, 2e4, 280)
    y = (age + income / 2e3 + 5 * rng.normal(size=280) > 65).astype(int)
    return SVC(kernel="linear"), np.c_[age, 1.7e9 + rng.uniform(0, 1e7, 280)], y


def rows_of_1e20():
    rng = np.random.default_rng(0)
    return NuSVR(kernel="linear", C=3e11, tol=0.1), 1e20 * rng.normal(size=(3, 6)), [-0.9, 1.2, 0.4]


def one_huge_column():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=800) * 1e6, rng.normal(size=(800, 5))]
    return SVC(C=1e11), X, rng.integers(0, 2, 800)


def clusters():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(8, 6)), 25, 0) + 1e-3 * rng.normal(size=(200, 6))
    return SVC(C=1e11, gamma=2e-7, tol=1e-5), X, rng.integers(0, 2, 200)


@pytest.mark.parametrize("problem", [unix_timestamps, rows_of_1e20, one_huge_column, clusters])
def test_a_fit_ends_where_rounding_is_larger_than_the_tolerance(problem):
    model, X, y = problem()
    with pytest.warns(ConvergenceWarning, match=r"cannot reach tol.*StandardScaler.*lower C"):
        model.set_params(time_limit=20.0).fit(X, y)
    assert model.optimality_.status[0] == "imprecise"
    assert model.n_iter_ < 1_000_000


def test_a_nu_model_of_shifted_data_converges():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 2)) + 1e6, rng.integers(0, 3, 200)
    model = NuSVC(nu=0.1, kernel="linear", time_limit=20.0).fit(X, y)
    assert set(model.optimality_.status) == {"optimal"}
    assert model.n_iter_.max() < 10_000


def test_an_indefinite_kernel_stops_at_the_tolerance():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(38, 7)).round(), rng.normal(size=38)
    model = NuSVR(kernel="sigmoid", coef0=-1.0, C=3e5, nu=0.2, tol=0.1, time_limit=20.0)
    assert model.fit(X, y).n_iter_ < 100_000


def test_a_fit_ends_where_steps_are_smaller_than_the_rounding_of_the_sum():
    """Restoring the sum reverts such a step, so steps and recomputations would alternate."""
    for seed in range(40):  # 9 of these fits once never ended
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(8, 2)), np.array([0, 1, 0, 1, 0, 0, 1, 1])
        X[0] = -9136345.45, 1394333300.0
        model = SVC(kernel="poly", degree=2, gamma=399.7, C=5.572, tol=0.1, max_iter=100_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        assert model.n_iter_[0] < 10_000, seed


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_of_nu_regression_sum_to_0_where_their_variables_nearly_cancel(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 6)), 1e-6 * rng.normal(size=8)
    model = NuSVR(nu=0.5, C=1e10, tol=0.1).fit(X, y)
    coefficients = model.dual_coef_[0]
    assert abs(coefficients.sum()) <= 1e-12 * np.abs(coefficients).sum()


@pytest.mark.parametrize("model", [OneClassSVM(kernel="linear", nu=0.9), NuSVC(kernel="linear")])
def test_a_fit_is_never_optimal_below_the_rounding_error_of_its_gradient(model):
    """Kernel values of 1e40 have errors of 1e24, even if the rounded gradient shows none."""
    rng = np.random.default_rng(3)
    X, y = 1e20 * rng.normal(size=(25, 6)), rng.integers(0, 2, 25)
    with pytest.warns(ConvergenceWarning, match="rounding error of the gradient"):
        model.fit(X, y)
    assert set(model.optimality_.status) == {"imprecise"}
