"""Arrays that live on a GPU, CuPy's or PyTorch's: taken in, and results given back in kind.

As scikit-learn's array API convention has it, except that what a fit learns is kept in NumPy
arrays: so a machine can be pickled, and loaded where there is no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..extras import needed

CUDA = 2  # as DLPack numbers devices

# Whether the call under way was given arrays on a device.
given_on_device: ContextVar[bool] = ContextVar("given_on_device", default=False)

Method = TypeVar("Method", bound=Callable[..., Any])


def is_on_device(array: Any) -> bool:
    """Whether an array is in the memory of an NVIDIA GPU."""
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and where()[0] == CUDA


def to_host(array: Any) -> Any:
    """An array as NumPy's; what is on no device as it is."""
    if not is_on_device(array):
        return array
    return needed("cupy", by="an array on a GPU").from_dlpack(array).get()


def like(array: Any, result: Any) -> Any:
    """A result of numbers as an array of the same kind; anything else as it is."""
    if not (isinstance(result, np.ndarray) and result.dtype.kind in "biuf"):
        return result
    library = sys.modules[type(array).__module__.partition(".")[0]]
    return library.from_dlpack(needed("cupy", by="an array on a GPU").asarray(result))


def from_anywhere(method: Method) -> Method:
    """Let a method of a machine, whose first argument is X, take arrays on a device."""

    @wraps(method)
    def taking_any(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if not is_on_device(X):
            return method(self, X, *arguments, **named)
        token = given_on_device.set(True)
        try:
            result = method(
                self, to_host(X), *map(to_host, arguments),
                **{name: to_host(value) for name, value in named.items()},
            )  # fmt: skip
        finally:
            given_on_device.reset(token)
        return like(X, result)

    return taking_any  # type: ignore[return-value]
