"""Derivatives of solutions, compared with differences of solves at tight tolerances."""

import functools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pairstep
from pairstep import (
    L1Penalized,
    LeastSquares,
    LogGrowth,
    SumBox,
    minimize,
    solve_qp,
    solve_qps,
)

STEP = 1e-6


def central(solution, value, direction):
    """The derivative of a solution along a direction, by central differences."""
    ahead, behind = (solution(value + sign * STEP * direction) for sign in (1, -1))
    return (ahead - behind) / (2 * STEP)


def check(solve, arguments, rng, names=None):
    """`vjp` and `jvp` agree with differences along a random direction of each argument."""
    result = solve(**arguments)
    v = rng.normal(size=len(result.x))
    derivatives = result.vjp(v)
    assert not derivatives.degenerate
    for name in names or arguments:
        value = arguments[name]
        direction = rng.normal(size=np.shape(value))
        if name == "Q":
            direction = direction + direction.T
        expected = central(
            lambda new, name=name: solve(**arguments | {name: new}).x, value, direction
        )
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(
            result.jvp(**{name: direction}), expected, atol=2e-5 * scale, err_msg=name
        )
        assert np.sum(derivatives[name] * direction) == pytest.approx(
            v @ expected, abs=2e-5 * scale * len(v)
        ), name


def quadratic(rng, n):
    F = rng.normal(size=(2 * n, n))
    return {
        "Q": F.T @ F / n, "c": rng.normal(size=n), "total": rng.uniform(0.0, 0.5) * n,
        "lower": -rng.random(n), "upper": 0.5 + rng.random(n) * 2,
    }  # fmt: skip


def is_generic(result, margin=1e-4):
    """Whether small changes keep the active bounds."""
    lower, upper = result.bounds
    inside = (result.x > lower) & (result.x < upper)
    room = np.minimum(result.x - lower, upper - result.x)
    slope = np.abs(result.gradient - result.pull)
    return (room[inside] > margin).all() and (slope[~inside] > margin).all()


solve_tightly = functools.partial(solve_qp, tol=1e-13)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_quadratic(n, seed):
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n)
    result = solve_tightly(**arguments)
    assume(result.success and is_generic(result))
    assume(((result.x > arguments["lower"]) & (result.x < arguments["upper"])).any())
    check(solve_tightly, arguments, rng)


@given(st.integers(3, 9), st.integers(0, 10**6))
def test_l1_terms(n, seed):
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n)
    arguments |= {"l1": rng.uniform(0.1, 1.0, n), "center": rng.normal(size=n) / 2}
    result = solve_tightly(**arguments)
    assume(result.success)
    apart = np.abs(result.x - arguments["center"])
    assume(((apart == 0) | (apart > 1e-4)).all() and is_generic(result, 0.0))
    room = np.minimum(result.x - arguments["lower"], arguments["upper"] - result.x)
    assume(((room == 0) | (room > 1e-4)).all() and ((room > 0) & (apart > 0)).any())
    slope = np.abs(result.gradient - result.pull)
    at_center = apart == 0
    assume((np.abs(slope[at_center] - arguments["l1"][at_center]) > 1e-3).all())
    assume((np.abs(result.bound_multipliers)[room == 0] > 1e-3).all())
    check(solve_tightly, arguments, rng)


@given(st.integers(4, 9), st.integers(0, 10**6))
def test_groups(n, seed):
    """Two groups; the first at its limit, or not, within one total."""
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n) | {"total": 1.0, "lower": np.full(n, -1.0)}
    groups = np.arange(n) % 2
    limit = {0: float(rng.uniform(0.1, 0.6))}
    solve = functools.partial(solve_tightly, groups=groups, group_upper=limit)
    result = solve(**arguments)
    assume(result.success and is_generic(result))
    for group in (0, 1):
        free = (result.x > result.bounds[0]) & (result.x < result.bounds[1])
        assume(free[groups == group].any())
    at_limit = abs(result.x[groups == 0].sum() - limit[0]) < 1e-9
    assume(not at_limit or abs(result.group_multipliers[0]) > 1e-3)
    check(solve, arguments, rng, ("Q", "c", "total"))
    if at_limit:
        v = rng.normal(size=n)
        expected = central(lambda new: solve(**arguments, group_upper={0: new}).x, limit[0], 1.0)
        assert result.vjp(v)["group_total"][0] == pytest.approx(v @ expected, abs=1e-4)
        np.testing.assert_allclose(result.jvp(group_total={0: 1.0}), expected, atol=1e-4)
    else:
        assert result.vjp(np.ones(n))["group_total"] == {}


def centered(rng, n, **options):
    """Arguments of solve_qp with wide bounds, which are not arguments of the derivative."""
    return quadratic(rng, n) | {"lower": np.full(n, -50.0), "upper": np.full(n, 50.0)} | options


def with_rows(rng):
    """Rows with two limits, with an upper and with a lower one."""
    rows, inside = rng.normal(size=(3, 8)), rng.dirichlet(np.ones(8))
    return quadratic(rng, 8) | {
        "total": 1.0, "lower": np.zeros(8), "upper": np.ones(8), "rows": rows,
        "rows_lower": rows @ inside - [0.01, np.inf, 0.01],
        "rows_upper": rows @ inside + [0.01, 0.01, np.inf],
    }  # fmt: skip


# How a problem is solved, its arguments, and those whose derivatives are checked.
FORMS = {
    "a total for each group": (
        functools.partial(solve_tightly, groups=[0, 1, 0, 1, 1, 0]),
        lambda rng: centered(rng, 6, total=np.array([0.5, 1.0]), lower=-2.0, upper=3.0),
        ("Q", "c", "total"),
    ),
    "the end of a range": (
        solve_tightly, lambda rng: centered(rng, 5, c=np.full(5, -3.0), total=(0.5, 1.5)),
        ("Q", "c"),
    ),
    "inside of a range": (
        solve_tightly, lambda rng: centered(rng, 5, c=np.full(5, -3.0), total=(-100.0, 100.0)),
        ("Q", "c"),
    ),
    "coefficients": (
        functools.partial(solve_tightly, coefficients=[0.5, 2.0, 1.0, 0.7, 1.6]),
        lambda rng: centered(rng, 5), ("Q", "c", "total"),
    ),
    "rows": (solve_tightly, with_rows, ("Q", "c", "total", "rows_lower", "rows_upper")),
    "factors": (
        lambda F, D, **given: solve_tightly((F, D), lower=-2.0, **given),
        lambda rng: {"F": rng.normal(size=(3, 8)), "D": rng.random(8) + 0.5,
                     "c": rng.normal(size=8) / 4, "total": 1.0},
        None,
    ),
    "least squares": (
        functools.partial(pairstep.simplex_lstsq, lower=0.1, tol=1e-13),
        lambda rng: {"A": rng.normal(size=(12, 6)), "b": rng.normal(size=12), "ridge": 0.3,
                     "total": 1.0},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_form(name):
    solve, draw, names = FORMS[name]
    rng = np.random.default_rng(8)
    arguments = draw(rng)
    check(solve, arguments, rng, names)
    if name.endswith("a range"):  # a total that is not reached has no effect
        derivative = solve(**arguments).vjp(np.ones(5))["total"]
        assert derivative == pytest.approx(1.0 if name.startswith("the end") else 0.0)


def test_smooth_objectives():
    """The derivative with respect to a linear term and the total, through the Hessian at x."""
    rng = np.random.default_rng(9)
    growth = LogGrowth(1 + 0.1 * rng.normal(size=(200, 5)))
    result = minimize(growth, SumBox(1.0, -1.0, 2.0), tol=1e-12)
    v = rng.normal(size=5)
    derivatives = result.vjp(v)

    def at(total):
        return minimize(growth, SumBox(total, -1.0, 2.0), tol=1e-12).x

    expected = central(at, 1.0, 1.0)
    assert derivatives["total"] == pytest.approx(v @ expected, rel=1e-4)
    np.testing.assert_allclose(result.jvp(total=1.0), expected, rtol=1e-4)
    hessian = growth.second_order(result.x, np.arange(5)).block(np.arange(5))
    free = (result.x > -1) & (result.x < 2)
    K = np.block(
        [[hessian[np.ix_(free, free)], np.ones((free.sum(), 1))], [np.ones(free.sum()), 0]]
    )
    w = np.linalg.solve(K, np.append(v[free], 0))[:-1]
    np.testing.assert_allclose(derivatives["c"][free], -w, rtol=1e-6)


def test_objectives_without_a_hessian_are_refused():
    result = minimize(lambda x: float(x @ x), SumBox(1.0), x0=[0.5, 0.5])
    with pytest.raises(ValueError, match="Hessian"):
        result.vjp([1.0, 0.0])


def test_a_singular_hessian_that_the_sum_makes_unique():
    """Q = 0 along one direction that the sum excludes."""
    Q = np.array([[1.0, -1.0], [-1.0, 1.0]])
    result = solve_qp(Q, lower=-5.0, upper=5.0)
    derivatives = result.vjp([1.0, 0.0])
    assert not derivatives.degenerate
    assert derivatives["total"] == pytest.approx(0.5)
    assert derivatives["c"] == pytest.approx([-0.25, 0.25])


def test_solutions_that_are_not_unique_are_flagged():
    result = solve_qp(np.zeros((3, 3)), lower=-1.0)
    assert result.vjp([1.0, 0.0, 0.0]).degenerate


def test_a_bound_without_a_multiplier_is_flagged():
    """x = (1, 0) exactly where the bound of x_2 begins to act."""
    result = solve_qp(np.eye(2), [-1.0, 0.0])
    np.testing.assert_allclose(result.x, [1.0, 0.0], atol=1e-13)
    derivatives = result.vjp([0.0, 1.0])
    assert derivatives.degenerate
    assert derivatives["c"].tolist() == [0.0, 0.0]  # one-sided: it stays at its bound
    smoothed = result.vjp([0.0, 1.0], derivative="smoothed")
    free = solve_qp(np.eye(2), [-1.0, 0.0], lower=-1.0).vjp([0.0, 1.0])
    assert free["c"][1] < smoothed["c"][1] < 0.0  # between those of a free and a fixed variable


def test_smoothed_derivatives_far_from_any_change():
    rng = np.random.default_rng(15)
    arguments = quadratic(rng, 6)
    result = solve_qp(**arguments)
    assert is_generic(result, 0.03)
    assert 0 < (result.x == arguments["lower"]).sum() < 6
    v = rng.normal(size=6)
    exact, smoothed = result.vjp(v), result.vjp(v, derivative="smoothed")
    for name in ("c", "total", "lower", "upper", "Q"):
        np.testing.assert_allclose(
            smoothed[name], exact[name], atol=0.05 * np.abs(exact["c"]).max()
        )


def test_smoothed_derivatives_change_continuously():
    v = np.array([0.0, 1.0])
    costs = np.linspace(-0.02, 0.02, 81)
    batch = solve_qps(np.eye(2), np.column_stack([-np.ones(81), costs]))
    batch_v = np.broadcast_to(v, (81, 2))
    hard = batch.vjp(batch_v)["c"][:, 1]
    soft = batch.vjp(batch_v, derivative="smoothed")["c"][:, 1]
    assert np.abs(np.diff(hard)).max() > 0.4
    assert np.abs(np.diff(soft)).max() < 0.15


def test_a_pickled_result_forgets_its_problem():
    result = pickle.loads(pickle.dumps(solve_qp(np.eye(3))))
    with pytest.raises(ValueError, match="solve it again"):
        result.vjp([1.0, 0.0, 0.0])


def test_l1_objects():
    result = minimize(L1Penalized(LeastSquares(np.eye(3), [1.0, 0.5, 0.0]), 0.1), SumBox(1.0, -1.0))
    assert set(result.vjp([1.0, 0.0, 0.0])) == {
        "A", "b", "ridge", "total", "lower", "upper", "l1", "center"
    }  # fmt: skip


def batch_of_qps(rng, **shared):
    """A batch of factor models, and its problems one by one."""
    F, D, c = rng.normal(size=(4, 3, 6)), np.full(6, 0.2), 0.3 * rng.normal(size=(4, 6))
    alone = [solve_tightly((F[k], D), c[k], **shared) for k in range(4)]
    return solve_qps((F, D), c, **shared, tol=1e-13), alone, {"F": F, "c": c}


def batch_of_matrices(rng):
    given = [quadratic(rng, 5) for _ in range(20)]
    arguments = {name: np.array([g[name] for g in given]) for name in given[0]}
    return solve_qps(**arguments, tol=1e-13), [solve_tightly(**g) for g in given], arguments


def batch_with_one_matrix(rng):
    given, c = quadratic(rng, 4), rng.normal(size=(7, 4))
    batch = solve_qps(**given | {"c": c}, tol=1e-13)
    return batch, [solve_tightly(**given | {"c": one}) for one in c], given | {"c": c}


def batch_of_sizes(rng):
    matrices = [np.diag(rng.uniform(1, 2, n)) for n in (3, 5)]
    return solve_qps(matrices), [solve_qp(Q) for Q in matrices], {"Q": matrices}


def batch_of_least_squares(rng, shared_b=False, **options):
    A, b = rng.random((3, 12, 5)), rng.random((3, 12))
    options = {"ridge": 0.1, "tol": 1e-13} | options
    right = b[0] if shared_b else b
    alone = [pairstep.simplex_lstsq(A[k], b[0 if shared_b else k], **options) for k in range(3)]
    given = {"A": A, "b": right, "ridge": 0.1}
    return pairstep.simplex_lstsq(A, right, **options), alone, given


LIMITS = {"groups": list("aabbcc"), "group_upper": {"a": 0.2, "c": 0.3}}
BATCHES = {
    "matrices": batch_of_matrices,
    "one matrix": batch_with_one_matrix,
    "sizes": batch_of_sizes,
    "factors": batch_of_qps,
    "l1": lambda rng: batch_of_qps(rng, l1=0.1, center=0.15),
    "limits of groups": lambda rng: batch_of_qps(rng, **LIMITS),
    "totals of groups": lambda rng: batch_of_qps(
        rng, groups=list("aabbcc"), total=np.array([0.2, 0.3, 0.5])
    ),
    "coefficients": lambda rng: batch_of_qps(rng, coefficients=[1.0, 2.0, 1.0, 0.5, 1.0, 1.0]),
    "range": lambda rng: batch_of_qps(rng, total=(0.5, 0.9)),
    "least squares": batch_of_least_squares,
    "least squares, l1": lambda rng: batch_of_least_squares(rng, l1=0.05, center=0.1),
    "least squares, one b": lambda rng: batch_of_least_squares(rng, shared_b=True),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_have_the_derivatives_of_their_problems(name):
    """An argument that all problems share has the sum of their derivatives."""
    rng = np.random.default_rng(5)
    batch, alone, arguments = BATCHES[name](rng)
    v = [rng.normal(size=len(x)) for x in batch.x]
    derivatives = batch.vjp(v)
    each = [single.vjp(one) for single, one in zip(alone, v, strict=True)]
    assert np.all(derivatives.degenerate == [one.degenerate for one in each])
    for key in set(derivatives) - {"group_total"}:
        found, expected = derivatives[key], [one[key] for one in each]
        if isinstance(found, list) or np.shape(found) == np.shape(expected):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-9, err_msg=key)
        else:
            np.testing.assert_allclose(found, sum(expected), atol=1e-9, err_msg=key)

    # In the direction of the arguments themselves, by vjp and by jvp.
    expected = sum(product(derivatives[key], value) for key, value in arguments.items())
    assert product(list(batch.jvp(**arguments)), v) == pytest.approx(expected, abs=1e-8)


def product(left, right):
    pairs = zip(left, right, strict=True) if isinstance(left, list) else [(left, right)]
    return sum(np.sum(np.multiply(a, b)) for a, b in pairs)


def test_batches_with_failures_have_no_derivatives():
    Q = np.array([np.eye(2), np.full((2, 2), np.nan)])
    with pytest.raises(ValueError, match="problem 1 is invalid"):
        solve_qps(Q).vjp(np.zeros((2, 2)))


def test_limits_of_groups_that_are_active_in_some_problems():
    limits = {"a": (0.0, 0.9), "b": (0.0, 0.4)}
    costs = [[0.0, 0.0, 5.0], [5.0, 5.0, 0.0]]  # a is at its limit in one problem, b in the other
    batch = solve_qps(np.eye(3), costs, groups=["a", "a", "b"], group_total=limits)
    derivatives = batch.vjp([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]])
    assert derivatives["group_total"] == pytest.approx({"a": -1.5, "b": -0.5})
    assert derivatives["total"] == pytest.approx(5.5)


def test_a_solution_without_a_free_variable_is_flagged():
    """All multipliers of bounds differ from 0, but the sum can only change in one direction."""
    result = solve_qp(np.diag([1.0, 2.0, 3.0]), [-1.0, 5.0, 9.0], upper=1.0)
    assert (np.abs(result.bound_multipliers) > 1).all()
    assert result.vjp([1.0, 0.0, 0.0]).degenerate
