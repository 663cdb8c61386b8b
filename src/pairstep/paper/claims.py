"""Claims about the rules: the sentence of the paper, our reading of it, and a verdict per horizon.

The paper does not say how many iterations its figures show, so a claim about iterations is judged
at several horizons, and it may hold at one and fail at another. A value that depends on chance is
a mean over the seeds with a 95% confidence interval. A claim holds at a horizon if the whole
interval satisfies it, fails if no part of it does, and is undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Kind(StrEnum):
    """Where a claim comes from."""

    OBSERVATION = "observation"
    THEOREM = "theorem"
    CITED = "cited"  # a known result that the paper cites and does not prove
    BEYOND = "beyond"  # not in the paper


class Verdict(StrEnum):
    """The verdict over all horizons."""

    HOLDS = "holds"
    DEPENDS = "depends on the horizon"
    FAILS = "fails"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Horizon:
    """What was measured up to one horizon.

    Attributes
    ----------
    iterations : int or str or None
        The iterations that count: the first ones, "to 1e-9", or None if there is no horizon.
    value : float or None
        What was measured; `Claim.value` says what it is. None if nothing was measured.
    interval : (float, float) or None
        The 95% confidence interval of the value, or None if the value does not depend on chance or
        there are too few seeds.
    holds : bool or None
        Whether the claim holds. None if the interval does not decide it, or without a verdict.
    """

    iterations: int | str | None
    value: float | None
    interval: tuple[float, float] | None
    holds: bool | None


@dataclass(frozen=True)
class Reading:
    """Another reading of the same sentence, and its verdict at each horizon."""

    reading: str
    value: str
    horizons: tuple[Horizon, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict over all horizons."""
        return overall(self.horizons)


@dataclass(frozen=True)
class Claim:
    """A claim, our reading of it, and what was measured.

    Attributes
    ----------
    name : str
        A short name.
    kind : Kind
        Where it comes from.
    statement : str
        The claim in one sentence.
    sentence : str
        The sentence of the paper, in its LaTeX source; empty if the claim is not in the paper.
    source : str
        The section and the figure or theorem that has the sentence, as in the PDF.
    reading : str
        How we read the sentence, and what we assume where it leaves something open.
    figure : str
        The figure of the report that shows it.
    value : str
        What the values of the horizons are.
    horizons : tuple of Horizon
        The measurements. One entry for a claim without a horizon; none if it was not measured.
    found : str
        The result in words.
    numbers : dict
        More numbers behind the result.
    other_readings : tuple of Reading
        Other readings of the sentence, with their verdicts.
    """

    name: str
    kind: Kind
    statement: str
    sentence: str
    source: str
    reading: str
    figure: str
    value: str
    horizons: tuple[Horizon, ...]
    found: str
    numbers: dict[str, Any] = field(default_factory=dict)
    other_readings: tuple[Reading, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict over all horizons."""
        return overall(self.horizons)

    @property
    def summary(self) -> str:
        """One sentence that says where the claim holds."""
        return in_words(self.horizons)

    def without_verdict(self) -> Claim:
        """Return the claim with its measurements, but without verdicts and intervals."""
        return replace(
            self,
            horizons=unjudged(self.horizons),
            other_readings=tuple(
                replace(reading, horizons=unjudged(reading.horizons))
                for reading in self.other_readings
            ),
        )

    def record(self) -> dict[str, Any]:
        """Return everything as a dict, for claims.json."""
        content = asdict(self) | {"verdict": self.verdict, "summary": self.summary}
        for entry, reading in zip(content["other_readings"], self.other_readings, strict=True):
            entry |= {"verdict": reading.verdict, "summary": in_words(reading.horizons)}
        return content


def unjudged(horizons: Iterable[Horizon]) -> tuple[Horizon, ...]:
    """Return the measurements without verdicts and intervals."""
    return tuple(replace(h, interval=None, holds=None) for h in horizons)


def overall(horizons: Sequence[Horizon]) -> Verdict:
    """Return the verdict over several horizons."""
    found = {h.holds for h in horizons}
    if found == {True}:
        return Verdict.HOLDS
    if found == {False}:
        return Verdict.FAILS
    if found & {True, False}:
        return Verdict.DEPENDS
    judged = any(h.interval is not None for h in horizons)
    return Verdict.UNDECIDED if judged else Verdict.NOT_JUDGED


def in_words(horizons: Sequence[Horizon]) -> str:
    """Return a sentence that says at which horizons a claim holds, fails or is undecided."""
    verdict = overall(horizons)
    if verdict is Verdict.NOT_JUDGED:
        return "Not judged."
    if all(h.iterations is None for h in horizons):
        return f"It {VERBS[horizons[0].holds]}."
    if len({h.holds for h in horizons}) == 1:
        where = "at every horizon" if len(horizons) > 1 else places(horizons)
        return f"It {VERBS[horizons[0].holds]} {where}."
    clauses = [
        f"{verb} {places([h for h in horizons if h.holds is holds])}"
        for holds, verb in VERBS.items()
        if any(h.holds is holds for h in horizons)
    ]
    return f"It {'; it '.join(clauses)}."


VERBS = {True: "holds", False: "fails", None: "is undecided"}


def places(horizons: Sequence[Horizon]) -> str:
    """Return several horizons as text, such as "after 1,000 and 2,000 iterations and to 1e-9"."""
    counts = [f"{h.iterations:,}" for h in horizons if isinstance(h.iterations, int)]
    others = [h.iterations for h in horizons if isinstance(h.iterations, str)]
    after = [f"after {listed(counts)} iterations"] if counts else []
    return listed([*after, *others])


def listed(items: Sequence[str]) -> str:
    """Return a list as text, with "and" before its last item."""
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""


# ---- The rule of a verdict ----

MAX_LISTED = 4  # exceptions that are written out
# Fewest seeds for a verdict: with fewer, the intervals are too wide to decide much.
MIN_SEEDS = 10
CONFIDENCE = 0.95
# "Better" means by more than a factor of TIE, and "alike" means within a factor of ALIKE_FACTOR.
# With larger thresholds, real differences would not count; with smaller ones, chance would decide.
TIE = 1.01
ALIKE_FACTOR = 1.5
ALL_BUT_FEW = 0.99  # fraction of iterations that counts as "all but a few"
# The level of suboptimality, relative to the start, of the horizon "to 1e-9".
LOWEST_LEVEL = 1e-9
TO_LOWEST = "to 1e-9"
# Levels below this, relative to the start, are not compared: they are close to rounding errors.
ROUNDING_LEVEL = 1e-12
SMALLEST = 1e-300  # replaces 0 in logarithms
# Levels at which two curves are compared for a claim about every iteration.
LEVELS = 50

TIES = "An advantage of less than 1% is a tie, and a tie is not an advantage"
INTERVALS = (
    "Intervals have 95% confidence: Student's t over the seeds, of logarithms for ratios; Wilson's "
    "for fractions of seeds; chi-square for standard deviations"
)
ASSUMPTIONS = (
    "The paper does not state the number of iterations, the starting point, or the step of its "
    "second experiment. The horizons, the start at x = 0 and the step 1/L2 (1/L1 for gs-1) are our "
    "assumptions"
)
SPEED = (
    "how many times fewer iterations a rule needs to the level that the slower one has reached at "
    "the horizon"
)

Cut = int | str  # a horizon: a number of iterations, or TO_LOWEST
RULE_OF_VERDICTS = (
    "A claim holds at a horizon if the whole interval satisfies it, fails if no part of it does, "
    "and is undecided otherwise"
)

Accepts = tuple[float, float]  # the open interval of values that satisfy a claim


def above(threshold: float) -> Accepts:
    """Accept values above a threshold."""
    return threshold, math.inf


def below(threshold: float) -> Accepts:
    """Accept values below a threshold."""
    return -math.inf, threshold


ADVANTAGE = above(TIE)
ALIKE = 1 / ALIKE_FACTOR, ALIKE_FACTOR


def decide(interval: tuple[float, float], accepts: Accepts) -> bool | None:
    """Return whether all values of an interval are accepted, or none of them; None otherwise."""
    (low, high), (least, most) = interval, accepts
    if least < low and high < most:
        return True
    if high <= least or low >= most:
        return False
    return None


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; no interval with fewer than MIN_SEEDS seeds."""

    value: float
    interval: tuple[float, float] | None

    def at(self, iterations: Cut | None, accepts: Accepts) -> Horizon:
        """Return a horizon that is judged by the interval."""
        holds = decide(self.interval, accepts) if self.interval else None
        return Horizon(iterations, rounded(self.value), rounded_pair(self.interval), holds)


def mean(values: Iterable[float]) -> Estimate:
    """Return a mean over the seeds, with Student's t interval."""
    x = np.asarray(list(values), float)
    center = float(x.mean())
    if len(x) < MIN_SEEDS:
        return Estimate(center, None)
    error = float(x.std(ddof=1)) / math.sqrt(len(x))
    reach = float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, len(x) - 1)) * error
    return Estimate(center, (center - reach, center + reach))


def geometric_mean(ratios: Iterable[float]) -> Estimate:
    """Return a geometric mean over the seeds, with Student's t interval of the logarithms."""
    logs = mean(np.log(list(ratios)))
    interval = logs.interval and (math.exp(logs.interval[0]), math.exp(logs.interval[1]))
    return Estimate(math.exp(logs.value), interval)


def fraction(successes: Iterable[bool]) -> Estimate:
    """Return the fraction of seeds in which something is true, with Wilson's interval."""
    found = list(successes)
    share, n = sum(found) / len(found), len(found)
    if n < MIN_SEEDS:
        return Estimate(share, None)
    test = scipy.stats.binomtest(sum(found), n)
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(share, (float(interval.low), float(interval.high)))


def geometric_deviation(values: Iterable[float]) -> Estimate:
    """Return the factor of one standard deviation over the seeds, with a chi-square interval."""
    logs = np.log(list(values))
    freedom, sigma = len(logs) - 1, float(logs.std(ddof=1))
    if len(logs) < MIN_SEEDS:
        return Estimate(math.exp(sigma), None)
    tail = (1 - CONFIDENCE) / 2
    low, high = (
        sigma * math.sqrt(freedom / float(scipy.stats.chi2.ppf(q, freedom)))
        for q in (1 - tail, tail)
    )
    return Estimate(math.exp(sigma), (math.exp(low), math.exp(high)))


def weakest(iterations: Cut | None, estimates: Iterable[Estimate], accepts: Accepts) -> Horizon:
    """Judge several comparisons together: all must hold. The value is that of the weakest one."""
    judged = [(margin(e, accepts), e.at(iterations, accepts)) for e in estimates]
    verdicts = {h.holds for _, h in judged}
    worst = min(judged, key=lambda each: each[0])[1]
    holds = False if False in verdicts else None if None in verdicts else True
    return Horizon(iterations, worst.value, worst.interval, holds)


def margin(estimate: Estimate, accepts: Accepts) -> float:
    """Return how far an estimate is inside the accepted values, on a log scale if they are > 0."""
    low, high = estimate.interval or (estimate.value, estimate.value)
    least, most = accepts
    if least > 0:
        low, high, least = (math.log(max(x, SMALLEST)) for x in (low, high, least))
        most = math.log(most) if math.isfinite(most) else most
    return min(low - least, most - high)


def every_seed(iterations: Cut | None, successes: Sequence[bool]) -> Horizon:
    """Judge a claim about every seed: it holds without exceptions and fails otherwise."""
    estimate = fraction(successes)
    holds = all(successes) if estimate.interval else None
    return Horizon(iterations, rounded(estimate.value), rounded_pair(estimate.interval), holds)


def consistent(iterations: Cut | None, advantages: Mapping[str, Sequence[float]]) -> Horizon:
    """Judge a consistent advantage: no seed is behind by more than a tie, and the means are ahead.

    The value is the fraction of seeds that are not behind in any comparison.
    """
    by_seed = zip(*advantages.values(), strict=True)
    horizon = every_seed(iterations, [min(each) >= 1 / TIE for each in by_seed])
    ahead = all(geometric_mean(xs).value > TIE for xs in advantages.values())
    return replace(horizon, holds=horizon.holds and ahead)


def without_horizon(
    name: str,
    statement: str,
    sentence: str,
    source: str,
    figure: str,
    exceptions: Sequence[str] | None,
    otherwise: str,
    how: str,
    found: str,
    numbers: Mapping[str, Any] | None = None,
    kind: Kind | None = None,
) -> Claim:
    """Return a claim without a horizon that holds unless there are exceptions.

    Parameters
    ----------
    name, statement, sentence, source, figure, found, numbers
        As in `Claim`.
    exceptions : sequence of str or None
        The cases in which it does not hold; None if it was not measured.
    otherwise : str
        What is true instead, if there are exceptions.
    how : str
        Our reading: what exactly was measured.
    kind : Kind, optional
        By default BEYOND without a sentence, and THEOREM with one.
    """
    if exceptions:
        more = len(exceptions) - MAX_LISTED
        rest = f"; and {more} more" if more > 0 else ""
        found = f"{otherwise} ({'; '.join(exceptions[:MAX_LISTED])}{rest}). {found}"
    none = exceptions is None
    horizon = Horizon(None, float(len(exceptions or ())), None, not exceptions)
    return Claim(
        name,
        kind or (Kind.THEOREM if sentence else Kind.BEYOND),
        statement,
        sentence,
        source,
        how,
        figure,
        "number of exceptions",
        () if none else (horizon,),
        found,
        dict(numbers or {}),
    )


def except_where(
    fine: Callable[[float], bool], found: Mapping[str, Sequence[float]], cases: Sequence[object]
) -> tuple[str, ...]:
    """List the numbers that fail a test, by name and case."""
    return tuple(
        f"{name}, {case}: {x:.2f}"
        for name, xs in found.items()
        for case, x in zip(cases, xs, strict=True)
        if not fine(x)
    )


def unless(fine: bool, exception: str) -> tuple[str, ...]:
    """Return no exception if fine, and otherwise this one."""
    return () if fine else (exception,)


def by_seed(seeds: Iterable[int]) -> list[str]:
    """Return a name for each seed."""
    return [f"seed {seed}" for seed in seeds]


# ---- Speeds ----


def cuts(*iterations: int, lowest: bool = False) -> tuple[Cut, ...]:
    """Return horizons, with "to 1e-9" last on request."""
    return (*iterations, *([TO_LOWEST] if lowest else []))


def iterations_to(levels: Array, curve: Array) -> NDArray[np.int64]:
    """Return the first iteration at which the curve is at or below each level."""
    best = np.minimum.accumulate(curve)
    return np.searchsorted(-best, -levels)


def lowest_common(of: Array, over: Array, cut: Cut) -> float:
    """Return the lowest level that both curves reach within a horizon."""
    start = float(of[0])
    if isinstance(cut, str):
        return LOWEST_LEVEL * start
    within = (float(curve[: cut + 1].min()) for curve in (of, over))
    return max(*within, ROUNDING_LEVEL * start)


def speed(of: Array, over: Array, cut: Cut) -> float:
    """Return how many times fewer iterations `of` needs than `over`.

    Both run to the level that the slower one has reached at the horizon.
    """
    level = np.array([lowest_common(of, over, cut)])
    needed, other = (max(int(iterations_to(level, curve)[0]), 1) for curve in (of, over))
    return other / needed


def speeds_by_level(of: Array, over: Array, cut: Cut) -> Array:
    """Return the speed at LEVELS levels, from a tenth of the start to the end of the horizon."""
    lowest = lowest_common(of, over, cut)
    levels = np.geomspace(max(of[0] / 10, lowest), lowest, LEVELS)
    return np.asarray(
        np.maximum(iterations_to(levels, over), 1) / np.maximum(iterations_to(levels, of), 1)
    )


def never_behind(of: Array, over: Array, cut: Cut) -> bool:
    """Return whether a curve is never behind by more than a tie, and ahead at the horizon."""
    ratios = speeds_by_level(of, over, cut)
    return bool((ratios >= 1 / TIE).all()) and bool(ratios[-1] > TIE)


def last_iteration(curve: Array, cut: Cut) -> int:
    """Return the last iteration within a horizon; a curve that ended earlier ends it."""
    if isinstance(cut, str):
        return int(iterations_to(np.array([LOWEST_LEVEL * curve[0]]), curve)[0])
    return min(cut, len(curve) - 1)


# ---- Text and JSON ----


def rounded(value: float) -> float:
    """Round a number for claims.json, to five significant digits."""
    return float(f"{value:.5g}")


def rounded_pair(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """Round an interval for claims.json."""
    return interval and (rounded(interval[0]), rounded(interval[1]))


def table(by_name: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Round numbers by name for claims.json."""
    return {name: [rounded(x) for x in xs] for name, xs in by_name.items()}


def by_cut(
    found: Callable[[Cut], Mapping[str, Sequence[float]]], horizons: Iterable[Cut]
) -> dict[str, dict[str, list[float]]]:
    """Return the numbers of every seed by horizon, for claims.json."""
    return {cut if isinstance(cut, str) else f"{cut:,} iterations": table(found(cut))
            for cut in horizons}  # fmt: skip


def spread(values: Iterable[float]) -> str:
    """Return a range of numbers as text."""
    numbers = list(values)
    low, high = (f"{x:.2f}" if x < 10 else f"{x:.1f}" for x in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def percent(part: float) -> str:
    """Return a fraction in percent, with enough digits to distinguish it from 100%."""
    return f"{100 * part:.1f}%" if part < 0.999 else f"{100 * part:.2f}%"


def ranges(found: Mapping[str, Sequence[float]]) -> str:
    """Return ranges by name as text."""
    return "; ".join(f"{name} {spread(xs)}" for name, xs in found.items())
