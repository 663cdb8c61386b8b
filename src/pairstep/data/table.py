"""Tables: columns with names, of which one may be the label."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import warnings
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array

DELIMITERS = ",;\t"
LONGEST = 200  # letters of a label


class Table(Protocol):
    """What is asked of a table."""

    names: list[str]
    headed: bool  # whether the names were there

    def numbers(self, columns: list[int]) -> Array:
        """Some columns as a matrix."""

    def column(self, index: int) -> NDArray[Any]:
        """One column as it stands: numbers, or texts."""


class Csv:
    """Lines of values between commas, semicolons or tabs.

    The first line has the names of the columns if it has no number.
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
        self.headed = not any(map(_is_number, cells))
        self.names = [cell.strip() for cell in cells]
        if not self.headed:
            self.names = [str(k + 1) for k in range(len(cells))]
        if len(set(self.names)) < len(self.names):
            twice = next(name for k, name in enumerate(self.names) if name in self.names[:k])
            raise ValueError(f"two columns have the name {twice!r}")
        self._begin = file.tell() if self.headed else 0

    def numbers(self, columns: list[int]) -> Array:
        """Some columns as a matrix."""
        return np.asarray(self._read(np.float64, columns), np.float64)

    def column(self, index: int) -> NDArray[Any]:
        """One column as it stands."""
        return np.asarray(self._read(object, [index])[:, 0], object)

    def _read(self, dtype: Any, columns: list[int]) -> NDArray[Any]:
        self._file.seek(self._begin)
        text = io.TextIOWrapper(self._file, "utf-8-sig")
        try:
            with warnings.catch_warnings(action="ignore"):  # that there is no line
                found: NDArray[Any] = np.loadtxt(
                    text, dtype, comments=None, delimiter=self._delimiter, usecols=columns, ndmin=2,
                    quotechar='"',
                )  # fmt: skip
            return found.reshape(-1, len(columns))
        finally:
            text.detach()


class Parquet:
    """A parquet file, by the first reader that is installed."""

    headed = True

    def __init__(self, file: BinaryIO):
        if importlib.util.find_spec("pyarrow") is not None:
            parquet: Any = importlib.import_module("pyarrow.parquet")
            table = parquet.read_table(io.BytesIO(file.read()))
            self.names, columns = table.column_names, table.columns
        elif importlib.util.find_spec("polars") is not None:
            polars: Any = importlib.import_module("polars")
            try:
                table = polars.read_parquet(file)
            except polars.exceptions.PolarsError as error:
                raise ValueError(f"not a parquet file: {error}") from None
            self.names, columns = table.columns, table.get_columns()
        else:
            raise ImportError("parquet files need pyarrow or polars: pip install pyarrow")
        self._columns = columns

    def numbers(self, columns: list[int]) -> Array:
        """Some columns as a matrix."""
        return np.column_stack([np.asarray(self._columns[k].to_numpy(), float) for k in columns])

    def column(self, index: int) -> NDArray[Any]:
        """One column as it stands."""
        return np.asarray(self._columns[index].to_numpy())


def place_of(table: Table, column: str) -> int:
    """Where a column is, by its name or its number, which begins with 1."""
    if column in table.names:
        return table.names.index(column)
    if column.isdecimal() and 1 <= int(column) <= len(table.names):
        return int(column) - 1
    shown = ", ".join(table.names[:8]) + (", ..." if len(table.names) > 8 else "")
    raise ValueError(f"there is no column {column!r}; there are {shown}")


def labels_of(values: NDArray[Any]) -> NDArray[Any]:
    """Labels as numbers where all are, whole ones where all are whole; as texts otherwise."""
    try:
        numbers = values.astype(np.float64)
    except (ValueError, TypeError):
        texts = [str(value).strip() for value in values]
        longest = max(texts, key=len)
        if len(longest) > LONGEST:  # an array gives each the room of the longest
            raise ValueError(f"a label has {len(longest)} letters: {longest[:20]}...") from None
        return np.array(texts)
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole and (np.abs(numbers) < 2**53).all() else numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
