"""Products without rounding errors, and bounds on rounding errors."""

from __future__ import annotations

import math

import numpy as np

from .._validation import Array

EPS = float(np.finfo(float).eps)
# Numbers processed at a time: 512 KiB, so that temporary arrays stay in the CPU cache.
NUMBERS_PER_BLOCK = 1 << 16
# Veltkamp's constant: it splits a float64 into two halves of 26 bits, whose products are exact.
SPLITTER = 2.0**27 + 1


def _split(a: Array) -> tuple[Array, Array]:
    high = SPLITTER * a
    high = high - (high - a)
    return high, a - high


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product and its exact rounding error (Dekker), barring underflow."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = a_high * b_high - product + a_high * b_low + a_low * b_high + a_low * b_low
    return product, np.asarray(error)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its exact rounding error (Knuth)."""
    total = a + b
    other = total - a
    return total, np.asarray((a - (total - other)) + (b - other))


def precise_product(A: Array, T: Array) -> Array:
    """Return ``A T`` as if computed in twice the precision (Dot2 of Ogita, Rump and Oishi).

    Inner products keep their digits for a cancellation of up to about 1e16.
    """
    result = np.empty((len(A), T.shape[1]))
    for rows in blocks(len(A), T.shape[1]):
        total = np.zeros((rows.stop - rows.start, T.shape[1]))
        rest = np.zeros_like(total)
        for k in range(A.shape[1]):
            product, product_error = two_product(A[rows, k, None], T[k])
            total, sum_error = two_sum(total, product)
            rest += product_error + sum_error
        result[rows] = total + rest
    return result


def blocks(m: int, n: int) -> list[slice]:
    """Return slices of the rows of an m x n matrix, with about `NUMBERS_PER_BLOCK` numbers each."""
    size = max(1, NUMBERS_PER_BLOCK // max(n, 1))
    return [slice(begin, min(begin + size, m)) for begin in range(0, m, size)]


def signs_of_products(A: Array, d: Array) -> Array:
    """Return the exact signs of ``a_i'd`` for the rows of A.

    If all exact products of a row underflow, its sign is 0.
    """
    signs = np.empty(len(A))
    some = np.flatnonzero(d)
    step = d[some]
    for rows in blocks(*A.shape):
        part = A[rows][:, some] if len(some) < len(d) else A[rows]
        sums = part @ step
        doubt = np.abs(sums) <= EPS * (len(some) + 2) * (np.abs(part) @ np.abs(step))
        signs[rows] = np.sign(sums)
        for i in np.flatnonzero(doubt):
            signs[rows.start + i] = np.sign(exact_product(part[i], step))
    return signs


def exact_product(a: Array, b: Array) -> float:
    """Return the inner product of two vectors, rounded once."""
    product, error = two_product(a, b)
    return math.fsum([*product, *error])
