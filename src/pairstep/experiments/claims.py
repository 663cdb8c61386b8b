"""Claims about the rules, each with a verdict from measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """A claim, and what was measured.

    Attributes
    ----------
    name : str
        A short name.
    statement : str
        The claim as it was tested.
    quote : str
        The sentence of the paper, or empty if the claim is not in the paper.
    where : str
        The section of the paper that has the sentence.
    figure : str
        The figure that shows it.
    exceptions : tuple of str or None
        The cases in which it does not hold; None if it was not measured.
    otherwise : str
        What is true instead, if there are exceptions.
    how : str
        What exactly was measured.
    found : str
        The result, in words and numbers.
    numbers : dict
        The numbers behind the result.
    """

    name: str
    statement: str
    quote: str
    where: str
    figure: str
    exceptions: tuple[str, ...] | None
    otherwise: str
    how: str
    found: str
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds; None if it was not measured."""
        return None if self.exceptions is None else not self.exceptions

    @property
    def why(self) -> str:
        """A sentence that says why it does not hold; empty if it does."""
        if not self.exceptions:
            return ""
        first, more = self.exceptions[:MAX_LISTED], len(self.exceptions) - MAX_LISTED
        rest = f"; and {more} more" if more > 0 else ""
        return f"{self.otherwise} ({'; '.join(first)}{rest})."

    def record(self) -> dict[str, Any]:
        """Return everything as a dict, for claims.json."""
        return asdict(self) | {"holds": self.holds, "why": self.why}


APPENDIX = "Appendix, Additional Experiments"
MAX_LISTED = 4  # exceptions that are written out

# Thresholds of all verdicts, as ratios of iterations or times. "Better" means by more than a factor
# of TIE, "consistently better" means never worse than a tie and better on average, and "alike"
# means within a factor of ALIKE_FACTOR. With larger thresholds, real differences would not count;
# with smaller ones, chance would decide more verdicts.
TIE = 1.01
ALIKE_FACTOR = 1.5
TIES = "A difference of less than 1% is a tie, and a tie is no advantage"

# Number of levels of suboptimality at which the iterations of two rules are compared.
LEVELS = 50
# The lowest of these levels, relative to the start. At lower levels, rounding errors of f(x) - f*
# would matter; higher ones would leave out the final phase of a run.
LOWEST_LEVEL = 1e-9


def better(ratio: float) -> bool:
    """Return whether a rule is better than one that needs `ratio` times as much."""
    return ratio > TIE


def consistently_better(ratios: Array) -> bool:
    """Return whether a rule is never worse at any level, and better on average."""
    return bool((ratios >= 1 / TIE).all()) and better(mean(ratios))


def alike(ratio: float) -> bool:
    """Return whether two rules differ by less than a factor of ALIKE_FACTOR."""
    return 1 / ALIKE_FACTOR < ratio < ALIKE_FACTOR


def mean(ratios: Array) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


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


def iterations_to(levels: Array, curve: Array) -> NDArray[np.int64]:
    """Return the first iteration at which the curve is at or below each level."""
    best = np.minimum.accumulate(curve)
    return np.searchsorted(-best, -levels)


def ratios(of: Array, over: Array) -> Array:
    """Return the iterations of curve `over` divided by those of curve `of`, level by level.

    The 50 levels are evenly spaced on a logarithmic scale, from a tenth of the start to the lowest
    that both curves reach, or a billionth of the start.
    """
    lowest = max(of.min(), over.min(), LOWEST_LEVEL * of[0])
    levels = np.geomspace(of[0] / 10, lowest, LEVELS)
    return np.asarray(iterations_to(levels, over) / iterations_to(levels, of))


def speed(of: Array, over: Array) -> float:
    """Return the geometric mean of the `ratios` of two curves."""
    return mean(ratios(of, over))


SPEED = (
    "Speed is how many times fewer iterations a rule needs than the other: the geometric mean over "
    f"{LEVELS} levels of suboptimality, evenly spaced on a logarithmic scale from a tenth of the "
    "start to the lowest that both reach"
)


def spread(values: Iterable[float]) -> str:
    """Return a range of numbers as text."""
    numbers = list(values)
    low, high = (f"{x:.2f}" if x < 10 else f"{x:.1f}" for x in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def seed_by_seed(by_rule: Mapping[str, Sequence[float]]) -> str:
    """Return integers by rule as text, one per seed."""
    return "; ".join(f"{rule} {', '.join(f'{x:.0f}' for x in xs)}" for rule, xs in by_rule.items())


def rounded(by_name: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Round numbers for claims.json."""
    return {name: np.round(xs, 3).tolist() for name, xs in by_name.items()}


def percent(fraction: float) -> str:
    """Return a fraction in percent, with enough digits to distinguish it from 100%."""
    return f"{100 * fraction:.1f}%" if fraction < 0.999 else f"{100 * fraction:.2f}%"
