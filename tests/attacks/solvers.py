"""Attack solve_qp and minimize: `python -m tests.attacks.solvers --count 20000 --seed 0`.

Checks of each answer:

- bounds exactly, sums within one ulp, all numbers finite;
- `fun` against the exact value;
- `optimal`: the exact KKT violation is within the reported tolerance, and no known point is better
  by more than 1e-6 of the possible improvement (since the start, or of the terms at the point);
- `suboptimality_bound` is not below the exact gap to any known point, if the problem is convex;
- `unbounded`: only if the problem is not bounded, and with small integers only with a direction;
- an unbounded convex problem in small integers is not `optimal`;
- `stalled` and `max_iter` occur on a convex problem neither at an optimum nor far from one;
- ValueError exactly if no point is feasible;
- copying, reordering or rescaling variables does not change the answer.

"Known" points come from other solvers, from exact steps in long double and from variants of the
problem; all are made feasible exactly before they are compared.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import pairstep

from . import optima, problems, runner
from .exact import Exact, exact_sum
from .problems import Case, Problem
from .runner import Defect

EPS = optima.EPS
WORSE = 1e-6  # fraction of the possible improvement that an optimum may miss
EXACT = 1e-10  # fraction of it within which a point counts as optimal


@dataclass
class Answer:
    """The answer of the package to one problem."""

    result: pairstep.Result | None
    refusal: str = ""
    warning: str = ""

    @property
    def word(self) -> str:
        """The status."""
        return "refused" if self.result is None else str(self.result.status)


def ask(problem: Problem) -> Answer:
    """Solve a problem; a ValueError also counts as an answer."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result, refusal = problem.solve(), ""
        except ValueError as error:
            result, refusal = None, str(error)
    return Answer(result, refusal, "; ".join(str(warning.message) for warning in heard))


class Solvers:
    """The attack."""

    def __init__(self, limit: float, family: str | None = None) -> None:
        self.limit = limit
        self.family = family

    def open(self) -> None:
        """Nothing to prepare."""

    def draw(self, rng: np.random.Generator) -> Case:
        """Return a random problem."""
        return problems.draw(rng, self.family)

    def solve(self, case: Case) -> list[Answer]:
        """Solve it, and its variant if it has one."""
        answers = [ask(case.problem)]
        if case.variant is not None:
            answers.append(ask(case.variant))
        return answers

    def check(self, case: Case, answers: list[Answer]) -> tuple[str, list[Defect]]:
        """Check the answers one by one and against each other."""
        first, *others = answers
        known = []
        if others and others[0].result is not None:
            z = others[0].result.x
            known = [case.original(z)] if np.isfinite(z).all() else []
        defects = list(check_answer(case.problem, first, known))
        for other in others:
            told = check_answer(case.variant, other, [])
            defects += [Defect(f"variant {d.kind}", d.text) for d in told]
            defects += compare(case, first, other)
        return first.word, defects


# ------------------------------------------------------------------ one answer


def check_answer(problem: Problem, answer: Answer, known: list[np.ndarray]) -> Iterator[Defect]:
    """Return the defects of an answer; `known` are other points that may be better."""
    if answer.warning:
        yield Defect("warning", answer.warning)
    miss = optima.infeasibility(problem)
    if answer.result is None:
        size = max(abs(problem.sums.low), float(np.abs(known).max()) if known else 0.0)
        size = size if math.isfinite(size) else 0.0
        if not problem.may_refuse and miss <= Fraction(math.ulp(size)):
            yield Defect("refused", f"feasible, by {float(-miss):g}: {answer.refusal}")
        return
    if miss > optima.rounding_of_sums(problem):
        yield Defect("infeasible", f"accepted, though the sums miss the bounds by {float(miss):g}")
        return
    result = answer.result
    wrong = list(check_feasible(problem, result, max(miss, Fraction(0))))
    yield from wrong
    if any(defect.kind == "not finite" for defect in wrong):
        return
    yield from check_unbounded(problem, result)
    if result.status != "unbounded" and not wrong:
        yield from check_optimal(problem, result, known)


def check_feasible(problem: Problem, result: pairstep.Result, miss: Fraction) -> Iterator[Defect]:
    """Bounds exactly, and sums within one ulp, or as far as bounds that miss them allow."""
    x = result.x
    if not np.isfinite(x).all():
        yield Defect("not finite", f"x = {x}")
        return
    outside = (x < problem.lower) | (x > problem.upper)
    if outside.any():
        i = int(np.argmax(outside))
        yield Defect("bounds", f"x[{i}] = {x[i]!r} outside {problem.lower[i]}, {problem.upper[i]}")
    everything, *parts = optima.groups_of(problem)
    for group in (everything, *parts):
        total = exact_sum(x[group.members])
        for sign, end in ((1, group.high), (-1, group.low)):
            if not math.isfinite(end):
                continue
            over = sign * (total - Fraction(end))
            # Under one total, the sums of groups are only as exact as their variables.
            own = x[group.members] if parts else x
            size = max(abs(end), float(np.abs(own).max(initial=0)))
            if over > Fraction(math.ulp(size)) + miss:
                yield Defect("sum", f"{float(total)!r} misses {end!r} by {float(over):g}")


def check_unbounded(problem: Problem, result: pairstep.Result) -> Iterator[Defect]:
    """Check that the status is `unbounded` exactly if the objective is unbounded."""
    said = result.status == "unbounded"
    if problem.smooth or problem.bounded:
        if said and (problem.convex or problem.smooth):
            yield Defect("unbounded", "said of a convex problem that is bounded by construction")
        return
    if problem.bounded is not None or not is_integral(problem):
        return
    start = feasible_integers(problem)
    if problem.convex:
        d = optima.falls_forever(problem)
        proven = d is not None and optima.leads_down(problem, d, start)
        if said and d is None:
            yield Defect("unbounded", "there is no direction along which it falls")
        if proven and result.status == "optimal":
            yield Defect("falls", f"called optimal, but it falls along {d}")
    elif said and not (some_direction(problem, result.x) or some_direction(problem, start)):
        yield Defect("unbounded", "no direction with small integers is found")


def is_integral(problem: Problem) -> bool:
    """Whether all data are small integers."""
    parts = [problem.Q, problem.c, problem.A, problem.D]
    return problem.n <= 6 and all(
        part is None or ((np.abs(part) < 1000).all() and (part == np.rint(part)).all())
        for part in parts
    )


def feasible_integers(problem: Problem) -> np.ndarray:
    """A feasible point from the package, rounded to integers."""
    return np.rint(problem.constraint().start(problem.n))


def some_direction(problem: Problem, start: np.ndarray) -> bool:
    """Whether the problem is unbounded along a direction of small integers."""
    H = optima.matrix_of(problem)
    grid = np.array(list(itertools.product(range(-3, 4), repeat=problem.n)), float)
    grid = grid[
        ~((grid < 0) & np.isfinite(problem.lower)).any(axis=1)
        & ~((grid > 0) & np.isfinite(problem.upper)).any(axis=1)
    ]
    bend = np.einsum("ki,ij,kj->k", grid, H, grid)
    grid = grid[bend <= 0][np.argsort(bend[bend <= 0])]
    return any(optima.leads_down(problem, d, start) for d in grid[:2000])


def check_optimal(
    problem: Problem, result: pairstep.Result, known: list[np.ndarray]
) -> Iterator[Defect]:
    """Check value, violation and bound against exact numbers and better points."""
    f, x = optima.objective_of(problem), Exact.of(result.x)
    value = f.value(x)
    value_size, slope_size = f.sizes(result.x)
    n, said = problem.n, result.status == "optimal"
    digits = 4 * (n + 8) * EPS
    if not abs(float(value - result.fun if problem.smooth else value - Fraction(result.fun))) <= (
        digits * value_size + 1e-300
    ):
        yield Defect("fun", f"{result.fun!r} is {float(value)!r} exactly, of terms {value_size:g}")
    left, right = f.derivatives(x)
    true = optima.violation(problem, left, right, result.x)
    rounding = digits * float(slope_size.max()) + 1e-300
    if said and not true <= result.tolerance * (1 + 1e-6) + rounding:
        yield Defect(
            "violation",
            f"{true:g} exactly, reported {result.kkt_violation:g}, tolerance {result.tolerance:g}, "
            f"rounding {rounding:g}",
        )
    if said and result.kkt_violation > result.tolerance:
        text = f"reported {result.kkt_violation:g} is above the tolerance {result.tolerance:g}"
        yield Defect("reported violation", text)
    if not problem.convex:
        return
    best, gap, away = result.x, 0.0, 0.0
    bound = result.suboptimality_bound
    below = 0.0
    for y in points(problem, result.x, known):
        point = optima.repaired(problem, result.x, y)
        if point is None:
            continue
        better = float(value - f.value(point))
        d = np.abs((point - x).floats())
        # Rounding errors of a float64 gradient, of a nearly convex Hessian, and of sums.
        slopes = left[d > 0].astype(float)
        spread = float(slopes.max(initial=0) - slopes.min(initial=0))
        noise = digits * float(slope_size @ d + f.sizes(d)[0])
        noise += optima.rounding_of_sums(problem, result.x) * spread
        if better > gap:
            best, gap, away = y, better, noise
        if better > bound * (1 + 1e-9) + noise:
            below = max(below, better)
    if below:
        yield Defect("bound", f"suboptimality_bound {bound:g}, but a point is better by {below:g}")
    gain = gain_from_start(problem, f, float(value)) + gap
    # If the optimum is 0: rounding errors of numbers of the size of bounds and sums.
    own = digits * value_size
    own += digits**2 * least_curvature(problem, optima.numbers_in(problem, result.x))
    noise = away + own
    local = min(gain, max(value_size, least_curvature(problem, result.x)))
    if said and gap > WORSE * local + noise:
        kind = "value" if gap > WORSE * gain + noise else "local value"
        yield Defect(
            kind,
            f"a point is better by {gap:g}; gained from the start {gain - gap:g}, "
            f"value {float(value):g}, rounding {noise:g}, bound {bound:g}: {best.tolist()[:6]}",
        )
    if str(result.status) in ("stalled", "max_iter") and not problem.may_refuse:
        text = f"no known point is better by more than {gap:g}; gained {gain:g}, bound {bound:g}"
        if gap <= EXACT * local + own / 4:
            yield Defect(f"{result.status} at the optimum", f"{text}; {result.message}")
        elif gap > WORSE * gain + noise:
            yield Defect(f"{result.status} far away", f"{text}; {result.message}")
        elif result.status == "max_iter":
            yield Defect("max_iter", f"{text}; {result.message}")


def least_curvature(problem: Problem, x: np.ndarray) -> float:
    """The smallest positive diagonal entry of the Hessian times the square of the size of x.

    A value that is far smaller is 0 for practical purposes.
    """
    if problem.smooth:
        return 0.0
    diagonal = np.diag(optima.matrix_of(problem))
    with np.errstate(all="ignore"):
        bent = diagonal[diagonal > 0] * np.abs(x).max(initial=0.0) ** 2
    return float(bent.min()) if len(bent) else 0.0


def points(problem: Problem, x: np.ndarray, known: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield points that may be better than x."""
    yield from known
    yield from optima.candidates(problem)
    if problem.smooth is None and problem.l1 is None and problem.n <= 60:
        yield optima.polished(problem, x)


def gain_from_start(problem: Problem, f: Any, value: float) -> float:
    """The decrease of the value since the even starting point."""
    start = problem.constraint().start(problem.n) if problem.x0 is None else problem.x0
    with np.errstate(all="ignore"):
        first = float(f.value(Exact.of(start)))
    return max(first - value, 0.0) if math.isfinite(first) else 0.0


# ------------------------------------------------------------------ two answers


def compare(case: Case, first: Answer, other: Answer) -> Iterator[Defect]:
    """Check that an equivalent problem has the same answer."""
    if first.result is None or other.result is None:
        if (first.result is None) != (other.result is None):
            yield Defect("variant differs", f"{first.word} and {other.word}")
        return
    a, b = first.result, other.result
    if case.same_bits:
        if a.status != b.status:
            yield Defect("scale", f"status {a.status} and {b.status} in other units")
        elif not np.array_equal(a.x, b.x * case.scale):
            off = float(np.abs(a.x - b.x * case.scale).max())
            yield Defect("scale", f"x differs by {off:g} in other units")
        return
    if not case.problem.convex:
        return
    if (a.status == "unbounded") != (b.status == "unbounded"):
        yield Defect("variant differs", f"status {a.status} and {b.status}")


def main() -> None:
    """Read the command line and run."""
    parser = runner.arguments(__doc__.splitlines()[0], 20_000, problems.FAMILIES)
    options = parser.parse_args()
    runner.main(Solvers(options.limit, options.family), options)


if __name__ == "__main__":
    main()
