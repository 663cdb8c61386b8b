"""SumBox: sums that are exact at every scale, and arrays that do not change after construction."""

import copy
import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracles import EPS, sum_error_in_ulps

from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    SumBox,
    _core,
    coordinate_descent,
    minimize,
    simplex_lstsq,
    solve_qp,
)
from pairstep.svm.kernels import Kernel

INF = math.inf

# ------------------------------------------------------------------ exact sums at every scale

wide = st.builds(
    lambda digits, exponent: math.ldexp(digits, exponent), st.floats(-1, 1), st.integers(-1000, 320)
)
numbers = st.one_of(
    wide, wide.map(abs), st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e16, -1e16, 5e-324, 1e96, -1e96])
)


@st.composite
def boxes(draw, max_groups=1, finite=False, copies=(1,)):
    """Bounds at mixed scales, often cancelling, groups, and two points between the bounds."""
    ends = [sorted([draw(numbers), draw(numbers)]) for _ in range(draw(st.integers(1, 8)))]
    if draw(st.booleans()):  # bounds that nearly cancel
        ends += [[-high, -low] for low, high in ends]
    ends *= draw(st.sampled_from(copies))
    lower, upper = np.array(ends).T
    n = len(ends)
    points = []
    for _ in range(2):
        fractions = np.resize(draw(st.lists(st.sampled_from([0.0, 1.0, 0.5, 0.3]), min_size=1)), n)
        points.append(np.clip(lower + fractions * (upper - lower), lower, upper))
    if not finite:
        lower, upper = lower.copy(), upper.copy()
        lower[np.resize(draw(st.lists(st.booleans(), min_size=1, max_size=5)), n)] = -INF
    groups = np.resize(draw(st.permutations(range(1, max_groups + 1))), n)
    return lower, upper, groups, *points


def by_groups(groups, *arrays):
    """Return the arrays sorted by group, and the offsets of the groups."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.append(np.unique(groups), groups.max() + 1))
    return [np.ascontiguousarray(a[order]) for a in arrays], starts.astype(np.int64)


def sums(x, starts):
    return np.array([math.fsum(x[a:b]) for a, b in pairwise(starts)])


def assert_exact(x, lower, upper, starts, totals):
    assert (x >= lower).all(), (x, lower)
    assert (x <= upper).all(), (x, upper)
    for begin, end, total in zip(starts[:-1], starts[1:], totals, strict=True):
        assert sum_error_in_ulps(x[begin:end], total) <= 1, (x[begin:end].tolist(), total)


@given(boxes(max_groups=3, copies=(1, 40)), st.booleans())
def test_restore_sums_reaches_every_feasible_sum(box, l1_penalized):
    lower, upper, groups, x, target = box
    (lower, upper, x, target), starts = by_groups(groups, lower, upper, x, target)
    totals = sums(target, starts)
    _core.restore_sums(x, lower, upper, starts, totals, x.copy() if l1_penalized else None)
    assert_exact(x, lower, upper, starts, totals)


@given(boxes(max_groups=2, finite=True, copies=(1, 40)), st.data())
def test_fill_reaches_every_feasible_sum(box, data):
    lower, upper, groups, _, target = box
    (lower, upper, target), starts = by_groups(groups, lower, upper, target)
    derivative = np.resize(
        data.draw(st.lists(st.floats(-2, 2), min_size=1, max_size=5)), len(lower)
    )
    totals = sums(target, starts)
    x = _core.fill(derivative, np.ones(len(derivative)), lower, upper, starts, totals)
    assert_exact(x, lower, upper, starts, totals)


def exact_projection(y, lower, upper, total):
    """clip(y + shift) with the shift that gives the total, in rational numbers."""
    y, total = [Fraction(v) for v in y], Fraction(total)
    low = [None if v == -INF else Fraction(v) for v in lower]
    high = [Fraction(v) for v in upper]

    def at(shift):
        moved = [min(v + shift, h) for v, h in zip(y, high, strict=True)]
        return [m if l is None else max(m, l) for m, l in zip(moved, low, strict=True)]

    l1_terms = {
        b - v for v, h, l in zip(y, high, low, strict=True) for b in (h, l) if b is not None
    }
    l1_terms = sorted(l1_terms)
    if total >= sum(at(l1_terms[-1])):
        return at(l1_terms[-1])
    above = next(k for k in l1_terms if sum(at(k)) >= total)
    before = max((k for k in l1_terms if k < above), default=above - 1)
    if sum(at(above)) == total:
        return at(above)
    rise = sum(at(above)) - sum(at(before))
    if rise == 0:  # below the first breakpoint all variables are at their lower bounds
        return at(above)
    return at(before + (total - sum(at(before))) * (above - before) / rise)


@given(boxes(), st.data())
def test_projections_are_exact_and_nearest(box, data):
    lower, upper, _, _, target = box
    y = np.resize(data.draw(st.lists(numbers, min_size=1, max_size=8)), len(lower))
    total = math.fsum(target)
    x = SumBox(total, lower, upper).project(y)
    assert_exact(x, lower, upper, np.array([0, len(x)]), [total])
    nearest = exact_projection(y, lower, upper, total)
    slack = 16 * EPS * len(x) * max(abs(total), *np.abs(x), *np.abs(y))
    assert max(abs(float(Fraction(a) - b)) for a, b in zip(x, nearest, strict=True)) <= slack


@given(boxes(finite=True), st.sampled_from([-1, 1]), st.integers(-3, 3))
@example((-np.full(4, 2.0), np.array([1.0, 1.0, -1.0, -1.0]), None, None, None), 1, 450)
def test_a_total_is_refused_exactly_if_it_is_infeasible_beyond_rounding(box, side, ulps):
    """Totals a few ulps inside or outside the range that the bounds allow.

    The sum of the bounds may be off by half an ulp for each addition.
    """
    lower, upper, *_ = box
    bound = upper if side > 0 else lower
    attained = sum(map(Fraction, bound))
    total = float(attained) + ulps * math.ulp(max(abs(float(attained)), np.abs(bound).max()))
    assume(abs(total) <= 1e100)
    miss = side * (Fraction(total) - attained)
    slack = sum(map(Fraction, upper)) - sum(map(Fraction, lower))
    assume(-miss <= slack)
    size = max(abs(total), np.abs(bound).max())
    ulp = math.ulp(size)
    most = ulp + 0.5 * EPS * (len(bound) - 1) * size
    assume(miss <= (1 - EPS) * most or miss > (1 + EPS) * most)  # the miss itself is rounded
    if miss <= ulp:
        x = SumBox(total, lower, upper).start()
        assert_exact(x, lower, upper, np.array([0, len(x)]), [total])
    elif miss <= most:
        assert (SumBox(total, lower, upper).start() == bound).all()
    else:
        with pytest.raises(ValueError, match="infeasible: the bounds allow sums from"):
            SumBox(total, lower, upper).start()


def test_a_total_beyond_canceling_bounds_is_refused():
    """450 ulps above the sum of the upper bounds: the message has enough digits to show it."""
    upper = np.r_[np.ones(200), -np.ones(200)]
    with pytest.raises(ValueError, match=r"from -800 to 0; total is 1e-13"):
        solve_qp(np.eye(400), total=1e-13, lower=-2, upper=upper)
    with pytest.raises(ValueError, match=r"to 1; total is 1\.0000000000000009"):
        SumBox(1 + 4 * EPS, 0, [0.5, 0.25, 0.25]).start()
    result = solve_qp(np.eye(400), total=-1e-13, lower=-2, upper=upper)
    assert sum_error_in_ulps(result.x, -1e-13) <= 1


def test_equal_fractions_are_feasible():
    """Bounds such as 1/n are rounded, together by less than an ulp of the total."""
    for n in [*range(1, 300), 10**4, 10**5 + 3]:
        assert sum_error_in_ulps(SumBox(1.0, 0.0, 1 / n).start(n), 1.0) <= 1


def test_several_variables_absorb_the_remainder():
    """No variable can absorb the whole remainder, so several do."""
    n = 1000
    x = np.zeros(n)
    _core.restore_sums(x, np.zeros(n), np.full(n, 0.1), np.array([0, n]), np.array([77.7]))
    assert_exact(x, 0, 0.1, [0, n], [77.7])
    far = SumBox(50.0, 0.0, np.full(100, 1.0)).project(np.full(100, 1e99))
    assert_exact(far, 0, 1, [0, 100], [50.0])


@given(boxes(max_groups=2, finite=True), st.data())
def test_a_far_limit_of_a_range_does_not_hide_the_near_one(box, data):
    lower, upper, groups, _, target = box
    totals = np.array([math.fsum(target[groups == k]) for k in np.unique(groups)])
    reach = data.draw(st.sampled_from([0.0, 1e-9, 1.0, 1e17, 1e60, INF]))
    low, high = (totals, totals + reach) if data.draw(st.booleans()) else (totals - reach, totals)
    assume((np.abs(low[np.isfinite(low)]) < 1e100).all() and (np.abs(high) < INF).all())
    x = SumBox((low, high), lower, upper, groups=groups).start()
    assert (x >= lower).all()
    assert (x <= upper).all()
    for k, begin, end in zip(np.unique(groups), low, high, strict=True):
        members = x[groups == k]
        found = Fraction(0) + sum(map(Fraction, members))
        near = min(max(found, Fraction(begin) if math.isfinite(begin) else found), Fraction(end))
        # Relative to the near end: a far end would allow any error.
        ulp = math.ulp(max(abs(float(near)), np.abs(members).max()))
        assert abs(found - near) <= 2 * ulp


@pytest.mark.parametrize("high", [1e17, 1e50, 1e99, 1e150, INF])
def test_the_near_end_of_a_range_holds(high):
    result = solve_qp(np.eye(3), total=(1.0, high))
    assert result.status == "optimal"
    assert result.x == pytest.approx([1 / 3] * 3)
    result = solve_qp(np.eye(3), [1.0, 1.0, 1.0], total=(-high, -1.0), lower=-INF)
    assert result.x == pytest.approx([-1.0] * 3)
    result = solve_qp(np.eye(3), [1.0, 0.0, -1.0], total=(-high, high), lower=-INF)
    assert result.x == pytest.approx([-1.0, 0.0, 1.0])


# ------------------------------------------------------------------ bounds that count as infinite


def test_a_bound_that_counts_as_infinite_still_holds():
    for groups in (None, [0, 0]):
        layout = SumBox(0.0, -1e101, 1e101, groups=groups).layout(2)
        assert np.isinf(layout.upper).all()
        assert layout.from_layout(np.array([-1e102, 1e102])).tolist() == [-1e101, 1e101]


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array([1, 0, 1, 0], kind) for kind in (np.uint8, np.int8, np.uint64, np.int64, bool)),
        *(np.array([high, low, high, low]) for low, high in [
            (-(2**63), 2**63 - 1), (0, 255), (2**63, 2**64 - 1)]),
    ],
)  # fmt: skip
def test_groups_of_any_whole_numbers(labels):
    result = solve_qp(np.eye(4), total=[1.0, 2.0], groups=labels)
    assert result.x == pytest.approx([1.0, 0.5, 1.0, 0.5])


# ------------------------------------------------------------------ constraints do not change

ARRAYS = {
    "lower": np.zeros(3),
    "upper": np.ones(3),
    "coefficients": np.array([1.0, -2.0, 0.5]),
    "groups": np.array([0, 1, 0]),
}


NESTED = SumBox(1.0, groups=["a", "b", "b"], group_total={"b": (0.1, 0.5), "a": 0.6})


def test_attributes_cannot_be_set():
    with pytest.raises(TypeError):
        NESTED.group_total["b"] = (0.0, 1.0)
    for box in (SumBox(1.0, **ARRAYS), Simplex()):
        for name in ("total", *ARRAYS):
            with pytest.raises(AttributeError, match=name):
                setattr(box, name, 2.0)
            with pytest.raises(AttributeError, match=name):
                delattr(box, name)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_own_copies(name):
    given = {key: value.copy() for key, value in ARRAYS.items()}
    box, same = SumBox((-1.0, 1.0), **given), SumBox((-1.0, 1.0), **ARRAYS)
    given[name] *= 2
    given[name] += 1
    assert box == same
    assert box.start().tolist() == same.start().tolist()
    for fixed in (box, pickle.loads(pickle.dumps(box)), copy.copy(box), copy.deepcopy(box)):
        with pytest.raises(ValueError, match="read-only"):
            getattr(fixed, name)[0] = 0


def test_totals_are_own_copies():
    totals = np.array([1.0, 2.0])
    boxes = SumBox(totals, groups=[0, 1]), SumBox((totals, totals + 1), groups=[0, 1])
    totals[:] = 7
    for box in boxes:
        assert box.start().tolist() == [1.0, 2.0]


def test_equality_and_hash():
    assert SumBox(1, [0, 0], 1) == SumBox(1.0, np.zeros(2), 1.0)
    assert hash(SumBox(1, [0, -0.0], 1)) == hash(SumBox(1.0, np.zeros(2), 1.0))
    assert SumBox(1.0) == Simplex()
    assert len({Simplex(), Simplex(1), Simplex(2.0), SumBox((1.0, 2.0)), SumBox([1.0, 2.0])}) == 4
    assert SumBox(groups=[0, 2**62]) != SumBox(groups=[0, 2**62 + 1])
    assert SumBox() != 1.0
    turned = {"a": 0.6, "b": (0.1, 0.5)}
    assert SumBox(1.0, groups=["a", "b", "b"], group_total=turned) == NESTED
    assert hash(SumBox(1.0, groups=["a", "b", "b"], group_total=turned)) == hash(NESTED)
    assert SumBox(1.0, groups=["a", "b", "b"], group_total={"b": (0.1, 0.5)}) != NESTED


def test_a_repr_can_be_evaluated():
    assert repr(SumBox()) == "SumBox(total=1.0)"
    assert repr(Simplex(2)) == "Simplex(total=2.0)"
    names = {"SumBox": SumBox, "Simplex": Simplex, "array": np.array, "inf": INF}
    for box in (SumBox(2.0, **ARRAYS), SumBox((0, INF), -1.0, [1, 2]), Simplex(3), NESTED):
        assert eval(repr(box), names) == box


@pytest.mark.parametrize(
    "remake", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_copies_and_pickles(remake):
    for box in (SumBox((0.0, 2.0), **ARRAYS), Simplex(2.0), NESTED):
        box.start(3)
        other = remake(box)
        assert other == box
        assert type(other) is type(box)
        assert other.start(3).tolist() == box.start(3).tolist()


# ------------------------------------------------------------------ objectives keep what they need


def test_vectors_of_an_objective_are_own_copies():
    c, b, D, l1, held = np.ones(2), np.ones(2), np.ones(2), np.ones(2), np.ones(2)
    functions = [
        Quadratic(np.eye(2), c),
        Quadratic(np.eye(2)).with_linear(c),
        LeastSquares(np.eye(2), b),
        FactorModel(np.eye(2), D, c),
        L1Penalized(Quadratic(np.eye(2)), l1, held),
    ]
    before = [f.value([0.2, 0.7]) for f in functions]
    for vector in (c, b, D, l1, held):
        vector[:] = 7
    assert [f.value([0.2, 0.7]) for f in functions] == before


# ------------------------------------------------------------------ nested L1 terms


def test_l1_terms_of_an_unknown_number_of_variables():
    smooth = Smooth(lambda x: float(x @ x), lambda x: 2 * x)
    f = L1Penalized(L1Penalized(smooth, 0.25, [0.9, 0.1]), 0.25, [0.9, 0.1])
    assert minimize(f, Simplex()).x == pytest.approx([0.75, 0.25])
    g = L1Penalized(L1Penalized(smooth, 0.5), 0.5)
    assert minimize(g, SumBox(0.0, -1.0, [1.0, 1.0])).x.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------ callables that work in place


def square(x):
    return float(x @ x)


def in_place(x):
    x *= 2
    return x


def value_in_place(x):
    x *= 1.1
    return float(x @ x) / 1.21


BUFFER = np.empty(2)


def into_a_buffer(x):
    BUFFER[:] = 2 * x
    return BUFFER


@pytest.mark.parametrize("step", ["auto", 0.25])
@pytest.mark.parametrize(
    ("value", "gradient"),
    [
        (square, in_place),
        (value_in_place, lambda x: 2 * x),
        (lambda x: 0.5 * square(x), lambda x: x),
        (square, into_a_buffer),
    ],
)
@pytest.mark.parametrize("coefficients", [None, [1.0, 1.0]])
def test_callables_may_work_in_place(value, gradient, step, coefficients):
    x0 = np.array([0.3, 0.7])
    result = coordinate_descent(
        Smooth(value, gradient), SumBox(1.0, coefficients=coefficients), step=step, x0=x0, tol=1e-10
    )
    assert result.status == "optimal"
    assert result.x == pytest.approx([0.5, 0.5])
    assert sum_error_in_ulps(result.x, 1.0) <= 1
    assert x0.tolist() == [0.3, 0.7]


# ------------------------------------------------------------------ native arguments


NOT_AS_THEY_ARE = {
    "strided": np.zeros((4, 2))[:, 0],
    "float32": np.zeros(4, np.float32),
    "read-only": np.broadcast_to(0.0, 4),
}


@pytest.mark.parametrize("kind", NOT_AS_THEY_ARE)
def test_output_arrays_are_never_copies(kind):
    """If the output were copied silently, the result would be lost."""
    bad, ones, starts = NOT_AS_THEY_ARE[kind], np.ones(4), np.array([0, 4])
    with pytest.raises(TypeError, match="restore_sums"):
        _core.restore_sums(bad, -ones, ones, starts, np.array([1.0]))
    with pytest.raises(TypeError, match="bare_updates"):
        _core.bare_updates(np.eye(4), bad, np.array([0, 1]))
    X, rows = np.ones((4, 2)), np.arange(4)
    kernel = Kernel("rbf").native
    with pytest.raises(TypeError, match="add_kernel"):
        _core.add_kernel(kernel, X, None, rows, np.ones((4, 1)), X, rows, bad[None], 1, 0.0)
    with pytest.raises(TypeError, match="incompatible"):
        _core.Point(bad, -ones, ones, None, None, starts)
    for z, gradient in ((bad, np.zeros(4)), (np.zeros(4), bad)):
        with pytest.raises(TypeError, match="incompatible"):
            _core.Duals(rows, ones, -ones, ones, None, starts[None], np.zeros((1, 1)), z, gradient)


# ------------------------------------------------------------------ number of iterations


def test_any_number_of_iterations_may_be_allowed():
    most = 10**30
    assert solve_qp(np.eye(3), max_iter=most).status == "optimal"
    assert simplex_lstsq(np.eye(3), np.eye(3), max_iter=most).status.tolist() == ["optimal"] * 3
    assert solve_qp((np.eye(201), 1.0), max_iter=most).status == "optimal"
    smooth = Smooth(square, lambda x: 2 * x)
    assert minimize(smooth, SumBox(upper=[1.0, 1.0]), max_iter=most).status == "optimal"


@pytest.mark.parametrize("add_up", [np.sum, lambda held: sum(held.tolist()), math.fsum])
def test_bounds_that_sum_to_the_total_up_to_rounding_are_feasible(add_up):
    """Holdings as bounds and their sum as the total: the only feasible point."""
    bound = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 60))
        held = rng.random(n) * 10.0 ** rng.integers(-3, 3)
        total = float(add_up(held))
        too_high = math.fsum([total, *-held]) >= 0
        for bounds, exact in (((0.0, held), too_high), ((held, INF), not too_high)):
            x = solve_qp(np.eye(n), total=total, lower=bounds[0], upper=bounds[1]).x
            assert x == pytest.approx(held, rel=1e-12)
            assert SumBox(total, *bounds).start(n) == pytest.approx(held, rel=1e-12)
            if exact:  # no sum within the bounds is closer to the total
                bound += 1
                assert (x == held).all()
        groups = np.arange(n) % 2
        sectors = {k: (0.0, float(add_up(held[groups == k]))) for k in (0, 1)}
        sums = SumBox(total, 0.0, held, groups=groups, group_total=sectors)
        assert sums.start() == pytest.approx(held, rel=1e-12)
    assert bound > 40
