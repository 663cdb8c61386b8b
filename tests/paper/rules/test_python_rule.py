"""Rules that are Python functions: their paths, their arguments and refused steps."""

import numpy as np
import pytest

from pairstep import (
    L1Penalized,
    Quadratic,
    Simplex,
    Smooth,
    Step,
    SumBox,
    coordinate_descent,
    minimize,
)
from pairstep.paper.rules import RULES

RNG = np.random.default_rng(0)
N = 12
A = RNG.normal(size=(20, N))
H = A.T @ A
C = RNG.normal(size=N)
SMOOTH = Smooth(lambda x: 0.5 * x @ H @ x + C @ x, lambda x: H @ x + C, lipschitz=np.diag(H).copy())
GROUPS = np.arange(N) % 3
SECTORS = {0: (0.4, 0.5), 1: (-0.3, 0.1), 2: (0.0, 1.0)}
PROBLEMS = {
    "one sum": (SMOOTH, SumBox(1.0, -0.2, 0.4)),
    "groups": (SMOOTH, SumBox([1.0, 0.5, 0.0], -0.5, 0.6, groups=GROUPS)),
    "sectors": (
        SMOOTH,
        SumBox(
            1.0, -0.5, 0.6, groups=GROUPS, group_total={0: (0.4, 0.5), 1: (-0.3, 0.1), 2: (0, 1)}
        ),
    ),
    "l1_terms": (
        L1Penalized(SMOOTH, np.linspace(0.0, 2.0, N), np.full(N, 0.05)),
        SumBox(1.0, -0.2, 0.4),
    ),
}
NUMPY = {name: rule.in_numpy for name, rule in RULES.items()}
# Left out are rules whose NumPy form draws in each group or uses constants that the named rule does
# not; for ratios, the native rule takes the mean of the derivatives without L1 terms.
COMPARED = [
    (rule, problem)
    for rule in sorted(set(RULES) - {"random", "random-lipschitz", "cyclic", "libsvm"})
    for problem in PROBLEMS
    if not (rule.endswith("ratio") and problem == "l1_terms")
]


def path(problem, rule, step):
    """Return every point that a solve visits, and its result."""
    points = []
    result = coordinate_descent(*PROBLEMS[problem], rule=rule, step=step, seed=0, max_iter=60,
                      callback=lambda progress: points.append(progress.x.copy()))  # fmt: skip
    return np.array(points), result


@pytest.mark.parametrize("step", ["1/L2", "lipschitz", "backtracking"])
@pytest.mark.parametrize(("rule", "problem"), COMPARED)
def test_the_numpy_form_takes_the_path_of_the_named_rule(rule, problem, step):
    native, by_name = path(problem, rule, step)
    numpy, by_function = path(problem, NUMPY[rule], step)
    assert by_name.n_iter == by_function.n_iter > 0
    assert numpy == pytest.approx(native, rel=1e-9, abs=1e-11)
    assert str(by_name.status) == str(by_function.status)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_numpy_form_solves_a_problem(rule):
    expected = minimize(SMOOTH, SumBox(1.0, -0.2, 0.4)).fun
    result = coordinate_descent(SMOOTH, SumBox(1.0, -0.2, 0.4), rule=NUMPY[rule], seed=0)
    assert result.status == "optimal"
    assert result.fun == pytest.approx(expected, rel=1e-9)


def test_a_function_gets_one_group_and_its_l1_terms():
    seen = []

    def look(coordinates, alpha):
        seen.append(coordinates)
        return Step(np.empty(0, int), np.empty(0), 0.0)

    start, weight = np.array([0.0, 0.25, 0.75, 0.125, 0.875]), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    gradient = np.arange(5.0)
    objective = L1Penalized(
        Smooth(lambda x: gradient @ x, lambda x: gradient), weight, np.full(5, 0.25)
    )
    result = coordinate_descent(
        objective, SumBox([1.0, 1.0], 0.0, 1.0, groups=[0, 0, 0, 1, 1]), rule=look, x0=start
    )
    assert result.status == "stalled"
    first, second = seen
    assert first.left.tolist() == [0.0, 0.0, 4.0]  # gradient -+ L1 coefficient
    assert first.left_derivative.tolist() == [-np.inf, 0.0, 4.0]  # the first is at its bound
    assert first.right_derivative.tolist() == [0.0, 2.0, 4.0]
    assert first.max_decrease.tolist() == [0.0, 0.25, 0.5]
    assert first.max_increase.tolist() == [0.25, 0.75, 0.25]
    assert second.left_derivative.tolist() == [-np.inf if second.max_decrease[0] == 0 else 0.0, 8.0]
    assert second.max_increase.tolist() == [0.125, 0.125]
    assert first.lipschitz.tolist() == [1.0, 1.0, 1.0]


def test_a_function_sees_the_constants_where_they_are_known():
    seen = []

    def look(coordinates, alpha):
        seen.append((coordinates.lipschitz.tolist(), alpha))
        return Step(np.empty(0, int), np.empty(0), 0.0)

    coordinate_descent(Quadratic(np.diag([1.0, 2.0, 3.0])), Simplex(), rule=look, step=0.25)
    coordinate_descent(Quadratic(np.diag([0.0, 2.0, 3.0])), Simplex(), rule=look)
    assert seen == [([1.0, 2.0, 3.0], 0.25), ([1.0, 1.0, 1.0], 1 / 2.5)]


def test_the_step_is_taken_in_the_best_group():
    """Of three groups, the last one has the largest decrease."""
    visited = []

    def offer(coordinates, alpha):
        k = len(visited) % 3
        visited.append(k)
        return Step(np.array([0, 1]), np.array([0.1, -0.1]), float(k))

    gradient = np.array([0.0, 1.0] * 3)
    f = Smooth(lambda x: gradient @ x, lambda x: gradient)
    groups = np.repeat([0, 1, 2], 2)
    result = coordinate_descent(
        f, SumBox([1.0] * 3, groups=groups), rule=offer, step=1.0, max_iter=1
    )
    assert result.x == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.6, 0.4])


def test_a_step_that_increases_the_model_is_not_taken():
    def uphill(coordinates, alpha):
        i, j = np.argmin(coordinates.left_derivative), np.argmax(coordinates.right_derivative)
        return Step(np.array([i, j]), np.array([-0.01, 0.01]), 1.0)

    for step in ("exact", "backtracking", "1/L2", 0.1):
        result = coordinate_descent(
            Quadratic(np.diag([1.0, 2.0, 4.0])), Simplex(), rule=uphill, step=step
        )
        assert result.status == "stalled"
        assert result.x == pytest.approx([1 / 3] * 3)


def step_of(indices, delta, decrease=1.0):
    return Step(np.array(indices), np.array(delta), decrease)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (step_of([0, 3], [-0.1, 0.1]), ["index 3", "3 coordinates"]),
        (step_of([-1, 1], [-0.1, 0.1]), ["index -1", "3 coordinates"]),
        (step_of([1, 1], [-0.1, 0.1]), ["index 1 twice"]),
        (step_of([0, 1], [-0.1, 0.2]), ["sum to 0", "0.1", "0.3"]),
        (step_of([0, 1], [-0.5, 0.5]), ["-0.5", "index 0", "at most 0.333"]),
        (step_of([0, 1], [0.5, -0.5]), ["-0.5", "index 1", "at most 0.333"]),
        (step_of([0, 1], [np.nan, 0.1]), ["NaN or infinite"]),
        (step_of([0, 1], [-0.1, 0.1], np.nan), ["NaN or infinite"]),
        (step_of([0, 1, 2], [-0.1, 0.1]), ["one delta per index", "(3,)", "(2,)"]),
        (step_of([0.0, 1.0], [-0.1, 0.1]), ["integers as indices"]),
        (None, ["must return a Step"]),
        ((np.array([0, 1]), np.array([-0.1, 0.1])), ["must return a Step"]),
    ],
)
def test_invalid_steps_are_refused(answer, words):
    def odd(coordinates, alpha):
        return answer

    kind = TypeError if words[0].startswith(("integers", "must")) else ValueError
    with pytest.raises(kind, match="rule odd") as refusal:
        coordinate_descent(Quadratic(np.diag([1.0, 2.0, 4.0])), Simplex(), rule=odd)
    for word in words:
        assert word in str(refusal.value)


def test_an_error_in_a_rule_comes_through():
    def fails(coordinates, alpha):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        coordinate_descent(Quadratic(np.diag([1.0, 2.0])), Simplex(), rule=fails)
