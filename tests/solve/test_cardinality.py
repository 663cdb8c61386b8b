"""At most K names, minimum holdings and fixed costs, against full enumeration."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import pairstep
from pairstep import SumBox, _core, solve_qp

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
        with pytest.raises(ValueError, match="max_names|no x with|no x satisfies"):
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
