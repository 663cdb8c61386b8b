"""A scale for each feature by gradient descent, compared with a grid search.

    python -m benchmarks.feature_scales

Test accuracy and seconds, means over three random splits. Features are standardized. The grid has
64 candidates of C and gamma and five folds. Scales are chosen with the loss of the same folds, and
with the span loss, which needs one fit instead of five. PAIRSTEP_DATA names the folder with the
data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep import svm

from .qp_problems import data_folder

SPLITS = 3
SIZES = {
    "splice": 1000, "svmguide1": 800, "german.numer_scale": 500, "phishing": 1000,
    "heart_scale": 150, "mushrooms": 400,
}  # training samples # fmt: skip


def data() -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    noise = 0.3 * rng.normal(size=3000)
    yield "synthetic, 3 of 30 features matter", X, X[:, 0] * X[:, 1] + X[:, 2] + noise > 0, 600
    folder = data_folder()
    for name, size in SIZES.items() if folder is not None else ():
        sparse, y = load_svmlight_file(str(folder / "svm" / f"{name}.gz"))
        yield name, sparse.toarray(), y, size


def grid(X: np.ndarray, y: np.ndarray):
    Cs, gammas = 2.0 ** np.arange(-3, 12, 2), 2.0 ** np.arange(-13, 2, 2)
    return svm.SVCCV(Cs=Cs, gammas=gammas, cv=5).fit(X, y)


def scales(loss: str | None) -> Callable:
    def fit(X: np.ndarray, y: np.ndarray):
        return svm.tune_by_gradient(svm.SVC(gamma=1 / X.shape[1]), X, y, cv=5, loss=loss).model

    return fit


METHODS = {"grid search": grid, "scales, five folds": scales(None), "scales, span": scales("span")}


def main() -> None:
    print(f"| data | training samples | features | {' | '.join(METHODS)} |")
    for name, X, y, size in data():
        cells = []
        for fit in METHODS.values():
            scores, seconds = [], []
            for seed in range(SPLITS):
                own, other, y_own, y_other = train_test_split(
                    X, y, train_size=size, random_state=seed, stratify=y
                )
                scaler = StandardScaler().fit(own)
                began = time.perf_counter()
                model = fit(scaler.transform(own), y_own)
                seconds.append(time.perf_counter() - began)
                scores.append(model.score(scaler.transform(other), y_other))
            cells.append(f"{100 * np.mean(scores):.1f} ({np.mean(seconds):.1f} s)")
        print(f"| {name} | {size} | {X.shape[1]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
