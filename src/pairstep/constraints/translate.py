"""Translate a constraint into a layout, and check that it is feasible."""

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
    numbers_for_message,
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

EPS = float(np.finfo(float).eps)


def layout_of(constraint: SumBox, n: int) -> Layout:
    """Return the layout of a constraint on n variables."""
    given = full_array("lower", constraint.lower, n), full_array("upper", constraint.upper, n)
    lower, upper = _bounds_that_count(*given)
    coefficients: Array | None = None
    if constraint.coefficients is not None:
        coefficients = of_length("coefficients", np.asarray(constraint.coefficients), n)
        lower, upper = _scaled_bounds(coefficients, lower, upper)
    # Products with coefficients are rounded, so weighted sums hold only up to rounding.
    relative_error = 0.0 if coefficients is None else 2 * EPS

    groups = constraint._groups
    if groups is not None and len(groups.codes) != n:
        raise ValueError(
            f"groups must give a label for each of the {n} variables, got shape "
            f"{groups.codes.shape}"
        )
    total = constraint.total
    whole = total is not None and not per_group(total)
    if groups is None or (whole and constraint.group_total is None):
        coordinates = Layout(
            lower, upper, np.empty(0), np.array([0, n], np.int64), given, None, coefficients
        )
        low, high = _totals(total, 1)
        _require_feasible(coordinates, low, high, relative_error)
        return _with_slack(coordinates, low, high)
    order = np.argsort(groups.codes, kind="stable")
    starts = np.searchsorted(groups.codes[order], np.arange(len(groups.labels) + 1))
    in_order = bool((order[1:] > order[:-1]).all())
    coordinates = Layout(
        lower[order], upper[order], np.empty(0), starts.astype(np.int64), given,
        None if in_order else order,
        None if coefficients is None else coefficients[order], groups.labels,
    )  # fmt: skip
    if per_group(total):
        low, high = _totals(total, len(groups.labels))
    else:
        low, high = limits(groups, constraint.group_total)
    spans = _require_feasible(coordinates, low, high, relative_error)
    if whole:
        ends = _totals(total, 1)
        bounds = np.abs(np.concatenate([lower, upper]))
        largest = float(bounds[np.isfinite(bounds)].max(initial=0.0))
        # The limits of groups may themselves be rounded sums of bounds.
        relative_error += 0.5 * EPS * n
        _require_common_total(coordinates.labels, spans, low, high, *ends, largest, relative_error)
        if (low < high).any():
            return _nested(coordinates, low, high, *ends)
    return _with_slack(coordinates, low, high)


def _with_slack(coordinates: Layout, low: Array, high: Array) -> Layout:
    """Return the layout of groups with separate sums, with a slack variable for each range.

    ``sum + slack = anchor``, where the anchor is the point of the range nearest to 0. A distant end
    of the range would cost the variables their precision.
    """
    if high is low or (low == high).all():
        return replace(coordinates, totals=low)
    anchor = np.clip(0.0, low, high)
    ends, coefficients = coordinates.starts[1:], coordinates.coefficients
    source = np.arange(coordinates.n) if coordinates.source is None else coordinates.source
    return replace(
        coordinates,
        lower=np.insert(coordinates.lower, ends, anchor - high),
        upper=np.insert(coordinates.upper, ends, anchor - low),
        totals=anchor,
        starts=coordinates.starts + np.arange(len(coordinates.starts)),
        source=np.insert(source, ends, -1),
        coefficients=None if coefficients is None else np.insert(coefficients, ends, 1.0),
    )


def _nested(coordinates: Layout, low: Array, high: Array, least: Array, most: Array) -> Layout:
    """Return the layout of groups under one total, with a slack variable if it is a range."""
    if least[0] == most[0]:
        return replace(coordinates, totals=least, low=low, high=high)
    n, coefficients = coordinates.n, coordinates.coefficients
    source = np.arange(n) if coordinates.source is None else coordinates.source
    anchor = np.clip(0.0, least, most)
    return replace(
        coordinates,
        lower=np.append(coordinates.lower, anchor - most),
        upper=np.append(coordinates.upper, anchor - least),
        totals=anchor,
        starts=np.append(coordinates.starts, n + 1),
        source=np.append(source, -1),
        coefficients=None if coefficients is None else np.append(coefficients, 1.0),
        low=np.append(low, -math.inf),
        high=np.append(high, math.inf),
    )


def _totals(total: object, n_groups: int) -> tuple[Array, Array]:
    """Return the range of each group's sum; both ends are the same array if the sum is fixed."""
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
        ends = numbers_for_message(low[k], high[k])
        raise ValueError(f"the range of total is empty: {ends[0]} > {ends[1]}")
    for name, end, beyond in (("total[0]", low, low >= LARGE), ("total[1]", high, high <= -LARGE)):
        if beyond.any():
            k = int(np.argmax(beyond))
            if math.isinf(end[k]):
                raise ValueError(f"{name} = {end[k]} leaves no finite sum")
            raise ValueError(too_large(name, end[k], LARGE))
    return np.where(low <= -LARGE, -math.inf, low), np.where(high >= LARGE, math.inf, high)


def _bounds_that_count(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Check the bounds, and make those beyond 1e100 infinite."""
    i = _core.first_invalid_bound(lower, upper, LARGE)
    if i < 0:
        return lower, upper
    require_no_nan("lower", lower)
    require_no_nan("upper", upper)
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        low, high = numbers_for_message(lower[i], upper[i])
        raise ValueError(
            f"lower must not exceed upper, but lower[{i}] = {low}, upper[{i}] = {high}"
        )
    if lower.max() == math.inf or upper.min() == -math.inf:
        is_lower = lower.max() == math.inf
        i = int(np.argmax(lower) if is_lower else np.argmin(upper))
        found = f"lower[{i}] = inf" if is_lower else f"upper[{i}] = -inf"
        raise ValueError(f"lower must be below inf and upper above -inf, but {found}")
    for name, bound, beyond in (
        ("lower", lower, lower >= LARGE),
        ("upper", upper, upper <= -LARGE),
    ):
        if beyond.any():
            i = int(np.argmax(beyond))
            raise ValueError(too_large(f"{name}[{i}]", bound[i], LARGE))
    return np.where(lower <= -LARGE, -math.inf, lower), np.where(upper >= LARGE, math.inf, upper)


def _scaled_bounds(coefficients: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the bounds of ``coefficients * x``."""
    ends = lower * coefficients, upper * coefficients
    low, high = np.minimum(*ends), np.maximum(*ends)
    if _core.first_invalid_bound(low, high, LARGE) >= 0:
        for name, end in zip(("lower", "upper"), ends, strict=True):
            require_finite(f"(coefficients * {name})", np.where(np.isfinite(end), end, 0.0), LARGE)
    return low, high


def _require_feasible(
    coordinates: Layout, low: Array, high: Array, relative_error: float
) -> list[tuple[float, float, float]]:
    """Raise unless the bounds of each group allow a sum in its range, up to rounding.

    Returns the least and the largest sum that the bounds of each group allow, and the distance of
    that interval from the range.
    """
    lower, upper, starts = coordinates.lower, coordinates.upper, coordinates.starts
    spans = _core.sum_ranges(lower, upper, starts, low, high)
    for k, (least, most, miss) in enumerate(spans):
        if miss == 0:
            continue
        below = least - high[k] > low[k] - most
        bound, end = (lower, high[k]) if below else (upper, low[k])
        terms = np.abs(bound[starts[k] : starts[k + 1]])
        if miss <= _rounding_of_sum(terms, end) + relative_error * terms.sum():
            continue
        which = f" of group {coordinates.labels[k]!r}" if coordinates.labels else ""
        raise ValueError(_infeasible(f"the bounds{which}", least, most, miss, low[k], high[k]))
    return spans


def _rounding_of_sum(terms: Array, total: float) -> float:
    """Return a bound on the rounding error of a total that is the sum of terms of these sizes.

    It is one ulp for the rounding of the total, and half an ulp for every addition, in any order.
    """
    size = max(abs(total), float(terms.max(initial=0.0)))
    return math.ulp(size) + 0.5 * EPS * max(len(terms) - 1, 0) * size


def _require_common_total(
    labels: tuple[Hashable, ...],
    spans: list[tuple[float, float, float]],
    low: Array,
    high: Array,
    least: Array,
    most: Array,
    largest: float,
    relative_error: float,
) -> None:
    """Raise unless the ranges of the groups, within their bounds, are compatible with the total."""
    lowest = [max(end, span[0]) for end, span in zip(low, spans, strict=True)]
    highest = [min(end, span[1]) for end, span in zip(high, spans, strict=True)]
    least_sum, largest_sum = math.fsum(lowest), math.fsum(highest)
    miss = max(least_sum - most[0], least[0] - largest_sum)
    too_much = bool(least_sum > most[0])
    ends, end = (lowest, most[0]) if too_much else (highest, least[0])
    terms = [abs(term) for term in ends if math.isfinite(term)]
    # Limits and total are rounded numbers themselves.
    size = max([abs(end), largest, *terms])
    if miss > len(lowest) * math.ulp(size) + relative_error * math.fsum(terms):
        tightest = sorted(zip(ends, labels, strict=True), key=lambda at: at[0], reverse=too_much)
        relation = "at least" if too_much else "at most"
        some = ", ".join(f"{relation} {limit:.6g} in {label!r}" for limit, label in tightest[:3])
        raise ValueError(
            _infeasible("the groups", least_sum, largest_sum, miss, least[0], most[0])
            + f"; there is {some}; total=None removes the total of all variables"
        )


def _infeasible(what: str, least: float, most: float, miss: float, low: float, high: float) -> str:
    # Show all digits if the sums miss the total only by rounding errors.
    size = min(abs(end) for end in (low, high))
    digits = ".6g" if miss > 1e-5 * size else ".17g"
    wanted = f"{low:{digits}}"
    if low != high:
        wanted = f"({wanted}, {high:{digits}})"
    return (
        f"infeasible: {what} allow sums from {least:{digits}} to {most:{digits}}; total is {wanted}"
    )
