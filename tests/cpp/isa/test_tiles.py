"""The tile kernels: exponentials to a few ulp, kernel sums against NumPy in float64.

Native functions are called directly, with sizes and values that few fits have.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse
from pairwise import pairwise
from sklearn.metrics.pairwise import pairwise_kernels

from pairstep import _core
from pairstep.svm.engine import Kernel, decide, native

KERNELS = [
    Kernel("linear"),
    *(Kernel("poly", 0.3, degree, 0.5) for degree in (0, 1, 2, 3, 8)),
    Kernel("poly", 0.7, 5, -1.0),
    *(Kernel("rbf", gamma) for gamma in (1e-6, 0.2, 30.0)),
    *(Kernel("sigmoid", *of) for of in ((1e-7, 3, 0.0), (0.05, 3, -0.2), (5.0, 3, 1.0))),
]
COUNTS = (1, 7, 8, 9, 31, 33, 47, 48, 49, 100)


def ulps(found, truth):
    """The error in units in the last place of the rounded true value."""
    rounded = truth.astype(found.dtype)
    return np.abs((found.astype(np.longdouble) - truth) / np.spacing(rounded))


def true_exponential(x):
    return np.exp(x.astype(np.longdouble))


# The range for which the tiles guarantee exp; its results are normal numbers.
ENDS = {np.float32: (-87.3, 88.0), np.float64: (-708.0, 709.0)}


@pytest.mark.parametrize("dtype", ENDS)
def test_exponential_over_the_whole_range(dtype, instruction_set):
    rng = np.random.default_rng(0)
    low, high = ENDS[dtype]
    halves = (np.arange(-120, 120) + 0.5) * np.log(2)  # where the rounding of x / log 2 flips
    x = np.concatenate([
        rng.uniform(low, high, 200_000), -np.logspace(-46, 1.9, 20_000), np.logspace(-46, 1.9, 999),
        halves, np.nextafter(halves, 0), halves[np.abs(halves) < high] * (1 + 1e-6),
        [0.0, -0.0, low, high],
    ]).astype(dtype)  # fmt: skip
    x = x[(x >= dtype(low)) & (x <= dtype(high))]
    found = _core.exponentials(x)
    assert found.dtype == dtype
    assert ulps(found, true_exponential(x)).max() < 2.5


@pytest.mark.parametrize("dtype", ENDS)
def test_exponential_of_zero_is_one(dtype, instruction_set):
    """Exactly: the kernel of a point with itself."""
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, tiny, -tiny, -np.finfo(dtype).tiny], dtype)
    np.testing.assert_array_equal(_core.exponentials(x), 1)


@pytest.mark.parametrize("dtype", ENDS)
def test_exponential_falls_to_zero(dtype, instruction_set):
    """Only subnormal results, or nearly subnormal ones, may become 0; the function is monotone."""
    low = ENDS[dtype][0]
    x = np.concatenate([
        np.linspace(low, 1.2 * low, 10_001), [10 * low, -1e30, np.finfo(dtype).min, -np.inf],
    ]).astype(dtype)  # fmt: skip
    found = _core.exponentials(x)
    assert (found >= 0).all()
    assert (np.diff(found) <= 0).all()
    error = np.abs(found.astype(np.longdouble) - true_exponential(x))
    assert error.max() <= 1.6 * np.finfo(dtype).tiny
    np.testing.assert_array_equal(found[-4:], 0)


@pytest.mark.parametrize("dtype", ENDS)
def test_exponential_of_large_arguments_stays_large(dtype, instruction_set):
    """No kernel needs it, but the result must not wrap around."""
    high = ENDS[dtype][1]
    x = np.array([high, 1.01 * high, 10 * high, 1e30, np.inf], dtype)
    found = _core.exponentials(x)
    assert (found >= 0.99 * true_exponential(x[:1])).all()


@pytest.mark.parametrize("dtype", ENDS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 15, 16, 17, 33])
def test_exponentials_of_any_number(n, dtype, instruction_set):
    x = np.linspace(-3, 0, n).astype(dtype)
    found = _core.exponentials(x)
    assert found.shape == (n,)
    np.testing.assert_allclose(found, np.exp(x), rtol=4 * np.finfo(dtype).eps)


# ------------------------------------------------------------------------- sums of kernel values


def true_kernel(kernel, A, B):
    """In float64, from scikit-learn; distances from differences."""
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * ((A[:, None] - B) ** 2).sum(axis=2))
    parameters = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    return pairwise_kernels(A, B, kernel.name, filter_params=True, **parameters)


def rounding(kernel, A, B, eps):
    """A bound on the error of a kernel value if every operation has a relative error of eps."""
    products = np.abs(A) @ np.abs(B).T
    features = A.shape[1]
    base = abs(kernel.gamma) * products + abs(kernel.coef0)
    if kernel.name == "linear":
        return (features + 4) * eps * products
    if kernel.name == "poly":
        return (features + 8) * (1 + kernel.degree) * eps * base**kernel.degree
    if kernel.name == "sigmoid":
        return eps * (8 + (features + 8) * base)
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1)
    return eps * (8 + (features + 8) * kernel.gamma * squares)


def laid_out(X, kind):
    if kind == "csr":
        X = scipy.sparse.csr_array(X)
        return (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1])
    return X.astype(kind)


def sparse_data(rng, n, features):
    """Numbers that are exact in float32; some rows are all zeros."""
    X = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.4)
    X[rng.random(n) < 0.2] = 0
    return X.astype(np.float32).astype(np.float64)


def kernel_sums(kernel, A, B, weights, *, kind=np.float64, single=False, threads=1, center=None):
    sums = np.zeros((weights.shape[1], len(B)))
    _core.add_kernel(
        kernel.native, laid_out(A, kind), center, np.arange(len(A)), weights, laid_out(B, kind),
        np.arange(len(B)), sums, threads, np.inf if single else 0.0,
    )  # fmt: skip
    return sums


def check_sums(kernel, A, B, weights, **how):
    found = kernel_sums(kernel, A, B, weights, **how)
    exact, size = true_kernel(kernel, A, B), np.abs(weights.T)
    eps = np.finfo(np.float32 if how.get("single") else np.float64).eps
    of_sum = (len(A) + 4) * np.finfo(float).eps * np.abs(exact)
    allowed = size @ (rounding(kernel, A, B, eps) + of_sum)
    assert (np.abs(found - weights.T @ exact) <= allowed).all()
    return found


@pytest.mark.parametrize(
    ("kernel", "kind", "single", "instruction_set"),
    pairwise(KERNELS, [np.float64, np.float32, "csr"], [False, True], _core.instruction_sets()),
    indirect=["instruction_set"],
    ids=str,
)
def test_sums_of_any_shape(kernel, kind, single, instruction_set):
    rng = np.random.default_rng(3)
    for k, columns in enumerate(COUNTS):
        features, outputs = (1, 3, 16, 123)[k % 4], 1 + k % 3
        for queries in {1, columns, COUNTS[-1 - k]}:
            A, B = (sparse_data(rng, n, features) for n in (queries, columns))
            weights = rng.normal(size=(queries, outputs))
            check_sums(kernel, A, B, weights, kind=kind, single=single)


@pytest.mark.parametrize(
    ("kernel", "kind", "single"),
    pairwise(KERNELS, [np.float64, "csr"], [False, True]),
    ids=str,
)
def test_threads_do_not_change_a_bit(kernel, kind, single):
    rng = np.random.default_rng(4)
    A, B = sparse_data(rng, 211, 16), sparse_data(rng, 1003, 16)
    weights = rng.normal(size=(211, 2))
    one = check_sums(kernel, A, B, weights, kind=kind, single=single)
    two = check_sums(kernel, A, B, weights, kind=kind, single=single, threads=2)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", 0.2)], ids=str)
def test_more_points_than_are_packed_at_once(kernel, outputs):
    rng = np.random.default_rng(5)
    A, B = sparse_data(rng, 4100, 2), sparse_data(rng, 16_390, 2)
    found = kernel_sums(kernel, A, B, weights := rng.normal(size=(4100, outputs)), single=True)
    checked = [0, 1, 47, 48, 16_335, 16_336, 16_383, 16_384, 16_385, 16_389]
    truth = weights.T @ true_kernel(kernel, A, B[checked])
    np.testing.assert_allclose(found[:, checked], truth, atol=1e-3 * np.sqrt(4100) / 10)


@pytest.mark.parametrize("threads", [1, 2])
def test_chosen_rows_are_added_to_existing_sums(threads):
    rng = np.random.default_rng(6)
    A, B, kernel = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)), Kernel("rbf", 0.5)
    queries, columns = rng.integers(0, 20, 11), rng.integers(0, 30, 53)
    weights, before = rng.normal(size=(11, 2)), rng.normal(size=(2, 53))
    sums = before.copy()
    _core.add_kernel(kernel.native, A, None, queries, weights, B, columns, sums, threads, 0.0)
    truth = before + weights.T @ true_kernel(kernel, A[queries], B[columns])
    np.testing.assert_allclose(sums, truth, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", COUNTS)
def test_precomputed(columns, dtype, threads):
    rng = np.random.default_rng(7)
    K = rng.normal(size=(columns, 40)).astype(dtype)
    for support, outputs in itertools.product((40, 23, 3), (1, 3)):
        theirs, weights = rng.permutation(40)[:support], rng.normal(size=(support, outputs))
        found = decide(theirs, Kernel("precomputed"), weights, K, threads=threads)
        np.testing.assert_allclose(found, K[:, theirs].astype(float) @ weights, atol=1e-13)


def test_no_rows_or_no_columns():
    for A, B in ((0, 5), (5, 0), (0, 0)):
        found = kernel_sums(Kernel("rbf"), np.ones((A, 2)), np.ones((B, 2)), np.ones((A, 1)))
        np.testing.assert_array_equal(found, np.zeros((1, B)))


def few_entries(offset):
    """Two columns far from the origin; most rows have no other entries."""
    rng = np.random.default_rng(9)
    X = np.zeros((60, 8))
    X[:, :2] = (rng.normal(size=(60, 2)) + offset).astype(np.float32)
    X[::7, 3] = rng.normal(size=9)
    return X


def gaps():
    """The mean of a column with gaps is near most of its values, but far from the zeros."""
    X = np.zeros((60, 8))
    X[:, 2] = 1e6 + np.random.default_rng(9).normal(size=60)
    X[::20, 2] = 0
    return X


@pytest.mark.parametrize(
    ("X", "kind", "single", "atol"),
    [(few_entries(offset), kind, False, 1e-12)
     for offset in (1e2, 1e4, 1e6, 1e8) for kind in (np.float64, "csr")]
    + [(few_entries(1e5), np.float64, True, 1e-4)]
    + [(gaps(), kind, False, 1e-5) for kind in (np.float64, "csr")],
)  # fmt: skip
def test_the_origin_does_not_matter_to_distances(X, kind, single, atol):
    """Data far from the origin are centered, so large norms cost no digits."""
    kernel, weights = Kernel("rbf", 0.7), np.random.default_rng(9).normal(size=(60, 2))
    found = kernel_sums(kernel, X, X, weights, center=X.mean(axis=0), kind=kind, single=single)
    np.testing.assert_allclose(found, weights.T @ true_kernel(kernel, X, X), atol=atol)


def test_columns_of_zeros_do_not_matter():
    rng = np.random.default_rng(10)
    narrow = rng.normal(size=(50, 2)) + 1e7
    wide = np.zeros((50, 9))
    wide[:, [2, 5]] = narrow
    kernel, weights = Kernel("rbf", 1.0), rng.normal(size=(50, 1))
    for kind in (np.float64, "csr"):
        found, expected = (
            kernel_sums(kernel, X, X, weights, center=X.mean(axis=0), kind=kind)
            for X in (wide, narrow)
        )
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "scale", "allowed"), pairwise(KERNELS, [1.0, 1e3, 1e12], [1e-3, 1e-6]), ids=str
)
def test_the_error_is_within_the_allowed_error(kernel, scale, allowed):
    """float32 is used only if it reaches the requested accuracy."""
    rng = np.random.default_rng(11)
    A, B = (scale * sparse_data(rng, n, 7) for n in (40, 50))
    weights = 100 * rng.normal(size=(40, 2))
    sums = np.zeros((2, 50))
    _core.add_kernel(
        kernel.native, A, None, np.arange(40), weights, B, np.arange(50), sums, 1, allowed
    )
    exact = true_kernel(kernel, A, B)
    of_double = np.abs(weights.T) @ rounding(kernel, A, B, 4 * np.finfo(float).eps)
    np.testing.assert_array_less(np.abs(sums - weights.T @ exact), allowed + 2 * of_double)


def test_float32_is_used_if_it_is_accurate_enough():
    rng = np.random.default_rng(12)
    A = rng.normal(size=(40, 5))
    weights = rng.normal(size=(40, 1))
    sums = {}
    for allowed in (0.0, 1e-9, 1e-2):
        sums[allowed] = np.zeros((1, 40))
        _core.add_kernel(
            Kernel("rbf").native, A, None, np.arange(40), weights, A, np.arange(40),
            sums[allowed], 1, allowed,
        )  # fmt: skip
    np.testing.assert_array_equal(sums[0.0], sums[1e-9])
    assert (sums[0.0] != sums[1e-2]).any()


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", 0.1)], ids=str)
def test_wide_data_equal_their_nonzero_columns(kernel):
    """The results have the same bits, and the other columns take no memory."""
    rng = np.random.default_rng(13)
    support, X = (
        scipy.sparse.random_array((n, 50), density=0.2, random_state=rng) for n in (40, 30)
    )
    place = np.sort(rng.choice(2**22 - 2, 50, replace=False)).astype(np.int32)
    wide = [
        scipy.sparse.csr_array((A.data, place[A.indices], A.indptr), (A.shape[0], 2**22 - 1))
        for A in (support.tocsr(), X.tocsr())
    ]
    weights = rng.normal(size=(40, 2))
    found = decide(wide[0], kernel, weights, wide[1], threads=2)
    np.testing.assert_array_equal(
        found, decide(support.tocsr(), kernel, weights, X.tocsr(), threads=2)
    )


@pytest.mark.parametrize("single", [False, True])
def test_sigmoid_to_a_few_ulp(single, instruction_set):
    """From arguments that cancel in (1 - exp) / (1 + exp) to those where tanh rounds to 1."""
    dtype = np.float32 if single else np.float64
    x = np.concatenate([
        np.logspace(-30, 2, 20_000), np.linspace(0.1, 0.2, 2001), np.linspace(0, 30, 3001), [1e30],
    ]).astype(dtype)  # fmt: skip
    x = np.concatenate([x, -x]).astype(float)[:, None]
    found = kernel_sums(Kernel("sigmoid"), np.ones((1, 1)), x, np.ones((1, 1)), single=single)[0]
    truth = np.tanh(x[:, 0].astype(np.longdouble))
    assert ulps(found.astype(dtype), truth).max() < 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.array([20])}, "indices must be in range"),
        ({"queries": np.array([-1])}, "indices must be in range"),
        ({"columns": np.array([30] * 30)}, "indices must be in range"),
        ({"sums": np.zeros((1, 29))}, "weights must be queries x outputs"),
        ({"X": np.zeros((30, 4))}, "the same number of features"),
        ({"X": laid_out(np.zeros((30, 3)), "csr")}, "both be sparse"),
        ({"center": np.zeros(2)}, "center must have one entry per feature"),
    ],
)
def test_inconsistent_arguments_are_refused(change, message):
    arguments = {
        "kernel": Kernel("rbf").native, "support": np.zeros((20, 3)), "center": None,
        "queries": np.zeros(1, int), "weights": np.zeros((1, 1)), "X": np.zeros((30, 3)),
        "columns": np.arange(30), "sums": np.zeros((1, 30)), "threads": 1, "allowed": 0.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        _core.add_kernel(**{**arguments, **change})


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (5, 8), (49, 9), (300, 33)])
def test_measures_of_data(shape, kind):
    rng = np.random.default_rng(0)
    X = 1e3 + rng.normal(size=shape)  # the squares of the entries would cancel
    X[rng.random(shape) < 0.4] = 0.0
    X[-1, -1] = 1000.0
    X = X.astype(np.float32 if kind == "float32" else np.float64)
    exact = X.astype(np.float64)
    given = native(scipy.sparse.csr_array(X) if kind == "sparse" else X)
    variance, largest = _core.measure(given)
    assert variance == pytest.approx(exact.var(), rel=1e-12, abs=1e-20)
    assert largest == pytest.approx((exact**2).sum(axis=1).max(), rel=1e-14)
    np.testing.assert_allclose(_core.rounded_mean(given), exact.mean(axis=0), rtol=1e-7)


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.3), Kernel("linear"), Kernel("precomputed")])
@pytest.mark.parametrize("columns", [1, 47, 48, 49])
def test_groups_of_support_vectors_have_separate_sums(kernel, columns):
    rng = np.random.default_rng(columns)
    support, X = rng.normal(size=(30, 3)), rng.normal(size=(columns, 3))
    weights, starts = rng.normal(size=(30, 2)), np.array([0, 7, 7, 30])
    if kernel.name == "precomputed":
        support, X = np.arange(30), rng.normal(size=(columns, 30))
    together = decide(support, kernel, weights, X, threads=2, starts=starts)
    for g, (begin, end) in enumerate(itertools.pairwise(starts)):
        alone = np.zeros((30, 2))
        alone[begin:end] = weights[begin:end]
        expected = decide(support, kernel, alone, X, threads=1)
        np.testing.assert_allclose(together[:, 2 * g : 2 * g + 2], expected, atol=1e-13)


@pytest.mark.parametrize(
    ("count", "exact", "sparse", "instruction_set"),
    pairwise(
        [*COUNTS, 24, 25, 95, 97, 500, 900], [False, True], [False, True],
        _core.instruction_sets(),
    ),
    indirect=["instruction_set"],
)  # fmt: skip
def test_blocks_are_symmetric_kernels(count, exact, sparse, instruction_set):
    """For any number of rows, also if it is not a multiple of the panel width."""
    rng = np.random.default_rng(count)
    X = rng.normal(size=(count, 5)) * (rng.random((count, 5)) < 0.5)
    kernel = Kernel("rbf", 0.3)
    library = _core.Library(kernel.native, None)
    library.append(native(scipy.sparse.csr_array(X) if sparse else X))
    block = np.empty((count, count))
    library.fill_block(np.arange(count), exact, 2, block)
    np.testing.assert_array_equal(block, block.T)
    truth = pairwise_kernels(X, metric="rbf", gamma=0.3)
    np.testing.assert_allclose(block, truth, rtol=0, atol=1e-14 if exact else 5e-6)
