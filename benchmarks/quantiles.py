"""Quantile regression with kernels, compared with scikit-learn's linear one and with boosting.

    PAIRSTEP_DATA=... python -m benchmarks.quantiles [--only PART...]

Table "quantiles". Three quantiles of held-out values: mean pinball loss, the fraction of values
between the outer two (90% is right), the fraction of samples whose predictions cross, and seconds.
Features are standardized, and y is divided by its standard deviation. `SVRCV` searches over 4
values of C and 5 of gamma with five folds; the peers have their default parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVRCV

from .harness import Table, data_folder, digits, named, parser, times_of
from .svm_problems import abalone
from .svm_problems import table as read

QUANTILES = [0.05, 0.5, 0.95]
TRAINING = 2000  # samples


def kernel(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    search = SVRCV(
        quantile=QUANTILES, Cs=np.geomspace(0.1, 100, 4), gammas=np.geomspace(0.01, 1, 5)
    )
    return search.fit(X, y).predict(new)


def one_by_one(make: Callable, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the predictions of one model for each quantile."""
    return np.column_stack([make(q).fit(X, y).predict(new) for q in QUANTILES])


METHODS = {
    "SVRCV": kernel,
    "QuantileRegressor": partial(one_by_one, lambda q: QuantileRegressor(quantile=q, alpha=0.0)),
    "GradientBoosting": partial(one_by_one, lambda q: GradientBoostingRegressor(
        loss="quantile", alpha=q, random_state=0)),
    "HistGradientBoosting": partial(one_by_one, lambda q: HistGradientBoostingRegressor(
        loss="quantile", quantile=q, random_state=0)),
}  # fmt: skip


def main() -> None:
    options = parser(__doc__).parse_args()
    table = Table(options.out, "quantiles", "Quantile regression", [
        "data", "method", "pinball loss", "inside", "crossing", "seconds"],
        ["scikit-learn"])  # fmt: skip
    folder = data_folder()
    for name in ("cpu_small", "california", "abalone"):
        if not named(name, options.only):
            continue
        if name == "abalone":
            data = abalone(folder)
            X, y = data.X, data.y
        else:
            rows = read(folder, f"regression/{name}.csv.gz")
            X, y = rows[:, 1:], rows[:, 0]
        X, new, y, actual = train_test_split(X, y / y.std(), train_size=TRAINING, random_state=0)
        scaler = StandardScaler().fit(X)
        X, new = scaler.transform(X), scaler.transform(new)
        for method, predict in METHODS.items():
            (seconds,), predicted = times_of(partial(predict, X, y, new), most=1)
            loss = np.mean([mean_pinball_loss(actual, column, alpha=q)
                            for q, column in zip(QUANTILES, predicted.T, strict=True)])  # fmt: skip
            inside = np.mean((predicted[:, 0] <= actual) & (actual <= predicted[:, -1]))
            crossing = np.mean((np.diff(predicted) < 0).any(axis=1))
            table.add(name, method, digits(loss, 4), f"{100 * inside:.1f}%",
                      f"{100 * crossing:.1f}%", digits(seconds))  # fmt: skip


if __name__ == "__main__":
    main()
