"""Scores of a search in a file, so that a search that was killed can be continued."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from .. import __version__
from .files import plain

Name = tuple[tuple[str, Any], ...]  # a candidate: its parameters in alphabetical order

# Parameters of an estimator that do not change the scores of a search.
WITHOUT_EFFECT = {"cache_size", "device", "n_jobs", "verbose"}


class Checkpoint:
    """Scores by candidate and split, each of which is on the disk as soon as it is known.

    Each score is appended to the file as a line of JSON, and no line is ever changed. Lines that
    cannot be read are ignored, as the last one of a process that was killed while it wrote.

    Parameters
    ----------
    path : path
        The file, which is created if it does not exist. Several searches may share it.
    search : str
        Identifies the search, see `search_id`. Scores of other searches are ignored.
    """

    def __init__(self, path: str | os.PathLike[str], search: str):
        self._path, self._search = path, search
        self.scores: dict[tuple[Name, int], float] = {}
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
            name = tuple(map(tuple, entry["candidate"]))
            if entry["search"] == self._search:
                self.scores[name, split] = float(score)
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            pass  # an incomplete line, or one that no search has written

    def add(self, name: Name, split: int, score: float) -> None:
        """Write a score to the file."""
        entry = {"search": self._search, "candidate": name, "split": split, "score": float(score)}
        self._append(json.dumps(entry).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        with open(self._path, "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def search_id(validation: Any, y: Any, params: dict[str, Any], model: Any, scoring: Any) -> str:
    """Return a hash of everything that determines the scores of a candidate.

    Raises
    ------
    ValueError
        If it is determined by a parameter that has no stable text, such as a function.
    """
    settings = {
        name: plain(name, value)
        for name, value in (model.get_params() | {"scoring": scoring}).items()
        if name not in WITHOUT_EFFECT
    }
    kinds = type(validation).__name__, type(model).__name__, __version__
    digest = hashlib.sha256(json.dumps([kinds, settings, sorted(params)]).encode())
    X, given = validation.X, [y, *(params[name] for name in sorted(params))]
    parts = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    for values in (*parts, *given, *(rows for split in validation.splits for rows in split)):
        array = np.ascontiguousarray(values)
        array = array.astype(str) if array.dtype == object else array
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.view(np.uint8).data)
    digest.update(repr(X.shape).encode())
    return digest.hexdigest()[:24]
