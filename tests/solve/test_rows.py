"""General linear rows: forms, names of contradictions, labels and smooth objectives.

Random rows and sums of every kind are compared with Clarabel and cvxopt in tests/test_attacks.py.
"""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy
from oracles import sum_error_in_ulps

from pairstep import (
    KLDivergence,
    L1Penalized,
    LogGrowth,
    Quadratic,
    RiskParity,
    Smooth,
    SumBox,
    coordinate_descent,
    minimize,
    path,
    simplex_lstsq,
    solve_qp,
)
from pairstep.constraints.rows import contradiction
from pairstep.solve.rows import verified

RISK = np.diag([1.0, 2.0, 3.0, 4.0])


def test_rows_that_hold_already_change_nothing():
    free = solve_qp(RISK)
    result = solve_qp(RISK, rows=[[1.0, 1.0, 0.0, 0.0]], rows_upper=0.9)
    np.testing.assert_allclose(result.x, free.x, rtol=1e-12)
    assert result.row_multipliers == {0: 0.0}


ROOT, RIGHT = (
    np.random.default_rng(3).normal(size=(12, 6)),
    np.random.default_rng(4).normal(size=12),
)
SQUARE, SLOPE = ROOT.T @ ROOT, -ROOT.T @ RIGHT
FORMS = {
    "sparse": lambda **rows: solve_qp(scipy.sparse.csr_array(SQUARE), SLOPE, **rows),
    "factors": lambda **rows: solve_qp((ROOT, 0.0), SLOPE, **rows),
    "least squares": lambda **rows: simplex_lstsq(ROOT, RIGHT, **rows),
    "l1": lambda **rows: solve_qp(SQUARE, SLOPE, l1=0.0, center=0.1, **rows),
}


@pytest.mark.parametrize("solve", FORMS.values(), ids=FORMS)
def test_every_form_of_a_quadratic(solve):
    exposures = np.random.default_rng(5).normal(size=(2, 6))
    rows = {"rows": exposures, "rows_lower": [0.1, -0.2], "rows_upper": [0.2, -0.1]}
    result = solve(**rows)
    assert result.success, result
    np.testing.assert_allclose(result.x, solve_qp(SQUARE, SLOPE, **rows).x, atol=1e-9)


def test_equations_fix_everything():
    rows = np.eye(4)[:3]
    result = solve_qp(RISK, rows=rows, rows_lower=[0.1, 0.2, 0.3], rows_upper=[0.1, 0.2, 0.3])
    np.testing.assert_allclose(result.x, [0.1, 0.2, 0.3, 0.4], rtol=1e-12)


@pytest.mark.parametrize(
    ("rows", "low", "high", "names"),
    [
        ([[1, 1, 0, 0], [0, 0, 1, 1]], -np.inf, [0.4, 0.3], ["row 0", "row 1", "the sum"]),
        ([[1, 0, 0, 0]], 1.5, np.inf, ["row 0", "the sum"]),
        ([[0, 0, 0, 0]], 0.5, np.inf, ["row 0"]),
        ([[1, 1, 0, 0], [1, 1, 0, 0]], [0.6, -np.inf], [np.inf, 0.5], ["row 0", "row 1"]),
    ],
)
def test_infeasible_rows_are_named(rows, low, high, names):
    with pytest.raises(ValueError, match="no x satisfies all rows") as raised:
        solve_qp(RISK, rows=np.array(rows, float), rows_lower=low, rows_upper=high)
    message = str(raised.value).split(": ")[1]
    for name in ("row 0", "row 1", "the sum"):
        assert (name in message) == (name in names), message


def test_contradictions_are_proven_in_fractions():
    matrix, limits = np.array([[0.1, 0.2], [0.3, 0.1]]), np.array([0.5, -np.inf])
    proof = contradiction(np.array([1.0, 0.0]), matrix, limits, np.full(2, np.inf),
                         np.zeros(2), np.ones(2))  # fmt: skip
    assert proof == (Fraction(0.5), Fraction(0.1) + Fraction(0.2))
    assert contradiction(np.array([1.0, 0.0]), matrix, limits, np.full(2, np.inf), np.zeros(2),
                         np.full(2, 2.0)) is None  # fmt: skip


def test_labels():
    names = ["bonds", "stocks", "gold", "cash"]
    risk = pd.DataFrame(RISK, names, names)
    exposures = pd.DataFrame({"cash": [0.0], "gold": [0.2], "stocks": [1.1], "bonds": [0.1]},
                             index=["beta"])  # fmt: skip
    result = solve_qp(risk, rows=exposures, rows_lower=pd.Series({"beta": 0.5}))
    assert result.weights @ exposures.loc["beta", names] == pytest.approx(0.5, abs=1e-12)
    assert list(result.row_multipliers) == ["beta"]
    with pytest.raises(ValueError, match="beta"):
        solve_qp(risk, rows=exposures, rows_lower=pd.Series({"alpha": 0.5}))


def test_rows_of_a_constraint_object():
    row = np.array([[1.0, 2.0, 3.0]])
    box = SumBox(upper=0.6, rows=row, rows_upper=1.5)
    assert box == SumBox(upper=0.6, rows=row, rows_upper=1.5)
    assert box != SumBox(upper=0.6, rows=row, rows_upper=1.6)
    assert box.size == 3
    assert pickle.loads(pickle.dumps(box)) == box
    for point in (box.start(), box.project([0.0, 0.0, 1.0])):
        assert sum_error_in_ulps(point, 1.0) <= 1
        assert (row @ point <= 1.5 + 1e-12).all()
    one = minimize(Quadratic(np.eye(3), [0.0, 0.0, -2.0]), box)
    other = solve_qp(np.eye(3), [0.0, 0.0, -2.0], upper=0.6, rows=row, rows_upper=1.5)
    np.testing.assert_array_equal(one.x, other.x)
    with pytest.raises(ValueError, match="rows need the active-set solver"):
        box.layout(3)
    with pytest.raises(ValueError, match="history = True cannot be used with rows"):
        minimize(Quadratic(np.eye(3)), box, history=True)
    with pytest.raises(ValueError, match="coordinate_descent cannot keep the rows"):
        coordinate_descent(Quadratic(np.eye(3)), box)
    for result in path(lambda t: Quadratic(np.eye(3), [0, 0, -t]), box, over=[0.0, 9.0]):
        assert (row @ result.x <= 1.5 + 1e-12).all()


SMOOTH = {
    "log growth": lambda rng, n: LogGrowth(np.exp(0.02 * rng.standard_normal((60, n)))),
    "risk parity": lambda rng, n: RiskParity(np.cov(rng.standard_normal((40, n)).T)),
    "divergence": lambda rng, n: KLDivergence(rng.random((20, n)), rng.random(20) + 0.1),
    "gradient": lambda rng, n: Smooth(
        lambda x: float(np.exp(3 * x).sum() + x[0]), lambda x: 3 * np.exp(3 * x) + np.eye(n)[0]
    ),
    "function": lambda rng, n: Smooth(lambda x: float(((x - 0.3) ** 4).sum() + x[0])),
    "costs": lambda rng, n: L1Penalized(
        LogGrowth(np.exp(0.02 * rng.standard_normal((60, n)))), 0.002, 1 / n
    ),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_objectives_with_rows(name, seed):
    rng = np.random.default_rng(seed)
    n = 8
    objective = SMOOTH[name](rng, n)
    rows = rng.standard_normal((2, n))
    middle = rows @ np.full(n, 1 / n)
    # The first row keeps the solution away from that without rows.
    low, high = middle + np.array([0.1, -0.3]), middle + np.array([0.4, 0.3])
    box = SumBox(rows=rows, rows_lower=low, rows_upper=high)
    result = minimize(objective, box)
    assert result.success, result.message
    assert sum_error_in_ulps(result.x, 1.0) <= 1
    assert (rows @ result.x >= low - 1e-12).all()
    assert (rows @ result.x <= high + 1e-12).all()
    expected = scipy.optimize.minimize(
        objective.value, 0.999 * box.start(n) + 0.001 / n, method="SLSQP", bounds=[(1e-9, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda x: x.sum() - 1},
            {"type": "ineq", "fun": lambda x: np.r_[rows @ x - low, high - rows @ x]},
        ],
        options={"ftol": 1e-13, "maxiter": 1000},
    )  # fmt: skip
    assert result.fun <= expected.fun + 1e-7 * (1 + abs(expected.fun))
    if name != "costs":  # where SLSQP needs derivatives
        assert result.fun >= expected.fun - 1e-5 * (1 + abs(expected.fun))


# A row that the point meets, and rows that it misses by little or by much.
@pytest.mark.parametrize("limit", [{"rows_lower": 0.7}, {"rows_lower": 0.5 + 1e-8},
                                   {"rows_upper": 0.3}, {"rows_upper": 0.5 - 1e-8}])  # fmt: skip
def test_a_point_that_misses_a_row_is_not_optimal(limit):
    """No solve ends at such a point, so the certificate is called with one."""
    constraint = SumBox(rows=[[1.0, 0.0]], **limit)
    result = verified(Quadratic(np.eye(2)), constraint, np.array([0.5, 0.5]), np.zeros(1), 1e-8)
    assert result.status == "stalled"
    assert "row 0 is 0.5, but its limit is" in result.message


def test_a_row_with_a_multiplier_that_is_not_at_its_limit_is_in_the_bound():
    """As above; the multiplier certifies another point, so the bound must cover the difference."""
    objective = Quadratic(np.eye(2))
    constraint = SumBox(rows=[[1.0, 0.0]], rows_lower=0.7)
    x = np.array([0.7001, 0.2999])
    result = verified(objective, constraint, x, np.array([x[0] - x[1]]), 1e-8)
    assert result.status == "stalled"
    assert result.suboptimality_bound >= objective.value(x) - objective.value([0.7, 0.3])


def test_rows_are_aligned_with_the_labels_of_the_objective():
    names = ["a", "b", "c"]
    risk = pd.DataFrame(np.diag([1.0, 2.0, 3.0]), names, names)
    exposure = pd.DataFrame([[3.0, 0.0, 1.0]], ["beta"], ["c", "a", "b"])
    constraint = SumBox(rows=exposure, rows_lower=1.2)  # has labels of its own, in its own order
    expected = solve_qp(risk.to_numpy(), rows=[[0.0, 1.0, 3.0]], rows_lower=1.2).x
    np.testing.assert_allclose(minimize(Quadratic(risk), constraint).x, expected, atol=1e-9)
