"""How many threads native loops may use.

`n_jobs=None`, the default everywhere, means all that are available: one inside a worker of joblib,
and what `joblib.parallel_config(n_jobs=...)` says inside it. Available are those of the process's
affinity and cgroup, within OMP_NUM_THREADS and `threadpoolctl.threadpool_limits`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

START = 2**21  # multiplications that take as long as to start a thread

_limit: int | None = None  # what threadpoolctl was asked for
_asked: ContextVar[int | None] = ContextVar("n_jobs", default=None)  # by whom work is done now


def available() -> int:
    """The processors this work may use: the process's, and what threadpoolctl and callers allow."""
    limits = (limit for limit in (_limit, _asked.get()) if limit is not None)
    return min([allowed(), *limits])


def allowed() -> int:
    """The processors of this process: its affinity, its cgroup and OMP_NUM_THREADS.

    joblib sets OMP_NUM_THREADS in its workers, so nested parallelism does not oversubscribe.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = count or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        if quota != "max":
            limit = min(limit, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no cgroup, or not of this kind
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        limit = min(limit, int(asked))
    return limit


def count(n_jobs: int | None, multiplications: float = math.inf) -> int:
    """As many threads as `n_jobs` asks for, at most as many as are available.

    Negative numbers count from all, as joblib has it: -1 is all, -2 all but one. One, if there are
    so few multiplications to do that to start another would take as long.
    """
    little = multiplications < 2 * START
    wanted = _configured() if n_jobs is None and not little else n_jobs
    if wanted == 0:
        raise ValueError("n_jobs must not be 0")
    if little:
        return 1
    most = available()
    if wanted is None:
        return most
    return min(max(wanted if wanted > 0 else most + 1 + wanted, 1), most)


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[int | None]:
    """Give all work that is done within as many threads as `n_jobs` asks for; says how many."""
    workers = None if n_jobs is None else count(n_jobs)
    before = _asked.set(workers)
    try:
        yield workers
    finally:
        _asked.reset(before)


def worth(multiplications: float) -> int:
    """As many as so much work is worth."""
    return min(int(max(multiplications / START, 1)), count(None, multiplications))


def _configured() -> int | None:
    """What joblib says of `n_jobs=None`, where it is loaded; 1 inside one of its workers."""
    joblib = sys.modules.get("joblib")
    if joblib is None:
        return None
    backend, n_jobs = joblib.parallel.get_active_backend()
    return 1 if n_jobs is None and backend.nesting_level else n_jobs


try:
    from threadpoolctl import LibController, register
except ImportError:
    pass  # then nobody can limit threads by it
else:

    class _Threads(LibController):  # type: ignore[misc]
        """Makes `threadpool_limits` hold here, and `threadpool_info` tell so."""

        user_api = "openmp"  # as OMP_NUM_THREADS is
        internal_api = "pairstep"
        filename_prefixes = ("_core",)
        check_symbols = ("pairstep_threads",)

        def get_num_threads(self) -> int:
            return available()

        def set_num_threads(self, num_threads: int) -> None:
            global _limit
            _limit = num_threads if num_threads < allowed() else None

        def get_version(self) -> None:
            return None

    register(_Threads)
