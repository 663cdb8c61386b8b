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
from pairstep import LeastSquares, Quadratic, Simplex, SumBox, minimize


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
    assert (result.status == "optimal") == (result.kkt_violation <= result.tolerance)
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


def test_the_multiplier_is_the_derivative_with_respect_to_the_total():
    """d f* / d total, by finite differences."""
    Q, c = H, -A.T @ B

    def best(total):
        return minimize(Quadratic(Q, c), SumBox(total), tol=1e-12)

    slope = (best(1.001).fun - best(0.999).fun) / 0.002
    assert best(1.0).sum_multiplier == pytest.approx(slope, rel=1e-6)


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


def test_a_result_cannot_be_changed():
    result = minimize(Quadratic(H), SumBox(1.0))
    with pytest.raises(AttributeError):
        result.fun = 0.0


@pytest.mark.parametrize("arguments", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_any_feasible_start_leads_to_the_same_value(arguments):
    constraint = SumBox(**arguments)
    rng = np.random.default_rng(6)
    expected = minimize(LeastSquares(A, B, RIDGE), constraint).fun
    for _ in range(5):
        x0 = constraint.project(3 * rng.normal(size=N))
        result = minimize(LeastSquares(A, B, RIDGE), constraint, x0=x0)
        assert result.fun == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_start_within_the_tolerance_is_optimal_without_iterations():
    start = minimize(Quadratic(H), SumBox(1.0), tol=1e-10).x
    result = minimize(Quadratic(H), SumBox(1.0), x0=start, max_iter=0)
    assert result.status == "optimal"
    assert result.n_iter == 0


def test_the_start_is_where_the_solve_begins():
    x0 = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    result = minimize(Quadratic(H), SumBox(1.0), x0=x0, max_iter=0)
    assert result.x.tolist() == x0
    assert sum_error_in_ulps(result.x, 1.0) == 0


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
    "a hill": ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0.3, 0.1, 0.2], {}),
    "a negative diagonal": (np.diag([1.0, -3.0, 1.0]), [0.3, 0.1, 0.2], {"upper": 0.7}),
    "all directions fall": (-np.eye(3), [0.3, 0.1, 0.2], {"upper": 0.7}),
    # The start is stationary, but the maximum.
    "the top of a hill": ([[0.0, 1.0], [1.0, 0.0]], None, {}),
    # Every pair is convex or flat, but along (1, -2, 1) the function falls without bound.
    "a saddle": (np.diag([1.0, -1.0, 1.0]), [1.0, 2.0, 3.0], {"total": 0.0, "lower": -np.inf}),
}


@pytest.mark.parametrize("rule", ["auto", "gs-s"])
@pytest.mark.parametrize("name", INDEFINITE)
def test_an_indefinite_matrix_is_not_called_optimal(name, rule):
    Q, c, options = INDEFINITE[name]
    result = solve_by(rule, Quadratic(Q, c), SumBox(**options))
    assert result.status in ("stalled", "unbounded"), result.message
    assert (result.x >= options.get("lower", 0.0)).all()


def test_negative_curvature_off_the_constraint_does_not_matter():
    """I - 11' is indefinite, but convex on every set with a fixed sum."""
    Q = np.eye(4) - np.ones((4, 4))
    result = minimize(Quadratic(Q, [1.0, 0.5, 0.2, 0.1]), Simplex())
    assert result.status == "optimal"
