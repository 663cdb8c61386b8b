"""Scores of an unfinished search in a file, so that the search can be continued."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

Candidate = tuple[tuple[str, Any], ...]
Cell = tuple[Candidate, int]


class Checkpoint(MutableMapping[Cell, float]):
    """Scores by candidate and split, each of which is on the disk as soon as it is known.

    Each score is appended to a file as a line of JSON. A search that is killed and run again with
    the same checkpoint continues where it stopped. Lines that cannot be read are ignored.

    Parameters
    ----------
    path : path
        The file, which is created if it does not exist. Several searches may share it.
    search : str
        Identifies the search, for example by its `fingerprint`. Scores of other searches are
        ignored.
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
            split, score = entry["split"], entry["score"]
            if type(split) is not int or type(score) not in (int, float):
                raise TypeError("a split must be an integer, and a score must be a number")
            cell = tuple(map(tuple, entry["candidate"])), split
            if entry["search"] == self._search:
                self._scores[cell] = float(score)
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            pass  # an incomplete line, or one that no search has written

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
        raise TypeError("scores of a checkpoint cannot be deleted")

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)


def fingerprint(X: Any, y: Any, *rest: object) -> str:
    """Return a hash of the data and of everything else that determines the scores."""
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
