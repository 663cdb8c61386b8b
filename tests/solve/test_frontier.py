"""The efficient frontier: every portfolio has the lowest risk for its return.

A linear program checks it: no feasible portfolio of the same return is below x along the gradient.
"""

import math

import numpy as np
import pytest
import scipy.optimize
from oracles import EPS, sum_error_in_ulps

from pairstep import Quadratic, Simplex, SumBox, efficient_frontier, minimize, path

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


def test_the_tradeoff_equals_that_of_the_path():
    frontier = efficient_frontier(Q, MEAN, n_points=12)
    along = path(
        lambda t: Quadratic(Q, -t * MEAN), Simplex(), over=frontier.tradeoff[:-1], tol=1e-10
    )
    for x, result in zip(frontier.x, along, strict=False):
        assert x == pytest.approx(result.x, abs=1e-6)


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


def test_without_lower_bounds_targets_are_needed():
    box = SumBox(1.0, -math.inf)
    with pytest.raises(ValueError, match="give target_return, target_risk, or finite lower bounds"):
        efficient_frontier(Q, MEAN, box)
    frontier = efficient_frontier(Q, MEAN, box, target_return=[1.0, 100.0])
    assert frontier.expected_return == pytest.approx([1.0, 100.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_return": 9.0}, "target_return = 9 is above .*, the largest"),
        ({"target_return": -9.0}, "target_return = -9 is below .* least risk"),
        ({"target_risk": 1e-3}, "target_risk = 0.001 is below"),
        ({"target_risk": 1e3}, "target_risk = 1000 is above"),
        ({"target_risk": 1.0, "target_return": 0.1}, "not both"),
        ({"target_return": math.nan}, "target_return must be finite"),
        ({"target_return": [0.1, math.inf]}, r"target_return\[1\]"),
        ({"n_points": 0}, "n_points must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        efficient_frontier(Q, MEAN, **options)


def test_bad_input():
    with pytest.raises(ValueError, match="mean must have length 15, got 2"):
        efficient_frontier(Q, [0.1, 0.2])
    with pytest.raises(ValueError, match=r"pair \(F, D\)"):
        efficient_frontier((FACTORS,), MEAN)
    with pytest.raises(ValueError, match="square"):
        efficient_frontier(FACTORS, MEAN)


def test_the_frontier_starts_at_minimum_risk():
    frontier = efficient_frontier(Q, MEAN, n_points=1)
    assert frontier.x[0] == pytest.approx(minimize(Quadratic(Q), Simplex()).x, abs=1e-8)


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


def test_a_sample_covariance_takes_few_iterations(monkeypatch):
    """The first trade-off has the units of the risk, also if the minimum risk is 0."""
    made = []

    def counted(*arguments, **options):
        result = minimize(*arguments, **options)
        made.append(result.n_iter)
        return result

    monkeypatch.setattr("pairstep.solve.frontier.minimize", counted)
    rng = np.random.default_rng(30)
    returns = 0.01 * rng.standard_normal((10, 30))
    efficient_frontier(np.cov(returns.T), returns.mean(axis=0), n_points=6)
    assert len(made) < 60
    assert sum(made[1:]) < 20_000


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


def test_an_indefinite_covariance_is_refused():
    words = "covariance is not positive semidefinite"
    with pytest.raises(ValueError, match=words):
        efficient_frontier(np.diag([1.0, -1.0, 1.0]), [0.1, 0.2, 0.3], n_points=4)
    rng = np.random.default_rng(0)
    correlation = np.corrcoef(rng.standard_normal((30, 40)).T)
    correlation = np.sign(correlation) * np.sqrt(np.abs(correlation))  # pair by pair
    with pytest.raises(ValueError, match=words):
        efficient_frontier(correlation, rng.standard_normal(40))
    # Negative squared distances are convex for a fixed sum, but their variances are negative.
    places = np.array([0.0, 1.0, 3.0])
    with pytest.raises(ValueError, match=words):
        efficient_frontier(-((places[:, None] - places) ** 2), [0.1, 0.2, 0.3])


def test_a_frontier_is_plotted_as_return_over_risk():
    pytest.importorskip("matplotlib").use("agg")
    frontier = efficient_frontier(np.diag([0.04, 0.09]), [0.03, 0.05], n_points=4)
    axes = frontier.plot()
    (line,) = axes.get_lines()
    np.testing.assert_allclose(line.get_ydata(), frontier.expected_return)
    assert "risk" in axes.get_xlabel()


def test_keywords_and_a_constraint_object_give_the_same_frontier():
    Q, mean = np.diag([0.04, 0.09, 0.01]), [0.03, 0.05, 0.01]
    box = SumBox(upper=0.5, groups=["a", "b", "b"], group_upper={"b": 0.7})
    expected = efficient_frontier(Q, mean, box, n_points=3)
    found = efficient_frontier(
        Q, mean, upper=0.5, groups=["a", "b", "b"], group_upper={"b": 0.7}, n_points=3
    )
    np.testing.assert_array_equal(found.x, expected.x)


def test_a_time_limit_ends_a_frontier():
    with pytest.raises(TimeoutError, match="time_limit = 0 seconds"):
        efficient_frontier(np.eye(3), [0.1, 0.2, 0.3], time_limit=0.0)


def test_with_a_range_of_totals_equal_means_leave_a_choice():
    """Both assets hedge each other, so half of each is riskless, and more of both earns more."""
    hedged = 0.04 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    frontier = efficient_frontier(hedged, [0.05, 0.05], total=(0.2, 1.0), n_points=2)
    assert frontier.expected_return == pytest.approx([0.05, 0.05], rel=1e-6)
    assert frontier.x.sum(axis=1) == pytest.approx([1.0, 1.0], rel=1e-6)
