"""Successive halving: many candidates on few samples first, the best of them on more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..constraints import Indices
from .cross_validation import Candidate

# So many times fewer candidates go on to so many times more samples, which are at least so many in
# the first of at most so many rounds.
FACTOR = 3
FEWEST = 300
ROUNDS = 3


def plan(candidates: int, samples: int, halving: bool) -> list[tuple[int, int]]:
    """How many candidates are scored on how many samples, round by round."""
    rounds = [(candidates, samples)]
    while halving and len(rounds) < ROUNDS and samples >= FACTOR * FEWEST:
        samples = math.ceil(samples / FACTOR)
        rounds = [(candidates, samples)] + [
            (math.ceil(some / FACTOR), more) for some, more in rounds
        ]
    return rounds


def drawn(y: Any, classes: bool, random_state: Any) -> Indices:
    """All samples in random order; of classes every beginning has its share, and at least one."""
    order: Indices = check_random_state(random_state).permutation(len(y))
    if not classes:
        return order
    _, label, sizes = np.unique(np.ravel(y), return_inverse=True, return_counts=True)
    label = label[order]
    by_class = np.argsort(label, kind="stable")
    before = np.empty(len(order))  # how many of its class come before a sample
    before[by_class] = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[label[by_class]]
    order = order[np.argsort(before / sizes[label], kind="stable")]
    return order


def best_of(candidates: list[Candidate], scores: list[Any]) -> list[Candidate]:
    """Those that go on to the next round, in the order of the grid."""
    better = np.argsort(np.nan_to_num(np.negative(scores), nan=math.inf), kind="stable")
    return [candidates[k] for k in np.sort(better[: math.ceil(len(candidates) / FACTOR)])]
