"""At most K names, minimum holdings and fixed costs, against full enumeration."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from pairstep import _core, solve_qp

GAP = 1e-6


def drawn(seed, n, **wanted):
    """A random convex problem, and the arguments of solve_qp that describe it."""
    rng = np.random.default_rng(seed)

    def has(name, probability):
        return wanted.get(name, rng.random() < probability)

    F = rng.normal(size=(int(rng.integers(2, 2 * n)), n))
    D = rng.uniform(0.0, 1.0, n) * rng.choice([0.1, 1.0, 3.0])
    Q = F.T @ F + np.diag(D)
    if has("singular", 0.15):
        Q = F.T @ F
    given = {"c": rng.normal(size=n) * rng.choice([0.0, 0.3, 3.0])}
    given["Q"] = (F, D) if has("factors", 0.2) else (Q + Q.T) / 2
    lower, upper = np.zeros(n), np.full(n, rng.choice([0.4, 0.7, 1.0]))
    if has("short", 0.25):
        lower = -rng.uniform(0.0, 0.5, n)
    if has("always", 0.1):
        lower[0], upper[0] = 0.05, 0.6
    given |= {"lower": lower, "upper": upper}
    if has("groups", 0.2):
        labels = rng.integers(0, 2, n)
        labels[:2] = 0, 1
        given |= {"groups": labels, "group_upper": {0: 0.7}, "group_lower": {1: 0.1}}
    elif has("coefficients", 0.1):
        given["coefficients"] = rng.uniform(0.5, 2.0, n)
    elif has("range", 0.1):
        given["total"] = (0.8, 1.1)
    if has("rows", 0.25):
        rows = rng.normal(size=(2, n))
        middle = rows @ rng.dirichlet(np.ones(n))
        given |= {"rows": rows, "rows_lower": middle - 0.4, "rows_upper": [np.inf, middle[1] + 0.2]}
    if has("l1", 0.25):
        cost = rng.uniform(0.0, 1.0, n)
        given["l1"] = (cost, 0.5 * cost) if rng.random() < 0.5 else cost
        given["center"] = rng.dirichlet(np.ones(n)) if rng.random() < 0.7 else 0.0
    if has("names", 0.8):
        given["max_names"] = int(rng.integers(1 + (lower[0] > 0), n))
    if has("holding", 0.5):
        given["min_holding"] = rng.uniform(0.0, 0.3, n) if rng.random() < 0.5 else 0.15
    if has("cost", 0.4):
        given["fixed_cost"] = rng.uniform(0.0, 0.3, n) if rng.random() < 0.5 else 0.05
    if not {"max_names", "min_holding", "fixed_cost"} & set(given):
        given["max_names"] = max(n // 2, 1 + (lower[0] > 0))
    return given


def best_by_enumeration(given):
    """The smallest objective over all supports and signs; infinite if none is feasible."""
    plain = dict(given)
    n = len(given["c"])
    count = plain.pop("max_names", n)
    holding = np.broadcast_to(plain.pop("min_holding", 0.0), n)
    cost = np.broadcast_to(plain.pop("fixed_cost", 0.0), n)
    lower, upper = plain.pop("lower"), plain.pop("upper")
    choices = []
    for i in range(n):
        own = [(0.0, 0.0)] if lower[i] <= 0 <= upper[i] else []
        if holding[i] == 0:
            own.append((lower[i], upper[i]))
        else:
            own.append((max(lower[i], holding[i]), upper[i]))
            own.append((lower[i], min(upper[i], -holding[i])))
        choices.append([pair for pair in own if pair[0] <= pair[1]])
    best = math.inf
    for bounds in itertools.product(*choices):
        held = np.array([pair != (0.0, 0.0) for pair in bounds])
        if held.sum() > count or not held.any():
            continue
        low, high = np.array(bounds).T
        try:
            result = solve_qp(**plain, lower=low, upper=high)
        except ValueError:
            continue
        if not result.success:
            continue
        best = min(best, result.fun + cost[held & (result.x != 0)].sum())
    return best


def check_point(given, result):
    """Check every constraint at the result."""
    x, n = result.x, len(given["c"])
    assert (x >= given["lower"]).all()
    assert (x <= given["upper"]).all()
    assert np.count_nonzero(x) <= given.get("max_names", n)
    holding = np.broadcast_to(given.get("min_holding", 0.0), n)
    assert ((x == 0) | (np.abs(x) >= holding)).all()
    total = given.get("total", 1.0)
    if "coefficients" not in given and not isinstance(total, tuple):
        assert abs(math.fsum(x) - total) <= np.spacing(total)
    if "groups" in given:
        assert x[given["groups"] == 0].sum() <= 0.7 + 1e-12
        assert x[given["groups"] == 1].sum() >= 0.1 - 1e-12
    if "rows" in given:
        activity = given["rows"] @ x
        assert (activity >= given["rows_lower"] - 1e-12).all()
        assert (activity <= np.array(given["rows_upper"]) + 1e-12).all()
    Q = given["Q"]
    Q = Q[0].T @ Q[0] + np.diag(Q[1]) if isinstance(Q, tuple) else Q
    value = x @ Q @ x / 2 + given["c"] @ x
    if "l1" in given:
        down, up = given["l1"] if isinstance(given["l1"], tuple) else (given["l1"], given["l1"])
        away = x - given["center"]
        value += (up * np.maximum(away, 0) + down * np.maximum(-away, 0)).sum()
    value += np.broadcast_to(given.get("fixed_cost", 0.0), n)[x != 0].sum()
    assert result.fun == pytest.approx(value, rel=1e-12, abs=1e-12)


def compare(given):
    expected = best_by_enumeration(given)
    if math.isinf(expected):
        with pytest.raises(ValueError, match=r"max_names|no x with|no x satisfies|infeasible"):
            solve_qp(**given)
        return False
    result = solve_qp(**given)
    check_point(given, result)
    assert result.bound <= expected + 1e-12 * (1 + abs(expected))
    assert result.fun >= expected - 1e-9 * (1 + abs(expected))
    assert result.gap <= (result.fun - result.bound) / abs(result.fun)
    assert result.success, result
    assert result.gap <= GAP
    assert result.fun - expected <= 1.1 * GAP * abs(result.fun) + 1e-9
    return True


@pytest.mark.parametrize("block", range(10))
def test_against_enumeration(block):
    feasible = [compare(drawn(1000 * block + seed, 4 + seed % 4)) for seed in range(30)]
    assert sum(feasible) > 15


@pytest.mark.parametrize(("n", "count"), [(12, 3), (13, 5), (15, 4), (15, 7)])
def test_more_variables_against_enumeration(n, count):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        F = rng.normal(size=(2 * n, n))
        Q, c = F.T @ F / n, -0.3 * rng.random(n)
        best = min(
            solve_qp(np.ascontiguousarray(Q[np.ix_(s, s)]), c[list(s)]).fun
            for s in itertools.combinations(range(n), count)
        )
        result = solve_qp(Q, c, max_names=count)
        assert result.success
        assert result.bound <= best + 1e-14
        assert result.fun == pytest.approx(best, rel=GAP)


def hard(n=150, names=12):
    """A problem that takes many thousands of nodes."""
    rng = np.random.default_rng(1)
    F = rng.normal(size=(n + 30, n)) + 0.5 * rng.normal(size=(n + 30, 1))
    return {"Q": F.T @ F / n, "max_names": names}


# ------------------------------------------------------------------------------- special cases


def test_other_problems_have_no_gap():
    result = solve_qp(np.eye(3))
    assert result.gap is result.bound is result.nodes is None


SPECIAL = {
    "more names than variables": ({"max_names": 100}, [12 / 25, 6 / 25, 4 / 25, 3 / 25]),
    "a lower bound above 0 counts": (
        {"lower": [0, 0, 0, 0.2], "max_names": 2}, [0.8, 0.0, 0.0, 0.2]
    ),
    "no bounds": ({"lower": -math.inf, "upper": None, "max_names": 2}, [2 / 3, 1 / 3, 0.0, 0.0]),
    "a total and an upper bound": (
        {"total": 2.0, "upper": 1.2, "max_names": 2}, [1.2, 0.8, 0.0, 0.0]
    ),
    "fixed costs": ({"fixed_cost": [0.01, 0.02, 0.3, 0.3]}, [2 / 3, 1 / 3, 0.0, 0.0]),
    "a short position of at least the minimum": (
        {"c": [-1.0, 1.8, 9.0, 9.0], "lower": [-1, -1, 0, 0], "min_holding": 0.9, "upper": 2.0},
        [1.9, -0.9, 0.0, 0.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name):
    given, expected = SPECIAL[name]
    Q, cost = np.diag([1.0, 2.0, 3.0, 4.0]), np.asarray(given.get("fixed_cost", 0.0))
    result = solve_qp(Q, **given)
    assert result.success
    np.testing.assert_allclose(result.x, expected, rtol=1e-9)
    paid = np.broadcast_to(cost, 4)[result.x != 0].sum()
    value = result.x @ Q @ result.x / 2 + np.dot(given.get("c", np.zeros(4)), result.x) + paid
    assert result.fun == pytest.approx(value)


@pytest.mark.parametrize(("rows", "columns", "names"), [(3, 40, 6), (60, 30, 5)])
@pytest.mark.parametrize("diagonal", [0.0, 1.0])
def test_a_factor_model_and_its_matrix(rows, columns, names, diagonal):
    """Few factors, and more observations than variables, from which a diagonal is separated."""
    rng = np.random.default_rng(4)
    F, D = rng.normal(size=(rows, columns)), diagonal * rng.uniform(0.5, 2.0, columns)
    c = -F.T @ (F[:, :12] @ rng.dirichlet(np.ones(12)) + 0.1 * rng.normal(size=rows))
    factors = solve_qp((F, D), c, max_names=names, min_holding=0.05)
    dense = solve_qp(F.T @ F + np.diag(D), c, max_names=names, min_holding=0.05)
    assert factors.success
    assert dense.success
    assert factors.fun == pytest.approx(dense.fun, rel=2 * GAP)
    if rows > columns:
        assert factors.nodes == dense.nodes


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_the_scale_of_the_objective_does_not_matter(scale):
    given = drawn(7, 7, rows=False, l1=False, cost=False)
    Q, c = given.pop("Q"), given.pop("c")
    one, other = solve_qp(Q, c, **given), solve_qp(scale * Q, scale * c, **given)
    assert other.success
    np.testing.assert_array_equal(one.x != 0, other.x != 0)
    assert other.fun == pytest.approx(scale * one.fun, rel=2 * GAP)


def test_labels():
    names = ["bonds", "stocks", "gold", "cash"]
    risk = pd.DataFrame(np.diag([1.0, 2.0, 3.0, 4.0]), names, names)
    least = pd.Series({"cash": 0.0, "gold": 0.0, "stocks": 0.5, "bonds": 0.0})
    cost = {"bonds": 0.0, "stocks": 0.0, "gold": 0.0, "cash": 5.0}
    result = solve_qp(risk, max_names=2, min_holding=least, fixed_cost=cost)
    weights = result.weights
    assert list(weights.index) == names
    assert weights["stocks"] == 0 or weights["stocks"] >= 0.5
    assert (weights > 0).sum() == 2
    with pytest.raises(ValueError, match="min_holding"):
        solve_qp(risk, min_holding=pd.Series({"alpha": 0.5}))


def test_an_initial_point_is_used():
    given = hard()
    best = solve_qp(**given, max_iter=200)
    again = solve_qp(**given, max_iter=1, x0=best.x)
    assert again.fun <= best.fun * (1 + 1e-12)


def test_derivatives_keep_the_names():
    Q = np.diag([1.0, 2.0, 3.0, 4.0])
    result = solve_qp(Q, max_names=2)
    assert result.jvp(total=1.0) == pytest.approx([2 / 3, 1 / 3, 0.0, 0.0])


def test_the_separable_part_leaves_a_semidefinite_matrix():
    from pairstep.solve.cardinality import separable_part
    from pairstep.solve.parametric import Curvature

    rng = np.random.default_rng(3)
    for n in (2, 10, 40):
        F = rng.normal(size=(n + 5, n)) * rng.uniform(0.1, 10.0, n)
        Q = F.T @ F
        for weights in (np.ones(n), rng.uniform(0.1, 1.0, n)):
            live = np.ones(n)
            live[0] = 0.0
            d = separable_part(Curvature(Q), live, weights, 10.0)
            assert d[0] == 0
            assert (d >= 0).all()
            scale = np.sqrt(np.diag(Q))
            rest = (Q - np.diag(d))[1:, 1:] / np.outer(scale[1:], scale[1:])
            assert np.linalg.eigvalsh(rest)[0] > -1e-12
            # It is at least about as large as a multiple of the diagonal can be.
            smallest = np.linalg.eigvalsh(Q[1:, 1:] / np.outer(scale[1:], scale[1:]))[0]
            assert weights @ (d / scale**2) >= 0.9 * smallest * weights[1:].sum()


# ------------------------------------------------------------------------ limits and callbacks


@pytest.mark.parametrize("limit", [{"time_limit": 0.05}, {"max_iter": 40}])
def test_an_early_end_has_a_proven_gap(limit):
    given = hard()
    result = solve_qp(**given, **limit)
    assert result.status == next(iter(limit))
    assert np.count_nonzero(result.x) <= given["max_names"]
    assert abs(math.fsum(result.x) - 1) <= np.spacing(1.0)
    assert GAP < result.gap < 0.9
    assert result.gap == pytest.approx((result.fun - result.bound) / result.fun)
    longer = solve_qp(**given, max_iter=500)
    assert result.bound <= longer.bound <= longer.fun <= result.fun
    if "max_iter" in limit:
        assert result.nodes <= 42
        assert "raise max_iter" in result.message


def test_a_time_limit_without_a_point():
    # The two largest variables of x0 are in the same group, so rounding gives no point.
    given = {"Q": np.diag([1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), "groups": list("aabbbb"),
             "total": np.array([0.5, 0.5]), "max_names": 2}  # fmt: skip
    x0 = [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    result = solve_qp(**given, x0=x0, time_limit=0.0)
    assert result.status == "time_limit"
    assert result.gap == math.inf
    assert "no point with so few names was found" in result.message
    assert result.bound <= solve_qp(**given).fun


# ---------------------------------------------------------------------------------- wrong arguments


# ----------------------------------------------------------------- the native solver: copy and move


def parametric_problem(rng):
    n, k = int(rng.integers(3, 15)), int(rng.integers(0, 4))
    F = rng.normal(size=(2 * n, n)) / math.sqrt(n)
    inside = rng.dirichlet(np.ones(n))
    matrix = np.vstack([np.ones((1, n)), rng.normal(size=(k, n))])
    low = np.r_[1.0, matrix[1:] @ inside - 0.2 * rng.random(k)]
    high = np.r_[1.0, matrix[1:] @ inside + 0.2 * rng.random(k)]
    l1, center = (None, None) if rng.random() < 0.5 else (rng.random(n), rng.dirichlet(np.ones(n)))
    form = (F.T @ F, None, None) if rng.random() < 0.5 else (None, F, rng.random(n))
    linear = rng.normal(size=n)
    return n, lambda lower, upper: _core.Parametric(
        *form, linear, lower, upper, l1, center, matrix, low, high
    )


@pytest.mark.parametrize("block", range(4))
def test_moved_copies_against_cold_solves(block):
    rng = np.random.default_rng(block)
    compared = infeasible = 0
    for _ in range(40):
        n, build = parametric_problem(rng)
        lower, upper = np.zeros(n), np.ones(n)
        solver = build(lower, upper)
        if solver.solve(np.full(n, 1 / n), np.zeros(len(solver.multipliers))) != 0:
            continue
        for _ in range(6):
            i, before = int(rng.integers(n)), solver.x
            bounds = [(0.0, 0.0), (0.1, 1.0), (0.0, 1.0), (0.0, 0.2)][rng.integers(4)]
            moved = solver.copy()
            status = moved.move(i, float(np.clip(before[i], *bounds)), *bounds)
            np.testing.assert_array_equal(solver.x, before)  # the original stays
            least, most = lower.copy(), upper.copy()
            least[i], most[i] = bounds
            cold = build(least, most)
            assert status == cold.solve(
                np.clip(before, least, most), np.zeros(len(cold.multipliers))
            )
            if status != 0:
                infeasible += 1
                continue
            assert moved.value == pytest.approx(cold.value, abs=1e-9)
            np.testing.assert_allclose(moved.x, cold.x, atol=1e-7)
            solver, lower, upper = moved, least, most
            compared += 1
    assert compared > 100
    assert infeasible > 0


@pytest.mark.parametrize("seed", [1, 4, 8, 9, 10, 11])
def test_a_wide_gap_has_a_bound_that_is_not_above_the_optimum(seed):
    """A wide gap prunes nodes that may hold the optimum; they count in the bound."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(10, 20))
    given = {"Q": F.T @ F + 0.01 * np.eye(20), "max_names": 5}
    optimum = solve_qp(**given, gap=1e-9).fun
    result = solve_qp(**given, gap=0.9)
    assert result.status == "optimal"
    assert result.bound <= optimum <= result.fun * (1 + 1e-12)
    assert result.gap <= 0.9
