"""Claims: sentences that are measured to be true or false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """A claim and what was found.

    Attributes
    ----------
    name : str
        A short name.
    statement : str
        The claim in words, as it was tested.
    quote : str
        The paper's own sentence; empty where the claim is ours.
    where : str
        Where the sentence stands.
    figure : str
        The figure that shows it.
    exceptions : tuple of str or None
        The cases in which it does not hold; None if it was not measured.
    otherwise : str
        What it comes to where there are exceptions.
    how : str
        What exactly was measured.
    found : str
        What came out, in words and numbers.
    numbers : dict
        The numbers.
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
        """Whether it came out; None if it was not measured."""
        return None if self.exceptions is None else not self.exceptions

    @property
    def why(self) -> str:
        """Why it does not hold, in a sentence; empty where it does."""
        if not self.exceptions:
            return ""
        first, more = self.exceptions[:SHOWN], len(self.exceptions) - SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        return f"{self.otherwise} ({'; '.join(first)}{rest})."

    def record(self) -> dict[str, Any]:
        """All of it, for claims.json."""
        return asdict(self) | {"holds": self.holds, "why": self.why}


APPENDIX = "Appendix, Additional Experiments"
SHOWN = 4  # so many exceptions are written out

# The measures of all verdicts. "Better" is better than a tie, "consistently better" is never worse
# than a tie and better on the whole, "a little" and "alike" are within a factor.
TIE = 1.01
LITTLE = 1.5
TIES = "Less than 1% apart is a tie, and a tie is no advantage"


def better(ratio: float) -> bool:
    """Tell whether one is better than another that needs so many times as much."""
    return ratio > TIE


def consistently_better(ratios: Array) -> bool:
    """Tell whether one is never worse than another, level by level, and better on the whole."""
    return bool((ratios >= 1 / TIE).all()) and better(mean(ratios))


def alike(ratio: float) -> bool:
    """Tell whether the difference is little."""
    return 1 / LITTLE < ratio < LITTLE


def mean(ratios: Array) -> float:
    """Average ratios: the geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


def except_where(
    fine: Callable[[float], bool], found: Mapping[str, Sequence[float]], cases: Sequence[object]
) -> tuple[str, ...]:
    """List the numbers that are not fine, by name and case."""
    return tuple(
        f"{name}, {case}: {x:.2f}"
        for name, xs in found.items()
        for case, x in zip(cases, xs, strict=True)
        if not fine(x)
    )


def unless(fine: bool, exception: str) -> tuple[str, ...]:
    """List the only exception that there can be."""
    return () if fine else (exception,)


def by_seed(seeds: Iterable[int]) -> list[str]:
    """Name the seeds."""
    return [f"seed {seed}" for seed in seeds]


def iterations_to(levels: Array, curve: Array) -> NDArray[np.int64]:
    """Find the first iteration at which the curve is at or below each level."""
    best = np.minimum.accumulate(curve)
    return np.searchsorted(-best, -levels)


def ratios(of: Array, over: Array) -> Array:
    """Compare curves of suboptimality level by level: how many times fewer iterations one needs.

    The 50 levels are evenly spaced in their logarithm, from a tenth of the start to the lowest that
    both reach, or a billionth of the start.
    """
    floor = max(of.min(), over.min(), 1e-9 * of[0])
    levels = np.geomspace(of[0] / 10, floor, 50)
    return np.asarray(iterations_to(levels, over) / iterations_to(levels, of))


def speed(of: Array, over: Array) -> float:
    """Compare curves of suboptimality: the geometric mean of their `ratios`."""
    return mean(ratios(of, over))


SPEED = (
    "Speed is how many times fewer iterations a rule needs than the other: the geometric mean over "
    "50 levels of suboptimality, evenly spaced in their logarithm from a tenth of the start to the "
    "lowest that both reach"
)


def spread(values: Iterable[float]) -> str:
    """Write numbers as a range."""
    numbers = list(values)
    low, high = (f"{x:.2f}" if x < 10 else f"{x:.1f}" for x in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def seed_by_seed(by_rule: Mapping[str, Sequence[float]]) -> str:
    """Write whole numbers by rule, one per seed."""
    return "; ".join(f"{rule} {', '.join(f'{x:.0f}' for x in xs)}" for rule, xs in by_rule.items())


def rounded(by_name: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Round for the record."""
    return {name: np.round(xs, 3).tolist() for name, xs in by_name.items()}


def percent(share: float) -> str:
    """Write a share with as many digits as it takes to tell it from 100%."""
    return f"{100 * share:.1f}%" if share < 0.999 else f"{100 * share:.2f}%"
