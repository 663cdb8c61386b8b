"""A one-line summary of how good predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np


def score_line(model: Any, y: Any, predicted: Any) -> str:
    """Return the score of predictions on one line.

    For regression it is the mean squared error and R2. For classification, and for novelty
    detection with the labels -1 and 1, it is the accuracy. For novelty detection with other labels,
    it is the fraction of outliers.
    """
    from sklearn.base import is_classifier, is_regressor

    n = len(predicted)
    if is_regressor(model):
        y = np.asarray(y, float)
        error = float(np.mean((y - predicted) ** 2))
        variance = float(np.var(y))
        r2 = f", R2 {1 - error / variance:.4f}" if variance > 0 else ""
        return f"mean squared error {error:.6g}{r2} ({n} samples)"
    if is_classifier(model) or set(np.unique(y).tolist()) <= {-1, 1}:
        correct = int(np.count_nonzero(np.asarray(y) == predicted))
        return f"accuracy {correct / n:.4f} ({correct} of {n})"
    outliers = int(np.count_nonzero(predicted == -1))
    return f"outliers {outliers / n:.4f} ({outliers} of {n})"
