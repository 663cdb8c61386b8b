"""Caps on turnover, tracking error, risk and return, against Clarabel and by derivatives."""

import math

import clarabel
import numpy as np
import pytest
import scipy.sparse
from oracles import sum_error_in_ulps

from pairstep import solve_qp


def drawn(seed, n=None):
    rng = np.random.default_rng(seed)
    n = n or int(rng.choice([3, 8, 20, 40]))
    returns = rng.standard_normal((2 * n + 2, n))
    Q = returns.T @ returns / len(returns)
    mean = 0.3 * rng.standard_normal(n)
    before, benchmark = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 3.0))
    return rng, n, Q, mean, before, benchmark


def reference(Q, c, weight, upper, caps, l1, before, mean):
    """Return Clarabel's solution; variables are x and the distances from the holdings."""
    n = len(c)
    eye, none = np.eye(n), np.zeros((n, n))
    P = np.block([[weight * Q, none], [none, none]])
    q = np.r_[c, np.zeros(n) if l1 is None else l1]
    lines = [np.hstack([-eye, none]), np.hstack([eye, none]), np.hstack([eye, -eye])]
    lines.append(np.hstack([-eye, -eye]))
    limits = [np.zeros(n), np.full(n, upper), before, -before]
    if "turnover" in caps:
        lines.append(np.r_[np.zeros(n), np.ones(n)][None])
        limits.append([caps["turnover"][1]])
    if "min_return" in caps:
        lines.append(np.r_[-mean, np.zeros(n)][None])
        limits.append([-caps["min_return"][1]])
    rows = [np.r_[np.ones(n), np.zeros(n)][None], np.vstack(lines)]
    right = [np.ones(1), np.concatenate(limits)]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(right[1]))]
    root = np.linalg.cholesky(Q).T
    balls = [(np.zeros(n), caps["max_risk"])] if "max_risk" in caps else []
    balls += [caps["tracking_error"]] if "tracking_error" in caps else []
    for center, limit in balls:
        rows.append(np.vstack([np.zeros((1, 2 * n)), np.hstack([-root, none])]))
        right.append(np.r_[limit, -root @ center])
        cones.append(clarabel.SecondOrderConeT(n + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solved = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(P)), q, scipy.sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right), cones, settings,
    ).solve()  # fmt: skip
    return str(solved.status), np.array(solved.x)[:n]


def measures(x, Q, caps, mean):
    """Return the value of each cap, with the sign of its limit."""
    found = {}
    if "turnover" in caps:
        found["turnover"] = np.abs(x - caps["turnover"][0]).sum() - caps["turnover"][1]
    if "tracking_error" in caps:
        apart = x - caps["tracking_error"][0]
        found["tracking_error"] = math.sqrt(apart @ Q @ apart) - caps["tracking_error"][1]
    if "max_risk" in caps:
        found["max_risk"] = math.sqrt(x @ Q @ x) - caps["max_risk"]
    if "min_return" in caps:
        found["min_return"] = caps["min_return"][1] - mean @ x
    return found


def some_caps(rng, Q, mean, before, benchmark, linear, upper):
    least = solve_qp(Q, upper=upper).x
    risk = math.sqrt(least @ Q @ least)
    caps = {}
    if rng.random() < 0.5:
        caps["turnover"] = (before, float(rng.uniform(0.1, 1.0)))
    if rng.random() < 0.5:
        caps["tracking_error"] = (benchmark, float(rng.uniform(0.1, 0.5)))
    if rng.random() < 0.4 or not caps or (linear and "tracking_error" not in caps):
        caps["max_risk"] = risk * float(rng.uniform(1.05, 2.0))
    if rng.random() < 0.2:
        caps["min_return"] = (mean, float(mean @ benchmark) + 0.01)
    return caps


@pytest.mark.parametrize("seed", range(60))
def test_caps_against_clarabel(seed):
    rng, n, Q, mean, before, benchmark = drawn(seed)
    linear, upper = rng.random() < 0.3, 1.0
    c = -mean * rng.choice([0.1, 1.0, 5.0])
    caps = some_caps(rng, Q, mean, before, benchmark, linear, upper)
    l1 = 0.2 * rng.random(n) if rng.random() < 0.3 else None
    costs = {} if l1 is None else {"l1": l1, "center": before}
    weight = 0.0 if linear else 1.0
    status, x = reference(Q, c, weight, upper, caps, l1, before, mean)
    matrix = {"Q": None, "covariance": Q} if linear else {"Q": Q}

    def solve():
        return solve_qp(c=c, upper=upper, **matrix, **caps, **costs)

    if "Infeasible" in status:
        with pytest.raises(ValueError, match=r"cannot be as small|contradict|no x satisfies"):
            solve()
        return

    def value(y):
        cost = 0.0 if l1 is None else l1 @ np.abs(y - before)
        return weight * y @ Q @ y / 2 + c @ y + cost

    result = solve()
    assert result.success, result.message
    assert result.fun == pytest.approx(value(result.x), rel=1e-12, abs=1e-12)
    assert result.fun <= value(x) + 1e-7 * (1 + abs(value(x)))
    assert result.fun >= value(x) - 1e-5 * (1 + abs(value(x)))
    assert result.fun - value(x) <= result.suboptimality_bound + 1e-7
    assert sum_error_in_ulps(result.x, 1.0) <= 1
    assert result.x.min() >= 0
    for name, beyond in measures(result.x, Q, caps, mean).items():
        assert beyond <= 1e-10
        multiplier = result.cap_multipliers[name]
        assert multiplier >= 0 if name == "min_return" else multiplier <= 0
        if beyond < -1e-6:
            assert multiplier == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["turnover", "tracking_error", "max_risk", "min_return"])
@pytest.mark.parametrize("form", ["matrix", "factors"])
def test_a_multiplier_is_the_derivative_of_the_value(name, form):
    rng, n, Q, mean, before, benchmark = drawn(5, n=12)
    covariance = Q
    if form == "factors":
        F, D = rng.standard_normal((3, n)), rng.uniform(0.2, 1.0, n)
        covariance, Q = (F, D), F.T @ F + np.diag(D)
    c = -0.3 * mean if name == "min_return" else -3 * mean
    free = solve_qp(covariance, c)
    point = {"turnover": before, "tracking_error": benchmark, "min_return": mean}.get(name)
    at = {
        "turnover": np.abs(free.x - before).sum(),
        "tracking_error": math.sqrt((free.x - benchmark) @ Q @ (free.x - benchmark)),
        "max_risk": math.sqrt(free.x @ Q @ free.x),
        "min_return": mean @ free.x,
    }[name]
    least = solve_qp(covariance).x
    limit = 0.7 * at
    if name == "max_risk":
        limit = 0.5 * (at + math.sqrt(least @ Q @ least))
    if name == "min_return":
        limit = 0.5 * (at + mean.max())

    def solve(bound):
        cap = bound if point is None else (point, bound)
        return solve_qp(covariance, c, **{name: cap}, tol=1e-10)

    step = 1e-5 * abs(limit)
    slope = (solve(limit + step).fun - solve(limit - step).fun) / (2 * step)
    assert abs(slope) > 1e-3
    assert solve(limit).cap_multipliers[name] == pytest.approx(slope, rel=1e-4)


def test_a_cap_that_is_not_reached_changes_nothing():
    _, _, Q, mean, before, _ = drawn(1, n=8)
    free = solve_qp(Q, -mean)
    result = solve_qp(Q, -mean, turnover=(before, 2.0), max_risk=100.0)
    np.testing.assert_allclose(result.x, free.x, atol=1e-9)
    assert result.cap_multipliers == {"turnover": 0.0, "max_risk": 0.0}


def test_the_largest_return_within_a_cap_that_is_not_reached():
    _, _, Q, mean, _, _ = drawn(1, n=8)
    result = solve_qp(None, -mean, covariance=Q, max_risk=100.0)
    assert result.success
    assert result.x[mean.argmax()] == 1.0
    assert result.fun == -mean.max()


def test_no_turnover_keeps_the_holdings():
    _, _, Q, mean, before, _ = drawn(2, n=8)
    result = solve_qp(Q, -mean, turnover=(before, 0.0))
    assert result.success
    np.testing.assert_allclose(result.x, before, atol=1e-15)


def test_caps_with_groups_rows_and_labels():
    pd = pytest.importorskip("pandas")
    rng, n, Q, mean, _, _ = drawn(3, n=8)
    names = list("abcdefgh")
    before = pd.Series(np.full(n, 1 / n), index=names[::-1])
    exposure = pd.DataFrame([rng.standard_normal(n)], index=["beta"], columns=names)
    result = solve_qp(
        pd.DataFrame(Q, index=names, columns=names), pd.Series(-mean, index=names),
        groups=dict(zip(names, "xxxxyyyy", strict=True)), group_upper={"x": 0.4}, rows=exposure,
        rows_upper=0.1, turnover=(before, 0.8), min_return=(pd.Series(mean, index=names), 0.05),
    )  # fmt: skip
    assert result.success
    assert list(result.weights.index) == names
    assert set(result.row_multipliers) == {"beta"}
    assert set(result.cap_multipliers) == {"turnover", "min_return"}
    assert result.weights[list("abcd")].sum() <= 0.4 + 1e-12
    assert exposure.loc["beta"] @ result.weights <= 0.1 + 1e-12
    assert (result.weights - before).abs().sum() <= 0.8 + 1e-12


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_change_nothing(scale):
    _, _, Q, mean, before, _ = drawn(4, n=10)
    caps = {"turnover": (before, 0.4)}
    one = solve_qp(Q, -mean, **caps, tracking_error=(before, 0.1))
    other = solve_qp(
        scale * Q, -scale * mean, **caps, tracking_error=(before, 0.1 * math.sqrt(scale))
    )
    np.testing.assert_allclose(other.x, one.x, atol=1e-9)
