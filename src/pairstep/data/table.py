"""Tables from csv and parquet files, which have named columns."""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import io
import warnings
from itertools import islice
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..extras import needed

DELIMITERS = ",;\t"
# NumPy reserves the length of the longest label for each label, so a long text that is not a label
# could exhaust the memory.
MAX_LABEL_LENGTH = 200  # characters
# Lines that are searched for the cells of a first line that could be a header or data: the names in
# a header do not occur again below it. With more lines, data are less often taken for a header.
HEADER_LOOKAHEAD = 1000


class Table(Protocol):
    """The interface of a table."""

    names: list[str]
    headed: bool  # whether the names are from the file

    def numbers(self, columns: list[int]) -> Array:
        """Return some columns as a matrix."""

    def column(self, index: int) -> NDArray[Any]:
        """Return one column, of numbers or texts."""

    def is_text(self, index: int) -> bool:
        """Return whether a column has text, judging by its first value."""


class Csv:
    """A csv file, delimited by commas, semicolons or tabs.

    The first line has the names of the columns if none of its cells is a number. Some names may
    also be the numbers 0, 1, 2, ... or 1, 2, 3, ..., as pandas writes them for unnamed columns.
    """

    def __init__(self, file: BinaryIO):
        self._file = file
        line = next((line for line in file if line.strip()), None)
        if line is None:
            raise ValueError("the file is empty")
        first = line.decode("utf-8-sig")
        self._delimiter = max(DELIMITERS, key=first.count)
        try:
            cells = next(csv.reader([first], delimiter=self._delimiter), [])
        except csv.Error as error:
            raise ValueError(f"the first line: {error}") from error
        self._begin = file.tell()
        self._first_row = self._rows(file, 1)
        self.headed = not any(map(_is_number, cells)) or self._is_numbered_header(cells)
        self.names = [cell.strip() for cell in cells]
        if not self.headed:
            self.names = [str(k + 1) for k in range(len(cells))]
        if len(set(self.names)) < len(self.names):
            twice = next(name for k, name in enumerate(self.names) if name in self.names[:k])
            raise ValueError(f"two columns have the name {twice!r}")
        if not self.headed:
            self._begin, self._first_row = 0, [cells]

    def _rows(self, file: BinaryIO, count: int) -> list[list[str]]:
        """Return the cells of the next lines of the file that are not empty."""
        lines = islice((line for line in file if line.strip()), count)
        texts = [line.decode("utf-8-sig", "replace") for line in lines]
        with contextlib.suppress(csv.Error):
            return list(csv.reader(texts, delimiter=self._delimiter))
        return []

    def _is_numbered_header(self, cells: list[str]) -> bool:
        """Return whether a first line with numbers is a header, such as ``0,1,2,y``.

        The numbers must count the columns. So that a data line is not mistaken for a header, each
        name must be above a number, or must not occur again in its column.
        """
        numbers = [cell.strip() for cell in cells if _is_number(cell)]
        counts = ([str(k + begin) for k in range(len(numbers))] for begin in (0, 1))
        if len(numbers) in (len(cells), 1) or numbers not in counts or not self._first_row:
            return False
        self._file.seek(self._begin)
        rows = self._rows(self._file, HEADER_LOOKAHEAD)
        return all(
            _is_number(cell)
            or (bool(rows) and len(rows[0]) == len(cells) and _is_number(rows[0][k]))
            or cell not in {row[k] for row in rows if len(row) == len(cells)}
            for k, cell in enumerate(cells)
        )

    def is_text(self, index: int) -> bool:
        """Return whether a column has text, judging by its first value."""
        row = self._first_row[0] if self._first_row else []
        return index < len(row) and bool(row[index].strip()) and not _is_number(row[index])

    def numbers(self, columns: list[int]) -> Array:
        """Return some columns as a matrix."""
        return np.asarray(self._read(np.float64, columns), np.float64)

    def column(self, index: int) -> NDArray[Any]:
        """Return one column of texts."""
        return np.asarray(self._read(object, [index])[:, 0], object)

    def _read(self, dtype: Any, columns: list[int]) -> NDArray[Any]:
        self._file.seek(self._begin)
        text = io.TextIOWrapper(self._file, "utf-8-sig")
        try:
            with warnings.catch_warnings(action="ignore"):  # about empty input
                found: NDArray[Any] = np.loadtxt(
                    text, dtype, comments=None, delimiter=self._delimiter, usecols=columns, ndmin=2,
                    quotechar='"',
                )  # fmt: skip
            return found.reshape(-1, len(columns))
        finally:
            text.detach()


class Parquet:
    """A parquet file, read by pyarrow or polars, whichever is installed."""

    headed = True

    def __init__(self, file: BinaryIO):
        found = {name: importlib.util.find_spec(name) for name in ("pyarrow", "polars")}
        if found["polars"] and not found["pyarrow"]:
            polars: Any = importlib.import_module("polars")
            try:
                table = polars.read_parquet(file)
            except polars.exceptions.PolarsError as error:
                raise ValueError(f"not a parquet file: {error}") from None
            self.names, columns = table.columns, table.get_columns()
        else:
            parquet: Any = needed("pyarrow.parquet", by="a parquet file")
            table = parquet.read_table(io.BytesIO(file.read()))
            self.names, columns = table.column_names, table.columns
        self._columns = columns

    def is_text(self, index: int) -> bool:
        """Return whether a column has text."""
        return self.column(index).dtype.kind in "OUST"

    def numbers(self, columns: list[int]) -> Array:
        """Return some columns as a matrix."""
        return np.column_stack([np.asarray(self._columns[k].to_numpy(), float) for k in columns])

    def column(self, index: int) -> NDArray[Any]:
        """Return one column."""
        return np.asarray(self._columns[index].to_numpy())


def index_of(table: Table, column: str) -> int:
    """Return the index of a column that is given by its name or by its number, from 1."""
    if column in table.names:
        return table.names.index(column)
    if column.isdecimal() and 1 <= int(column) <= len(table.names):
        return int(column) - 1
    shown = ", ".join(table.names[:8]) + (", ..." if len(table.names) > 8 else "")
    raise ValueError(f"the table has no column {column!r}; it has {shown}")


def labels_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers or floats if all of them are numbers, and as texts otherwise."""
    try:
        numbers = values.astype(np.float64)
    except (ValueError, TypeError):
        texts = [str(value).strip() for value in values]
        longest = max(texts, key=len)
        if len(longest) > MAX_LABEL_LENGTH:
            raise ValueError(
                f"a label has {len(longest)} characters, more than {MAX_LABEL_LENGTH}: "
                f"{longest[:20]}..."
            ) from None
        return np.array(texts)
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole and (np.abs(numbers) < 2**53).all() else numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
