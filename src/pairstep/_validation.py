"""Checks of arguments. Every message names the argument and the offending numbers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

Array = NDArray[np.float64]

# Products of three numbers, as in x'Qx, and squares of A'b stay finite up to these sizes. A bound
# of at least the first is none.
LARGE = 1e100
LARGE_FACTOR = 1e50  # for what is squared on the way: A, b, F and weights


def array(name: str, value: ArrayLike, ndim: int) -> Array:
    """`value` as a contiguous float64 array of the given number of dimensions."""
    raw = as_given(name, value)
    if raw.dtype != np.float64 and raw.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got an array of dtype {raw.dtype}")
    if raw.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {raw.shape}")
    return np.ascontiguousarray(raw, np.float64)


def as_given(name: str, value: ArrayLike) -> NDArray[Any]:
    """`value` as an array of whatever it holds."""
    try:
        return np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None


def require_finite(name: str, values: Array, limit: float = math.inf) -> None:
    """Raise if any entry is NaN, infinite, or beyond the limit in size."""
    # One pass without a temporary.
    flat = values.reshape(-1)
    if _core.largest(flat) <= limit:
        return
    good = np.isfinite(flat) & (np.abs(flat) <= limit)
    if good.all():
        return
    at = int(np.argmin(good))
    place = ", ".join(str(int(k)) for k in np.unravel_index(at, values.shape))
    if math.isfinite(flat[at]):
        raise ValueError(too_large(f"{name}[{place}]", flat[at], limit))
    raise ValueError(f"{name} must be finite, but {name}[{place}] = {flat[at]}")


def too_large(name: str, value: float, limit: float) -> str:
    """What to say of a number beyond the limit."""
    return f"{name} = {value:g} is beyond {limit:g} in size, where products overflow: scale it down"


def vector(
    name: str,
    value: ArrayLike,
    n: int | None = None,
    infinite: bool = False,
    limit: float = math.inf,
) -> Array:
    """`value` as a vector, of length n if given."""
    result = array(name, value, 1)
    if n is not None:
        of_length(name, result, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result, limit)
    return result


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can change."""
    result = values.copy()
    result.flags.writeable = False
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


def number_or_vector(name: str, value: ArrayLike) -> float | Array:
    """`value` as a float that is not NaN, or as a vector that nobody can change, not checked."""
    if isinstance(value, (int, float)) or as_given(name, value).ndim == 0:
        return finite_number(name, value, infinite=True)
    return frozen(array(name, value, 1))


def full_array(name: str, value: ArrayLike, n: int) -> Array:
    """`value` as an array of length n, a number standing for n equal entries; not checked."""
    if isinstance(value, (int, float)) or np.ndim(value) == 0:
        return np.full(n, finite_number(name, value, infinite=True))
    return of_length(name, array(name, value, 1), n)


def full_vector(
    name: str, value: ArrayLike, n: int, infinite: bool = False, limit: float = math.inf
) -> Array:
    """`value` as a vector of length n, a number standing for n equal entries."""
    result = full_array(name, value, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result, limit)
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
