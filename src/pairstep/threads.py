"""How many threads native loops use.

``n_jobs=None``, the default everywhere, means all available threads: one inside a joblib worker, or
the number set by ``joblib.parallel_config(n_jobs=...)``. Available threads are limited by the
process's CPU affinity and cgroup, by OMP_NUM_THREADS and by ``threadpoolctl.threadpool_limits``.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# Number of multiplications per thread below which starting the thread would take longer than the
# work.
MULTIPLICATIONS_PER_START = 2**21
# Microseconds of work from which a second thread saves more than the 20 to 100 microseconds that it
# takes to start and to end.
MICROSECONDS_PER_START = 300.0

_limit: int | None = None  # set by threadpoolctl
_requested: ContextVar[int | None] = ContextVar("n_jobs", default=None)  # set by `at_most`


def available() -> int:
    """Return the number of CPUs this work may use, with the limits of threadpoolctl and callers."""
    limits = (limit for limit in (_limit, _requested.get()) if limit is not None)
    return min([allowed(), *limits])


def allowed() -> int:
    """Return the number of CPUs of this process: affinity, cgroup and OMP_NUM_THREADS.

    joblib sets OMP_NUM_THREADS in its workers, so nested parallelism does not oversubscribe the
    CPUs.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = count or 1
    limit = min(limit, _cgroup_limit(int(time.monotonic())))
    requested = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if requested.isdigit() and int(requested) > 0:
        limit = min(limit, int(requested))
    return limit


@functools.lru_cache(maxsize=1)
def _cgroup_limit(second: int) -> int:
    """Return the CPUs that the cgroup allows, read once per second: opening a file takes 30 us."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        return sys.maxsize if quota == "max" else max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return sys.maxsize  # no cgroup, or cgroup version 1


def count(n_jobs: int | None, multiplications: float = math.inf) -> int:
    """Return the number of threads for `n_jobs`, at most those available.

    Negative numbers count from the end, as in joblib: -1 is all, -2 is all but one. The result is 1
    if there are too few multiplications to keep two threads busy.
    """
    too_little = multiplications < 2 * MULTIPLICATIONS_PER_START
    number = _configured() if n_jobs is None and not too_little else n_jobs
    if number == 0:
        raise ValueError("n_jobs must not be 0: use 1 for one thread, -1 for all")
    if too_little:
        return 1
    most = available()
    if number is None:
        return most
    return min(max(number if number > 0 else most + 1 + number, 1), most)


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[int | None]:
    """Limit all work inside the context to the threads of `n_jobs`; yields their number."""
    workers = None if n_jobs is None else count(n_jobs)
    before = _requested.set(workers)
    try:
        yield workers
    finally:
        _requested.reset(before)


def for_work(multiplications: float) -> int:
    """Return the number of threads that are worth starting for this much work."""
    return min(
        int(max(multiplications / MULTIPLICATIONS_PER_START, 1)), count(None, multiplications)
    )


def for_microseconds(work: float) -> int:
    """Return the number of threads for work that takes this long in one thread."""
    return count(None) if work > MICROSECONDS_PER_START else 1


def _configured() -> int | None:
    """Return joblib's value for `n_jobs=None`, if it is loaded; 1 inside one of its workers."""
    joblib = sys.modules.get("joblib")
    if joblib is None:
        return None
    backend, n_jobs = joblib.parallel.get_active_backend()
    return 1 if n_jobs is None and backend.nesting_level else n_jobs


try:
    from threadpoolctl import LibController, register
except ImportError:
    pass  # no threadpoolctl, so no limits from it
else:

    class _Threads(LibController):  # type: ignore[misc]
        """Makes `threadpool_limits` and `threadpool_info` work for pairstep."""

        user_api = "openmp"  # so that limits on OpenMP threads apply to pairstep, too
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
