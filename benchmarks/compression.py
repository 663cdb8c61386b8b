"""Support vectors that `compress` saves, and what it costs in accuracy.

    python -m benchmarks.compression

For each allowed error: the support vectors that remain, the largest change of a decision at the
training samples, the accuracy on test samples, and seconds. PAIRSTEP_DATA names the folder with the
data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVC

from .qp_problems import data_folder

ERRORS = (0.5, 0.2, 0.1)


def split(X: Any, y: np.ndarray, count: int) -> list[Any]:
    return train_test_split(X, y, train_size=count, random_state=0, stratify=y)


def read(path: Path, features: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_svmlight_file(str(path), n_features=features)
    return X.toarray(), y


def data(folder: Path) -> Iterator[tuple[str, SVC, list[Any]]]:
    """Yield a name, a model, and training and test samples."""
    yield "phishing", SVC(C=10.0, gamma=0.1), split(*read(folder / "phishing.gz", 68), 8000)
    (X, y), (new, actual) = (read(folder / f"a9a{part}.gz", 123) for part in ("", ".t"))
    yield "a9a", SVC(C=1.0, gamma=0.05), [X, new, y, actual]
    rna = scipy.io.loadmat(folder / "cod-rna_30k.mat")
    yield "cod-rna", SVC(C=10.0, gamma=0.1), split(rna["X"], rna["y"].ravel(), 15000)
    (X, y), (new, actual) = (read(folder / f"ijcnn1.{part}.bz2", 22) for part in ("trn", "tst"))
    yield "ijcnn1", SVC(C=10.0, gamma=1.0), [X[:20000], new[:30000], y[:20000], actual[:30000]]
    satimage = np.load(folder / "satimage.npz")
    X = StandardScaler().fit_transform(satimage["X"])
    yield "satimage, 6 classes", SVC(C=4.0, gamma=0.1), split(X, satimage["y"], 4435)
    usps = np.load(folder / "usps.npz")
    parts = [usps[name] for name in ("X", "Xt", "y", "yt")]
    yield "usps, 10 classes", SVC(C=10.0, gamma=1 / 128), parts


def main() -> None:
    folder = data_folder()
    if folder is None:
        raise SystemExit("set PAIRSTEP_DATA to the folder with the data")
    print("| data | max_error | support vectors | change | accuracy | seconds |")
    for name, model, (X, new, y, actual) in data(folder / "svm"):
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
        accuracy = 100 * model.score(new, actual)
        print(f"| {name} | fit | {len(model.support_)} | | {accuracy:.2f} % | {seconds:.1f} |")
        for error in ERRORS:
            began = time.perf_counter()
            small = model.compress(X, max_error=error)
            seconds = time.perf_counter() - began
            found = small.compression_
            times = found.n_support_before / max(found.n_support, 1)
            print(
                f"| | {error} | {found.n_support} ({times:.1f} times fewer) | "
                f"{found.max_error:.3f} | {100 * small.score(new, actual):.2f} % | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
