"""Bad input is refused before any work with a message that names the argument and the numbers."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pairwise import pairwise
from small_problem import solve_by

from pairstep import (
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    SumBox,
    coordinate_descent,
    minimize,
    propose,
)
from pairstep.paper.rules import RULES, specification

NAN, INF = float("nan"), float("inf")
EYE = np.eye(3)
POINT = {
    "gradient": [3.0, 1.0, 2.0],
    "x": [0.2, 0.3, 0.5],
    "lower": 0.0,
    "upper": 1.0,
    "alpha": 1.0,
}


def refuses(call, *words, error=ValueError):
    """Check that the call raises an error whose message has every word, in any order."""
    with pytest.raises(error) as refusal:
        call()
    message = str(refusal.value)
    for word in words:
        assert re.search(rf"(?<![\w.]){re.escape(str(word))}(?![\w])", message), (word, message)


def solve(objective=None, constraint=None, **options):
    objective = Quadratic(EYE) if objective is None else objective
    return minimize(objective, constraint or Simplex(), **options)


def descend(objective=None, constraint=None, **options):
    objective = Quadratic(EYE) if objective is None else objective
    return coordinate_descent(objective, constraint or Simplex(), **options)


def ask(rule="gs-s", form=propose, **changes):
    return form(rule, **(POINT | changes))


# ------------------------------------------------------------------ NaN and infinity


def test_options_must_be_numbers():
    refuses(lambda: solve(x0=[1.0, NAN, 0.0]), "x0[1]", "nan")
    refuses(lambda: solve(x0=[1.0, INF, 0.0]), "x0[1]", "inf")
    refuses(lambda: solve(tol=NAN), "tol", "nan")
    refuses(lambda: solve(tol=-1e-3), "tol", "-0.001")
    refuses(lambda: solve(time_limit=NAN), "time_limit", "nan")
    refuses(lambda: solve(time_limit=-1), "time_limit", "-1")
    for bad in (-1, 2.5, NAN, "many", True):
        refuses(lambda bad=bad: solve(max_iter=bad), "max_iter", repr(bad))
    for bad in (0, -0.5, NAN, INF):
        refuses(lambda bad=bad: descend(step=bad), "step", f"{float(bad):g}")


# ------------------------------------------------------------------ shapes and sizes


@pytest.mark.parametrize("form", [propose, specification])
@pytest.mark.parametrize("rule", RULES)
def test_one_variable_has_no_pair(rule, form):
    step = form(rule, [1.0], [0.0], -1.0, 1.0, alpha=1.0, lipschitz=[1.0], rng=0)
    assert len(step.indices) == len(step.delta) == 0
    assert step.decrease == 0


NO_VARIABLES = """
from pairstep.paper.rules import RULES, propose, specification
for rule in RULES:
    for form in (propose, specification):
        print(rule, flush=True)
        step = form(rule, [], [], 0.0, 1.0, alpha=1.0, lipschitz=[], rng=0)
        assert len(step.indices) == len(step.delta) == step.decrease == 0
print("survived")
"""


def test_no_variables_have_no_pair():
    """Runs in a child process: a native division by n = 0 would end it."""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_VARIABLES], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert child.stdout.splitlines()[-1] == "survived", child.stderr
    assert child.returncode == 0


@pytest.mark.parametrize("rule", ["auto", *RULES])
def test_one_variable_has_a_single_feasible_point(rule):
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x, lipschitz=[2.0])
    for objective in (Quadratic([[2.0]]), LeastSquares([[1.0]], [0.0]), f):
        result = solve_by(rule, objective, SumBox(0.3))
        assert result.status == "optimal"
        assert result.x.tolist() == [0.3]
        assert result.n_iter == 0
        assert result.kkt_violation == 0
        assert result.suboptimality_bound == 0


@pytest.mark.parametrize("step", ["1/L2", "lipschitz", "exact", "backtracking"])
def test_one_variable_and_any_step(step):
    assert coordinate_descent(Quadratic([[2.0]]), SumBox(0.3), step=step).status == "optimal"
    result = coordinate_descent(Quadratic([[2.0]], [1.0]), SumBox((-3.0, 3.0), -INF), step=step)
    assert result.x == pytest.approx([-0.5], abs=1e-7)


# ------------------------------------------------------------------ bounds, totals, groups


def test_a_start_that_is_feasible_up_to_rounding_is_accepted():
    x0 = np.array([0.1] * 10)
    assert sum(x0.tolist()) != 1.0
    assert minimize(Quadratic(np.eye(10)), Simplex(), x0=x0).status == "optimal"


# ------------------------------------------------------------------ matrices, constants, kinds


@pytest.mark.parametrize("rule", [rule for rule in RULES if RULES[rule].weighted])
def test_a_weighted_rule_asks_for_its_constants(rule):
    refuses(lambda: ask(rule), repr(rule), "lipschitz")
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x)
    refuses(lambda: descend(f, SumBox(1.0, upper=np.ones(3)), rule=rule), repr(rule), "lipschitz")


def test_a_negative_diagonal_is_no_lipschitz_constant():
    Q = np.diag([1.0, -2.0, 1.0])
    refuses(lambda: descend(Quadratic(Q), rule="gs-q-lipschitz"), "gs-q-lipschitz", "-2", "1")
    refuses(lambda: descend(Quadratic(Q), step="lipschitz"), "lipschitz", "-2", "1")


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("gs_q", "gs-q"), ("GS-1", "gs-1"), ("cylic", "cyclic"), ("gs-q-lipshitz", "gs-q-lipschitz")],
)
def test_a_misspelled_rule_gets_a_suggestion(typed, meant):
    refuses(lambda: descend(rule=typed), "rule", repr(typed), f"did you mean {meant!r}")
    refuses(lambda: ask(typed), "rule", repr(typed), f"did you mean {meant!r}")


@pytest.mark.parametrize(
    ("typed", "meant"), [("1/l2", "1/L2"), ("exakt", "exact"), ("backtrack", "backtracking")]
)
def test_a_misspelled_step_gets_a_suggestion(typed, meant):
    refuses(lambda: descend(step=typed), "step", repr(typed), f"did you mean {meant!r}")


def test_names_of_the_wrong_type_are_refused():
    for bad in (None, 3, ["gs-s"]):
        refuses(lambda bad=bad: descend(rule=bad), "rule", repr(bad))
        refuses(lambda bad=bad: ask(bad), "rule", repr(bad))
    refuses(lambda: descend(rule="zzzz"), "rule", "'zzzz'", *RULES)
    refuses(lambda: descend(step=None), "step", "None")
    refuses(lambda: descend(step=[1.0]), "step", "[1.0]")


# ------------------------------------------------------------------ callables that raise


class Boom(Exception):
    pass


SOLVERS = {
    "native": Quadratic(np.diag([1.0, 2.0, 3.0]), [0.1, 0.3, 0.2]),
    "readable": Smooth(
        lambda x: float(x @ (x * [1, 2, 3]) / 2 + x @ [0.1, 0.3, 0.2]),
        lambda x: x * [1, 2, 3] + [0.1, 0.3, 0.2],
    ),
}


def test_an_objective_or_a_step_that_raises_propagates():
    def boom(_):
        raise Boom

    box = SumBox(1.0, upper=np.ones(3))
    with pytest.raises(Boom):
        minimize(Smooth(boom, lambda x: x), box)
    with pytest.raises(Boom):
        minimize(Smooth(lambda x: 0.0, boom), box)
    with pytest.raises(Boom):
        coordinate_descent(SOLVERS["readable"], box, step=boom)


@pytest.mark.parametrize("answer", [0.0, -1.0, NAN])
def test_a_step_function_must_return_a_step_size(answer):
    refuses(
        lambda: coordinate_descent(SOLVERS["native"], SumBox(1.0), step=lambda progress: answer),
        "step",
        f"{answer:g}",
    )


# ------------------------------------------------------------------ indefinite matrices

INDEFINITE = {
    "a hill": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "a negative diagonal": np.diag([1.0, -3.0, 1.0]),
    "all directions fall": -np.eye(3),
}


@pytest.mark.parametrize(
    ("name", "rule", "step", "upper"),
    pairwise(
        INDEFINITE,
        ["gs-s", "gs-q", "gs-1", "libsvm", "random", "cyclic"],
        ["auto", "exact", "backtracking", "1/L2", 0.1],
        [INF, 0.7],
    ),
)
def test_an_indefinite_matrix_is_not_called_optimal(name, rule, step, upper):
    """The status is not `optimal` where the function is not convex along the pairs of the solve."""
    result = coordinate_descent(
        Quadratic(INDEFINITE[name], [0.3, 0.1, 0.2]), SumBox(1.0, 0.0, upper), rule=rule, step=step,
        seed=0, max_iter=20_000,
    )  # fmt: skip
    assert result.status in ("stalled", "unbounded"), result.message
    assert result.n_iter < 20_000
    assert (result.x >= 0).all()


@pytest.mark.parametrize("upper", [INF, 0.7])
@pytest.mark.parametrize("name", INDEFINITE)
def test_an_indefinite_matrix_is_not_called_optimal_by_minimize(name, upper):
    result = minimize(Quadratic(INDEFINITE[name], [0.3, 0.1, 0.2]), SumBox(1.0, 0.0, upper))
    assert result.status in ("stalled", "unbounded"), result.message
    assert (result.x >= 0).all()


def test_the_top_of_a_hill_is_not_optimal():
    """f = x0 x1 on the simplex: the start is stationary but the maximum."""
    result = minimize(Quadratic([[0.0, 1.0], [1.0, 0.0]]), Simplex())
    assert result.status in ("stalled", "unbounded"), result.message


@pytest.mark.parametrize("rule", ["auto", "gs-s"])
def test_a_saddle_that_no_pair_reveals_is_not_optimal(rule):
    """Every pair is convex or flat, but along (1, -2, 1) the function falls without bound."""
    saddle = Quadratic(np.diag([1.0, -1.0, 1.0]), [1.0, 2.0, 3.0])
    result = solve_by(rule, saddle, SumBox(0.0, -INF))
    assert result.status in ("stalled", "unbounded"), result.message


def test_negative_curvature_off_the_constraint_does_not_matter():
    """I - 11' is indefinite, but convex on every set with a fixed sum."""
    Q = np.eye(4) - np.ones((4, 4))
    result = minimize(Quadratic(Q, [1.0, 0.5, 0.2, 0.1]), Simplex())
    assert result.status == "optimal"


# ------------------------------------------------------------------ Ctrl-C

LONG_SOLVE = """
import numpy as np, pairstep, sys, time
n = 2000
rng = np.random.default_rng(0)
A = rng.normal(size=(n, 40)) * np.logspace(0, 4, 40)
Q = A @ A.T + np.diag(np.logspace(-4, 0, n))
f = pairstep.Quadratic(Q, rng.normal(size=n))
box = pairstep.SumBox(0.0, -1e3, 1e3)
for options in sys.argv[1:]:
    options = dict(tol=0, max_iter=10**12, seed=0) | eval(options)
    began = time.process_time()
    print("ready", flush=True)
    try:
        result = pairstep.coordinate_descent(f, box, **options)
        print("ended", result.status, result.n_iter, flush=True)
    except KeyboardInterrupt:
        print("interrupted after", time.process_time() - began, flush=True)
"""
LONG_OPTIONS = [
    *({"rule": rule} for rule in ("gs-s", "libsvm", "gs-1", "gs-q-lipschitz", "random")),
    {"rule": "random", "history": True},
]


@pytest.mark.faults
@pytest.mark.unsanitized
@pytest.mark.slow
def test_ctrl_c_stops_the_native_loop_within_a_second():
    with subprocess.Popen(
        [sys.executable, "-c", LONG_SOLVE, *map(repr, LONG_OPTIONS)],
        stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            for options in LONG_OPTIONS:
                assert child.stdout.readline() == "ready\n"
                time.sleep(0.5)
                assert child.poll() is None
                child.send_signal(signal.SIGINT)
                answer, seconds = child.stdout.readline().rsplit(" ", 1)
                assert answer == "interrupted after", options
                assert float(seconds) < 1.5, options
            child.wait(timeout=60)
        finally:
            child.kill()
