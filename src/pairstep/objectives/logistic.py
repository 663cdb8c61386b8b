"""Logistic loss of a weighted average of scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._validation import as_given, require_no_nan
from ..constraints.groups import grouped
from ..labels import Axis, aligned
from .ready_made import matrix, row_weights
from .row_sum import RowSum


class Logistic(RowSum):
    """The logistic loss of mixed scores, ``sum_i weights_i log(1 + exp(-s_i (Zx)_i))``.

    s is 1 for the larger of two labels and -1 for the other. To stack models by their scores (log
    odds), Z has a column for each model. To average probabilities, use `MixtureLikelihood` with the
    probability that each model assigns to the observed label.

    Parameters
    ----------
    Z : array_like of shape (m, n)
        Scores, a row for each sample. It is not copied, so do not change it afterwards.
    y : array_like of shape (m,)
        Labels with two distinct values.
    weights : array_like of shape (m,), optional
        Weight of each sample, ``1 / m`` by default.

    Examples
    --------
    >>> import pairstep
    >>> scores = [[3.0, -1.0], [-1.0, 2.0], [-2.0, 1.0]]
    >>> loss = pairstep.Logistic(scores, ["yes", "yes", "no"])
    >>> pairstep.minimize(loss, pairstep.Simplex()).x.round(4)
    array([0.6574, 0.3426])
    """

    def __init__(self, Z: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None):
        self.variables, rows = Axis(), Axis()
        scores, largest = matrix("Z", Z, rows, self.variables)
        labels = as_given("y", aligned("y", y, rows))
        if labels.dtype.kind == "f":
            require_no_nan("y", labels)
        if labels.shape != scores.shape[:1]:
            raise ValueError(f"y must have shape ({len(scores)},), got {labels.shape}")
        kinds = grouped(labels, "y").labels if labels.dtype == object else np.unique(labels)
        if len(kinds) != 2:
            raise ValueError(f"y must hold two labels, got {len(kinds)}: {kinds[:5]}")
        sign = np.where(labels == kinds[1], 1.0, -1.0)
        weight = row_weights(weights, len(scores), rows)
        super().__init__(_core.RowFunction.logistic, scores, weight, largest=largest, factor=sign)
