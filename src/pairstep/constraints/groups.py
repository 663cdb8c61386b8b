"""Groups of variables, and the limits on the sums of the groups."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import (
    LARGE,
    Array,
    as_given,
    finite_number,
    frozen,
    numbers_for_message,
    too_large,
)
from ..labels import by_label

NANOSECONDS = np.dtype("M8[ns]"), np.dtype("m8[ns]")


class Frame(Protocol):
    """A Series or DataFrame of pandas or polars."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        """Return the entries as an array."""


GroupLabels = ArrayLike | Sequence[Hashable] | Mapping[Any, Hashable]
GroupTotal = Mapping[Any, float | tuple[float, float]] | Frame
GroupLimit = Mapping[Any, float] | Frame


@dataclass(frozen=True)
class Groups:
    """The group labels, in order, and the index of each variable's group."""

    labels: tuple[Hashable, ...]
    codes: NDArray[np.int64]


def own_groups(groups: Any) -> NDArray[Any]:
    """Return the label of each variable's group, as a read-only array."""
    if hasattr(groups, "dtype"):
        given = np.asarray(groups)
    elif not _holds_tuples(groups) and np.ndim(groups) != 1:
        given = as_given("groups", groups)
    else:
        given = _one_by_one(groups)
    if given.ndim != 1:
        raise ValueError(
            f"groups must give one label for each variable, got shape {given.shape}: the groups "
            "of a SumBox must not overlap"
        )
    return frozen(_in_microseconds(given) if given.dtype in NANOSECONDS else given)


def _in_microseconds(times: NDArray[Any]) -> NDArray[Any]:
    """Convert times to microseconds if that is exact.

    ``tolist`` returns datetime objects for microseconds, but integers for nanoseconds.
    """
    coarse = times.astype(str(times.dtype).replace("ns", "us"))
    return coarse if np.array_equal(coarse, times) else times


def _holds_tuples(groups: Any) -> bool:
    return isinstance(groups, (list, tuple)) and any(isinstance(label, tuple) for label in groups)


def _one_by_one(groups: Any) -> NDArray[Any]:
    """Return the labels unchanged: NumPy would convert numbers among strings to strings."""
    labels = list(groups)
    if all(isinstance(label, (int, np.integer)) for label in labels):
        return np.asarray(labels)
    own = np.empty(len(labels), object)
    for i, label in enumerate(labels):
        own[i] = label
    return own


def grouped(groups: NDArray[Any], name: str = "groups") -> Groups:
    """Find the distinct labels: sorted if they can be compared, else in order of appearance."""
    if groups.dtype == object:
        return _grouped_objects(groups.tolist(), name)
    missing = groups != groups
    if missing.any():
        raise ValueError(f"{name}[{int(np.argmax(missing))}] is missing: nan; give it a label")
    labels, codes = np.unique(groups, return_inverse=True)
    return Groups(tuple(labels.tolist()), codes.astype(np.int64))


def _grouped_objects(items: list[Any], name: str) -> Groups:
    for i, label in enumerate(items):
        if not isinstance(label, Hashable):
            raise TypeError(f"{name} must hold hashable labels, but {name}[{i}] = {label!r}")
        if _is_missing(label):
            raise ValueError(f"{name}[{i}] is missing: {label!r}; give it a label")
    different = list(dict.fromkeys(items))
    with contextlib.suppress(TypeError):
        different.sort()
    position = {label: k for k, label in enumerate(different)}
    return Groups(tuple(different), np.array([position[label] for label in items], np.int64))


def _is_missing(label: Any) -> bool:
    unequal = label != label  # true for NaN; pandas.NA returns neither True nor False
    return label is None or not isinstance(unequal, (bool, np.bool_)) or bool(unequal)


def own_group_total(
    group_total: Any, group_lower: Any, group_upper: Any, groups: Groups | None
) -> Mapping[Hashable, Any]:
    """Return the range (low, high) of each group that is named in one of the three arguments."""
    ranges: dict[Hashable, tuple[float, float]] = {}
    for label, value in _by_group("group_total", group_total, groups).items():
        ranges[label] = _range(f"group_total[{label!r}]", value)
    lowest, highest = (
        _by_group("group_lower", group_lower, groups),
        _by_group("group_upper", group_upper, groups),
    )
    for label in [*lowest, *(label for label in highest if label not in lowest)]:
        if label in ranges:
            raise ValueError(
                f"group {label!r} is in group_total and in group_lower or group_upper: give its "
                "limits once"
            )
        name = f"(group_lower[{label!r}], group_upper[{label!r}])"
        low, high = lowest.get(label, -math.inf), highest.get(label, math.inf)
        ranges[label] = _range(name, (low, high))
    return MappingProxyType(ranges)


def _by_group(name: str, values: Any, groups: Groups | None) -> dict[Hashable, Any]:
    """Return an argument as a dict by group label, after checking the labels."""
    if values is None:
        return {}
    if groups is None:
        raise ValueError(f"{name} needs groups: give groups, a label for each variable")
    values = by_label(values)
    if not hasattr(values, "items"):
        raise TypeError(f"{name} must be a mapping from group labels to limits, got {values!r}")
    given = dict(values.items())
    known = set(groups.labels)  # compare by hash as lookups do: equal dates may hash differently
    unknown = [label for label in given if label not in known]
    if unknown:
        raise ValueError(
            f"{name} names {_some(unknown)}, but the groups are {_some(groups.labels)}"
        )
    return given


def per_group(total: object) -> bool:
    """Return whether a total is given for each group, not for all variables together."""
    ends = total if isinstance(total, tuple) else (total,)
    return any(isinstance(end, np.ndarray) for end in ends)


def _some(labels: Any) -> str:
    shown = ", ".join(repr(label) for label in labels[:3])
    return shown if len(labels) <= 3 else f"{shown}, ..."


def _range(name: str, value: Any) -> tuple[float, float]:
    """Return a total or a pair of limits as the pair (low, high); infinite where there is none."""
    if np.ndim(value) == 0:
        total = finite_number(name, value)
        low = high = total
    else:
        if len(value) != 2:
            raise ValueError(f"{name} must be a total or a pair (low, high), got {value!r}")
        low, high = (finite_number(name, end, infinite=True) for end in value)
        if low > high:
            ends = numbers_for_message(low, high)
            raise ValueError(f"{name} is empty: {ends[0]} > {ends[1]}")
        if low == math.inf or high == -math.inf:
            raise ValueError(f"{name} = ({low:g}, {high:g}) leaves no finite sum")
    for end, beyond in ((low, low >= LARGE), (high, high <= -LARGE)):
        if beyond:
            raise ValueError(too_large(name, end, LARGE))
    return (low if low > -LARGE else -math.inf), (high if high < LARGE else math.inf)


def limits(groups: Groups, group_total: GroupTotal | None) -> tuple[Array, Array]:
    """Return the lower and upper limit of each group's sum, infinite where there is none."""
    given = group_total if isinstance(group_total, Mapping) else {}
    pairs = [given.get(label, (-math.inf, math.inf)) for label in groups.labels]
    low, high = np.array(pairs, float).reshape(-1, 2).T
    return low.copy(), high.copy()
