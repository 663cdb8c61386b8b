"""Batches of small least-squares problems, one per SIMD lane, against other solvers.

Native functions are called directly, to reach every number of columns and the lanes that give up.
"""

import itertools

import numpy as np
import pytest
from oracles import sum_error_in_ulps

from pairstep import _core, simplex_lstsq

FEW = _core.MAX_FEW_COLUMNS
BOUNDS = {
    "simplex": {},
    "bounded": {"lower": -0.1, "upper": 0.45},
    "one side": {"lower": -np.inf, "upper": 0.6},
    "free": {"lower": -np.inf},
    "ridge": {"ridge": 0.3},
    "other total": {"total": -1.5, "lower": -2.0, "upper": 0.1},
    "range": {"total": (0.4, 0.7)},
}


def scene(seed, m, n, count, noise=0.2):
    rng = np.random.default_rng(seed)
    A = rng.random((m, n))
    mixed = A @ rng.dirichlet(np.full(n, 0.5), count).T
    return A, np.ascontiguousarray(mixed + noise * rng.normal(size=mixed.shape))


def by_solvers(monkeypatch, A, B, **options):
    with monkeypatch.context() as patch:
        patch.setattr(_core, "MAX_FEW_COLUMNS", 0)
        return simplex_lstsq(A, B, **options)


def in_lanes(A, B, **options):
    """Solve in lanes only; the state shows which columns are left to the other solvers."""
    n, count = A.shape[1], B.shape[1]
    settings = {"total": 1.0, "tol": 1e-8, "max_iter": 1000, "most_squares": 1e100}
    settings |= {"seconds": 9.0, "threads": 1}
    x, value, n_iter, state, *certificates = _core.few_columns(
        A, B, A.T @ A, np.zeros(n), np.full(n, 1 / n), np.zeros(n), np.full(n, np.inf),
        **{**settings, **options},
    )  # fmt: skip
    assert x.shape == (n, count)
    linear = -A.T @ B
    gradient = A.T @ (A @ x - B)
    violation, bound, optimal = _core.certify_rows(
        np.ascontiguousarray(gradient.T), np.ascontiguousarray(linear.T), (A * A).sum(axis=0),
        np.ascontiguousarray(x.T), value,
        np.zeros(n), np.full(n, np.inf), np.array([0, n]), None, None,
        tol=(settings | options)["tol"], threads=1,
    )  # fmt: skip
    valid = state != _core.INVALID
    rounding = 1e-14 * len(A) * np.abs(linear).max()
    for mine, its, off in zip(certificates, (violation, bound, optimal), (1, n, 0), strict=True):
        np.testing.assert_allclose(mine[valid], its[valid], rtol=1e-9, atol=off * rounding)
    return x, value, n_iter, state


def best_by_enumeration(A, b):
    """Return the optimum on the simplex by trying all sets of free variables."""
    n = A.shape[1]
    best = np.inf
    for size in range(1, n + 1):
        for free_set in itertools.combinations(range(n), size):
            columns = A[:, free_set]
            system = np.block([[columns.T @ columns, np.ones((size, 1))], [np.ones(size), 0]])
            right = np.append(columns.T @ b, 1.0)
            z = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if (z >= -1e-12).all():
                best = min(best, 0.5 * np.sum((columns @ z - b) ** 2))
    return best


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("n", [*range(2, FEW + 1), FEW + 1])
def test_the_optimum_is_that_of_the_other_solvers(monkeypatch, n, bounds):
    options = BOUNDS[bounds] | ({"upper": 1.5 / n} if bounds == "bounded" else {})
    A, B = scene(n, 20, n, 61)
    batch, other = simplex_lstsq(A, B, **options), by_solvers(monkeypatch, A, B, **options)
    assert (batch.status == "optimal").all()
    assert (other.status == "optimal").all()
    scale = np.maximum(other.fun, 1e-3)
    assert (np.abs(batch.fun - other.fun) <= 1e-9 * scale).all()
    assert (batch.kkt_violation <= 1e-8 * np.abs(A.T @ B).max(axis=0) * 2).all()


@pytest.mark.parametrize(("n", "count"), [(4, 200), (9, 6), (10, 6)])
def test_no_set_of_free_variables_is_better(n, count, instruction_set):
    """From 9 columns on, columns of zeros are added."""
    A, B = scene(n, n + 2, n, count, noise=1.0)
    batch = simplex_lstsq(A, B)
    best = np.array([best_by_enumeration(A, b) for b in B.T])
    assert np.abs(batch.fun - best).max() <= 1e-9
    assert (batch.x == 0).sum() > count / 2
    assert max(sum_error_in_ulps(x, 1.0) for x in batch.x) <= 1


@pytest.mark.parametrize("n", [8, 9, 11, 12, 13, 16, 17, 24, 25, 31, 32, 33])
def test_optimal_by_the_gradient(n, instruction_set):
    A, B = scene(n, 2 * n + 10, n, 150)
    batch = simplex_lstsq(A, B)
    if n <= FEW:
        assert (in_lanes(A, B)[-1] == 1).all()
    gradient = A.T @ (A @ batch.x.T - B)
    max_left = np.where(batch.x.T > 0, gradient, -np.inf).max(axis=0)
    assert (max_left - gradient.min(axis=0) <= 1e-8 * np.abs(A.T @ B).max(axis=0)).all()
    assert (batch.status == "optimal").all()
    assert batch.x.min() == 0.0
    assert max(sum_error_in_ulps(x, 1.0) for x in batch.x) <= 1


@pytest.mark.parametrize("n", [3, 11])
def test_fixed_variables_stay(n):
    A, B = scene(n, 40, n, 50)
    lower, upper = np.zeros(n), np.full(n, np.inf)
    lower[1] = upper[1] = 0.25
    batch = simplex_lstsq(A, B, lower=lower, upper=upper)
    assert (batch.status == "optimal").all()
    assert (batch.x[:, 1] == 0.25).all()
    others = simplex_lstsq(np.delete(A, 1, 1), B - 0.25 * A[:, [1]], total=0.75)
    np.testing.assert_allclose(np.delete(batch.x, 1, 1), others.x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000])
@pytest.mark.parametrize("m", [1, 3, 70])
def test_lanes_do_not_mix(count, m):
    A, B = scene(count, m, 3, count)
    batch = simplex_lstsq(A, B)
    assert (batch.status == "optimal").all()
    for k in {0, count // 2, count - 1}:
        alone = simplex_lstsq(A, B[:, k])
        assert batch.fun[k] == pytest.approx(alone.fun, rel=1e-9, abs=1e-12)
        if m > 1:  # otherwise there are many optima, and the result depends on the start
            np.testing.assert_array_equal(simplex_lstsq(A, B[:, [k]]).x[0], batch.x[k])


@pytest.mark.parametrize("n", range(1, FEW + 1))
def test_nearly_all_are_solved_in_lanes(n, instruction_set):
    A, B = scene(n, 30 + n, n, 500)
    x, value, n_iter, state = in_lanes(A, B)
    assert (state == 1).all()
    residual = A @ x - B
    np.testing.assert_allclose(value, 0.5 * (residual**2).sum(axis=0), rtol=1e-12)
    assert n_iter.max() <= 3 * n


@pytest.mark.parametrize("repeat", [[0, 0, 1], [0, 1, 2, 0.5]])
def test_dependent_columns_are_left_to_the_other_solvers(repeat):
    A, B = scene(6, 20, 3, 40)
    columns = [A[:, int(k)] if k == int(k) else A[:, :2].mean(axis=1) for k in repeat]
    dependent = np.stack(columns, axis=1)
    assert (in_lanes(dependent, B)[-1] == 0).all()
    batch = simplex_lstsq(dependent, B)
    assert (batch.status == "optimal").all()
    for k in range(40):
        assert batch.fun[k] == pytest.approx(simplex_lstsq(dependent, B[:, k]).fun, rel=1e-9)


@pytest.mark.parametrize("by", [1e-12, 1e-6, 1e6, 1e12])
def test_units_change_nothing(by):
    by = 2.0 ** round(np.log2(by))
    A, B = scene(7, 30, 5, 90)
    plain = simplex_lstsq(A, B)
    scaled = simplex_lstsq(A * by, B * by)
    np.testing.assert_array_equal(scaled.x, plain.x)
    np.testing.assert_array_equal(scaled.status, plain.status)
    amounts = simplex_lstsq(A, B * by, total=by)
    np.testing.assert_array_equal(amounts.x, plain.x * by)
    np.testing.assert_array_equal(amounts.n_iter, plain.n_iter)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60])
def test_bad_numbers_stay_in_their_lane(bad):
    A, B = scene(8, 12, 4, 19)
    plain = simplex_lstsq(A, B)
    B[3, [0, 11]] = bad
    batch = simplex_lstsq(A, B)
    good = np.setdiff1d(np.arange(19), [0, 11])
    assert (batch.status[[0, 11]] == "invalid").all()
    assert np.isnan(batch.x[[0, 11]]).all()
    np.testing.assert_array_equal(batch.x[good], plain.x[good])


def test_max_iter_is_reported():
    A, B = scene(9, 30, 6, 50)
    state = in_lanes(A, B, max_iter=0)[-1]
    assert not state.all()
    batch = simplex_lstsq(A, B, max_iter=0)
    assert set(batch.status) <= {"optimal", "max_iter"}
    assert "max_iter" in batch.status


def test_every_instruction_set_gives_the_same(instruction_set):
    A, B = scene(10, 25, 6, 77)
    best = simplex_lstsq(A, B)
    _core.use_instruction_set("baseline")
    plain = simplex_lstsq(A, B)
    np.testing.assert_allclose(best.x, plain.x, rtol=0, atol=1e-12)
