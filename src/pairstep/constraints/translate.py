"""From a constraint to accounts: weights, groups, ranges and what is infeasible among them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._validation import (
    LARGE,
    Array,
    finite_number,
    full_array,
    full_vector,
    of_length,
    require_finite,
    require_no_nan,
    too_large,
    vector,
)
from .groups import limits, per_group
from .layout import Layout

if TYPE_CHECKING:
    from .sum_box import SumBox


def layout_of(constraint: SumBox, n: int) -> Layout:
    """Translate a constraint on n variables."""
    given = full_array("lower", constraint.lower, n), full_array("upper", constraint.upper, n)
    lower, upper = _bounds_that_count(*given)
    weights: Array | None = None
    if constraint.weights is not None:
        weights = of_length("weights", np.asarray(constraint.weights), n)
        lower, upper = _weighted(weights, lower, upper)
    # Products are rounded, so that weighted sums hold to rounding only.
    slack = 0.0 if weights is None else 2 * np.finfo(float).eps

    groups = constraint._groups
    if groups is not None and len(groups.codes) != n:
        raise ValueError(
            f"groups must give a label for each of the {n} variables, got shape "
            f"{groups.codes.shape}"
        )
    total = constraint.total
    whole = total is not None and not per_group(total)
    if groups is None or (whole and constraint.group_total is None):
        accounts = Layout(
            lower, upper, np.empty(0), np.array([0, n], np.int64), given, None, weights
        )
        low, high = _totals(total, 1)
        _require_feasible(accounts, low, high, slack)
        return _with_cash(accounts, low, high)
    order = np.argsort(groups.codes, kind="stable")
    starts = np.searchsorted(groups.codes[order], np.arange(len(groups.labels) + 1))
    in_order = bool((order[1:] > order[:-1]).all())
    accounts = Layout(
        lower[order], upper[order], np.empty(0), starts.astype(np.int64), given,
        None if in_order else order,
        None if weights is None else weights[order], groups.labels,
    )  # fmt: skip
    if per_group(total):
        low, high = _totals(total, len(groups.labels))
    else:
        low, high = limits(groups, constraint.group_total)
    spans = _require_feasible(accounts, low, high, slack)
    if whole:
        ends = _totals(total, 1)
        bounds = np.abs(np.concatenate([lower, upper]))
        largest = float(bounds[np.isfinite(bounds)].max(initial=0.0))
        _require_common_total(accounts.labels, spans, low, high, *ends, largest, slack)
        if (low < high).any():
            return _nested(accounts, low, high, *ends)
    return _with_cash(accounts, low, high)


def _with_cash(accounts: Layout, low: Array, high: Array) -> Layout:
    """Groups with sums of their own; where they are ranges, with an account for what is left over.

    It is that ``sum + cash = anchor``, and the anchor is the sum nearest to 0, so that a far end of
    the range does not drown the variables.
    """
    if high is low or (low == high).all():
        return replace(accounts, totals=low)
    anchor = np.clip(0.0, low, high)
    ends, weights = accounts.starts[1:], accounts.weights
    source = np.arange(accounts.n) if accounts.source is None else accounts.source
    return replace(
        accounts,
        lower=np.insert(accounts.lower, ends, anchor - high),
        upper=np.insert(accounts.upper, ends, anchor - low),
        totals=anchor,
        starts=accounts.starts + np.arange(len(accounts.starts)),
        source=np.insert(source, ends, -1),
        weights=None if weights is None else np.insert(weights, ends, 1.0),
    )


def _nested(accounts: Layout, low: Array, high: Array, least: Array, most: Array) -> Layout:
    """Groups under one total. Where that is a range, cash is one more account of all."""
    if least[0] == most[0]:
        return replace(accounts, totals=least, low=low, high=high)
    n, weights = accounts.n, accounts.weights
    source = np.arange(n) if accounts.source is None else accounts.source
    anchor = np.clip(0.0, least, most)
    return replace(
        accounts,
        lower=np.append(accounts.lower, anchor - most),
        upper=np.append(accounts.upper, anchor - least),
        totals=anchor,
        starts=np.append(accounts.starts, n + 1),
        source=np.append(source, -1),
        weights=None if weights is None else np.append(weights, 1.0),
        low=np.append(low, -math.inf),
        high=np.append(high, math.inf),
    )


def _totals(total: object, n_groups: int) -> tuple[Array, Array]:
    """The range of each group's sum; its ends are one array where the sum is fixed."""
    if isinstance(total, float):
        if abs(finite_number("total", total)) > LARGE:
            raise ValueError(too_large("total", total, LARGE))
        value = np.full(n_groups, total)
        return value, value
    if isinstance(total, np.ndarray):
        value = vector("total", total, n_groups, limit=LARGE)
        return value, value
    assert isinstance(total, tuple)
    low = full_vector("total[0]", total[0], n_groups, infinite=True)
    high = full_vector("total[1]", total[1], n_groups, infinite=True)
    if (low > high).any():
        k = int(np.argmax(low > high))
        raise ValueError(f"the range of total is empty: {low[k]:g} > {high[k]:g}")
    for name, end, beyond in (("total[0]", low, low >= LARGE), ("total[1]", high, high <= -LARGE)):
        if beyond.any():
            k = int(np.argmax(beyond))
            if math.isinf(end[k]):
                raise ValueError(f"{name} = {end[k]} leaves no finite sum")
            raise ValueError(too_large(name, end[k], LARGE))
    return np.where(low <= -LARGE, -math.inf, low), np.where(high >= LARGE, math.inf, high)


def _bounds_that_count(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The bounds, checked; infinite where they are too far out to matter."""
    i = _core.first_odd(lower, upper, LARGE)
    if i < 0:
        return lower, upper
    require_no_nan("lower", lower)
    require_no_nan("upper", upper)
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(
            f"lower must not exceed upper, but lower[{i}] = {lower[i]:g}, upper[{i}] = {upper[i]:g}"
        )
    if lower.max() == math.inf or upper.min() == -math.inf:
        raise ValueError("lower must be below inf and upper above -inf")
    for name, bound, beyond in (
        ("lower", lower, lower >= LARGE),
        ("upper", upper, upper <= -LARGE),
    ):
        if beyond.any():
            i = int(np.argmax(beyond))
            raise ValueError(too_large(f"{name}[{i}]", bound[i], LARGE))
    return np.where(lower <= -LARGE, -math.inf, lower), np.where(upper >= LARGE, math.inf, upper)


def _weighted(weights: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The bounds of ``weights * x``."""
    ends = lower * weights, upper * weights
    low, high = np.minimum(*ends), np.maximum(*ends)
    if _core.first_odd(low, high, LARGE) >= 0:
        for name, end in zip(("lower", "upper"), ends, strict=True):
            require_finite(f"(weights * {name})", np.where(np.isfinite(end), end, 0.0), LARGE)
    return low, high


def _require_feasible(
    accounts: Layout, low: Array, high: Array, slack: float
) -> list[tuple[float, float, float]]:
    """Raise unless each group has a sum in its range: within an ulp, and `slack` of its terms.

    Returns what the bounds of each allow: the least sum, the largest, and the miss.
    """
    lower, upper, starts = accounts.lower, accounts.upper, accounts.starts
    spans = _core.spans(lower, upper, starts, low, high)
    for k, (least, most, miss) in enumerate(spans):
        if miss == 0:
            continue
        below = least - high[k] > low[k] - most
        bound, end = (lower, high[k]) if below else (upper, low[k])
        terms = np.abs(bound[starts[k] : starts[k + 1]])
        if miss <= math.ulp(max(abs(end), terms.max(initial=0.0))) + slack * terms.sum():
            continue
        which = f" of group {accounts.labels[k]!r}" if accounts.labels else ""
        raise ValueError(_infeasible(f"the bounds{which}", least, most, miss, low[k], high[k]))
    return spans


def _require_common_total(
    labels: tuple[Hashable, ...],
    spans: list[tuple[float, float, float]],
    low: Array,
    high: Array,
    least: Array,
    most: Array,
    largest: float,
    slack: float,
) -> None:
    """Raise unless the ranges of the groups, as far as bounds allow them, meet the total."""
    floors = [max(end, span[0]) for end, span in zip(low, spans, strict=True)]
    ceilings = [min(end, span[1]) for end, span in zip(high, spans, strict=True)]
    floor, ceiling = math.fsum(floors), math.fsum(ceilings)
    miss = max(floor - most[0], least[0] - ceiling)
    too_much = bool(floor > most[0])
    ends, end = (floors, most[0]) if too_much else (ceilings, least[0])
    terms = [abs(term) for term in ends if math.isfinite(term)]
    # Limits and total are rounded, each as its terms are.
    size = max([abs(end), largest, *terms])
    if miss > len(floors) * math.ulp(size) + slack * math.fsum(terms):
        tightest = sorted(zip(ends, labels, strict=True), key=lambda at: at[0], reverse=too_much)
        word = "at least" if too_much else "at most"
        some = ", ".join(f"{word} {limit:.6g} in {label!r}" for limit, label in tightest[:3])
        raise ValueError(
            _infeasible("the groups", floor, ceiling, miss, least[0], most[0])
            + f" (None for no total of all); there is {some}"
        )


def _infeasible(who: str, least: float, most: float, miss: float, low: float, high: float) -> str:
    # Where rounding is the matter, all digits are.
    size = min(abs(end) for end in (low, high))
    digits = ".6g" if miss > 1e-5 * size else ".17g"
    wanted = f"{low:{digits}}"
    if low != high:
        wanted = f"({wanted}, {high:{digits}})"
    return (
        f"infeasible: {who} allow sums from {least:{digits}} to {most:{digits}}; total is {wanted}"
    )
