"""Decisions of the models of all pairs of classes, in LIBSVM's layout."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from .. import _core, threads
from .._validation import Array
from ..constraints import Indices


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of classes, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def group_starts(n_support: Any) -> Indices:
    """Return where the support vectors of each group begin, and their number.

    The groups are the classes if there are more than two. Otherwise all support vectors belong to
    one model, and are one group.
    """
    if len(n_support) <= 2:
        return np.array([0, np.sum(n_support)])
    return np.concatenate([[0], np.cumsum(n_support, dtype=np.int64)])


def with_intercepts(sums: Array, intercept: Array) -> Array:
    """Return decisions from sums of shape (n_samples, n_outputs); a vector for one output."""
    decisions = sums + intercept
    return np.asarray(decisions.ravel() if len(intercept) == 1 else decisions)


def pair_decisions(sums: Array, intercept: Array, n_classes: int, n_jobs: int | None) -> Array:
    """Return decisions from the sums over each group of support vectors.

    There is one decision per sample for two classes, and a column per pair of classes for more.
    """
    if n_classes == 2:
        return np.asarray(sums.ravel() + intercept)
    sums = np.ascontiguousarray(sums)
    return _core.pair_decisions(sums, intercept, n_classes, threads.count(n_jobs, sums.size))


def pairs_in_order(order: Indices) -> tuple[Indices, Array]:
    """Return the index of each pair of the reordered classes, and -1 where the pair is reversed.

    The model of a reversed pair has the opposite decisions, so that its constants change sign.
    """
    k = len(order)
    first, second = (order[of] for of in np.triu_indices(k, 1))
    low, high = np.minimum(first, second), np.maximum(first, second)
    return low * (2 * k - low - 1) // 2 + high - low - 1, np.where(first < second, 1.0, -1.0)
