"""Labels: Series and DataFrames in, in any order; weights with the same labels out.

Every argument that may come from pandas or polars goes through `aligned`, with an `Axis` for each
of its dimensions. The first argument that has labels names the axis; those that follow are brought
into its order, and arrays without labels are taken to be in it.

- A pandas Series is labelled by its index, a DataFrame by its index and its columns. The index that
  pandas gives by default, 0, 1, ..., labels as any other does.
- A polars DataFrame is labelled by its columns. It has no labels for rows: those of a square matrix
  are in the order of its columns, others in the order in which they stand. One of a single row, as
  `mean()` gives it, is a vector labelled by its columns. A polars Series has a name but no labels:
  it is taken as an array.

Neither library is imported here unless it was loaded by who passed one of its objects.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = Any  # a pandas Index, or the list of a polars DataFrame's columns
PLAIN = frozenset({np.ndarray, float, int, type(None), list, tuple})


class Axis:
    """One dimension of a problem: its variables, its observations. Named by who has labels first.

    Attributes
    ----------
    labels : pandas.Index, list or None
        None until an argument has some.
    source : str
        The name of that argument.
    """

    __slots__ = ("labels", "source")

    def __init__(self, labels: Labels = None, source: str = ""):
        self.labels = labels
        self.source = source

    @classmethod
    def of(cls, *parts: object) -> Axis:
        """The variables of the first of the objectives and constraints that has labels."""
        axis = cls()
        for part in parts:
            variables = getattr(part, "variables", None)
            if isinstance(variables, Axis):  # objectives may be anybody's
                axis.adopt(variables)
        return axis

    def adopt(self, other: Axis) -> None:
        """Take the labels of another axis in the same order, if this one has none."""
        if self.labels is None:
            self.labels, self.source = other.labels, other.source

    @property
    def names(self) -> tuple[Any, ...] | None:
        """The labels, to be compared."""
        return None if self.labels is None else tuple(self.labels)

    def order(self, name: str, labels: Labels) -> NDArray[np.int64] | None:
        """Where the entries of an argument so labelled are to be taken from; None: as they stand.

        Parameters
        ----------
        name : str
            The argument's, for the message where the labels differ.
        labels : pandas.Index or list
            Those of the argument. An axis without labels takes them.
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
    """`value` in the order of the axes' labels, as an array; as it is if it is none of a frame.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : object
        The argument.
    *axes : Axis
        One for each dimension that it should have; the same twice for a square matrix.
    """
    if type(value) in PLAIN:
        return value
    frame = _read(value, len(axes))
    if frame is None:
        return value
    array, labels = frame
    if array.ndim != len(axes):
        return array  # whoever checks its shape says so
    if labels[0] is None and axes[0] is axes[-1]:
        labels = [labels[-1]] * len(axes)
    for k in reversed(range(len(axes))):  # columns first: they name the variables
        order = None if labels[k] is None else axes[k].order(name, labels[k])
        if order is not None:
            array = array.take(order, axis=k)
    return array


def point_of(part: object, x: Any) -> NDArray[np.float64]:
    """A point that an objective is asked about, in the order of its labels."""
    if type(x) is not np.ndarray:
        x = aligned("x", x, Axis.of(part))
    return np.asarray(x, float)


def by_label(value: Any) -> Any:
    """A frame as a mapping: a pandas DataFrame by its rows, one of polars by its columns."""
    frame = _read(value, 2)
    if frame is None or frame[0].ndim != 2:
        return value
    array, (rows, columns) = frame
    return dict(
        zip(columns, array.T, strict=True) if rows is None else zip(rows, array, strict=True)
    )


def labelled(values: NDArray[np.float64], variables: Axis, columns: Axis | None = None) -> Any:
    """Weights as they came: with the labels of their variables, and of the columns of a batch.

    A pandas Series or DataFrame, a polars DataFrame with a column per variable and a row per
    vector, or `values` themselves where the variables have no labels.
    """
    labels = variables.labels
    if labels is None:
        return values
    if isinstance(labels, list):
        import polars

        return polars.DataFrame(np.atleast_2d(values.T).copy(), schema=labels, orient="row")
    import pandas

    if columns is None:
        return pandas.Series(values.copy(), index=labels, name="weight")
    return pandas.DataFrame(values.copy(), index=labels, columns=columns.labels)


def _read(value: Any, ndim: int) -> tuple[NDArray[Any], list[Labels]] | None:
    """What a frame holds, and the labels of each dimension; None for anything else."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(value, (pandas.Series, pandas.DataFrame)):
        return _values(value), list(value.axes)
    if polars is not None and isinstance(value, polars.DataFrame):
        array, columns = value.to_numpy(), value.columns
        return (array[0], [columns]) if ndim == 1 and len(array) == 1 else (array, [None, columns])
    return None


def _values(frame: Any) -> NDArray[Any]:
    """The entries of a pandas object; numbers of its own types, which know what is missing, too."""
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
    # Columns are read first: where an argument differs from itself, its rows do.
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
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    shown = ", ".join(repr(label) for label in missing[:3])
    return f"{shown}{more} {'is' if len(missing) == 1 else 'are'}"
