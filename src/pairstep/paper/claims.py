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
from numpy.typing import NDArray
from scipy import stats

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


# Fewest seeds for a verdict: with fewer, the intervals are too wide to decide much.
MIN_SEEDS = 10
CONFIDENCE = 0.95
# "Better" means by more than a factor of TIE, and "alike" means within a factor of ALIKE_FACTOR.
# With larger thresholds, real differences would not count; with smaller ones, chance would decide.
TIE = 1.01
ALIKE_FACTOR = 1.5
# The level of suboptimality, relative to the start, of the horizon "to 1e-9".
LOWEST_LEVEL = 1e-9
TO_LOWEST = "to 1e-9"
# Levels below this, relative to the start, are not compared: they are close to rounding errors.
ROUNDING_LEVEL = 1e-12
# Levels at which two curves are compared for a claim about every iteration.
LEVELS = 50
MAX_LISTED = 4  # exceptions that are written out

SPEED = (
    "how many times fewer iterations a rule needs to the level that the slower one has reached at "
    "the horizon"
)
Cut = int | str  # a horizon: a number of iterations, or TO_LOWEST
Accepts = tuple[float, float]  # the open interval of values that satisfy a claim
ADVANTAGE: Accepts = (TIE, math.inf)
ALIKE: Accepts = (1 / ALIKE_FACTOR, ALIKE_FACTOR)
ByName = Mapping[str, Sequence[float]]  # a number for each seed, by name of a comparison


@dataclass(frozen=True)
class Horizon:
    """What was measured up to one horizon.

    Attributes
    ----------
    iterations : int or str or None
        The iterations that count: the first ones, "to 1e-9", or None if there is no horizon.
    value : float
        What was measured; `Reading.value` says what it is.
    interval : (float, float) or None
        The 95% confidence interval of the value, or None if the value does not depend on chance or
        there are too few seeds.
    holds : bool or None
        Whether the claim holds. None if the interval does not decide it, or without a verdict.
    """

    iterations: Cut | None
    value: float
    interval: tuple[float, float] | None
    holds: bool | None


@dataclass(frozen=True)
class Reading:
    """How we read a sentence, and what was measured.

    Attributes
    ----------
    reading : str
        Our reading.
    value : str
        What the values of the horizons are.
    horizons : tuple of Horizon
        The values, with a verdict for each.
    numbers : dict
        The numbers behind the values.
    """

    reading: str
    value: str
    horizons: tuple[Horizon, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict over all horizons."""
        found = {h.holds for h in self.horizons}
        if found == {True}:
            return Verdict.HOLDS
        if found == {False}:
            return Verdict.FAILS
        if found & {True, False}:
            return Verdict.DEPENDS
        judged = any(h.interval is not None for h in self.horizons)
        return Verdict.UNDECIDED if judged else Verdict.NOT_JUDGED

    def unjudged(self) -> Reading:
        """Return the measurements without verdicts and intervals."""
        plain = (replace(h, interval=None, holds=None) for h in self.horizons)
        return replace(self, horizons=tuple(plain))


@dataclass(frozen=True)
class Claim:
    """A claim, our readings of it, and what was measured.

    Attributes
    ----------
    name : str
        A short name.
    statement : str
        The claim in one sentence.
    readings : tuple of Reading
        Our reading, which decides the verdict, and other readings.
    found : str
        The result in words.
    sentence : str
        The sentence of the paper, in its LaTeX source; empty if the claim is not in the paper.
    source : str
        The section and the figure or theorem that has the sentence, as in the PDF.
    kind : Kind, optional
        Where it comes from. By default an observation of the paper, or beyond it without a
        sentence.
    """

    name: str
    statement: str
    readings: tuple[Reading, ...]
    found: str
    sentence: str = ""
    source: str = ""
    kind: Kind | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict of our reading over all horizons."""
        return self.readings[0].verdict

    def record(self, judged: bool = True) -> dict[str, Any]:
        """Return everything as a dict for claims.json; verdicts and intervals only if judged."""
        readings = self.readings if judged else tuple(r.unjudged() for r in self.readings)
        records = [asdict(reading) | {"verdict": reading.verdict} for reading in readings]
        kind = self.kind or (Kind.OBSERVATION if self.sentence else Kind.BEYOND)
        return asdict(self) | {
            "kind": kind, "verdict": readings[0].verdict, "readings": records,
        }  # fmt: skip


# ---- Estimates over the seeds ----


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; no interval with fewer than MIN_SEEDS seeds."""

    value: float
    interval: tuple[float, float] | None

    def at(self, iterations: Cut | None, accepts: Accepts) -> Horizon:
        """Return a horizon that is judged by the interval."""
        holds = decide(self.interval, accepts) if self.interval else None
        interval = self.interval and (rounded(self.interval[0]), rounded(self.interval[1]))
        return Horizon(iterations, rounded(self.value), interval, holds)

    def exp(self) -> Estimate:
        """Return the estimate of the exponential."""
        interval = self.interval and (math.exp(self.interval[0]), math.exp(self.interval[1]))
        return Estimate(math.exp(self.value), interval)


def decide(interval: tuple[float, float], accepts: Accepts) -> bool | None:
    """Return whether all values of an interval are accepted, or none of them; None otherwise."""
    (low, high), (least, most) = interval, accepts
    if least < low and high < most:
        return True
    if high <= least or low >= most:
        return False
    return None


def mean(values: Sequence[float]) -> Estimate:
    """Return a mean over the seeds, with Student's t interval."""
    center, n = float(np.mean(values)), len(values)
    if n < MIN_SEEDS:
        return Estimate(center, None)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * float(stats.sem(values))
    return Estimate(center, (center - reach, center + reach))


def geometric_mean(ratios: Sequence[float]) -> Estimate:
    """Return a geometric mean over the seeds, with Student's t interval of the logarithms."""
    return mean(np.log(ratios).tolist()).exp()


def geometric_deviation(values: Sequence[float]) -> Estimate:
    """Return the factor of one standard deviation over the seeds, with a chi-square interval."""
    freedom, sigma = len(values) - 1, float(np.std(np.log(values), ddof=1))
    if len(values) < MIN_SEEDS:
        return Estimate(sigma, None).exp()
    tails = stats.chi2.ppf([0.5 + CONFIDENCE / 2, 0.5 - CONFIDENCE / 2], freedom)
    low, high = (sigma * np.sqrt(freedom / tails)).tolist()
    return Estimate(sigma, (low, high)).exp()


def fraction(successes: Sequence[bool]) -> Estimate:
    """Return the fraction of seeds in which something is true, with Wilson's interval."""
    share, n = sum(successes) / len(successes), len(successes)
    if n < MIN_SEEDS:
        return Estimate(share, None)
    interval = stats.binomtest(sum(successes), n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(share, (float(interval.low), float(interval.high)))


# ---- Judges: functions that return the horizon of a cut and what was found there ----

Found = Callable[[Cut], ByName]
Judge = Callable[[Cut, ByName], Horizon]


def weakest(estimate: Callable[[Sequence[float]], Estimate], accepts: Accepts) -> Judge:
    """Judge several comparisons together: all must hold. The value is that of the weakest one."""

    def margin(e: Estimate) -> float:
        """How far an estimate is inside the accepted values, on a log scale if they are > 0."""
        low, high = e.interval or (e.value, e.value)
        least, most = accepts
        if least > 0:
            with np.errstate(divide="ignore"):
                low, high, least, most = np.log([low, high, least, most])
        return min(low - least, most - high)

    def judge(cut: Cut, found: ByName) -> Horizon:
        estimates = sorted(map(estimate, found.values()), key=margin)
        verdicts = {e.at(cut, accepts).holds for e in estimates}
        holds = False if False in verdicts else None if None in verdicts else True
        return replace(estimates[0].at(cut, accepts), holds=holds)

    return judge


FASTER_ON_AVERAGE = weakest(geometric_mean, ADVANTAGE)


def every_seed(fine: Callable[..., bool]) -> Judge:
    """Judge a claim about every seed: it holds without exceptions and fails otherwise.

    `fine` has the numbers of one seed as arguments. The value is the fraction of seeds.
    """

    def judge(cut: Cut, found: ByName) -> Horizon:
        successes = [fine(*xs) for xs in zip(*found.values(), strict=True)]
        horizon = fraction(successes).at(cut, ADVANTAGE)
        return replace(horizon, holds=all(successes) if horizon.interval else None)

    return judge


def consistent(cut: Cut, found: ByName) -> Horizon:
    """Judge a consistent advantage: no seed is behind by more than a tie, and the means are ahead.

    The value is the fraction of seeds that are not behind in any comparison.
    """
    horizon = every_seed(lambda *xs: min(xs) >= 1 / TIE)(cut, found)
    ahead = all(geometric_mean(xs).value > TIE for xs in found.values())
    return replace(horizon, holds=horizon.holds and ahead)


def read(reading: str, value: str, found: Found, at: Iterable[Cut], judge: Judge) -> Reading:
    """Return a reading that is judged at each horizon by what is found there."""
    horizons, numbers = [], {}
    for cut in at:
        here = found(cut)
        horizons.append(judge(cut, here))
        numbers[horizon_name(cut)] = {name: list(map(rounded, xs)) for name, xs in here.items()}
    return Reading(reading, value, tuple(horizons), numbers)


def checked(
    name: str,
    statement: str,
    exceptions: Sequence[str],
    reading: str,
    found: str,
    numbers: dict[str, Any],
    **more: Any,
) -> Claim:
    """Return a claim without a horizon that holds unless there are exceptions.

    Parameters
    ----------
    exceptions : sequence of str
        The cases in which it does not hold.
    numbers : dict
        The numbers behind them.
    name, statement, reading, found, **more
        As in `Claim`.
    """
    if exceptions:
        rest = len(exceptions) - MAX_LISTED
        listed = "; ".join(exceptions[:MAX_LISTED]) + (f"; and {rest} more" if rest > 0 else "")
        found = f"It does not hold: {listed}. {found}"
    horizon = Horizon(None, float(len(exceptions)), None, not exceptions)
    readings = (Reading(reading, "Number of exceptions", (horizon,), numbers),)
    return Claim(name, statement, readings, found, **more)


# ---- Speeds ----


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


def speeds(of: Array, over: Array, levels: Array) -> Array:
    """Return how many times fewer iterations `of` needs than `over` to each level."""
    needed, other = (np.maximum(iterations_to(levels, curve), 1) for curve in (of, over))
    return np.asarray(other / needed)


def speed(of: Array, over: Array, cut: Cut) -> float:
    """Return the speed to the level that the slower curve has reached at the horizon."""
    return float(speeds(of, over, np.array([lowest_common(of, over, cut)]))[0])


def never_behind(of: Array, over: Array, cut: Cut) -> bool:
    """Return whether a curve is never behind by more than a tie, and ahead at the horizon."""
    lowest = lowest_common(of, over, cut)
    ratios = speeds(of, over, np.geomspace(max(of[0] / 10, lowest), lowest, LEVELS))
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


def horizon_name(cut: Cut | None) -> str:
    """Return a horizon as text."""
    return f"{cut:,} iterations" if isinstance(cut, int) else cut or ""


def spread(values: Iterable[float]) -> str:
    """Return a range of numbers as text."""
    numbers = list(values)
    low, high = (f"{x:.2f}" if x < 10 else f"{x:.1f}" for x in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def percent(part: float) -> str:
    """Return a fraction in percent, with enough digits to distinguish it from 100%."""
    return f"{100 * part:.1f}%" if part < 0.999 else f"{100 * part:.2f}%"


def ranges(found: ByName) -> str:
    """Return ranges by name as text."""
    return "; ".join(f"{name} {spread(xs)}" for name, xs in found.items())
