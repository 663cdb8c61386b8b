"""Quantile regression with kernels, compared with scikit-learn's linear one and with boosting.

    python -m benchmarks.quantiles

Three quantiles of held-out values: mean pinball loss, the fraction of values between the outer two
(90% is right), the fraction of samples whose predictions cross, and seconds. Features are
standardized, and y is divided by its standard deviation. `SVRCV` searches over 4 values of C and 5
of gamma with five folds; the peers have their default parameters. PAIRSTEP_DATA names the folder
with the data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVRCV

from .qp_problems import data_folder

QUANTILES = [0.05, 0.5, 0.95]
TRAINING = 2000  # samples


def data() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    folder = data_folder()
    if folder is None:
        raise SystemExit("set PAIRSTEP_DATA to the folder with the data")
    for name in ("cpu_small", "california"):
        rows = np.loadtxt(folder / "regression" / f"{name}.csv.gz", delimiter=",", skiprows=1)
        yield name, rows[:, 1:], rows[:, 0]
    sparse, y = load_svmlight_file(str(folder / "regression" / "abalone.trn.bz2"))
    yield "abalone", sparse.toarray(), y


def kernel(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    search = SVRCV(
        quantile=QUANTILES, Cs=np.geomspace(0.1, 100, 4), gammas=np.geomspace(0.01, 1, 5)
    )
    return search.fit(X, y).predict(new)


def linear(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    models = [QuantileRegressor(quantile=q, alpha=0.0) for q in QUANTILES]
    return np.column_stack([model.fit(X, y).predict(new) for model in models])


def boosting(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    models = [
        GradientBoostingRegressor(loss="quantile", alpha=q, random_state=0) for q in QUANTILES
    ]
    return np.column_stack([model.fit(X, y).predict(new) for model in models])


def histogram_boosting(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0)
        for q in QUANTILES
    ]
    return np.column_stack([model.fit(X, y).predict(new) for model in models])


METHODS = {
    "SVRCV": kernel, "QuantileRegressor": linear, "GradientBoosting": boosting,
    "HistGradientBoosting": histogram_boosting,
}  # fmt: skip


def main() -> None:
    print("| data | method | pinball loss | inside | crossing | seconds |")
    for name, X, y in data():
        X, new, y, actual = train_test_split(X, y / y.std(), train_size=TRAINING, random_state=0)
        scaler = StandardScaler().fit(X)
        X, new = scaler.transform(X), scaler.transform(new)
        for method, predict in METHODS.items():
            began = time.perf_counter()
            predicted = predict(X, y, new)
            seconds = time.perf_counter() - began
            loss = np.mean(
                [
                    mean_pinball_loss(actual, column, alpha=q)
                    for q, column in zip(QUANTILES, predicted.T, strict=True)
                ]
            )
            inside = np.mean((predicted[:, 0] <= actual) & (actual <= predicted[:, -1]))
            crossing = np.mean((np.diff(predicted) < 0).any(axis=1))
            print(
                f"| {name} | {method} | {loss:.4f} | {100 * inside:.1f} % | "
                f"{100 * crossing:.1f} % | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
