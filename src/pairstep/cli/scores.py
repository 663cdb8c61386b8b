"""A one-line summary of how good predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np


def score_line(model: Any, y: Any, predicted: Any) -> str:
    """Return the score of predictions on one line.

    For regression it is the mean squared error and R2; for quantiles, the pinball loss, its D2 and
    the fraction of values below each quantile. For classification, and for novelty detection with
    the labels -1 and 1, it is the accuracy. For novelty detection with other labels, it is the
    fraction of outliers.
    """
    from sklearn.base import is_classifier, is_regressor

    n = len(predicted)
    quantile = quantile_of(model)
    if quantile is not None:
        return f"{_quantile_scores(y, predicted, quantile)} ({n} samples)"
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


def quantile_of(model: Any) -> Any:
    """Return the parameter `quantile` of a model or of the last step of a pipeline, or None."""
    estimator = model[-1] if hasattr(model, "steps") else model
    return getattr(estimator, "quantile", None)


def _quantile_scores(y: Any, predicted: Any, quantile: Any) -> str:
    """Return the pinball loss and D2, averaged over the quantiles, and the coverage of each."""
    from sklearn.metrics import d2_pinball_score, mean_pinball_loss

    y = np.asarray(y, float)
    pairs = list(zip(np.atleast_1d(quantile), predicted.reshape(len(y), -1).T, strict=True))
    loss = np.mean([mean_pinball_loss(y, column, alpha=q) for q, column in pairs])
    d2 = np.mean([d2_pinball_score(y, column, alpha=q) for q, column in pairs])
    below = ", ".join(f"{np.mean(y <= column):.4f} below quantile {q:g}" for q, column in pairs)
    return f"pinball loss {loss:.6g}, D2 {d2:.4f}, {below}"
