"""Derivatives of solutions, compared with differences of solves at tight tolerances."""

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


def check(result, resolve, arguments, rng, names):
    """`vjp` and `jvp` agree with differences along a random direction of each argument."""
    v = rng.normal(size=len(result.x))
    derivatives = result.vjp(v)
    assert not derivatives.degenerate
    for name in names:
        value = arguments[name]
        direction = rng.normal(size=np.shape(value))
        if name == "Q":
            direction = direction + direction.T
        expected = central(lambda new, name=name: resolve(**{name: new}), value, direction)
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


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_quadratic(n, seed):
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n)
    result = solve_qp(**arguments, tol=1e-13)
    assume(result.success and is_generic(result))
    assume((result.x > result.bounds[0]).any() and result.x.ndim)
    free = (result.x > arguments["lower"]) & (result.x < arguments["upper"])
    assume(free.any())

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, tol=1e-13).x

    check(result, resolve, arguments, rng, arguments)


@given(st.integers(3, 9), st.integers(0, 10**6))
def test_l1_terms(n, seed):
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n)
    arguments |= {"l1": rng.uniform(0.1, 1.0, n), "center": rng.normal(size=n) / 2}
    result = solve_qp(**arguments, tol=1e-13)
    assume(result.success)
    apart = np.abs(result.x - arguments["center"])
    assume(((apart == 0) | (apart > 1e-4)).all() and is_generic(result, 0.0))
    room = np.minimum(result.x - arguments["lower"], arguments["upper"] - result.x)
    assume(((room == 0) | (room > 1e-4)).all() and ((room > 0) & (apart > 0)).any())

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, tol=1e-13).x

    slope = np.abs(result.gradient - result.pull)
    at_center = apart == 0
    assume((np.abs(slope[at_center] - arguments["l1"][at_center]) > 1e-3).all())
    assume((np.abs(result.bound_multipliers)[room == 0] > 1e-3).all())
    check(result, resolve, arguments, rng, ("Q", "c", "total", "lower", "upper", "l1", "center"))


@given(st.integers(4, 9), st.integers(0, 10**6))
def test_groups(n, seed):
    """Two groups; the first at its limit, or not, within one total."""
    rng = np.random.default_rng(seed)
    arguments = quadratic(rng, n) | {"total": 1.0, "lower": np.full(n, -1.0)}
    groups = np.arange(n) % 2
    limit = {0: float(rng.uniform(0.1, 0.6))}
    options = {"groups": groups, "tol": 1e-13}
    result = solve_qp(**arguments, group_upper=limit, **options)
    assume(result.success and is_generic(result))
    for group in (0, 1):
        free = (result.x > result.bounds[0]) & (result.x < result.bounds[1])
        assume(free[groups == group].any())
    at_limit = abs(result.x[groups == 0].sum() - limit[0]) < 1e-9
    assume(not at_limit or abs(result.group_multipliers[0]) > 1e-3)

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, group_upper=limit, **options).x

    check(result, resolve, arguments, rng, ("Q", "c", "total"))
    if at_limit:
        v = rng.normal(size=n)
        expected = central(
            lambda new: solve_qp(**arguments, group_upper={0: new}, **options).x, limit[0], 1.0
        )
        assert result.vjp(v)["group_total"][0] == pytest.approx(v @ expected, abs=1e-4)
        np.testing.assert_allclose(result.jvp(group_total={0: 1.0}), expected, atol=1e-4)
    else:
        assert result.vjp(np.ones(n))["group_total"] == {}


def test_a_total_for_each_group():
    rng = np.random.default_rng(4)
    arguments = quadratic(rng, 6) | {"total": np.array([0.5, 1.0]), "lower": -2.0, "upper": 3.0}
    groups = [0, 1, 0, 1, 1, 0]
    result = solve_qp(**arguments, groups=groups, tol=1e-13)

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, groups=groups, tol=1e-13).x

    check(result, resolve, arguments, rng, ("Q", "c", "total"))


@pytest.mark.parametrize("total", [(0.5, 1.5), (-100.0, 100.0)], ids=["at its end", "inside"])
def test_a_range_of_totals(total):
    rng = np.random.default_rng(5)
    arguments = quadratic(rng, 5) | {"c": np.full(5, -3.0)}
    del arguments["total"]
    arguments |= {"lower": np.full(5, -50.0), "upper": np.full(5, 50.0)}
    result = solve_qp(**arguments, total=total, tol=1e-13)

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, total=total, tol=1e-13).x

    check(result, resolve, arguments, rng, ("Q", "c"))
    derivative = result.vjp(np.ones(5))["total"]
    assert derivative == pytest.approx(1.0 if total[1] == 1.5 else 0.0)


def test_coefficients():
    rng = np.random.default_rng(6)
    arguments = quadratic(rng, 5) | {"lower": np.full(5, -5.0), "upper": np.full(5, 5.0)}
    coefficients = rng.uniform(0.5, 2.0, 5)

    def resolve(**changed):
        return solve_qp(**{**arguments, **changed}, coefficients=coefficients, tol=1e-13).x

    result = solve_qp(**arguments, coefficients=coefficients, tol=1e-13)
    check(result, resolve, arguments, rng, ("Q", "c", "total"))


def test_factor_models():
    rng = np.random.default_rng(7)
    F, D, c = rng.normal(size=(3, 8)), rng.random(8) + 0.5, rng.normal(size=8) / 4
    arguments = {"F": F, "D": D, "c": c, "total": 1.0}

    def resolved(F, D, c, total):
        return solve_qp((F, D), c, total=total, lower=-2.0, tol=1e-13)

    def resolve(**changed):
        return resolved(**{**arguments, **changed}).x

    check(resolved(**arguments), resolve, arguments, rng, arguments)


def test_least_squares():
    rng = np.random.default_rng(8)
    arguments = {
        "A": rng.normal(size=(12, 6)),
        "b": rng.normal(size=12),
        "ridge": 0.3,
        "total": 1.0,
    }

    def resolved(A, b, ridge, total):
        return pairstep.simplex_lstsq(A, b, ridge=ridge, total=total, lower=0.1, tol=1e-13)

    def resolve(**changed):
        return resolved(**{**arguments, **changed}).x

    result = resolved(**arguments)
    assert 0 < (result.x == 0.1).sum() < 5
    check(result, resolve, arguments, rng, arguments)


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


def test_batches_have_the_derivatives_of_their_problems():
    rng = np.random.default_rng(11)
    given = [quadratic(rng, 5) for _ in range(20)]
    arguments = {name: np.array([g[name] for g in given]) for name in given[0]}
    batch = solve_qps(**arguments, tol=1e-12)
    v = rng.normal(size=(20, 5))
    found = batch.vjp(v)
    direction = {name: rng.normal(size=value.shape) for name, value in arguments.items()}
    moved = batch.jvp(**direction)
    for k, one in enumerate(given):
        single = solve_qp(**one, tol=1e-12)
        expected = single.vjp(v[k])
        assert found.degenerate[k] == expected.degenerate
        for name in one:
            np.testing.assert_allclose(found[name][k], expected[name], atol=1e-9, err_msg=name)
        np.testing.assert_allclose(
            moved[k], single.jvp(**{name: d[k] for name, d in direction.items()}), atol=1e-9
        )


def test_shared_arguments_have_the_sum_of_the_derivatives():
    rng = np.random.default_rng(12)
    one = quadratic(rng, 4)
    c = rng.normal(size=(7, 4))
    options = one | {"c": c}
    batch = solve_qps(**options)
    v = rng.normal(size=(7, 4))
    found = batch.vjp(v)
    each = [solve_qp(**options | {"c": c[k]}).vjp(v[k]) for k in range(7)]
    for name in ("Q", "total", "lower", "upper"):
        np.testing.assert_allclose(found[name], sum(e[name] for e in each), atol=1e-9)
    np.testing.assert_allclose(found["c"], [e["c"] for e in each], atol=1e-9)


def test_batches_with_failures_have_no_derivatives():
    Q = np.array([np.eye(2), np.full((2, 2), np.nan)])
    with pytest.raises(ValueError, match="problem 1 is invalid"):
        solve_qps(Q).vjp(np.zeros((2, 2)))


def sampled_batch(rng, count=4, n=6):
    F = rng.normal(size=(count, 3, n))
    return {"Q": (F, np.full(n, 0.2)), "c": 0.3 * rng.normal(size=(count, n))}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l1": 0.1, "center": 0.15},
        {"groups": list("aabbcc"), "group_upper": {"a": 0.2, "c": 0.3}},
        {"groups": list("aabbcc"), "total": np.array([0.2, 0.3, 0.5])},
        {"coefficients": [1.0, 2.0, 1.0, 0.5, 1.0, 1.0]},
        {"total": (0.5, 0.9)},
    ],
    ids=["factors", "l1", "group limits", "group totals", "coefficients", "range"],
)
def test_batches_beyond_one_sum_have_the_derivatives_of_their_problems(options):
    rng = np.random.default_rng(5)
    given = sampled_batch(rng)
    batch = solve_qps(**given, **options)
    v = rng.normal(size=batch.x.shape)
    derivatives = batch.vjp(v)
    singles = [
        solve_qp((given["Q"][0][k], given["Q"][1]), given["c"][k], **options).vjp(v[k])
        for k in range(4)
    ]
    for name in ("F", "c"):
        np.testing.assert_array_equal(derivatives[name], [single[name] for single in singles])
    for name in set(derivatives) - {"F", "c", "group_total"}:  # shared by all problems
        np.testing.assert_allclose(derivatives[name], sum(single[name] for single in singles))
    change = {"c": rng.normal(size=v.shape), "F": rng.normal(size=given["Q"][0].shape)}
    along = batch.jvp(**change)
    expected = sum(np.sum(derivatives[name] * change[name]) for name in change)
    assert np.sum(along * v) == pytest.approx(expected)


def test_limits_of_groups_that_are_active_in_some_problems():
    limits = {"a": (0.0, 0.9), "b": (0.0, 0.4)}
    costs = [[0.0, 0.0, 5.0], [5.0, 5.0, 0.0]]  # a is at its limit in one problem, b in the other
    batch = solve_qps(np.eye(3), costs, groups=["a", "a", "b"], group_total=limits)
    derivatives = batch.vjp([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]])
    assert derivatives["group_total"] == pytest.approx({"a": -1.5, "b": -0.5})
    assert derivatives["total"] == pytest.approx(5.5)


def test_matrices_of_different_sizes_have_derivatives():
    rng = np.random.default_rng(6)
    matrices = [np.diag(rng.uniform(1, 2, n)) for n in (3, 5)]
    batch = solve_qps(matrices)
    v = [rng.normal(size=n) for n in (3, 5)]
    derivatives = batch.vjp(v)
    for k, Q in enumerate(matrices):
        np.testing.assert_allclose(derivatives["Q"][k], solve_qp(Q).vjp(v[k])["Q"])
    along = batch.jvp(Q=matrices)
    assert [len(x) for x in along] == [3, 5]


@pytest.mark.parametrize("options", [{}, {"l1": 0.05, "center": 0.1}])
def test_least_squares_batches(options):
    rng = np.random.default_rng(7)
    A, b = rng.random((3, 12, 5)), rng.random((3, 12))
    batch = pairstep.simplex_lstsq(A, b, ridge=0.1, **options)
    v = rng.normal(size=batch.x.shape)
    derivatives = batch.vjp(v)
    for k in range(3):
        single = pairstep.simplex_lstsq(A[k], b[k], ridge=0.1, **options).vjp(v[k])
        np.testing.assert_allclose(derivatives["A"][k], single["A"], atol=1e-9)
        np.testing.assert_allclose(derivatives["b"][k], single["b"], atol=1e-9)
    change = {"A": rng.normal(size=A.shape), "b": rng.normal(size=b.shape), "ridge": 0.4}
    expected = sum(np.sum(derivatives[name] * change[name]) for name in change)
    assert np.sum(batch.jvp(**change) * v) == pytest.approx(expected)
    shared = pairstep.simplex_lstsq(A, b[0], **options).vjp(v)
    assert shared["b"].shape == (12,)


def test_a_solution_without_a_free_variable_is_flagged():
    """All multipliers of bounds differ from 0, but the sum can only change in one direction."""
    result = solve_qp(np.diag([1.0, 2.0, 3.0]), [-1.0, 5.0, 9.0], upper=1.0)
    assert (np.abs(result.bound_multipliers) > 1).all()
    assert result.vjp([1.0, 0.0, 0.0]).degenerate
