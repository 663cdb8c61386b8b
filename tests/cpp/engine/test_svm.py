"""The native SVM solver: optima of independent solvers, and violations recomputed from the data."""

import itertools
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import sum_error_in_ulps
from pairwise import pairwise
from sklearn.metrics.pairwise import pairwise_kernels

import pairstep
from pairstep.svm import duals
from pairstep.svm.engine import Dual, Kernel, solve

EPS = np.finfo(float).eps
RBF = Kernel("rbf", 0.2)
KERNELS = [Kernel("linear"), Kernel("poly", 0.3, 3, 1.0), RBF]
KINDS = ["c classification", "nu classification", "regression", "nu regression", "one class"]


def gram(X, kernel):
    """The kernel matrix in float64; distances from differences."""
    X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, float)
    if kernel.name == "precomputed":
        return X
    if kernel.name == "rbf":
        squares = sum((x[:, None] - x) ** 2 for x in X.T)
        return np.exp(-kernel.gamma * squares)
    parameters = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    return pairwise_kernels(X, metric=kernel.name, filter_params=True, **parameters)


def random_dual(kind, n, rng, C=1.0, y=None):
    y = rng.normal(size=n) if y is None else y
    limit = np.full(n, C)
    if kind == "regression":
        return duals.epsilon_regression(y, limit, 0.1)
    if kind == "nu regression":
        return duals.nu_regression(y, limit, 0.3)
    if kind == "one class":
        return duals.one_class(limit, 0.2)
    y = y > np.median(y)
    if kind == "nu classification":
        return duals.nu_classification(np.flatnonzero(y), np.flatnonzero(~y), limit, 0.3)
    return duals.c_classification(np.flatnonzero(y), np.flatnonzero(~y), limit)


def run(X, kernel, *given, **changes):
    how = {
        "tol": 1e-3, "max_iter": 10**7, "time_limit": 30.0, "cache_bytes": 2**26, "threads": 1,
    }  # fmt: skip
    return solve(X, kernel, given, **{**how, **changes})


def matrix_of(dual, X, kernel):
    return gram(X, kernel)[np.ix_(dual.rows, dual.rows)]


def value(dual, K, z):
    l1 = 0.0 if dual.l1 is None else dual.l1 @ np.abs(z)
    return float(z @ (0.5 * K @ z + dual.linear) + l1)


def reference_value(dual, K):
    """The minimum, from the solver for explicit matrices at a tight tolerance."""
    objective = pairstep.Quadratic(K, dual.linear)
    if dual.l1 is not None:
        objective = pairstep.L1Penalized(objective, dual.l1)
    groups = np.repeat(np.arange(len(dual.totals)), np.diff(dual.starts))
    constraint = pairstep.SumBox(dual.totals, dual.lower, dual.upper, groups=groups)
    return value(dual, K, pairstep.minimize(objective, constraint, tol=1e-11, time_limit=20).x)


def true_violation(dual, K, z):
    """The violation by definition over all points, and a bound on its rounding error."""
    gradient = K @ z + dual.linear
    l1 = np.zeros(len(z)) if dual.l1 is None else dual.l1
    save = gradient + np.where(z > 0, l1, -l1)
    cost = gradient + np.where(z < 0, -l1, l1)
    worst = 0.0
    for begin, end in zip(dual.starts[:-1], dual.starts[1:], strict=True):
        own = slice(begin, end)
        max_left = save[own][z[own] > dual.lower[own]].max(initial=-np.inf)
        min_right = cost[own][z[own] < dual.upper[own]].min(initial=np.inf)
        worst = max(worst, max_left - min_right)
    terms = np.abs(K) @ np.abs(z) + np.abs(dual.linear)
    return worst, 2 * (10 + np.sqrt(len(z))) * EPS * terms.max()


def check_feasible(dual, z):
    assert (z >= dual.lower).all()
    assert (z <= dual.upper).all()
    for begin, end, total in zip(dual.starts[:-1], dual.starts[1:], dual.totals, strict=True):
        assert sum_error_in_ulps(z[begin:end], total) <= 1


def check_honest(dual, K, solution, tol=1e-3, slack=0.0):
    """Check that the point is feasible and the reported violation is true, for any status."""
    check_feasible(dual, solution.z)
    truth, noise = true_violation(dual, K, solution.z)
    assert solution.kkt_violation == pytest.approx(truth, rel=1e-6, abs=noise + slack)
    assert (solution.status == "optimal") == (solution.kkt_violation <= tol)


# ------------------------------------------------------------------------------ the same optimum


@pytest.mark.parametrize(
    ("kind", "kernel", "n"), pairwise(KINDS, KERNELS, [2, 3, 10, 200, 1200]), ids=str
)
def test_same_value_as_with_the_whole_matrix(kind, kernel, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) + 1
    dual = random_dual(kind, n, rng, y=np.abs(X).sum(axis=1) + rng.normal(size=n))
    K = matrix_of(dual, X, kernel)
    (solution,) = run(X, kernel, dual, tol=1e-5)
    assert solution.status == "optimal"
    check_honest(dual, K, solution, 1e-5)
    best = reference_value(dual, K)
    allowed = 1e-9 * (1 + abs(best))
    assert abs(value(dual, K, solution.z) - best) <= solution.duality_gap + allowed
    assert solution.duality_gap <= 1e-5 * (np.abs(solution.z).sum() + np.abs(dual.totals).sum() + n)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("features", [3, 95, 96])
@pytest.mark.parametrize("n", [129, 143, 145, 1000])
def test_first_steps_on_all_variables(n, features, form, instruction_set):
    """Kernel rows are computed one at a time, in blocks from 96 features on, or 32 at a time."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, features)) * (
        rng.random((n, features)) < 0.2 if form == "sparse" else 1
    )
    kernel = Kernel("rbf", 1.0 / features)
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    given = (
        random_dual("c classification", n, rng, 3.0, y),
        random_dual("regression", n, rng, 3.0, y),
    )
    rows = scipy.sparse.csr_array(X) if form == "sparse" else X
    found = [run(rows, kernel, dual, tol=1e-4)[0] for dual in given]
    exact = [run(X, kernel, dual, tol=1e-4, dtype=np.float64)[0] for dual in given]
    for dual, solution, other in zip(given, found, exact, strict=True):
        K = matrix_of(dual, X, kernel)
        assert solution.status == "optimal"
        check_honest(dual, K, solution, 1e-4)
        gap = solution.duality_gap + other.duality_gap + 1e-12
        assert abs(value(dual, K, solution.z) - value(dual, K, other.z)) <= gap


@st.composite
def odd_duals(draw):
    """Random bounds: some equal, infinite or of one sign; groups; starts at either bound."""
    n, seed = draw(st.integers(2, 60)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    lower = rng.choice([-2.0, -1.0, -0.1, 0.0], n)
    upper = lower + rng.choice([0.0, 0.1, 1.0, 3.0, np.inf], n)
    cut = draw(st.integers(1, n))
    starts = np.array([0, n] if cut == n else [0, cut, n])
    finite = np.minimum(upper, 5.0)
    toward = draw(st.sampled_from(["lower", "upper", "between"]))
    fraction = {"lower": 0.0, "upper": 1.0, "between": rng.random(n)}[toward]
    z = np.clip(lower + fraction * (finite - lower), lower, upper)
    ends = itertools.pairwise(starts)
    totals = np.array([math.fsum(z[begin:end]) for begin, end in ends])
    l1 = rng.choice([0.0, 0.3], n) if draw(st.booleans()) else None
    return Dual(rng.permutation(n), rng.normal(size=n), lower, upper, starts, totals, z, l1), seed


@settings(max_examples=60, deadline=None)
@given(odd_duals(), st.sampled_from(KERNELS), st.booleans())
def test_odd_bounds(drawn, kernel, sparse):
    dual, seed = drawn
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(dual.z), 3)) * (rng.random((len(dual.z), 3)) < 0.7)
    # An extra feature per row acts as a ridge and keeps unbounded variables finite.
    X = np.hstack([X, 0.3 * np.eye(len(X))])
    K = matrix_of(dual, X, kernel)
    (solution,) = run(scipy.sparse.csr_array(X) if sparse else X, kernel, dual, tol=1e-8)
    check_honest(dual, K, solution, 1e-8)
    if np.isfinite(dual.upper).all():
        best = reference_value(dual, K)
        assert value(dual, K, solution.z) == pytest.approx(best, rel=1e-7, abs=1e-7)


def test_restoring_the_last_ulp_of_a_sum_leaves_variables_at_their_bounds():
    """With nu = 1 all variables are at their bounds, and the sum of the bounds is rounded."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 200))
        X, limit = rng.normal(size=(n, 2)), rng.uniform(0.1, 1, n)
        (solution,) = run(X, RBF, duals.one_class(limit, 1.0))
        assert solution.status == "optimal"
        assert (solution.z == limit).all()


def test_zeros_and_bounds_are_exact():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2))
    for kind in KINDS:
        dual = random_dual(kind, 1500, rng, y=X[:, 0] + 0.1 * rng.normal(size=1500))
        (solution,) = run(X, RBF, dual)
        check_feasible(dual, solution.z)
        z = solution.z
        assert not ((np.abs(z) > 0) & (np.abs(z) < 1e-12)).any()
        near = np.minimum(z - dual.lower, dual.upper - z)
        assert not ((near > 0) & (near < 1e-12)).any()
        if kind == "regression":
            assert (z == 0).sum() > 100


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("rows", [96, 97, 400])
def test_duals_that_share_a_kernel_matrix(rows, kernel, sparse):
    """Classes out of order, compared with solves without memory for a matrix."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 5))
    if sparse:
        X[rng.random(X.shape) < 0.8] = 0.0
        X = scipy.sparse.csr_array(X)
    classes = [np.flatnonzero(np.arange(rows) % 4 == k) for k in range(4)]
    given = [
        duals.c_classification(a, b, np.ones(rows)) for a, b in itertools.combinations(classes, 2)
    ]
    shared = run(X, kernel, *given, tol=1e-6, threads=2)
    apart = run(X, kernel, *given, tol=1e-6, cache_bytes=2**14)
    for dual, one, other in zip(given, shared, apart, strict=True):
        K = matrix_of(dual, X, kernel)
        check_honest(dual, K, one)
        assert value(dual, K, one.z) == pytest.approx(value(dual, K, other.z), rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("n", [400, 1500])
def test_small_caches(kernel, n):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    dual = random_dual("regression", n, rng)
    K = matrix_of(dual, X, kernel)
    row = 4 * (n + 48)
    values = []
    for size in (0, 1, row, 2 * row, 7 * row, 100 * row, 2**27):
        (solution,) = run(X, kernel, dual, cache_bytes=size, tol=1e-5)
        assert solution.status == "optimal"
        check_honest(dual, K, solution, 1e-5)
        values.append(value(dual, K, solution.z))
    np.testing.assert_allclose(values, values[-1], rtol=1e-7)


@pytest.mark.parametrize("kind", ["one class", "nu classification"])
def test_float64_takes_over_if_float32_makes_no_progress(kind):
    """Few steps reach 1e-7 in float64; float32 must not spend its time below its precision."""
    rng = np.random.default_rng(1200)
    X = rng.normal(size=(1200, 4))
    dual = random_dual(kind, 1200, rng)
    (double,) = run(X, Kernel("linear"), dual, tol=1e-7, dtype=np.float64)
    (single,) = run(X, Kernel("linear"), dual, tol=1e-7, dtype=np.float32)
    assert double.status == single.status == "optimal"
    assert single.n_iter <= 300_000 + 10 * double.n_iter


# ------------------------------------------------------------------------- reported violations


HARD_DATA = {
    "plain": lambda X, rng: X,
    "far": lambda X, rng: X + 1e4,
    "scales": lambda X, rng: X * np.logspace(-2, 2, X.shape[1]),
    "duplicates": lambda X, rng: X[rng.integers(0, len(X) // 10, len(X))],
    "near duplicates": lambda X, rng: (
        X[rng.integers(0, len(X) // 10, len(X))] + 1e-7 * rng.normal(size=X.shape)
    ),
    "heavy tails": lambda X, rng: X * np.exp(rng.normal(size=(len(X), 1))),
}


@pytest.mark.parametrize("name", HARD_DATA)
@pytest.mark.parametrize("gamma", [1e-5, 0.1, 1e3])
@pytest.mark.parametrize("n", [150, 1100])
def test_violation_is_true_on_hard_data(name, gamma, n):
    """The tolerance includes the rounding error of the kernel: eps * gamma * squared norms."""
    rng = np.random.default_rng(8)
    X = HARD_DATA[name](rng.normal(size=(n, 4)), rng)
    kernel = Kernel("rbf", gamma)
    y = X[:, 0] - X[:, 0].mean() + 0.5 * X[:, 0].std() * rng.normal(size=n)
    norms = ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    for kind, C in (("c classification", 1.0), ("c classification", 1e10), ("one class", 1.0)):
        dual = random_dual(kind, n, rng, C, y)
        (solution,) = run(X, kernel, dual, time_limit=0.5)
        heaviest = np.abs(solution.z).max()
        slack = 64 * EPS * gamma * norms * heaviest
        check_honest(dual, matrix_of(dual, X, kernel), solution, slack=slack)


def test_violation_is_true_where_kernel_values_are_huge():
    """The correction of the sum must not go to the variable with kernel values of 1e18."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 5)) * np.exp(2 * rng.normal(size=(40, 1)))
        kernel = Kernel("poly", 1.0, 3, 1.0)
        dual = random_dual("one class", 40, rng)
        (solution,) = run(X, kernel, dual)
        K = matrix_of(dual, X, kernel)
        truth, noise = true_violation(dual, K, solution.z)
        assert solution.kkt_violation == pytest.approx(truth, rel=1e-3, abs=noise + 1e-5)


@pytest.mark.parametrize("limit", ["max_iter", "time_limit"])
def test_violation_is_true_when_stopped_early(limit):
    """Also if the gradient was updated in float32 until then."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(1500, 5))
    dual = random_dual("c classification", 1500, rng, 1e4)
    how = {"max_iter": 20_000} if limit == "max_iter" else {"time_limit": 0.05}
    (solution,) = run(X, Kernel("rbf", 0.1), dual, tol=1e-6, **how)
    assert solution.status == limit
    check_honest(dual, matrix_of(dual, X, Kernel("rbf", 0.1)), solution, 1e-6)


@pytest.mark.unsanitized
def test_violation_is_true_of_an_indefinite_kernel():
    """A sigmoid kernel is indefinite: the solve must end with a status that is true."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 4))
    for kernel in (Kernel("sigmoid", 1.0), Kernel("sigmoid", 0.1, 3, -1.0)):
        for kind, C in (("c classification", 1.0), ("regression", 100.0), ("one class", 1.0)):
            dual = random_dual(kind, 300, rng, C)
            began = time.process_time()
            (solution,) = run(X, kernel, dual, time_limit=1.0)
            assert time.process_time() - began < 3
            check_honest(dual, matrix_of(dual, X, kernel), solution, slack=1e-9 * C)


# ------------------------------------------------------------------------- limits and callbacks


@pytest.mark.parametrize("kernel", [*KERNELS, Kernel("precomputed")], ids=lambda k: k.name)
@pytest.mark.parametrize("n", [300, 1500])
def test_same_bits_with_two_threads_and_again(kernel, n):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(n, 5))
    if kernel.name == "precomputed":
        X = gram(X, RBF)
    dual = random_dual("regression", n, rng)
    first, again, two = (run(X, kernel, dual, threads=threads)[0] for threads in (1, 1, 2))
    for other in (again, two):
        np.testing.assert_array_equal(other.z, first.z)
        np.testing.assert_array_equal(other.gradient, first.gradient)
        assert (other.n_iter, other.kkt_violation) == (first.n_iter, first.kkt_violation)


@pytest.mark.faults
@pytest.mark.slow
def test_same_bits_on_a_busy_computer():
    """A block that takes longer than the interval between clock checks gives the same bits."""
    rng = np.random.default_rng(13)
    X = rng.normal(size=(1600, 20))
    dual = random_dual("c classification", 1600, rng, 1e3)
    command = [sys.executable, "-c", "while True: pass"]
    quiet = run(X, Kernel("rbf", 0.02), dual, tol=1e-5)[0]
    others = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        busy = run(X, Kernel("rbf", 0.02), dual, tol=1e-5)[0]
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert busy.n_iter == quiet.n_iter
    np.testing.assert_array_equal(busy.z, quiet.z)


def test_max_iter_bounds_each_dual():
    rng = np.random.default_rng(14)
    X = rng.normal(size=(500, 3))
    given = [random_dual("c classification", n, rng) for n in (100, 500)]
    for most in (1, 7, 20):
        for dual, solution in zip(given, run(X, RBF, *given, max_iter=most), strict=True):
            assert solution.n_iter <= most
            assert solution.status == "max_iter"
            check_honest(dual, matrix_of(dual, X, RBF), solution)


ENDLESS = {"tol": 1e-12, "time_limit": 60.0}


def endless(n=3000):
    rng = np.random.default_rng(15)
    return rng.normal(size=(n, 20)), random_dual("c classification", n, rng, 1e5)


@pytest.mark.unsanitized
def test_time_limit_while_newton_does_all_the_work():
    """The clock is also checked if every iteration is a factorization."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) + 1e4
    y = X[:, 0] - 1e4 + 0.5 * rng.normal(size=300)
    dual = random_dual("c classification", 300, rng, 1e10, y)
    for limit in (0.2, 0.5, 1.0):
        began = time.process_time()
        run(X, Kernel("linear"), dual, time_limit=limit)
        assert time.process_time() - began < limit + 1


def test_keep_going_is_called_and_can_stop():
    X, dual = endless()
    asked = []

    def keep_going(violation, iterations, solved):
        asked.append((violation, iterations, solved))
        return len(asked) < 4

    (solution,) = run(X, Kernel("rbf", 0.02), dual, keep_going=keep_going, **ENDLESS)
    assert solution.status == "stopped"
    assert len(asked) >= 4
    assert all(solved == 0 for *_, solved in asked)
    assert asked[-1][1] > 0
    check_feasible(dual, solution.z)


@pytest.mark.parametrize("how", ["callback", "time_limit"])
@pytest.mark.parametrize("single", [np.float32, np.float64])
def test_duals_that_are_never_started_are_reported_at_their_start(how, single):
    """Their starting point, its true violation, and the status of a stopped solve."""
    X, dual = endless(1500)
    small = random_dual("c classification", 200, np.random.default_rng(3))
    kernel = Kernel("rbf", 0.02)
    stop = {"keep_going": lambda *_: False} if how == "callback" else {"time_limit": 0.1}
    solutions = run(X, kernel, dual, dual, small, dtype=single, **{**ENDLESS, **stop})
    for one, solution in zip((dual, dual, small), solutions, strict=True):
        assert solution.status == ("stopped" if how == "callback" else "time_limit")
        check_honest(one, matrix_of(one, X, kernel), solution, ENDLESS["tol"])
    for one, solution in zip((dual, small), solutions[1:], strict=True):
        np.testing.assert_array_equal(solution.z, one.z)


@pytest.mark.faults
@pytest.mark.unsanitized
def test_an_interrupt_of_the_first_gradient_is_answered_within_a_second():
    """tests/test_doors.py interrupts the steps of a fit."""
    rng, n, sent = np.random.default_rng(0), 20_000, 0.0
    X, dual = rng.standard_normal((n, 400), np.float32), duals.one_class(np.ones(n), 0.5)

    def interrupt(*_):
        nonlocal sent
        sent = time.process_time()
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(X, Kernel("rbf", 0.5 / 400), dual, **ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)
    assert time.process_time() - sent < 1.0


@pytest.mark.parametrize("degenerate", ["one point", "all fixed", "equal points", "zeros"])
def test_degenerate_problems_are_optimal(degenerate):
    n = {"one point": 1, "all fixed": 5, "equal points": 1200, "zeros": 1200}[degenerate]
    X = np.zeros((n, 2)) if degenerate == "zeros" else np.ones((n, 2))
    z = np.full(n, 0.5)
    ends = (z, z) if degenerate in ("one point", "all fixed") else (np.zeros(n), np.ones(n))
    dual = Dual(
        np.arange(n), np.linspace(0, 1e-4, n), *ends, np.array([0, n]), np.array([n / 2]), z
    )
    for kernel in [*KERNELS, Kernel("rbf", 1e30), Kernel("sigmoid", 1.0)]:
        (solution,) = run(X, kernel, dual)
        assert solution.status == "optimal"
        check_honest(dual, matrix_of(dual, X, kernel), solution, slack=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([0, 9])}, "indices must be in range"),
        ({"linear": np.zeros(3)}, "must have the length of z"),
        ({"starts": np.array([0, 3])}, "starts must go from 0 to the number"),
        ({"starts": np.array([0, 2, 1, 2]), "totals": np.zeros(3)}, "starts must be ascending"),
    ],
)
def test_inconsistent_arguments_are_refused(change, message):
    arrays = {
        "rows": np.arange(2), "linear": np.zeros(2), "lower": -np.ones(2), "upper": np.ones(2),
        "starts": np.array([0, 2]), "totals": np.zeros(1), "z": np.zeros(2),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        run(np.eye(5), RBF, Dual(**{**arrays, **change}))


def test_a_variable_close_to_its_bound_reaches_it_soon():
    # Its derivative is far below all others, but a pair step with it gains less than others.
    rng = np.random.default_rng(0)
    n = 400
    X, labels = rng.normal(size=(n, 3)), rng.random(n) < 0.5
    K = np.eye(n + 1)
    K[:n, :n] = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))
    dual = duals.c_classification(
        np.flatnonzero(labels), np.flatnonzero(~labels), np.full(n, 100.0)
    )
    options = {"max_iter": 10**6, "time_limit": math.inf, "cache_bytes": 10**8, "threads": 1}
    (found,) = solve(K, Kernel("precomputed"), [dual], tol=0.1, **options)
    more = replace(
        dual, rows=np.append(dual.rows, n), linear=np.append(dual.linear, -1000.0),
        lower=np.append(dual.lower, 0.0), upper=np.append(dual.upper, 1e-9),
        starts=np.array([0, n + 1]), z=np.append(found.z, 0.0),
    )  # fmt: skip
    (again,) = solve(K, Kernel("precomputed"), [more], tol=0.1, **options)
    assert again.status == "optimal"
    assert again.z[-1] == 1e-9
    assert again.n_iter < 1000  # without this, a block would take all of its 2560 steps
