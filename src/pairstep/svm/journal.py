"""What a search has found so far, in a file that outlives it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

Candidate = tuple[tuple[str, Any], ...]
Cell = tuple[Candidate, int]


class Journal(MutableMapping[Cell, float]):
    """Scores by candidate and split, each on the disk as soon as it is known.

    A line of JSON per score is appended to a file. A search that is killed and run again with the
    same journal goes on where it was; a last line that is not whole is as if it were not there.

    Parameters
    ----------
    path : path
        The file; made if need be. Several searches may share it.
    search : str
        What the scores belong to, such as `fingerprint` gives: those of others are left alone.
    """

    def __init__(self, path: str | os.PathLike[str], search: str):
        self._path, self._search = path, search
        self._scores: dict[Cell, float] = {}
        content = Path(path).read_bytes() if Path(path).exists() else b""
        for line in content.splitlines():
            self._read(line)
        self._append(b"" if not content or content.endswith(b"\n") else b"\n")

    def _read(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            cell = tuple(map(tuple, entry["candidate"])), int(entry["split"])
            if entry["search"] == self._search:
                self._scores[cell] = float(entry["score"])
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # it was never finished

    def __getitem__(self, cell: Cell) -> float:
        return self._scores[cell]

    def __setitem__(self, cell: Cell, score: float) -> None:
        candidate, split = cell
        entry = {"search": self._search, "candidate": candidate, "split": split, "score": score}
        self._append(json.dumps(entry, default=_number).encode() + b"\n")
        self._scores[cell] = score

    def _append(self, line: bytes) -> None:
        with open(self._path, "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def __delitem__(self, cell: Cell) -> None:
        raise TypeError("what a journal says is not taken back")

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)


def fingerprint(X: Any, y: Any, *rest: object) -> str:
    """A name for data and whatever else decides about scores."""
    digest = hashlib.sha256(repr(rest).encode())
    digest.update(repr(X.shape).encode())
    arrays = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    for array in (*arrays, y):
        plain = np.ascontiguousarray(array)
        digest.update(f"{plain.dtype} {plain.shape}".encode())
        digest.update(plain.data if plain.dtype.kind != "U" else plain.tobytes())
    return digest.hexdigest()[:24]


def _number(value: Any) -> Any:
    return value.item()
