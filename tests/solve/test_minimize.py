"""`minimize` with every objective and constraint, checked with independent arithmetic."""

import math

import numpy as np
import pytest
from oracles import (
    frank_wolfe_gap,
    is_bounded,
    kkt_violation,
    problem,
    reference_solution,
    sum_error_in_ulps,
)
from pairwise import pairwise
from small_problem import (
    CONSTRAINT,
    CONSTRAINTS,
    FREE,
    OBJECTIVES,
    RIDGE,
    SQUARES,
    UNBOUNDED,
    A,
    B,
    H,
    N,
    assert_solved,
    solve_by,
)

import pairstep
from pairstep import LeastSquares, Quadratic, Simplex, Smooth, SumBox, minimize


@pytest.mark.parametrize(("name", "constraint"), pairwise(OBJECTIVES, CONSTRAINTS))
def test_every_objective_under_every_constraint(name, constraint, monkeypatch):
    make, (value, gradient), _ = OBJECTIVES[name]
    if name.endswith("no gram"):
        monkeypatch.setattr(pairstep.objectives.least_squares, "MAX_GRAM_BYTES", 0)
    arguments = CONSTRAINTS[constraint]
    objective, box = make(), SumBox(**arguments)
    result = minimize(objective, box, x0=box.start(N) if "smooth" in name else None)
    assert_solved(problem(value, gradient, N, **arguments), result, key=(value, constraint))
    assert result.fun == pytest.approx(objective.value(result.x), rel=1e-14)


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5, None])
@pytest.mark.parametrize("arguments", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_certificates_at_any_point(arguments, max_iter):
    """Violation, bound and multiplier hold wherever the solver is made to stop."""
    p = problem(*SQUARES, N, **arguments)
    result = minimize(LeastSquares(A, B, RIDGE), SumBox(**arguments), max_iter=max_iter)
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
    result = minimize(Quadratic(np.eye(3), [1, 2, 3]), SumBox(0.0, -np.inf), max_iter=0)
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


def test_a_flat_direction_is_not_unbounded():
    result = minimize(UNBOUNDED["flat direction"], FREE)
    assert result.status == "optimal"


def test_unbounded_from_callables():
    falling = Smooth(lambda x: float(x @ [1.0, 2.0]), lambda x: np.array([1.0, 2.0]))
    result = minimize(falling, FREE, x0=[0.0, 0.0])
    assert result.status == "unbounded"


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


def test_the_arguments_are_left_alone():
    Q, c, x0 = H.copy(), -A.T @ B, np.full(N, 1 / N)
    lower, upper = np.zeros(N), np.full(N, 0.5)
    before = [a.copy() for a in (Q, c, x0, lower, upper)]
    minimize(Quadratic(Q, c), SumBox(1.0, lower, upper), x0=x0)
    for a, b in zip((Q, c, x0, lower, upper), before, strict=True):
        assert np.array_equal(a, b)


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


def test_history_has_one_entry_per_point_where_a_solve_stalls():
    f = Smooth(lambda x: float(x @ x), lambda x: -2 * x)  # the gradient has the wrong sign
    result = minimize(f, SumBox(1.0), x0=[0.7, 0.2, 0.1], history=True)
    assert result.status == "stalled"
    assert len(result.history.value) == result.n_iter + 1


def test_stalled_where_rounding_ends_progress():
    """With tol = 0 a solve still ends, very close to the optimum."""
    p = problem(*SQUARES, N, **CONSTRAINT)
    result = minimize(Quadratic(H, -A.T @ B), SumBox(**CONSTRAINT), tol=0)
    assert result.status in ("stalled", "optimal")
    assert (result.status == "optimal") == (result.kkt_violation == 0)
    assert kkt_violation(p, result.x) < 1e-6
    assert result.message


@pytest.mark.parametrize("name", ["linear", "indefinite"])
def test_unbounded_problems_are_recognized(name):
    result = minimize(UNBOUNDED[name], FREE)
    assert result.status == "unbounded"
    assert "without bound" in result.message
    assert np.isfinite(result.x).all()


def test_a_missing_member_of_an_objective_is_named():
    class Half:
        n, is_quadratic, lipschitz, hessian, linear, l1_terms = 2, False, None, None, None, None

        def value(self, x):
            return 0.0

    with pytest.raises(TypeError, match=r"needs gradient, in_layout, prefers_blocks, .* lacks"):
        minimize(Half(), Simplex())


def test_a_start_that_is_feasible_up_to_rounding_is_accepted():
    x0 = np.array([0.1] * 10)
    assert sum(x0.tolist()) != 1.0
    assert minimize(Quadratic(np.eye(10)), Simplex(), x0=x0).status == "optimal"


INDEFINITE = {
    "a hill": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "a negative diagonal": np.diag([1.0, -3.0, 1.0]),
    "all directions fall": -np.eye(3),
}


@pytest.mark.parametrize("upper", [np.inf, 0.7])
@pytest.mark.parametrize("name", INDEFINITE)
def test_an_indefinite_matrix_is_not_called_optimal(name, upper):
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
    result = solve_by(rule, saddle, SumBox(0.0, -np.inf))
    assert result.status in ("stalled", "unbounded"), result.message


def test_negative_curvature_off_the_constraint_does_not_matter():
    """I - 11' is indefinite, but convex on every set with a fixed sum."""
    Q = np.eye(4) - np.ones((4, 4))
    result = minimize(Quadratic(Q, [1.0, 0.5, 0.2, 0.1]), Simplex())
    assert result.status == "optimal"
