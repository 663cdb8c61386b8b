"""Batches of different quadratic programs: each is solved as `solve_qp` solves it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairstep import SumBox, solve_qp, solve_qps


def problems(count, n, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(count, 2 * n, n))
    return {
        "Q": np.matmul(F.transpose(0, 2, 1), F) / (2 * n),
        "c": rng.normal(size=(count, n)),
        "total": rng.uniform(-0.5, 1.0, count) * n,
        "lower": -1.0 - rng.random((count, n)),
        "upper": 1.0 + rng.random((count, n)) * 3,
    }


def one_by_one(arguments, per_problem, count):
    for k in range(count):
        yield solve_qp(**{a: v[k] if a in per_problem else v for a, v in arguments.items()})


def assert_same(batch, singles):
    for k, single in enumerate(singles):
        assert batch.status[k] == single.status
        np.testing.assert_array_equal(batch.x[k], single.x)
        np.testing.assert_array_equal(batch.gradient[k], single.gradient)
        assert batch.fun[k] == single.fun
        assert batch.n_iter[k] == single.n_iter
        assert batch.kkt_violation[k] == single.kkt_violation
        assert batch.suboptimality_bound[k] == single.suboptimality_bound
        np.testing.assert_array_equal(batch.sum_multiplier[k], single.sum_multiplier)
        assert batch.tolerance[k] == single.tolerance


NAMES = ("Q", "c", "total", "lower", "upper")


@settings(max_examples=60)
@given(
    st.integers(1, 40), st.integers(1, 12), st.integers(0, 1000),
    st.sets(st.sampled_from(NAMES), min_size=1), st.sampled_from([1, 2, None]),
)  # fmt: skip
def test_the_same_bits_as_single_solves(count, n, seed, per_problem, n_jobs):
    arguments = problems(count, n, seed)
    for name in set(arguments) - per_problem:
        arguments[name] = arguments[name][0]
    arguments["total"] = arguments["total"] if "total" in per_problem else 0.7
    batch = solve_qps(**arguments, n_jobs=n_jobs)
    assert_same(batch, one_by_one(arguments, per_problem, count))


def test_one_bad_problem_is_reported():
    arguments = problems(5, 4)
    arguments["lower"][1] = 10.0
    arguments["upper"][1] = 20.0
    arguments["Q"][3, 0, 0] = np.nan
    batch = solve_qps(**arguments)
    assert batch.status.tolist() == ["optimal", "invalid", "optimal", "invalid", "optimal"]
    assert set(batch.errors) == {1, 3}
    assert "infeasible: the bounds allow sums from 40 to 80" in batch.errors[1]
    assert "Q" in batch.errors[3]
    assert np.isnan(batch.x[[1, 3]]).all()
    assert np.isfinite(batch.x[[0, 2, 4]]).all()
    assert "2 invalid, 3 optimal" in repr(batch)


def test_different_numbers_of_variables():
    rng = np.random.default_rng(1)
    sizes = [3, 5, 3, 1, 8]
    Q = [np.diag(rng.random(n) + 1) for n in sizes]
    c = [rng.normal(size=n) for n in sizes]
    batch = solve_qps(Q, c)
    assert isinstance(batch.x, list)
    assert "5 problems of 1 to 8 variables" in repr(batch)
    assert_same(batch, (solve_qp(q, b) for q, b in zip(Q, c, strict=True)))


def asymmetric_and_unbounded():
    """One asymmetric by rounding, one with an unbounded variable, one ordinary."""
    arguments = problems(3, 20)
    arguments["Q"][0, 1, 0] *= 1 + 1e-15
    arguments["lower"][1, 3] = -np.inf
    return arguments


FACTORS, DIAGONALS = np.random.default_rng(2).normal(size=(3, 2, 4)), np.full((3, 4), 0.1)
SMALL = {name: problems(3, 4)[name] for name in ("Q", "c")}
GENERAL = {
    # Around the limit of the small solver.
    "299 variables": problems(3, 299),
    "300 variables": problems(3, 300),
    "301 variables": problems(3, 301),
    "the general solver": asymmetric_and_unbounded(),
    "factors": {"Q": list(zip(FACTORS, DIAGONALS, strict=True)), "total": 2.0},
    "groups": SMALL | {"groups": [0, 0, 1, 1], "group_upper": {0: 0.3}},
    "constraint": SMALL | {"constraint": SumBox(1.0, -1.0, 2.0, coefficients=[1.0, 2.0, 1.0, 0.5])},
    "l1": SMALL | {"l1": 0.1, "center": [0.25] * 4},
    "range": SMALL | {"total": (0.5, 1.5)},
    "totals": SMALL | {"groups": [0, 0, 1, 1], "total": np.array([0.4, 0.8])},
    "max_iter": SMALL | {"max_iter": 3, "l1": (0.1, 0.2)},
}


@pytest.mark.parametrize("name", GENERAL)
def test_every_form_has_the_bits_of_single_solves(name):
    arguments = GENERAL[name]
    per_problem = NAMES if name[0].isdigit() or "general" in name else ("Q", "c")
    assert_same(solve_qps(**arguments), one_by_one(arguments, per_problem, 3))


def test_factors_as_a_pair_of_stacks():
    pairs = solve_qps(list(zip(FACTORS, DIAGONALS, strict=True)), total=2.0)
    np.testing.assert_array_equal(solve_qps((FACTORS, DIAGONALS), total=2.0).x, pairs.x)


def test_starts_from_the_previous_solution():
    rng = np.random.default_rng(3)
    n = 320  # beyond the small-problem solver
    F = rng.normal(size=(2 * n, n))
    c = np.cumsum(np.vstack([rng.normal(size=n), 1e-3 * rng.normal(size=(5, n))]), axis=0)
    cold, warm = (solve_qps(F.T @ F, c, upper=0.01, x0=x0) for x0 in (None, "previous"))
    assert warm.success.all()
    np.testing.assert_allclose(warm.x, cold.x, atol=1e-7)
    assert warm.n_iter[1:].sum() < cold.n_iter[1:].sum()


def test_labels():
    names, dates = ["a", "b", "c"], pd.period_range("2020-01", periods=2, freq="M")
    risk = pd.DataFrame(np.diag([1.0, 2.0, 3.0]), index=names, columns=names)
    profit = pd.DataFrame([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], dates, names[::-1])
    batch = solve_qps(risk, -profit, upper=pd.Series({"c": 0.2, "a": 1.0, "b": 1.0}))
    weights = batch.weights
    assert list(weights.columns) == names
    assert weights.index.equals(dates)
    for k, date in enumerate(dates):
        single = solve_qp(risk, -profit.iloc[k], upper=pd.Series({"a": 1.0, "b": 1.0, "c": 0.2}))
        pd.testing.assert_series_equal(weights.loc[date], single.weights, check_names=False)


def test_a_time_limit_leaves_problems_unsolved():
    arguments = problems(2000, 60)
    batch = solve_qps(**arguments, time_limit=0.0)
    late = batch.status == "time_limit"
    assert late.sum() > 1000  # other threads may solve a few before the clock is first read
    assert np.isnan(batch.x[late]).all()
    assert (batch.status[~late] == "optimal").all()


def test_no_problems():
    batch = solve_qps(np.zeros((0, 3, 3)))
    assert batch.x.shape == (0, 3)
