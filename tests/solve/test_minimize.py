"""`minimize` with every objective, rule and step, checked with independent arithmetic."""

import itertools
import math
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from oracles import (
    cancelling,
    frank_wolfe_gap,
    is_bounded,
    kkt_violation,
    problem,
    reference_solution,
    sum_error_in_ulps,
)
from pairwise import pairwise

import pairstep
from pairstep import LeastSquares, Quadratic, Simplex, Smooth, Status, SumBox, minimize
from pairstep.rules import RULES

N = 6
RNG = np.random.default_rng(0)
A = RNG.normal(size=(9, N)) * np.linspace(0.7, 1.6, N)
B = RNG.normal(size=9)
RIDGE = 0.3
H = A.T @ A + RIDGE * np.eye(N)
L2 = max((H[i, i] + H[j, j] - 2 * H[i, j]) / 2 for i in range(N) for j in range(N) if i != j)


def least_squares(x):
    return 0.5 * np.sum((A @ x - B) ** 2) + 0.5 * RIDGE * np.sum(x**2)


def least_squares_gradient(x):
    return A.T @ (A @ x - B) + RIDGE * x


def logistic(x):
    """Smooth, convex, not quadratic: its second derivatives are at most those of |Ax - B|^2 / 2."""
    r = A @ x - B
    return 4 * np.sum(np.logaddexp(0, r) - 0.3 * r) + 0.5 * RIDGE * np.sum(x**2)


def logistic_gradient(x):
    r = A @ x - B
    return A.T @ (4 / (1 + np.exp(-r)) - 1.2) + RIDGE * x


LIPSCHITZ = np.diag(H).copy()
SQUARES = least_squares, least_squares_gradient
CURVED = logistic, logistic_gradient
# A constructor, the function it represents up to a constant, and the information it provides.
OBJECTIVES = {
    "quadratic": (lambda: Quadratic(H, -A.T @ B), SQUARES, {"lipschitz", "quadratic"}),
    "least-squares": (lambda: LeastSquares(A, B, RIDGE), SQUARES, {"lipschitz", "quadratic"}),
    "sparse": (
        lambda: LeastSquares(scipy.sparse.csr_array(A), B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "least-squares, no gram": (
        lambda: LeastSquares(A, B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "sparse, no gram": (
        lambda: LeastSquares(scipy.sparse.csr_array(A), B, RIDGE),
        SQUARES,
        {"lipschitz", "quadratic"},
    ),
    "smooth": (lambda: Smooth(*CURVED), CURVED, set()),
    "smooth-lipschitz": (lambda: Smooth(*CURVED, lipschitz=LIPSCHITZ), CURVED, {"lipschitz"}),
}
STEPS = ("auto", "1/L2", "lipschitz", "exact", "backtracking", "number", "callable")
WEIGHTED = {
    "random-lipschitz",
    "gs-q-lipschitz",
    "gs-1-lipschitz",
    "ratio",
    "gs-s-ratio",
    "gs-1-ratio",
}
CONSTRAINT = {"total": 0.7, "lower": -0.1, "upper": [0.2, 0.3, np.inf, 0.2, 0.5, 0.4]}


def step_of(name, rule):
    """A step size that suits the rule's model, as a number or from a function."""
    size = 0.4 if rule in WEIGHTED else 1 / L2
    return {"number": size, "callable": lambda progress: size}.get(name, name)


def missing(rule, step, knows):
    """Return what a combination needs and the objective does not provide."""
    needs = set()
    if rule in WEIGHTED or step in ("1/L2", "lipschitz"):
        needs.add("lipschitz")
    if step == "exact":
        needs.add("quadratic")
    return needs - knows


OPTIMAL_VALUES = {}


def assert_solved(p, result, tol=1e-8, rel=1e-9, key=None):
    """Check feasibility and the KKT conditions, and compare the value with SciPy's.

    Problems with the same key are equal, so that SciPy solves only the first of them.
    """
    x = result.x
    assert result.status == "optimal", result.message
    assert (x >= p.lower).all()
    assert (x <= p.upper).all()
    scale = 1 + np.abs(p.coefficients * x).sum()
    sums = p.sums(x)
    assert (sums >= p.low - 1e-14 * scale).all()
    assert (sums <= p.high + 1e-14 * scale).all()
    size = cancelling(p, x)
    violation = kkt_violation(p, x)
    assert violation <= tol * size * (1 + 1e-6) + 1e-13 * size
    assert result.kkt_violation == pytest.approx(violation, rel=1e-3, abs=1e-12 * size)
    best = OPTIMAL_VALUES.get(key)
    if best is None:
        best = p.value(reference_solution(p, x0=x + 0.1))
    if key is not None:
        OPTIMAL_VALUES[key] = best
    value = p.value(x)
    assert value == pytest.approx(best, rel=rel, abs=rel)
    return value


def count_calls(function, counter):
    def counted(x):
        counter.append(1)
        return function(x)

    return counted


# ------------------------------------------------------------------ objectives, rules and steps


def is_supported(name, rule, step):
    return not missing(rule, step, OBJECTIVES[name][2])


ALL_RULES = ["auto", *RULES]


@pytest.mark.parametrize(
    ("name", "rule", "step"), pairwise(OBJECTIVES, ALL_RULES, STEPS, where=is_supported)
)
def test_objectives_rules_and_steps_combine(name, rule, step, monkeypatch):
    make, (value, gradient), _ = OBJECTIVES[name]
    if name.endswith("no gram"):
        monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    p = problem(value, gradient, N, **CONSTRAINT)
    objective, constraint = make(), SumBox(**CONSTRAINT)
    result = minimize(objective, constraint, rule=rule, step=step_of(step, rule), seed=0)
    assert_solved(p, result, key=value)
    assert result.fun == pytest.approx(objective.value(result.x), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "rule", "step"),
    pairwise(
        [name for name in OBJECTIVES if name.startswith("smooth")], ALL_RULES, STEPS,
        where=lambda *combination: not is_supported(*combination),
    ),
)  # fmt: skip
def test_an_unsupported_combination_is_refused_before_any_call(name, rule, step):
    _, functions, knows = OBJECTIVES[name]
    calls = []
    objective = Smooth(
        *(count_calls(f, calls) for f in functions),
        lipschitz=LIPSCHITZ if "lipschitz" in knows else None,
    )
    with pytest.raises(ValueError, match="needs") as refusal:
        minimize(objective, SumBox(**CONSTRAINT), rule=rule, step=step_of(step, rule), seed=0)
    lacking = missing(rule, step, knows)
    assert any(word.lower() in str(refusal.value).lower() for word in lacking)
    assert not calls


@pytest.mark.parametrize("step", ["1/L2", "lipschitz", "exact", "backtracking"])
@pytest.mark.parametrize("rule", RULES)
def test_native_and_reference_solvers_reach_the_same_value(rule, step, monkeypatch):
    constraint = SumBox(**CONSTRAINT)
    native = minimize(LeastSquares(A, B, RIDGE), constraint, rule=rule, step=step, seed=1)
    monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    readable = minimize(LeastSquares(A, B, RIDGE), constraint, rule=rule, step=step, seed=1)
    assert native.fun == pytest.approx(readable.fun, rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 120, 600])
def test_the_native_solver_chooses_the_partner_by_the_true_curvature(n, instruction_set):
    """The first pair of libsvm has the largest derivative and the best partner for it."""
    rng = np.random.default_rng(n)
    for _ in range(5):
        factor = rng.normal(size=(n, 5))
        Q = factor @ factor.T + np.diag(rng.uniform(0.01, 1, n))
        objective, c = (
            pairstep.Quadratic(Q, linear := rng.normal(size=n)),
            pairstep.SumBox(0, -1, 1),
        )
        result = minimize(objective, c, x0=np.zeros(n), rule="libsvm", max_iter=1)
        i = np.argmax(linear)
        gap, curvature = linear[i] - linear, Q[i, i] + np.diag(Q) - 2 * Q[i]
        curvature[i] = 1.0
        amount = np.clip(gap / curvature, 0, 1)
        j = np.argmax(amount * (gap - 0.5 * curvature * amount))
        expected = np.zeros(n)
        expected[[i, j]] = -amount[j], amount[j]
        np.testing.assert_allclose(result.x, expected, atol=1e-12)


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"libsvm"}))
def test_native_and_reference_solvers_take_the_same_first_steps(rule, monkeypatch):
    """The same rule and the same step: the first points agree up to rounding.

    libsvm is left out: the native solver uses the true curvature, the reference only constants.
    """

    def points():
        seen = []
        minimize(
            LeastSquares(A, B, RIDGE), SumBox(**CONSTRAINT), rule=rule, step="lipschitz", seed=3,
            max_iter=5, callback=lambda progress: seen.append(progress.x),
        )  # fmt: skip
        return np.array(seen)

    native = points()
    monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    readable = points()
    assert native == pytest.approx(readable, abs=1e-12)


# ------------------------------------------------------------------ constraints

CONSTRAINTS = {
    "simplex": {},
    "negative total": {"total": -2.5, "lower": -np.inf},
    "no bounds": {"total": 0.0, "lower": -np.inf},
    "fixed variables": {"lower": [0.1, 0, 0, -1, 0, 0], "upper": [0.1, 1, 0, 1, 0.4, 1]},
    "single point": {"total": 3.0, "lower": 0.5, "upper": 0.5},
    "coefficients": {"coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0], "upper": 2.0},
    "negative coefficients": {"total": -1.0, "coefficients": [-1.0, -2.0, -0.7, -1.5, -1.0, -2.5]},
    "coefficients, no bounds": {"coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0], "lower": -np.inf},
    "groups": {"total": [1.0, -0.5], "lower": -1.0, "groups": [0, 1, 0, 1, 1, 0]},
    "a total for each group": {"total": [0.4, 0.4, 0.4], "groups": [7, 3, 7, 3, 5, 5]},
    "group of one": {"total": [0.3, 0.5], "groups": [1, 1, 0, 1, 1, 1]},
    "weighted groups": {
        "total": [1.0, -0.5],
        "lower": -1.0,
        "upper": 4.0,
        "groups": [0, 1, 0, 1, 1, 0],
        "coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, -1.0],
    },
    "range, slack": {"total": (-50.0, 50.0), "lower": -np.inf},
    "range, at its low end": {"total": (3.0, 4.0)},
    "range, at its high end": {"total": (-4.0, -3.0), "lower": -10.0},
    "range, open below": {"total": (-np.inf, 0.1), "lower": -1.0},
    "range, open above": {"total": (2.0, np.inf)},
    "range, open on both sides": {"total": (-np.inf, np.inf), "lower": -1.0, "upper": 0.1},
    "range and coefficients": {
        "total": (2.0, 5.0),
        "coefficients": [1.0, -1.0, 2.0, -0.5, 3.0, 1.0],
    },
    "ranges per group": {
        "total": ([-1.0, 1.0], [0.0, 1.0]),
        "lower": -1.0,
        "groups": [0, 1, 0, 1, 1, 0],
    },
}
LOOPS = {"native": "exact", "readable": "backtracking"}


@pytest.mark.parametrize(("name", "rule", "loop"), pairwise(CONSTRAINTS, RULES, LOOPS))
def test_every_rule_under_every_constraint(name, rule, loop):
    arguments = CONSTRAINTS[name]
    p = problem(*SQUARES, N, **arguments)
    constraint = SumBox(**arguments)
    result = minimize(
        LeastSquares(A, B, RIDGE), constraint, rule=rule, step=LOOPS[loop], seed=0, tol=1e-7
    )
    value = assert_solved(p, result, tol=1e-7, rel=1e-8, key=("squares", name))
    assert result.fun == pytest.approx(value, rel=1e-12)


CONSTANTS = {"none": None, "array": LIPSCHITZ, "number": LIPSCHITZ.max()}
SMOOTH_STEPS = ["backtracking", "lipschitz", "1/L2"]


@pytest.mark.parametrize(
    ("name", "lipschitz", "step"),
    pairwise(
        CONSTRAINTS, CONSTANTS, SMOOTH_STEPS,
        where=lambda name, lipschitz, step: lipschitz != "none" or step == "backtracking",
    ),
)  # fmt: skip
def test_smooth_under_every_constraint(name, lipschitz, step):
    arguments = CONSTRAINTS[name]
    p = problem(*CURVED, N, **arguments)
    constraint = SumBox(**arguments)
    objective = Smooth(*CURVED, lipschitz=CONSTANTS[lipschitz])
    result = minimize(objective, constraint, step=step, x0=constraint.start(N), max_iter=20_000)
    assert_solved(p, result, key=("curved", name))


@pytest.mark.parametrize("rule", ["gs-s", "gs-q-lipschitz", "gs-1-lipschitz", "ratio"])
@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if "range" not in name])
def test_constants_follow_their_variables_into_groups_and_coefficients(name, rule, monkeypatch):
    """The same function with the same constants, once given and once computed: the same steps."""
    monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    constraint, f = SumBox(**CONSTRAINTS[name]), LeastSquares(A * np.logspace(-1, 1, N), B)
    given = Smooth(f.value, f.gradient, lipschitz=f.lipschitz)
    options = {"rule": rule, "step": "lipschitz", "max_iter": 4}
    assert minimize(given, constraint, **options).x == pytest.approx(
        minimize(f, constraint, **options).x, abs=1e-10
    )


# ------------------------------------------------------------------ certificates


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5, None])
@pytest.mark.parametrize("arguments", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_certificates_at_any_point(arguments, max_iter):
    """Violation, bound and multiplier hold wherever the solver is made to stop."""
    p = problem(*SQUARES, N, **arguments)
    result = minimize(
        LeastSquares(A, B, RIDGE), SumBox(**arguments), rule="gs-s", max_iter=max_iter
    )
    x = result.x
    derivative = p.gradient(x) / p.coefficients
    scale = 1 + np.abs(derivative).max()
    assert result.kkt_violation == pytest.approx(kkt_violation(p, x), rel=1e-6, abs=1e-12 * scale)
    # The bound: what linear programming says, and at least the true distance in value.
    gap = frank_wolfe_gap(p, x)
    if result.suboptimality_bound == math.inf:
        assert not is_bounded(p)
    else:
        assert result.suboptimality_bound == pytest.approx(gap, rel=1e-6, abs=1e-7 * scale)
    best = p.value(reference_solution(p, x))
    assert result.suboptimality_bound >= p.value(x) - best - 1e-10 * scale
    # The multiplier separates the derivatives of variables that can decrease and increase.
    multiplier = np.broadcast_to(result.sum_multiplier, len(p.low))[p.groups]
    fall = np.where(p.coefficients > 0, x > p.lower, x < p.upper)
    rise = np.where(p.coefficients > 0, x < p.upper, x > p.lower)
    slack = result.kkt_violation + 1e-9 * scale
    assert (derivative[fall] <= multiplier[fall] + slack).all()
    assert (derivative[rise] >= multiplier[rise] - slack).all()
    assert np.ndim(result.sum_multiplier) == (len(p.low) > 1)


def test_the_bound_is_infinite_on_an_unbounded_set():
    result = minimize(
        Quadratic(np.eye(3), [1, 2, 3]), SumBox(0.0, -np.inf), rule="gs-s", max_iter=0
    )
    assert result.suboptimality_bound == math.inf
    assert result.kkt_violation == 2


def test_the_multiplier_is_the_derivative_with_respect_to_the_total():
    """d f* / d total, by finite differences."""
    Q, c = H, -A.T @ B

    def best(total):
        return minimize(Quadratic(Q, c), SumBox(total), tol=1e-12)

    slope = (best(1.001).fun - best(0.999).fun) / 0.002
    assert best(1.0).sum_multiplier == pytest.approx(slope, rel=1e-6)


def test_kkt_violation_is_a_difference_of_derivatives():
    q = Quadratic(np.zeros((3, 3)), [5.0, 1.0, 3.0])
    result = minimize(q, SumBox(1.0), x0=[0.0, 0.0, 1.0], max_iter=0)
    # Only variable 2 can decrease; variable 1 has the smallest derivative.
    assert result.kkt_violation == 2.0
    assert result.suboptimality_bound == 2.0
    assert result.status == "max_iter"


def test_optimal_where_everything_is_at_a_bound():
    result = minimize(Quadratic(np.eye(3), [1.0, 2.0, 3.0]), SumBox(3.0, 0.0, 1.0))
    assert result.status == "optimal"
    assert result.x.tolist() == [1.0, 1.0, 1.0]
    assert result.kkt_violation == 0.0
    assert result.suboptimality_bound == 0.0
    assert result.sum_multiplier >= 4.0  # at least every left derivative


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-10])
def test_the_tolerance_is_relative_to_the_terms_of_the_gradient(tol):
    for scale in (1e-12, 1.0, 1e12):
        Q, c = scale * H, -scale * A.T @ B
        result = minimize(Quadratic(Q, c), SumBox(1.0), tol=tol)
        assert result.status == "optimal"
        assert result.kkt_violation <= tol * max(np.abs(Q @ result.x).max(), np.abs(c).max())


# ------------------------------------------------------------------ how a solve ends


def slow_quadratic(n=60):
    """A quadratic that takes a greedy rule many thousands of iterations."""
    rng = np.random.default_rng(4)
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return Quadratic((basis * np.logspace(0, 7, n)) @ basis.T, rng.normal(size=n))


def readable(objective):
    """The same function from callables, for the reference solver."""
    return Smooth(objective.value, objective.gradient, lipschitz=objective.lipschitz)


SOLVERS = {"native": lambda f: f, "readable": readable}
both_solvers = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
FREE = SumBox(0.0, -np.inf)


@both_solvers
def test_max_iter_is_respected(solver):
    for count in (0, 1, 7, 100):
        result = minimize(solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=count)
        assert result.status is Status.MAX_ITER
        assert result.n_iter == count
        assert str(count) in result.message
        assert f"{result.kkt_violation:.2e}" in result.message


@pytest.mark.unsanitized
@both_solvers
def test_time_limit_is_respected(solver):
    began, began_cpu = time.perf_counter(), time.process_time()
    result = minimize(
        solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", tol=0, time_limit=0.15,
        max_iter=10**9,
    )  # fmt: skip
    assert result.status == "time_limit"
    elapsed = time.perf_counter() - began
    assert time.process_time() - began_cpu < 1.0
    assert result.n_iter > 0
    assert 0.1 < result.solve_time <= elapsed
    assert 0 <= result.setup_time <= elapsed


@both_solvers
def test_a_time_limit_of_0_stops_at_the_start(solver):
    result = minimize(solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", time_limit=0)
    assert result.status == "time_limit"


@both_solvers
def test_the_callback_may_stop(solver):
    seen = []

    def stop_at_9(progress):
        seen.append(progress)
        return progress.n_iter >= 9

    f = slow_quadratic()
    result = minimize(solver(f), FREE, rule="gs-s", step="1/L2", callback=stop_at_9)
    assert result.status == "stopped"
    assert result.n_iter == 9
    assert [progress.n_iter for progress in seen] == list(range(1, 10))
    p = problem(f.value, f.gradient, f.n, total=0.0, lower=-np.inf)
    for progress in seen:
        assert progress.value == pytest.approx(f.value(progress.x), rel=1e-9)
        assert progress.violation == pytest.approx(kkt_violation(p, progress.x), rel=1e-6)
        assert progress.time >= 0
    assert np.array_equal(seen[-1].x, result.x) or seen[-1].x == pytest.approx(result.x, abs=1e-14)


@both_solvers
def test_the_callback_is_called_after_every_iteration(solver):
    seen = []
    f = Quadratic(H, -A.T @ B)
    result = minimize(
        solver(f), SumBox(1.0), rule="gs-s", step="1/L2",
        callback=lambda progress: seen.append(progress.n_iter),
    )  # fmt: skip
    assert result.status == "optimal"
    assert seen == list(range(1, result.n_iter + 1))


@both_solvers
def test_the_callback_gets_copies_of_points(solver):
    seen = []
    minimize(
        solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=5,
        callback=lambda progress: seen.append(progress.x),
    )  # fmt: skip
    assert len({x.tobytes() for x in seen}) == 5

    def spoil(progress):
        progress.x[:] = np.nan

    result = minimize(
        solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=5, callback=spoil
    )
    assert np.isfinite(result.x).all()


@both_solvers
def test_a_callback_that_returns_nothing_does_not_stop(solver):
    f = Quadratic(H, -A.T @ B)
    result = minimize(
        solver(f), SumBox(1.0), rule="gs-1", step="1/L2", callback=lambda progress: None
    )
    assert result.status == "optimal"


@both_solvers
def test_a_callback_does_not_change_the_solve(solver):
    quiet = minimize(solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=200)
    watched = minimize(
        solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=200,
        callback=lambda progress: False,
    )  # fmt: skip
    assert quiet.x == pytest.approx(watched.x, abs=1e-12)


@pytest.mark.parametrize(
    "rule", ["auto", "gs-s", "gs-q", "gs-1", "gs-1-lipschitz", "random", "cyclic"]
)
@pytest.mark.parametrize("step", ["auto", "exact", "backtracking", "1/L2"])
def test_stalled_where_rounding_ends_progress(rule, step):
    """With tol = 0 a solve still ends, very close to the optimum."""
    p = problem(*SQUARES, N, **CONSTRAINT)
    result = minimize(
        Quadratic(H, -A.T @ B), SumBox(**CONSTRAINT), rule=rule, step=step, tol=0, seed=0
    )
    assert result.status in ("stalled", "optimal")
    assert (result.status == "optimal") == (result.kkt_violation == 0)
    assert kkt_violation(p, result.x) < 1e-6
    assert result.message


UNBOUNDED = {
    "linear": Quadratic(np.zeros((3, 3)), [1.0, 2.0, 3.0]),
    "indefinite": Quadratic(np.diag([1.0, -3.0, 1.0]), [1.0, 2.5, 3.0]),
    "flat direction": LeastSquares([[1.0, 1.0, 1.0]], [1.0]),
}


@pytest.mark.parametrize(
    ("name", "rule", "step"),
    pairwise(
        ["linear", "indefinite"],
        ["auto", "gs-s", "gs-q", "gs-1", "libsvm", "random", "cyclic"],
        ["auto", "exact", "backtracking"],
    ),
)
def test_unbounded_problems_are_recognized(name, rule, step):
    result = minimize(UNBOUNDED[name], FREE, rule=rule, step=step, seed=0)
    assert result.status == "unbounded"
    assert "without bound" in result.message
    assert np.isfinite(result.x).all()


def test_a_flat_direction_is_not_unbounded():
    result = minimize(UNBOUNDED["flat direction"], FREE)
    assert result.status == "optimal"


def test_unbounded_from_callables():
    falling = Smooth(lambda x: float(x @ [1.0, 2.0]), lambda x: np.array([1.0, 2.0]))
    result = minimize(falling, FREE, x0=[0.0, 0.0])
    assert result.status == "unbounded"


# ------------------------------------------------------------------ results


def test_the_result_is_complete_and_frozen():
    result = minimize(Quadratic(H), SumBox(1.0))
    assert isinstance(result, pairstep.Result)
    names = (
        "x", "fun", "status", "n_iter", "kkt_violation", "suboptimality_bound",
        "sum_multiplier", "setup_time", "solve_time", "history", "group_multipliers",
        "gradient", "pull", "bounds", "tolerance", "remark", "l1_terms", "variables",
        "direction", "row_multipliers", "cap_multipliers", "gap", "bound", "nodes",
    )  # fmt: skip
    assert tuple(result.__dataclass_fields__) == names
    assert result.history is None
    with pytest.raises(AttributeError):
        result.fun = 0.0


@both_solvers
@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-1", "gs-1-lipschitz", "random", "cyclic"])
def test_history_records_every_iteration(rule, solver):
    f = Quadratic(H, -A.T @ B)
    points = [SumBox(**CONSTRAINT).start()]
    p = problem(*SQUARES, N, **CONSTRAINT)
    result = minimize(
        solver(f), SumBox(**CONSTRAINT), rule=rule, step="lipschitz", seed=0, history=True,
        callback=lambda progress: points.append(progress.x),
    )  # fmt: skip
    points = [*points[: result.n_iter], result.x]
    history = result.history
    columns = history.value, history.violation, history.moved, history.interior, history.time
    assert {len(column) for column in columns} == {result.n_iter + 1}
    assert history.moved.dtype == history.interior.dtype == np.int64
    assert history.value == pytest.approx([f.value(x) for x in points], rel=1e-10)
    violations = [kkt_violation(p, x) for x in points]
    assert history.violation == pytest.approx(violations, rel=1e-6, abs=1e-10)
    inside = [((x > p.lower) & (x < p.upper)).sum() for x in points]
    assert history.interior.tolist() == inside
    assert history.moved[0] == 0
    changed = [(np.abs(a - b) > 1e-14).sum() for a, b in itertools.pairwise(points)]
    assert (history.moved[1:] >= changed).all()
    assert (np.diff(history.time) >= 0).all()
    assert history.value[-1] == pytest.approx(result.fun, rel=1e-10)


@pytest.mark.parametrize("seed", [9, 23, 45])
@pytest.mark.parametrize("watched", [False, True])
def test_history_has_one_entry_per_point_where_the_gradient_is_recomputed(seed, watched):
    rng = np.random.default_rng(seed)
    f = LeastSquares(rng.standard_normal((20, 6)), rng.standard_normal(20))
    callback = (lambda progress: False) if watched else None
    result = minimize(f, Simplex(), rule="gs-s", history=True, callback=callback)
    assert len(result.history.value) == result.n_iter + 1


@pytest.mark.parametrize("rule", ["auto", "gs-1"])
def test_history_has_one_entry_per_point_where_a_solve_stalls(rule):
    f = Smooth(lambda x: float(x @ x), lambda x: -2 * x)  # the gradient has the wrong sign
    result = minimize(f, SumBox(1.0), rule=rule, x0=[0.7, 0.2, 0.1], history=True)
    assert result.status == "stalled"
    assert len(result.history.value) == result.n_iter + 1


@both_solvers
def test_history_of_a_solve_without_iterations(solver):
    result = minimize(
        solver(Quadratic(np.eye(4))), Simplex(), rule="gs-s", step="1/L2", history=True
    )
    assert result.n_iter == 0
    assert result.history.value.tolist() == [0.125]
    assert result.history.violation.tolist() == [0.0]
    assert result.history.moved.tolist() == [0]
    assert result.history.interior.tolist() == [4]


@pytest.mark.parametrize("rule", RULES)
@both_solvers
def test_the_same_seed_gives_the_same_bits(rule, solver):
    def solve(seed):
        result = minimize(
            solver(slow_quadratic(20)), Simplex(), rule=rule, step="1/L2", seed=seed, max_iter=300,
            history=True,
        )  # fmt: skip
        return result.x.tobytes(), result.history.value.tobytes(), result.n_iter

    assert solve(5) == solve(5)
    if rule.startswith("random"):
        assert solve(5) != solve(6)
        assert solve(5) == solve(np.random.default_rng(5))


def test_threads_do_not_disturb_each_other():
    expected = minimize(slow_quadratic(40), Simplex(), rule="gs-1", max_iter=3000).x.tobytes()
    found = []

    def solve():
        found.append(
            minimize(slow_quadratic(40), Simplex(), rule="gs-1", max_iter=3000).x.tobytes()
        )

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_the_arguments_are_left_alone():
    Q, c, x0 = H.copy(), -A.T @ B, np.full(N, 1 / N)
    lower, upper = np.zeros(N), np.full(N, 0.5)
    before = [a.copy() for a in (Q, c, x0, lower, upper)]
    minimize(Quadratic(Q, c), SumBox(1.0, lower, upper), x0=x0)
    for a, b in zip((Q, c, x0, lower, upper), before, strict=True):
        assert np.array_equal(a, b)


# ------------------------------------------------------------------ warm starts


@both_solvers
def test_a_warm_start_at_the_solution_ends_at_once(solver):
    f, constraint = Quadratic(H, -A.T @ B), SumBox(**CONSTRAINT)
    cold = minimize(solver(f), constraint, rule="gs-1", step="lipschitz", tol=1e-10)
    warm = minimize(solver(f), constraint, rule="gs-1", step="lipschitz", tol=1e-8, x0=cold.x)
    assert cold.n_iter > 0
    assert warm.n_iter == 0
    assert warm.x == pytest.approx(cold.x, abs=1e-14)


@pytest.mark.parametrize("arguments", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_any_feasible_start_leads_to_the_same_value(arguments):
    constraint = SumBox(**arguments)
    rng = np.random.default_rng(6)
    expected = minimize(LeastSquares(A, B, RIDGE), constraint).fun
    for _ in range(5):
        x0 = constraint.project(3 * rng.normal(size=N))
        result = minimize(LeastSquares(A, B, RIDGE), constraint, x0=x0)
        assert result.fun == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_start_is_where_the_solve_begins():
    x0 = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    result = minimize(Quadratic(H), SumBox(1.0), x0=x0, max_iter=0)
    assert result.x.tolist() == x0
    assert sum_error_in_ulps(result.x, 1.0) == 0


# ------------------------------------------------------------------ hard problems found at random


@pytest.mark.parametrize("rule", RULES)
def test_one_row_makes_all_ratios_tie(rule):
    """With one row, (g_i - g_j) / (sqrt L_i + sqrt L_j) is equal for all pairs of opposite sign."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        f = LeastSquares(rng.normal(size=(1, 8)), rng.normal(size=1))
        arguments = {
            "total": 2.0,
            "lower": [-np.inf, -np.inf, 0.0, -np.inf, -np.inf, -0.5, 0.0, 0.0],
            "upper": [1.0, np.inf, 2.0, np.inf, np.inf, 1.5, 1.0, 1.0],
        }
        result = minimize(f, SumBox(**arguments), rule=rule, seed=0)
        assert_solved(problem(f.value, f.gradient, 8, **arguments), result)


@pytest.mark.parametrize("rule", RULES)
def test_the_lipschitz_step_on_opposite_columns(rule):
    """H = [[1, -1], [-1, 1]] is where (g_i - g_j)/(L_i + L_j) goes twice as far as the minimum."""
    f = LeastSquares([[1.0, -1.0]], [1.0], ridge=0.0)
    result = minimize(f, SumBox(0.0, -np.inf), rule=rule, step="lipschitz", seed=0)
    assert result.status == "optimal"
    assert result.fun == pytest.approx(0.0, abs=1e-12)


SLOW_TO_A_BOUND = {
    "three variables": (
        LeastSquares([[1.0, -1.0, -2.0], [2.0, 0.0, -2.0]], [-3.0, -3.0]),
        {"total": -0.5, "lower": [-np.inf, -np.inf, 0.0], "upper": [0.0, np.inf, 1.0]},
    ),
    "six variables": (
        LeastSquares(
            [[0.24253768, 1.27193942, 0.39713677, 1.26936618, -2.75708852, 0.63879499]],
            [-0.48414716313344536],
            ridge=0.1,
        ),
        {
            "total": 1.5,
            "lower": [-np.inf, -1.0, -np.inf, -1.0, -1.0, -0.5],
            "upper": [0.0, 1.0, 1.0, 0.0, 0.0, 1.5],
            "coefficients": [1.0, 1.0, 2.0, -1.0, -1.0, 2.0],
        },
    ),
}


@pytest.mark.parametrize(
    ("name", "rule", "step", "solver"),
    pairwise(
        SLOW_TO_A_BOUND, sorted(set(RULES) - {"random-lipschitz"}),
        ["1/L2", "lipschitz", "backtracking"], ["native", "readable"],
    ),
)  # fmt: skip
def test_a_variable_that_approaches_a_bound_reaches_it(name, rule, step, solver):
    """A step of three variables that is scaled down must not approach a bound forever."""
    f, arguments = SLOW_TO_A_BOUND[name]
    objective = (
        f if solver == "native" else Smooth(f.value, f.gradient, lipschitz=f.lipschitz + 1e-3)
    )
    result = minimize(objective, SumBox(**arguments), rule=rule, step=step, seed=0, tol=1e-6)
    p = problem(f.value, f.gradient, f.n, **arguments)
    assert_solved(p, result, tol=1e-6, rel=1e-7, key=("slow to a bound", name))


@pytest.mark.parametrize("step", ["exact", "lipschitz", "backtracking"])
@pytest.mark.parametrize("rule", RULES)
def test_variables_without_curvature_do_not_dominate_the_choice(rule, step):
    """The slack of a range has no curvature; neither has a column of zeros."""
    whole = [
        [2.0, -1.0, -1.0, 2.0, -2.0, -1.0],
        [0.0, -2.0, -2.0, -1.0, 1.0, 1.0],
        [-2.0, 1.0, 1.0, 1.0, 2.0, -1.0],
        [2.0, 1.0, -1.0, 0.0, 0.0, -1.0],
    ]
    problems = [
        (A, B, {"total": (-0.4, 0.4), "lower": -1.0, "upper": 1.0}),
        (A * [1, 1, 0, 1, 1, 1], B, {"total": 0.4, "lower": -1.0, "upper": 1.0}),
        (
            whole,
            [2.0, -2.0, -1.0, -1.0],
            {
                "total": (-1.5, 0.5),
                "lower": [-0.5, -np.inf, -np.inf, -1.0, -0.5, -1.0],
                "upper": [0.5, 0.0, 1.0, 1.0, np.inf, np.inf],
                "coefficients": [2.0, -1.0, -0.5, 2.0, 2.0, -1.0],
            },
        ),
    ]
    for k, (matrix, b, arguments) in enumerate(problems):
        f = LeastSquares(matrix, b)
        p = problem(f.value, f.gradient, N, **arguments)
        result = minimize(f, SumBox(**arguments), rule=rule, step=step, seed=0, tol=1e-6)
        assert_solved(p, result, tol=1e-6, rel=1e-7, key=("without curvature", k))


@pytest.mark.parametrize("rule", RULES)
@both_solvers
def test_the_status_agrees_with_the_violation_reported(rule, solver):
    """A point within the tolerance is optimal, whatever made the solver stop there."""
    f = Quadratic(H, -A.T @ B)
    for max_iter in (1, 10, 30, 100, 300):
        result = minimize(
            solver(f), SumBox(1.0), rule=rule, step="lipschitz", tol=1e-3, max_iter=max_iter, seed=0
        )
        assert (result.status == "optimal") == (result.kkt_violation <= result.tolerance)


# ------------------------------------------------------------------ known answers


@pytest.mark.parametrize("rule", RULES)
def test_diagonal_quadratic_has_the_known_answer(rule):
    d = np.array([1.0, 2.0, 4.0, 8.0])
    result = minimize(Quadratic(np.diag(d)), Simplex(3.0), rule=rule, seed=0, tol=1e-12)
    assert result.x == pytest.approx(3 * (1 / d) / (1 / d).sum(), rel=1e-9)


def test_projection_onto_the_simplex():
    y = np.array([0.8, 0.6, -0.5, 0.1])
    result = minimize(Quadratic(np.eye(4), -y), Simplex(), tol=1e-14)
    assert result.x == pytest.approx([0.6, 0.4, 0.0, 0.0], abs=1e-12)
    assert result.x == pytest.approx(Simplex().project(y), abs=1e-12)


def test_entropy_from_callables():
    coefficients = np.array([0.5, 1.0, 2.0, 0.1])
    f = Smooth(
        lambda x: float(x @ np.log(x / coefficients)), lambda x: np.log(x / coefficients) + 1
    )
    result = minimize(f, SumBox(1.0, lower=1e-9, upper=np.ones(4)))
    assert result.status == "optimal"
    assert result.x == pytest.approx(coefficients / coefficients.sum(), rel=1e-6)


@pytest.mark.slow
def test_a_larger_portfolio_agrees_with_its_certificate():
    rng = np.random.default_rng(7)
    n = 400
    factors = rng.normal(size=(n, 20))
    Q = factors @ factors.T + np.diag(rng.uniform(0.1, 1.0, n))
    mu = rng.normal(size=n)
    for rule in RULES:
        result = minimize(
            Quadratic(Q, -mu), SumBox(1.0, 0.0, 0.1), rule=rule, seed=0, max_iter=3_000_000
        )
        assert result.status == "optimal", (rule, result.message)
        assert 0 <= result.suboptimality_bound < 1e-6
        assert sum_error_in_ulps(result.x, 1.0) <= 1


@pytest.mark.parametrize("amount", [0.0, -0.1])
def test_a_rule_without_an_improving_step_ends_the_solve_and_is_named_as_the_cause(amount):
    def rule(coordinates, alpha):
        i, j = np.argmax(coordinates.left_derivative), np.argmin(coordinates.right_derivative)
        return pairstep.Step(np.array([i, j]), np.array([-amount, amount]), 0.0)

    result = minimize(Quadratic(np.diag([1.0, 2.0, 3.0])), Simplex(), rule=rule)
    assert result.status == "stalled"
    assert "the rule returned no step along which the objective decreases" in result.message


def test_a_missing_member_of_an_objective_is_named():
    class Half:
        n, is_quadratic, lipschitz, hessian, linear, l1_terms = 2, False, None, None, None, None

        def value(self, x):
            return 0.0

    with pytest.raises(TypeError, match=r"needs gradient, in_layout, prefers_blocks, .* lacks"):
        minimize(Half(), Simplex())
