"""The efficient frontier: every portfolio has the least risk of all with its return.

Shown by linear programming: with gradient Qx no feasible portfolio of the same return is below x.
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


def least(prices, box, rows):
    """min prices's under the constraint and rows of equalities, by linear programming."""
    low, high = box.total if isinstance(box.total, tuple) else (box.total, box.total)
    limits = [(np.ones(N), low, high)]
    for label, (floor, ceiling) in (box.group_total or {}).items():
        limits.append(((label == LABELS).astype(float), floor, ceiling))
    limits += [(row, end, end) for row, end in rows]
    lower, upper = box.layout(N).bounds
    found = scipy.optimize.linprog(
        prices,
        A_ub=np.array([sign * row for row, _, _ in limits for sign in (1, -1)]),
        b_ub=[end + 1e-10 for _, floor, ceiling in limits for end in (ceiling, -floor)],
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
        price = Q @ x
        assert price @ x - least(price, box, [(MEAN, earns)]) <= 1e-6
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


def test_the_tradeoff_is_that_of_the_path():
    frontier = efficient_frontier(Q, MEAN, n_points=12)
    along = path(
        lambda t: Quadratic(Q, -t * MEAN), Simplex(), over=frontier.tradeoff[:-1], tol=1e-10
    )
    for x, result in zip(frontier.x, along, strict=False):
        assert x == pytest.approx(result.x, abs=1e-6)


def test_between_two_corners_there_is_nothing_to_solve():
    """Two assets: one straight line, on which every portfolio is had by interpolation."""
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
        price = hedged @ x
        found = scipy.optimize.linprog(price, A_eq=[np.ones(3), mean], b_eq=[1.0, earns])
        assert price @ x - found.fun <= 1e-8


def test_without_lower_bounds_targets_are_needed():
    box = SumBox(1.0, -math.inf)
    with pytest.raises(ValueError, match="give target_return or target_risk"):
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
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        efficient_frontier(Q, MEAN, **options)


def test_bad_input():
    with pytest.raises(ValueError, match="mean must have length 15, got 2"):
        efficient_frontier(Q, [0.1, 0.2])
    with pytest.raises(ValueError, match=r"pair \(F, D\)"):
        efficient_frontier((FACTORS,), MEAN)
    with pytest.raises(ValueError, match="square"):
        efficient_frontier(FACTORS, MEAN)


def test_least_risk_is_where_it_begins():
    frontier = efficient_frontier(Q, MEAN, n_points=1)
    assert frontier.x[0] == pytest.approx(minimize(Quadratic(Q), Simplex()).x, abs=1e-8)
