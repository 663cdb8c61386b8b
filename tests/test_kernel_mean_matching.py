"""KernelMeanMatching against SLSQP, closed forms and scikit-learn's own checks."""

import numpy as np
import pytest
import scipy.sparse
from oracles import kkt_violation, problem, reference_solution, sum_error_in_ulps
from pairwise import pairwise
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairstep.kernel_mean_matching import KernelMeanMatching

RNG = np.random.default_rng(5)
N = 40
TRAIN = RNG.normal(size=(N, 2))
TARGET = 0.6 * RNG.normal(size=(25, 2)) + [0.7, -0.4]


@parametrize_with_checks(
    [
        KernelMeanMatching(),
        KernelMeanMatching(kernel="linear", eps=0.1),
        KernelMeanMatching(kernel="precomputed"),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def rbf(a, b, gamma):
    return np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(axis=2))


def stated(train, target, gamma, upper, eps):
    """The problem of Huang et al., written out."""
    n = len(train)
    K, kappa = rbf(train, train, gamma), n / len(target) * rbf(train, target, gamma).sum(axis=1)
    return problem(
        lambda w: 0.5 * w @ K @ w - kappa @ w,
        lambda w: K @ w - kappa,
        n,
        total=(n * (1 - eps), n * (1 + eps)),
        upper=upper,
    )


@pytest.mark.parametrize(
    ("gamma", "upper", "eps"), pairwise(["scale", 5.0], [2.0, 1000.0], [None, 0.0, 0.01, 0.3])
)
def test_the_weights_are_optimal(gamma, upper, eps):
    model = KernelMeanMatching(gamma=gamma, upper_bound=upper, eps=eps)
    model.fit(TRAIN, X_target=TARGET)
    used = 1 / (2 * TRAIN.var()) if gamma == "scale" else gamma
    assert model.gamma_ == pytest.approx(used, rel=1e-12)
    slack = (np.sqrt(N) - 1) / np.sqrt(N) if eps is None else eps
    p, w = stated(TRAIN, TARGET, used, upper, slack), model.weights_
    assert (w >= 0).all()
    assert (w <= upper).all()
    (total,), (low,), (high,) = p.sums(w), p.low, p.high
    assert low - 1e-12 * N <= total <= high + 1e-12 * N
    assert kkt_violation(p, w) <= 1e-6
    best = p.value(reference_solution(p, np.ones(N)))
    assert p.value(w) <= best + 1e-8 * abs(best)


def test_sum_at_the_end_of_its_range_is_exact():
    model = KernelMeanMatching(eps=0.0).fit(TRAIN, X_target=TARGET)
    assert sum_error_in_ulps(model.weights_, float(N)) <= 1
    far = KernelMeanMatching(eps=0.25, gamma=1.0).fit(TRAIN, X_target=TARGET + 3.0)
    assert sum_error_in_ulps(far.weights_, N * 0.75) <= 1


def test_free_weights_solve_the_linear_system():
    """If neither bounds nor the range are active, Kw = kappa."""
    apart = 3.0 * np.arange(12.0)[:, None]
    target = np.repeat(apart, np.arange(1, 13), axis=0) + 0.1
    model = KernelMeanMatching(gamma=1.0, eps=0.9).fit(apart, X_target=target)
    kappa = 12 / len(target) * rbf(apart, target, 1.0).sum(axis=1)
    expected = np.linalg.solve(rbf(apart, apart, 1.0), kappa)
    np.testing.assert_allclose(model.weights_, expected, rtol=1e-9)


def test_the_same_sample_needs_no_weights():
    alone = KernelMeanMatching(gamma=20.0).fit(TRAIN)
    np.testing.assert_allclose(alone.weights_, 1.0, atol=1e-5)
    explicit = KernelMeanMatching(gamma=20.0).fit(TRAIN, X_target=TRAIN)
    np.testing.assert_array_equal(explicit.weights_, alone.weights_)


def test_the_weighted_mean_is_that_of_the_target():
    weights = KernelMeanMatching(eps=0.1).fit(TRAIN, X_target=TARGET).weights_
    before = np.linalg.norm(TRAIN.mean(axis=0) - TARGET.mean(axis=0))
    moved = np.average(TRAIN, axis=0, weights=weights)
    assert np.linalg.norm(moved - TARGET.mean(axis=0)) < 0.2 * before


def test_kernels_given_in_other_ways():
    gamma = 2.0
    named = KernelMeanMatching(gamma=gamma).fit(TRAIN, X_target=TARGET)
    ready = KernelMeanMatching(kernel="precomputed").fit(
        rbf(TRAIN, TRAIN, gamma), X_target=rbf(TARGET, TRAIN, gamma)
    )
    function = KernelMeanMatching(kernel=lambda a, b: np.exp(-gamma * (a - b) @ (a - b)))
    function.fit(TRAIN, X_target=TARGET)
    sparse = KernelMeanMatching(gamma=gamma)
    sparse.fit(scipy.sparse.csr_array(TRAIN), X_target=scipy.sparse.csr_array(TARGET))
    for other in (ready, function, sparse):
        assert other.result_.fun == pytest.approx(named.result_.fun, rel=1e-10)
        np.testing.assert_allclose(other.weights_, named.weights_, atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "cosine"])
def test_other_kernels(kernel):
    model = KernelMeanMatching(kernel=kernel, degree=2, eps=0.2).fit(TRAIN, X_target=TARGET)
    assert model.result_.status == "optimal"


def test_scale_of_a_sparse_sample():
    thin = np.where(TRAIN > 0.3, TRAIN, 0.0)
    dense, sparse = (KernelMeanMatching().fit(x) for x in (thin, scipy.sparse.csr_array(thin)))
    assert sparse.gamma_ == pytest.approx(dense.gamma_, rel=1e-12)
    assert dense.gamma_ == pytest.approx(1 / (2 * thin.var()), rel=1e-12)
    assert KernelMeanMatching(gamma="auto").fit(thin).gamma_ == 0.5
    assert KernelMeanMatching().fit(np.ones((4, 2))).gamma_ == 1.0


def test_large_target():
    """With more target samples than one block, the sum is still over all of them."""
    target = RNG.normal(size=(2500, 2))
    model = KernelMeanMatching(gamma=5.0).fit(TRAIN, X_target=target)
    p = stated(TRAIN, target, 5.0, 1000.0, 1 - 1 / np.sqrt(N))
    assert model.result_.fun == pytest.approx(p.value(model.weights_), rel=1e-10)


def test_target_passed_as_y_is_refused():
    with pytest.raises(ValueError, match="X_target="):
        KernelMeanMatching().fit(TRAIN, TARGET)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eps": -0.1}, "eps must not be negative"),
        ({"upper_bound": 0.5, "eps": 0.1}, "the bounds allow sums from 0 to 20; total is"),
        ({"gamma": "scales"}, "gamma"),
        ({"kernel": "rbg"}, "rbg"),
        ({"upper_bound": -1.0}, "upper"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        KernelMeanMatching(**settings).fit(TRAIN, X_target=TARGET)


def test_bad_target():
    with pytest.raises(ValueError, match="features"):
        KernelMeanMatching().fit(TRAIN, X_target=TARGET[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        KernelMeanMatching().fit(TRAIN, X_target=TARGET * np.nan)


def test_warns_when_not_converged():
    with pytest.warns(ConvergenceWarning, match=r"KKT violation \d.*tolerance \d"):
        KernelMeanMatching(max_iter=1).fit(TRAIN, X_target=TARGET)


@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_the_origin_does_not_matter(container, offset):
    """It changes neither gamma nor the distances."""
    train, target = (np.round(64 * X) / 64 for X in (TRAIN, TARGET))  # exact at any offset
    wide = [np.pad(X + offset, ((0, 0), (0, 6))) for X in (train, target)]
    near = KernelMeanMatching(gamma=1.0).fit(train, X_target=target)
    far = KernelMeanMatching(gamma=1.0).fit(container(wide[0]), X_target=container(wide[1]))
    np.testing.assert_allclose(far.weights_, near.weights_, atol=1e-6)
    scaled = KernelMeanMatching().fit(container(train + offset))
    assert scaled.gamma_ == pytest.approx(1 / (2 * train.var()), rel=1e-6)
