"""The SQP solver for smooth functions: with Hessians, with gradients, and with values only."""

import math
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from oracles import problem, reference_solution
from small_problem import solve_by

import pairstep
from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    Status,
    SumBox,
    coordinate_descent,
    minimize,
)
from pairstep.objectives.differences import differences
from pairstep.solve.bfgs import GradientHistory

RNG = np.random.default_rng(0)
N = 12
ROOT = RNG.normal(size=(30, N))
C = RNG.normal(size=N)


def value(x):
    return float(np.logaddexp(0, ROOT @ x).sum() + C @ x)


def gradient(x):
    return ROOT.T @ (1 / (1 + np.exp(-(ROOT @ x)))) + C


def rows(x):
    s = 1 / (1 + np.exp(-(ROOT @ x)))
    return ROOT * np.sqrt(s * (1 - s))[:, None]


def hessian(x):
    return rows(x).T @ rows(x)


HESSIANS = {
    "dense": hessian,
    "sparse": lambda x: scipy.sparse.csr_array(hessian(x)),
    "least squares": lambda x: (rows(x), 0.0),
    "sparse least squares": lambda x: (scipy.sparse.csr_array(rows(x)), 0.0),
    "a factor model": lambda x: FactorModel(rows(x)),
    "factors and a diagonal": lambda x: (np.linalg.cholesky(hessian(x) - 0.01 * np.eye(N)).T, 0.01),
    "none": None,
}


def check_feasible(x, box):
    low, high = (np.broadcast_to(v, len(x)) for v in (box.lower, box.upper))
    assert (x >= low).all()
    assert (x <= high).all()
    if box.coefficients is None and box.groups is None and isinstance(box.total, float):
        assert abs(math.fsum(x) - box.total) <= np.spacing(max(abs(box.total), np.abs(x).max()))


BOXES = {
    "simplex": SumBox(1.0, 0.0, np.full(N, math.inf)),
    "box": SumBox(1.0, -0.3, np.full(N, 0.4)),
    "free": SumBox(1.0, np.full(N, -math.inf), math.inf),
    "coefficients": SumBox(1.0, 0.0, 2.0, coefficients=np.where(np.arange(N) % 3, 1.0, -2.0)),
}


@pytest.mark.parametrize("second", HESSIANS.values(), ids=HESSIANS)
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_agrees_with_scipy(second, box):
    result = minimize(Smooth(value, gradient, second), box, tol=1e-10)
    assert result.status == Status.OPTIMAL, result.message
    check_feasible(result.x, box)
    assert result.fun == value(result.x)
    p = problem(value, gradient, N, box.total, box.lower, box.upper, box.coefficients)
    assert result.fun <= value(reference_solution(p, box.start(N))) + 1e-9
    assert result.n_iter <= (60 if second is None else 10)


@pytest.mark.parametrize(
    "smooth", [lambda f: Smooth(f, gradient=True), lambda f: Smooth(value_and_gradient=f)]
)
def test_value_and_gradient_from_one_call(smooth):
    counts = {"calls": 0}

    def both(x):
        counts["calls"] += 1
        return value(x), gradient(x)

    f = smooth(both)
    x = RNG.normal(size=N)
    assert f.value(x) == value(x)
    assert (f.gradient(x) == gradient(x)).all()
    counts["calls"] = 0
    result = minimize(f, BOXES["simplex"])
    assert result.status == Status.OPTIMAL
    assert counts["calls"] <= 2 * result.n_iter + 2
    with pytest.raises(ValueError, match=r"\(value, gradient\)"):
        smooth(value).value(x)
    with pytest.raises(ValueError, match="not both"):
        Smooth(value, gradient, value_and_gradient=both)
    with pytest.raises(ValueError, match="value must be callable, got None"):
        Smooth()


@pytest.mark.parametrize("box", [BOXES["simplex"], BOXES["box"], BOXES["coefficients"]])
def test_values_are_enough_and_evaluated_within_the_bounds(box):
    low, high = (np.broadcast_to(v, N) for v in (box.lower, box.upper))

    def careful(x):
        assert (x >= low).all()
        assert (x <= high).all()
        return value(x)

    result = minimize(Smooth(careful), box)
    assert result.status == Status.OPTIMAL, result.message
    known = minimize(Smooth(value, gradient, hessian), box, tol=1e-10)
    assert abs(result.fun - known.fun) < 1e-9 * abs(known.fun)


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1.0, 1e9]))
def test_differences_are_gradients(seed, size):
    rng = np.random.default_rng(seed)
    x = size * rng.random(6) * (rng.random(6) > 0.3)
    lower = np.where(rng.random(6) > 0.5, x, -np.inf)
    upper = np.where(rng.random(6) > 0.5, 2 * x + size, np.inf)
    c = rng.normal(size=6)
    found = differences(lambda y: float(np.sum(np.cosh(y / size) + c * y / size)), x, lower, upper)
    assert np.abs(size * found - np.sinh(x / size) - c).max() < 1e-6


def test_differences_of_fixed_variables():
    x = np.array([1.0, 2.0])
    found = differences(lambda y: float(y @ y), x, np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    assert found[0] == 0
    assert abs(found[1] - 4) < 1e-8


# ---------------------------------------------------------------------------------- hard functions


# Hard functions: value, gradient, Hessian, the constraint, and the optimum where it is known.


def entropy(n):
    """A domain that is restricted by bounds that are not given."""
    target = np.geomspace(1e-6, 1.0, n)
    return (
        lambda x: float(np.sum(x * np.log(x / target))), lambda x: np.log(x / target) + 1,
        lambda x: np.diag(1 / x), SumBox(1.0, 0.0, np.ones(n)), target / target.sum(),
    )  # fmt: skip


def logarithms(n):
    """A separable function with curvatures over many decades."""
    d = 10.0 ** np.random.default_rng(0).uniform(-2, 2, n)
    return (
        lambda x: -float(d @ np.log(x)), lambda x: -d / x, lambda x: np.diag(d / x**2),
        SumBox(1.0, 0.0, np.full(n, np.inf)), d / d.sum(),
    )  # fmt: skip


def mixed_directions(n):
    """Curvatures over eight decades along directions that mix all variables."""
    rng = np.random.default_rng(n)
    A, center = rng.normal(size=(n, n)), rng.normal(size=n)
    A = (10.0 ** rng.uniform(-4, 0, n) * np.linalg.qr(A)[0]).T
    return (
        lambda x: float(np.sum((A @ (x - center)) ** 2)) / 2, lambda x: A.T @ (A @ (x - center)),
        lambda x: (A, 0.0), SumBox(1.0, np.full(n, -1.0), 1.0), None,
    )  # fmt: skip


def flat(n):
    """Violations decrease slowly and unevenly long after the value has converged."""
    rng = np.random.default_rng(0)
    C, c = rng.normal(size=(20, n)), rng.normal(size=n)
    return (
        lambda x: float(x @ np.log(x) + c @ x + 5 * (C @ x) @ (C @ x)),
        lambda x: np.log(x) + 1 + c + 10 * (C.T @ (C @ x)),
        lambda x: (np.sqrt(10) * C, 1 / x), SumBox(1.0, np.full(n, 1e-9)), None,
    )  # fmt: skip


def hyperbolic(n):
    """More variables than the coordinate-descent solver is used for."""
    target = np.random.default_rng(3).normal(size=n)
    return (
        lambda x: float(np.sum(np.cosh(x - target))), lambda x: np.sinh(x - target),
        lambda x: (np.zeros((1, n)), np.cosh(x - target)), SumBox(10.0, 0.0, np.full(n, 0.5)), None,
    )  # fmt: skip


HARD = [
    (entropy, 8), (logarithms, 2), (logarithms, 40), (logarithms, 120), (mixed_directions, 40),
    (mixed_directions, 41), (flat, 200), (flat, 700), (hyperbolic, 1300),
]  # fmt: skip


@pytest.mark.parametrize(("function", "n"), HARD)
def test_gradients_alone_end_at_the_optimum(function, n):
    value, gradient, hessian, box, expected = function(n)
    result = minimize(Smooth(value, gradient), box, time_limit=60)
    exact = minimize(Smooth(value, gradient, hessian), box, tol=1e-10)
    assert result.status == exact.status == Status.OPTIMAL, (result.message, exact.message)
    assert result.fun == pytest.approx(exact.fun, rel=1e-9, abs=1e-9)
    assert n > 120 or result.n_iter < 200
    if expected is not None:
        np.testing.assert_allclose(result.x, expected, rtol=1e-4)
        np.testing.assert_allclose(exact.x, expected, rtol=1e-6)


def test_a_start_outside_the_domain_is_refused():
    f = Smooth(lambda x: -float(np.log(x).sum()), lambda x: -1 / x)
    with pytest.raises(ValueError, match="x0"):
        minimize(f, SumBox((0.0, 2.0), 0.0, np.ones(2)))
    assert minimize(f, SumBox((0.0, 2.0), 0.0, np.ones(2)), x0=[0.5, 0.5]).x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("second", [True, False])
def test_not_convex(second):
    """The solver reaches a local minimum, with or without a Hessian."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(10, 10))
    A = A + A.T

    def f(x):
        return float(x @ A @ x / 2 + np.sum(x**4))

    def g(x):
        return A @ x + 4 * x**3

    f_known = Smooth(f, g, (lambda x: A + 12 * np.diag(x**2)) if second else None)
    box = SumBox(1.0, -2.0, np.full(10, 2.0))
    result = minimize(f_known, box, history=True)
    assert result.status == Status.OPTIMAL, result.message
    assert result.kkt_violation < 1e-7
    assert (np.diff(result.history.value) <= 1e-12).all()
    # No pair of coordinates decreases f: a minimum, not a saddle.
    for i in range(10):
        for j in range(10):
            e = np.zeros(10)
            e[i] += 1e-4
            e[j] -= 1e-4
            moved = result.x + e
            if (np.abs(moved) <= 2).all():
                assert f(moved) >= result.fun - 1e-11


def test_a_stationary_point_that_is_no_minimum_is_not_called_optimal():
    f = Smooth(lambda x: -float(x @ x), lambda x: -2 * x, lambda x: -2 * np.eye(3))
    result = minimize(f, SumBox(0.0, -1.0, np.ones(3)), x0=np.zeros(3))
    assert result.status != Status.OPTIMAL or result.fun < -1.9


HALF = np.full(N, 0.5)
REACHED = {
    "l1 terms": (SumBox(1.0, 0.0, HALF), 0.3),
    "l1 terms and groups": (SumBox([0.3, 0.4, 0.5], 0.0, HALF, groups=np.arange(N) % 3), 0.3),
    "range": (SumBox((0.5, 2.0), 0.0, HALF), 0.0),
    "groups": (SumBox([1.0, 0.5], 0.0, HALF, groups=np.arange(N) % 2), 0.0),
    "range, coefficients and groups": (
        SumBox((0.0, 1.0), 0.0, 1.0, coefficients=1.0 + np.arange(N), groups=np.arange(N) // 6),
        0.0,
    ),
}


@pytest.mark.parametrize("second", [hessian, None])
@pytest.mark.parametrize("name", REACHED)
def test_coordinate_descent_ends_at_the_same_value(name, second):
    box, l1 = REACHED[name]
    f = Smooth(value, gradient, second)
    f = L1Penalized(f, l1, np.full(N, 0.1)) if l1 else f
    result = minimize(f, box, tol=1e-10)
    assert result.status == Status.OPTIMAL, result.message
    slow = coordinate_descent(f, box, rule="gs-1", tol=1e-9)
    assert abs(result.fun - slow.fun) < 1e-9
    assert not l1 or (result.x == 0.1).any()


def test_one_variable():
    f = Smooth(lambda x: float(np.exp(x[0])), lambda x: np.exp(x), lambda x: np.diag(np.exp(x)))
    assert minimize(f, Simplex(2.0), x0=[2.0]).x.tolist() == [2.0]
    assert minimize(f, SumBox((-1.0, 1.0), np.full(1, -5.0))).x.tolist() == [-1.0]


@given(st.integers(0, 10**6), st.booleans(), st.integers(0, 3))
def test_iterates_are_feasible_and_values_decrease(seed, second, max_iter):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    A = rng.normal(size=(5, n)) * 10.0 ** rng.integers(-2, 3)
    lower = np.where(rng.random(n) < 0.8, -rng.random(n), -np.inf)
    upper = np.where(rng.random(n) < 0.5, 1 + rng.random(n), np.inf)
    f = Smooth(
        lambda x: float(np.logaddexp(0, A @ x).sum()),
        lambda x: A.T @ (1 / (1 + np.exp(-(A @ x)))),
        (lambda x: (A / (2 * np.cosh(A @ x / 2))[:, None], 0.0)) if second else None,
    )
    box = SumBox(float(rng.random()), lower, upper)
    result = minimize(f, box, max_iter=max_iter, history=True)
    check_feasible(result.x, box)
    falls = np.diff(result.history.value)
    assert (falls <= 1e-13 * np.abs(result.history.value[1:])).all()
    assert result.fun == f.value(result.x)


# -------------------------------------------------------------------------------------- statuses


def test_a_warm_start_saves_iterations():
    f = Smooth(value, gradient, hessian)
    cold = minimize(f, BOXES["simplex"], tol=1e-10)
    warm = minimize(f, BOXES["simplex"], x0=cold.x, tol=1e-10)
    assert warm.n_iter == 0


def test_large_least_squares_form():
    """More variables than a Gram matrix is formed for: the block solver solves the models."""
    rng = np.random.default_rng(1)
    A = rng.random((60, 1500)) ** 4 + 1e-3
    calls = []

    def second(x):
        calls.append(x)
        return A / (A @ x)[:, None], 0.0

    f = Smooth(lambda x: -float(np.log(A @ x).sum()), lambda x: -A.T @ (1 / (A @ x)), second)
    result = minimize(f, Simplex(), x0=np.full(1500, 1 / 1500), tol=1e-9)
    assert result.status == Status.OPTIMAL, result.message
    assert result.suboptimality_bound < 1e-6 * abs(result.fun)
    own = minimize(pairstep.MixtureLikelihood(A, np.ones(60)), Simplex(), tol=1e-9)
    assert abs(own.fun - result.fun) < 1e-7 * abs(own.fun)


# ------------------------------------------------------------------------------------------ BFGS


@given(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from([2, 8, 40]))
def test_learned_curvature_is_bfgs(seed, count, n):
    """Compared with the textbook recursion on a dense matrix."""
    rng = np.random.default_rng(seed)
    count = min(count, n - 1)
    A = rng.normal(size=(n, n))
    H = A @ A.T + 0.1 * np.eye(n)
    learned = GradientHistory(n)
    steps = rng.normal(size=(count, n))
    steps -= steps.mean(axis=1, keepdims=True)
    pairs = [(s, H @ s) for s in steps]
    for step, change in pairs:
        learned.append(step, change)
    bend = learned.hessian(np.arange(n), SumBox().layout(n), guess=1.5)
    B = np.diag(bend.diagonal)
    for s, y in pairs:
        y = y - np.average(y, weights=1 / bend.diagonal)
        B += np.outer(y, y) / (y @ s) - np.outer(B @ s, B @ s) / (s @ B @ s)
    z, gradient = rng.normal(size=(2, n))
    model = bend.around(z)
    assert np.allclose(model.hessian, B, atol=1e-9 * np.abs(B).max())
    assert np.linalg.eigvalsh(model.hessian).min() > 0
    assert np.allclose(model.gradient(z), 0, atol=1e-9 * np.abs(B).max())
    assert np.allclose(model.gradient(z + 1), B @ np.ones(n), atol=1e-8 * np.abs(B).max())
    step = bend.step(gradient)
    assert abs(step.sum()) < 1e-8 * np.abs(step).max()
    slopes = B @ step + gradient
    assert np.ptp(slopes) < 1e-7 * max(np.abs(gradient).max(), np.abs(B * step).max())


def test_a_step_without_curvature_updates_nothing():
    learned = GradientHistory(2)
    learned.append(np.array([1.0, -1.0]), np.array([-1.0, 1.0]))
    learned.append(np.array([1.0, -1.0]), np.zeros(2))
    bend = learned.hessian(np.arange(2), SumBox().layout(2), guess=1.5)
    assert len(bend.steps) == 0
    assert (bend.diagonal == 1.5).all()


def test_noise_in_the_gradient_is_no_progress():
    """Values that go up and down by their rounding do not keep a solve going."""
    rng = np.random.default_rng(0)
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x + 1e-6 * rng.normal(size=6), n=6)
    result = minimize(f, Simplex(), x0=np.eye(6)[0], time_limit=60)
    assert result.status == "stalled"
    assert result.n_iter < 5000
    assert np.abs(result.x - 1 / 6).max() < 1e-5


# ---------------------------------------------------------------------------------------- parts


@given(st.integers(0, 10**6))
def test_models_match_their_definition(seed):
    rng = np.random.default_rng(seed)
    n, m = 6, 4
    x, slope, bend = rng.normal(size=n), rng.normal(size=n), rng.random()
    F, D, weight = rng.normal(size=(m, n)), rng.random(n), rng.normal(size=m)
    H = F.T @ (weight[:, None] * F) + np.diag(D)
    models = [pairstep.LeastSquares.around(x, F, D, weight), Quadratic.around(x, H)]
    for model in models:
        full = model.plus(slope, bend, x)
        d = rng.normal(size=n)
        expected = slope @ d + d @ H @ d / 2 + bend * d @ d / 2
        assert abs(full.value(x + d) - full.value(x) - expected) < 1e-10
        assert np.allclose(full.gradient(x + d), slope + H @ d + bend * d)
        assert np.allclose(full.hessian, H + bend * np.eye(n))
        assert np.allclose(full.lipschitz, np.diag(H) + bend)
        assert abs(full.curvature(np.arange(n), d) - d @ full.hessian @ d) < 1e-9


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_autodiff(library):
    pytest.importorskip(library)
    if library == "jax":
        import jax.numpy as numbers
    else:
        import torch as numbers

    def f(x):
        return (x * numbers.log(x)).sum() + (x**4).sum()

    box = SumBox(1.0, 1e-6, np.array([0.2, 1.0, 1.0]))
    for smooth in (Smooth(f, library), Smooth(f, library, library)):
        x = np.array([0.1, 0.3, 0.6])
        assert np.allclose(smooth.gradient(x), np.log(x) + 1 + 4 * x**3, rtol=1e-14)
        result = minimize(smooth, box)
        assert result.status == Status.OPTIMAL
        assert np.allclose(result.x, [0.2, 0.4, 0.4], atol=1e-7)


def test_subnormal_amounts():
    A, b = np.array([[0.12573022, -0.13210486]]), np.array([-0.53566937])
    f = LeastSquares(A, b)
    box = SumBox(5e-324, [-np.inf, 0.0], [np.inf, 5e-324])
    result = minimize(Smooth(f.value, f.gradient), box, max_iter=40)
    assert math.fsum(result.x) == 5e-324
    assert result.x[1] in (0.0, 5e-324)


@pytest.mark.parametrize("rule", ["auto", "gs-1"])
@pytest.mark.parametrize("quick", [0, 100, 250])
def test_the_time_limit_holds_within_a_gradient_by_differences(rule, quick):
    """After `quick` fast calls, f is so slow that a finite-difference gradient takes seconds."""
    n, calls = 40, 0

    def value(x):
        nonlocal calls
        calls += 1
        if calls > quick:
            time.sleep(0.02)
        return float(x @ x / 2 + np.log1p(np.arange(n)) @ x)

    result = solve_by(rule, Smooth(value, n=n), Simplex(), time_limit=0.3, history=True)
    assert result.status == "time_limit"
    assert calls < quick + 40  # a gradient takes 82
    assert result.x.sum() == pytest.approx(1.0)
    assert len(result.history.value) == result.n_iter + 1
    if quick == 0:
        assert result.kkt_violation == result.suboptimality_bound == math.inf
        assert "before the first gradient was known" in result.message
    else:  # the last point with a known gradient
        plain = solve_by(
            rule, Smooth(lambda x: float(x @ x / 2 + np.log1p(np.arange(n)) @ x)), Simplex(),
            x0=np.full(n, 1 / n), max_iter=result.n_iter,
        )  # fmt: skip
        assert result.x == pytest.approx(plain.x, abs=1e-6)
        assert result.kkt_violation == pytest.approx(plain.kkt_violation, abs=1e-6)


def test_a_time_limit_holds_for_the_solve_it_was_given_to():
    """The function solves another problem by finite differences, without a limit."""
    inner = Smooth(lambda y: float(y @ y), n=3)
    states = []

    def value(x):
        states.append(minimize(inner, Simplex()).status)
        return float(x @ x)

    outer = minimize(Smooth(value, n=50), Simplex(), x0=np.eye(50)[0], time_limit=0.05)
    assert outer.status == "time_limit"
    assert set(states) == {"optimal"}


@pytest.mark.parametrize("rule", ["auto", "gs-1"])
@pytest.mark.parametrize("l1_penalized", [False, True])
def test_a_wrong_gradient_is_named_if_a_solve_stalls(rule, l1_penalized):
    wrong = Smooth(lambda x: float(x @ x), lambda x: -2 * x)
    objective = L1Penalized(wrong, (0.01, 0.02)) if l1_penalized else wrong
    result = solve_by(rule, objective, SumBox(1.0), x0=[0.7, 0.2, 0.1], history=True)
    assert result.status == "stalled"
    assert len(result.history.value) == result.n_iter + 1
    assert (
        "the gradient is probably wrong: along a step from variable 2 to variable 0 it gives "
        in (result.message)
    )
    assert "the derivative -1.2, and differences of the value give 1.2; " in result.message
    assert "scipy.optimize.check_grad" in result.message


def test_a_right_gradient_is_not_called_wrong_if_a_solve_stalls():
    right = Smooth(lambda x: float(x @ x) + 1e8, lambda x: 2 * x)
    result = minimize(right, SumBox(1.0), x0=[0.7, 0.2, 0.1], tol=1e-16)
    assert result.status == "stalled"
    assert "if this is unexpected, the gradient may be wrong" in result.message
    own = pairstep.KLDivergence(np.abs(ROOT), np.ones(len(ROOT)))  # not the caller's gradient
    unreachable = minimize(own, Simplex(), tol=0.0)
    assert "gradient" not in unreachable.message


def test_a_gradient_is_checked_within_groups_coefficients_and_ranges():
    wrong = Smooth(lambda x: float(x @ x), lambda x: 2 * x * [1.0, 1.0, 1.0, 3.0])
    box = SumBox((0.5, 1.0), 0.0, 1.0, [1.0, 2.0, 2.0, 1.0], [1, 0, 1, 0], {0: (0.2, 0.6)})
    result = minimize(wrong, box)
    assert result.status == "stalled"
    assert "wrong: along a step that changes all variables it gives the derivative" in (
        result.message
    )
