"""Read samples and labels from a file. The format is detected from the content."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy
from numpy.typing import NDArray

from .npz import read_npz
from .opened import opened
from .svmlight import read_svmlight
from .table import Table, read_csv, read_parquet

ENTRY = re.compile(rb"(qid|\d+):[^,;]*")  # an entry of a svmlight line
TABLES = {".csv", ".tsv"}
LABEL_NAMES = {"label", "labels", "class", "target", "y"}  # of a first column that has the labels
# NumPy reserves the length of the longest label for each label, so a long text that is not a label
# could exhaust the memory.
MAX_LABEL_LENGTH = 200  # characters


@dataclass(frozen=True)
class Samples:
    """The content of a file.

    Attributes
    ----------
    X : array or sparse matrix
        The samples, one per row.
    y : array or None
        Their labels, if the file has any.
    names : list of str or None
        Names of the columns of X.
    guessed_label : str or None
        The name or the number of the column of a table that was taken as the labels because no
        column was named.
    serials : array or None
        The numbers of the samples of a precomputed kernel in a svmlight file (``0:number``).
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None = None
    guessed_label: str | None = None
    serials: NDArray[Any] | None = None


def read_samples(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    labeled: bool = True,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    precomputed: bool = False,
) -> Samples:
    """Read samples from a svmlight, csv, npz or parquet file, plain or compressed.

    Files whose names end in .gz, .bz2 or .xz are decompressed.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.
    label : str, optional
        Name or number (from 1) of the column of a table that has the labels. By default it is the
        last one, or the first one if that has text or is named like labels and the last is not.
    labeled : bool
        Whether a table has labels if `label` and `n_features` are not given.
    names : sequence of str, optional
        Columns of a table to take as features. By default all except the labels.
    n_features : int, optional
        Expected number of features. A table with one column more has labels. The last features may
        be absent from a svmlight file.
    zero_based : bool
        Whether the indices of a svmlight file begin with 0.
    precomputed : bool
        Whether the file has rows of a kernel matrix. In LIBSVM's format for these, each line of a
        svmlight file begins with ``label 0:number``, the number of the sample.

    Returns
    -------
    Samples
        Labels that are whole numbers have an integer type.
    """
    with opened(path, "a file of samples") as file:
        magic = file.read(4)
        file.seek(len(BOM_UTF8) if magic.startswith(BOM_UTF8) else 0)
        if magic == b"PK\x03\x04":
            return _of_arrays(read_npz(file))
        if magic == b"PAR1":
            return _of_table(read_parquet(file), label, labeled, names, n_features)
        if TABLES & {*Path(path).suffixes} or not _is_svmlight(file):
            return _of_table(read_csv(file), label, labeled, names, n_features)
        return _of_svmlight(file, n_features, zero_based, precomputed)


def _is_svmlight(file: BinaryIO) -> bool:
    """Return whether the first line that is not a comment has the form of a svmlight line."""
    start = file.tell()
    lines = (line for line in file if line.strip() and not line.startswith(b"#"))
    first = next(lines, None)
    file.seek(start)
    if first is None:
        raise ValueError("the file is empty")
    _, *entries = first.partition(b"#")[0].split() or [b""]
    return all(ENTRY.fullmatch(entry) for entry in entries) and (
        bool(entries) or not any(mark in first for mark in b",;\t")
    )


def _of_svmlight(
    file: BinaryIO, n_features: int | None, zero_based: bool, precomputed: bool
) -> Samples:
    X, y = read_svmlight(file, zero_based or precomputed)
    serials = None
    if precomputed and not zero_based:
        serials, X = X[:, 0].toarray().ravel(), X[:, 1:]
    if n_features is not None and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)
    has_serials = serials is not None and serials.any()
    return Samples(X, labels_of(y), serials=serials if has_serials else None)


def _of_arrays(found: dict[str, Any]) -> Samples:
    """Return samples from arrays X and y; a sparse X as scipy.sparse.save_npz writes it."""
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
    labeled: bool,
    names: Sequence[str] | None,
    n_features: int | None,
) -> Samples:
    """Return the samples of a table, and the column of their labels if it has one."""
    everything = range(len(table.names))
    wanted: list[int] = []
    if names is not None and table.headed and set(names) <= set(table.names):
        wanted = [table.names.index(name) for name in names]
    if n_features is not None:
        labeled = len(table.names) == n_features + 1
    at = None if label is None else table.index_of(label)
    guessed = None
    if at is None and labeled:
        others = [k for k in everything if k not in wanted]
        at = others[0] if _has_labels_first(table, others) else others[-1]
        guessed = table.names[at]
    features = wanted or [k for k in everything if k != at]
    if not features:
        raise ValueError("the table must have at least one column other than the labels")
    X = table.numbers(features)
    y = None if at is None else labels_of(table.labels(at))
    return Samples(X, y, [table.names[k] for k in features] if table.headed else None, guessed)


def _has_labels_first(table: Table, columns: list[int]) -> bool:
    """Return whether the labels are in the first of some columns, rather than in the last.

    A column of text can only be labels. If both columns have text, or neither, the labels are in
    the first one only if it is named like labels and the last is not.
    """
    first, last = columns[0], columns[-1]
    if table.is_text(first) != table.is_text(last):
        return table.is_text(first)
    named = [table.headed and table.names[k].lower() in LABEL_NAMES for k in (first, last)]
    return named == [True, False]


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
