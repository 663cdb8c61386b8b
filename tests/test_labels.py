"""Labeled input in any order gives labeled results, compared with the problem in sorted arrays."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import pairstep
from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    Simplex,
    SimplexRegressor,
    Smooth,
    SumBox,
    minimize,
    path,
    simplex_lstsq,
    solve_qp,
)  # fmt: skip
from pairstep.labels import Axis, aligned

RNG = np.random.default_rng(10)
N = 7
NAMES = [f"asset {k}" for k in "dgacfbe"]
SHUFFLED = RNG.permutation(N)
ROOT = RNG.normal(size=(30, N)) * RNG.uniform(0.5, 2.0, N)
RISK = ROOT.T @ ROOT / 30
PROFIT = RNG.normal(size=N)
UPPER = RNG.uniform(0.2, 0.6, N)
LOWER = RNG.uniform(0.0, 0.05, N)
HELD = RNG.dirichlet(np.ones(N))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
GROUPS = np.array([5, 3, 5, 3, 5, 3, 5])
DAYS = pd.date_range("2020-01-01", periods=30)


def frame(matrix, names=NAMES):
    return pd.DataFrame(matrix, index=names, columns=names)


def series(values, names=NAMES):
    """A labeled vector in another order."""
    return pd.Series(values, index=names).iloc[SHUFFLED]


def row(values, names=NAMES):
    """The same in polars, where a vector with labels is a frame of one row."""
    return pl.DataFrame([values], schema=names, orient="row")[[names[k] for k in SHUFFLED]]


VECTORS = pytest.mark.parametrize("vector", [series, row], ids=["pandas", "polars"])


def same(result, expected):
    np.testing.assert_allclose(result.x, expected.x, atol=1e-7)
    assert result.fun == pytest.approx(expected.fun, rel=1e-9)


# ------------------------------------------------------------------ every argument


ARGUMENTS = {
    "c": PROFIT, "lower": LOWER, "upper": UPPER, "coefficients": WEIGHTS, "groups": GROUPS,
    "l1": np.abs(PROFIT) / 10, "center": HELD, "x0": HELD,
}  # fmt: skip


@VECTORS
@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_of_solve_qp_is_aligned(name, vector):
    values = ARGUMENTS[name]
    options = {"l1": 0.05} if name == "center" else {}
    if name == "groups":
        options["total"] = [1.0, 2.0]
    expected = solve_qp(RISK, **{name: values}, **options)
    result = solve_qp(frame(RISK), **{name: vector(values)}, **options)
    same(result, expected)
    assert result.weights.index.tolist() == NAMES
    np.testing.assert_array_equal(result.weights, result.x)


@pytest.mark.parametrize("name", sorted(set(ARGUMENTS) - {"groups", "center", "x0"}))
def test_the_first_labeled_argument_labels_the_others(name):
    """A matrix without labels is in the order of the first labeled argument."""
    values = ARGUMENTS[name]
    result = solve_qp(RISK, **{name: pd.Series(values, NAMES)}, center=series(HELD), total=0.9)
    same(result, solve_qp(RISK, **{name: values}, center=HELD, total=0.9))
    assert result.weights.index.tolist() == NAMES


@VECTORS
@pytest.mark.parametrize("name", ["lower", "upper", "coefficients", "groups"])
def test_arrays_beside_labels_are_in_the_order_of_the_matrix(name, vector):
    """Not in the order of the first labeled bound."""
    values = {"lower": LOWER, "upper": UPPER, "coefficients": WEIGHTS, "groups": GROUPS}
    total = [0.6, 0.4]
    mixed = {key: value if key == name else vector(value) for key, value in values.items()}
    same(solve_qp(frame(RISK), total=total, **mixed), solve_qp(RISK, total=total, **values))
    del mixed["coefficients"], values["coefficients"]
    A, b = pd.DataFrame(ROOT, columns=NAMES), ROOT @ HELD
    expected = simplex_lstsq(ROOT, b, total=total, **values)
    same(simplex_lstsq(A, b, total=total, **mixed), expected)
    batch = simplex_lstsq(A, np.tile(b, (3, 1)).T, total=total, **mixed)
    np.testing.assert_allclose(batch.x, np.tile(expected.x, (3, 1)), atol=1e-7)


def test_rows_and_columns_of_a_matrix_may_be_in_different_orders():
    shuffled = frame(RISK).iloc[SHUFFLED]
    result = solve_qp(shuffled, -PROFIT)
    assert result.weights.index.tolist() == NAMES  # columns name the variables
    same(result, solve_qp(RISK, -PROFIT))


@VECTORS
def test_a_polars_matrix_has_its_rows_in_the_order_of_its_columns(vector):
    risk = pl.DataFrame(RISK, schema=NAMES, orient="row")
    result = solve_qp(risk, vector(-PROFIT), upper=vector(UPPER))
    same(result, solve_qp(RISK, -PROFIT, upper=UPPER))
    assert isinstance(result.weights, pl.DataFrame)
    assert result.weights.columns == NAMES
    assert result.weights.row(0) == tuple(result.x)


def test_a_polars_series_keeps_its_order():
    result = solve_qp(frame(RISK), pl.Series("profit", -PROFIT))
    same(result, solve_qp(RISK, -PROFIT))


def test_weights_can_be_passed_back():
    for risk in (frame(RISK), pl.DataFrame(RISK, schema=NAMES, orient="row")):
        first = solve_qp(risk, -PROFIT)
        again = solve_qp(risk, -PROFIT, x0=first.weights)
        same(again, first)
        assert again.n_iter <= 1


@VECTORS
def test_labeled_factor_models(vector):
    F, D = RNG.normal(size=(3, N)), RNG.uniform(0.1, 1.0, N)
    factors = pd.DataFrame(F, index=["market", "size", "value"], columns=NAMES)
    same(solve_qp((factors, vector(D)), vector(-PROFIT)), solve_qp((F, D), -PROFIT))
    model = FactorModel(factors, vector(D), vector(-PROFIT))
    same(minimize(model, Simplex()), solve_qp((F, D), -PROFIT))


@pytest.mark.parametrize(
    "Q", [RISK, scipy.sparse.csr_array(RISK), (ROOT, 0.1)], ids=["dense", "sparse", "factors"]
)
def test_bounds_alone_label_the_weights(Q):
    result = solve_qp(Q, upper=pd.Series(UPPER, index=NAMES))
    assert result.weights.index.tolist() == NAMES


def test_without_labels_weights_are_the_array():
    result = solve_qp(RISK)
    assert result.weights is result.x


def test_the_index_of_the_input_is_returned():
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["sector", "number"])
    result = solve_qp(pd.DataFrame(np.eye(4), index=index, columns=index))
    pd.testing.assert_index_equal(result.weights.index, index)
    assert result.weights["x"].index.tolist() == [1, 2]
    shuffled = pd.Series([0.7, 0.1, 0.1, 0.1], index=index[[3, 0, 1, 2]])
    bounded = solve_qp(pd.DataFrame(np.eye(4), index, index), lower=shuffled)
    assert bounded.weights[("y", 2)] == 0.7


def test_changing_the_weights_does_not_change_x():
    result = solve_qp(frame(RISK))
    weights = result.weights
    weights.iloc[0] = 99.0
    assert result.x[0] != 99.0


def test_nullable_pandas_dtypes():
    profit = pd.Series(PROFIT, NAMES).convert_dtypes()
    assert profit.dtype == "Float64"
    same(solve_qp(frame(RISK).convert_dtypes(), -profit), solve_qp(RISK, -PROFIT))
    whole = pd.Series([1, 0, 0, 0, 0, 0, 0], NAMES, dtype="Int64")
    same(solve_qp(frame(RISK), whole), solve_qp(RISK, whole.to_numpy(float)))
    profit.iloc[2] = pd.NA
    with pytest.raises(ValueError, match=r"c must be finite, but c\[2\] = nan"):
        solve_qp(frame(RISK), profit)


# ------------------------------------------------------------------ objectives and constraints


@VECTORS
def test_objective_and_constraint_are_aligned_with_each_other(vector):
    for objective in (Quadratic(frame(RISK), vector(-PROFIT)), Quadratic(RISK, -PROFIT)):
        constraint = SumBox(1.0, vector(LOWER), vector(UPPER))
        order = np.arange(N) if objective.variables.labels is not None else SHUFFLED
        result = minimize(objective, constraint, x0=None)
        expected = minimize(Quadratic(RISK, -PROFIT), SumBox(1.0, LOWER[order], UPPER[order]))
        same(result, expected)
        names = result.weights.index if vector is series or order is not SHUFFLED else None
        names = result.weights.columns if names is None else names
        assert list(names) == [NAMES[k] for k in order]


def test_constraints_align_their_own_arguments():
    box = SumBox(1.0, pd.Series(LOWER, NAMES), series(UPPER), series(WEIGHTS), series(GROUPS))
    assert box == SumBox(1.0, pd.Series(LOWER, NAMES), UPPER, WEIGHTS, GROUPS)
    assert box != SumBox(1.0, LOWER, UPPER, WEIGHTS, GROUPS)  # which has no labels
    assert hash(box) == hash(SumBox(1.0, pd.Series(LOWER, NAMES), UPPER, WEIGHTS, GROUPS))
    copied = pickle.loads(pickle.dumps(box))
    assert copied == box
    assert copied.variables.names == tuple(NAMES)
    point = box.project(series(HELD))
    np.testing.assert_array_equal(point, box.project(HELD))


def test_totals_are_aligned_with_the_groups():
    total = pd.Series({5: 2.0, 3: 1.0})
    assert SumBox(total, groups=GROUPS) == SumBox([1.0, 2.0], groups=GROUPS)
    ranged = SumBox((total / 2, total), groups=GROUPS)
    assert ranged == SumBox(([0.5, 1.0], [1.0, 2.0]), groups=GROUPS)
    with pytest.raises(ValueError, match="labels of total and groups differ: 5 is not in total"):
        SumBox(pd.Series({4: 2.0, 3: 1.0}), groups=GROUPS)


@VECTORS
def test_l1_terms_are_aligned_with_their_objective(vector):
    costs = np.abs(PROFIT) / 5
    labeled = L1Penalized(Quadratic(frame(RISK)), vector(costs), vector(HELD))
    same(
        minimize(labeled, Simplex()),
        minimize(L1Penalized(Quadratic(RISK), costs, HELD), Simplex()),
    )
    twice = L1Penalized(L1Penalized(Quadratic(RISK), pd.Series(costs, NAMES)), vector(costs))
    assert twice.l1_terms[0] == pytest.approx(2 * costs)


def test_a_linear_term_may_be_exchanged():
    objective = Quadratic(frame(RISK)).with_linear(series(-PROFIT))
    np.testing.assert_array_equal(objective.c, -PROFIT)
    plain = Quadratic(RISK)
    assert plain.with_linear(series(PROFIT)).variables.labels is not None
    assert plain.variables.labels is None


def test_smooth_functions_get_labels_from_their_constants_or_bounds():
    smooth = Smooth(
        lambda x: float(x @ RISK @ x / 2),
        lambda x: RISK @ x,
        lipschitz=pd.Series(np.diag(RISK), NAMES),
    )
    assert minimize(smooth, Simplex()).weights.index.tolist() == NAMES
    plain = Smooth(lambda x: float(x @ RISK @ x / 2), lambda x: RISK @ x)
    result = minimize(plain, SumBox(upper=pd.Series(UPPER, NAMES)), x0=None)
    assert result.weights.index.tolist() == NAMES
    start = minimize(plain, Simplex(), x0=pd.Series(HELD, NAMES))
    assert start.weights.index.tolist() == NAMES


READY_MADE = {
    "mixture": lambda A, rows: pairstep.MixtureLikelihood(A, rows),
    "growth": lambda A, rows: pairstep.LogGrowth(A - 1, rows),
    "logistic": lambda A, rows: pairstep.Logistic(A, rows > 0.5, rows),
    "divergence": lambda A, rows: pairstep.KLDivergence(A, rows),
}


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_objectives_are_aligned(name):
    A, rows = RNG.random((30, 7)) + 0.5, RNG.random(30)
    expected = minimize(READY_MADE[name](A, rows), Simplex())
    labeled = pd.DataFrame(A, index=DAYS, columns=NAMES)
    shuffled = pd.Series(rows, index=DAYS).sample(frac=1.0, random_state=0)
    result = minimize(
        READY_MADE[name](labeled, shuffled), SumBox(upper=pd.Series(2.0, NAMES[::-1]))
    )
    assert result.weights.index.tolist() == NAMES
    np.testing.assert_allclose(result.x, expected.x, atol=1e-6)


def test_designs_and_risk_parity_are_labeled():
    places = pd.DataFrame(RNG.normal(size=(7, 2)), index=NAMES)
    assert minimize(pairstep.DOptimal(places), Simplex()).weights.index.tolist() == NAMES
    risk = pd.DataFrame(RISK, index=NAMES, columns=NAMES)
    budgets = pd.Series(np.arange(1.0, 8.0), NAMES)
    result = minimize(pairstep.RiskParity(risk, budgets[::-1]), Simplex())
    expected = minimize(pairstep.RiskParity(RISK, budgets.to_numpy()), Simplex())
    np.testing.assert_allclose(result.weights[NAMES], expected.x, atol=1e-9)


def test_groups_are_aligned_and_their_multipliers_labeled():
    sector = pd.Series(["x", "y", "x", "z", "y", "z", "x"], NAMES)
    limits = {"x": (0.0, 0.2), "z": (0.5, 1.0)}
    risk = pd.DataFrame(RISK, index=NAMES, columns=NAMES)
    result = solve_qp(risk, groups=sector[::-1], group_total=limits)
    expected = solve_qp(RISK, groups=sector.tolist(), group_total=limits)
    np.testing.assert_allclose(result.weights[NAMES], expected.x, atol=1e-9)
    sums = result.weights.groupby(sector).sum()
    assert sums["x"] <= 0.2 + 1e-15
    assert sums["z"] >= 0.5 - 1e-15
    # Stationarity: the gradient is the sum of the multipliers.
    pull = result.sum_multiplier + sector.map(result.group_multipliers)
    np.testing.assert_allclose(result.gradient, pull + result.bound_multipliers, atol=1e-7)


@pytest.mark.parametrize("polars", [False, True], ids=["pandas", "polars"])
def test_frontiers_are_aligned(polars):
    mean = RNG.normal(size=7)
    expected = pairstep.efficient_frontier(RISK, mean, n_points=4)
    if polars:
        risk = pl.DataFrame(RISK, schema=NAMES)
        earns = pl.DataFrame(mean[None, ::-1], schema=NAMES[::-1], orient="row")
    else:
        risk = pd.DataFrame(RISK, index=NAMES, columns=NAMES)
        earns = pd.Series(mean, NAMES)[::-1]
    limit = pd.Series(2.0, NAMES).sample(frac=1.0, random_state=0)
    frontier = pairstep.efficient_frontier(risk, earns, SumBox(upper=limit), n_points=4)
    np.testing.assert_allclose(frontier.x, expected.x, atol=1e-6)
    assert list(frontier.weights.columns) == NAMES
    assert frontier.weights.shape == (4, 7)
    assert expected.weights.shape == (4, 7)


LABELED = {
    "quadratic": Quadratic(frame(RISK)),
    "least squares": LeastSquares(pd.DataFrame(ROOT, columns=NAMES), np.ones(30)),
    "factors": FactorModel(pd.DataFrame(ROOT, columns=NAMES), 0.1),
    "l1_terms": L1Penalized(Quadratic(RISK), pd.Series(np.abs(PROFIT), NAMES)),
    "smooth": Smooth(
        lambda x: x @ RISK @ x, lambda x: 2 * RISK @ x, lipschitz=pd.Series(1.0, NAMES)
    ),
    "mixture": pairstep.MixtureLikelihood(pd.DataFrame(np.abs(ROOT), columns=NAMES)),
    "design": pairstep.DOptimal(pd.DataFrame(ROOT[:N, :2], NAMES)),
    "parity": pairstep.RiskParity(frame(RISK)),
}


@VECTORS
@pytest.mark.parametrize("name", LABELED)
def test_objectives_are_evaluated_at_labeled_points(name, vector):
    objective = LABELED[name]
    assert objective.value(vector(HELD)) == objective.value(HELD)
    np.testing.assert_array_equal(objective.gradient(vector(HELD)), objective.gradient(HELD))
    with pytest.raises(ValueError, match=r"labels of x and .* differ: 'asset d' is not in x"):
        objective.gradient(pd.Series(HELD, ["odd", *NAMES[1:]]))


@VECTORS
def test_rules_accept_labeled_points(vector):
    expected = pairstep.propose("gs-1", PROFIT, HELD, 0.0, UPPER + 1, alpha=0.1)
    found = pairstep.propose(
        "gs-1", vector(PROFIT), pd.Series(HELD, NAMES), 0.0, vector(UPPER + 1), alpha=0.1
    )
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.delta, expected.delta)


# ------------------------------------------------------------------ groups

SECTORS = ["x", "y", "x", "z", "y", "z", "x"]
LIMITS = {
    "pairs": pd.Series({"z": (0.5, 1.0), "x": (0.0, 0.2)}),
    "rows": pd.DataFrame({"low": [0.5, 0.0], "high": [1.0, 0.2]}, index=["z", "x"]),
    "columns": pl.DataFrame({"z": [0.5, 1.0], "x": [0.0, 0.2]}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_of_groups_may_be_frames(name):
    mapping = {"x": (0.0, 0.2), "z": (0.5, 1.0)}
    assert SumBox(groups=SECTORS, group_total=LIMITS[name]) == SumBox(
        groups=SECTORS, group_total=mapping
    )


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_days_are_groups(unit):
    day, other = pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01 12:00")
    days = pd.Series([day, other] * 2, list("abcd")).astype(f"datetime64[{unit}]")
    for groups in (days, days.to_numpy(), pd.Index(days)):
        result = solve_qp(np.eye(4), groups=groups, group_total={day: (0.0, 0.2)})
        assert result.x[[0, 2]].sum() == pytest.approx(0.2)
        assert result.group_multipliers[other] == 0
    later = days - day
    result = solve_qp(np.eye(4), groups=later, group_total={other - day: (0.9, 1.0)})
    assert result.x[[1, 3]].sum() == pytest.approx(0.9)


def test_frontiers_have_equality_and_a_repr():
    first, second = (pairstep.efficient_frontier(RISK, PROFIT, n_points=3) for _ in range(2))
    assert first == first
    assert len({first, second}) == 2
    lines = repr(first).splitlines()
    assert lines[0] == "Frontier: 3 portfolios of 7 assets"
    assert f"{first.risk[0]:.6g} to {first.risk[-1]:.6g}" in lines[2]
    nothing = pairstep.efficient_frontier(RISK, PROFIT, target_return=[])
    assert nothing.x.shape == (0, N)
    assert "no target" in repr(nothing)


# ------------------------------------------------------------------ least squares


def test_rows_of_least_squares_are_aligned():
    A = pd.DataFrame(ROOT, index=DAYS, columns=NAMES)
    b = pd.Series(ROOT @ HELD + 0.1 * RNG.normal(size=30), index=DAYS)
    expected = simplex_lstsq(ROOT, b.to_numpy())
    shuffled = b.sample(frac=1.0, random_state=1)
    same(simplex_lstsq(A, shuffled), expected)
    same(simplex_lstsq(ROOT, b), expected)  # rows without labels keep their order
    same(minimize(LeastSquares(A, shuffled), Simplex()), expected)
    with pytest.raises(ValueError, match=r"labels of b and A differ: Timestamp\('2020-01-30"):
        simplex_lstsq(A, b.iloc[:-1])


def test_days_may_repeat_where_nothing_needs_an_order():
    A = pd.DataFrame(ROOT, index=[0] * 30, columns=NAMES)
    b = ROOT @ HELD
    same(simplex_lstsq(A, b), simplex_lstsq(ROOT, b))
    same(simplex_lstsq(A, pd.Series(b, index=A.index)), simplex_lstsq(ROOT, b))
    with pytest.raises(ValueError, match="b cannot be aligned: A has the label 0 twice"):
        simplex_lstsq(A, pd.Series(b, index=DAYS))


def test_batches_have_labels_on_both_sides():
    A = pd.DataFrame(ROOT, index=DAYS, columns=NAMES)
    B = pd.DataFrame(RNG.normal(size=(30, 3)), index=DAYS, columns=["u", "v", "w"])
    expected = simplex_lstsq(ROOT, B.to_numpy(), upper=UPPER)
    batch = simplex_lstsq(A, B.sample(frac=1.0, random_state=2), upper=series(UPPER))
    np.testing.assert_allclose(batch.x, expected.x, atol=1e-7)
    assert batch.weights.columns.tolist() == NAMES
    assert batch.weights.index.tolist() == ["u", "v", "w"]
    numbers = simplex_lstsq(A, B.to_numpy())
    assert numbers.weights.index.tolist() == [0, 1, 2]
    by_bounds = simplex_lstsq(ROOT, B.to_numpy(), upper=pd.Series(UPPER, NAMES))
    assert by_bounds.weights.columns.tolist() == NAMES
    assert simplex_lstsq(ROOT, B).weights.shape == (3, N)


def test_a_polars_batch_has_a_row_per_right_hand_side():
    A = pl.DataFrame(ROOT, schema=NAMES, orient="row")
    B = pl.DataFrame(RNG.normal(size=(30, 3)), schema=["u", "v", "w"], orient="row")
    batch = simplex_lstsq(A, B)
    assert batch.weights.shape == (3, N)
    assert batch.weights.columns == NAMES
    np.testing.assert_array_equal(batch.weights.to_numpy(), batch.x)


def test_bounds_of_the_regressor_are_aligned_with_its_features():
    X = pd.DataFrame(ROOT, columns=NAMES)
    y = ROOT @ HELD
    model = SimplexRegressor(upper=series(UPPER), lower=series(LOWER)).fit(X, y)
    expected = SimplexRegressor(upper=UPPER, lower=LOWER).fit(ROOT, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
    assert model.result_.weights.index.tolist() == NAMES
    with pytest.raises(ValueError, match="labels of lower and X differ"):
        SimplexRegressor(lower=pd.Series(LOWER)).fit(X, y)


# ------------------------------------------------------------------ paths


def test_paths_carry_labels_from_solve_to_solve():
    """The order of labels in objectives and constraints does not matter."""
    expected = [
        r.x
        for r in path(Quadratic(RISK, -PROFIT), lambda t: SumBox(t, 0.0, UPPER), over=[1.0, 1.5])
    ]

    def objective(t):
        order = np.arange(N) if t < 1.2 else SHUFFLED
        return Quadratic(frame(RISK).iloc[order, order], series(-PROFIT))

    for box in (lambda t: SumBox(t, 0.0, series(UPPER)), lambda t: SumBox(t, 0.0, 0.6)):
        found = list(path(objective, box, over=[1.0, 1.5]))
        assert found[1].weights.index.tolist() == [NAMES[k] for k in SHUFFLED]
        if box(1.0).size is not None:
            for result, x in zip(found, expected, strict=True):
                np.testing.assert_allclose(result.weights[NAMES], x, atol=1e-7)
        assert all(result.success for result in found)
    ends = list(path(objective, SumBox(1.0, 0.0, series(UPPER)), over=[1.0, 1.5]))
    np.testing.assert_allclose(ends[0].weights[NAMES], ends[1].weights[NAMES], atol=1e-7)


# ------------------------------------------------------------------ input errors


def test_labels_that_differ_are_refused_with_the_first_three():
    other = pd.Series(PROFIT, index=[*NAMES[:2], "v", "w", "x", "y", "z"])
    with pytest.raises(ValueError, match="labels") as said:
        solve_qp(frame(RISK), other)
    assert str(said.value) == (
        "the labels of c and Q differ: 'asset a', 'asset c', 'asset f', ... are not in c; "
        "'v', 'w', 'x', ... are not in Q"
    )


def test_repeated_labels_need_no_order_where_all_agree():
    twice = pd.DataFrame(np.eye(2), index=["a", "a"], columns=["a", "a"])
    same(solve_qp(twice, pd.Series([1.0, 0.0], ["a", "a"])), solve_qp(np.eye(2), [1.0, 0.0]))


def test_rows_and_columns_with_different_labels_are_refused():
    odd = pd.DataFrame(RISK, index=["odd", *NAMES[1:]], columns=NAMES)
    with pytest.raises(ValueError, match="labels of the rows and columns of Q differ") as said:
        solve_qp(odd)
    assert str(said.value).endswith("'asset d' is not in its rows; 'odd' is not in its columns")


# ------------------------------------------------------------------ axes


def test_an_axis_is_named_once():
    axis = Axis()
    assert aligned("a", 3.0, axis) == 3.0
    assert axis.names is None
    aligned("a", pd.Series([1, 2], ["x", "y"]), axis)
    assert (axis.names, axis.source) == (("x", "y"), "a")
    other = Axis()
    other.adopt(axis)
    axis.adopt(Axis(["z"], "z"))
    assert other.names == axis.names == ("x", "y")


def test_a_custom_objective_may_use_any_attribute_names():
    class Own(Quadratic):
        def __init__(self, Q, variables):
            super().__init__(Q)
            self.__dict__["variables"] = variables

    result = minimize(Own(RISK, ["anything"]), SumBox(upper=pd.Series(UPPER, NAMES)))
    assert result.weights.index.tolist() == NAMES


def test_nothing_is_imported_that_was_not_passed():
    script = """
        import sys, numpy as np, pairstep
        pairstep.solve_qp(np.eye(3), upper=[0.5, 0.5, 0.5]).weights
        pairstep.simplex_lstsq(np.eye(3), np.eye(3)).weights
        heavy = {"pandas", "polars", "sklearn", "matplotlib", "joblib"} & set(sys.modules)
        assert not heavy, heavy
    """
    code = "\n".join(line.strip() for line in script.splitlines())
    subprocess.run([sys.executable, "-c", code], check=True)
