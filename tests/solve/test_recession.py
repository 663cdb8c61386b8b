"""The status `unbounded` is reported exactly for unbounded problems."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

import pairstep
from pairstep import (
    DOptimal,
    KLDivergence,
    L1Penalized,
    LeastSquares,
    LogGrowth,
    Logistic,
    MixtureLikelihood,
    RiskParity,
    Smooth,
    SumBox,
    coordinate_descent,
    minimize,
    simplex_lstsq,
    solve_qp,
)

# ------------------------------------------------------------------ bounded problems


def test_columns_that_occur_more_than_once():
    """Copies create directions without curvature, but no descent along them."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(60, 50 if seed % 2 else 10))
        copies = np.hstack([A, A, A]) if seed % 2 else np.hstack([A, A[:, :5]])
        b = rng.normal(size=(60, 2))
        covariance, mean = np.cov(copies.T), -0.1 * copies.mean(axis=0)
        once = simplex_lstsq(A, b, lower=-np.inf)
        assert solve_qp(covariance, mean, lower=-np.inf).status == "optimal"
        alone = simplex_lstsq(copies, b[:, 0], lower=-np.inf)
        batch = simplex_lstsq(copies, b, lower=-np.inf)
        assert alone.status == "optimal"
        assert (batch.status == "optimal").all()
        assert alone.fun == pytest.approx(once.fun[0], rel=1e-8)
        np.testing.assert_allclose(batch.fun, once.fun, rtol=1e-8)


def test_copies_in_blocks():
    rng = np.random.default_rng(0)
    F, b = rng.normal(size=(20, 150)), rng.normal(size=20)
    result = pairstep.minimize(LeastSquares(np.tile(F, 8), b), SumBox(1.0, -np.inf))
    assert result.status == "optimal"
    assert result.fun == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("huge", [1e100, 1e160, 1e300, np.finfo(float).max])
def test_huge_bounds_count_as_infinite(huge):
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(30, 12)), rng.normal(size=(30, 4))
    Q, c = A.T @ A, rng.normal(size=12)
    for bounds, none in (
        ({"lower": -huge, "upper": huge}, {"lower": -np.inf}),
        ({"lower": 0.0, "upper": huge}, {}),
        ({"lower": -huge, "upper": 0.2}, {"lower": -np.inf, "upper": 0.2}),
    ):
        for solve in (
            lambda options: solve_qp(Q, c, **options),
            lambda options: solve_qp(Q, c, **options, total=[1.0, 1.0], groups=[1, 0] * 6),
            lambda options: solve_qp(Q, c, **options, coefficients=[1.0, 2.0] * 6),
            lambda options: simplex_lstsq(A, b[:, 0], **options),
            lambda options: simplex_lstsq(A, b, **options),
        ):
            given, without = solve(bounds), solve(none)
            np.testing.assert_array_equal(given.x, without.x)
            np.testing.assert_array_equal(given.status, without.status)
            assert np.all(given.status == "optimal")


# ------------------------------------------------------------------ unbounded problems


@pytest.mark.parametrize(
    ("n", "lower"),
    [(20, -np.inf), (20, -1e160), (20, -np.finfo(float).max), (400, -np.inf)],
    ids=["small", "a huge bound", "the largest bound", "in blocks"],
)
def test_a_linear_term_beyond_the_range_of_the_matrix(n, lower):
    for seed in range(20 if n == 20 else 3):
        rng = np.random.default_rng(seed)
        F, c = rng.normal(size=(5, n)), rng.normal(size=n)
        for unit in (1.0, 1e-12, 1e-6, 1e6, 1e12):
            for form in ((unit**0.5 * F, 0.0), unit * F.T @ F):
                result = solve_qp(form, unit * c, lower=lower)
                assert result.status == "unbounded", seed
                assert result.n_iter < 100_000
                assert np.isfinite(result.x).all()
            if np.isinf(lower):
                moved = solve_qp(F.T @ F, unit * c, total=unit, lower=lower)
                assert moved.status == "unbounded"


@pytest.mark.parametrize("n", [8, 64, 250])
@pytest.mark.parametrize("diagonal", [1e-17, 1e-19, 1e-25])
def test_a_diagonal_below_rounding_still_bounds_the_problem(n, diagonal):
    """A factor model with a positive diagonal has a minimum, even if rounding hides it."""
    rng = np.random.default_rng(n)
    F = rng.normal(size=(3, n))
    result = pairstep.solve_qp((F, diagonal), rng.normal(size=n), lower=-np.inf)
    assert result.status != "unbounded"
    if result.status == "stalled":
        assert "rounding" in result.message
    least_squares = pairstep.simplex_lstsq(F, rng.normal(size=3), lower=-np.inf)
    assert least_squares.status != "unbounded"


# ------------------------------------------------------------------ not quadratic

ARBITRAGE = [[0.10, 0.20], [0.10, 0.30]]  # the second asset beats the first in every period
LONG_AND_SHORT = SumBox(1.0, -np.inf)
ANY_SUM = SumBox((0.0, np.inf))


@pytest.mark.parametrize("tol", [1e-2, 1e-8, 1e-12])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_fewer_periods_than_assets_are_always_an_arbitrage(scale, tol):
    for seed in range(10):
        R = 0.02 * np.random.default_rng(seed).normal(size=(20, 40)) if seed else ARBITRAGE
        R = np.array(R) / scale
        result = minimize(LogGrowth(R), SumBox(scale, -np.inf), tol=tol)
        assert result.status == "unbounded", (seed, result.message)
        assert result.direction.sum() == pytest.approx(0, abs=1e-12)
        assert (R @ result.direction > 0).all()


@pytest.mark.parametrize(
    ("objective", "box", "start"),
    [
        (MixtureLikelihood([[1, 0.5], [0.2, 1]]), ANY_SUM, [0.5, 0.5]),
        (DOptimal(np.eye(3)), ANY_SUM, [1.0, 1.0, 1.0]),
        (DOptimal([[1.0, 2.0], [3.0, 1.0], [0.5, 1.0]]), LONG_AND_SHORT, None),
        (RiskParity([[1.0, -1.0], [-1.0, 1.0]]), ANY_SUM, [1.0, 2.0]),
        (RiskParity(np.zeros((2, 2))), ANY_SUM, [1.0, 2.0]),
        (LogGrowth(ARBITRAGE), SumBox(1.0, -np.inf, coefficients=[1.0, 3.0]), None),
        (
            LogGrowth([[0.1, 0.2, 0.1], [0.1, 0.3, 0.0]]),
            SumBox(
                1.0, -np.inf, groups=[0, 0, 1], group_total={0: (0.0, 0.5), 1: (0.0, 1.0)}
            ),
            None,
        ),
    ],
)  # fmt: skip
def test_ready_made_functions_without_a_minimum(objective, box, start):
    result = minimize(objective, box, x0=start)
    assert result.status == "unbounded", result.message
    values = [objective.value(result.x + t * result.direction) for t in (1e3, 1e6, 1e9, 1e12)]
    assert (np.diff([result.fun, *values]) < -0.1).all()


def test_a_direction_along_which_some_rows_stay_is_found_exactly():
    """Rows r and -r: r'd must be 0, which rounding of d would miss."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        R = rng.integers(-3, 4, (int(rng.integers(2, n)), n)).astype(float)
        R = np.vstack([R, -R[0]])
        start = np.zeros(n)
        rows = np.vstack([R, np.ones(n)])
        least = scipy.optimize.linprog(
            -R.sum(axis=0), A_ub=-R, b_ub=np.zeros(len(R)), A_eq=rows[-1:], b_eq=[0], bounds=(-1, 1)
        )
        result = minimize(LogGrowth(R), SumBox(0.0, -np.inf), x0=start)
        unbounded = least.fun < -1e-6
        assert result.status == ("unbounded" if unbounded else "optimal"), (seed, result.message)
        if unbounded:
            d = [Fraction(v) for v in result.direction.tolist()]
            exact = [sum(int(r) * v for r, v in zip(row, d, strict=True)) for row in R]
            assert sum(d) == 0
            assert min(exact) == 0
            assert max(exact) > 0
            found += 1
    assert 20 < found < 60


def log(x):
    return -math.log1p(x[0]) if x[0] > -1 else math.inf


FALLING = {
    "linear": (lambda x: -float(x[0]), lambda x: -1.0, lambda x: 0.0),
    "logarithm": (log, lambda x: -1 / (1 + x[0]), lambda x: (1 + x[0]) ** -2.0),
}


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("name", FALLING)
def test_unbounded_callables(name, second):
    value, slope, bend = FALLING[name]
    f = Smooth(
        value, lambda x: np.array([slope(x), 0.0]),
        (lambda x: np.diag([bend(x), 0.0])) if second else None,
    )  # fmt: skip
    result = minimize(f, SumBox(0.0, np.full(2, -np.inf)))
    assert result.status == "unbounded"
    assert np.array_equal(result.direction / result.direction[0], [1.0, -1.0])


def test_a_limit_that_is_not_reached_is_not_minus_infinity():
    box = SumBox(0.0, np.full(2, -np.inf))
    fading = Smooth(lambda x: math.exp(-x[0]), lambda x: np.array([-math.exp(-x[0]), 0.0]))
    result = minimize(fading, box)
    assert result.status == "optimal"
    assert result.fun < 1e-10

    def root(x):
        return (1 + x[0]) ** -0.1 if x[0] > -1 else math.inf

    slow = Smooth(root, lambda x: np.array([-0.1 * (1 + x[0]) ** -1.1, 0.0]))
    result = minimize(slow, box)
    assert result.status == "stalled"
    assert "no direction" in result.message


def test_known_lower_bounds_bound_the_suboptimality():
    scores, labels = [[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-3.0, 1.0]], [1, 1, 0, 0]
    separable = minimize(Logistic(scores, labels), LONG_AND_SHORT)
    assert separable.status == "optimal"
    assert separable.fun <= separable.suboptimality_bound < 1e-10
    counts = minimize(KLDivergence([[1.0, 2.0], [3.0, 1.0]], [4.0, 5.0]), ANY_SUM, x0=[1.0, 1.0])
    assert counts.status == "optimal"
    assert counts.suboptimality_bound < 1e-10


def test_costs_make_growth_bounded():
    """A logarithm grows more slowly than any linear cost; without costs it is unbounded."""
    costly = L1Penalized(LogGrowth(ARBITRAGE), 0.01, 0.5)
    assert minimize(costly, LONG_AND_SHORT).status == "optimal"
    first_only = L1Penalized(LogGrowth([[0.1, 0.2, 0.3], [0.1, 0.3, 0.5]]), [0.01, 0.0, 0.0], 0.5)
    result = minimize(first_only, LONG_AND_SHORT)
    assert result.status == "unbounded"
    assert result.direction[0] == 0


def test_a_minimum_on_an_unbounded_set_is_optimal():
    for seed in range(20):
        R = 0.02 * np.random.default_rng(seed).normal(size=(200, 10))
        result = minimize(LogGrowth(R), LONG_AND_SHORT)
        assert result.status == "optimal", (seed, result.message)
        assert result.direction is None
    parity = minimize(RiskParity([[4.0, 1.0], [1.0, 1.0]]), ANY_SUM, x0=[1.0, 1.0])
    assert parity.status == "optimal"


def test_a_named_rule_finds_the_direction_too():
    result = coordinate_descent(LogGrowth(ARBITRAGE), LONG_AND_SHORT, rule="gs-1")
    assert result.status == "unbounded"
    assert (np.array(ARBITRAGE) @ result.direction > 0).all()
