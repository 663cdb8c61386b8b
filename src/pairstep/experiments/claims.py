"""Claims: sentences that are measured to be true or false."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
        The claim in words.
    source : str
        Who makes it.
    figure : str
        The figure that shows it.
    holds : bool or None
        Whether it came out; None if it was not measured.
    how : str
        What exactly was measured.
    found : str
        What came out, in words and numbers.
    numbers : dict
        The numbers.
    """

    name: str
    statement: str
    source: str
    figure: str
    holds: bool | None
    how: str
    found: str
    numbers: dict[str, Any] = field(default_factory=dict)


def iterations_to(levels: Array, curve: Array) -> NDArray[np.int64]:
    """Find the first iteration at which the curve is at or below each level."""
    best = np.minimum.accumulate(curve)
    return np.searchsorted(-best, -levels)


def speed(of: Array, over: Array) -> float:
    """Compare curves of suboptimality: how many times fewer iterations one needs than another.

    The geometric mean, over 50 levels evenly spaced in their logarithm, of the ratio of the
    iterations that the two need to get there. The levels run from a tenth of the start to the
    lowest that both reach, or a billionth of the start.
    """
    floor = max(of.min(), over.min(), 1e-9 * of[0])
    levels = np.geomspace(of[0] / 10, floor, 50)
    ratio = iterations_to(levels, over) / iterations_to(levels, of)
    return float(np.exp(np.log(ratio).mean()))


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
