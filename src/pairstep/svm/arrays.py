"""CuPy and PyTorch arrays on a GPU as arguments and results of the estimators.

This follows scikit-learn's array API convention, except that fitted attributes are NumPy arrays.
A fitted estimator can therefore be pickled, and loaded on a computer without a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..extras import needed

CUDA = 2  # code for CUDA devices in the DLPack standard (kDLCUDA)

# The number of the GPU that the arguments of the current call are on; `device="auto"` uses it.
given_on_device: ContextVar[int | None] = ContextVar("given_on_device", default=None)

Method = TypeVar("Method", bound=Callable[..., Any])


def is_on_device(array: Any) -> bool:
    """Return whether an array is in the memory of an NVIDIA GPU."""
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and where()[0] == CUDA


def to_host(array: Any) -> Any:
    """Return a GPU array as a NumPy array, and anything else unchanged."""
    if not is_on_device(array):
        return array
    return needed("cupy", by="an array on a GPU").from_dlpack(array).get()


def like(array: Any, result: Any) -> Any:
    """Return a numeric result as an array of the same library, and anything else unchanged."""
    if not (isinstance(result, np.ndarray) and result.dtype.kind in "biuf"):
        return result
    library = sys.modules[type(array).__module__.partition(".")[0]]
    return library.from_dlpack(needed("cupy", by="an array on a GPU").asarray(result))


def from_anywhere(method: Method) -> Method:
    """Let a method of an estimator, whose first argument is X, take arrays on a GPU."""

    @wraps(method)
    def with_gpu_arrays(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if not is_on_device(X):
            return method(self, X, *arguments, **named)
        token = given_on_device.set(int(X.__dlpack_device__()[1]))
        try:
            result = method(
                self, to_host(X), *map(to_host, arguments),
                **{name: to_host(value) for name, value in named.items()},
            )  # fmt: skip
        finally:
            given_on_device.reset(token)
        return like(X, result)

    return with_gpu_arrays  # type: ignore[return-value]


def chosen_device(device: str, kernel: Any) -> Any:
    """Return the GPU to use, or None for the CPU.

    A kernel that is a function computes its matrix on the CPU, so the fit and the decisions use the
    CPU too.
    """
    if callable(kernel):
        return None
    if device == "auto":
        number = given_on_device.get()
    elif device == "cpu":
        number = None
    else:
        number = int(device.partition(":")[2] or 0)
    if number is None:
        return None
    from ..gpu.device import Cuda

    return Cuda(number)


def device_of_search(device: str, kernel: Any, size: int) -> Any:
    """Return the GPU for a search whose largest dual has `size` variables, or None for the CPU."""
    if device == "cpu" or kernel == "precomputed":
        return None
    from ..gpu.svm import MIN_SEARCH_SIZE

    return None if size < MIN_SEARCH_SIZE else chosen_device(device, kernel)
