"""Tables in CSV files, from which the figures are drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files import write_at_once
from .parts import Measured, Part, Results

Table = dict[str, NDArray[Any]]


def thin(n: int, also: Sequence[int] | NDArray[Any] = (), points: int = 200) -> NDArray[np.int64]:
    """Return which of n entries to keep: evenly spaced, logarithmically spaced, and `also`."""
    last = max(n - 1, 1)
    even, log = np.linspace(0, n - 1, points), np.geomspace(1, last, points)
    kept = np.concatenate([even, np.minimum(log, n - 1), np.asarray(also, float)])
    return np.unique(kept.round().astype(np.int64))


def stack(blocks: Iterable[dict[str, Any]]) -> Table:
    """Concatenate blocks of rows; single values fill their column."""
    columns: dict[str, list[NDArray[Any]]] = {}
    for block in blocks:
        length = max((len(v) for v in block.values() if np.ndim(v)), default=1)
        for name, values in block.items():
            columns.setdefault(name, []).append(np.broadcast_to(values, length))
    return {name: np.concatenate(pieces) for name, pieces in columns.items()}


def by_iteration(
    results: Results,
    parts: Iterable[Part],
    name: str,
    given: Mapping[str, str],
    columns: Sequence[str],
    also: Callable[[Measured], Sequence[int] | NDArray[Any]] = lambda measured: (),
) -> dict[str, Table]:
    """Return a table of the measurements of each iteration, and a table of the seconds.

    Parameters
    ----------
    results, parts
        The measurements, and the parts to include.
    name : str
        Name of the first table; the other is ``name_timing``.
    given : mapping of str to str
        Columns that identify the parts, and the parameters that they show.
    columns : sequence of str
        Measurements to keep.
    also : callable
        Iterations to keep in addition to those of `thin`.
    """
    curves, times = [], []
    for p in parts:
        measured, parameters = results[p], dict(p.parameters)
        at = thin(len(measured["seconds"]), also(measured))
        row = {column: parameters[k] for column, k in given.items()} | {"iteration": at}
        curves.append(row | {column: measured[column][at] for column in columns})
        times.append(row | {"seconds": measured["seconds"][at]})
    return {name: stack(curves), f"{name}_timing": stack(times)}


def where(table: Table, **wanted: Any) -> Table:
    """Return the rows with these values."""
    rows = np.ones(len(next(iter(table.values()))), bool)
    for name, value in wanted.items():
        rows &= table[name] == value
    return {name: values[rows] for name, values in table.items()}


def distinct(table: Table, name: str) -> Iterator[Any]:
    """Return the distinct values of a column, in the order of the rows."""
    return iter(dict.fromkeys(table[name].tolist()))


def first(table: Table, name: str) -> Any:
    """Return the value of a column in the first row."""
    return table[name][0].item()


def write(path: Path, table: Table) -> None:
    """Write a table as CSV, with nine digits of each float."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    columns = [map(_text, values.tolist()) for values in table.values()]
    writer.writerows(zip(*columns, strict=True))
    write_at_once(path, text.getvalue())


def read(path: Path) -> Table:
    """Read a table that `write` wrote."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: _column(column) for name, column in zip(names, columns, strict=True)}


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _column(values: Sequence[str]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            return np.array(values, kind)
        except ValueError:
            pass
    return np.array(values)
