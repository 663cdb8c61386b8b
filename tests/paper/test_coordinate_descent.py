"""`coordinate_descent` with every objective, rule and step, checked with independent arithmetic."""

import itertools

import numpy as np
import pytest
from oracles import kkt_violation, problem, sum_error_in_ulps
from pairwise import pairwise
from small_problem import (
    CONSTRAINT,
    CONSTRAINTS,
    CURVED,
    FREE,
    L2,
    LIPSCHITZ,
    OBJECTIVES,
    RIDGE,
    SOLVERS,
    SQUARES,
    UNBOUNDED,
    A,
    B,
    H,
    N,
    assert_solved,
    slow_quadratic,
    solve_by,
)

import pairstep
from pairstep import (
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    Status,
    SumBox,
    coordinate_descent,
)
from pairstep.paper.rules import RULES

STEPS = ("auto", "1/L2", "lipschitz", "exact", "backtracking", "number", "callable")
WEIGHTED = {
    "random-lipschitz",
    "gs-q-lipschitz",
    "gs-1-lipschitz",
    "ratio",
    "gs-s-ratio",
    "gs-1-ratio",
}


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


def count_calls(function, counter):
    def counted(x):
        counter.append(1)
        return function(x)

    return counted


def is_supported(name, rule, step):
    return not missing(rule, step, OBJECTIVES[name][2])


@pytest.mark.parametrize(
    ("name", "rule", "step"), pairwise(OBJECTIVES, RULES, STEPS, where=is_supported)
)
def test_objectives_rules_and_steps_combine(name, rule, step, monkeypatch):
    make, (value, gradient), _ = OBJECTIVES[name]
    if name.endswith("no gram"):
        monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    p = problem(value, gradient, N, **CONSTRAINT)
    objective, constraint = make(), SumBox(**CONSTRAINT)
    result = coordinate_descent(objective, constraint, rule=rule, step=step_of(step, rule), seed=0)
    assert_solved(p, result, key=value)
    assert result.fun == pytest.approx(objective.value(result.x), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "rule", "step"),
    pairwise(
        [name for name in OBJECTIVES if name.startswith("smooth")], RULES, STEPS,
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
        coordinate_descent(
            objective, SumBox(**CONSTRAINT), rule=rule, step=step_of(step, rule), seed=0
        )
    lacking = missing(rule, step, knows)
    assert any(word.lower() in str(refusal.value).lower() for word in lacking)
    assert not calls


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
        result = coordinate_descent(objective, c, x0=np.zeros(n), rule="libsvm", max_iter=1)
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
        coordinate_descent(
            LeastSquares(A, B, RIDGE), SumBox(**CONSTRAINT), rule=rule, step="lipschitz", seed=3,
            max_iter=5, callback=lambda progress: seen.append(progress.x),
        )  # fmt: skip
        return np.array(seen)

    native = points()
    monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    readable = points()
    assert native == pytest.approx(readable, abs=1e-12)


LOOPS = {"native": "exact", "readable": "backtracking"}


@pytest.mark.parametrize(("name", "rule", "loop"), pairwise(CONSTRAINTS, RULES, LOOPS))
def test_every_rule_under_every_constraint(name, rule, loop):
    arguments = CONSTRAINTS[name]
    p = problem(*SQUARES, N, **arguments)
    constraint = SumBox(**arguments)
    result = coordinate_descent(
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
    result = coordinate_descent(
        objective, constraint, step=step, x0=constraint.start(N), max_iter=20_000
    )
    assert_solved(p, result, key=("curved", name))


@pytest.mark.parametrize("rule", ["gs-s", "gs-q-lipschitz", "gs-1-lipschitz", "ratio"])
@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if "range" not in name])
def test_constants_follow_their_variables_into_groups_and_coefficients(name, rule, monkeypatch):
    """The same function with the same constants, once given and once computed: the same steps."""
    monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    constraint, f = SumBox(**CONSTRAINTS[name]), LeastSquares(A * np.logspace(-1, 1, N), B)
    given = Smooth(f.value, f.gradient, lipschitz=f.lipschitz)
    options = {"rule": rule, "step": "lipschitz", "max_iter": 4}
    assert coordinate_descent(given, constraint, **options).x == pytest.approx(
        coordinate_descent(f, constraint, **options).x, abs=1e-10
    )


both_solvers = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


@both_solvers
def test_max_iter_is_respected(solver):
    for count in (0, 1, 7, 100):
        result = coordinate_descent(
            solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2", max_iter=count
        )
        assert result.status is Status.MAX_ITER
        assert result.n_iter == count
        assert str(count) in result.message
        assert f"{result.kkt_violation:.2e}" in result.message


@both_solvers
def test_the_callback_may_stop(solver):
    result = coordinate_descent(
        solver(slow_quadratic()), FREE, rule="gs-s", step="1/L2",
        callback=lambda progress: progress.n_iter >= 9,
    )  # fmt: skip
    assert result.status == "stopped"
    assert result.n_iter == 9


@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-1", "gs-1-lipschitz", "random", "cyclic"])
@pytest.mark.parametrize("step", ["auto", "exact", "backtracking", "1/L2"])
def test_stalled_where_rounding_ends_progress(rule, step):
    """With tol = 0 a solve still ends, very close to the optimum."""
    p = problem(*SQUARES, N, **CONSTRAINT)
    result = coordinate_descent(
        Quadratic(H, -A.T @ B), SumBox(**CONSTRAINT), rule=rule, step=step, tol=0, seed=0
    )
    assert result.status in ("stalled", "optimal")
    assert (result.status == "optimal") == (result.kkt_violation == 0)
    assert kkt_violation(p, result.x) < 1e-6
    assert result.message


@pytest.mark.parametrize(
    ("name", "rule", "step"),
    pairwise(
        ["linear", "indefinite"],
        ["gs-s", "gs-q", "gs-1", "libsvm", "random", "cyclic"],
        ["auto", "exact", "backtracking"],
    ),
)
def test_unbounded_problems_are_recognized(name, rule, step):
    result = coordinate_descent(UNBOUNDED[name], FREE, rule=rule, step=step, seed=0)
    assert result.status == "unbounded"
    assert "without bound" in result.message
    assert np.isfinite(result.x).all()


@both_solvers
@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-1", "gs-1-lipschitz", "random", "cyclic"])
def test_history_records_every_iteration(rule, solver):
    f = Quadratic(H, -A.T @ B)
    seen, p = [], problem(*SQUARES, N, **CONSTRAINT)
    result = coordinate_descent(
        solver(f), SumBox(**CONSTRAINT), rule=rule, step="lipschitz", seed=0, history=True,
        callback=seen.append,
    )  # fmt: skip
    history, seen = result.history, seen[: result.n_iter - 1]
    points = [SumBox(**CONSTRAINT).start(), *(progress.x for progress in seen), result.x]
    assert [progress.n_iter for progress in seen] == list(range(1, result.n_iter))
    assert all(progress.time >= 0 for progress in seen)
    for column in ("value", "violation"):
        told = [getattr(progress, column) for progress in seen]
        recorded = getattr(history, column)[1 : len(seen) + 1]
        assert told == pytest.approx(recorded, rel=1e-6, abs=1e-9)
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
    result = coordinate_descent(f, Simplex(), rule="gs-s", history=True, callback=callback)
    assert len(result.history.value) == result.n_iter + 1


def test_history_has_one_entry_per_point_where_a_solve_stalls():
    f = Smooth(lambda x: float(x @ x), lambda x: -2 * x)  # the gradient has the wrong sign
    result = coordinate_descent(f, SumBox(1.0), x0=[0.7, 0.2, 0.1], history=True)
    assert result.status == "stalled"
    assert len(result.history.value) == result.n_iter + 1


@both_solvers
def test_history_of_a_solve_without_iterations(solver):
    result = coordinate_descent(
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
        result = coordinate_descent(
            solver(slow_quadratic(20)), Simplex(), rule=rule, step="1/L2", seed=seed, max_iter=300,
            history=True,
        )  # fmt: skip
        return result.x.tobytes(), result.history.value.tobytes(), result.n_iter

    assert solve(5) == solve(5)
    if rule.startswith("random"):
        assert solve(5) != solve(6)
        assert solve(5) == solve(np.random.default_rng(5))


@both_solvers
def test_a_warm_start_at_the_solution_ends_at_once(solver):
    f, constraint = Quadratic(H, -A.T @ B), SumBox(**CONSTRAINT)
    cold = coordinate_descent(solver(f), constraint, rule="gs-1", step="lipschitz", tol=1e-10)
    warm = coordinate_descent(
        solver(f), constraint, rule="gs-1", step="lipschitz", tol=1e-8, x0=cold.x
    )
    assert cold.n_iter > 0
    assert warm.n_iter == 0
    assert warm.x == pytest.approx(cold.x, abs=1e-14)


ONE_ROW = np.random.default_rng(8).normal(size=(1, 8))
HARD = {
    # Steps of three variables that are scaled down must not approach a bound forever.
    "three variables near bounds": (
        LeastSquares([[1.0, -1.0, -2.0], [2.0, 0.0, -2.0]], [-3.0, -3.0]),
        {"total": -0.5, "lower": [-np.inf, -np.inf, 0.0], "upper": [0.0, np.inf, 1.0]},
    ),
    "six variables near bounds": (
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
    # The slack of a range has no curvature; neither has a column of zeros.
    "range": (LeastSquares(A, B), {"total": (-0.4, 0.4), "lower": -1.0, "upper": 1.0}),
    "column of zeros": (
        LeastSquares(A * [1, 1, 0, 1, 1, 1], B), {"total": 0.4, "lower": -1.0, "upper": 1.0},
    ),
    "range and whole numbers": (
        LeastSquares(
            [
                [2.0, -1.0, -1.0, 2.0, -2.0, -1.0],
                [0.0, -2.0, -2.0, -1.0, 1.0, 1.0],
                [-2.0, 1.0, 1.0, 1.0, 2.0, -1.0],
                [2.0, 1.0, -1.0, 0.0, 0.0, -1.0],
            ],
            [2.0, -2.0, -1.0, -1.0],
        ),
        {
            "total": (-1.5, 0.5),
            "lower": [-0.5, -np.inf, -np.inf, -1.0, -0.5, -1.0],
            "upper": [0.5, 0.0, 1.0, 1.0, np.inf, np.inf],
            "coefficients": [2.0, -1.0, -0.5, 2.0, 2.0, -1.0],
        },
    ),
    # All ratios (g_i - g_j) / (sqrt L_i + sqrt L_j) of opposite signs are equal.
    "one row": (
        LeastSquares(ONE_ROW, [0.7]),
        {
            "total": 2.0,
            "lower": [-np.inf, -np.inf, 0.0, -np.inf, -np.inf, -0.5, 0.0, 0.0],
            "upper": [1.0, np.inf, 2.0, np.inf, np.inf, 1.5, 1.0, 1.0],
        },
    ),
    # H = [[1, -1], [-1, 1]] is where (g_i - g_j)/(L_i + L_j) goes twice as far as the minimum.
    "opposite columns": (LeastSquares([[1.0, -1.0]], [1.0]), {"total": 0.0, "lower": -np.inf}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rule", "step", "solver"),
    pairwise(
        HARD, RULES, ["1/L2", "lipschitz", "exact", "backtracking"], SOLVERS,
        # A random pair of these is rarely the right one; callables know no exact step.
        where=lambda name, rule, step, solver: (
            not (rule == "random-lipschitz" and name.endswith("near bounds"))
            and not (step == "exact" and solver == "readable")
        ),
    ),
)  # fmt: skip
def test_hard_problems(name, rule, step, solver):
    f, arguments = HARD[name]
    objective = (
        f if solver == "native" else Smooth(f.value, f.gradient, lipschitz=f.lipschitz + 1e-3)
    )
    result = coordinate_descent(
        objective, SumBox(**arguments), rule=rule, step=step, seed=0, tol=1e-6
    )
    p = problem(f.value, f.gradient, f.n, **arguments)
    assert_solved(p, result, tol=1e-6, rel=1e-7, key=name)


@pytest.mark.parametrize("rule", RULES)
@both_solvers
def test_the_status_agrees_with_the_violation_reported(rule, solver):
    """A point within the tolerance is optimal, whatever made the solver stop there."""
    f = Quadratic(H, -A.T @ B)
    for max_iter in (1, 10, 30, 100, 300):
        result = coordinate_descent(
            solver(f), SumBox(1.0), rule=rule, step="lipschitz", tol=1e-3, max_iter=max_iter, seed=0
        )
        assert (result.status == "optimal") == (result.kkt_violation <= result.tolerance)


@pytest.mark.slow
def test_a_larger_portfolio_agrees_with_its_certificate():
    rng = np.random.default_rng(7)
    n = 400
    factors = rng.normal(size=(n, 20))
    Q = factors @ factors.T + np.diag(rng.uniform(0.1, 1.0, n))
    mu = rng.normal(size=n)
    for rule in RULES:
        result = coordinate_descent(
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

    result = coordinate_descent(Quadratic(np.diag([1.0, 2.0, 3.0])), Simplex(), rule=rule)
    assert result.status == "stalled"
    assert "the rule returned no step along which the objective decreases" in result.message


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
    result = coordinate_descent(Quadratic([[2.0]], [1.0]), SumBox((-3.0, 3.0), -np.inf), step=step)
    assert result.x == pytest.approx([-0.5], abs=1e-7)


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
        [np.inf, 0.7],
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
