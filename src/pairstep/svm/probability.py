"""Class probabilities by cross-validation within the fit, as in LIBSVM.

The model of a pair of classes is fitted five more times, each time without a fifth of its samples.
A sigmoid of the decisions on the samples left out is the probability of the first class (Platt
1999; Lin, Lin and Weng 2007). With more than two classes, the probabilities of all pairs are
coupled (Wu, Lin and Weng 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .duals import bias, hold_out
from .engine import Dual, Solution

FOLDS = 5  # as in LIBSVM


def folds(n: int, seed: int) -> list[Indices]:
    """Return the five parts of n samples that are left out in turn.

    They are the same as scikit-learn's for the same seed. With fewer than five samples, some are
    empty.
    """
    order = _core.shuffled(n, seed)
    ends = [k * n // FOLDS for k in range(FOLDS + 1)]
    return [order[begin:end] for begin, end in pairwise(ends)]


def cross_validated(dual: Dual, seed: int) -> list[Dual]:
    """Return five duals, each without one of the five parts of the samples."""
    return [hold_out(dual, part) for part in folds(len(dual.rows), seed)]


def sigmoid(
    models: Sequence[Dual],
    solutions: Sequence[Solution],
    positives: int,
    scale: Callable[[Solution], Array],
) -> tuple[float, float]:
    """Return slope and offset of the sigmoid of cross-validated decisions.

    The first `positives` rows are those of the first class. If all training samples of a model are
    of one class, its decisions are 1 for the first class and -1 for the second. The decisions of a
    model without training samples are 0.
    """
    decisions = np.zeros(len(models[0].rows))
    for model, solution in zip(models, solutions, strict=True):
        seen = model.lower < model.upper
        first, second = seen[:positives].any(), seen[positives:].any()
        if first and second:
            values = (solution.gradient - model.linear + bias(solution)) / scale(solution)
            decisions[~seen] = values[~seen]
        else:
            decisions[~seen] = float(first) - float(second)
    return _core.fit_sigmoid(decisions, positives)
