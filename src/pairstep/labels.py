"""Labels: pandas and polars objects in, in any order; weights with the same labels out.

Every argument that may be a pandas or polars object passes through `aligned`, with one `Axis` per
dimension. The first argument with labels names the axis. Later arguments are reordered to match it,
and arrays without labels are assumed to be in its order.

- A pandas Series is labeled by its index, a DataFrame by its index and its columns. The default
  index 0, 1, ... is treated like any other.
- A polars DataFrame is labeled by its columns. It has no row labels: the rows of a square matrix
  are in the order of its columns, other rows are in the order given. A DataFrame with a single row,
  as returned by `mean()`, is a vector labeled by its columns. A polars Series has a name but no
  labels, so it is treated as an array.
- A dict is labeled by its keys.

Pandas and polars are imported here only if the caller has imported them to create the arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A pandas Index, the list of a polars DataFrame's columns, or the tuple of a dict's keys.
Labels = Any
# Types without labels, which `aligned` returns at once.
UNLABELED_TYPES = frozenset({np.ndarray, float, int, type(None), list, tuple})


class Axis:
    """One dimension of a problem, such as its variables or its observations.

    Attributes
    ----------
    labels : pandas.Index, list, tuple or None
        None until an argument has labels.
    source : str
        The name of the argument that the labels come from.
    """

    __slots__ = ("labels", "source")

    def __init__(self, labels: Labels = None, source: str = ""):
        self.labels = labels
        self.source = source

    @classmethod
    def of(cls, *parts: object) -> Axis:
        """Return the variables of the first objective or constraint that has labels."""
        axis = cls()
        for part in parts:
            variables = getattr(part, "variables", None)
            if isinstance(
                variables, Axis
            ):  # a user's objective may have any attribute of this name
                axis.adopt(variables)
        return axis

    def adopt(self, other: Axis) -> None:
        """Take the labels of another axis, which is in the same order, if this one has none."""
        if self.labels is None:
            self.labels, self.source = other.labels, other.source

    @property
    def names(self) -> tuple[Any, ...] | None:
        """The labels as a tuple, for comparisons."""
        return None if self.labels is None else tuple(self.labels)

    def order(self, name: str, labels: Labels) -> NDArray[np.int64] | None:
        """Return the permutation that brings an argument into the order of this axis.

        None means that the argument is already in order.

        Parameters
        ----------
        name : str
            Name of the argument, for error messages.
        labels : pandas.Index, list or tuple
            Labels of the argument. An axis without labels takes them.
        """
        if self.labels is None:
            self.labels, self.source = labels, name
            return None
        if labels is self.labels:
            return None
        own, given = list(self.labels), list(labels)
        if own == given:
            return None
        place = {label: k for k, label in enumerate(given)}
        if len(place) < len(given) or len(given) != len(own) or place.keys() != set(own):
            raise ValueError(_difference(self.source, own, name, given))
        return np.array([place[label] for label in own])


def aligned(name: str, value: Any, *axes: Axis) -> Any:
    """Return `value` as an array in the order of the axes' labels.

    A value without labels is returned unchanged.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
        The argument.
    *axes : Axis
        One for each expected dimension; the same axis twice for a square matrix.
    """
    if type(value) in UNLABELED_TYPES:
        return value
    if isinstance(value, dict) and len(axes) == 1:
        return _from_dict(name, value, axes[0])
    frame = _read(value, len(axes))
    if frame is None:
        return value
    array, labels = frame
    if array.ndim != len(axes):
        return array  # the caller checks the shape and raises
    if labels[0] is None and axes[0] is axes[-1]:
        labels = [labels[-1]] * len(axes)
    for k in reversed(range(len(axes))):  # columns first: they name the variables
        order = None if labels[k] is None else axes[k].order(name, labels[k])
        if order is not None:
            array = array.take(order, axis=k)
    return array


def _from_dict(name: str, value: dict[Any, Any], axis: Axis) -> Any:
    """Return the values of a dict in the order of the axis; other keys are ignored."""
    if axis.labels is None:
        axis.labels, axis.source = tuple(value), name
        return list(value.values())
    own = list(axis.labels)
    missing = [label for label in own if label not in value]
    if missing:
        raise ValueError(f"{_first_three(own, set(value))} not in {name}")
    return [value[label] for label in own]


def point_of(part: object, x: Any) -> NDArray[np.float64]:
    """Return a point as an array in the order of an objective's labels."""
    if type(x) is not np.ndarray:
        x = aligned("x", x, Axis.of(part))
    return np.asarray(x, float)


def by_label(value: Any) -> Any:
    """Return a frame as a dict: a pandas DataFrame by its rows, a polars one by its columns."""
    frame = _read(value, 2)
    if frame is None or frame[0].ndim != 2:
        return value
    array, (rows, columns) = frame
    return dict(
        zip(columns, array.T, strict=True) if rows is None else zip(rows, array, strict=True)
    )


def labeled(values: NDArray[np.float64], variables: Axis, items: Axis | None = None) -> Any:
    """Return weights with the labels of their variables; a matrix has one row per item.

    The result is a pandas Series or DataFrame, or a polars DataFrame with one column per variable
    and one row per item. It is `values` itself if the variables have no labels. Labels that come
    from a dict give pandas objects if pandas is installed.
    """
    labels = variables.labels
    if labels is None:
        return values
    if isinstance(labels, list):
        import polars

        return polars.DataFrame(np.atleast_2d(values).copy(), schema=labels, orient="row")
    try:
        import pandas
    except ImportError:
        return values

    index = list(labels) if isinstance(labels, tuple) else labels
    if values.ndim == 1:
        return pandas.Series(values.copy(), index=index, name="weight")
    rows = None if items is None else items.labels
    return pandas.DataFrame(values.copy(), index=rows, columns=index)


def _read(value: Any, ndim: int) -> tuple[NDArray[Any], list[Labels]] | None:
    """Return the entries of a frame and the labels of each dimension; None for anything else."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(value, (pandas.Series, pandas.DataFrame)):
        return _values(value), list(value.axes)
    if polars is not None and isinstance(value, polars.DataFrame):
        array, columns = value.to_numpy(), value.columns
        return (array[0], [columns]) if ndim == 1 and len(array) == 1 else (array, [None, columns])
    return None


def _values(frame: Any) -> NDArray[Any]:
    """Return the entries of a pandas object, with NaN for missing values of nullable dtypes."""
    array = np.asarray(frame)
    if array.dtype != object:
        return array
    kinds = [getattr(kind, "kind", "O") for kind in np.atleast_1d(np.asarray(frame.dtypes, object))]
    numeric = all(kind in "fiub" for kind in kinds)
    return np.asarray(frame.to_numpy(float, na_value=np.nan)) if numeric else array


def _difference(source: str, own: Sequence[Any], name: str, given: Sequence[Any]) -> str:
    for argument, labels in ((source, own), (name, given)):
        if len(set(labels)) < len(labels):
            twice = next(label for k, label in enumerate(labels) if label in labels[:k])
            return f"{name} cannot be aligned: {argument} has the label {twice!r} twice"
    # Columns are read first, so if a matrix differs from itself, its rows differ from its columns.
    there = ("its columns", "its rows") if name == source else (source, name)
    missing = [
        f"{_first_three(labels, others)} not in {where}"
        for labels, others, where in ((own, set(given), there[1]), (given, set(own), there[0]))
        if not others.issuperset(labels)
    ]
    whose = f"the rows and columns of {name}" if name == source else f"{name} and {source}"
    return f"the labels of {whose} differ: {'; '.join(missing)}"


def _first_three(labels: Sequence[Any], others: set[Any]) -> str:
    missing = [label for label in labels if label not in others]
    more = ", ..." if len(missing) > 3 else ""
    shown = ", ".join(repr(label) for label in missing[:3])
    return f"{shown}{more} {'is' if len(missing) == 1 else 'are'}"
