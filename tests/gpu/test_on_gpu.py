"""On a GPU: our kernels against NumPy in float64, and whole fits."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from stand_in import StandIn

import pairstep.gpu.newton
import pairstep.gpu.points
from pairstep.gpu.device import Cuda, Derivatives
from pairstep.gpu.oracle import KernelOracle
from pairstep.svm import SVC, SVCCV, SVR, SVRCV, NuSVC, NuSVR, OneClassSVM
from pairstep.svm.engine import Dual, Kernel

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"needs an NVIDIA GPU: {error}")
    return Cuda()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "sigmoid"])
@pytest.mark.parametrize(
    ("n", "queries", "d"),
    [(1, 1, 1), (127, 129, 8), (129, 64, 9), (1000, 300, 37), (3000, 2000, 64)],
)
def test_kernels(device, n, queries, d, name, dtype):
    xp, rng = device.xp, np.random.default_rng([n, queries, d])
    kernel = Kernel(name, 0.3 / d, 3, 0.5)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(queries, d)).astype(dtype)
    center = X.mean(axis=0) if name == "rbf" else np.zeros(d)
    rows = rng.permutation(queries)
    exact = StandIn()
    A = exact.pack(X, None, center, "float64")
    B = exact.pack(Y, rows, center, "float64")
    points = device.pack(xp.asarray(X), None, xp.asarray(center), dtype)
    asked = device.pack(xp.asarray(Y), xp.asarray(rows), xp.asarray(center), dtype)
    error = 1e-5 if dtype == "float32" else 1e-12
    K = exact.kernel_matrix(kernel, A, B)
    if dtype == "float64":
        for entry, rounding in (("float64", error), ("float32", 1e-7)):
            found = device.kernel_matrix(kernel, points, asked, xp.empty(K.shape, entry))
            np.testing.assert_allclose(found.get(), K, rtol=0, atol=rounding * np.abs(K).max())
    for outputs in (1, 3, 12, 13):
        weights = rng.normal(size=(outputs, queries))
        sums, expected = xp.ones((outputs, n)), np.ones((outputs, n))
        device.add_sums(kernel, points, asked, weights, sums)
        exact.add_sums(kernel, A, B, weights, expected)
        np.testing.assert_allclose(sums.get(), expected, atol=error * np.sqrt(queries) * 10)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("l1_penalized", [False, True])
@pytest.mark.parametrize("starts", [[0, 50_000], [0, 20_000, 50_000], [0, 777]])
def test_candidates(device, starts, l1_penalized, ties):
    xp, rng, n, count = device.xp, np.random.default_rng(3), starts[-1], 50
    gradient = rng.normal(size=n)
    gradient = gradient.round() if ties else gradient
    lower, upper = -rng.random(n), rng.random(n)
    x = np.choose(rng.integers(0, 4, n), [lower, upper, np.zeros(n), upper / 3])
    l1 = rng.random(n) / 10 if l1_penalized else None
    dual = Dual(np.arange(n), gradient, lower, upper, np.array(starts), np.zeros(1), x, l1)
    arrays = map(xp.asarray, (gradient, x, lower, upper))
    oracle = object.__new__(KernelOracle)
    oracle.device, oracle.dual = device, dual
    l1_there = None if l1 is None else xp.asarray(l1)
    oracle.derivatives = Derivatives(*arrays, l1_there, xp.asarray(dual.starts))
    _, down, up, free = oracle.position()
    coordinates, found = device.outliers(oracle.derivatives, count, True)
    np.testing.assert_array_equal(found, gradient[coordinates])
    assert len(set(coordinates)) == len(coordinates)
    assert set(np.flatnonzero(free)) <= set(coordinates)
    selected = np.isin(np.arange(n), coordinates)
    for begin, end in itertools.pairwise(starts):
        left, right, here = down[begin:end], up[begin:end], selected[begin:end]
        assert here[left.argmax()]
        assert here[right.argmin()]
        assert here[left > max(np.sort(left)[-count], right.min())].all()
        assert here[right < min(np.sort(right)[count - 1], left.max())].all()


def data(n=15_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return X, (X**2).sum(axis=1) + rng.normal(size=n)


@pytest.mark.parametrize("model", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_fits_agree_with_the_cpu(device, model):
    X, y = data()
    y = y > 5 if model in (SVC, NuSVC) else y
    options = {"tol": 1e-4} | ({"nu": 0.2} if model in (NuSVC, NuSVR, OneClassSVM) else {})
    there, here = (model(device=where, **options).fit(X, y) for where in ("cuda", "cpu"))
    assert set(there.optimality_.status) == {"optimal"}
    found, expected = (fitted.predict(X[:1000]) for fitted in (there, here))
    if model in (SVR, NuSVR):
        np.testing.assert_allclose(found, expected, atol=0.01)
    else:
        assert np.mean(found == expected) > 0.99
    again = model(device="cuda", **options).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, there.dual_coef_)


@pytest.mark.parametrize("stiff", [False, True])
def test_newton_systems(device, stiff, monkeypatch):
    monkeypatch.setattr(pairstep.gpu.newton, "CG_ITERATIONS", 0 if stiff else 10**6)
    monkeypatch.setattr(pairstep.gpu.newton, "MAX_PAIR_STEP_READS", 0.0)
    X, y = data(8000)
    there, here = (
        SVC(C=100.0, tol=1e-6, device=where).fit(X, y > 5, sample_weight=1 + (y > 7))
        for where in ("cuda", "cpu")
    )
    assert set(there.optimality_.status) == {"optimal"}
    np.testing.assert_allclose(
        there.decision_function(X), here.decision_function(X), rtol=0, atol=1e-4
    )


def test_a_system_that_is_not_positive_definite(device):
    matrix = device.xp.asarray(np.diag([1.0, -1.0]))
    assert device.solve(matrix, np.ones((2, 1))) is None


@pytest.mark.parametrize("n", [1, 300, 1000])
def test_matrices(device, n):
    xp, rng = device.xp, np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A @ A.T / n + np.eye(n)
    there, vector = xp.asarray(A), rng.normal(size=n)
    np.testing.assert_allclose(device.product(there, vector), A @ vector, atol=1e-12 * n)
    np.testing.assert_array_equal(device.diagonal(there), A.diagonal())
    rows = rng.permutation(n)[: n // 2 + 1]
    part = A[np.ix_(rows, rows)] + 0.5 * np.eye(len(rows))
    np.testing.assert_array_equal(device.submatrix(there, rows, 0.5).get(), part)
    right = rng.normal(size=(n, 3))
    found = device.solve(xp.asarray(A), right)
    np.testing.assert_allclose(A @ found, right, atol=1e-9)
    target = xp.zeros(n)
    device.scatter(target, rows, vector[: len(rows)])
    np.testing.assert_array_equal(target.get()[rows], vector[: len(rows)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "count", "columns"), [(1, 1, 1), (500, 257, 300), (4000, 3000, 3999)]
)
def test_sums_of_stored_rows(device, n, count, columns, dtype):
    xp, rng = device.xp, np.random.default_rng([n, count])
    K = rng.normal(size=(n, n)).astype(dtype)
    rows, some = rng.integers(0, n, count), rng.permutation(n)[:columns]
    for outputs in (1, 4, 5):
        weights = rng.normal(size=(outputs, count))
        whole = xp.ones((outputs, columns + 7))
        device.add_rows(xp.asarray(K), rows, weights, xp.asarray(some), whole[:, 3 : 3 + columns])
        expected = np.ones((outputs, columns + 7))
        expected[:, 3 : 3 + columns] += (weights @ K[rows])[:, some]
        np.testing.assert_allclose(whole.get(), expected, atol=1e-9)


@pytest.mark.parametrize("search", [SVCCV, SVRCV])
def test_searches_agree_with_the_cpu(device, search):
    X, y = data(12_000)
    y = y > 5 if search is SVCCV else y
    grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.03, 0.3], "cv": 3}
    there, here = (search(device=where, **grid).fit(X, y) for where in ("cuda", "cpu"))
    found, expected = (one.cv_results_["mean_test_score"] for one in (there, here))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_gpus_have_numbers(device):
    X, y = data(8000)
    there, here = (SVR(device=where).fit(X, y) for where in ("cuda:0", "cuda"))
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    count = device.xp.cuda.runtime.getDeviceCount()
    if count < 16:
        with pytest.raises(ValueError, match=rf'no device="cuda:{count}": CUDA found {count} GPU'):
            SVR(device=f"cuda:{count}").fit(X, y)


def test_a_precomputed_matrix(device):
    X, y = data(6000)
    K = np.exp(-((X**2).sum(axis=1)[:, None] + (X**2).sum(axis=1) - 2.0 * X @ X.T) / 6)
    there, here = (
        SVC(kernel="precomputed", tol=1e-5, device=where).fit(K, y > 5) for where in ("cuda", "cpu")
    )
    assert set(there.optimality_.status) == {"optimal"}
    np.testing.assert_allclose(there.decision_function(K), here.decision_function(K), atol=1e-3)


def test_sparse_rows_become_dense(device, monkeypatch):
    monkeypatch.setattr(pairstep.gpu.points, "BLOCK_BYTES", 2**15)
    X, y = data()
    X[X < 0.5] = 0
    plain, sparse = (SVR(device="cuda").fit(rows, y) for rows in (X, scipy.sparse.csr_array(X)))
    np.testing.assert_allclose(sparse.predict(X), plain.predict(X), atol=0.01)


def test_data_in_stripes_give_the_same_model(device, monkeypatch):
    X, y = data()
    whole = SVR(device="cuda").fit(X, y)
    monkeypatch.setattr(Cuda, "free_bytes", lambda self: X.nbytes)
    striped = SVR(device="cuda").fit(X, y)
    assert set(striped.optimality_.status) == {"optimal"}
    np.testing.assert_allclose(striped.predict(X), whole.predict(X), atol=0.01)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_on_the_device(device, library):
    there = pytest.importorskip(library)
    X, y = data(12_000)
    on_device = there.from_dlpack(device.xp.asarray(X)), there.from_dlpack(device.xp.asarray(y))
    model = SVR(device="auto").fit(*on_device)
    found = model.predict(on_device[0])
    assert type(found) is type(on_device[0])
    expected = SVR(device="cuda").fit(X, y).predict(X)
    np.testing.assert_array_equal(device.xp.from_dlpack(found).get(), expected)
