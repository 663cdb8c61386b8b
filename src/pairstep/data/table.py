"""Tables from csv and parquet files, read by pandas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..extras import needed

DELIMITERS = ",;\t"
# Lines that are searched for the cells of a first line that could be a header or data: the names in
# a header do not occur again below it. With more lines, data are less often taken for a header.
HEADER_LOOKAHEAD = 1000
MAX_SHOWN_LENGTH = 40  # characters of a cell in an error message


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    frame : pandas.DataFrame
        Its cells.
    names : list of str
        The names of the columns, or their numbers from 1 if the file has no names.
    headed : bool
        Whether the file has names.
    place : callable
        Returns where a row of the frame is in the file, for error messages.
    """

    frame: Any
    names: list[str]
    headed: bool
    place: Callable[[int], str]

    def __post_init__(self) -> None:
        for k, name in enumerate(self.names):
            if name in self.names[:k]:
                raise ValueError(f"two columns have the name {name!r}")

    def index_of(self, column: str) -> int:
        """Return the index of a column that is given by its name or by its number, from 1."""
        if column in self.names:
            return self.names.index(column)
        if column.isdecimal() and 1 <= int(column) <= len(self.names):
            return int(column) - 1
        shown = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        raise ValueError(f"the table has no column {column!r}; it has {shown}")

    def is_text(self, column: int) -> bool:
        """Return whether a column has text, judging by its first cell."""
        first = self.frame.iat[0, column]
        return first != "" and not _is_number(first)

    def numbers(self, columns: list[int]) -> Array:
        """Return some columns as a matrix. The error for a cell that is no number says where."""
        chosen = self.frame.iloc[:, columns]
        try:
            return np.ascontiguousarray(chosen.to_numpy(np.float64))
        except (ValueError, TypeError):
            for row, cells in enumerate(chosen.itertuples(index=False, name=None)):
                for column, cell in zip(columns, cells, strict=True):
                    if not _is_number(cell):
                        where = f"{self.place(row)}, column {self.names[column]}"
                        shown = str(cell)[:MAX_SHOWN_LENGTH]
                        raise ValueError(f"{where}: {shown!r} is not a number") from None
            raise

    def labels(self, column: int) -> NDArray[Any]:
        """Return a column of labels, none of which is missing."""
        labels = self.frame.iloc[:, column]
        missing = np.flatnonzero(labels.isna() | (labels == ""))
        if len(missing):
            raise ValueError(f"{self.place(missing[0])}, column {self.names[column]}: no label")
        return np.asarray(labels.to_numpy())


def read_csv(file: BinaryIO, dtype: Any = None) -> Table:
    """Return the table of a csv file, delimited by commas, semicolons or tabs.

    The first line has the names of the columns if none of its cells is a number. Some names may
    also be the numbers 0, 1, 2, ... or 1, 2, 3, ..., as pandas writes them for unnamed columns.
    """
    pandas = needed("pandas", by="a csv file")
    lines = ((k, line) for k, line in enumerate(file) if line.strip())
    above, first = next(lines, (0, b""))
    delimiter = max(DELIMITERS, key=first.decode("utf-8-sig").count)

    def read(**options: Any) -> Any:
        file.seek(0)
        return pandas.read_csv(
            file, sep=delimiter, header=None, na_filter=False, encoding="utf-8-sig",
            low_memory=False, **options,
        )  # fmt: skip

    def place(row: int) -> str:
        file.seek(0)
        lines = (k for k, line in enumerate(file, 1) if line.strip())
        return f"line {next(islice(lines, row + headed, None), row + headed + 1)}"

    head = read(nrows=HEADER_LOOKAHEAD, dtype=str)
    headed = _is_header(head)
    if not headed:
        frame = read(dtype=dtype)
        return Table(frame, [str(k + 1) for k in range(frame.shape[1])], headed, place)
    if len(head) == 1:
        raise ValueError("the file has names of columns, but no samples")
    frame = read(dtype=dtype, skiprows=above + 1)
    if frame.shape[1] < head.shape[1]:
        raise ValueError(f"{place(0)} has {frame.shape[1]} cells, but {head.shape[1]} names")
    return Table(frame, [name.strip() for name in head.iloc[0]], headed, place)


def _is_header(head: Any) -> bool:
    """Return whether the first row has the names of the columns.

    It has if no name is a number. In a line such as ``0,1,2,y`` the numbers must count the columns.
    So that data are not mistaken for such a header, each text must be above a number, or must not
    occur again in its column.
    """
    first = head.iloc[0].tolist()
    numbers = [cell.strip() for cell in first if _is_number(cell)]
    if not numbers:
        return True
    counts = ([str(k + begin) for k in range(len(numbers))] for begin in (0, 1))
    if len(numbers) in (len(first), 1) or numbers not in counts or len(head) == 1:
        return False
    return all(
        _is_number(cell) or _is_number(head.iat[1, k]) or cell not in set(head[k][1:])
        for k, cell in enumerate(first)
    )


def read_parquet(file: BinaryIO) -> Table:
    """Return the table of a parquet file."""
    needed("pyarrow", by="a parquet file")
    frame = needed("pandas", by="a parquet file").read_parquet(file, engine="pyarrow")
    return Table(frame, [str(name) for name in frame], True, lambda row: f"row {row + 1}")


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True
