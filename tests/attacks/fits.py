"""Random fits of support vector machines: data of every scale, kernels, C, gamma and tol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator

MOST_ROWS = 3000


@dataclass(frozen=True)
class Fit:
    """An estimator with its parameters and its training data."""

    family: str  # of the data
    estimator: str
    parameters: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None

    @property
    def title(self) -> str:
        """The estimator and the shape of the data."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        weighted = "" if self.weights is None else " with sample weights"
        return f"{self.estimator}({given}) on {self.X.shape}{weighted}"


def draw(
    rng: Rng, family: str | None = None, precomputed: bool = True, most: int = MOST_ROWS
) -> Fit:
    """Return a random fit with at most `most` rows."""
    family = family or str(rng.choice(list(DATA)))
    n = min(rows(rng), most)
    X = np.ascontiguousarray(DATA[family](rng, n))
    estimator = str(rng.choice(["SVC", "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]))
    y = targets(rng, estimator, X)
    kernels = ["rbf"] * 4 + ["linear"] * 3 + ["poly", "sigmoid"] + ["precomputed"] * precomputed
    kernel = str(rng.choice(kernels))
    parameters: dict[str, Any] = {"kernel": kernel, "tol": float(10.0 ** rng.integers(-6, 0))}
    if rng.random() < 0.4:
        parameters["tol"] = 1e-3
    if kernel in ("rbf", "poly", "sigmoid"):
        parameters["gamma"] = gamma(rng, X)
    if kernel in ("poly", "sigmoid"):
        parameters["coef0"] = float(rng.choice([0.0, 1.0, -1.0]))
    if kernel == "poly":
        parameters["degree"] = int(rng.integers(1, 5))
    if estimator in ("SVC", "SVR", "NuSVR"):
        wide = rng.random() < 0.5
        parameters["C"] = float(10.0 ** (rng.uniform(-8, 12) if wide else rng.uniform(-2, 3)))
    if estimator == "SVR":
        parameters["epsilon"] = float(rng.choice([0.0, 0.01, 0.1, 1.0]))
    if estimator in ("NuSVC", "NuSVR", "OneClassSVM"):
        parameters["nu"] = float(rng.choice([0.01, 0.1, 0.3, 0.5, 0.9]))
    if estimator in ("SVC", "NuSVC") and rng.random() < 0.2:
        parameters["class_weight"] = {int(k): float(rng.choice([0.1, 1, 30])) for k in set(y)}
    if kernel == "precomputed":
        scale = float(np.abs(X).max()) or 1.0
        X = (X / scale) @ (X / scale).T * float(rng.choice([1e-6, 1.0, 1e6]))
        X = (X + X.T) / 2
    weights = None
    if rng.random() < 0.2:
        weights = rng.choice([0.0, 1e-3, 1.0, 5.0], n, p=[0.1, 0.1, 0.6, 0.2])
    return Fit(family, estimator, parameters, X, y, weights)


def rows(rng: Rng) -> int:
    """The number of rows, usually small."""
    most = rng.choice([12, 100, 600, MOST_ROWS], p=[0.3, 0.5, 0.15, 0.05])
    return int(rng.integers(3, most + 1))


def gamma(rng: Rng, X: np.ndarray) -> Any:
    """A rule, a number that suits the data, or any number."""
    kind = rng.integers(4)
    if kind == 0:
        return str(rng.choice(["scale", "auto"]))
    if kind == 1:
        spread = float(X.var()) * X.shape[1] or 1.0
        return float(np.clip(10.0 ** rng.uniform(-3, 3) / spread, 1e-300, 1e300))
    return float(10.0 ** rng.uniform(-10, 8))


def targets(rng: Rng, estimator: str, X: np.ndarray) -> np.ndarray:
    """Random labels or targets: a noisy function of X, or independent of X."""
    n = len(X)
    spread = X.std(axis=0)
    with np.errstate(all="ignore"):
        Z = np.where(spread > 0, (X - X.mean(axis=0)) / spread, 0.0)
    score = Z @ rng.standard_normal(X.shape[1]) + rng.choice([0.1, 1.0]) * rng.standard_normal(n)
    score = rng.standard_normal(n) if rng.random() < 0.2 else score
    if estimator in ("SVR", "NuSVR", "OneClassSVM"):
        return score * float(rng.choice([1.0, 1.0, 1e-4, 1e5]))
    classes = int(rng.choice([2, 3], p=[0.7, 0.3]))
    y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    y[:classes] = np.arange(classes)
    return y


# ------------------------------------------------------------------ data


def standard(rng: Rng, n: int) -> np.ndarray:
    """Columns of mean 0 and variance 1."""
    return rng.standard_normal((n, int(rng.integers(1, 9))))


def shifted(rng: Rng, n: int) -> np.ndarray:
    """Far from the origin."""
    X = standard(rng, n)
    at = 10.0 ** rng.uniform(3, 9)
    return X + at * (rng.random(X.shape[1]) < 0.7)


def unscaled(rng: Rng, n: int) -> np.ndarray:
    """Columns of different size."""
    X = standard(rng, n)
    return X * 10.0 ** rng.uniform(-4, 8, X.shape[1])


def timestamps(rng: Rng, n: int) -> np.ndarray:
    """Ages and seconds since 1970."""
    return np.c_[rng.normal(40, 10, n), 1.7e9 + rng.uniform(0, 1e7, n)]


def outliers(rng: Rng, n: int) -> np.ndarray:
    """A few rows of 1e9."""
    X = standard(rng, n)
    X[: max(1, n // 40)] *= 1e9
    return X


def duplicates(rng: Rng, n: int) -> np.ndarray:
    """Every row several times."""
    X = standard(rng, max(2, n // 4))
    return X[rng.integers(0, len(X), n)]


def clusters(rng: Rng, n: int) -> np.ndarray:
    """Tight clusters far apart."""
    X = standard(rng, n)
    centers = 10.0 ** rng.uniform(0, 4) * rng.standard_normal((5, X.shape[1]))
    return centers[rng.integers(0, 5, n)] + 10.0 ** rng.uniform(-8, 0) * X


def integers(rng: Rng, n: int) -> np.ndarray:
    """Counts, and codes of a few values."""
    return rng.integers(0, int(rng.choice([2, 5, 256])), (n, int(rng.integers(1, 9)))).astype(float)


def huge(rng: Rng, n: int) -> np.ndarray:
    """Rows of 1e20."""
    return 1e20 * standard(rng, n)


def tiny(rng: Rng, n: int) -> np.ndarray:
    """Rows of 1e-20."""
    return 1e-20 * standard(rng, n)


def constant(rng: Rng, n: int) -> np.ndarray:
    """A constant column beside the others."""
    return np.c_[standard(rng, n), np.full(n, 10.0 ** rng.uniform(0, 8))]


DATA: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "standard": standard,
    "shifted": shifted,
    "unscaled": unscaled,
    "timestamps": timestamps,
    "outliers": outliers,
    "duplicates": duplicates,
    "clusters": clusters,
    "integers": integers,
    "huge": huge,
    "tiny": tiny,
    "constant": constant,
}
