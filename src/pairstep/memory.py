"""How much memory is free, for parameters whose value is "auto"."""

from __future__ import annotations

import ctypes
import functools
import os
import time
from pathlib import Path

from . import threads

# Fraction of the free memory that `cache_size="auto"` stands for. The data, their copies and other
# programs need the rest.
CACHE_FRACTION = 0.25
# At least this much, which is scikit-learn's default.
MIN_CACHE_BYTES = 200 * 2**20

CGROUP = Path("/sys/fs/cgroup")
# Files with the limit and the use of memory, in cgroup version 2 and 1.
CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


def automatic_cache_bytes() -> int:
    """Return the memory that ``cache_size="auto"`` stands for.

    It is a quarter of the free memory, divided among the processes of this computer if this process
    may only use some of its CPUs, as a worker of joblib does. It is rounded down to a power of two,
    so that it rarely differs between two fits.
    """
    return _cache_bytes(int(time.monotonic()))


@functools.lru_cache(maxsize=1)
def _cache_bytes(second: int) -> int:
    """Return the same, computed once per second: reading the files takes as long as a small fit."""
    share = CACHE_FRACTION * threads.allowed() / (os.cpu_count() or 1)
    wanted = max(int(share * free_bytes()), 1)
    return max(1 << (wanted.bit_length() - 1), MIN_CACHE_BYTES)


def free_bytes() -> int:
    """Return the memory that this process may still take, within the limits of its cgroup.

    Pages that the system keeps for files count as free. Returns 0 if the system does not say.
    """
    return min(_free_on_computer(), *(_left_in_cgroup(*names) for names in CGROUP_FILES))


def _free_on_computer() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 2**10
    except OSError:
        pass
    if os.name == "nt":
        return _free_on_windows()
    try:  # macOS does not say how much is free; half of all is a guess
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 0


def _left_in_cgroup(limit: str, used: str, stat: str) -> int:
    """Return what is left of the limit of this process's cgroup; a huge number without a limit."""
    try:
        most, now = ((CGROUP / name).read_text().strip() for name in (limit, used))
        if most == "max":
            return 2**62
        counts = dict(line.split() for line in (CGROUP / stat).read_text().splitlines())
        return max(int(most) - int(now) + int(counts.get("inactive_file", 0)), 0)
    except (OSError, ValueError):
        return 2**62


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_ulong),
        ("load", ctypes.c_ulong),
        ("total_physical", ctypes.c_ulonglong),
        ("free_physical", ctypes.c_ulonglong),
        ("total_page_file", ctypes.c_ulonglong),
        ("free_page_file", ctypes.c_ulonglong),
        ("total_virtual", ctypes.c_ulonglong),
        ("free_virtual", ctypes.c_ulonglong),
        ("free_extended", ctypes.c_ulonglong),
    )


def _free_on_windows() -> int:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    windll = getattr(ctypes, "windll", None)
    if windll is None or not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return 0
    return int(status.free_physical)
