"""Checks of arguments. Every error message names the argument and the offending numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

Array = NDArray[np.float64]

# Largest size of a number in an argument: products of three such numbers, as in x'Qx, stay finite
# in float64. A bound of at least this size counts as infinite.
LARGE = 1e100
LARGE_FACTOR = 1e50  # the same for numbers that are squared: A, b, F and coefficients


def array(name: str, value: ArrayLike, ndim: int) -> Array:
    """Return `value` as a contiguous float64 array of the given number of dimensions."""
    raw = as_given(name, value)
    if raw.dtype != np.float64 and raw.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got an array of dtype {raw.dtype}")
    if raw.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {raw.shape}")
    return np.ascontiguousarray(raw, np.float64)


def as_given(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return `value` as an array of any dtype."""
    try:
        return np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None


def require_finite(name: str, values: Array, limit: float = math.inf) -> float:
    """Raise if any entry is NaN, infinite, or beyond the limit in size; return the largest size."""
    # The native function makes one pass without a temporary array.
    flat = values.reshape(-1)
    largest = _core.largest(flat)
    if largest <= limit:
        return largest
    good = np.isfinite(flat) & (np.abs(flat) <= limit)
    if good.all():
        return float(np.abs(flat).max(initial=0.0))
    at = int(np.argmin(good))
    place = ", ".join(str(int(k)) for k in np.unravel_index(at, values.shape))
    if math.isfinite(flat[at]):
        raise ValueError(too_large(f"{name}[{place}]", flat[at], limit))
    raise ValueError(f"{name} must be finite, but {name}[{place}] = {flat[at]}")


def too_large(name: str, value: float, limit: float) -> str:
    """Return the message for a number beyond the limit."""
    number, most = numbers_for_message(value, limit)
    return f"{name} = {number} is beyond {most} in size, where products overflow: scale it down"


def numbers_for_message(*values: Any, digits: str = "g") -> list[str]:
    """Format numbers for a message, with all digits if different ones would look alike."""
    numbers = [float(value) for value in values]
    printed = [f"{number:{digits}}" for number in numbers]
    collide = len(set(printed)) < len(set(numbers))
    return [repr(number) for number in numbers] if collide else printed


def vector(
    name: str,
    value: ArrayLike,
    n: int | None = None,
    infinite: bool = False,
    limit: float = math.inf,
) -> Array:
    """Return `value` as a vector, of length n if given."""
    result = array(name, value, 1)
    if n is not None:
        of_length(name, result, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result, limit)
    return result


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy."""
    result = values.copy()
    result.flags.writeable = False
    return result


def read_only(value: Any) -> Any:
    """Return a read-only view of an array; anything else unchanged."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def of_length(name: str, values: Array, n: int) -> Array:
    """Return `values`, after checking that there are n of them."""
    if len(values) != n:
        raise ValueError(f"{name} must have length {n}, got {len(values)}")
    return values


def require_no_nan(name: str, values: Array) -> None:
    """Raise if any entry is NaN."""
    if np.isnan(values).any():
        raise ValueError(f"{name}[{int(np.argmax(np.isnan(values)))}] is NaN")


def number_or_vector(name: str, value: ArrayLike) -> float | Array:
    """Return a number as a float, after checking it for NaN, or an array as a read-only vector."""
    if isinstance(value, (int, float)) or as_given(name, value).ndim == 0:
        return finite_number(name, value, infinite=True)
    return frozen(array(name, value, 1))


def full_array(name: str, value: ArrayLike, n: int) -> Array:
    """Return `value` as an array of length n; a number is repeated. Entries are not checked."""
    if isinstance(value, (int, float)) or np.ndim(value) == 0:
        return np.full(n, finite_number(name, value, infinite=True))
    return of_length(name, array(name, value, 1), n)


def full_vector(
    name: str, value: ArrayLike, n: int, infinite: bool = False, limit: float = math.inf
) -> Array:
    """Return `value` as a vector of length n; a number is repeated."""
    result = full_array(name, value, n)
    if infinite:
        require_no_nan(name, result)
    else:
        require_finite(name, result, limit)
    return result


def finite_number(name: str, value: object, infinite: bool = False) -> float:
    """Return `value` as a float that is not NaN, and finite unless `infinite`."""
    if type(value) is not float:
        raw = np.asarray(value)
        if raw.ndim != 0 or raw.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be a real number, got {value!r}")
        value = float(raw)
    if math.isnan(value) or (math.isinf(value) and not infinite):
        raise ValueError(f"{name} must be {'a number' if infinite else 'finite'}, got {value}")
    return value


def positive_number(name: str, value: float) -> float:
    """Return `value`, after checking that it is above 0."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value:g}")
    return value


def unexpected_keywords(function: str, given: Iterable[str]) -> TypeError:
    """Return the error for keyword arguments that a function does not have."""
    name = next(iter(given))
    if name == "weights":
        return TypeError(
            f"{function} has no argument 'weights': use coefficients= for the coefficients of the "
            "constraint; pass current holdings as x0= to start from them, or as center= with l1= "
            "to stay close to them"
        )
    return TypeError(f"{function} got an unexpected keyword argument {name!r}")


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """Return `value` if it is one of the options; otherwise raise and suggest the nearest."""
    if isinstance(value, str) and value in options:
        return value
    import difflib  # takes 4 ms, and is only needed after an error

    near = difflib.get_close_matches(str(value), list(options), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown {name} {value!r}; {hint}The options are {', '.join(options)}")


def checked_constants(lipschitz: ArrayLike, n: int) -> Array:
    """Return n coordinate-wise Lipschitz constants, checked to be finite and positive."""
    constants = full_array("lipschitz", lipschitz, n)
    if n and not (constants.min() > 0 and constants.max() < np.inf):
        require_finite("lipschitz", constants)
        i = int(np.argmin(constants))
        raise ValueError(
            f"lipschitz constants must be positive, but lipschitz[{i}] = {constants[i]:g}"
        )
    return constants
