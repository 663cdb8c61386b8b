"""Dense linear algebra: Cholesky, solves, inner products.

Native functions are called directly: solves use few of the shapes in which they may fail.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import pairwise

from pairstep import _core

# Around the sizes of vectors, strips, groups, blocks and chunks of every instruction set.
EDGES = (4, 8, 12, 24, 28, 48, 96, 192, 256, 352)
SIZES = sorted({1, 2, 3, *(n + d for n in EDGES for d in (-1, 0, 1))})


def positive_definite(n, rng):
    F = rng.normal(size=(n, n + 2))
    return F @ F.T + 0.1 * np.eye(n)


def factor_of(matrix):
    """The upper factor, or None if the matrix is refused."""
    work = matrix.copy()
    return np.triu(work) if _core.cholesky(work) else None


# ------------------------------------------------------------------ Cholesky


@pytest.mark.parametrize("n", SIZES)
def test_factor_reproduces_the_matrix(n, instruction_set):
    matrix = positive_definite(n, np.random.default_rng(n))
    factor = factor_of(matrix)
    # The classical bound: |A - U'U| <= (n + 1) eps |U'||U|, element by element.
    slack = 2 * (n + 1) * np.finfo(float).eps * (np.abs(factor).T @ np.abs(factor))
    assert (np.abs(matrix - factor.T @ factor) <= slack).all()
    reference = scipy.linalg.cholesky(matrix)
    np.testing.assert_allclose(factor, reference, atol=1e-9 * np.abs(reference).max())


def test_only_one_triangle_is_read_and_written(instruction_set):
    for n in (5, 30, 101):
        matrix = positive_definite(n, np.random.default_rng(n))
        expected = factor_of(matrix)
        other = np.tril_indices(n, -1)
        matrix[other] = np.nan
        assert _core.cholesky(matrix)
        np.testing.assert_array_equal(np.triu(matrix), expected)
        assert np.isnan(matrix[other]).all()


def determinants(matrix):
    """The leading principal minors, in exact arithmetic."""
    rows = [[Fraction(v) for v in row] for row in matrix.tolist()]
    minors, product = [], Fraction(1)
    for c in range(len(rows)):
        breakpoint = rows[c][c]
        product *= breakpoint
        minors.append(product)
        if breakpoint == 0:
            break
        for r in range(c + 1, len(rows)):
            ratio = rows[r][c] / breakpoint
            rows[r] = [a - ratio * b for a, b in zip(rows[r], rows[c], strict=True)]
    return minors


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(-3, 8))
def test_definiteness_agrees_with_exact_arithmetic(n, seed, shift):
    rng = np.random.default_rng(seed)
    F = rng.integers(-3, 4, size=(n, n))
    matrix = (F + F.T + shift * np.eye(n, dtype=int)).astype(float)
    minors = determinants(matrix)
    definite = len(minors) == n and min(minors) > 0
    # A singular matrix of integers may leave a pivot of the size of rounding; a definite one, whose
    # determinant is at least 1, may not be refused.
    if definite:
        factor = factor_of(matrix)
        root = math.prod(float(v) for v in factor.diagonal())
        assert root**2 == pytest.approx(float(minors[-1]), rel=1e-9)
    elif min(minors) < 0:
        assert factor_of(matrix) is None


@pytest.mark.parametrize("n", [1, 2, 9, 28, 29, 60, 97, 200, 353])
def test_matrices_that_are_not_positive_definite_are_refused(n, instruction_set):
    rng = np.random.default_rng(n)
    good = positive_definite(n, rng)
    assert factor_of(good) is not None
    for at in {0, n // 2, n - 1}:
        for wrong in (-1.0, 0.0, np.nan, np.inf, -np.inf):
            matrix = good.copy()
            matrix[at, at] = wrong
            assert factor_of(matrix) is None, (at, wrong)
        if n > 1:
            for wrong in (np.nan, np.inf, 1e6):
                matrix = good.copy()
                i, j = min(at, (at + 1) % n), max(at, (at + 1) % n)
                matrix[i, j] = matrix[j, i] = wrong
                assert factor_of(matrix) is None, (i, j, wrong)
    if n > 2:
        assert factor_of(np.ones((n, n))) is None  # exactly singular


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_definiteness_does_not_depend_on_the_scale(scale, instruction_set):
    for n in (6, 50):
        matrix = positive_definite(n, np.random.default_rng(n))
        matrix /= np.abs(matrix).max()
        np.testing.assert_allclose(
            factor_of(matrix * scale), factor_of(matrix) * math.sqrt(scale), rtol=1e-9, atol=0
        )


@pytest.mark.parametrize(
    ("n", "count", "instruction_set"),
    pairwise(
        [1, 3, 8, 9, 24, 50, 96, 97, 193, 260], [1, 7, 8, 9, 16, 17, 24, 25, 60],
        _core.instruction_sets(),
    ),
    indirect=["instruction_set"],
)  # fmt: skip
def test_solves_agree_with_scipy(n, count, instruction_set):
    rng = np.random.default_rng(n * 100 + count)
    matrix = positive_definite(n, rng)
    right = rng.normal(size=(count, n))
    factor = matrix.copy()
    assert _core.cholesky(factor)
    factor[np.tril_indices(n, -1)] = np.nan  # not read
    found = right.copy()
    _core.cholesky_solve(factor, found)
    np.testing.assert_allclose(
        found, scipy.linalg.solve(matrix, right.T, assume_a="pos").T, rtol=1e-7, atol=1e-9
    )


def test_solves_agree_with_exact_arithmetic(instruction_set):
    # A'A with A unit triangular in whole numbers: the factor and, with whole x, all sums are exact.
    rng = np.random.default_rng(7)
    n = 40
    U = np.triu(rng.integers(-1, 2, size=(n, n)) * (rng.random((n, n)) < 0.1), 1) + np.eye(n)
    x = rng.integers(-5, 6, size=(20, n)).astype(float)
    matrix = U.T @ U
    right = x @ matrix
    np.testing.assert_array_equal(factor_of(matrix), U)
    _core.cholesky_solve(U, right)
    np.testing.assert_array_equal(right, x)


# ------------------------------------------------------------------ inner products

SHAPES = [(0, 3), (1, 1), (60, 15), (3, 97), (255, 24), (256, 96), (257, 25), (700, 200), (30, 400)]


def exact(left, right):
    """left'right of whole numbers, in Python's integers."""
    return (left.astype(object).T @ right.astype(object)).astype(float)


@pytest.mark.parametrize("shape", SHAPES)
def test_gram_of_whole_numbers_is_exact(shape, instruction_set):
    rng = np.random.default_rng(sum(shape))
    A = rng.integers(-9, 10, size=shape).astype(float)
    truth = A.T @ A  # sums below 2^53: exact in any order
    if A.size < 5000:
        np.testing.assert_array_equal(truth, exact(A, A))
    some = rng.permutation(shape[1])[: max(1, shape[1] // 2)]
    for threads in (1, 3):
        np.testing.assert_array_equal(_core.gram(A, None, threads), truth)
        np.testing.assert_array_equal(_core.gram(np.asfortranarray(A), None, threads), truth)
        np.testing.assert_array_equal(_core.gram(A, some, threads), truth[np.ix_(some, some)])


@pytest.mark.parametrize(
    ("shape", "count", "instruction_set"),
    pairwise(SHAPES, [1, 30, 101], _core.instruction_sets()),
    indirect=["instruction_set"],
)
def test_inner_products_of_whole_numbers_are_exact(shape, count, instruction_set):
    rng = np.random.default_rng(sum(shape) + count)
    A = rng.integers(-9, 10, size=shape).astype(float)
    B = rng.integers(-9, 10, size=(shape[0], count)).astype(float)
    X = rng.integers(-9, 10, size=(2 * shape[1], 2 * count)).astype(float)[::2, ::2]
    for threads in (1, 3):
        np.testing.assert_array_equal(_core.inner(A, B, threads), A.T @ B)
        np.testing.assert_array_equal(_core.inner(A.T, X, threads), A @ X)


def test_gram_of_more_rows_than_are_packed_at_once(instruction_set):
    A = np.random.default_rng(3).integers(-2, 3, size=(2000, 3000)).astype(float)
    some = np.arange(0, 3000, 1)
    found = _core.gram(A, some, 2)
    at = np.r_[:3, 1000:1003, 2997:3000]
    np.testing.assert_array_equal(found[at], A[:, at].T @ A)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("shape", [(50, 40), (300, 260), (1000, 120)])
def test_bits_do_not_depend_on_the_number_of_threads(shape):
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=shape), rng.normal(size=(shape[0], 333))
    for product in (lambda t: _core.gram(A, None, t), lambda t: _core.inner(A, B, t)):
        one = product(1)
        for threads in (2, 3, 8):
            np.testing.assert_array_equal(product(threads), one)


def test_inner_products_are_within_the_error_bound(instruction_set):
    rng = np.random.default_rng(6)
    A = rng.normal(size=(400, 30)) * 10.0 ** rng.integers(-8, 9, size=30)
    truth = np.array([[math.fsum(A[:, i] * A[:, j]) for j in range(30)] for i in range(30)])
    slack = 402 * np.finfo(float).eps * (np.abs(A).T @ np.abs(A))
    assert (np.abs(_core.gram(A, None, 1) - truth) <= slack).all()


@pytest.mark.parametrize("columns", [[-1], [0, 3], [2**40]])
def test_columns_out_of_range_are_refused(columns):
    with pytest.raises(ValueError, match="valid column indices"):
        _core.gram(np.ones((2, 3)), np.array(columns), 1)
    with pytest.raises(ValueError, match="same number of rows"):
        _core.inner(np.ones((2, 3)), np.ones((3, 3)), 1)


def test_writable_arguments_are_not_copied():
    for strided in (np.eye(4, dtype=np.float32), np.eye(8)[::2, ::2]):
        with pytest.raises(TypeError):
            _core.cholesky(strided)
        with pytest.raises(TypeError):
            _core.cholesky_solve(np.eye(4), strided)
