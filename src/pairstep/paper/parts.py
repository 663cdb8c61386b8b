"""Measure parts of experiments in parallel, and keep the finished ones.

A part is a function of this package with its parameters. Its results are written to a separate file
in one step, and the file is named after a hash of the code and the parameters. So an interrupted
run leaves only finished parts, a rerun continues from them, and a part that two figures use is
measured once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..extras import needed
from ..files import write_at_once
from .workers import in_parallel

threadpool_limits = needed("threadpoolctl", by="reproduce").threadpool_limits

# Files of this folder that the measurements of several modules use.
SHARED = "problems.py", "races.py", "baselines.py", "bounded.py", "support_vectors.py"
Measured = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Part:
    """One measurement.

    Attributes
    ----------
    measure : callable
        A function at the top level of its module.
    parameters : tuple of (name, value)
        Its keyword arguments.
    alone : bool
        Whether nothing else may run at the same time, because its times matter.
    """

    measure: Callable[..., Measured]
    parameters: tuple[tuple[str, str | int | float | bool], ...]
    alone: bool = False

    @property
    def key(self) -> str:
        """A hash of the code and the parameters."""
        source = inspect.getsourcefile(self.measure) or ""
        called = [fingerprint(source), self.measure.__qualname__, self.parameters]
        return hashlib.sha256(json.dumps(called).encode()).hexdigest()[:24]

    def __str__(self) -> str:
        module = self.measure.__module__.rsplit(".", 1)[-1]
        return f"{module} " + " ".join(f"{k}={v}" for k, v in self.parameters)


def part(
    measure: Callable[..., Measured], alone: bool = False, **parameters: str | int | float | bool
) -> Part:
    """Return a measurement of a function with these parameters."""
    return Part(measure, tuple(sorted(parameters.items())), alone)


class Results(Mapping[Part, Measured]):
    """The measurements, read from disk on access."""

    def __init__(self, paths: dict[Part, Path]):
        self._paths = paths

    def __getitem__(self, part: Part) -> Measured:
        with np.load(self._paths[part]) as file:
            return dict(file)

    def __iter__(self) -> Iterator[Part]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def run(
    parts: Iterable[Part], folder: Path, done: Callable[[str], None] = lambda label: None
) -> Results:
    """Measure the parts that are not finished yet, on any joblib backend.

    Parameters
    ----------
    parts : iterable of Part
        What to measure. Duplicates are measured once.
    folder : Path
        Where finished parts are kept.
    done : callable
        Called with the name of each part when it is finished.

    Returns
    -------
    Results
        The measurements of all parts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {p: folder / f"{p.key}.npz" for p in parts}
    pending = []
    for p, path in paths.items():
        if path.exists():
            done(str(p))
        else:
            pending.append(p)
    together = [(p, paths[p]) for p in pending if not p.alone]
    with threadpool_limits(1):  # for backends that run parts in threads of this process
        in_parallel(measure_and_keep, together, lambda p: done(str(p)))
    for p in pending:
        if p.alone:
            done(str(measure_and_keep(p, paths[p])))
    return Results(paths)


def measure_and_keep(part: Part, path: Path) -> Part:
    """Measure a part and write its file.

    It runs on one thread, so that its results do not depend on the backend.
    """
    with threadpool_limits(1):
        measured = part.measure(**dict(part.parameters))
    buffer = io.BytesIO()
    np.savez(buffer, **measured)  # type: ignore[arg-type]
    write_at_once(path, buffer.getvalue())
    return part


@cache
def fingerprint(source: str) -> str:
    """Return a hash of the code that a measurement depends on: the package and its own file."""
    here = Path(__file__).parent
    commands = here.with_name("cli")
    package = [p for p in here.parent.rglob("*.py") if not {here, commands} & set(p.parents)]
    shared = [here / name for name in SHARED]
    core = importlib.util.find_spec("pairstep._core")
    native = [Path(core.origin)] if core and core.origin else []
    digest = hashlib.sha256(__version__.encode())
    for path in sorted({*package, *shared, *native, Path(source)}):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
