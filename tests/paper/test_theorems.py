"""Each theorem is checked by one function: it accepts the report's problems and refuses others.

The counterexamples are a problem, a rule or an algorithm for which the statement is false.
"""

import numpy as np
import pytest

pytest.importorskip("joblib")

import pairstep
from pairstep.paper import theorems, theory
from pairstep.paper.experiment import part
from pairstep.paper.races import FREE
from pairstep.paper.theorems import BOX, CLOSE, THEOREMS, N, constants, problem

ONE_PAIR = pairstep.Quadratic(np.eye(4), [3.0, 1.0, 0.0, 0.0])  # its optimum is far from 0
AT = np.array([3.0, 1.0, 0.0]), np.zeros(3), np.full(3, -0.2), np.full(3, 1.0)
SINGULAR = pairstep.Quadratic(np.diag([1.0, 1.0, 0.0, 0.0]), [1.0, -1.0, 0.0, 0.0])
POINT = np.array([0.4, -0.4, 0.0, 0.0])


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
@pytest.mark.parametrize("seed", range(2))
def test_every_theorem_holds(theorem, seed):
    p = theorem.part(seed)
    assert p.measure(**dict(p.parameters))["margin"] >= 1 - CLOSE


def small_progress(slow, factor_of):
    """The rate of another rule, for a rule that makes small progress."""
    f, box, x0 = theory.small_progress_example(4, 1e-6)
    factor = theory.rate(factor_of, **constants(f))
    return theorems.convergence(f, box, factor, rule=slow, step="1/L2", x0=x0)["margin"]


def rate_of_another_step(rule, step, factor_of="greedy"):
    f = problem(0)
    l_l, mu_l = theory.weighted_norm_constant(f), theory.weighted_norm_strong_convexity(f)
    factor = theory.rate(factor_of, **constants(f), l_l=l_l, mu_l=mu_l)
    return theorems.convergence(f, FREE, factor, rule=rule, step=step)["margin"]


def random_pairs(factor):
    """With H = I and no bounds, the sharp rate is attained at every point."""
    f, x = pairstep.Quadratic(np.eye(6)), np.arange(6.0) - 2.5
    return theorems.convergence_of_random(f, [x], factor, FREE)["margin"]


def half_a_step(choose):
    def wrong(*at, alpha, **bounds):
        return choose(*at, alpha=alpha / 2, **bounds)

    return wrong


REFUSED = {
    "theorem-greedy": lambda: rate_of_another_step("random", "1/L2"),
    "theorem-random": lambda: random_pairs(1 - 1 / 4),
    "theorem-gs-q": lambda: small_progress("gs-s", "gs-q"),
    "theorem-gs-1": lambda: small_progress("libsvm", "gs-1"),
    "theorem-gs-1-lipschitz": lambda: rate_of_another_step(
        "gs-1-lipschitz", 1e-3, "gs-1-lipschitz"
    ),
    "random-bound-is-loose": lambda: random_pairs(
        2 * theory.sharp_random_rate(l2=1.0, mu_2=1.0, n=6) - 1
    ),
    "theorem-exact-step": lambda: rate_of_another_step("random", "exact"),
    "theorem-backtracking-step": lambda: rate_of_another_step("random", "backtracking"),
    "theorem-most-progress": lambda: theorems.order_of_progress(AT, ("gs-s", "gs-1")),
    "theorem-gs-q-lower-bounds": lambda: theorems.one_sided_is_exact(
        AT, half_a_step(theory.gs_q_one_sided)
    ),
    "theorem-gs-1-linear-time": lambda: theorems.selection_is_exact(
        AT, half_a_step(theory.gs_1_by_selection)
    ),
    "theorem-conformal-pairs": lambda: theorems.conformal(
        np.array([-1.0, -1.0, 2.0]), lambda d: [(0, 1, 1.0), (1, 2, 2.0)]
    ),
    "theorem-gs-s-small-progress": lambda: theorems.small_progress(4, 1e-4, "gs-1", ["gs-q"]),
    "theorem-libsvm-no-guarantee": lambda: theorems.small_progress(4, 1e-4, "gs-q"),
    # Here the largest constants are 1/2 and 1: f - f* = D/(2 mu).
    "theorem-proximal-pl": lambda: theorems.proximal_pl(
        SINGULAR, POINT, SINGULAR.value(POINT) + 1.0, (0.51, 1.0), FREE
    ),
    "theorem-mu-1-and-mu-2": lambda: theorems.ratio_of_measures(
        SINGULAR, POINT, BOX, ("2", "2")
    ),
    "theorem-gs-1-rate-and-gs-q-rate": lambda: theorems.faster_rate(1.0, 0.1 / 12, 0.1, 6),
    "theorem-finitely-many-updates": lambda: theorems.finitely_many_updates(
        *theory.three_updates_example()
    ),
    "degenerate-optimum-three-updates": lambda: theorems.three_updates_forever(
        ONE_PAIR, BOX, np.zeros(4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_a_counterexample_is_refused(theorem):
    assert REFUSED[theorem.name]() < 0.99


def test_a_run_that_stalls_once_is_refused():
    """One bad iteration among many is enough."""
    f = problem(0)
    factor = theory.rate("greedy", **constants(f))
    run = theorems.convergence(f, FREE, factor, rule="greedy", step="1/L2")
    assert run["margin"] >= 1
    worst = float(run["fraction"].min())
    assert theorems.convergence(f, FREE, 1 - 1.01 * worst, rule="greedy", step="1/L2")["margin"] < 1


def test_with_bounds_the_expected_decrease_has_the_rate_of_the_paper():
    """At a corner of the simplex with a single improving pair, the factor n^2 is sharp."""
    n = 6
    f = pairstep.Quadratic(np.eye(n), [0.0, 0.0, 2.0, 2.0, 2.0, 2.0])
    sharp = theory.sharp_random_rate(l2=1.0, mu_2=1.0, n=n, bounds=True)
    x, box = [np.eye(n)[0]], pairstep.SumBox(1.0, 0.0, 1.0)
    assert theorems.convergence_of_random(f, x, sharp, box)["margin"] == pytest.approx(1)
    without = theory.sharp_random_rate(l2=1.0, mu_2=1.0, n=n)
    assert theorems.convergence_of_random(f, x, without, box)["margin"] < 0.99


def test_the_greedy_rate_is_attained():
    """With H = I and a gradient of two values, the first step removes exactly 2 mu_1/L2."""
    f = pairstep.Quadratic(np.eye(N), np.repeat([1.0, -1.0], N // 2))
    factor = theory.rate("greedy", **constants(f))
    first = theorems.convergence(f, FREE, factor, rule="greedy", step="1/L2")["fraction"][0]
    assert first == pytest.approx(1 - factor)


def test_both_proximal_pl_constants_are_sharp():
    gap = SINGULAR.value(POINT) + 1.0
    assert theorems.proximal_pl(SINGULAR, POINT, gap, (0.5, 1.0), FREE) == pytest.approx(1)
    assert theorems.proximal_pl(SINGULAR, POINT, gap, (0.5, 1.02), FREE) < 0.99


@pytest.mark.parametrize("box", [FREE, BOX])
def test_strong_convexity_gives_the_proximal_pl_inequality(box):
    rng, f = np.random.default_rng(0), problem(0)
    optimum = pairstep.minimize(f, box, tol=1e-13).fun
    mu = theory.one_norm_strong_convexity(f), theory.strong_convexity(f)
    for x in (box.project(rng.standard_normal(N)) for _ in range(100)):
        assert theorems.proximal_pl(f, x, f.value(x) - optimum, mu, box) >= 1 - CLOSE


@pytest.mark.parametrize("rule", ["gs-q", "gs-1"])
def test_exact_steps_keep_the_rate_with_bounds(rule):
    for seed in range(3):
        f = problem(seed)
        factor = theory.rate(rule, **constants(f))
        assert theorems.convergence(f, BOX, factor, rule=rule, step="exact")["margin"] >= 1 - CLOSE


@pytest.mark.parametrize("size", ["1/L_L", 1.0])
def test_the_weighted_rule_keeps_its_rate_with_bounds_and_a_shorter_step(size):
    for seed in range(3):
        f = problem(seed)
        l_l, mu_l = theory.weighted_norm_constant(f), theory.weighted_norm_strong_convexity(f)
        step = 1 / l_l if size == "1/L_L" else size
        factor = theory.rate("gs-1-lipschitz", l_l=1 / step, mu_l=mu_l)
        run = theorems.convergence(f, BOX, factor, rule="gs-1-lipschitz", step=step)
        assert run["margin"] >= 1 - CLOSE


def test_parts_of_theorems_are_distinct():
    parts = [theorem.part(0) for theorem in THEOREMS]
    assert len(set(parts)) == len(parts)
    assert part(theorems.rate, seed=0, run="greedy") in parts
