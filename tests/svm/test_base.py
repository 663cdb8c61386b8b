"""Attributes and decision functions, with kernels given by name, as matrices and as functions."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from oracles import dense
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.multiclass import _ovr_decision_function

import pairstep.svm.base
import pairstep.svm.classification
from pairstep import _core
from pairstep.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

IRIS = load_iris(return_X_y=True)
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("Estimator", ALL)
def test_coef_gives_the_linear_decision_function(Estimator, sparse):
    X, y = IRIS
    data = scipy.sparse.csr_array(X) if sparse else X
    shape = {"decision_function_shape": "ovo"} if Estimator in (SVC, NuSVC) else {}
    model = Estimator(kernel="linear", **shape).fit(data, y)
    assert scipy.sparse.issparse(model.coef_) == sparse
    coef = model.coef_.toarray() if sparse else model.coef_
    by_hand = X @ coef.T + model.intercept_
    by_model = model.predict(data) if "SVR" in Estimator.__name__ else None
    if by_model is None:
        by_model = model.decision_function(data)
    np.testing.assert_allclose(by_model.reshape(by_hand.shape), by_hand, atol=1e-9)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = model.set_params(kernel="rbf").coef_


def test_changed_coefficients_are_used():
    model = SVC(kernel="linear").fit([[-1.0, -1.0], [1.0, 1.0]], [1, 2])
    assert model.predict([[-0.1, -0.1]]) == [1]
    model.dual_coef_ = np.array([[0.0, -1.0]])
    assert model.predict([[-0.1, -0.1]]) == [2]


@pytest.mark.parametrize("Estimator", ALL)
def test_precomputed_needs_only_the_support_columns(Estimator):
    X, y = IRIS
    whole = rbf_kernel(X[::3] + 0.1, X, gamma=0.3)
    model = Estimator(kernel="precomputed").fit(rbf_kernel(X, gamma=0.3), y)
    decide = "predict" if "SVR" in Estimator.__name__ else "decision_function"
    decisions = getattr(model, decide)(whole)
    model.support_columns = True
    columns = whole[:, model.support_]
    np.testing.assert_allclose(getattr(model, decide)(columns), decisions, atol=1e-12)
    with pytest.raises(ValueError, match="X has 150 columns, but with support_columns=True"):
        model.predict(whole)


def test_precomputed_with_all_rows_in_support():
    """Here the number of columns does not show whether they are all rows or support vectors."""
    X, y = np.array([[0.0], [3.0], [1.0], [4.0]]), [1, 0, 1, 0]
    model = SVC(kernel="precomputed", C=1e-3).fit(X @ X.T, y)
    assert model.support_.tolist() == [1, 3, 0, 2]
    whole = model.decision_function(X @ X.T)
    model.support_columns = True
    columns = (X @ X.T)[:, model.support_]
    np.testing.assert_allclose(model.decision_function(columns), whole, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "n_classes"), [(6, 2), (9, 2), (600, 2), (60, 3), (160, 8), (170, 17), (200, 20)]
)
def test_precomputed_rows_in_any_order(n, n_classes, dtype):
    """The order of the rows does not change decisions.

    So scikit-learn's model of sorted rows is the reference for every order.
    """
    rng = np.random.default_rng(n)
    y = np.sort(np.arange(n) % n_classes)
    X = rng.normal(size=(n, 4)) + rng.normal(size=(n_classes, 4))[y]
    K = rbf_kernel(X, gamma=0.3).astype(dtype)
    new = rbf_kernel(rng.normal(size=(49, 4)), X, gamma=0.3).astype(dtype)
    settings = {"kernel": "precomputed", "tol": 1e-6, "C": 10.0, "decision_function_shape": "ovo"}
    expected = sklearn.svm.SVC(**settings).fit(K, y).decision_function(new)
    for order in (np.arange(n), np.argsort(np.arange(n) % (n // n_classes)), rng.permutation(n)):
        model = SVC(**settings).fit(K[np.ix_(order, order)], y[order])
        found = model.decision_function(np.ascontiguousarray(new[:, order]))
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("count", [1, 47, 48, 49, 100])
def test_sparse_rows_in_dense_layout(count):
    rng = np.random.default_rng(count)
    X = rng.normal(size=(count, 60)) * (rng.random((count, 60)) < 0.6)
    support, y = rng.normal(size=(2, 60)) + 3.0, [0, 1]
    model = SVC(gamma=0.01).fit(scipy.sparse.csr_array(support), y)
    expected = rbf_kernel(X, support, gamma=0.01) @ model.dual_coef_.toarray()[0]
    found = model.decision_function(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(found, expected + model.intercept_, rtol=1e-12, atol=1e-12)


def test_a_callable_kernel_may_return_a_sparse_matrix():
    X, y = IRIS
    model = SVC(kernel=lambda A, B: scipy.sparse.csr_array(A @ B.T)).fit(X, y)
    expected = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("sparse", [False, True])
def test_gamma(gamma, sparse):
    X, y = IRIS
    X = X * (X > 1.5)
    value = 1 / (4 * X.var()) if gamma == "scale" else 1 / 4
    data = scipy.sparse.csr_array(X) if sparse else X
    model, expected = (SVC(gamma=g, tol=1e-8).fit(data, y) for g in (gamma, value))
    np.testing.assert_allclose(model.decision_function(data), expected.decision_function(data))


@pytest.mark.parametrize("Estimator", ALL)
def test_parameters_are_those_of_scikit_learn(Estimator):
    theirs = getattr(sklearn.svm, Estimator.__name__)().get_params()
    ours = Estimator().get_params()
    # `probability` is deprecated by some versions of scikit-learn, and `cache_size` is "auto" here.
    for name in theirs.keys() - {"probability", "cache_size"}:
        assert ours[name] == theirs[name]
    added = {"n_jobs", "warm_start", "time_limit", "dtype", "support_columns", "device"}
    assert ours.keys() - theirs.keys() == added
    for name in ours:
        assert f"    {name}" in Estimator.__doc__


@pytest.mark.parametrize(
    ("settings", "shift"),
    [
        ({"kernel": "poly", "degree": 2, "coef0": 1.0}, 100),
        ({"kernel": "linear"}, 1000),
        ({"kernel": "rbf", "gamma": 300.0}, 0),
    ],
)
def test_float32_data_give_the_labels_of_float64(settings, shift):
    """If sums of large kernel values cancel, float32 arithmetic would give other labels."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 5)) * (1 if shift else 10) + shift).astype(np.float32)
    y = (X[:, 0] > shift).astype(int) + (X[:, 1] > shift)
    model = SVC(**settings).fit(X, y)
    exact = X.astype(np.float64)
    np.testing.assert_array_equal(model.predict(X), model.predict(exact))
    np.testing.assert_allclose(
        model.decision_function(X), model.decision_function(exact), atol=model.tol
    )


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("offset", [1e4, 1e7, 1e8])
def test_violation_of_rows_with_few_entries(offset, container):
    """The reported violation agrees with distances from differences, far from the origin."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 8))
    X[:, :2] = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    X[:, :2] += offset
    model = SVC(gamma=1.0, C=10.0).fit(container(X), y)
    z = np.zeros(200)
    z[model.support_] = dense(model.dual_coef_)[0]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    derivatives, lower, upper = K @ z - y, np.where(y > 0, 0, -10), np.where(y > 0, 10, 0)
    violation = derivatives[z > lower].max() - derivatives[z < upper].min()
    assert violation == pytest.approx(model.optimality_.kkt_violation[0], abs=1e-9)
    np.testing.assert_allclose(
        model.decision_function(container(X)), K @ z + model.intercept_, atol=1e-9
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("Estimator", ALL)
def test_features_that_do_not_occur(Estimator, kernel):
    """Columns of zeros do not change a bit of the model."""
    X, y = IRIS
    X = scipy.sparse.csr_array(np.where(X > 1.5, X, 0))
    place = np.array([5, 99, 2**20, 2**22 - 1], np.int32)
    wide = scipy.sparse.csr_array((X.data, place[X.indices], X.indptr), (150, 2**22))
    narrow, model = (Estimator(kernel=kernel, gamma=0.2).fit(data, y) for data in (X, wide))
    found, expected = dense(model.dual_coef_), dense(narrow.dual_coef_)
    np.testing.assert_array_equal(found, expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(model.intercept_, narrow.intercept_)
    np.testing.assert_array_equal(model.predict(wide), narrow.predict(X))


KINDS = {
    "SVC": (SVC, 2), "NuSVC": (NuSVC, 2), "SVC of 4 classes": (SVC, 4), "SVR": (SVR, 2),
    "NuSVR": (NuSVR, 2), "OneClassSVM": (OneClassSVM, 2),
}  # fmt: skip
METHODS = ["decision_function", "predict", "predict_proba", "predict_log_proba", "score_samples"]


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_is_that_of_one_fit(kind, method, monkeypatch):
    """Another thread may fit the estimator during a prediction."""
    Estimator, classes = KINDS[kind]
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 200)
    X = rng.normal(size=(200, 3)) + 2 * rng.normal(size=(classes, 3))[y]
    chances = {"probability": True, "random_state": 0} if Estimator in (SVC, NuSVC) else {}
    model = Estimator(**chances).fit(X, y)
    if not hasattr(model, method):
        pytest.skip(f"{kind} has no {method}")
    expected = getattr(model, method)(X[:50])
    compute = pairstep.svm.base.decide

    def decide_beside_a_fit(*arguments, **options):
        monkeypatch.undo()
        model.fit(3 - X[:90], (y[:90] + 1) % classes)
        return compute(*arguments, **options)

    monkeypatch.setattr(pairstep.svm.base, "decide", decide_beside_a_fit)
    np.testing.assert_array_equal(getattr(model, method)(X[:50]), expected)
    assert model.shape_fit_ == (90, 3)
    assert not np.array_equal(getattr(model, method)(X[:50]), expected)


def many_classes(k, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(6 * k) % k
    return rng.normal(size=(6 * k, 4)) + 2 * rng.normal(size=(k, 4))[y], y


def test_memory_of_decisions_does_not_grow_with_rows_times_pairs():
    model = SVC().fit(*many_classes(60))
    new = np.random.default_rng(1).normal(scale=3, size=(1000, 4))
    for method in (model.predict, model.decision_function):
        tracemalloc.start()
        method(new)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12e6  # all sums would take 28 MB


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "callable"])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("k", [3, 9, 20])
def test_prediction_in_blocks_of_rows_changes_no_bits(k, container, kernel, monkeypatch):
    if container is not np.asarray and kernel != "rbf":
        pytest.skip("other kernels are dense")
    X, y = many_classes(k)
    given = X @ X.T if kernel == "precomputed" else container(X)
    function = (lambda A, B: A @ B.T) if kernel == "callable" else kernel
    model = SVC(kernel=function, probability=True, random_state=0).fit(given, y)
    methods = ["predict", "decision_function", "predict_proba"]
    whole = [getattr(model, method)(given) for method in methods]
    whole.append(model.set_params(decision_function_shape="ovo").decision_function(given))
    monkeypatch.setattr(pairstep.svm.classification, "CPU_PIECE_BYTES", 5 * 8 * k * (k - 1))
    np.testing.assert_array_equal(model.decision_function(given), whole.pop())
    model.decision_function_shape = "ovr"
    for method, expected in zip(methods, whole, strict=True):
        found = getattr(model, method)(given)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    if kernel == "rbf":
        large = given.copy()
        large[[17], [0]] = 1e150
        with pytest.raises(ValueError, match=r"X\[17\] is too large"):
            SVC(kernel="poly").fit(given, y).predict(large)


@pytest.mark.parametrize("k", [2, 3, 5, 17])
def test_votes_are_those_of_scikit_learn(k):
    """Small integers, so that many decisions are 0 and many votes tie."""
    pairs = np.random.default_rng(k).integers(-1, 2, (300, k * (k - 1) // 2)).astype(float)
    first, second = np.triu_indices(k, 1)
    winners = np.where(pairs > 0, first, second)
    votes = (winners[:, :, None] == np.arange(k)).sum(axis=1)
    for threads in (1, 3):
        np.testing.assert_array_equal(_core.vote(pairs, k, threads), votes.argmax(axis=1))
        np.testing.assert_array_equal(
            _core.one_vs_rest(pairs, k, threads), _ovr_decision_function(pairs < 0, -pairs, k)
        )
    sums = np.random.default_rng(0).normal(size=(40, k * (k - 1)))
    intercept = np.arange(k * (k - 1) / 2)
    by_class = sums.reshape(40, k, k - 1)
    expected = by_class[:, first, second - 1] + by_class[:, second, first] + intercept
    np.testing.assert_array_equal(_core.pair_decisions(sums, intercept, k, 2), expected)
    for call in (
        lambda: _core.vote(pairs, k + 1, 1),
        lambda: _core.one_vs_rest(pairs, k + 1, 1),
        lambda: _core.pair_decisions(sums, intercept, k + 1, 1),
        lambda: _core.pair_decisions(sums[:, 1:].copy(), intercept, k, 1),
    ):
        with pytest.raises(ValueError, match="per pair of classes"):
            call()


MEMORY = """
import numpy as np, scipy.sparse
from pairstep.svm import SVC

def resident():
    return [int(line.split()[1]) for line in open("/proc/self/status") if "VmRSS" in line][0] / 1024

rng = np.random.default_rng(0)
def drawn(rows, columns, density):
    X = scipy.sparse.random_array((rows, columns), density=density, random_state=rng, format="csr")
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return scipy.sparse.csr_array(parts, X.shape)

SVC(kernel="linear").fit(drawn(50, 99, 0.1), [0, 1] * 25)
X = drawn(400, 2**22, 1000 / 2**22)
before = resident()
model = SVC(kernel="linear").fit(X, rng.integers(0, 2, 400))
model.predict(X)
print(resident() - before)
"""


@pytest.mark.unsanitized  # sanitizers do not return freed memory
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
def test_memory_for_wide_data_is_freed():
    """The model keeps 5 MB here; the 100 MB and more that its fit used are freed."""
    result = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    assert float(result.stdout) < 40
