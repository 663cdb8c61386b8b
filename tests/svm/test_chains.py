"""Duals that are solved for several C in one call: the solutions are those of separate solves.

Searches show only scores, so the duals are compared where they are solved.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles import sum_error_in_ulps
from sklearn.metrics.pairwise import rbf_kernel

from pairstep import _core
from pairstep.result import Status
from pairstep.svm import duals
from pairstep.svm.engine import Kernel, solve, solve_chains

CS = np.array([0.03, 0.5, 4.0, 4.0, 900.0])
OPTIONS = {
    "tol": 1e-3, "max_iter": 10**7, "time_limit": math.inf, "cache_bytes": 10**8, "threads": 1,
    "cold": True, "keep_going": None,
}  # fmt: skip


def problem(n, kind, seed=0, weights=None):
    """Return a kernel matrix, and a function that returns the dual of some rows for one C."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    rows = rng.permutation(n)[: max(2 * n // 3, 4)]
    positive, negative = (rows[(score[rows] > 0) == side] for side in (True, False))
    weights = np.ones(n) if weights is None else weights

    def dual(C):
        limit = duals.limits(C, weights)
        if kind == "classification":
            return duals.c_classification(positive, negative, limit)
        found = duals.epsilon_regression(score[rows], limit[rows], 0.1)
        found.rows = rows[found.rows]
        return found

    return rbf_kernel(X, gamma=0.3), dual


def chains(K, dual, Cs=CS, dtype=np.float32, columns=None, **options):
    columns = np.arange(len(K)) if columns is None else columns
    return solve_chains(
        K.astype(dtype), Kernel("precomputed"), dual, Cs, columns,
        **(OPTIONS | {"dtype": dtype, "arenas": _core.Arenas()} | options),
    )  # fmt: skip


def objective(dual, solution):
    l1 = 0.0 if dual.l1 is None else dual.l1 @ np.abs(solution.z)
    return solution.z @ (solution.gradient + dual.linear) / 2 + l1


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Below and above the limits for small duals (128) and for duals in one working set (512 and 1024).
@pytest.mark.parametrize("n", [6, 190, 194, 765, 774, 1530, 1545])
def test_chains_solve_what_separate_solves_solve(kind, dtype, n):
    K, dual = problem(n, kind)
    Cs = CS if n < 1000 else CS[:-1]  # the largest C takes long
    found = chains(K, [dual(1.0)], Cs, dtype=dtype)
    assert found.reached == len(Cs)
    for c, C in enumerate(Cs):
        one = dual(C)
        solution = found.solutions(c)[0]
        z = np.zeros(n)
        z[one.rows] = solution.z
        exact = K.astype(dtype).astype(np.float64) @ z
        assert solution.status == Status.OPTIMAL
        assert ((one.lower <= solution.z) & (solution.z <= one.upper)).all()
        assert sum_error_in_ulps(solution.z, 0.0) <= 1
        np.testing.assert_allclose(solution.gradient, exact[one.rows] + one.linear, atol=1e-8 * C)
        np.testing.assert_allclose(found.sums[0, c], exact, atol=1e-9 * max(C, 1.0))
        given = {name: value for name, value in OPTIONS.items() if name != "cold"}
        (alone,) = solve(
            K.astype(dtype), Kernel("precomputed"), [one], dtype=dtype, cold=True, **given
        )
        gap = abs(objective(one, solution) - objective(one, alone))
        assert gap <= max(solution.duality_gap, alone.duality_gap)


def test_a_chain_may_be_continued():
    K, dual = problem(500, "classification")
    whole, first = chains(K, [dual(1.0)]), chains(K, [dual(1.0)], Cs=CS[:2])
    later = dual(1.0)
    later.z, later.gradient = first.last
    rest = chains(K, [later], Cs=CS[2:], C_before=CS[1])
    for c in range(2, len(CS)):
        np.testing.assert_array_equal(whole.z[c], rest.z[c - 2])


def test_weights_of_zero_and_an_infinite_C():
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 300)
    weights[::3] = 0.0
    K, dual = problem(300, "classification", weights=weights)
    found = chains(K + 0.1 * np.eye(300), [dual(1.0)], Cs=np.array([1.0, math.inf]))
    assert found.reached == 2
    assert not np.isnan(found.z).any()
    assert found.solutions(1)[0].status == Status.OPTIMAL


def test_a_stopped_chain_says_what_it_reached():
    K, dual = problem(1500, "classification")
    many = np.geomspace(0.03, 900.0, 300)  # take longer than the first call of the callback
    stopped = chains(K, [dual(1.0)], Cs=many, keep_going=lambda *_: False, tol=1e-9)
    assert stopped.reached < len(many)
    limited = chains(K, [dual(1.0)], time_limit=0.0)
    assert limited.reached == 0


def test_every_instruction_set(instruction_set):
    """The first steps in float32 are compiled for each; sizes are around the widths of vectors."""
    for n in (7, 24, 25, 47, 48, 49, 400):
        K, dual = problem(n, "regression", seed=n)
        found = chains(K, [dual(1.0)])
        assert all(found.solutions(c)[0].status == Status.OPTIMAL for c in range(len(CS)))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_kernels_of_any_scale(scale):
    """Steps in float32 must not stop a solve whose numbers are far from 1."""
    K, dual = problem(400, "classification")
    found = chains(scale * K, [dual(1.0)], Cs=CS / scale, dtype=np.float64)
    single = chains(scale * K, [dual(1.0)], Cs=CS / scale)
    for c in range(len(CS)):
        assert found.solutions(c)[0].status == Status.OPTIMAL
        assert single.solutions(c)[0].status == Status.OPTIMAL


def test_invalid_chains_raise():
    K, dual = problem(50, "classification")
    with pytest.raises(ValueError, match="in range"):
        chains(K, [dual(1.0)], columns=np.array([50]))
    with pytest.raises(ValueError, match="one group"):
        chains(K, [duals.nu_classification(np.arange(20), np.arange(20, 50), np.ones(50), 0.3)])


@pytest.mark.parametrize("steps", [7, 16, 31])
def test_a_scaled_start_keeps_variables_at_their_bounds(steps):
    Cs = np.geomspace(0.1, 100, steps).tolist()
    ratios = [later / C for C, later in pairwise(Cs)]
    assert any(C * ratio != later for C, later, ratio in zip(Cs, Cs[1:], ratios, strict=False))
    for (C, later), ratio in zip(pairwise(Cs), ratios, strict=True):
        positive, negative = np.arange(4), np.arange(4, 8)
        dual = duals.c_classification(positive, negative, duals.limits(later, np.ones(8)))
        dual.z[:] = np.where(dual.upper > 0, C, -C)
        gradient = dual.linear + 1e-6 * dual.z  # little curvature: the full ratio is best
        _core.start_scaled(dual.point(), gradient, dual.linear, ratio)
        np.testing.assert_array_equal(dual.z, np.where(dual.upper > 0, later, -later))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 7, 9, 97])  # of C; 96 of them are multiplied at a time
@pytest.mark.parametrize("n_columns", [1, 95, 97, 700])
def test_sums_of_chains_that_share_rows(n_columns, count, dtype, instruction_set):
    """More rows than a packed block has (256), in chains that use some of them."""
    K, dual = problem(700, "classification")
    whole = dual(1.0)
    halves = [duals.c_classification(*np.array_split(whole.rows, 2), np.ones(700)), whole]
    columns = np.random.default_rng(2).permutation(700)[:n_columns]
    found = chains(K, halves, Cs=np.geomspace(0.1, 10.0, count), dtype=dtype, columns=columns)
    assert found.reached == count
    z = np.split(found.z, [len(halves[0].z)], axis=1)
    for k, one in enumerate(halves):
        expected = z[k] @ K.astype(dtype).astype(np.float64)[one.rows][:, columns]
        np.testing.assert_allclose(found.sums[k], expected, atol=1e-11)
