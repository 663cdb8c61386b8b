"""Theory and practice: the results of the paper, checked on small problems.

Each theorem is checked by one function, whose arguments are a problem, a rule or an algorithm. It
returns a margin: the smallest ratio of what happens to what the theorem guarantees, so the theorem
holds if the margin is at least 1. The report calls these functions for random problems, and
`tests/paper/test_theorems.py` for counterexamples, which they refuse. The figure shows the decrease
of every iteration and the bounds of the convergence theorems. `docs/theory/coverage.md` lists all
results of the paper with their checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import Quadratic, Step, SumBox, minimize
from . import theory
from .claims import Claim, Kind, checked
from .drawing import BLACK, LINES
from .experiment import Array, Experiment, Measured, Part, Results, Scale, part
from .problems import box_optimum
from .races import FREE, identified_at, race
from .rules import propose

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

N = 12  # small enough for an exact mu_1
BOX = SumBox(total=0.0, lower=-0.5, upper=0.5)
# The runs that are compared with a rate: the rule, its step, and the constraint.
RUNS: dict[str, tuple[str, str, SumBox]] = {
    "greedy": ("greedy", "1/L2", FREE),
    "random": ("random", "1/L2", FREE),
    "gs-q": ("gs-q", "1/L2", BOX),
    "gs-1": ("gs-1", "1/L2", BOX),
    "gs-1-lipschitz": ("gs-1-lipschitz", "1/L_L", FREE),
    "exact": ("greedy", "exact", FREE),
    "backtracking": ("greedy", "backtracking", FREE),
}
DRAWN = list(RUNS)[:5]
POINTS = 500  # random points per seed
PROGRESS = "gs-1", "gs-q", "libsvm", "gs-s"  # in the order of their guaranteed decrease
CYCLE = 24  # iterations at the degenerate optimum, before rounding errors matter
CLOSE = 1e-9  # by how much a margin may be below 1, for rounding errors

At = tuple[Array, Array, Array, Array]  # a gradient, a point and bounds


# ---- One function for each theorem ----


def convergence(f: Quadratic, constraint: SumBox, factor: float, **options: Any) -> Measured:
    """Theorems 2.3, 3.1 and 3.2: every iteration removes at least 1 - factor of f - f*.

    The options are those of `coordinate_descent`: the rule, the step and the start.
    """
    optimum = optimum_of(f, constraint)
    gaps = race(f, constraint, optimum=optimum, tol=0.0, max_iter=2000, **options)["suboptimality"]
    gaps = gaps[: 1 + np.count_nonzero(np.cumprod(gaps > 1e-7 * gaps[0]))]
    fraction = -np.diff(gaps) / gaps[:-1]
    return {
        "suboptimality": gaps[:-1],
        "fraction": fraction,
        "bound": np.full(len(fraction), 1 - factor),
        "margin": np.array(fraction.min() / (1 - factor)),
    }


def optimum_of(f: Quadratic, box: SumBox) -> float:
    """Return the optimum where all variables have the same bounds."""
    layout = box.layout(f.n)
    return box_optimum(f.Q, f.c, layout.totals[0], layout.lower[0], layout.upper[0])[1]


def expected_decrease(f: Quadratic, x: Array, box: SumBox) -> float:
    """Return the mean decrease over all pairs, with the step 1/L2 within bounds."""
    g = f.gradient(x)
    i, j = np.triu_indices(f.n, 1)
    i, j = np.where(g[i] >= g[j], (i, j), (j, i))
    amount = (g[i] - g[j]) / (2 * theory.two_coordinate_constant(f))
    amount = np.minimum(amount, np.minimum(x[i] - box.lower, box.upper - x[j]))
    curvature = f.Q[i, i] + f.Q[j, j] - 2 * f.Q[i, j]
    return float(np.mean(amount * (g[i] - g[j]) - 0.5 * curvature * amount**2))


def convergence_of_random(
    f: Quadratic, points: Sequence[Array], factor: float, box: SumBox
) -> Measured:
    """Equation (8): the expected decrease over all pairs is at least 1 - factor of f - f*."""
    optimum = optimum_of(f, box)
    gaps = [f.value(x) - optimum for x in points]
    far = [(x, gap) for x, gap in zip(points, gaps, strict=True) if gap > 1e-7 * gaps[0]]
    fraction = [expected_decrease(f, x, box) / gap for x, gap in far]
    return {"expected": np.array(fraction), "margin": np.array(min(fraction) / (1 - factor))}


def order_of_progress(at: At, rules: Sequence[str] = PROGRESS) -> float:
    """Abstract: each rule guarantees at least the decrease of the next one."""
    decreases = np.array([theory.guaranteed_decrease(rule, *at, l2=1.0) for rule in rules])
    decreases += 1e-3 * CLOSE  # none of them may be able to move
    return float(np.min(decreases[:-1] / decreases[1:]))


def one_sided_is_exact(at: At, choose: Callable[..., Step] = theory.gs_q_one_sided) -> float:
    """Section 3.2: with only lower bounds, the decrease of gs-q is found in O(n)."""
    g, x, low, _ = at
    pairs = permutations(range(len(g)), 2)
    amounts = [(min((g[i] - g[j]) / 2, x[i] - low[i]), g[i] - g[j]) for i, j in pairs]
    best = max((d * (gap - d) for d, gap in amounts if d > 0), default=0.0)
    return agreement(choose(g, x, lower=low, alpha=1.0).decrease, best)


def selection_is_exact(at: At, choose: Callable[..., Step] = theory.gs_1_by_selection) -> float:
    """Section 6: selection finds the decrease of GS-1."""
    return agreement(choose(*at, alpha=1.0).decrease, propose("gs-1", *at, alpha=1.0).decrease)


def agreement(found: float, exact: float) -> float:
    """Return 1 minus the relative difference of two decreases."""
    return 1 - abs(found - exact) / max(found, exact, 1e-300)


def conformal(d: Array, realize: Callable[[Array], Any] = theory.conformal_pairs) -> float:
    """Lemma D.3: at most n - 1 pairs with the signs of the step d sum to it."""
    pairs, total = realize(d), np.zeros(len(d))
    for i, j, amount in pairs:
        total[[i, j]] += -amount, amount
    signs = all(d[i] < 0 < d[j] and amount > 0 for i, j, amount in pairs)
    return float(signs and len(pairs) < len(d) and (total == d).all())


def small_progress(n: int, epsilon: float, slow: str, fast: Sequence[str] = ()) -> float:
    """Sections 3.1 and 3.2: a slow rule removes O(epsilon) of f - f*, and fast rules a fifth."""
    f, box, x0 = theory.small_progress_example(n, epsilon)
    gap = f.value(x0) - minimize(f, box, tol=1e-13).fun

    def fraction(rule: str) -> float:
        alpha = 2.0 if rule == "gs-1" else 1.0
        step, x = propose(rule, f.gradient(x0), x0, 0.0, 1.0, alpha=alpha), x0.copy()
        x[step.indices] += step.delta
        return (f.value(x0) - f.value(x)) / gap

    return min([12 * epsilon / fraction(slow), *(fraction(rule) / 0.2 for rule in fast)])


def proximal_pl(f: Quadratic, x: Array, gap: float, mu: tuple[float, float], box: SumBox) -> float:
    """Definition 2.2: D(x, L)/2 is at least mu (f - f*), in the 1-norm and in the 2-norm."""
    one, two = measures(f, x, box)
    return min(one / 2 / (mu[0] * gap), two / 2 / (mu[1] * gap))


def measures(
    f: Quadratic, x: Array, box: SumBox, norms: Sequence[str] = ("1", "2")
) -> tuple[float, float]:
    """Return D(x, L) in the 1-norm with L1 = L2/2, and in the 2-norm with L2."""
    l2 = theory.two_coordinate_constant(f)
    ends = {"lower": box.lower, "upper": box.upper}
    one, two = (
        theory.proximal_pl_measure(f.gradient(x), x, L, norm=norm, **ends)
        for L, norm in zip((l2 / 2, l2), norms, strict=True)
    )
    return one, two


def ratio_of_measures(
    f: Quadratic, x: Array, box: SumBox, norms: Sequence[str] = ("1", "2")
) -> float:
    """Lemma C.1, sharpened: D in the 1-norm is between 1/n and 1/2 of D in the 2-norm."""
    one, two = measures(f, x, box, norms)
    return min(f.n * one / two, two / (2 * one))


def faster_rate(l2: float, mu_1: float, mu_2: float, n: int) -> float:
    """Section 3.3: the rate of gs-1 is at least as fast as the rate of gs-q."""
    gs_1, gs_q = (
        1 - theory.rate(rule, l2=l2, mu_1=mu_1, mu_2=mu_2, n=n) for rule in ("gs-1", "gs-q")
    )
    return gs_1 / gs_q


def finitely_many_updates(f: Quadratic, box: SumBox, x0: Array) -> float:
    """Section 3.3: the active set becomes final, and then gs-1 changes at most two variables."""
    best = minimize(f, box, tol=1e-12).x
    run = race(f, box, rule="gs-1", step="1/L2", x0=x0, tol=1e-10, max_iter=5000, final=best)
    final, last = identified_at(run["not_final"]), identified_at(run["moved"], 2) - 1
    return float(last <= final < len(run["moved"]) - 10)


def three_updates_forever(f: Quadratic, box: SumBox, x0: Array) -> float:
    """Beyond the paper: gs-1 changes three and two variables in turn."""
    x, counts, alpha = x0.copy(), [], 2 / theory.two_coordinate_constant(f)
    for _ in range(CYCLE):
        step = propose("gs-1", f.gradient(x), x, box.lower, box.upper, alpha=alpha)
        x[step.indices] += step.delta
        counts.append(len(step.indices))
    return float(counts == [3, 2] * (CYCLE // 2))


# ---- The problems of the report ----


def problem(seed: int) -> Quadratic:
    """Draw a strongly convex quadratic with different diagonal entries."""
    rng = np.random.default_rng([seed, 4])
    B = rng.standard_normal((2 * N, N)) * np.exp(0.3 * rng.standard_normal(N))
    return Quadratic(B.T @ B / (2 * N) + 0.1 * np.eye(N), rng.standard_normal(N))


def constants(f: Quadratic) -> dict[str, Any]:
    """Return the constants of the rates."""
    l2, mu_1 = theory.two_coordinate_constant(f), theory.one_norm_strong_convexity(f)
    return {"l2": l2, "mu_1": mu_1, "mu_2": theory.strong_convexity(f), "n": f.n}


def rate(seed: int, run: str) -> Measured:
    """Compare a run with the rate of its theorem."""
    f = problem(seed)
    rule, step, constraint = RUNS[run]
    l_l, mu_l = theory.weighted_norm_constant(f), theory.weighted_norm_strong_convexity(f)
    factor = theory.rate(rule, **constants(f), l_l=l_l, mu_l=mu_l)
    if step == "backtracking":
        factor = theory.backtracking_rate(factor)
    length = 1 / l_l if step == "1/L_L" else step
    return convergence(f, constraint, factor, rule=rule, step=length, seed=seed)


def expected(seed: int, sharp: bool = False) -> Measured:
    """Compare the expected decrease along a run of random with a rate."""
    f, points = problem(seed), [FREE.start(N)]
    watch = {"callback": lambda progress: points.append(progress.x)}
    convergence(f, FREE, 0.0, rule="random", step="1/L2", seed=seed, **watch)
    known = constants(f)
    factor = theory.rate("random", **known)
    if sharp:
        factor = theory.sharp_random_rate(l2=known["l2"], mu_2=known["mu_2"], n=N)
    return convergence_of_random(f, points, factor, FREE)


def random_points(seed: int) -> Iterable[At]:
    """Draw gradients, points and bounds, with ties and variables that cannot change."""
    rng = np.random.default_rng([seed, 5])
    for _ in range(POINTS):
        n = int(rng.integers(2, N + 1))
        g = rng.integers(-3, 4, n).astype(float) if rng.random() < 0.5 else rng.standard_normal(n)
        low, high = rng.choice([0.0, 0.1, 1.0], (2, n)) * rng.random((2, n))
        yield g, np.zeros(n), -low, high


def least(margins: Iterable[float]) -> Measured:
    """Return the least margin as a measurement."""
    return {"margin": np.array(min(margins))}


def progress(seed: int) -> Measured:
    """Compare the guaranteed decreases of the rules at random points."""
    return least(map(order_of_progress, random_points(seed)))


def one_sided(seed: int) -> Measured:
    """Compare GS-q in O(n) with all pairs at random points."""
    return least(map(one_sided_is_exact, random_points(seed)))


def selection(seed: int) -> Measured:
    """Compare GS-1 by selection with GS-1 at random points."""
    return least(map(selection_is_exact, random_points(seed)))


def realizations(seed: int) -> Measured:
    """Realize random steps by conformal pairs."""
    rng = np.random.default_rng([seed, 8])
    steps = rng.integers(-3, 4, (POINTS, N)).astype(float)
    steps[:, 0] -= steps.sum(axis=1)
    return least(map(conformal, steps))


def gs_s_is_slow(seed: int) -> Measured:
    """Compare gs-s with gs-q and gs-1 in the example of small progress."""
    epsilons = 0.1 / (seed + 3) ** 2, 1e-2 / (seed + 3), 1e-4, 1e-8
    return least(small_progress(4 + seed, e, "gs-s", ("gs-q", "gs-1")) for e in epsilons)


def libsvm_is_slow(seed: int) -> Measured:
    """Run the rule of LIBSVM in the example of small progress."""
    return least(small_progress(4 + seed, e, "libsvm") for e in (1e-2 / (seed + 3), 1e-4, 1e-8))


def singular_points(seed: int) -> tuple[Quadratic, list[tuple[SumBox, list[Array]]]]:
    """Draw a function g(Ax) that is not strongly convex, and points without and with bounds."""
    rng = np.random.default_rng([seed, 6])
    A, b = rng.standard_normal((3, 6)), 2 * rng.standard_normal(3)
    f = Quadratic(A.T @ A, -A.T @ b)
    return f, [
        (box, [box.project(rng.standard_normal(6)) for _ in range(POINTS)]) for box in (FREE, BOX)
    ]


def singular(seed: int) -> Measured:
    """Check the proximal-PL inequality of a function that is not strongly convex."""
    f, points = singular_points(seed)
    margins = []
    for box, xs in points:
        optimum = minimize(f, box, tol=1e-13).fun
        mu = theory.proximal_pl_constants(f, bounds=box is BOX)
        margins += [proximal_pl(f, x, f.value(x) - optimum, mu, box) for x in xs]
    return least(margins)


def ratios(seed: int) -> Measured:
    """Compare the measures of both norms."""
    f, points = singular_points(seed)
    return least(ratio_of_measures(f, x, box) for box, xs in points for x in xs)


def rates(seed: int) -> Measured:
    """Compare the rates of gs-1 and gs-q."""
    return least([faster_rate(**constants(problem(seed)))])


def updates(seed: int) -> Measured:
    """Run GS-1 from a random start to an optimum that is nondegenerate."""
    n, rng = 40, np.random.default_rng([seed, 7])
    B = rng.standard_normal((n, n))
    f = Quadratic(B.T @ B / n + 0.2 * np.eye(n), rng.standard_normal(n))
    box = SumBox(total=0.0, lower=-0.2, upper=0.2)
    return least([finitely_many_updates(f, box, box.project(rng.standard_normal(n)))])


def forever(seed: int) -> Measured:
    """Run GS-1 to an optimum that is degenerate."""
    return least([three_updates_forever(*theory.three_updates_example(0.1 + 0.01 * seed))])


# ---- Claims ----


@dataclass(frozen=True)
class Theorem:
    """A result of the paper, or a sharper one, with the function that checks it for a seed."""

    name: str
    statement: str
    measure: Callable[..., Measured]
    reading: str
    sentence: str = ""
    source: str = ""
    kind: Kind = Kind.THEOREM
    options: dict[str, Any] = field(default_factory=dict)

    def part(self, seed: int) -> Part:
        """Return the measurement for a seed."""
        return part(self.measure, seed=seed, **self.options)

    def claim(self, results: Results, scale: Scale) -> Claim:
        """Return the claim that every margin is at least 1."""
        margins = [float(results[self.part(seed)]["margin"]) for seed in scale.seeds]
        short = [
            f"seed {seed}: {margin:.3g}"
            for seed, margin in zip(scale.seeds, margins, strict=True)
            if margin < 1 - CLOSE
        ]
        return checked(
            self.name, self.statement, short, self.reading,
            "Smallest ratio of what happens to what is guaranteed, for each seed: "
            f"{', '.join(f'{margin:.3g}' for margin in margins)}.",
            sentence=self.sentence, source=self.source, kind=self.kind,
            numbers={"margin": margins},
        )  # fmt: skip


AT_POINTS = f"at {POINTS} random points per seed, with ties and variables that cannot change"
EXPECTED = (
    f"{N} variables, exact L2 and mu_2: the expected decrease over all pairs as a fraction of "
    "f - f*, at every iteration."
)
LINE_SEARCHES = (
    r"Note that the above rate also holds if we choose $\alpha^k$ to maximally decrease $f$, and "
    r"the same rate holds up to a constant if we use a backtracking line search to set $\alpha^k$."
)


def rate_theorem(run: str, sentence: str, source: str) -> Theorem:
    """Return a theorem about the rate of a rule."""
    within = " in a box" if RUNS[run][2] is BOX else ""
    return Theorem(
        f"theorem-{run}",
        f"The convergence rate of {run} holds at every iteration.",
        rate,
        f"{N} variables{within}, exact constants: the decrease as a fraction of f - f* is at least "
        "the theorem's, at every iteration and for every seed.",
        sentence, source, options={"run": run},
    )  # fmt: skip


def step_theorem(step: str, constant: str, bound: str) -> Theorem:
    """Return the theorem about a line search."""
    return Theorem(
        f"theorem-{step}-step",
        f"The greedy rule with {step} steps keeps the rate{constant}.",
        rate,
        f"The decrease as a fraction of f - f* is at least {bound} at every iteration, {N} "
        "variables without bounds.",
        LINE_SEARCHES, "Section 2.3, after Theorem 2.3", options={"run": step},
    )  # fmt: skip


THEOREMS = (
    rate_theorem(
        "greedy",
        r"then the iterations of the 2-coordinate update~\eqref{eq:update2} with $\alpha^k=1/L_2$ "
        r"and the greedy rule~\eqref{eq:ik} satisfy: \begin{equation} f(x^k)- f(x^*) \leq "
        r"\left(1- \frac{2\mu_1}{L_2}\right)^k (f(x^0) - f^*).",
        "Section 2.3, Theorem 2.3",
    ),
    Theorem(
        "theorem-random",
        "The convergence rate of random holds at every iteration.",
        expected,
        EXPECTED,
        "If we sample the two coordinates $i_k$ and $j_k$ from a uniform distribution, then it is "
        r"known that the 2-coordinate descent method satisfies~\citep{she2017linear} "
        r"\begin{equation} \E [f(x^k)]- f(x^*) \leq \left(1- \frac{\mu_2}{n^2L_2}\right)^k "
        r"(f(x^0) - f^*).",
        "Section 2.4, equation (8), cited from She and Schmidt (2017)",
        Kind.CITED,
    ),
    rate_theorem(
        "gs-q",
        r"then the iterations of the 2-coordinate update~\eqref{eq:dk} with $\delta^k$ given "
        r"by~\eqref{eq:deltaBound}, $\alpha^k=1/L_2$, and the greedy GS-q rule~\eqref{eq:GS-q} "
        r"satisfy: \[ f(x^k)- f(x^*) \leq \left(1- \frac{\mu_2}{L_2(n-1)}\right)^k "
        r"(f(x^0) - f^*).",
        "Section 3.2, Theorem 3.1",
    ),
    rate_theorem(
        "gs-1",
        r"then the iterations of the update $x^{k+1} = x^k + d^k$ with the greedy "
        r"rule~\eqref{eq:GS-1} and $\alpha_k=1/L_1 = 2/L_2$ satisfy: \[ f(x^k)- f(x^*) \leq "
        r"\left(1- \frac{2\mu_1}{L_2}\right)^k (f(x^0) - f^*).",
        "Section 3.3, Theorem 3.2",
    ),
    rate_theorem(
        "gs-1-lipschitz",
        "if we use the greedy two-coordinate update to set $d^k$ and use a step size of "
        r"$\alpha=1/L_L$",
        "Appendix E.3",
    ),
    Theorem(
        "random-bound-is-loose",
        "Without bounds, random selection satisfies 1 - mu_2/((n-1) L2): the paper's rate with "
        "n^2 is loose by a factor of about n.",
        expected,
        f"{EXPECTED} The mean decrease over all pairs is |Pg|^2/(2(n-1)L2), Pg the gradient minus "
        "its mean. The paper's factor between O(n) and O(n^2) is a ratio of two bounds; with "
        "the sharper bound for random the ratio is between 2 (n - 1)/n and n - 1. It says how "
        "the bounds compare, not how much faster greedy is on a given problem.",
        kind=Kind.BEYOND,
        options={"sharp": True},
    ),
    step_theorem("exact", "", "2 mu_1/L2"),
    step_theorem("backtracking", " up to the constant 3/8", "(3/8) 2 mu_1/L2"),
    Theorem(
        "theorem-most-progress",
        "GS-1 guarantees at least the progress of gs-q, which guarantees at least that of "
        "libsvm and of gs-s.",
        progress,
        f"The decrease that the descent lemma guarantees for the step of each rule, {AT_POINTS}.",
        "We show that bound- and summation-constrained steepest descent in the L1-norm "
        "guarantees more progress per iteration than previous rules",
        "Abstract; Section 3.3",
    ),
    Theorem(
        "theorem-gs-q-lower-bounds",
        "With only lower bounds, gs-q takes O(n): one pass with the smallest derivative.",
        one_sided,
        f"theory.gs_q_one_sided against a search over all pairs, {AT_POINTS}.",
        "One special case where this can be solved in $O(n)$ given the gradient is if we only "
        "have lower bounds (or only have upper bounds)",
        "Section 3.2",
    ),
    Theorem(
        "theorem-gs-1-linear-time",
        "GS-1 takes O(n) time, by selection instead of sorting.",
        selection,
        f"The decrease of theory.gs_1_by_selection and of gs-1, {AT_POINTS}. The theory pages "
        "prove the number of operations.",
        "We further expect that the GS-1 rule could be implemented in $O(n)$ by using "
        "randomized algorithms",
        "Section 6",
    ),
    Theorem(
        "theorem-conformal-pairs",
        "Every step that keeps the sum is the sum of at most n - 1 conformal pair steps.",
        realizations,
        f"theory.conformal_pairs on {POINTS} random steps per seed: the pairs sum to the step, "
        "there are at most n - 1, and each has the signs of the step.",
        r"every non-zero vector $x$ of $S \subseteq \R^n$ can be realized as the sum \[ x = "
        r"d_1 + \dots + d_{s} + d_{s+1}, \] where $d_1, \dots, d_{s}$ are elementary vectors "
        r"of $S$ that are conformal to $x$",
        "Appendix D, Lemma D.3",
    ),
    Theorem(
        "theorem-gs-s-small-progress",
        "gs-s can make arbitrarily small progress where gs-q and gs-1 do not.",
        gs_s_is_slow,
        "theory.small_progress_example, where all variables but two are epsilon from their bound, "
        "for epsilon down to 1e-8: gs-s removes at most 12 epsilon of f - f*, and gs-q and gs-1 at "
        "least a fifth.",
        "Unfortunately, the per-iteration decrease in $f$ obtained by the GS-s rule can be "
        "arbitrarily small.",
        "Section 3.1",
    ),
    Theorem(
        "theorem-libsvm-no-guarantee",
        "The rule of LIBSVM can make arbitrarily small progress.",
        libsvm_is_slow,
        "The same example. The paper gives none; the first variable is that of gs-s, so its "
        "distance to the bound limits the step with every partner.",
        "However, similar to the GS-s rule we cannot guarantee non-trivial progress for the "
        "practical variant of the GS-q rule used by LIBSVM.",
        "Section 3.2",
    ),
    Theorem(
        "theorem-proximal-pl",
        "A function g(Ax) with singular A satisfies the proximal-PL inequality, with and "
        "without bounds.",
        singular,
        "Least squares with a random 3 x 6 matrix, which is not strongly convex: D(x, L)/2 "
        f"over mu (f - f*) at {POINTS} random points, mu from theory.proximal_pl_constants.",
        "Functions satisfying these conditions include any strongly-convex function $f$ as "
        "well as relaxations of strong convexity, such as functions of the form $f=g(Ax)$ for "
        "a strongly-convex $g$ and a matrix $A$",
        "Section 2.2",
    ),
    Theorem(
        "theorem-mu-1-and-mu-2",
        "mu_2/n <= mu_1 <= mu_2/2 for the proximal-PL constants; the paper has mu_1 <= mu_2.",
        ratios,
        "The ratio of D in the 1-norm with L1 = L2/2 to D in the 2-norm with L2 lies between "
        "1/n and 1/2, at the same points, n = 6.",
        r"if $\mu_2$ is the proximal-PL constant in the $2$-norm, then we have "
        r"$\frac{\mu_2}{n} \leq \mu_1 \leq \mu_2$",
        "Section 2.2; Appendix C, Lemma C.1",
    ),
    Theorem(
        "theorem-gs-1-rate-and-gs-q-rate",
        "The rate of gs-1 is at least as fast as the rate of gs-q.",
        rates,
        "2 mu_1/L2 over mu_2/(L2 (n-1)), with exact constants.",
        "This GS-1 convergence rate is at least as fast as the convergence rate for GS-q",
        "Section 3.3",
    ),
    Theorem(
        "theorem-finitely-many-updates",
        "At a nondegenerate optimum, gs-1 changes more than two variables only until the "
        "active set is final.",
        updates,
        "40 variables in a box, a random start; the last iteration that changes more than two "
        "variables, and the last at which the variables at bounds are not those of the optimum.",
        "we can show that the GS-1 rule will only update more than 2 variables on a finite "
        "number of early iterations.",
        "Section 3.3",
    ),
    Theorem(
        "degenerate-optimum-three-updates",
        "At a degenerate optimum, gs-1 can change three variables in every second iteration "
        "forever: the paper's statement needs nondegeneracy.",
        forever,
        f"theory.three_updates_example, {CYCLE} iterations. Each iteration depends only on the "
        "direction of x, and the directions repeat.",
        kind=Kind.BEYOND,
    ),
)


# ---- The figure ----


def panels(table: pd.DataFrame) -> dict[str, Callable[[Axes], None]]:
    """Return one panel per theorem, for the first seed."""
    by_run = dict(list(table[table.seed == table.seed[0]].groupby("run")))
    return {run: partial(draw, rows=by_run[run]) for run in DRAWN}


def draw(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw a dot per iteration, and the bound below the dots."""
    removed = rows[rows.fraction > 0]
    ax.set(yscale="log", xlabel="iteration", ylabel="fraction of $f - f^*$ removed")
    style = {"color": LINES[rows.run.iloc[0]]["color"], "alpha": 0.6}
    ax.plot(removed.iteration, removed.fraction, ".", label="measured", **style)
    ax.axhline(rows.bound.iloc[0], color=BLACK, linestyle="--", label="theorem")
    ax.legend()


EXPERIMENT = Experiment(
    "theory",
    "Theory and practice",
    f"A strongly convex quadratic of {N} variables with exact constants; steps 1/L2, 1/L1 for gs-1 "
    "and 1/L_L for gs-1-lipschitz; bounds -0.5 and 0.5 for gs-q and gs-1; first seed. Each dot is "
    "an iteration, at the fraction of the suboptimality that it removes. Dashed: what the theorem "
    "guarantees. For random the guarantee is for the expectation over all pairs.",
    lambda scale: [
        *(theorem.part(seed) for theorem in THEOREMS for seed in scale.seeds),
        *(part(rate, seed=seed, run="random") for seed in scale.seeds),
    ],
    ("suboptimality", "fraction", "bound"),
    lambda results, scale: [theorem.claim(results, scale) for theorem in THEOREMS],
    panels,
)
