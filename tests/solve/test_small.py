"""Small dense problems are solved in one native call, or declined and left to `minimize`.

The native call is tested directly, because `solve_qp` does not say which solver it used.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import kkt_violation, problem, sum_error_in_ulps

from pairstep import Quadratic, SumBox, _core, minimize, solve_qp


def usual(Q, c=None, total=1.0, lower=0.0, upper=np.inf, **options):
    """Solve with max_iter, which the small-problem solver declines."""
    return minimize(Quadratic(Q, c), SumBox(total, lower, upper), max_iter=10**6, **options)


def small(Q, c=0.0, total=1.0, lower=0.0, upper=np.inf, tol=1e-8):
    return _core.small(Q, c, total, lower, upper, tol)


def random_problem(rng, n):
    factors = rng.normal(size=(rng.integers(1, 2 * n + 1), n))
    Q = factors.T @ factors + np.diag(rng.random(n) * rng.choice([1e-6, 1.0]))
    Q = (Q + Q.T) / 2
    lower = rng.choice([0.0, -0.3]) * np.ones(n) if rng.random() < 0.7 else -rng.random(n)
    upper = lower + rng.choice([1.0, 3.0, np.inf]) if rng.random() < 0.7 else lower + rng.random(n)
    total = lower.sum() + rng.random() * min(upper.sum() - lower.sum(), 5.0)
    return Q, rng.normal(size=n), float(total), lower, upper


@given(st.integers(0, 2**32 - 1), st.integers(1, 24))
def test_the_optimum_is_that_of_minimize(seed, n):
    Q, c, total, lower, upper = random_problem(np.random.default_rng(seed), n)
    found = small(Q, c, total, lower, upper)
    expected = usual(Q, c, total, lower, upper)
    if not found:  # declined, which is allowed
        result = solve_qp(Q, c, total=total, lower=lower, upper=upper)
        np.testing.assert_array_equal(result.x, expected.x)
        return
    x, gradient, value, _, violation, tolerance, bound, multiplier = found
    assert expected.status == "optimal"
    size = max(abs(expected.fun), abs(x @ c), 0.5 * x @ Q @ x)
    assert abs(value - expected.fun) <= 1e-6 * size
    assert value == pytest.approx(0.5 * x @ Q @ x + c @ x, rel=1e-9, abs=1e-12 * size)
    assert (x >= lower).all()
    assert (x <= upper).all()
    assert sum_error_in_ulps(x, total) <= 1
    p = problem(None, lambda x: Q @ x + c, n, total, lower, upper)
    assert violation == pytest.approx(kkt_violation(p, x), rel=1e-6, abs=1e-13 * np.abs(c).max())
    assert violation <= tolerance
    assert bound >= value - expected.fun - 1e-12 * size
    assert math.isfinite(multiplier)
    np.testing.assert_allclose(gradient, Q @ x + c, rtol=0, atol=1e-12 * np.abs(Q).max())


@pytest.mark.parametrize("n", [2, 31, 85, 299, 300])
def test_results_are_those_of_minimize(n):
    rng = np.random.default_rng(n)
    Q = np.cov(rng.normal(size=(2 * n + 2, n)).T)
    result, expected = solve_qp(Q), usual(Q)
    assert small(Q)
    np.testing.assert_array_equal(result.x, expected.x)
    for name in ("status", "n_iter", "message"):
        assert getattr(result, name) == getattr(expected, name)
    for name in ("fun", "kkt_violation", "suboptimality_bound", "sum_multiplier"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-15)
    assert result.history is None
    assert result.solve_time > 0


def test_matrices_in_fortran_order_are_accepted():
    Q, c, total, lower, upper = random_problem(np.random.default_rng(3), 9)
    found = small(np.asfortranarray(Q), c, total, lower, upper)
    np.testing.assert_array_equal(found[0], small(Q, c, total, lower, upper)[0])
    assert small(np.asfortranarray(np.array([[1.0, 0.5], [0.4, 1.0]]))) is False


def test_larger_problems_use_the_other_solvers():
    assert small(np.eye(301)) is None
    assert small(np.eye(300))


@pytest.mark.parametrize(
    "declined",
    [
        {"Q": np.array([[1.0, 0.5], [0.4, 1.0]])},
        {"Q": np.array([[1.0, np.nan], [np.nan, 1.0]])},
        {"Q": np.array([[1.0, 3.0], [3.0, 1.0]])},
        {"Q": np.eye(2, dtype=np.float32)},
        {"Q": np.asfortranarray(np.arange(9.0).reshape(3, 3))},
        {"Q": np.ones((2, 3))},
        {"Q": [[1.0, 0.0], [0.0, 1.0]]},
        {"Q": np.zeros((0, 0))},
        {"c": np.array([np.inf, 0.0])},
        {"c": np.zeros(3)},
        {"c": [0.0, 1.0]},
        {"total": 3.0, "upper": 1.0},
        {"total": math.nan},
        {"total": (0.0, 1.0)},
        {"total": True},
        {"total": 10**400},
        {"lower": -np.inf},
        {"lower": 1.0, "upper": 0.0},
        {"upper": math.nan},
        {"upper": 1e150},
        {"tol": -1.0},
        {"tol": math.nan},
        {"tol": "1e-8"},
        {"Q": None},
        {"lower": None},
        {"total": None},
        {"tol": None},
    ],
    ids=str,
)
def test_unsupported_problems_are_declined(declined):
    arguments = {"Q": np.eye(2)} | declined
    assert not small(**arguments)


def test_minimize_uses_the_small_solver_too():
    Q, c, total, lower, upper = random_problem(np.random.default_rng(8), 15)
    where = SumBox(total, lower, upper)
    result, expected = minimize(Quadratic(Q, c), where), usual(Q, c, total, lower, upper)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_allclose(
        result.bound_multipliers, expected.bound_multipliers, rtol=0, atol=1e-12
    )
    assert result.setup_time == 0.0
    assert expected.setup_time > 0.0
    for option in ({"history": True}, {"x0": expected.x}, {"time_limit": 9.0}):
        assert minimize(Quadratic(Q, c), where, **option).setup_time > 0.0


def test_bounds_that_are_changed_afterwards_do_not_change_a_result():
    lower, upper = np.zeros(3), np.full(3, 0.4)
    result = solve_qp(np.diag([1.0, 2.0, 9.0]), lower=lower, upper=upper)
    upper[:] = 0.0
    lower[:] = -1.0
    assert (result.bound_multipliers != 0).tolist() == [True, True, False]


@pytest.mark.parametrize("as_given", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_the_small_solver_is_tried_once(monkeypatch, as_given):
    tries = []

    def counted(*arguments):
        tries.append(found := plain(*arguments))
        return found

    plain = _core.small
    monkeypatch.setattr(_core, "small", counted)
    solve_qp(as_given(np.array([[1.0, 3.0], [3.0, 1.0]])))
    assert tries.count(False) == 1


@pytest.mark.parametrize("n", [2, 3, 8, 40, 300])
@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.45, 0.55, 0.9])
def test_starts_with_some_at_their_bounds(n, fraction):
    """A diagonal problem with a known minimum; about this fraction is at the bounds."""
    rng = np.random.default_rng(n)
    Q, wish = np.diag(rng.uniform(1, 9, n)), rng.normal(size=n)
    bounds = np.quantile(wish, [fraction / 2, 1 - fraction / 2]) + np.array([-1e-3, 1e-3])
    c = -np.diag(Q) * wish
    total = float(np.clip(wish, *bounds).sum())
    result = solve_qp(Q, c, total=total, lower=bounds[0], upper=bounds[1])
    np.testing.assert_array_equal(result.x, usual(Q, c, total, *bounds).x)
    np.testing.assert_allclose(result.x, np.clip(wish, *bounds), rtol=0, atol=1e-7)
    assert sum_error_in_ulps(result.x, total) <= 1
