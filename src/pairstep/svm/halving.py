"""Successive halving: score many candidates on few samples, then the best of them on more.

See Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
(AISTATS 2016), and scikit-learn's HalvingGridSearchCV.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..constraints import Indices
from .cross_validation import Candidate

# Each round keeps one candidate in FACTOR, and uses FACTOR times as many samples as the round
# before. 3 is scikit-learn's default.
FACTOR = 3
# Samples of the first round: scores on fewer samples say little about the candidates.
MIN_SAMPLES = 300
# With more rounds, a search is faster, but the first round uses a smaller fraction of the samples
# (a ninth with 3 rounds) and more often drops the best candidate.
MAX_ROUNDS = 3


def plan(candidates: int, samples: int, halving: bool) -> list[tuple[int, int]]:
    """Return the numbers of candidates and of samples of each round."""
    rounds = [(candidates, samples)]
    while halving and len(rounds) < MAX_ROUNDS and samples >= FACTOR * MIN_SAMPLES:
        samples = math.ceil(samples / FACTOR)
        rounds = [(candidates, samples)] + [
            (math.ceil(some / FACTOR), more) for some, more in rounds
        ]
    return rounds


def shuffled(y: Any, classes: bool, random_state: Any) -> Indices:
    """Return all samples in random order; with classes, every prefix is stratified."""
    order: Indices = check_random_state(random_state).permutation(len(y))
    if not classes:
        return order
    _, label, sizes = np.unique(np.ravel(y), return_inverse=True, return_counts=True)
    label = label[order]
    by_class = np.argsort(label, kind="stable")
    before = np.empty(len(order))  # number of samples of the same class before each sample
    before[by_class] = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[label[by_class]]
    order = order[np.argsort(before / sizes[label], kind="stable")]
    return order


def best_of(candidates: list[Candidate], scores: list[Any]) -> list[Candidate]:
    """Return the candidates of the next round, in the order of the grid."""
    better = np.argsort(np.nan_to_num(np.negative(scores), nan=math.inf), kind="stable")
    return [candidates[k] for k in np.sort(better[: math.ceil(len(candidates) / FACTOR)])]
