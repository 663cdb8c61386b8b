"""The error that is raised when the GPU runs out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .device import PAD, SLAB, Device

# Arrays with one float64 per variable that a dual has on the GPU, including those of the candidate
# selection. Only error messages use this number.
ARRAYS_PER_DUAL = 16


@contextmanager
def reporting(device: Device, work: str, least: float) -> Iterator[None]:
    """Raise a MemoryError with the memory needed and free instead of an error of CuPy or CUDA.

    Parameters
    ----------
    device : Device
        The GPU.
    work : str
        What the GPU does, for example "a fit of 10 samples".
    least : float
        A lower bound on the bytes that this needs.
    """
    try:
        yield
    except Exception as error:
        if not device.is_full(error):
            raise
        raise MemoryError(
            f"the GPU is out of memory: {work} needs at least {_written(least)}, and "
            f"{_free(device)} free. Free memory that other processes or arrays hold, or use "
            'device="cpu"'
        ) from error


def least_for_duals(sizes: list[int], shape: tuple[int, int], block_bytes: int) -> float:
    """Return a lower bound on the bytes that duals of these sizes need at the same time.

    Points that do not fit are processed in stripes, so only the smallest stripe counts.
    """
    stripe = 8.0 * PAD * (shape[1] + SLAB)
    return sum(8.0 * ARRAYS_PER_DUAL * n + min(8.0 * n * n, block_bytes) + stripe for n in sizes)


def least_for_decisions(sums: int, support: tuple[int, int], rows: int) -> float:
    """Return a lower bound on the bytes for decisions: their sums, and a stripe of points."""
    return 8.0 * sums * rows + 8.0 * 2 * PAD * (support[1] + SLAB)


def shape_of(X: Any) -> tuple[int, int]:
    """Return the shape of a matrix in the form that native code takes."""
    if isinstance(X, tuple):
        starts, _, _, features = X
        return len(starts) - 1, int(features)
    rows, columns = X.shape
    return rows, columns


def _free(device: Device) -> str:
    try:
        return f"{_written(device.free_bytes())} are"
    except Exception:  # the query itself may fail for lack of memory
        return "almost nothing is"


def _written(size: float) -> str:
    return f"{size / 2**30:.3g} GB" if size >= 2**29 else f"{size / 2**20:.3g} MB"
