"""Rules on subnormal, huge, tied and infinite numbers, compared in exact arithmetic."""

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import EPS, Case, cases

from pairstep import propose
from pairstep.paper.rules import RULES, specification

TINY = 5e-324  # the smallest positive number
EXAMPLES = 40
FORMS = {"native": propose, "numpy": specification}
GUIDED = [name for name, rule in RULES.items() if rule.guided]
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)

sizes = st.one_of(
    st.sampled_from([TINY, 1e-320, 2.3e-308, 1e-300, 1e-150, 1.0, 2.0, 1e150, 1e300, 1.7e308]),
    st.floats(-300, 300).map(lambda power: 10.0**power),
    st.floats(0.1, 10.0),
)
derivatives = st.one_of(st.just(0.0), st.integers(-2, 2).map(float), sizes, sizes.map(lambda p: -p))
slacks = st.one_of(st.just(0.0), st.just(math.inf), st.just(0.5), sizes)


@st.composite
def any_case(draw, most=50):
    """A point with derivatives, bounds, constants and a step size of any magnitude."""
    n = draw(st.integers(1, most))
    # A few distinct numbers give ties; many of one size give the ordinary case.
    derivative, slack, constant = (
        draw(st.one_of(st.lists(kind, min_size=1, max_size=3).map(st.sampled_from), st.just(kind)))
        for kind in (derivatives, slacks, sizes)
    )
    gradient, down, up, lipschitz = (
        np.array(draw(st.lists(kind, min_size=n, max_size=n)))
        for kind in (derivative, slack, slack, constant)
    )
    return Case(gradient, np.zeros(n), -down, up, draw(sizes), lipschitz)


def ask(form, rule, case, k=0):
    positional, named = case.arguments(weighted=RULES[rule].weighted or RULES[rule].curved)
    return form(rule, *positional, **named, rng=k, turn=k)


def width(case, rule, i, j):
    """The width in the rule's model d gap - width d^2 / (2 alpha) of a pair."""
    norm_is_weighted = RULES[rule].weighted or RULES[rule].curved
    one, other = (Fraction(case.lipschitz[k]) if norm_is_weighted else Fraction(1) for k in (i, j))
    if RULES[rule].one_norm:
        return (Fraction(math.sqrt(one)) + Fraction(math.sqrt(other))) ** 2
    return one + other


def exact(number):
    """Return a fraction; an infinite distance is larger than any amount."""
    return Fraction(number) if math.isfinite(number) else Fraction(2) ** 5000


def exact_amount(case, rule, i, j):
    gap = Fraction(case.gradient[i]) - Fraction(case.gradient[j])
    full = Fraction(case.alpha) * gap / width(case, rule, i, j)
    return gap, full, min(full, exact(case.down[i]), exact(case.up[j]))


def exact_gain(case, rule, i, j):
    gap, full, amount = exact_amount(case, rule, i, j)
    return amount * gap * (1 - amount / (2 * full))


def improving_pairs(case):
    """Return the pairs that gain, the decreasing variable first."""
    down, up = np.flatnonzero(case.down > 0), np.flatnonzero(case.up > 0)
    return [(i, j) for i, j in itertools.product(down, up)
            if case.gradient[i] > case.gradient[j]]  # fmt: skip


def unit_of_gain(case, rule, pairs):
    """The widest gap times the largest amount that a pair can exchange."""
    gap = max(Fraction(case.gradient[i]) - Fraction(case.gradient[j]) for i, j in pairs)
    slack = min(
        max(exact(case.down[i]) for i, _ in pairs), max(exact(case.up[j]) for _, j in pairs)
    )
    weighs = RULES[rule].weighted or RULES[rule].curved
    least = Fraction(case.lipschitz.min()) if weighs else Fraction(1)
    return gap * min(slack, Fraction(case.alpha) * gap / least)


def comparable(case, rule, pairs):
    """Whether the relevant numbers of the case are within about 2^500 of each other."""
    spread = np.log2(case.lipschitz.max()) - np.log2(case.lipschitz.min())
    best = max(exact_gain(case, rule, i, j) for i, j in pairs)
    return spread < 500 and best > unit_of_gain(case, rule, improving_pairs(case)) / 2**500


def assert_contract(form, rule, case, step):
    what = f"{rule}, {form.__name__}: {step} for {case!r}"
    count = len(step.indices)
    assert count == len(step.delta), what
    assert count != 1, what
    assert len(set(step.indices.tolist())) == count, what
    assert ((step.indices >= 0) & (step.indices < case.n)).all(), what
    assert np.isfinite(step.delta).all(), what
    assert (step.delta != 0).all(), what
    assert 0 <= step.decrease < math.inf, what
    down, up = case.down[step.indices], case.up[step.indices]
    assert (np.where(step.delta < 0, -step.delta <= down * (1 + 4 * EPS), True)).all(), what
    assert (np.where(step.delta > 0, step.delta <= up * (1 + 4 * EPS), True)).all(), what
    total = sum(map(Fraction, step.delta.tolist()), Fraction(0))
    size = sum(abs(Fraction(d)) for d in step.delta.tolist())
    assert abs(total) <= 4 * case.n * (Fraction(EPS) * size + Fraction(TINY)), what
    return what


@both_forms
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=any_case(), rule=st.sampled_from(sorted(RULES)), k=st.integers(0, 1000))
def test_a_step_keeps_its_contract(form, case, rule, k):
    step = ask(form, rule, case, k)
    what = assert_contract(form, rule, case, step)
    pairs = improving_pairs(case)
    if not pairs:
        assert not len(step.indices), what
    elif RULES[rule].guided and not len(step.indices):
        # An empty step is right only if the largest decrease is below the smallest number.
        i = max((i for i, _ in pairs), key=lambda i: case.gradient[i])
        j = min((j for _, j in pairs), key=lambda j: case.gradient[j])
        assert exact_amount(case, rule, i, j)[2] <= 4 * Fraction(TINY), what


@both_forms
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=any_case(most=8), rule=st.sampled_from(["gs-q", "gs-q-lipschitz", "libsvm"]))
def test_the_best_pair_in_exact_arithmetic(form, case, rule):
    pairs = improving_pairs(case)
    if rule == "libsvm" and pairs:
        max_left = max(case.gradient[i] for i, _ in pairs)
        pairs = [(i, j) for i, j in pairs if case.gradient[i] == max_left]
    if not pairs or not comparable(case, rule, pairs):
        return
    step = ask(form, rule, case)
    if not len(step.indices):
        return  # the test above covers steps below the smallest number
    i, j = step.indices[np.argsort(step.delta)]
    if rule == "libsvm":
        pairs = [pair for pair in pairs if pair[0] == i]
    best = max(exact_gain(case, rule, a, b) for a, b in pairs)
    gain = exact_gain(case, rule, int(i), int(j))
    assert gain >= best * (1 - Fraction(1, 10**9)), f"{rule}: {step} for {case!r}"
    amount = exact_amount(case, rule, int(i), int(j))[2]
    error = abs(Fraction(abs(step.delta[0])) - min(amount, Fraction(sys.float_info.max)))
    assert error <= Fraction(1e-12) * amount + Fraction(TINY), f"{rule}: {step} for {case!r}"


@both_forms
@pytest.mark.parametrize("rule", GUIDED)
def test_the_largest_gap_is_used_if_all_gains_underflow(form, rule):
    """In units of the largest gap and amount, variable 0 cannot move and variable 2 gains 0."""
    case = Case(
        gradient=np.array([1e300, 0.0, 1e-320]),
        x=np.zeros(3),
        lower=np.array([-1e-300, 0.0, -1.0]),
        upper=np.array([0.0, 1.0, 0.0]),
        alpha=1.0,
        lipschitz=np.ones(3),
    )
    step = ask(form, rule, case)
    found = dict(zip(step.indices.tolist(), step.delta.tolist(), strict=True))
    assert found == {0: -1e-300, 1: 1e-300}
    assert step.decrease == pytest.approx(1.0)


def exact_duality_gap(case, rule, step):
    """`oracles.duality_gap` in fractions: (gap, decrease) of the model in the rule's 1-norm."""
    n = case.n
    weighted = RULES[rule].weighted
    weight = [Fraction(math.sqrt(L)) if weighted else Fraction(1) for L in case.lipschitz.tolist()]
    g, alpha = [Fraction(p) for p in case.gradient.tolist()], Fraction(case.alpha)
    pairs = improving_pairs(case)
    steepest = max((g[i] - g[j]) / (weight[i] + weight[j]) for i, j in pairs)
    down = [min(exact(case.down[k]), alpha * steepest / weight[k]) for k in range(n)]
    up = [min(exact(case.up[k]), alpha * steepest / weight[k]) for k in range(n)]
    delta = dict(zip(step.indices.tolist(), map(Fraction, step.delta.tolist()), strict=True))
    norm = sum(weight[k] * abs(d) for k, d in delta.items())
    rho = norm / alpha
    decreasing, increasing = ([g[k] + s * rho * weight[k] for k in range(n)] for s in (-1, 1))
    loss = min(
        sum(
            down[k] * max(decreasing[k] - level, 0) + up[k] * max(level - increasing[k], 0)
            for k in range(n)
        )
        for level in decreasing + increasing
    )
    level = max(g[k] for k, d in delta.items() if d > 0)  # the changes sum to 0 but for rounding
    decrease = -sum((g[k] - level) * d for k, d in delta.items()) - norm**2 / (2 * alpha)
    return alpha * rho**2 / 2 + loss - decrease, decrease


@both_forms
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=any_case(most=7), rule=st.sampled_from(["gs-1", "gs-1-lipschitz"]))
def test_steepest_descent_in_exact_arithmetic(form, case, rule):
    pairs = improving_pairs(case)
    if not pairs or not comparable(case, rule, pairs):
        return
    step = ask(form, rule, case)
    # Multiples of the smallest number are too coarse to be optimal, and so are rounded amounts.
    if not len(step.indices) or not 1e-290 < np.abs(step.delta).min() < 1e300:
        return
    # The steepest pair, by which the gap is measured, may be at a tiny distance from its bound.
    slacks = np.concatenate([case.down, case.up])
    if (slacks[slacks > 0] < 1e-290).any():
        return
    gap, decrease = exact_duality_gap(case, rule, step)
    assert gap <= decrease / 10**8, f"{rule}: {step} for {case!r}"
    if 1e-290 < decrease < 1e300:
        assert step.decrease == pytest.approx(float(decrease), rel=1e-9), f"{rule} for {case!r}"


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=any_case(), rule=st.sampled_from(sorted(set(GUIDED) - {"gs-s-ratio", "ratio"})))
def test_native_and_numpy_gain_the_same(case, rule):
    if rule == "gs-1-ratio" and len(np.unique(case.gradient)) < case.n:
        return  # equal ratios: several walks are right
    native, numpy = ask(propose, rule, case), ask(specification, rule, case)
    what = f"{rule}: {native} and {numpy} for {case!r}"
    pairs = improving_pairs(case)
    slacks = np.concatenate([case.down, case.up])
    if (slacks[slacks > 0] < 1e-290).any():
        return  # which of them round to 0 depends on the units
    if pairs and comparable(case, rule, pairs) and 1e-290 < numpy.decrease < 1e300:
        assert native.decrease == pytest.approx(numpy.decrease, rel=1e-7), what


@both_forms
@pytest.mark.parametrize("rule", RULES)
def test_no_choice_depends_on_the_units(rule, form):
    """Scaling derivatives and amounts by powers of 2 scales the step by that power."""
    rng = np.random.default_rng(20)
    for k, case in enumerate(cases(seed=21, count=60 if form is propose else 20)):
        step = ask(form, rule, case, k)
        for _ in range(3):
            derivative = int(rng.integers(-900, 901))
            amount = int(np.clip(derivative + rng.integers(-850, 851), -900, 900))
            constant = 2 * int(rng.integers(-200, 201)) if RULES[rule].weighted else 0
            constant = (
                int(np.clip(constant, -900 - amount + derivative, 900 - amount + derivative))
                // 2
                * 2
            )
            other = Case(
                *(np.ldexp(a, e) for a, e in zip(
                    (case.gradient, case.x, case.lower, case.upper),
                    (derivative, amount, amount, amount), strict=True)),
                float(np.ldexp(case.alpha, amount - derivative + constant)),
                np.ldexp(case.lipschitz, constant),
            )  # fmt: skip
            scaled = ask(form, rule, other, k)
            what = (
                f"{rule}: 2^{derivative}, 2^{amount}, 2^{constant}: {step}, {scaled} for {case!r}"
            )
            assert np.array_equal(scaled.indices, step.indices), what
            assert np.array_equal(scaled.delta, np.ldexp(step.delta, amount)), what


def test_distant_derivatives_do_not_cancel_the_decrease():
    """Measured from the smallest derivative, sums cancel and the decrease becomes negative."""
    case = Case(
        gradient=np.array([-1e140, -1.8e294, -2.7e168]),
        x=np.zeros(3),
        lower=np.array([-1.6e280, -np.inf, -3.3e-82]),
        upper=np.array([1.7e-194, 5.2e-182, 2.3e281]),
        alpha=2.3e-308,
        lipschitz=np.array([0.4, 0.7, 0.8]),
    )
    for form in FORMS.values():
        step = ask(form, "gs-1-lipschitz", case)
        gap, decrease = exact_duality_gap(case, "gs-1-lipschitz", step)
        assert step.decrease == pytest.approx(float(decrease), rel=1e-9)
        assert gap <= decrease / 10**9


def test_a_coordinate_is_in_a_step_once():
    """Variable 2, with a tiny constant, decreases at one multiplier and increases at the next."""
    case = Case(
        gradient=np.array([-0.04, 0.05, 0.967, 0.982, -0.32, 0.38, -0.89, -0.37]),
        x=np.zeros(8),
        lower=-np.array([np.inf, 0, 4.3e94, 3.2e-28, 6e-142, 1.7e-197, np.inf, 0]),
        upper=np.array([1.4e45, 0, np.inf, 2.5e46, 0, np.inf, 2.7e-245, 4e-132]),
        alpha=1.5e-323,
        lipschitz=np.array([7e148, 1e237, 3e-273, 1e-131, 5e278, 1.5e35, 2e-249, 4e59]),
    )
    for form in FORMS.values():
        assert_contract(form, "gs-1-lipschitz", case, ask(form, "gs-1-lipschitz", case))


def test_a_curvature_too_large_for_a_number(instruction_set):
    """A variable without gain must neither hide one with gain nor cause a read out of range."""
    n = 256
    gradient, lipschitz = np.zeros(n), np.full(n, 1.7e308)
    gradient[[3, 200]] = 1.0, -1.0
    lipschitz[[3, 200]] = 1.0
    step = propose("libsvm", gradient, np.zeros(n), -1.0, 1.0, alpha=1e-3, lipschitz=lipschitz)
    assert step.indices.tolist() == [3, 200]


HANGS = """
import numpy as np
from pairstep import propose
step = propose("gs-1-lipschitz", [1, 0], [5e-324, .5], 0, 1, alpha=1, lipschitz=[1e-4, 1e-4])
assert step.indices.tolist() == [0, 1] and step.delta.tolist() == [-5e-324, 5e-324], step
"""

UNDERFLOWS = """
import numpy as np
from pairstep import propose
from pairstep.paper.rules import RULES
rng = np.random.default_rng(0)
for rule in RULES:
    for n in (2, 3, 40):
        g, x, L = 1e-200 * rng.random(n), 1e-200 * rng.random(n), 1e-200 * (1 + rng.random(n))
        step = propose(rule, g, x, 0.0, 1e-200, alpha=1e300, lipschitz=L, rng=0)
        assert RULES[rule].guided <= (len(step.indices) >= 2), (rule, n, step)
"""


@pytest.mark.parametrize("program", [HANGS, UNDERFLOWS], ids=["hangs", "underflows"])
def test_gains_that_underflow(program):
    """Runs in a child process: it once never returned, or read before the start of an array."""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
