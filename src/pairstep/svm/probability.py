"""Probabilities of classes, as LIBSVM calibrates them: by cross-validation within the fit.

The machine of two classes is fitted five times more, each time without a fifth of its samples, and
a sigmoid of the decisions on the samples left out is the probability of the first class. With more
than two classes the probabilities of all pairs are coupled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .. import _core
from ..constraints import Indices
from .duals import bias, hold_out
from .machine import Dual, Solution

FOLDS = 5


def folds(n: int, seed: int) -> list[Indices]:
    """The five parts of n samples that are left out in turn, those of scikit-learn for this seed.

    Of fewer than five samples some parts are empty.
    """
    order = _core.shuffled(n, seed)
    ends = [k * n // FOLDS for k in range(FOLDS + 1)]
    return [order[begin:end] for begin, end in pairwise(ends)]


def cross_validated(dual: Dual, seed: int) -> list[Dual]:
    """The dual without each of its parts."""
    return [hold_out(dual, part) for part in folds(len(dual.rows), seed)]


def sigmoid(
    machines: Sequence[Dual],
    solutions: Sequence[Solution],
    positives: int,
    scale: Callable[[Solution], float],
) -> tuple[float, float]:
    """Slope and offset of the sigmoid of the decisions of cross-validated machines.

    The first `positives` rows are those of the first class. A machine that saw samples of one class
    only decides for it, by 1; one that saw none cannot decide.
    """
    decisions = np.zeros(len(machines[0].rows))
    for machine, solution in zip(machines, solutions, strict=True):
        seen = machine.lower < machine.upper
        first, second = seen[:positives].any(), seen[positives:].any()
        if first and second:
            values = (solution.gradient - machine.linear + bias(solution)) / scale(solution)
            decisions[~seen] = values[~seen]
        else:
            decisions[~seen] = float(first) - float(second)
    return _core.fit_sigmoid(decisions, positives)
