"""Sum-constrained problems recognized in general form, against SciPy's SLSQP on that form."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.optimize
import scipy.sparse

from pairstep import Quadratic, SumBox, from_qp, minimize

RNG = np.random.default_rng(7)
N = 6
ROOT = RNG.normal(size=(9, N))
P, q = ROOT.T @ ROOT, RNG.normal(size=N)
ONES = np.ones((1, N))
NAMES = [f"v{k}" for k in range(N)]


def optimum(P, q, G=None, h=None, A=None, b=None, lb=None, ub=None):
    """The optimum by a general solver."""
    n = len(q)
    constraints = []
    for matrix, right, low in ((A, b, b), (G, h, -np.inf)):
        if matrix is not None:
            asks = np.atleast_2d(matrix).any(axis=1) & np.isfinite(right)  # SLSQP needs this
            ends = (np.broadcast_to(end, len(asks))[asks] for end in (low, right))
            constraints.append(scipy.optimize.LinearConstraint(np.atleast_2d(matrix)[asks], *ends))
    bounds = scipy.optimize.Bounds(
        np.broadcast_to(-np.inf if lb is None else lb, n),
        np.broadcast_to(np.inf if ub is None else ub, n),
    )
    start = np.full(n, 1.0 / n)
    options = {"maxiter": 1000, "ftol": 1e-12}  # a smaller one fails in line searches by rounding
    found = scipy.optimize.minimize(
        lambda x: x @ P @ x / 2 + q @ x, start, jac=lambda x: P @ x + q, bounds=bounds,
        constraints=constraints, method="SLSQP", options=options,
    )  # fmt: skip
    assert found.success, found.message
    return found.fun


def rows(*members, coefficients=None):
    """A matrix with a row of ones, or of coefficients, for each set of variables."""
    matrix = np.zeros((len(members), N))
    for row, at in zip(matrix, members, strict=True):
        row[at] = 1.0 if coefficients is None else coefficients[at]
    return matrix


W = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])
FORMS = {
    "simplex": {"A": ONES, "b": [1.0], "lb": 0.0},
    "scaled ones": {"A": -3 * ONES, "b": [-3.0], "lb": 0.0},
    "a row as a vector": {"A": np.ones(N), "b": 1.0, "lb": 0.0},
    "bounds as rows": {
        "G": np.vstack([-np.eye(N), 2 * np.eye(N)]), "h": np.r_[np.zeros(N), np.full(N, 0.6)],
        "A": ONES, "b": [1.0],
    },
    "bounds twice, the tighter counts": {
        "G": np.eye(N), "h": np.full(N, 0.25), "A": ONES, "b": [1.0], "lb": 0.0, "ub": 0.5,
    },
    "a fixed variable": {"A": np.vstack([ONES, 2 * np.eye(N)[2]]), "b": [1.0, 0.5], "lb": 0.0},
    "a range": {"G": np.vstack([ONES, -2 * ONES]), "h": [1.0, -1.0], "lb": 0.0},
    "half a range": {"G": -ONES, "h": [-0.7], "lb": 0.0, "ub": 0.4},
    "coefficients": {"A": W[None], "b": [0.3], "lb": -1.0, "ub": 1.0},
    "a weighted range": {"G": np.vstack([W, -4 * W]), "h": [0.3, 0.4], "lb": -1.0, "ub": 1.0},
    "groups": {"A": rows([0, 2, 4], [1, 3, 5]), "b": [1.0, 2.0], "lb": 0.0},
    "groups, one with a range": {
        "A": rows([0, 2, 4]), "b": [1.0], "G": rows([1, 3, 5]), "h": [0.5], "lb": 0.0, "ub": 1.0,
    },
    "weighted groups": {
        "A": rows([0, 2, 4], [1, 3, 5], coefficients=W), "b": [1.0, 0.1], "lb": -2.0, "ub": 2.0,
    },
    "sectors under a total": {
        "A": ONES, "b": [1.0], "G": np.vstack([rows([0, 1]), -2 * rows([2, 5])]),
        "h": [0.2, -0.8], "lb": 0.0,
    },
    "weighted sectors under a range": {
        "G": np.vstack([W, -W, -2 * rows([0, 1, 2], coefficients=W)]), "h": [0.3, 0.1, 0.1],
        "lb": -1.0, "ub": 1.0,
    },
    "some in no sum": {"A": rows([0, 2, 4]), "b": [1.0], "lb": -1.0, "ub": 1.0},
    "bounds only": {"lb": -0.1, "ub": 0.1},
    "rows that ask for nothing": {
        "G": np.vstack([rows([0, 1]), np.zeros(N), -np.eye(N)]),
        "h": np.r_[np.inf, 1.0, np.zeros(N)],
        "A": np.vstack([ONES, np.zeros(N)]), "b": [1.0, 0.0],
    },
}  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_its_optimum(name, sparse):
    form = FORMS[name]
    expected = optimum(P, q, **form)
    given = {
        k: scipy.sparse.csc_array(v) if sparse and k in ("A", "G") and np.ndim(v) == 2 else v
        for k, v in form.items()
    }
    objective, constraint = from_qp(scipy.sparse.csc_array(P) if sparse else P, q, **given)
    assert isinstance(objective, Quadratic)
    assert isinstance(constraint, SumBox)
    result = minimize(objective, constraint, tol=1e-10)
    assert result.success
    assert result.fun == pytest.approx(expected, rel=1e-6, abs=1e-8)
    x = result.x
    if "A" in form:
        np.testing.assert_allclose(np.atleast_2d(form["A"]) @ x, form["b"], atol=1e-9)
    if "G" in form:
        assert (form["G"] @ x <= np.add(form["h"], 1e-9)).all()


def test_sums_of_ones_stay_exact():
    _, constraint = from_qp(P, q, **FORMS["scaled ones"])
    assert constraint == SumBox(1.0, np.zeros(N), np.full(N, np.inf))
    _, constraint = from_qp(P, q, **FORMS["groups"])
    assert constraint.coefficients is None
    assert constraint.total.tolist() == [1.0, 2.0]
    _, constraint = from_qp(P, q, **FORMS["a range"])
    assert constraint.total == (0.5, 1.0)
    assert constraint.groups is None


def test_rows_that_are_multiples_up_to_rounding():
    row = np.full(N, 0.1) * 3
    _, constraint = from_qp(P, q, G=np.vstack([row, -np.full(N, 0.3)]), h=[0.3, 0.0])
    assert constraint.total == pytest.approx((0.0, 1.0))


@pytest.mark.parametrize("polars", [False, True], ids=["pandas", "polars"])
def test_labels(polars):
    order = RNG.permutation(N)
    names = [NAMES[k] for k in order]

    def frame(matrix, rows=None):
        if polars:
            return pl.DataFrame(matrix, schema=NAMES, orient="row")[names]
        return pd.DataFrame(matrix, index=rows, columns=NAMES)[names]

    def vector(values):
        return frame(values[None]) if polars else pd.Series(values, NAMES)[names]

    square = (
        pl.DataFrame(P, schema=NAMES, orient="row") if polars else pd.DataFrame(P, NAMES, NAMES)
    )
    upper, A = RNG.uniform(0.3, 1.0, N), rows([0, 2, 4], [1, 3, 5])
    right = np.array([1.0, 0.5])
    objective, constraint = from_qp(
        square, vector(q), A=frame(A, ["even", "odd"]),
        b=right if polars else pd.Series(right, ["even", "odd"])[::-1], lb=0.0, ub=vector(upper),
    )  # fmt: skip
    result = minimize(objective, constraint)
    expected = minimize(*from_qp(P, q, A=A, b=right, lb=0.0, ub=upper))
    np.testing.assert_allclose(result.x, expected.x, atol=1e-7)
    weights = result.weights
    assert list(weights.columns if polars else weights.index) == NAMES


def test_bounds_alone_may_have_labels():
    objective, constraint = from_qp(P, q, A=ONES, b=1.0, ub=pd.Series(np.ones(N), NAMES))
    assert minimize(objective, constraint).weights.index.tolist() == NAMES


REFUSED = {
    "an empty equation": (
        {"A": np.zeros((1, N)), "b": [2.0]},
        "row 0 of A has no nonzero entries, so its limit 2 cannot"
    ),
    "an empty inequality": (
        {"G": np.zeros((1, N)), "h": [-1.0]},
        "row 0 of G has no nonzero entries, so its limit -1 cannot"
    ),
    "G without h": ({"G": ONES}, "G is given without h"),
    "h without G": ({"h": [1.0]}, "h is given without G"),
    "A without b": ({"A": ONES}, "A is given without b"),
    "columns": (
        {"A": np.ones((1, 3)), "b": 1.0}, "A must have 6 columns, as P has, got shape (1, 3)"
    ),
    "length": ({"A": ONES, "b": [1.0, 2.0]}, "b must have length 1, got 2"),
    "not finite": ({"A": ONES * np.nan, "b": 1.0}, "A must be finite, but A[0, 0] = nan"),
    "infinite right-hand side": ({"A": ONES, "b": np.inf}, "b must be finite, but b[0] = inf"),
    "no number": ({"A": ONES, "b": 1.0, "lb": np.nan}, "lb must be a number, got nan"),
    "crossed bounds": (
        {"G": np.eye(N)[:1], "h": [-1.0], "lb": 0.0},
        "lower must not exceed upper, but lower[0] = 0, upper[0] = -1",
    ),
    "an empty range": (
        {"G": np.vstack([ONES, -ONES]), "h": [1.0, -2.0]}, "the range of total is empty: 2 > 1"
    ),
}  # fmt: skip


GENERAL = {
    "a row that crosses": {"A": rows([0, 1, 2]), "b": 1.0, "G": rows([1, 3]), "h": [0.2]},
    "a sector with other coefficients": {
        "A": ONES, "b": 1.0, "G": rows([1, 3], coefficients=W), "h": [0.1]
    },
    "a target return": {"A": np.vstack([ONES, W]), "b": [1.0, float(W.mean())]},
    "a sector beside one with other coefficients": {
        "A": ONES, "b": 1.0, "G": np.vstack([rows([1, 3], coefficients=W), rows([0, 2])]),
        "h": [0.1, 0.3],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", GENERAL)
def test_other_rows_are_general_rows(name):
    form = GENERAL[name]
    objective, constraint = from_qp(P, q, **form, lb=0.0)
    assert constraint.rows is not None
    result = minimize(objective, constraint)
    assert result.success
    assert result.fun == pytest.approx(optimum(P, q, **form, lb=0.0), abs=1e-7)


@pytest.mark.parametrize("name", REFUSED)
def test_problems_of_another_form_are_explained(name):
    form, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        minimize(*from_qp(P, q, **form))


def test_rows_and_variables_are_called_by_their_labels():
    labeled = pd.DataFrame(P, NAMES, NAMES)
    G = pd.DataFrame(rows([1, 3]), index=["tech"], columns=NAMES)
    result = minimize(*from_qp(labeled, q, G, [0.05], rows([0, 1]), [1.0], lb=0.0))
    assert list(result.row_multipliers) == ["row 'tech' of G"]
    assert result.row_multipliers["row 'tech' of G"] < 0
    with pytest.raises(ValueError, match="labels of h and G differ: 'tech' is not in h"):
        from_qp(labeled, q, G, pd.Series([0.5], ["energy"]))
    with pytest.raises(ValueError, match="labels of G and P differ: 'v0' is not in G"):
        from_qp(labeled, q, G.rename(columns={"v0": "w"}), [0.5])
