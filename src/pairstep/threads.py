"""How many threads native loops may use."""

from __future__ import annotations

import os
from pathlib import Path


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


def worth(multiplications: float) -> int:
    """As many as so much work is worth: to start a thread costs about two million."""
    wanted = int(multiplications / 2**21)
    return 1 if wanted < 2 else min(wanted, available())
