"""The dual of each model: feasible starts, degenerate margins, and warm starts.

Fits start from other points too, so starts and degenerate margins are checked where they are made.
"""

import numpy as np
import pytest

from pairstep.result import Status
from pairstep.svm import duals
from pairstep.svm.engine import Solution

RNG = np.random.default_rng(2)
LIMIT = RNG.uniform(0, 2, 30) * (RNG.random(30) > 0.3)
Y = RNG.normal(size=30)
POSITIVE, NEGATIVE = np.arange(0, 30, 2), np.arange(1, 30, 2)
MOST = 2 * min(LIMIT[POSITIVE].sum(), LIMIT[NEGATIVE].sum()) / LIMIT.sum()

WRITTEN = {
    "c classification": lambda limit: duals.c_classification(POSITIVE, NEGATIVE, limit),
    "nu classification": lambda limit: duals.nu_classification(POSITIVE, NEGATIVE, limit, 0.3),
    "epsilon regression": lambda limit: duals.epsilon_regression(Y[: len(limit)], limit, 0.1),
    "nu regression": lambda limit: duals.nu_regression(Y[: len(limit)], limit, 0.3),
    "one class": lambda limit: duals.one_class(limit, 0.3),
}


def check_feasible(dual):
    assert len(dual.rows) == len(dual.z) == len(dual.linear) == dual.starts[-1]
    assert (dual.lower <= dual.z).all()
    assert (dual.z <= dual.upper).all()
    sums = np.add.reduceat(dual.z, dual.starts[:-1])
    np.testing.assert_allclose(sums, dual.totals, atol=1e-13)


@pytest.mark.parametrize("name", WRITTEN)
def test_start_is_feasible(name):
    dual = WRITTEN[name](LIMIT)
    check_feasible(dual)
    assert set(dual.rows) == set(np.flatnonzero(LIMIT))


def test_largest_nu_is_feasible():
    dual = duals.nu_classification(POSITIVE, NEGATIVE, LIMIT, np.nextafter(MOST, 1))
    check_feasible(dual)
    assert abs(dual.totals).max() <= max(dual.upper[: dual.starts[1]].sum(), -dual.lower.sum())


@pytest.mark.parametrize("change", ["smaller", "larger", "other", "fewer rows"])
@pytest.mark.parametrize("name", WRITTEN)
def test_continuation_is_feasible_and_near(name, change):
    limit = {
        "smaller": 0.2 * LIMIT,
        "larger": 5 * LIMIT,
        "other": RNG.uniform(0, 2, 30),
        "fewer rows": LIMIT * (np.arange(30) < 15),
    }[change]
    earlier, dual = WRITTEN[name](LIMIT), WRITTEN[name](limit)
    for part in range(len(earlier.totals)):
        own = slice(earlier.starts[part], earlier.starts[part + 1])
        middle = RNG.uniform(earlier.lower[own], earlier.upper[own])
        earlier.z[own] = middle
    duals.continue_from(earlier, dual)
    check_feasible(dual)


def test_a_feasible_point_is_continued_as_it_is():
    earlier, dual = (duals.c_classification(POSITIVE, NEGATIVE, LIMIT) for _ in range(2))
    free = np.flatnonzero(earlier.upper)[0], np.flatnonzero(earlier.lower)[0]
    earlier.z[list(free)] = [0.01, -0.01]
    duals.continue_from(earlier, dual)
    np.testing.assert_array_equal(dual.z, earlier.z)


def test_a_sum_is_restored_on_few_variables():
    earlier = duals.one_class(np.ones(100), 0.3)
    dual = duals.one_class(np.ones(110), 0.3)
    duals.continue_from(earlier, dual)
    check_feasible(dual)
    assert np.sum(dual.z != np.append(earlier.z, np.zeros(10))) <= 3


def test_infinite_limits():
    limit = duals.limits(np.inf, np.array([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(limit, [np.inf, 0.0, np.inf])
    dual = duals.epsilon_regression(np.arange(3.0), limit, 0.1)
    earlier = duals.epsilon_regression(np.arange(3.0), np.ones(3), 0.1)
    earlier.z[:] = [0.5, -1.0, 0.5]
    duals.continue_from(earlier, dual)
    assert dual.rows.tolist() == [0, 2]
    assert dual.z.sum() == 0


@pytest.mark.parametrize(
    ("derivatives", "margin", "bias"),
    [
        ((3.0, 1.0), 1.0, -2.0),
        ((5.0, -3.0), 4.0, -1.0),
        ((2.0, 2.0), 1.0, -2.0),
        ((0.0, 0.0), 1.0, 0),
    ],
)
def test_margin_and_bias(derivatives, margin, bias):
    empty = np.zeros(0)
    derivatives = np.array(derivatives)
    solution = Solution(empty, empty, 0.0, 0.0, derivatives, np.zeros(2), 1, Status.OPTIMAL)
    assert duals.margin(solution) == margin
    assert duals.bias(solution) == bias
