"""Paths give the solutions of cold starts in fewer iterations."""

import itertools

import numpy as np
import pytest
from oracles import sum_error_in_ulps

from pairstep import FactorModel, LeastSquares, Quadratic, Simplex, SumBox, minimize
from pairstep.solve.path import path

N = 60
RNG = np.random.default_rng(11)
FACTORS = RNG.normal(size=(8, N)) / 4
RISK = FACTORS.T @ FACTORS + np.diag(RNG.uniform(0.01, 0.1, N))
PROFIT = RNG.uniform(0.0, 0.1, N)
GROUPS = np.arange(N) % 3


def mean_variance(aversion):
    return Quadratic(aversion * RISK, -PROFIT)


PATHS = {
    "risk aversion": (mean_variance, Simplex(), np.geomspace(0.1, 100, 12)),
    "factors": (lambda a: FactorModel(FACTORS, 0.02, -a * PROFIT), Simplex(), [0.1, 1.0, 10.0]),
    "ridge": (lambda r: LeastSquares(FACTORS, np.ones(8), r), Simplex(3.0), [10.0, 1.0, 0.1]),
    "total up": (mean_variance(1.0), Simplex, np.linspace(0.5, 2.0, 8)),
    "total down": (mean_variance(1.0), Simplex, np.linspace(2.0, 0.0, 8)),
    "total through 0": (mean_variance(1.0), lambda t: SumBox(t, -0.2, 0.3), [-1.0, 0.0, 1.0]),
    "upper down": (mean_variance(1.0), lambda u: SumBox(1.0, 0.0, u), [1.0, 0.2, 0.05, 1 / N]),
    "upper up": (mean_variance(1.0), lambda u: SumBox(1.0, 0.0, u), [1 / N, 0.05, 0.2, np.inf]),
    "lower": (mean_variance(1.0), lambda l: SumBox(1.0, l), [-np.inf, -0.1, 0.0, 0.01, -0.2]),
    "range": (mean_variance(1.0), lambda t: SumBox((t, t + 0.5)), [0.0, 0.5, 1.0, 0.2]),
    "coefficients": (
        mean_variance(1.0),
        lambda t: SumBox(t, 0.0, 0.4, coefficients=np.where(GROUPS == 0, -1.0, 0.5)),
        [0.5, 1.0, -1.0],
    ),
    "groups": (
        mean_variance(1.0),
        lambda t: SumBox(np.array([t, 1.0, 1 - t]), 0.0, 0.5, groups=GROUPS),
        [0.0, 0.3, 1.0],
    ),
    "limits of groups": (
        mean_variance(1.0),
        lambda t: SumBox(1.0, groups=GROUPS, group_total={0: (0.1, t), 1: (0.0, 0.3)}),
        np.linspace(0.2, 0.9, 8),
    ),
    "both": (mean_variance, lambda a: SumBox(1.0, 0.0, a / 5), [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", PATHS)
def test_warm_starts_give_the_solutions_of_cold_starts(name):
    objective, constraint, over = PATHS[name]
    results = list(path(objective, constraint, over=over, tol=1e-10))
    assert len(results) == len(over)
    for parameter, warm in zip(over, results, strict=True):
        function = objective(parameter) if callable(objective) else objective
        box = constraint(parameter) if callable(constraint) else constraint
        cold = minimize(function, box, tol=1e-10)
        assert warm.status == cold.status == "optimal"
        assert warm.fun == pytest.approx(cold.fun, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(warm.x, cold.x, atol=1e-6)
        lower, upper = box.layout(N).bounds
        assert (warm.x >= lower).all()
        assert (warm.x <= upper).all()
        if name.startswith("total"):
            assert sum_error_in_ulps(warm.x, parameter) <= 1


def test_minimum_risk_in_closed_form():
    """Without bounds the frontier is Q^-1 (c + multiplier), a line in 1 / aversion."""
    inverse = np.linalg.inv(RISK)
    free = SumBox(1.0, -np.inf, np.inf)
    over = np.geomspace(0.5, 50, 6)
    for aversion, result in zip(over, path(mean_variance, free, over=over, tol=1e-10), strict=True):
        base, tilt = inverse.sum(axis=1), inverse @ PROFIT / aversion
        expected = tilt + base * (1 - tilt.sum()) / base.sum()
        np.testing.assert_allclose(result.x, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["risk aversion", "total up", "total down", "upper down"])
def test_warm_starts_take_fewer_iterations(name):
    objective, constraint, over = PATHS[name]
    over = np.linspace(over[0], over[-1], 30) if name != "risk aversion" else over
    warm = list(path(objective, constraint, over=over))
    cold = [
        minimize(
            objective(v) if callable(objective) else objective,
            constraint(v) if callable(constraint) else constraint,
            max_iter=100_000,  # excludes the small-problem solver, as in a path
        )
        for v in over
    ]
    assert sum(r.n_iter for r in warm) < 0.7 * sum(r.n_iter for r in cold)


def test_repeated_parameter_takes_no_iteration():
    first, second = path(mean_variance(1.0), Simplex, over=[1.0, 1.0])
    assert second.n_iter == 0
    np.testing.assert_array_equal(first.x, second.x)


def test_points_are_solved_lazily():
    seen = []

    def watched(aversion):
        seen.append(aversion)
        return mean_variance(aversion)

    endless = path(watched, Simplex(), over=itertools.count(1))
    assert seen == []
    assert len(list(itertools.islice(endless, 3))) == 3
    assert seen == [1, 2, 3]
    assert list(path(watched, Simplex(), over=[])) == []


def test_options_reach_every_solve():
    results = list(
        path(mean_variance, Simplex(), over=[1.0, 9.0], max_iter=0, x0=np.full(N, 1 / N))
    )
    for result in results:
        assert result.status == "max_iter"
        np.testing.assert_allclose(result.x, 1 / N)
    with pytest.raises(TypeError, match="unknown"):
        next(path(mean_variance, Simplex(), over=[1.0], unknown=1))


def test_infeasible_parameter():
    results = path(mean_variance(1.0), lambda u: SumBox(1.0, 0.0, u), over=[1.0, 0.001])
    next(results)
    with pytest.raises(ValueError, match=r"allow sums from 0 to 0\.06"):
        next(results)
