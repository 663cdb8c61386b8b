"""`solve_qp`: all forms, L1 terms, ranges, the Newton phase, hard input and warm starts.

The references are the KKT conditions and SciPy's SLSQP, both on the smooth reformulation with split
variables.
"""

import copy
import functools
import math
import pickle
import time
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from oracles import Problem, frank_wolfe_gap, kkt_violation, problem, reference_solution

import pairstep
from pairstep import (
    FactorModel,
    L1Penalized,
    Quadratic,
    Smooth,
    SumBox,
    _core,
    coordinate_descent,
    efficient_frontier,
    simplex_lstsq,
)
from pairstep.paper.rules import RULES

# A solve that would hang fails after this many seconds.
solve_qp = functools.partial(pairstep.solve_qp, time_limit=20.0)
minimize = functools.partial(pairstep.minimize, time_limit=20.0)

# ------------------------------------------------------------------ oracles


@dataclass(frozen=True)
class SumConstrainedQP:
    """min x'Qx/2 + c'x + sum l1 |x - center| in the constraint of an oracles.Problem."""

    Q: np.ndarray
    c: np.ndarray
    l1: np.ndarray
    center: np.ndarray
    p: Problem

    def value(self, x):
        return float(0.5 * x @ self.Q @ x + self.c @ x + self.l1 @ np.abs(x - self.center))

    def gradient(self, x):
        return self.Q @ x + self.c

    def violation(self, x, grain=0.0):
        """The KKT violation; `grain`: the distance within which x counts as at the center."""
        return kkt_violation(self.split(), self.parts(x, grain))

    def parts(self, x, grain=0.0):
        """The variables of the split problem at x: u, or x where there is no L1 term, and v."""
        apart = np.where(np.abs(x - self.center) <= grain, 0.0, x - self.center)
        first = np.where(self.l1 > 0, np.maximum(apart, 0), x)
        return np.concatenate([first, np.maximum(-apart, 0)[self.l1 > 0]])

    def split(self):
        """The smooth problem in u, v >= 0 with x = center + u - v where l1 > 0, x elsewhere.

        Its value is less by a constant.
        """
        eye = np.eye(len(self.c))
        l1_penalized = self.l1 > 0
        base = np.where(l1_penalized, self.center, 0.0)
        S = np.concatenate([eye, -eye[:, l1_penalized]], axis=1)
        low, high = self.p.lower - base, self.p.upper - base
        below, above = low[l1_penalized], high[l1_penalized]
        low = np.where(l1_penalized, np.maximum(low, 0), low)
        high = np.where(l1_penalized, np.maximum(high, 0), high)
        q = S.T @ (self.Q @ base + self.c)
        q += np.concatenate([np.where(l1_penalized, self.l1, 0.0), self.l1[l1_penalized]])
        offset = np.array(
            [(self.p.coefficients * base)[self.p.groups == k].sum() for k in range(len(self.p.low))]
        )
        return Problem(
            value=lambda y: float(0.5 * (S @ y) @ self.Q @ (S @ y) + q @ y),
            gradient=lambda y: S.T @ (self.Q @ (S @ y)) + q,
            lower=np.concatenate([low, np.maximum(-above, 0)]),
            upper=np.concatenate([high, np.maximum(-below, 0)]),
            low=self.p.low - offset,
            high=self.p.high - offset,
            coefficients=np.concatenate([self.p.coefficients, -self.p.coefficients[l1_penalized]]),
            groups=np.concatenate([self.p.groups, self.p.groups[l1_penalized]]),
        )

    def by_slsqp(self, x):
        """The optimum by SLSQP from near x."""
        smooth, start = self.split(), self.parts(x)
        constant = self.value(x) - smooth.value(start)
        return smooth.value(reference_solution(smooth, start + 0.05)) + constant


def sum_constrained(
    Q,
    c=None,
    *,
    total=1.0,
    lower=0.0,
    upper=np.inf,
    coefficients=None,
    groups=None,
    l1=0.0,
    center=0.0,
):
    n = len(Q)
    full = lambda v: np.broadcast_to(np.asarray(v, float), n).copy()  # noqa: E731
    c = np.zeros(n) if c is None else np.asarray(c, float)
    p = problem(
        None, None, n, total, lower, np.inf if upper is None else upper, coefficients, groups
    )
    return SumConstrainedQP(
        np.asarray(Q, float), c, full(0.0 if l1 is None else l1), full(center), p
    )


def assert_feasible(b, x):
    """Bounds as floats; sums within one ulp without coefficients, within rounding with them."""
    assert (x >= b.p.lower).all()
    assert (x <= b.p.upper).all()
    for k, held in enumerate(b.p.sums(x)):
        terms = np.abs((b.p.coefficients * x)[b.p.groups == k])
        exact = (b.p.coefficients == 1).all()
        sizes = [abs(end) for end in (b.p.low[k], b.p.high[k]) if np.isfinite(end)]
        ulp = math.ulp(max([terms.max(initial=0.0), *sizes]))
        slack = ulp if exact and b.p.low[k] == b.p.high[k] else (2 + len(terms)) * ulp
        assert b.p.low[k] - slack <= held <= b.p.high[k] + slack


def assert_solved(b, result, tol=1e-8):
    """Check the KKT conditions, which prove that a point of a convex problem is optimal."""
    x = result.x
    assert result.status == "optimal", result.message
    assert_feasible(b, x)
    size = 1 + np.abs(b.gradient(x) / b.p.coefficients).max()
    rounding = 1e-14 * size * (1 + np.abs(x).max())
    grain = 0.0 if (b.p.coefficients == 1).all() else 4e-16 * (1 + np.abs(b.center).max())
    assert b.violation(x, grain) <= tol * size * (1 + 1e-6) + rounding
    assert result.fun == pytest.approx(b.value(x), rel=1e-12, abs=1e-13 * size)


def covariance(n, m, rng, noise=0.1):
    F = rng.normal(size=(m, n)) / np.sqrt(m)
    return F, noise + rng.random(n) * noise


COMBINATIONS = {
    "simplex": {},
    "boxed": {"upper": 0.3, "lower": -0.05},
    "mixed bounds": {
        "lower": [-np.inf, 0, 0, -0.2, 0, -np.inf, 0.1, 0],
        "upper": [1, 0.2, np.inf, 0.5, 0, np.inf, 0.1, 1],
    },
    "negative total": {"total": -3.0, "lower": -1.0, "upper": 0.5},
    "range": {"total": (0.2, 0.9)},
    "range from below": {"total": (-np.inf, 0.9), "lower": -1.0, "upper": 1.0},
    "range from above": {"total": (0.2, np.inf), "lower": -1.0, "upper": 1.0},
    "no sum": {"total": (-np.inf, np.inf), "lower": -1.0, "upper": 1.0},
    "range of one point": {"total": (1.0, 1.0)},
    "coefficients": {"coefficients": [1, -2, 0.5, 3, -0.1, 7, 1, -1], "lower": -1.0, "upper": 2.0},
    "groups": {"groups": [0, 1, 0, 1, 0, 1, 0, 1], "total": [1.0, 0.5]},
    "groups that skip numbers": {"groups": [7, -3, 7, 7, -3, 90, 90, 7], "total": [1.0, 0.5, 2.0]},
    "a group of one": {"groups": [0, 1, 2, 2, 2, 2, 2, 2], "total": [0.5, 0.5, 0.5]},
    "range per group": {
        "groups": [0, 1, 0, 1, 0, 1, 0, 1],
        "total": ([0.5, -np.inf], [0.8, 0.3]),
        "lower": -0.2,
    },
    "l1_terms": {"l1": 0.2},
    "l1 terms of zero": {"l1": 0.0, "center": 0.3},
    "l1 terms elsewhere": {"l1": 0.3, "center": [0.1, 0.2, 0.3, 0.1, 0.1, 0.05, 0.1, 0.05]},
    "l1 terms of all sizes": {
        "l1": [0, 0.5, 0, 1e-3, 0.1, 5.0, 0.2, 0.3],
        "center": [0.5, 0.2, -1.0, 0.1, 3.0, 0.05, 0.1, 0],
        "upper": 0.6,
    },
    "centers outside": {"l1": 0.3, "center": [-1, 2, -1, 2, 0.1, -5, 0.5, 9], "upper": 0.5},
    "centers at bounds": {"l1": 0.2, "center": [0, 0.5] * 4, "upper": 0.5},
    "all": {
        "l1": [0, 0.5, 0.3, 1e-3, 0.1, 5.0, 0.2, 0.3],
        "center": [0.5, 0.2, -1.0, 0.1, 3.0, 0.05, 0.1, 0],
        "coefficients": [1, -2, 0.5, 3, -0.1, 7, 1, -1],
        "groups": [3, 5, 3, 5, 3, 5, 3, 5],
        "total": ([0.5, -np.inf], [0.8, 0.3]),
        "lower": [-1, -0.5, -np.inf, 0, -1, 0, -0.2, -1],
        "upper": [2, 0.5, 1, 0.5, np.inf, 1, 0.3, 0.4],
    },
}
N = 8
F8, D8 = covariance(N, 3, np.random.default_rng(5), noise=0.4)
C8 = np.random.default_rng(6).normal(size=N)
Q8 = F8.T @ F8 + np.diag(D8)


# ------------------------------------------------------------------ forms


@pytest.mark.parametrize("name", COMBINATIONS)
def test_every_form_solves_every_combination(name):
    options = COMBINATIONS[name]
    b = sum_constrained(Q8, C8, **options)
    results = {
        "dense": solve_qp(Q8, C8, **options),
        "sparse": solve_qp(scipy.sparse.csr_array(Q8), C8, **options),
        "coo": solve_qp(scipy.sparse.coo_matrix(Q8), C8, **options),
        "factors": solve_qp((F8, D8), C8, **options),
        "sparse factors": solve_qp((scipy.sparse.csc_array(F8), D8), C8, **options),
        "square root": solve_qp((np.linalg.cholesky(Q8).T, 0), C8, **options),
    }
    for result in results.values():
        assert_solved(b, result)
    values = [result.fun for result in results.values()]
    assert values == pytest.approx([values[0]] * len(values), rel=1e-9, abs=1e-9)
    assert values[0] == pytest.approx(b.by_slsqp(results["dense"].x), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_singular_matrix_solves_every_combination(name):
    """Rank 3 of 8: many flat directions; the linear term lies in the range of Q."""
    options = COMBINATIONS[name]
    Q, c = F8.T @ F8, F8.T @ [0.3, -0.5, 0.2]
    b = sum_constrained(Q, c, **options)
    for form in (Q, (F8, 0), (F8, np.zeros(N))):
        result = solve_qp(form, c, **options)
        assert_solved(b, result)
    assert result.fun == pytest.approx(b.by_slsqp(result.x), rel=1e-6, abs=1e-6)


def test_the_bound_equals_the_value_of_the_linear_program():
    """suboptimality_bound, at a point far from optimal: recomputed with split variables."""
    options = COMBINATIONS["l1 terms of all sizes"]
    b = sum_constrained(Q8, C8, **options)
    result = solve_qp(Q8, C8, max_iter=0, x0=np.full(N, 1 / N), **options)
    assert result.status == "max_iter"
    x = result.x
    gap = frank_wolfe_gap(b.split(), b.parts(x))
    assert result.suboptimality_bound == pytest.approx(gap, rel=1e-9)
    assert result.kkt_violation == pytest.approx(b.violation(x), rel=1e-9)
    assert gap > 1e-3


# ------------------------------------------------------------------ L1 terms


@pytest.mark.parametrize("form", ["dense", "factors"])
def test_many_coordinates_stay_at_the_center(form):
    rng = np.random.default_rng(1)
    n = 300
    F, D = covariance(n, 5, rng)
    held = rng.dirichlet(np.ones(n))
    c = -0.05 * rng.random(n)
    Q = F.T @ F + np.diag(D)
    options = {"l1": 0.02, "center": held, "tol": 1e-10}
    result = solve_qp(Q if form == "dense" else (F, D), c, **options)
    assert_solved(sum_constrained(Q, c, l1=0.02, center=held), result, tol=1e-10)
    assert (result.x == held).sum() > n // 3
    # At a prohibitive cost nothing is traded, from any start.
    for x0 in (None, np.full(n, 1 / n), np.eye(n)[0]):
        same = solve_qp(Q, c, l1=10.0, center=held, x0=x0)
        assert same.status == "optimal"
        # All but the variable that absorbs the last rounding of the sum.
        assert (same.x == held).sum() >= n - 2
        assert np.abs(same.x - held).max() < 1e-14


def test_coordinates_with_coefficients_stay_exactly_at_the_center():
    """A variable at its center is reported as exactly the center, though w (p / w) may differ."""
    rng = np.random.default_rng(2)
    n = 60
    center, w = rng.random(n), rng.choice([-1, 1], n) * rng.uniform(0.1, 9, n)
    total = math.fsum(w * center) + 0.5
    result = solve_qp(
        np.eye(n), lower=-5, upper=5, coefficients=w, total=total, l1=3.0, center=center, tol=1e-10
    )
    assert result.status == "optimal"
    near = np.abs(result.x - center) < 1e-12
    assert near.sum() > n - 10
    assert (result.x == center).sum() >= near.sum() - 1  # one absorbs the rounding of the sum


# ------------------------------------------------------------------ L1 terms and every rule


def logistic(x):
    return float(np.logaddexp(0, F8 @ x).sum() + 0.5 * x @ (D8 * x) + C8 @ x)


def logistic_gradient(x):
    return F8.T @ (1 / (1 + np.exp(-(F8 @ x)))) + D8 * x + C8


L1_PENALIZED = {
    "l1": [0, 0.4, 0.1, 0.3, 0.1, 1.0, 0.2, 0.3],
    "center": [0.5, 0.2, 0, 0.1, 3, 0, 0.1, 0],
}
BOX = {"total": 0.8, "lower": -0.1, "upper": [0.5, 0.5, 0.3, np.inf, 0.6, 0.5, 0.2, 0.5]}
BOXES = {
    "box": BOX,
    "range": BOX | {"total": (0.1, 0.9)},
    "groups": BOX | {"groups": [0, 1] * 4, "total": [0.5, 0.3]},
    "coefficients": BOX | {"coefficients": [1, 2, -1, 0.5, 1, 3, -1, 1]},
}


@pytest.mark.parametrize("step", ["auto", "1/L2", "lipschitz", "exact", "backtracking"])
@pytest.mark.parametrize("rule", RULES)
def test_l1_penalized_quadratic_with_every_rule_and_step(rule, step):
    for box in BOXES.values():
        b = sum_constrained(Q8, C8, **box, **L1_PENALIZED)
        for smooth in (Quadratic(Q8, C8), FactorModel(F8, D8, C8)):
            result = coordinate_descent(
                L1Penalized(smooth, **L1_PENALIZED), SumBox(**box), rule=rule, step=step, seed=0
            )
            assert_solved(b, result)


@pytest.mark.parametrize("step", ["auto", "1/L2", "lipschitz", "backtracking"])
@pytest.mark.parametrize("rule", RULES)
def test_l1_penalized_smooth_with_every_rule_and_step(rule, step):
    """A quadratic that touches the convex function at a point has the same KKT conditions there."""
    knows = Smooth(logistic, logistic_gradient, lipschitz=np.diag(Q8))
    result = coordinate_descent(
        L1Penalized(knows, **L1_PENALIZED), SumBox(**BOX), rule=rule, step=step, seed=0
    )
    assert result.status == "optimal", result.message
    slope = logistic_gradient(result.x)
    tangent = sum_constrained(Q8, slope - Q8 @ result.x, **BOX, **L1_PENALIZED)
    assert_feasible(tangent, result.x)
    assert tangent.violation(result.x) <= 2e-8 * (1 + np.abs(slope).max())


# ------------------------------------------------------------------ the Newton phase


def conditioned(n, condition, rng):
    """A positive definite matrix with the given condition number."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    Q = basis * np.geomspace(1, 1 / condition, n) @ basis.T
    return (Q + Q.T) / 2


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("condition", [1e4, 1e10, 1e12])
@pytest.mark.parametrize("n", [20, 150])
def test_ill_conditioned_reaches_a_tight_tolerance(n, condition, bounded):
    rng = np.random.default_rng(int(n + np.log10(condition)))
    Q = conditioned(n, condition, rng)
    c = Q @ rng.normal(size=n)  # so that the solution has ordinary size with or without bounds
    options = {"upper": 0.5} if bounded else {"lower": -50.0, "upper": 50.0}
    began = time.process_time()
    result = solve_qp(Q, c, tol=1e-10, time_limit=100, **options)
    assert time.process_time() - began < 2
    assert_solved(sum_constrained(Q, c, **options), result, tol=1e-10)
    assert result.n_iter < 100 * n


# ------------------------------------------------------------------ hard input


def few_days(rng, n=120):
    """Fewer days than assets, down to five."""
    for days in (5, 40, 119):
        returns = 0.01 * rng.normal(size=(days, n)) * np.geomspace(0.3, 3, n)
        returns -= returns.mean(axis=0)
        yield returns / np.sqrt(days), 0.0, -1e-3 * rng.random(n)


def near_duplicates(rng, n=60):
    """Every asset twice, the second a little different."""
    for distance in (0.0, 1e-12, 1e-8, 1e-5):
        F = rng.normal(size=(2 * n, n))
        F = np.concatenate([F, F + distance * rng.normal(size=F.shape)], axis=1) / np.sqrt(n)
        yield F, 0.0, 0.1 * F.T @ rng.normal(size=2 * n)


def duplicates(rng):
    """Every column three times, with the same cost."""
    F, c = rng.normal(size=(5, 4)), 0.1 * rng.normal(size=4)
    yield np.repeat(F, 3, axis=1), 0.0, np.repeat(c, 3)


def zero_variances(rng):
    """Some assets without risk, and only such assets."""
    F, D = covariance(N, 3, rng)
    F[:, :3], D[:3] = 0, 0
    for c in (np.zeros(N), 0.1 * rng.normal(size=N)):
        yield F, D, c
        yield 0 * F, 0 * D, c


SINGULAR = [few_days, near_duplicates, duplicates, zero_variances]


@pytest.mark.parametrize("drawn", SINGULAR, ids=lambda drawn: drawn.__name__)
def test_singular_matrices_reach_a_tight_tolerance(drawn):
    for F, D, c in drawn(np.random.default_rng(4)):
        n = len(c)
        Q = F.T @ F + np.diag(np.broadcast_to(D, n))
        for options in ({}, {"upper": 0.2}, {"l1": 1e-4, "center": 1 / n}, {"total": (0, 1)}):
            b = sum_constrained(Q, c, **options)
            for form in (Q, (F, D), scipy.sparse.csr_array(Q)):
                assert_solved(b, solve_qp(form, c, tol=1e-10, **options), tol=1e-10)


def test_slightly_indefinite_by_rounding_is_solved():
    rng = np.random.default_rng(9)
    for n in (10, 100):
        F = rng.normal(size=(3, n)).astype(np.float32)
        Q = F.T.astype(float) @ F
        Q = Q + 1e-15 * np.abs(Q).max() * (noise := rng.normal(size=(n, n))) + 1e-15 * noise.T
        Q = (Q + Q.T) / 2
        assert np.linalg.eigvalsh(Q)[0] < 0
        result = solve_qp(Q, rng.normal(size=n))
        assert result.status == "optimal", result.message


def test_a_slightly_indefinite_matrix_is_named_in_the_message():
    """The problem is solved, and the message says that Q is indefinite by rounding.

    Only directions that keep the sum count.
    """
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    Q = (basis * [2.0, 1.0, 1.0, 0.0, 0.0, -1e-12]) @ basis.T
    result = solve_qp((Q + Q.T) / 2, upper=0.8)
    assert result.status == "optimal"
    assert "semidefinite" in result.message or "indefinite" in result.message


@pytest.mark.parametrize("n", [3, 50, 100, 300])
def test_truly_indefinite_is_never_called_optimal(n):
    """Small and large; pairs and free variables may not reveal the negative eigenvalue."""
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.linspace(1, 2, n)
    values[0] = -0.5
    Q = (basis * values) @ basis.T
    Q = (Q + Q.T) / 2
    result = solve_qp(Q, rng.normal(size=n), lower=-1.0, upper=1.0)
    assert_feasible(sum_constrained(Q, lower=-1.0, upper=1.0), result.x)
    assert result.status != "optimal"
    assert "semidefinite" in result.message


@pytest.mark.parametrize(("options", "only"), [
    ({"total": 0.0}, np.zeros(N)),
    ({"total": 2.4, "upper": 0.3}, np.full(N, 0.3)),
    ({"total": -0.8, "lower": -0.1}, np.full(N, -0.1)),
    ({"total": 1.0, "lower": 0.125, "upper": 0.125}, np.full(N, 0.125)),
    ({"total": (-5.0, 0.0)}, np.zeros(N)),
    ({"total": [0.0, 0.4], "groups": [0, 1] * 4, "upper": 0.1}, np.array([0, 0.1] * 4)),
    ({"total": 0.0, "l1": 0.1, "center": 0.5}, np.zeros(N)),
])  # fmt: skip
def test_a_single_feasible_point(options, only):
    for form in (Q8, (F8, D8), scipy.sparse.csr_array(Q8)):
        result = solve_qp(form, C8, **options)
        assert result.status == "optimal"
        np.testing.assert_allclose(result.x, only, rtol=0, atol=1e-15)
        assert result.suboptimality_bound <= 1e-14
        assert (result.x >= options.get("lower", 0.0)).all()
        assert (result.x <= options.get("upper", np.inf)).all()


def test_one_variable():
    for form in ([[2.0]], ([[1.0]], 1.0), scipy.sparse.eye_array(1)):
        assert solve_qp(form, [3.0]).x == [1.0]
        assert solve_qp(form, [3.0], total=(0.0, 1.0)).x == [0.0]
        assert solve_qp(form, [-3.0], total=(0.0, 1.0), l1=9.0, center=0.25).x == [0.25]


# ------------------------------------------------------------------ warm starts


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(12)
    F, D = covariance(400, 10, rng)
    Q = F.T @ F + np.diag(D)
    c = 0.001 * rng.normal(size=400)
    return Q, c, F, D


def test_fewer_days_than_assets_use_the_newton_phase():
    F = np.random.default_rng(300).normal(size=(150, 300))
    result = solve_qp(F.T @ F, tol=1e-10)
    assert result.status == "optimal"
    assert result.n_iter < 2000  # pair steps alone take tens of thousands


def test_every_instruction_set_ends_at_the_same_point():
    rng = np.random.default_rng(15)
    F = rng.normal(size=(120, 90))  # so that there is one solution
    before, found = _core.instruction_set(), []
    for name in _core.instruction_sets():
        _core.use_instruction_set(name)
        found.append(solve_qp(F.T @ F, total=[1.0, 1.0], groups=np.arange(90) % 2).x)
    _core.use_instruction_set(before)
    for x in found:  # the factorization uses fused multiply-adds if available
        np.testing.assert_allclose(x, found[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "factors"])
@pytest.mark.parametrize("change", ["c", "total", "bounds", "Q", "center"])
def test_warm_starts_end_at_the_same_optimum(large, form, change):
    Q, c, F, D = large
    rng = np.random.default_rng(13)
    before = {"upper": 0.02, "total": 1.0}
    if change == "center":
        before |= {"l1": 0.001, "center": 0.0025}
    changes = {"total": {"total": 1.001}, "bounds": {"upper": 0.0201}, "center": {"l1": 0.00101}}
    after = before | changes.get(change, {})
    new_c = c + 1e-6 * rng.normal(size=400) if change == "c" else c
    D = D + 0.01 * np.eye(400)[3] if change == "Q" else D
    new_Q = F.T @ F + np.diag(D)
    old = solve_qp(Q, c, **before)
    given = new_Q if form == "dense" else (F, D)
    # The point is made feasible on its support: the nearest point would have no zeros.
    box = SumBox(after["total"], 0.0, np.where(old.x > 0, after["upper"], 0.0))
    b = sum_constrained(new_Q, new_c, **after)
    assert_solved(b, solve_qp(given, new_c, **after))
    warm = solve_qp(given, new_c, x0=box.project(old.x), **after)
    assert_solved(b, warm)
    again = solve_qp(given, new_c, x0=warm.x, **after)
    assert again.n_iter <= 2
    assert again.status == "optimal"


# ------------------------------------------------------------------ properties


@st.composite
def random_problems(draw):
    """A feasible problem with positive semidefinite Q of any rank, and random options."""
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = draw(st.integers(0, n + 3))
    F = rng.normal(size=(m, n)) * 10.0 ** (draw(st.sampled_from([0, 0, 2])) * rng.uniform(-1, 1, n))
    D = draw(st.sampled_from([0.0, 1e-8, 0.1])) * rng.random(n)
    c = rng.normal(size=n) * draw(st.sampled_from([0.0, 0.1, 1.0]))
    groups = rng.integers(0, 3, n) * 5 - 4 if draw(st.booleans()) else None
    coefficients = rng.choice([-2.0, -1.0, 0.3, 1.0, 5.0], n) if draw(st.booleans()) else None
    inside = rng.normal(size=n) * draw(st.sampled_from([0.0, 1.0]))
    lower = inside - rng.choice([0.0, 0.1, 1.0, 3.0], n)
    upper = inside + rng.choice([0.0, 0.1, 1.0, 3.0], n)
    labels = np.zeros(n, int) if groups is None else np.unique(groups, return_inverse=True)[1]
    held = (np.ones(n) if coefficients is None else coefficients) * inside
    sums = np.array([math.fsum(held[labels == k]) for k in range(labels.max() + 1)])
    total = sums
    if draw(st.booleans()):
        total = (
            sums - rng.choice([0.0, 0.5, np.inf], len(sums)),
            sums + rng.choice([0.0, 0.5, np.inf], len(sums)),
        )
    options = {
        "total": total,
        "lower": lower,
        "upper": upper,
        "groups": groups,
        "coefficients": coefficients,
    }
    if draw(st.booleans()):
        options["l1"] = rng.choice([0.0, 0.1, 1.0], n)
        options["center"] = np.where(rng.random(n) < 0.5, inside, rng.normal(size=n))
    return F, D, c, options


@pytest.mark.parametrize("l1_penalized", [False, True])
@settings(max_examples=60, deadline=None, derandomize=True, phases=[Phase.generate])
@given(random_problems(), st.sampled_from([1e-6, 1e-8, 1e-10]))
def test_any_feasible_convex_problem_ends_optimal(l1_penalized, case, tol):
    F, D, c, options = case
    if not l1_penalized:
        options = {k: v for k, v in options.items() if k not in ("l1", "center")}
    Q = F.T @ F + np.diag(D)
    b = sum_constrained(Q, c, **options)
    assert_everything(b, solve_qp(Q, c, **options, tol=tol), tol)
    assert_everything(b, solve_qp((F, D), c, **options, tol=tol), tol)


def assert_everything(b, result, tol):
    # Where all terms vanish at the optimum, a solve may stall at a violation near rounding.
    vanishes = result.status == "stalled" and result.suboptimality_bound <= 1e-10
    assert result.status == "optimal" or vanishes, result.message
    x = result.x
    assert_feasible(b, x)
    size = 1 + np.abs(b.gradient(x) / b.p.coefficients).max()
    assert result.kkt_violation <= tol * size * (1 + 1e-9)
    grain = 4e-16 * (1 + np.abs(b.center).max())
    assert b.violation(x, grain) <= tol * size * 1.001 + 1e-13 * size
    # The gap is limited by tol: at most the violation for every unit that can be exchanged.
    width = (np.abs(b.p.coefficients) * (b.p.upper - b.p.lower)).sum()
    assert result.suboptimality_bound <= tol * size * 1.001 * width + 1e-12 * size
    # A proof of optimality: the Frank-Wolfe gap, computed in this file.
    smooth, y = b.split(), b.parts(x)
    gap = frank_wolfe_gap(smooth, y)
    assert gap <= tol * size * 1.001 * width + 1e-10 * size


def test_lstsq_is_the_quadratic_of_its_gram_matrix():
    rng = np.random.default_rng(14)
    A, y = rng.normal(size=(20, N)), rng.normal(size=20)
    Q = A.T @ A + 0.2 * np.eye(N)
    for options in ({}, {"upper": 0.2}, {"total": (0.5, 3.0)}, {"lower": -1.0, "total": 0.0}):
        b = sum_constrained(Q, -A.T @ y, **options)
        for matrix in (A, scipy.sparse.csr_array(A)):
            result = pairstep.simplex_lstsq(matrix, y, ridge=0.2, **options)
            assert_solved(b, replace(result, fun=result.fun - 0.5 * y @ y))


HELD = np.full(3, 1 / 3)
CALLS = {
    "solve_qp": lambda **options: solve_qp(np.diag([1.0, 2.0, 3.0]), **options),
    "sparse names": lambda **options: solve_qp(scipy.sparse.eye_array(3), max_names=2, **options),
    "turnover": lambda **options: solve_qp(np.eye(3), turnover=(HELD, 0.5), **options),
    "simplex_lstsq": lambda **options: simplex_lstsq(np.eye(3), HELD, **options),
    "efficient_frontier": lambda **options: efficient_frontier(np.eye(3), HELD, **options),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_constraint_object_replaces_its_keywords(call):
    options = {"upper": [0.2, 1.0, 1.0], "groups": ["a", "b", "b"], "group_upper": {"b": 0.9}}
    expected = call(**options).x
    np.testing.assert_array_equal(call(constraint=SumBox(**options)).x, expected)
    assert np.atleast_2d(expected)[0, 0] > 0
    with pytest.raises(ValueError, match="give constraint or upper, not both"):
        call(constraint=SumBox(**options), upper=0.5)


def test_group_limits_by_lower_and_upper():
    Q, groups = np.diag([1.0, 2.0, 3.0]), ["a", "a", "b"]
    expected = pairstep.solve_qp(Q, groups=groups, group_total={"a": (-np.inf, 0.4)})
    result = pairstep.solve_qp(Q, groups=groups, group_upper={"a": 0.4})
    np.testing.assert_array_equal(result.x, expected.x)
    both = SumBox(groups=groups, group_lower={"b": 0.1}, group_upper={"b": 0.3, "a": 0.9})
    assert dict(both.group_total) == {"b": (0.1, 0.3), "a": (-np.inf, 0.9)}
    assert pickle.loads(pickle.dumps(both)) == copy.deepcopy(both) == both
    with pytest.raises(ValueError, match="group 'a' is in group_total and in group_lower"):
        SumBox(groups=groups, group_total={"a": 0.5}, group_upper={"a": 0.4})
    with pytest.raises(ValueError, match="group_upper names 'c', but the groups are 'a', 'b'"):
        SumBox(groups=groups, group_upper={"c": 0.4})
    with pytest.raises(ValueError, match="group_lower needs groups"):
        SumBox(group_lower={"c": 0.4})


def test_groups_by_a_dict_follow_the_labels():
    names = ["x", "y", "z"]
    Q = pd.DataFrame(np.diag([1.0, 2.0, 3.0]), names, names)
    sectors = {"z": "b", "y": "a", "x": "a", "unused": "c"}
    result = pairstep.solve_qp(Q, groups=sectors, group_upper={"a": 0.4})
    expected = pairstep.solve_qp(Q, groups=["a", "a", "b"], group_upper={"a": 0.4})
    np.testing.assert_array_equal(result.x, expected.x)
    with pytest.raises(ValueError, match="'y' is not in groups"):
        pairstep.solve_qp(Q, groups={"x": "a", "z": "b"})


def test_minimize_takes_a_function_and_defaults_to_the_simplex():
    result = pairstep.minimize(lambda x: float(x @ x), x0=np.array([1.0, 0.0]))
    np.testing.assert_allclose(result.x, 0.5, atol=1e-6)
    assert pairstep.minimize(pairstep.Quadratic(np.eye(2))).x.tolist() == [0.5, 0.5]
    with pytest.raises(TypeError, match=r"minimize needs n, value, .* lacks"):
        pairstep.minimize(object())
