"""Checks of arguments. Every message names the argument and the offending numbers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def array(name: str, value: ArrayLike, ndim: int) -> Array:
    """`value` as a contiguous float64 array of the given number of dimensions."""
    try:
        raw = np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
    if raw.dtype != np.float64 and raw.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got an array of dtype {raw.dtype}")
    if raw.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {raw.shape}")
    return np.ascontiguousarray(raw, np.float64)


def require_finite(name: str, values: Array) -> None:
    """Raise if any entry is NaN or infinite."""
    # One reduction instead of a temporary: the sum of squares is finite for all sane input.
    flat = values.reshape(-1)
    with np.errstate(over="ignore"):
        square = float(flat @ flat)
    if math.isfinite(square) or np.isfinite(flat).all():
        return
    at = int(np.argmin(np.isfinite(flat)))
    place = ", ".join(str(int(k)) for k in np.unravel_index(at, values.shape))
    raise ValueError(f"{name} must be finite, but {name}[{place}] = {flat[at]}")


def vector(name: str, value: ArrayLike, n: int | None = None, infinite: bool = False) -> Array:
    """`value` as a vector, of length n if given."""
    result = array(name, value, 1)
    if n is not None:
        of_length(name, result, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result)
    return result


def of_length(name: str, values: Array, n: int) -> Array:
    """`values` if there are n of them."""
    if len(values) != n:
        raise ValueError(f"{name} must have length {n}, got {len(values)}")
    return values


def require_no_nan(name: str, values: Array) -> None:
    """Raise if any entry is NaN."""
    if np.isnan(values).any():
        raise ValueError(f"{name}[{int(np.argmax(np.isnan(values)))}] is NaN")


def full_array(name: str, value: ArrayLike, n: int) -> Array:
    """`value` as an array of length n, a number standing for n equal entries; not checked."""
    if isinstance(value, (int, float)) or np.ndim(value) == 0:
        return np.full(n, finite_number(name, value, infinite=True))
    return of_length(name, array(name, value, 1), n)


def full_vector(name: str, value: ArrayLike, n: int, infinite: bool = False) -> Array:
    """`value` as a vector of length n, a number standing for n equal entries."""
    result = full_array(name, value, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result)
    return result


def finite_number(name: str, value: object, infinite: bool = False) -> float:
    """`value` as a float, not NaN, and finite unless `infinite`."""
    if type(value) is not float:
        raw = np.asarray(value)
        if raw.ndim != 0 or raw.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be a real number, got {value!r}")
        value = float(raw)
    if math.isnan(value) or (math.isinf(value) and not infinite):
        raise ValueError(f"{name} must be {'a number' if infinite else 'finite'}, got {value}")
    return value


def positive_number(name: str, value: float) -> float:
    """`value` if it is above 0."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value:g}")
    return value


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of the options; otherwise an error that suggests the nearest."""
    if isinstance(value, str) and value in options:
        return value
    near = difflib.get_close_matches(str(value), list(options), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown {name} {value!r}; {hint}The options are {', '.join(options)}")
