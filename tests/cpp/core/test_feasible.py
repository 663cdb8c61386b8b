"""Every point is feasible: bounds hold exactly, sums within an ulp, and values never increase."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import EPS, sum_error_in_ulps

from pairstep import LeastSquares, Quadratic, Simplex, Smooth, SumBox, coordinate_descent, minimize
from pairstep.paper.rules import RULES

SPECIAL = [0.0, -0.0, 0.1, -0.3, 1 / 3, 1.0, 1e-17, -1e-9, 1e6, 1e16, 5e-324]
numbers = st.one_of(
    st.sampled_from(SPECIAL),
    st.floats(-2, 2),
    st.floats(-1e8, 1e8),
    st.floats(-1e-6, 1e-6),
)


@st.composite
def intervals(draw):
    """Bounds of one variable and a point between them."""
    low, high = sorted([draw(numbers), draw(numbers)])
    kind = draw(st.sampled_from(["both", "both", "both", "fixed", "below", "above", "free"]))
    if kind == "fixed":
        return low, low, low
    fraction = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)))
    point = min(max(low + fraction * (high - low), low), high)
    bounds = {"both": (low, high), "below": (low, math.inf), "above": (-math.inf, high)}
    return *bounds.get(kind, (-math.inf, math.inf)), point


@st.composite
def boxes(draw, max_groups=1):
    """lower, upper, groups, and the totals of a point within the bounds, up to rounding."""
    variables = draw(st.lists(intervals(), min_size=1, max_size=8))
    lower, upper, point = np.array(variables).T
    n = len(point)
    groups = np.array(draw(st.lists(st.integers(1, max_groups), min_size=n, max_size=n)))
    totals = np.array([math.fsum(point[groups == k]) for k in np.unique(groups)])
    return lower, upper, groups, totals


@st.composite
def quadratics(draw, n):
    """Convex, of any rank; sometimes badly scaled."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(0, n))
    A = rng.normal(size=(rank + 1, n)) * 10.0 ** rng.uniform(-draw(st.sampled_from([0, 4])), 0, n)
    return A, rng.normal(size=rank + 1) * draw(st.sampled_from([1.0, 1e3]))


rules = st.sampled_from(sorted(RULES))
steps = st.sampled_from(["exact", "1/L2", "lipschitz", "backtracking", 0.1])
iterations = st.sampled_from([0, 1, 2, 3, 5, 10, 50, 400])


def assert_feasible(x, lower, upper, groups, totals):
    assert x.dtype == np.float64
    assert (x >= lower).all(), (x, lower)
    assert (x <= upper).all(), (x, upper)
    for k, total in zip(np.unique(groups), totals, strict=True):
        error = sum_error_in_ulps(x[groups == k], total)
        assert error <= 1, f"{error} ulps off {total!r}: {x[groups == k].tolist()}"


# ------------------------------------------------------------------ start points and projections


@given(boxes(max_groups=3))
def test_the_start_is_feasible(box):
    lower, upper, groups, totals = box
    constraint = SumBox(totals, lower, upper, groups=groups)
    assert_feasible(constraint.start(), *box)


def shifted_to(total, y, lower, upper):
    """The projection: clip(y + shift), with the shift that gives the total, by bisection."""
    low, high = -1e18, 1e18
    for _ in range(200):
        shift = 0.5 * (low + high)
        if math.fsum(np.clip(y + shift, lower, upper)) < total:
            low = shift
        else:
            high = shift
    return np.clip(y + low, lower, upper), np.clip(y + high, lower, upper)


@given(boxes(), st.data())
def test_a_projection_is_the_nearest_feasible_point(box, data):
    lower, upper, _, totals = box
    n = len(lower)
    y = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)))
    x = SumBox(totals[0], lower, upper).project(y)
    assert_feasible(x, *box)
    before, after = shifted_to(totals[0], y, lower, upper)
    slack = 16 * EPS * n * (np.abs(before).max() + np.abs(y).max() + abs(totals[0]))
    assert (x >= before - slack).all()
    assert (x <= after + slack).all()


def test_a_projection_from_a_corner():
    """All variables start at a bound, so none is free to absorb the remainder."""
    x = SumBox(-0.5, lower=[0.0, -1.0, 0.0], upper=[0.1, 0.0, 0.0]).project([0.1, 0.1, 0.0])
    assert x == pytest.approx([0.0, -0.5, 0.0], abs=1e-15)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_coordinate_near_its_bound_absorbs_what_it_can(sign):
    """It is closer to its bound than the sum to the total, and goes to this bound."""
    far = sign * math.inf
    lower, upper = np.sort([[1.0, 1.0], [sign * 5e-18, far]], axis=1).T
    x = SumBox(1.0, lower, upper).project([1.0, sign * 8e-18])
    assert x.tolist() == [1.0, sign * 5e-18]


def test_the_start_spreads_the_total_evenly():
    assert Simplex().start(4).tolist() == [0.25] * 4
    assert SumBox(1.0, upper=[0.1, 1.0, 1.0]).start() == pytest.approx([0.1, 0.45, 0.45])
    assert SumBox(-3.0, lower=-np.inf).start(3).tolist() == [-1.0] * 3
    assert SumBox(2.0, lower=[1.5, 0.0], upper=[9.0, 9.0]).start() == pytest.approx([1.5, 0.5])


@pytest.mark.parametrize("n", [3, 10, 1000, 100_000])
def test_the_start_of_many_is_exact(n):
    x = Simplex().start(n)
    assert sum_error_in_ulps(x, 1.0) <= 1
    assert (x > 0).all()


def test_the_start_of_a_range_lies_in_it():
    for total in ((-1.0, 2.0), (5.0, 7.0), (-math.inf, -3.0), (4.0, math.inf)):
        x = SumBox(total, lower=-10.0, upper=10.0).start(4)
        assert total[0] - 1e-15 <= math.fsum(x) <= total[1] + 1e-15
        assert (np.abs(x) <= 10).all()


# ------------------------------------------------------------------ solves, however they end


@given(boxes(max_groups=2), st.data(), rules, steps, iterations)
def test_every_solve_ends_feasible(box, data, rule, step, max_iter):
    lower, upper, groups, totals = box
    A, b = data.draw(quadratics(len(lower)))
    seen = []
    result = coordinate_descent(
        LeastSquares(A, b),
        SumBox(totals, lower, upper, groups=groups),
        rule=rule,
        step=step,
        max_iter=max_iter,
        seed=0,
        callback=lambda progress: seen.append(progress.x),
    )
    assert result.n_iter <= max_iter
    for x in seen:
        assert (x >= lower).all()
        assert (x <= upper).all()
    if result.status != "unbounded":
        assert_feasible(result.x, *box)


@given(boxes(), st.data(), iterations, st.booleans(), st.booleans())
def test_minimize_ends_feasible_from_any_start(box, data, max_iter, callables, warm):
    lower, upper, _, totals = box
    n = len(lower)
    f = LeastSquares(*data.draw(quadratics(n)))
    constraint = SumBox(totals[0], lower, upper)
    x0 = constraint.project(data.draw(st.lists(numbers, min_size=n, max_size=n))) if warm else None
    objective = Smooth(f.value, f.gradient) if callables else f
    result = minimize(objective, constraint, x0=x0, max_iter=max_iter)
    assert_feasible(result.x, *box)


@given(boxes(), st.data(), iterations, rules)
def test_weighted_sums_hold_to_rounding(box, data, max_iter, rule):
    lower, upper, _, _ = box
    n = len(lower)
    sizes = st.floats(0.1, 10).map(lambda w: round(w, 3))
    coefficients = np.array(data.draw(st.lists(sizes, min_size=n, max_size=n)))
    coefficients *= data.draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    inside = np.clip(0.1, lower, upper)
    total = math.fsum(coefficients * inside)
    A, b = data.draw(quadratics(n))
    constraint = SumBox(total, lower, upper, coefficients=coefficients)
    result = coordinate_descent(
        LeastSquares(A, b), constraint, rule=rule, max_iter=max_iter, seed=0
    )
    x = result.x
    assert (x >= lower).all()
    assert (x <= upper).all()
    size = abs(total) + np.abs(coefficients * x).sum() + np.abs(coefficients * inside).sum()
    assert abs(math.fsum(coefficients * x) - total) <= 4 * EPS * size


@given(boxes(), st.data(), iterations, rules)
def test_a_sum_in_a_range_stays_there(box, data, max_iter, rule):
    lower, upper, _, totals = box
    below, above = (data.draw(st.sampled_from([0.0, 0.25, 10.0, math.inf])) for _ in range(2))
    low, high = totals[0] - below, totals[0] + above
    A, b = data.draw(quadratics(len(lower)))
    result = coordinate_descent(
        LeastSquares(A, b), SumBox((low, high), lower, upper), rule=rule, max_iter=max_iter, seed=0
    )
    x = result.x
    assert (x >= lower).all()
    assert (x <= upper).all()
    ends = [abs(end) for end in (low, high) if math.isfinite(end)]
    ulp = math.ulp(max([*ends, np.abs(x).max()]))
    assert low - ulp <= math.fsum(x) <= high + ulp


@pytest.mark.parametrize("rule", RULES)
def test_the_smallest_distance_to_a_bound(rule):
    """A variable can change by one subnormal number: nothing overflows, and the solve ends."""
    f = LeastSquares(np.eye(3), [0.0, -1.0, 3.0])
    box = np.zeros(3), np.array([1.0, 0.1, 5e-324]), np.zeros(3), np.array([0.05])
    for objective in (f, Smooth(f.value, f.gradient, lipschitz=f.lipschitz)):
        constraint = SumBox(0.05, box[0], box[1])
        result = coordinate_descent(objective, constraint, rule=rule, seed=0, x0=[0.0, 0.05, 0.0])
        assert result.status == "optimal"
        assert_feasible(result.x, *box)


# ------------------------------------------------------------------ the objective never increases


def squares(A, b, x):
    return 0.5 * math.fsum((A @ x - b) ** 2)


@pytest.mark.parametrize("solver", ["native", "readable"])
@given(boxes(), st.data(), rules)
def test_exact_steps_never_increase_the_objective(solver, box, data, rule):
    lower, upper, _, totals = box
    A, b = data.draw(quadratics(len(lower)))
    f = LeastSquares(A, b)
    if solver == "readable":
        # No stored Hessian, but the curvature along a step is known: exact reference steps.
        f.__dict__["hessian"] = None
    constraint = SumBox(totals[0], lower, upper)
    points = [constraint.start()]
    result = coordinate_descent(
        f, constraint, rule=rule, step="exact", max_iter=60, seed=0, history=True,
        callback=lambda progress: points.append(progress.x),
    )  # fmt: skip
    values = np.array([squares(A, b, x) for x in points] + [squares(A, b, result.x)])
    # The effect of rounding errors of x and of Ax - b on the value.
    size = max((np.abs(A) @ np.abs(x) + np.abs(b)).max() for x in points)
    noise = 64 * EPS * len(b) * len(lower) * size**2
    assert (np.diff(values) <= noise).all()
    assert (np.diff(result.history.value) <= noise).all()


@given(boxes(), st.data(), rules)
def test_more_iterations_are_never_worse(box, data, rule):
    lower, upper, _, totals = box
    A, b = data.draw(quadratics(len(lower)))
    Q, c = A.T @ A, -A.T @ b
    solves = [
        coordinate_descent(
            Quadratic(Q, c), SumBox(totals[0], lower, upper), rule=rule, max_iter=count, seed=0
        )
        for count in (0, 1, 2, 5, 20)
    ]
    values = [squares(A, b, result.x) for result in solves]
    size = max((np.abs(A) @ np.abs(result.x) + np.abs(b)).max() for result in solves)
    noise = 64 * EPS * len(b) * len(lower) * size**2
    assert (np.diff(values) <= noise).all()


@given(boxes(), st.data())
def test_backtracking_never_increases_the_objective(box, data):
    lower, upper, _, totals = box
    n = len(lower)
    A, b = data.draw(quadratics(n))
    f = LeastSquares(A, b)
    result = minimize(
        Smooth(f.value, f.gradient), SumBox(totals[0], lower, upper), max_iter=40, history=True
    )
    size = (np.abs(A) @ np.abs(result.x) + np.abs(b)).max()
    noise = 1e-13 * (size**2 + np.abs(result.history.value).max()) * n
    assert (np.diff(result.history.value) <= noise).all()


# ------------------------------------------------------------------ long solves


@pytest.mark.parametrize("rule", ["gs-s", "gs-1", "libsvm", "random", "gs-q-lipschitz"])
def test_the_sum_stays_exact_over_many_iterations(rule):
    rng = np.random.default_rng(1)
    n = 50
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    Q = (basis * np.logspace(0, 6, n)) @ basis.T
    upper = rng.uniform(0.01, 0.3, n)
    box = np.full(n, -0.1), upper, np.zeros(n), np.array([0.7])
    result = coordinate_descent(
        Quadratic(Q, 10 * rng.normal(size=n)), SumBox(0.7, -0.1, upper), rule=rule, tol=0, seed=0,
        max_iter=50_000,
    )  # fmt: skip
    assert_feasible(result.x, *box)
