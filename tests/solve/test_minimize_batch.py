"""Batches of objectives: the results of single solves, in one object."""

import pickle

import numpy as np
import pandas as pd
import pytest

from pairstep import (
    DOptimal,
    KLDivergence,
    LeastSquares,
    LogGrowth,
    Logistic,
    MixtureLikelihood,
    Quadratic,
    RiskParity,
    Simplex,
    SumBox,
    minimize,
    minimize_batch,
)


def ready_made(rng, n=5):
    rows = rng.normal(size=(30, n))
    return [
        LogGrowth(0.02 * rows), MixtureLikelihood(np.exp(rows)), DOptimal(rows[:n, :3]),
        RiskParity(rows.T @ rows), Logistic(rows, np.sign(rows[:, 0])),
        KLDivergence(np.exp(rows), np.exp(rows) @ np.full(n, 1 / n)), Quadratic(rows.T @ rows),
        LeastSquares(rows, rows[:, 0]),
    ]  # fmt: skip


def test_the_same_bits_as_single_solves():
    objectives = ready_made(np.random.default_rng(0))
    batch = minimize_batch(objectives)
    assert batch.success.all()
    for k, objective in enumerate(objectives):
        single = minimize(objective)
        np.testing.assert_array_equal(batch.x[k], single.x)
        assert batch.fun[k] == single.fun
        assert batch.suboptimality_bound[k] == single.suboptimality_bound
        assert batch.n_iter[k] == single.n_iter


def test_a_constraint_for_each_objective():
    objective = Quadratic(np.eye(3))
    batch = minimize_batch([objective] * 2, [Simplex(), SumBox(3.0, upper=1.0)])
    np.testing.assert_allclose(batch.x, [[1 / 3] * 3, [1.0] * 3])


def test_different_sizes():
    batch = minimize_batch([Quadratic(np.eye(2)), Quadratic(np.eye(4))])
    assert [len(x) for x in batch.x] == [2, 4]
    derivatives = batch.vjp([[1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert [Q.shape for Q in derivatives["Q"]] == [(2, 2), (4, 4)]


def test_one_bad_objective_is_reported():
    batch = minimize_batch([Quadratic(np.eye(2)), None, Quadratic(np.eye(2))])
    assert batch.status.tolist() == ["optimal", "invalid", "optimal"]
    assert "objective" in batch.errors[1]
    with pytest.raises(ValueError, match="problem 1 is invalid"):
        batch.vjp(np.zeros((3, 2)))


def test_starts():
    rng = np.random.default_rng(1)
    tables = 0.02 * rng.normal(size=(4, 60, 6)).cumsum(axis=0)
    objectives = [LogGrowth(table) for table in tables]
    cold = minimize_batch(objectives)
    warm = minimize_batch(objectives, x0="previous")
    given = minimize_batch(objectives, x0=cold.x)
    np.testing.assert_allclose(warm.fun, cold.fun, rtol=1e-9, atol=1e-12)
    assert given.n_iter.sum() <= cold.n_iter.sum()


def test_labels_that_all_objectives_share():
    rng = np.random.default_rng(2)
    tables = [pd.DataFrame(0.01 * rng.normal(size=(20, 2)), columns=["a", "b"]) for _ in range(2)]
    batch = minimize_batch([LogGrowth(table) for table in tables])
    assert list(batch.weights.columns) == ["a", "b"]
    mixed = minimize_batch([LogGrowth(tables[0]), Quadratic(np.eye(2))])
    assert mixed.variables.labels is None


def test_derivatives_of_smooth_objectives():
    rng = np.random.default_rng(3)
    tables = 0.05 * rng.normal(size=(3, 40, 4))
    batch = minimize_batch([LogGrowth(table) for table in tables])
    v = rng.normal(size=(3, 4))
    derivatives = batch.vjp(v)
    for k, table in enumerate(tables):
        single = minimize(LogGrowth(table)).vjp(v[k])
        np.testing.assert_array_equal(derivatives["c"][k], single["c"])
    assert np.shape(derivatives["total"]) == ()  # shared
    change = rng.normal(size=(3, 4))
    np.testing.assert_allclose(
        np.sum(batch.jvp(c=change) * v), np.sum(derivatives["c"] * change), rtol=1e-10
    )


def test_a_pickled_batch_forgets_its_problems():
    batch = pickle.loads(pickle.dumps(minimize_batch([Quadratic(np.eye(2))])))
    assert batch.success.all()
    with pytest.raises(ValueError, match="after pickling"):
        batch.vjp(np.zeros((1, 2)))


def test_a_time_limit_leaves_problems_unsolved():
    batch = minimize_batch([Quadratic(np.eye(2))] * 3, time_limit=0.0)
    assert set(batch.status) == {"time_limit"}
    assert np.isnan(batch.x).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "objectives is empty"),
        (([Quadratic(np.eye(2))], [Simplex()] * 2), "1 objectives and 2 constraints"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimize_batch(*arguments)


def test_wrong_starts():
    with pytest.raises(ValueError, match="2 points, one per objective, got 1"):
        minimize_batch([Quadratic(np.eye(2))] * 2, x0=[[0.5, 0.5]])
    with pytest.raises(ValueError, match='"previous"'):
        minimize_batch([Quadratic(np.eye(2))], x0="last")


def test_progress_is_printed(capsys):
    minimize_batch([Quadratic(np.eye(2))], verbose=True)
    assert "1 of 1 problems optimal" in capsys.readouterr().out
