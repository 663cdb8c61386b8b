"""The efficient frontier: every portfolio has the lowest risk for its return.

A linear program checks it: no feasible portfolio of the same return is below x along the gradient.
"""

import math

import numpy as np
import pytest
import scipy.optimize
from oracles import EPS, sum_error_in_ulps

from pairstep import (
    Quadratic,
    Simplex,
    SumBox,
    efficient_frontier,
    minimize,
    solve_qp,
)

RNG = np.random.default_rng(0)
N = 15
FACTORS = RNG.normal(size=(4, N))
NOISE = RNG.uniform(0.2, 1.0, N)
Q = FACTORS.T @ FACTORS + np.diag(NOISE)
MEAN = 0.1 * FACTORS.sum(axis=0) + 0.3 * RNG.normal(size=N)
LABELS = np.array(["north", "south", "west"])[np.arange(N) % 3]
CONSTRAINTS = {
    "simplex": Simplex(),
    "bounds": SumBox(1.0, -0.1, 0.3),
    "range": SumBox((0.8, 1.0)),
    "sectors": SumBox(1.0, groups=LABELS, group_total={"north": (0.2, 0.3), "west": (0.0, 0.4)}),
}


def least(derivatives, box, rows):
    """Return the minimum of derivatives @ s under the constraint and equalities."""
    low, high = box.total if isinstance(box.total, tuple) else (box.total, box.total)
    limits = [(np.ones(N), low, high)]
    for label, (low, high) in (box.group_total or {}).items():
        limits.append(((label == LABELS).astype(float), low, high))
    limits += [(row, end, end) for row, end in rows]
    lower, upper = box.layout(N).bounds
    found = scipy.optimize.linprog(
        derivatives,
        A_ub=np.array([sign * row for row, _, _ in limits for sign in (1, -1)]),
        b_ub=[end + 1e-10 for _, low, high in limits for end in (high, -low)],
        bounds=list(zip(lower, upper, strict=True)),
    )
    return found.fun


@pytest.mark.parametrize("form", ["matrix", "factors"])
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_least_risk_for_each_return(name, form):
    box = CONSTRAINTS[name]
    covariance = Q if form == "matrix" else (FACTORS, NOISE)
    frontier = efficient_frontier(covariance, MEAN, box)
    assert frontier.x.shape == (20, N)
    assert (np.diff(frontier.expected_return) > 0).all()
    assert (np.diff(frontier.risk) > 0).all()
    assert (np.diff(frontier.tradeoff) >= 0).all()
    assert frontier.expected_return[-1] == pytest.approx(-least(-MEAN, box, []), abs=1e-8)
    for x, earns, risk in zip(frontier.x, frontier.expected_return, frontier.risk, strict=True):
        assert risk == pytest.approx(math.sqrt(x @ Q @ x), rel=1e-12)
        assert earns == pytest.approx(MEAN @ x, rel=1e-12)
        derivative = Q @ x
        assert derivative @ x - least(derivative, box, [(MEAN, earns)]) <= 1e-6
        lower, upper = box.layout(N).bounds
        assert (x >= lower).all()
        assert (x <= upper).all()
        if name != "range":
            assert sum_error_in_ulps(x, 1.0) <= 1


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_targets_are_met(name):
    box = CONSTRAINTS[name]
    ends = efficient_frontier(Q, MEAN, box, n_points=2)
    wanted = np.linspace(*ends.expected_return, 9)[[3, 7, 1, 5, 0, 8]]
    found = efficient_frontier(Q, MEAN, box, target_return=wanted)
    assert found.expected_return == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    same = efficient_frontier(Q, MEAN, box, target_risk=found.risk)
    assert same.risk == pytest.approx(found.risk, rel=1e-9)
    assert same.x == pytest.approx(found.x, abs=1e-6)
    one = efficient_frontier(Q, MEAN, box, target_return=float(wanted[0]))
    assert one.x[0] == pytest.approx(found.x[0], abs=1e-8)


def test_portfolios_between_two_corners_are_interpolated():
    """Two assets: every portfolio is on one straight line."""
    frontier = efficient_frontier(np.diag([1.0, 2.0]), [0.0, 1.0], target_return=[0.5, 0.75])
    assert frontier.x == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]), abs=4 * EPS)
    assert frontier.tradeoff == pytest.approx([0.5, 1.25])


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_units_change_nothing(unit):
    one = efficient_frontier(Q, MEAN, n_points=7)
    other = efficient_frontier(unit * Q, 1e3 * MEAN, n_points=7)
    assert other.x == pytest.approx(one.x, abs=1e-7)


def test_ties_and_flat_valleys():
    """Equal means, and portfolios without risk: returns that jump at one trade-off."""
    flat = efficient_frontier(np.zeros((3, 3)), [0.0, 1.0, 2.0], target_return=[2.0])
    assert flat.x == pytest.approx(np.array([[0.0, 0.0, 1.0]]))
    same = efficient_frontier(np.eye(4), np.ones(4), n_points=3)
    assert same.x == pytest.approx(np.full((3, 4), 0.25))
    hedged, mean = np.outer([1.0, -1.0, 0.5], [1.0, -1.0, 0.5]), np.array([0.1, 0.2, 0.4])
    frontier = efficient_frontier(hedged, mean, n_points=5)
    for x, earns in zip(frontier.x, frontier.expected_return, strict=True):
        derivative = hedged @ x
        found = scipy.optimize.linprog(derivative, A_eq=[np.ones(3), mean], b_eq=[1.0, earns])
        assert derivative @ x - found.fun <= 1e-8


def largest_return_at_the_risk_of(x, factors, mean, lower=0.0, upper=None):
    """By linear programming: a portfolio has the risk of x exactly if it has the same factors."""
    found = scipy.optimize.linprog(
        -mean,
        A_eq=np.vstack([factors, np.ones(len(mean))]),
        b_eq=np.append(factors @ x, 1.0),
        bounds=(lower, upper),
    )
    return -found.fun


@pytest.mark.parametrize(
    ("covariance", "mean", "x"),
    [
        (np.diag([0.0, 0.0, 0.09]), [0.01, 0.05, 0.08], [0.0, 1.0, 0.0]),
        (np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]), [0.1, 0.2, 0.05], [0.0, 0.5, 0.5]),
        (np.zeros((3, 3)), [0.0, 2.0, 1.0], [0.0, 1.0, 0.0]),
    ],
)
def test_the_first_portfolio_has_the_largest_return_at_minimum_risk(covariance, mean, x):
    risk = math.sqrt(np.array(x) @ covariance @ x)
    for options in ({"target_risk": risk}, {"n_points": 1}):
        found = efficient_frontier(covariance, mean, **options)
        assert found.x[0] == pytest.approx(x, abs=1e-10)  # the ridge of a singular matrix
    with pytest.raises(ValueError, match="least risk, where the frontier begins"):
        efficient_frontier(covariance, mean, target_return=float(found.expected_return[0]) - 1e-3)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("form", ["matrix", "factors"])
def test_no_portfolio_of_a_sample_covariance_is_dominated(form, seed):
    """With fewer observations than assets, many portfolios have minimum risk."""
    rng = np.random.default_rng(seed)
    n, observations = 24, int(rng.integers(3, 20))
    factors = rng.integers(-3, 4, (observations, n)).astype(float)
    factors[:, 0] = factors[:, 1]
    mean = 0.1 * rng.standard_normal(n)
    covariance = factors.T @ factors if form == "matrix" else (factors, 0.0)
    lower, upper = (0.0, None) if seed % 2 else (-0.5, 0.5)
    box = SumBox(1.0, lower, math.inf if upper is None else upper)
    frontier = efficient_frontier(covariance, mean, box, n_points=5)
    first = frontier.x[0]
    best = largest_return_at_the_risk_of(first, factors, mean, lower, upper)
    assert mean @ first == pytest.approx(best, abs=1e-7)
    for k, x in enumerate(frontier.x):
        derivative = factors.T @ (factors @ x)
        least_return = frontier.expected_return[k] - 1e-10
        found = scipy.optimize.linprog(  # no portfolio with at least this return has less risk
            derivative, A_ub=[-mean], b_ub=[-least_return], A_eq=[np.ones(n)], b_eq=[1.0],
            bounds=(lower, upper),
        )  # fmt: skip
        assert derivative @ x - found.fun <= 1e-6 + 2e-10 * frontier.tradeoff[k]


@pytest.mark.parametrize("tol", [1.0, 0.1, 0.01])
def test_its_own_targets_are_never_refused(tol):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        returns = rng.standard_normal((n + 5, n))
        mean = 0.1 * rng.standard_normal(n)
        frontier = efficient_frontier(returns.T @ returns, mean, tol=tol, n_points=10)
        assert frontier.expected_return[-1] == pytest.approx(mean.max(), rel=1e-9)
        assert (np.diff(frontier.risk) > -1e-6 * frontier.risk[-1]).all()


def test_returns_that_differ_by_less_than_the_tolerance_have_a_largest():
    mean = np.array([0.1, 0.1 + 1e-11, 0.05])
    frontier = efficient_frontier(np.diag([1.0, 2.0, 3.0]), mean, n_points=4)
    assert frontier.expected_return[-1] == pytest.approx(mean[1], abs=1e-12)


def test_a_frontier_is_plotted_as_return_over_risk():
    pytest.importorskip("matplotlib").use("agg")
    frontier = efficient_frontier(np.diag([0.04, 0.09]), [0.03, 0.05], n_points=4)
    axes = frontier.plot()
    (line,) = axes.get_lines()
    np.testing.assert_allclose(line.get_ydata(), frontier.expected_return)
    assert "risk" in axes.get_xlabel()
    corners, assets = (points.get_offsets() for points in axes.collections)
    np.testing.assert_allclose(corners[:, 1], frontier.corners.expected_return)
    np.testing.assert_allclose(assets, [[0.2, 0.03], [0.3, 0.05]])


def test_with_a_range_of_totals_equal_means_leave_a_choice():
    """Both assets hedge each other, so half of each is riskless, and more of both earns more."""
    hedged = 0.04 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    frontier = efficient_frontier(hedged, [0.05, 0.05], total=(0.2, 1.0), n_points=2)
    assert frontier.expected_return == pytest.approx([0.05, 0.05], rel=1e-6)
    assert frontier.x.sum(axis=1) == pytest.approx([1.0, 1.0], rel=1e-6)


@pytest.mark.parametrize("costs", [None, 0.01])
@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("form", ["matrix", "factors"])
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_corners_and_points_between_them_are_solutions(name, form, has_rows, costs):
    rng = np.random.default_rng(3)
    box, covariance = CONSTRAINTS[name], Q if form == "matrix" else (FACTORS, NOISE)
    if has_rows:
        exposures = rng.standard_normal((2, N))
        inside = box.start(N)
        box = SumBox(
            box.total, box.lower, box.upper, groups=box.groups, group_total=box.group_total,
            rows=exposures, rows_lower=exposures @ inside - 0.1,
            rows_upper=exposures @ inside + 0.2,
        )  # fmt: skip
    paid = {} if costs is None else {"l1": costs, "center": 1 / N}
    frontier = efficient_frontier(covariance, MEAN, box, n_points=3, **paid)
    corners = frontier.corners
    assert (np.diff(corners.tradeoff) > 0).all()
    assert corners.kkt_violation.max() <= 1e-10
    middle = 0.5 * (corners.expected_return[1:] + corners.expected_return[:-1])
    between = frontier.at(target_return=middle)
    np.testing.assert_allclose(between.expected_return, middle, rtol=1e-9, atol=1e-12)
    for points in (corners, between):
        for x, tradeoff in zip(points.x, points.tradeoff, strict=True):
            paid = {} if costs is None else {"l1": tradeoff * costs, "center": 1 / N}
            cold = solve_qp(covariance, -tradeoff * MEAN, constraint=box, **paid, tol=1e-9)
            assert cold.success
            np.testing.assert_allclose(x, cold.x, atol=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_sharpe_ratio(seed):
    rng = np.random.default_rng(seed)
    n = 12
    returns = rng.standard_normal((40, n)) / 10
    covariance, mean = np.cov(returns.T), 0.05 + 0.03 * rng.standard_normal(n)
    frontier = efficient_frontier(covariance, mean, upper=0.4, n_points=2)
    for risk_free in (-0.02, 0.0, 0.03):
        best = frontier.max_sharpe(risk_free)
        ratio = (best.expected_return - risk_free) / best.risk
        dense = frontier.at(target_return=np.linspace(*frontier.expected_return, 2000))
        ratios = (dense.expected_return - risk_free) / dense.risk
        assert ratio >= ratios.max() - 1e-12
        assert ratio == pytest.approx(ratios.max(), rel=1e-4)


def test_portfolios_have_labels_and_print():
    pd = pytest.importorskip("pandas")
    names = ["a", "b"]
    frontier = efficient_frontier(
        pd.DataFrame(np.diag([0.04, 0.09]), names, names), pd.Series([0.05, 0.03], names[::-1])
    )
    best = frontier.max_sharpe(0.01)
    assert list(best.weights.index) == names
    assert "assets held" in repr(best)
    assert frontier.min_variance.weights["a"] == pytest.approx(9 / 13)
    assert list(frontier.corners.weights.columns) == names


@pytest.mark.parametrize("copies", [2, 3])
def test_duplicate_assets_and_equal_means_end(copies):
    """The same assets twice, and groups of assets with equal means: corners are not unique."""
    rng = np.random.default_rng(copies)
    n = 10
    returns = rng.standard_normal((30, n))
    once = np.cov(returns.T)
    mean = np.repeat(rng.standard_normal(n // 2), 2) / 10
    covariance = np.tile(once, (copies, copies))
    single = efficient_frontier(once, mean, n_points=9)
    several = efficient_frontier(covariance, np.tile(mean, copies), n_points=9)
    np.testing.assert_allclose(several.expected_return, single.expected_return, atol=1e-9)
    np.testing.assert_allclose(several.risk, single.risk, rtol=1e-7)


def test_a_frontier_without_upper_end_continues_along_a_ray():
    box = SumBox(1.0, -math.inf)
    with pytest.raises(ValueError, match="give target_return, target_risk, or finite lower bounds"):
        efficient_frontier(Q, MEAN, box)
    frontier = efficient_frontier(Q, MEAN, box, target_return=[1.0])
    assert frontier.expected_return == pytest.approx([1.0])
    far = frontier.at(target_return=50.0)
    cold = minimize(Quadratic(Q, -far.tradeoff * MEAN), box, tol=1e-9)
    np.testing.assert_allclose(far.x, cold.x, rtol=1e-6, atol=1e-6 * np.abs(cold.x).max())
    best = frontier.max_sharpe()
    assert best.expected_return / best.risk >= (far.expected_return / far.risk)
