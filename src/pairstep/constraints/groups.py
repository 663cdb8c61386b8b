"""Groups of variables by labels, and the totals that are given for them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import LARGE, Array, as_given, finite_number, frozen, too_large
from ..labels import by_label

NANOSECONDS = np.dtype("M8[ns]"), np.dtype("m8[ns]")


class Frame(Protocol):
    """A Series or DataFrame, of pandas or polars."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        """Its numbers."""


GroupLabels = ArrayLike | Sequence[Hashable]
GroupTotal = Mapping[Any, float | tuple[float, float]] | Frame


@dataclass(frozen=True)
class Groups:
    """The labels of the groups, in order, and for each variable the position of its own."""

    labels: tuple[Hashable, ...]
    codes: NDArray[np.int64]


def own_groups(groups: Any) -> NDArray[Any]:
    """A label for each variable, as an array that nobody can change."""
    if hasattr(groups, "dtype"):
        given = np.asarray(groups)
    elif not _holds_tuples(groups) and np.ndim(groups) != 1:
        given = as_given("groups", groups)
    else:
        given = _one_by_one(groups)
    if given.ndim != 1:
        raise ValueError(
            f"groups must give one label for each variable, got shape {given.shape}: the groups "
            "of a SumBox do not overlap"
        )
    return frozen(_as_python_has_them(given) if given.dtype in NANOSECONDS else given)


def _as_python_has_them(times: NDArray[Any]) -> NDArray[Any]:
    """Times in microseconds, if that is exact: NumPy makes whole numbers of nanoseconds."""
    coarse = times.astype(str(times.dtype).replace("ns", "us"))
    return coarse if np.array_equal(coarse, times) else times


def _holds_tuples(groups: Any) -> bool:
    return isinstance(groups, (list, tuple)) and any(isinstance(label, tuple) for label in groups)


def _one_by_one(groups: Any) -> NDArray[Any]:
    """Labels as they are: NumPy would make strings of numbers that stand among strings."""
    labels = list(groups)
    if all(isinstance(label, (int, np.integer)) for label in labels):
        return np.asarray(labels)
    own = np.empty(len(labels), object)
    for i, label in enumerate(labels):
        own[i] = label
    return own


def grouped(groups: NDArray[Any], name: str = "groups") -> Groups:
    """Find the different labels: sorted, or, where that cannot be done, as they come."""
    if groups.dtype == object:
        return _grouped_objects(groups.tolist(), name)
    missing = groups != groups
    if missing.any():
        raise ValueError(f"{name}[{int(np.argmax(missing))}] is missing: nan")
    labels, codes = np.unique(groups, return_inverse=True)
    return Groups(tuple(labels.tolist()), codes.astype(np.int64))


def _grouped_objects(items: list[Any], name: str) -> Groups:
    for i, label in enumerate(items):
        if not isinstance(label, Hashable):
            raise TypeError(f"{name} must hold hashable labels, but {name}[{i}] = {label!r}")
        if _is_missing(label):
            raise ValueError(f"{name}[{i}] is missing: {label!r}")
    different = list(dict.fromkeys(items))
    with contextlib.suppress(TypeError):
        different.sort()
    position = {label: k for k, label in enumerate(different)}
    return Groups(tuple(different), np.array([position[label] for label in items], np.int64))


def _is_missing(label: Any) -> bool:
    unequal = label != label  # as NaN is; pandas.NA does not know
    return label is None or not isinstance(unequal, (bool, np.bool_)) or bool(unequal)


def own_group_total(group_total: Any, groups: Groups | None) -> Mapping[Hashable, Any]:
    """For each label that is given its range, as a pair."""
    if groups is None:
        raise ValueError("group_total needs groups: a label for each variable")
    group_total = by_label(group_total)
    if not hasattr(group_total, "items"):
        raise TypeError(
            "group_total must be a mapping from labels to totals or pairs (low, high), got "
            f"{group_total!r}"
        )
    given = dict(group_total.items())
    known = set(groups.labels)  # limits are looked up by hash, which equal dates may differ in
    unknown = [label for label in given if label not in known]
    if unknown:
        raise ValueError(
            f"group_total names {_some(unknown)}, but the groups are {_some(groups.labels)}"
        )
    return MappingProxyType({label: _range(label, value) for label, value in given.items()})


def per_group(total: object) -> bool:
    """Whether a total is given for each group, not for all variables together."""
    ends = total if isinstance(total, tuple) else (total,)
    return any(isinstance(end, np.ndarray) for end in ends)


def _some(labels: Any) -> str:
    shown = ", ".join(repr(label) for label in labels[:3])
    return shown if len(labels) <= 3 else f"{shown} and {len(labels) - 3} more"


def _range(label: Hashable, value: Any) -> tuple[float, float]:
    name = f"group_total[{label!r}]"
    if np.ndim(value) == 0:
        total = finite_number(name, value)
        low = high = total
    else:
        if len(value) != 2:
            raise ValueError(f"{name} must be a total or a pair (low, high), got {value!r}")
        low, high = (finite_number(name, end, infinite=True) for end in value)
        if low > high:
            raise ValueError(f"{name} is empty: {low:g} > {high:g}")
        if low == math.inf or high == -math.inf:
            raise ValueError(f"{name} = ({low:g}, {high:g}) leaves no finite sum")
    for end, beyond in ((low, low >= LARGE), (high, high <= -LARGE)):
        if beyond:
            raise ValueError(too_large(name, end, LARGE))
    return (low if low > -LARGE else -math.inf), (high if high < LARGE else math.inf)


def limits(groups: Groups, group_total: GroupTotal | None) -> tuple[Array, Array]:
    """The range of each group's sum; endless where none is given."""
    given = group_total if isinstance(group_total, Mapping) else {}
    pairs = [given.get(label, (-math.inf, math.inf)) for label in groups.labels]
    low, high = np.array(pairs, float).reshape(-1, 2).T
    return low.copy(), high.copy()
