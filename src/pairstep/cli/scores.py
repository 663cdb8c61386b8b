"""How good predictions are, in a line."""

from __future__ import annotations

from typing import Any

import numpy as np


def score_line(machine: Any, y: Any, predicted: Any) -> str:
    """Accuracy of classes, errors of numbers, and how many samples are outside."""
    from sklearn.base import is_classifier, is_regressor

    n = len(predicted)
    if is_regressor(machine):
        y = np.asarray(y, float)
        error = float(np.mean((y - predicted) ** 2))
        spread = float(np.var(y))
        share = f", R2 {1 - error / spread:.4f}" if spread > 0 else ""
        return f"mean squared error {error:.6g}{share} ({n} samples)"
    if is_classifier(machine) or set(np.unique(y).tolist()) <= {-1, 1}:
        right = int(np.count_nonzero(np.asarray(y) == predicted))
        return f"accuracy {right / n:.4f} ({right} of {n})"
    outside = int(np.count_nonzero(predicted == -1))
    return f"outside {outside / n:.4f} ({outside} of {n})"
