"""Samples and their labels from a file, whatever its format: its content tells."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import scipy.sparse
from numpy.typing import NDArray

from .npz import read_npz, refused
from .opened import opened
from .svmlight import read_svmlight
from .table import Csv, Parquet, Table, labels_of, place_of

ENTRY = re.compile(rb"(qid|\d+):[^,;]*")  # of svmlight
TABLES = {".csv", ".tsv"}


@dataclass(frozen=True)
class Samples:
    """What a file holds.

    Attributes
    ----------
    X : array or sparse matrix
        The samples.
    y : array or None
        Their labels, where there are any.
    names : list of str or None
        Those of the columns of X.
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None = None


def read_samples(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    labelled: bool | None = True,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
) -> Samples:
    """Read samples from a svmlight, csv, npz or parquet file, also packed by gzip, bzip2 or xz.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.
    label : str, optional
        Of a table: the name or number of the column with the labels; by default the last one.
    labelled : bool or None
        Whether a table has labels by default. None: if it has a column more than `n_features`.
    names : sequence of str, optional
        Of a table: the columns to take as features; by default all but the label.
    n_features : int, optional
        How many features there should be: a svmlight file may not mention the last ones.
    zero_based : bool
        Whether the indices of a svmlight file begin with 0.

    Returns
    -------
    Samples
        Whole numbers as labels are integers.
    """
    named_so = TABLES & {*Path(path).suffixes}
    try:
        with opened(path) as file, refused("a file of samples"):
            begin = file.read(4)
            file.seek(0)
            if begin == b"PK\x03\x04":
                return _of_arrays(read_npz(file))
            if begin == b"PAR1":
                return _of_table(Parquet(file), label, labelled, names, n_features)
            if not named_so and _is_svmlight(file):
                X, y = read_svmlight(file, zero_based)
                if n_features is not None and X.shape[1] < n_features:
                    X.resize(X.shape[0], n_features)
                return Samples(X, labels_of(y))
            return _of_table(Csv(file), label, labelled, names, n_features)
    except ValueError as error:
        where = "standard input" if path == "-" else path
        raise ValueError(f"{where}: {error}") from error


def _is_svmlight(file: BinaryIO) -> bool:
    """Whether the first sample, after comments, has the form of one of svmlight's."""
    lines = (line for line in file if line.strip() and not line.startswith(b"#"))
    first = next(lines, None)
    file.seek(0)
    if first is None:
        raise ValueError("the file is empty")
    _, *entries = first.partition(b"#")[0].split() or [b""]
    return all(ENTRY.fullmatch(entry) for entry in entries) and (
        bool(entries) or not any(mark in first for mark in b",;\t")
    )


def _of_arrays(found: dict[str, Any]) -> Samples:
    """Arrays X and y; X may be spread over the arrays that scipy.sparse.save_npz writes."""
    y = found.get("y")
    if "X" in found:
        X = found["X"]
    elif {"data", "indices", "indptr", "shape"} <= found.keys():
        parts = tuple(found[name] for name in ("data", "indices", "indptr"))
        X = scipy.sparse.csr_matrix(parts, shape=tuple(found["shape"].tolist()))
        X.check_format(full_check=True)
    else:
        raise ValueError(f"an npz file must have an array X, this one has {', '.join(found)}")
    if X.ndim != 2 or (y is not None and y.shape != X.shape[:1]):
        shapes = f"{X.shape} and {None if y is None else y.shape}"
        raise ValueError(f"X must have two dimensions, and y a label per row: they have {shapes}")
    return Samples(X, None if y is None else labels_of(y))


def _of_table(
    table: Table,
    label: str | None,
    labelled: bool | None,
    names: Sequence[str] | None,
    n_features: int | None,
) -> Samples:
    wanted = None
    if names is not None and table.headed and set(names) <= set(table.names):
        wanted = [table.names.index(name) for name in names]
    width = len(table.names)
    if labelled is None:
        labelled = width == n_features + 1 if n_features is not None else False
    at = None
    if label is not None:
        at = place_of(table, label)
    elif labelled:
        others = [k for k in range(width) if wanted is None or k not in wanted]
        at = others[-1] if others else None
    if wanted is None:
        wanted = [k for k in range(width) if k != at]
    if not wanted:
        raise ValueError("there is no column but that of the labels")
    X = table.numbers(wanted)
    if not len(X):
        raise ValueError("there is no sample in it")
    y = None if at is None else labels_of(table.column(at))
    return Samples(X, y, [table.names[k] for k in wanted] if table.headed else None)
