"""The problems of `benchmarks.qp`: portfolios, index tracking, least squares, Maros-Meszaros."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from pathlib import Path

import numpy as np
import scipy.io

MAX_DENSE = 2000  # variables of a problem whose Q is formed


@dataclass
class Problem:
    """Minimize ``x'Qx / 2 + c'x`` with ``coefficients'x = total`` and ``lower <= x <= upper``.

    Q is given, or its factors ``F'F + diag(D)``, or ``A`` and ``b`` of a least squares problem.
    """

    family: str
    name: str
    n: int
    Q: np.ndarray | None = None
    c: np.ndarray | None = None
    F: np.ndarray | None = None
    D: np.ndarray | float = 0.0
    A: np.ndarray | None = None
    b: np.ndarray | None = None
    total: float = 1.0
    lower: np.ndarray = field(default_factory=lambda: np.zeros(1))
    upper: np.ndarray = field(default_factory=lambda: np.full(1, np.inf))
    coefficients: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.A is not None:
            self.c = -self.A.T @ self.b
        self.c = np.zeros(self.n) if self.c is None else self.c
        self.lower = np.broadcast_to(self.lower, self.n).astype(float)
        self.upper = np.broadcast_to(self.upper, self.n).astype(float)
        self.D = np.broadcast_to(self.D, self.n).astype(float)
        if self.Q is None and self.n <= MAX_DENSE:
            root = self.F if self.A is None else self.A
            self.Q = root.T @ root + np.diag(self.D)
            self.Q = (self.Q + self.Q.T) / 2

    @cached_property
    def sums(self) -> np.ndarray:
        return np.ones(self.n) if self.coefficients is None else self.coefficients

    @cached_property
    def diagonal(self) -> np.ndarray:
        return (self.F**2).sum(0) + self.D if self.Q is None else np.diag(self.Q).copy()

    def product(self, x: np.ndarray) -> np.ndarray:
        return self.F.T @ (self.F @ x) + self.D * x if self.Q is None else self.Q @ x

    def value(self, x: np.ndarray) -> float:
        return float(0.5 * x @ self.product(x) + self.c @ x)

    def scale(self, x: np.ndarray) -> float:
        """Return the larger term of the objective, to which gaps are relative."""
        least = 1e-6 * float(self.diagonal @ x**2)
        return max(0.5 * abs(x @ self.product(x)), abs(self.c @ x), least)

    def certificate(self, x: np.ndarray) -> float:
        """Return the Frank-Wolfe bound on ``f(x) - f*``, found by sorting, without a solver."""
        gradient = self.product(x) + self.c
        vertex = self.lower.copy()
        remaining = self.total - float(self.sums @ vertex)
        for i in np.argsort(gradient / self.sums):
            if remaining <= 0:
                break
            take = min(remaining, self.sums[i] * (self.upper[i] - self.lower[i]))
            vertex[i] += take / self.sums[i]
            remaining -= take
        return float(gradient @ (x - vertex))

    def feasible(self, x: np.ndarray) -> np.ndarray:
        """Return a feasible point close to x: shifted and clipped, by bisection."""
        low, high = -1.0, 1.0
        for _ in range(200):
            shift = (low + high) / 2
            point = np.clip(x + shift * self.sums, self.lower, self.upper)
            low, high = (shift, high) if self.sums @ point < self.total else (low, shift)
        return point

    def violations(self, x: np.ndarray) -> tuple[float, float]:
        """Return the largest violation of a bound, and the violation of the sum."""
        outside = float(np.maximum(self.lower - x, x - self.upper).max())
        return max(outside, 0.0), abs(fsum([*(self.sums * x), -self.total]))


def data_folder() -> Path | None:
    folder = os.environ.get("PAIRSTEP_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def problems(quick: bool) -> Iterator[Problem]:
    """Yield all problems, or only the small ones if quick."""
    largest = 500 if quick else 10**9
    data = data_folder()
    if data is None:
        print("PAIRSTEP_DATA is not set: skipping OR-Library and Maros-Meszaros problems\n")
    else:
        yield from (or_portfolio(data, k) for k in (1, 2, 3))
        yield from (index_tracking(data, k) for k in (1, 2, 3))
        yield from (maros_meszaros(data, name) for name in ("DUAL1", "DUAL2", "TAME"))
    for n in (100, 500, 1500, 5000):
        if n <= largest:
            yield factor_portfolio("factor model", f"factor-{n}", n)
    for n, days in ((300, 120), (1000, 250)):
        if n <= largest:
            yield sample_covariance(n, days)
    yield independent_assets(300, 150)
    for n in (500, 1500):
        if n <= largest:
            yield least_squares(n, ill=False)
            yield least_squares(n, ill=True)
    for n in (100, 1000):
        if n > largest:
            continue
        rng = np.random.default_rng(n)
        changes = {
            "lower only": {"lower": rng.uniform(0, 0.8 / n, n)},
            "tight upper": {"upper": 3 / n},
            "negative lower": {"lower": -0.5 / n, "upper": 0.1},
            "weighted sum": {"coefficients": rng.uniform(0.5, 2.0, n)},
        }
        for family, change in changes.items():
            yield factor_portfolio(family, f"{family.replace(' ', '-')}-{n}", n, **change)
    for n in (100, 500, 1500):
        if n <= largest:
            yield ill_conditioned(n)


def or_portfolio(data: Path, k: int) -> Problem:
    text = (data / "finance" / f"port{k}.txt").read_text().split()
    n = int(text[0])
    moments = np.array(text[1 : 1 + 2 * n], float).reshape(n, 2)
    pairs = np.array(text[1 + 2 * n :], float).reshape(-1, 3)
    i, j = pairs[:, 0].astype(int) - 1, pairs[:, 1].astype(int) - 1
    correlation = np.eye(n)
    correlation[i, j] = correlation[j, i] = pairs[:, 2]
    mean, deviation = moments.T
    Q = correlation * np.outer(deviation, deviation)
    return Problem("OR-Library portfolio", f"port{k}", n, Q=Q, c=-0.2 * mean)


def index_tracking(data: Path, k: int) -> Problem:
    with gzip.open(data / "finance" / f"indtrack{k}.txt.gz", "rt") as file:
        numbers = np.array(file.read().split(), float)
    n = int(numbers[0])
    prices = numbers[2:].reshape(n + 1, -1)  # the index first
    returns = prices[:, 1:] / prices[:, :-1] - 1
    A = np.ascontiguousarray(returns[1:].T)
    return Problem("index tracking", f"indtrack{k}", n, A=A, b=returns[0])


def maros_meszaros(data: Path, name: str) -> Problem:
    raw = scipy.io.loadmat(data / "qp" / f"{name}.mat")
    Q, A = (m.toarray() if hasattr(m, "toarray") else np.asarray(m) for m in (raw["P"], raw["A"]))
    l, u = raw["l"].ravel().astype(float), raw["u"].ravel().astype(float)
    n = len(Q)
    assert np.array_equal(A[1:], np.eye(n))
    assert l[0] == u[0]
    lower = np.where(l[1:] <= -1e19, -np.inf, l[1:])
    upper = np.where(u[1:] >= 1e19, np.inf, u[1:])
    coefficients = None if np.all(A[0] == 1) else A[0].astype(float)
    return Problem("Maros-Meszaros", name, n, Q=Q.astype(float), c=raw["q"].ravel().astype(float),
                   total=float(l[0]), lower=lower, upper=upper,
                   coefficients=coefficients)  # fmt: skip


def factor_portfolio(family: str, name: str, n: int, **change) -> Problem:
    """Draw a model with a market factor, style factors and specific risk; risk aversion 4."""
    rng = np.random.default_rng(n)
    k = min(20 + n // 50, 60)
    beta = np.vstack([0.16 * rng.normal(1, 0.3, n), 0.04 * rng.standard_normal((k - 1, n))])
    specific = rng.uniform(0.15, 0.5, n) ** 2
    mean = 0.05 * beta[0] / 0.16 + 0.02 * rng.standard_normal(n)
    return Problem(family, name, n, F=2 * beta, D=4 * specific, c=-mean, **change)


def sample_covariance(n: int, days: int) -> Problem:
    """Draw daily returns with a market, ten sectors and noise; fewer days than assets."""
    rng = np.random.default_rng(n)
    market = 0.01 * rng.standard_normal((days, 1)) @ rng.normal(1, 0.3, (1, n))
    sectors = 0.006 * rng.standard_normal((days, 10))[:, rng.integers(0, 10, n)]
    noise = rng.standard_normal((days, n)) * rng.uniform(0.008, 0.025, n)
    returns = market + sectors + noise + 4e-4
    mean = returns.mean(0)
    F = (returns - mean) / np.sqrt(days - 1)
    return Problem("sample covariance", f"sample-{n}x{days}", n, F=F, c=-0.02 * mean)


def independent_assets(n: int, days: int) -> Problem:
    F = 0.01 * np.random.default_rng(n).standard_normal((days, n)) / np.sqrt(days - 1)
    return Problem("sample covariance", f"independent-{n}x{days}", n, F=F)


def least_squares(n: int, ill: bool) -> Problem:
    rng = np.random.default_rng(n)
    A = rng.standard_normal((2 * n, n))
    if ill:
        A *= 10 ** rng.uniform(-2, 2, n)
    x = rng.dirichlet(np.full(n, 0.05))
    b = A @ x + 0.1 * rng.standard_normal(2 * n)
    name = f"lstsq-{'ill' if ill else 'well'}-{n}"
    return Problem("least squares", name, n, A=A, b=b)


def ill_conditioned(n: int) -> Problem:
    """Draw a matrix with condition number 1e10."""
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (basis * np.logspace(0, -10, n)) @ basis.T
    c = -0.01 * Q @ rng.standard_normal(n)
    return Problem("condition 1e10", f"cond1e10-{n}", n, Q=(Q + Q.T) / 2, c=c)
