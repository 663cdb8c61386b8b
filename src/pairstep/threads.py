"""How many threads native loops and BLAS may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any


def available() -> int:
    """The processors this process may use: its affinity, its cgroup and OMP_NUM_THREADS.

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


class _Solves:
    """The solves under way that hold BLAS to one thread, and how to let it go."""

    lock = threading.Lock()
    count = 0
    limiter: Any = None


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: its small factorisations are faster so, and repeat bit by bit.

    The limit belongs to the process, so the first solve sets it and the last one lifts it.
    """
    with _Solves.lock:
        _Solves.count += 1
        if _Solves.count == 1:
            _Solves.limiter = _blas().limit(limits=1)
            _Solves.limiter.__enter__()
    try:
        yield
    finally:
        with _Solves.lock:
            _Solves.count -= 1
            if _Solves.count == 0:
                _Solves.limiter.__exit__(None, None, None)
