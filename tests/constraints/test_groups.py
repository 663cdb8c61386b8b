"""Groups with limits on their sums within a total.

Optimality is checked independently: at a minimizer x of a convex function no feasible s has
gradient(x)'s below gradient(x)'x, which a linear program checks. Violations and best pairs come
from trying all pairs, with the amount that two variables can exchange by definition.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from oracles import EPS, sum_error_in_ulps

from pairstep import (
    FactorModel,
    LeastSquares,
    Quadratic,
    Smooth,
    SumBox,
    _core,
    coordinate_descent,
    minimize,
    simplex_lstsq,
    solve_qp,
)
from pairstep.paper.rules import RULES

INF = math.inf


@dataclass(frozen=True)
class Sectors:
    """sum x = total, low_g <= sum of group g <= high_g, lower <= x <= upper."""

    total: float
    groups: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def n(self):
        return len(self.groups)

    @property
    def box(self):
        ranges = {int(k): (self.low[k], self.high[k]) for k in np.unique(self.groups)}
        return SumBox(self.total, self.lower, self.upper, groups=self.groups, group_total=ranges)

    def scaled(self, unit):
        parts = self.low, self.high, self.lower, self.upper
        return Sectors(unit * self.total, self.groups, *(unit * part for part in parts))

    def least(self, derivatives):
        """Return the minimum of derivatives @ s over feasible s, or -inf if it is unbounded."""
        member = (np.arange(len(self.low))[:, None] == self.groups).astype(float)
        rows = np.concatenate([member[np.isfinite(self.high)], -member[np.isfinite(self.low)]])
        ends = np.concatenate([self.high[np.isfinite(self.high)], -self.low[np.isfinite(self.low)]])
        found = scipy.optimize.linprog(
            derivatives, A_ub=rows, b_ub=ends + 1e-9, A_eq=np.ones((1, self.n)), b_eq=[self.total],
            bounds=list(zip(self.lower, self.upper, strict=True)),
        )  # fmt: skip
        return float(found.fun) if found.status == 0 else -INF

    def slacks(self, x):
        """How far the sum of each group can decrease and increase."""
        sums = np.array([math.fsum(x[self.groups == k]) for k in range(len(self.low))])
        size = 16 * EPS * (np.abs(x).max() + np.abs(sums))
        down, up = sums - self.low, self.high - sums
        return np.where(down > size, down, 0.0), np.where(up > size, up, 0.0)

    def pair_slacks(self, x):
        """How much can go from i to j, for all pairs."""
        own = np.minimum.outer(x - self.lower, self.upper - x)
        down, up = self.slacks(x)
        across = np.minimum.outer(down[self.groups], up[self.groups])
        same = self.groups[:, None] == self.groups
        return np.where(same, own, np.minimum(own, across))

    def violation(self, gradient, x):
        gap = gradient[:, None] - gradient
        return max(gap[self.pair_slacks(x) > 0].max(initial=0.0), 0.0)

    def require_kept(self, x):
        """Check that bounds hold exactly, and every sum within an ulp."""
        assert (x >= self.lower).all()
        assert (x <= self.upper).all()
        assert sum_error_in_ulps(x, self.total) <= 1
        for k in range(len(self.low)):
            members = x[self.groups == k]
            sum_ = math.fsum(members)
            nearest = min(max(sum_, self.low[k]), self.high[k])
            assert sum_ == nearest or sum_error_in_ulps(members, nearest) <= 1


def sectors(rng, n=None, count=None, endless=True):
    """Random groups with a feasible point: fixed variables, equal limits, no bounds, no limits."""
    n = int(rng.integers(1, 12)) if n is None else n
    count = int(rng.integers(1, min(n, 5) + 1)) if count is None else count
    groups = np.sort(rng.integers(0, count, n)) if rng.random() < 0.3 else rng.integers(0, count, n)
    unit = 2.0**-20  # sums of multiples of this are exact, so limits do not contradict each other
    lower = rng.integers(-(2**20), 2**18, n) * unit
    width = rng.choice([0.0, 0.25, 1.0, INF if endless else 2.0], n)
    x = lower + np.where(np.isinf(width), 1.0, width) * rng.choice([0.0, 1.0, 0.5, 0.25], n)
    upper = lower + width
    if endless:
        lower = np.where(rng.random(n) < 0.15, -INF, lower)
    sums = np.array([x[groups == k].sum() for k in range(count)])
    low = sums - rng.choice([0.0, 0.125, 0.5, INF], count)
    high = sums + rng.choice([0.0, 0.125, 0.5, INF], count)
    return Sectors(float(x.sum()), groups, low, high, lower, upper)


def quadratic(rng, n, definite=False):
    F = rng.normal(size=(n + 2 if definite else int(rng.integers(1, n + 3)), n))
    ridge = rng.choice([0.0, 0.01, 1.0]) + 0.01 * definite
    return F.T @ F / n + ridge * np.eye(n), rng.normal(size=n) * rng.choice([0.0, 0.1, 1.0, 3.0])


def require_optimal(p, result, Q, c):
    """Check optimality by linear programming, and the status of the result."""
    assert result.status == "optimal", result.message
    p.require_kept(result.x)
    gradient = Q @ result.x + c
    size = np.abs(gradient).max() * np.abs(result.x).max() + 1e-3
    least = p.least(gradient)
    assert least == -INF or gradient @ result.x - least <= 1e-6 * size
    assert result.kkt_violation == pytest.approx(p.violation(gradient, result.x), abs=1e-12 * size)


# ------------------------------------------------------------------ solutions


@pytest.mark.parametrize("seed", range(12))
def test_hundreds_of_small_problems(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        p = sectors(rng)
        Q, c = quadratic(rng, p.n)
        result = minimize(Quadratic(Q, c), p.box)
        if result.status == "unbounded":
            assert np.isinf(p.lower).any() or np.isinf(p.upper).any()
            continue
        require_optimal(p, result, Q, c)


@pytest.mark.parametrize("readable", [False, True])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule(rule, readable):
    rng = np.random.default_rng(3)
    for _ in range(12):
        p = sectors(rng, endless=False)
        Q, c = quadratic(rng, p.n, definite=True)
        f = Quadratic(Q, c)
        if readable:
            f = Smooth(f.value, f.gradient, lipschitz=f.lipschitz)
        result = coordinate_descent(f, p.box, rule=rule, seed=0, tol=1e-7)
        require_optimal(p, result, Q, c)


@pytest.mark.parametrize("n", [31, 32, 33, 128, 255, 256, 257, 513])
@pytest.mark.parametrize("count", [1, 7, None])
def test_sizes_around_the_limits_in_the_code(n, count):
    rng = np.random.default_rng(n)
    p = sectors(rng, n, n if count is None else count, endless=False)
    Q, c = quadratic(rng, n, definite=True)
    result = minimize(Quadratic(Q, c), p.box)
    require_optimal(p, result, Q, c)


def test_many_free_variables_use_the_newton_phase():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(1000, 400)) * rng.uniform(0.5, 2, 400)
    labels = rng.integers(0, 11, 400)
    limits = dict.fromkeys(range(11), (0.05, 0.12))
    result = solve_qp(
        F.T @ F / 1000, -0.05 * rng.normal(size=400), lower=-1.0, upper=0.05, groups=labels,
        group_total=limits, tol=1e-10,
    )  # fmt: skip
    assert result.status == "optimal"
    assert sum(value != 0 for value in result.group_multipliers.values()) > 5
    assert result.n_iter < 2000  # pair steps alone take ten times as many


@pytest.mark.parametrize("form", ["factors", "sparse", "least squares"])
def test_the_block_solver(form):
    rng = np.random.default_rng(11)
    n = 1100 if form == "least squares" else 2100 if form == "sparse" else 300
    p = sectors(rng, n, 6, endless=False)
    F, c = rng.normal(size=(20, n)), 0.1 * rng.normal(size=n)
    if form == "factors":
        f, Q = FactorModel(F, 0.5, c), F.T @ F + 0.5 * np.eye(n)
    elif form == "sparse":
        half = scipy.sparse.random_array((n, n), density=0.001, random_state=rng)
        Q = scipy.sparse.csr_array(half @ half.T + scipy.sparse.eye_array(n))
        f = Quadratic(Q, c)
    else:
        b = rng.normal(size=20)
        f, Q, c = LeastSquares(F, b, 0.5), F.T @ F + 0.5 * np.eye(n), -F.T @ b
    assert f.prefers_blocks
    result = minimize(f, p.box)
    require_optimal(p, result, Q, c)


def test_a_batch_equals_its_columns_solved_alone():
    rng = np.random.default_rng(8)
    A, B = rng.normal(size=(12, 9)), rng.normal(size=(12, 70))
    labels = list("aabbbccdd")
    limits = {"a": (0.2, 0.3), "b": (0.0, 0.4), "c": 0.25}
    batch = simplex_lstsq(A, B, groups=labels, group_total=limits)
    assert set(batch.status) == {"optimal"}
    for k in range(B.shape[1]):
        one = simplex_lstsq(A, B[:, k], groups=labels, group_total=limits)
        assert batch.fun[k] == pytest.approx(one.fun, rel=1e-8)
        for label, (low, high) in {**limits, "c": (0.25, 0.25)}.items():
            members = batch.x[k, [label == other for other in labels]]
            assert low - 2 * EPS <= math.fsum(members) <= high + 2 * EPS
        assert sum_error_in_ulps(batch.x[k], 1.0) <= 1


def within_range(p, slack, coefficients=None):
    """The constraint with a range of the total, and p with what is left as an extra variable.

    With coefficients, the constraint is on x and p on the products of coefficients and x.
    """
    ends = p.lower, p.upper
    if coefficients is not None:
        ends = np.sort([p.lower / coefficients, p.upper / coefficients], axis=0)
    limits = {int(k): (p.low[k], p.high[k]) for k in np.unique(p.groups)}
    total = (p.total - slack, p.total) if slack else p.total
    box = SumBox(total, *ends, coefficients, p.groups, limits)
    wide = Sectors(
        p.total, np.append(p.groups, len(p.low)), np.append(p.low, 0.0), np.append(p.high, slack),
        np.append(p.lower, 0.0), np.append(p.upper, slack),
    )  # fmt: skip
    return box, wide


def require_best(wide, gradient, x):
    """Check that x is feasible, and that no feasible point is below it along the gradient."""
    gradient, x = np.append(gradient, 0.0), np.append(x, wide.total - x.sum())
    sums = np.bincount(wide.groups, x, len(wide.low))
    for low, value, high in ((wide.lower, x, wide.upper), (wide.low, sums, wide.high)):
        assert (value >= low - 1e-12).all()
        assert (value <= high + 1e-12).all()
    assert gradient @ x - wide.least(gradient) <= 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_projection_by_linear_programming(seed, weighted):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        p = sectors(rng)
        y = 2 * rng.normal(size=p.n)
        coefficients = rng.choice([-2.0, 0.5, 1.0, 3.0], p.n) if weighted else np.ones(p.n)
        slack = float(rng.choice([0.0, 0.125, 0.5]))
        box, wide = within_range(p, slack, coefficients if weighted else None)
        x = coefficients * box.project(y / coefficients)
        if slack == 0 and not weighted:
            p.require_kept(x)
            p.require_kept(p.box.start())
        require_best(wide, x - y, x)


@given(seed=st.integers(0, 2**32 - 1), exponent=st.integers(-300, 90))
def test_sums_are_exact_at_every_scale(seed, exponent):
    rng = np.random.default_rng(seed)
    p = sectors(rng).scaled(2.0**exponent)
    p.require_kept(p.box.start())
    p.require_kept(p.box.project(2.0**exponent * rng.normal(size=p.n)))


def test_limits_that_are_thirds_and_tenths():
    """Decimal limits that add up to the total only up to rounding."""
    labels = np.repeat(np.arange(10), 3)
    Q = np.diag(np.linspace(1.0, 2.0, 30))
    for limits in (dict.fromkeys(range(10), (0.0, 0.1)), dict.fromkeys(range(10), 0.1)):
        result = solve_qp(Q, groups=labels, group_total=limits)
        assert result.status == "optimal"
        assert sum_error_in_ulps(result.x, 1.0) <= 1
        for k in range(10):
            members = result.x[labels == k]
            inside = limits[k] != 0.1 and math.fsum(members) <= 0.1
            assert inside or sum_error_in_ulps(members, 0.1) <= 1


# ------------------------------------------------------------------ rules and certificates


@pytest.mark.parametrize("seed", range(4))
def test_certificates_at_any_point(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        p = sectors(rng, endless=False)
        Q, c = quadratic(rng, p.n)
        x = p.box.project(rng.normal(size=p.n))
        result = minimize(Quadratic(Q, c), p.box, x0=x, max_iter=0)
        gradient = Q @ result.x + c
        assert result.kkt_violation == pytest.approx(p.violation(gradient, result.x), abs=1e-9)
        gap = gradient @ result.x - p.least(gradient)
        assert result.suboptimality_bound == pytest.approx(gap, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-q-lipschitz", "libsvm"])
def test_rules_for_pairs_find_the_best_of_all_pairs(rule):
    rng = np.random.default_rng(17)
    for _ in range(300):
        p = sectors(rng)
        layout = p.box.layout(p.n)
        order = np.arange(p.n) if layout.source is None else layout.source
        x = layout.project(rng.normal(size=p.n))
        gradient = rng.integers(-3, 4, p.n) * 1.0 if rng.random() < 0.3 else rng.normal(size=p.n)
        constants = rng.uniform(0.5, 3.0, p.n)
        alpha = float(rng.choice([0.1, 1.0, 30.0]))
        point = _core.Point(
            x, layout.lower, layout.upper, None, None, layout.starts, layout.low, layout.high
        )
        weighted = RULES[rule].weighted
        choice = _core.Choice(RULES[rule].code, alpha, constants if weighted else None, None)
        indices, delta, decrease, _ = _core.propose(point, gradient, choice, 0)
        there = np.empty(p.n)
        there[order] = x
        slack = p.pair_slacks(there)[np.ix_(order, order)]
        gap = gradient[:, None] - gradient
        curvature = (np.add.outer(constants, constants) if weighted else 2.0) / alpha
        amount = np.minimum(slack, np.maximum(gap, 0) / curvature)
        gain = np.where((slack > 0) & (gap > 0), amount * (gap - 0.5 * curvature * amount), 0.0)
        if not len(indices):
            assert gain.max(initial=0.0) <= 1e-12
            continue
        i, j = indices
        assert delta[1] == -delta[0] == pytest.approx(amount[i, j], rel=1e-12)
        assert decrease == pytest.approx(gain[i, j], rel=1e-9)
        if rule in ("gs-q", "gs-q-lipschitz"):
            assert decrease == pytest.approx(gain.max(), rel=1e-9)
            continue
        # The largest left derivative of a group, or of all groups that can exchange.
        improving = (slack > 0) & (gap > 0)
        inside = [order.size and layout.group == g for g in np.unique(layout.group)]
        max_left = [gradient[m & improving.any(axis=1)].max(initial=-INF) for m in inside]
        assert gradient[i] >= min(d for d in max_left if d > -INF) - 1e-12


def test_multipliers_by_label_are_sensitivities():
    rng = np.random.default_rng(2)
    Q, c = quadratic(rng, 9, definite=True)
    labels = ["oil", "tech", "rail"] * 3
    c = c + np.tile([2.0, -2.0, 0.0], 3)  # oil is unattractive, tech attractive
    step = 1e-5

    def best(total=0.0, oil=0.0, tech=0.0):
        limits = {"oil": (0.45 + oil, 0.6), "tech": (0.0, 0.1 + tech)}
        return solve_qp(Q, c, total=1 + total, groups=labels, group_total=limits, tol=1e-12)

    result = best()
    multipliers = {"total": result.sum_multiplier, **result.group_multipliers}
    assert multipliers.pop("rail") == 0.0
    assert set(multipliers) == {"total", "oil", "tech"}
    for name, multiplier in multipliers.items():
        slope = (best(**{name: step}).fun - best(**{name: -step}).fun) / (2 * step)
        assert multiplier == pytest.approx(slope, rel=1e-4)
    assert multipliers["oil"] > 0 > multipliers["tech"]


# ------------------------------------------------------------------ forms of groups


def test_groups_with_separate_totals():
    rng = np.random.default_rng(4)
    Q, c = quadratic(rng, 8, definite=True)
    labels = list("abababab")
    by_array = solve_qp(Q, c, total=[0.3, 0.7], groups=labels)
    by_label = solve_qp(Q, c, groups=labels, group_total={"b": 0.7, "a": 0.3})
    free = solve_qp(Q, c, total=None, groups=labels, group_total={"a": 0.3, "b": 0.7})
    assert by_array.x.tolist() == by_label.x.tolist() == free.x.tolist()
    assert by_label.group_multipliers == dict(zip("ab", by_array.sum_multiplier, strict=True))
    ranges = solve_qp(Q, c, total=([0.1, 0.2], [0.4, 0.3]), groups=labels)
    named = solve_qp(
        Q, c, total=None, groups=labels, group_total={"a": (0.1, 0.4), "b": (0.2, 0.3)}
    )
    assert ranges.x.tolist() == named.x.tolist()
    whole = solve_qp(Q, c, groups=labels)
    assert whole.x.tolist() == solve_qp(Q, c).x.tolist()
    assert whole.group_multipliers is None


@pytest.mark.parametrize(
    "labels",
    [
        ["x", "x", "y", "y"], [3, 3, -1, -1], [True, True, False, False], [0.5, 0.5, 2.5, 2.5],
        [("a", 1), ("a", 1), ("b", 2), ("b", 2)], ["x", "x", 1, 1], np.array(["x", "x", "y", "y"]),
        [frozenset("x"), frozenset("x"), frozenset("y"), frozenset("y")],
        pd.Categorical(["x", "x", "y", "y"], categories=["y", "x", "unused"]),
    ],
)  # fmt: skip
def test_labels_of_any_kind(labels):
    first, *_, last = list(labels)
    result = solve_qp(np.eye(4), groups=labels, group_total={first: (0.0, 0.2)})
    assert result.x == pytest.approx([0.1, 0.1, 0.4, 0.4])
    assert result.group_multipliers[first] == pytest.approx(-0.3)
    assert result.group_multipliers[last] == 0.0


def test_a_range_of_the_total_within_ranges_of_groups():
    rng = np.random.default_rng(6)
    for _ in range(60):
        p = sectors(rng, endless=False)
        slack = float(rng.choice([0.125, 0.5]))
        box, wide = within_range(p, slack)
        Q, c = quadratic(rng, p.n, definite=True)
        result = minimize(Quadratic(Q, c), box)
        assert result.status == "optimal"
        require_best(wide, Q @ result.x + c, result.x)


def test_coefficients_apply_within_groups():
    rng = np.random.default_rng(12)
    Q, c = quadratic(rng, 6, definite=True)
    coefficients, labels = np.array([1.0, -2.0, 0.5, 1.5, -1.0, 2.0]), np.array([0, 0, 1, 1, 2, 2])
    result = solve_qp(
        Q, c, lower=-1.0, upper=1.0, coefficients=coefficients, groups=labels,
        group_total={0: (-0.25, 0.25), 1: (0.5, 0.75)},
    )  # fmt: skip
    inverse = Quadratic(Q / np.outer(coefficients, coefficients), c / coefficients)
    other = minimize(
        inverse,
        SumBox(1.0, -np.abs(coefficients), np.abs(coefficients), groups=labels,
               group_total={0: (-0.25, 0.25), 1: (0.5, 0.75)}),
    )  # fmt: skip
    assert result.status == other.status == "optimal"
    assert result.fun == pytest.approx(other.fun, rel=1e-9)
    assert result.x * coefficients == pytest.approx(other.x, abs=1e-6)


@pytest.mark.parametrize("off", [1e-6, -1e-6, 1e-10, -1e-10])
def test_a_group_with_one_sum_is_brought_back_from_either_side(off):
    """With equal limits, a sum can be above or below both."""
    layout = SumBox(1.0, groups=list("abbb"), group_total={"a": (0.25, 0.25)}).layout(4)
    z = layout.to_layout(np.array([0.25 + off, 0.25 - off, 0.25, 0.25]))
    layout.restore_sums(z)
    x = layout.from_layout(z)
    assert x[0] == 0.25
    assert math.fsum(x) == 1.0


@pytest.mark.parametrize(("seed", "bent"), [(273, 1), (448, 1), (945, 1), (7, 0), (50, 0), (64, 0)])
def test_rounding_of_a_groups_sum_has_no_slope(seed, bent):
    """A large gradient along a sum at its limit must not turn its rounding error into progress."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    d, a = 10.0 ** rng.uniform(-2, 2, n), rng.normal(size=n)
    groups = rng.integers(0, 3, n)
    groups[:3] = range(3)
    first, second, third = (float(rng.normal()) for _ in range(3))
    ranges = {0: (first - 1, first), 1: (second, second + 1.0)}

    def root(x):
        return np.sqrt(1 + (x - a) ** 2)

    f = Smooth(
        lambda x: float(d @ root(x)),
        lambda x: d * (x - a) / root(x),
        (lambda x: np.diag(d / root(x) ** 3)) if bent else None,
    )
    box = SumBox(first + second + third, np.full(n, -INF), groups=groups, group_total=ranges)
    assert minimize(f, box).status == "optimal"
