"""Quadratic programs: portfolios, index tracking, least squares, Maros-Mészáros, and batches."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.io

from .harness import data_folder

MAX_DENSE = 2000  # variables of a problem whose Q is formed


@dataclass
class Problem:
    """Minimize ``x'Qx / 2 + c'x`` with ``coefficients'x = total`` and ``lower <= x <= upper``.

    Q is given, or its factors ``F'F + diag(D)``, or ``A`` and ``b`` of a least squares problem.
    There may be further constraints ``low <= rows x <= high``.
    """

    name: str
    n: int
    Q: np.ndarray | None = None
    c: np.ndarray | None = None
    F: np.ndarray | None = None
    D: np.ndarray | float = 0.0
    A: np.ndarray | None = None
    b: np.ndarray | None = None
    total: float = 1.0
    lower: np.ndarray | float = 0.0
    upper: np.ndarray | float = np.inf
    coefficients: np.ndarray | None = None
    rows: np.ndarray | None = None
    low: np.ndarray = field(default_factory=lambda: np.zeros(0))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.A is not None:
            self.c = -self.A.T @ self.b
        self.c = np.zeros(self.n) if self.c is None else self.c
        self.lower = np.broadcast_to(self.lower, self.n).astype(float)
        self.upper = np.broadcast_to(self.upper, self.n).astype(float)
        self.D = np.broadcast_to(self.D, self.n).astype(float)
        self.rows = np.zeros((0, self.n)) if self.rows is None else self.rows
        if self.Q is None and self.n <= MAX_DENSE:
            self.Q = self.root.T @ self.root + np.diag(self.D)
            self.Q = (self.Q + self.Q.T) / 2

    @property
    def root(self) -> np.ndarray | None:
        return self.F if self.A is None else self.A

    @cached_property
    def sums(self) -> np.ndarray:
        return np.ones(self.n) if self.coefficients is None else self.coefficients

    @cached_property
    def diagonal(self) -> np.ndarray:
        return (self.root**2).sum(0) + self.D if self.Q is None else np.diag(self.Q).copy()

    def product(self, x: np.ndarray) -> np.ndarray:
        return self.root.T @ (self.root @ x) + self.D * x if self.Q is None else self.Q @ x

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
        """Return a point close to x with the right sum: shifted and clipped, by bisection."""
        low, high = -1.0, 1.0
        for _ in range(200):
            shift = (low + high) / 2
            point = np.clip(x + shift * self.sums, self.lower, self.upper)
            low, high = (shift, high) if self.sums @ point < self.total else (low, shift)
        return point

    def infeasibility(self, x: np.ndarray) -> float:
        """Return the largest violation of a bound, the sum or a row."""
        activity = self.rows @ x
        beyond = np.r_[self.lower - x, x - self.upper, self.low - activity, activity - self.high]
        return max(float(beyond.max()), abs(fsum([*(self.sums * x), -self.total])))


def problems(quick: bool) -> Iterator[tuple[str, Problem]]:
    """Yield all problems, or only the small ones if quick, each with the name of its table."""
    data = data_folder(required=False)
    if data is not None:
        yield from (("qp", or_portfolio(data, k)) for k in (1, 2, 3))
        yield from (("qp", index_tracking(data, k)) for k in (1, 2, 3))
        yield from (("qp", maros_meszaros(data, name)) for name in ("DUAL1", "DUAL2", "TAME"))
    for p in synthetic(500 if quick else 10**9):
        yield "qp-larger", p


def synthetic(largest: int) -> Iterator[Problem]:
    """Yield problems of up to `largest` variables."""
    sizes = [n for n in (100, 500, 1500, 5000) if n <= largest]
    yield from (factor_portfolio("factor model", n) for n in sizes)
    for n, days in ((300, 120), (1000, 250)):
        if n <= largest:
            yield sample_covariance(n, days)
    yield independent_assets(300, 150)
    for n in sizes[1:3]:
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
            yield factor_portfolio(f"factor model, {family}", n, **change)
    yield from (ill_conditioned(n) for n in sizes[:3])


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
    return Problem(f"OR-Library, port{k}", n, Q=Q, c=-0.2 * mean)


def index_tracking(data: Path, k: int) -> Problem:
    with gzip.open(data / "finance" / f"indtrack{k}.txt.gz", "rt") as file:
        numbers = np.array(file.read().split(), float)
    n = int(numbers[0])
    prices = numbers[2:].reshape(n + 1, -1)  # the index first
    returns = prices[:, 1:] / prices[:, :-1] - 1
    A = np.ascontiguousarray(returns[1:].T)
    return Problem(f"index tracking, indtrack{k}", n, A=A, b=returns[0])


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
    return Problem(f"Maros-Mészáros, {name}", n, Q=Q.astype(float),
                   c=raw["q"].ravel().astype(float), total=float(l[0]), lower=lower, upper=upper,
                   coefficients=coefficients)  # fmt: skip


def factor_portfolio(name: str, n: int, **change) -> Problem:
    """Draw a model with a market factor, style factors and specific risk; risk aversion 4."""
    rng = np.random.default_rng(n)
    k = min(20 + n // 50, 60)
    beta = np.vstack([0.16 * rng.normal(1, 0.3, n), 0.04 * rng.standard_normal((k - 1, n))])
    specific = rng.uniform(0.15, 0.5, n) ** 2
    mean = 0.05 * beta[0] / 0.16 + 0.02 * rng.standard_normal(n)
    return Problem(f"{name}, n = {n}", n, F=2 * beta, D=4 * specific, c=-mean, **change)


def sample_covariance(n: int, days: int) -> Problem:
    """Draw daily returns with a market, ten sectors and noise; fewer days than assets."""
    rng = np.random.default_rng(n)
    market = 0.01 * rng.standard_normal((days, 1)) @ rng.normal(1, 0.3, (1, n))
    sectors = 0.006 * rng.standard_normal((days, 10))[:, rng.integers(0, 10, n)]
    noise = rng.standard_normal((days, n)) * rng.uniform(0.008, 0.025, n)
    returns = market + sectors + noise + 4e-4
    mean = returns.mean(0)
    F = (returns - mean) / np.sqrt(days - 1)
    return Problem(f"sample covariance, {days} days, n = {n}", n, F=F, c=-0.02 * mean)


def independent_assets(n: int, days: int) -> Problem:
    F = 0.01 * np.random.default_rng(n).standard_normal((days, n)) / np.sqrt(days - 1)
    return Problem(f"independent assets, {days} days, n = {n}", n, F=F)


def least_squares(n: int, ill: bool) -> Problem:
    rng = np.random.default_rng(n)
    A = rng.standard_normal((2 * n, n))
    if ill:
        A *= 10 ** rng.uniform(-2, 2, n)
    x = rng.dirichlet(np.full(n, 0.05))
    b = A @ x + 0.1 * rng.standard_normal(2 * n)
    kind = "least squares, ill-scaled columns" if ill else "least squares on the simplex"
    return Problem(f"{kind}, n = {n}", n, A=A, b=b)


def ill_conditioned(n: int) -> Problem:
    """Draw a matrix with condition number 1e10."""
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (basis * np.logspace(0, -10, n)) @ basis.T
    c = -0.01 * Q @ rng.standard_normal(n)
    return Problem(f"covariance of condition 1e10, n = {n}", n, Q=(Q + Q.T) / 2, c=c)


# ----------------------------------------------------------------------------------------- batches


@dataclass
class Batch:
    """Quadratic programs over the simplex with their own Q and c, and a common cap."""

    name: str
    Q: np.ndarray
    c: np.ndarray
    upper: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.shape[0], self.c.shape[1]

    def problems(self) -> list[Problem]:
        cap = np.inf if self.upper is None else self.upper
        return [
            Problem(self.name, len(c), Q=Q, c=c, upper=cap)
            for Q, c in zip(self.Q, self.c, strict=True)
        ]

    def values(self, X: np.ndarray) -> np.ndarray:
        return np.einsum("bi,bij,bj->b", X, self.Q, X) / 2 + np.einsum("bi,bi->b", self.c, X)


def portfolios(count: int, n: int) -> Batch:
    rng = np.random.default_rng(n)
    returns = rng.normal(size=(count, 2 * n, n)) + 0.1 * rng.normal(size=(count, 1, n))
    Q = np.matmul(returns.transpose(0, 2, 1), returns) / (2 * n)
    upper = np.full(n, max(0.1, 3 / n))
    return Batch(f"portfolios, {count} of {n} assets", Q, -returns.mean(axis=1), upper)


def backtest(folder: Path) -> Batch:
    relatives = pd.read_csv(folder / "finance" / "olps_nyse_o.csv.gz", index_col=0).to_numpy(float)
    returns = relatives - 1 if relatives.min() > 0 else relatives
    windows = np.lib.stride_tricks.sliding_window_view(returns, 250, axis=0)[-4000::4]
    Q = np.array([np.cov(window) for window in windows])
    name = f"backtest, {len(Q)} dates, {Q.shape[1]} NYSE stocks"
    return Batch(name, Q, -0.2 * windows.mean(axis=2), np.full(Q.shape[1], 0.2))


def weekly_backtest(folder: Path) -> Batch:
    returns = np.hstack([index_tracking(folder, k).A for k in (2, 3)])[:, :100]
    windows = np.lib.stride_tricks.sliding_window_view(returns, 52, axis=0)
    Q = np.array([np.cov(window) for window in windows])
    variance = np.trace(Q, axis1=1, axis2=2) / Q.shape[1]
    Q = 0.8 * Q + 0.2 * variance[:, None, None] * np.eye(Q.shape[1])
    name = f"backtest, {len(Q)} weeks, {Q.shape[1]} stocks of two indices"
    return Batch(name, Q, -0.2 * windows.mean(axis=2), np.full(Q.shape[1], 0.1))


def placebos(folder: Path) -> Batch:
    table = pd.read_csv(folder / "synthetic_control" / "california_prop99.csv", sep=";")
    packs = table.pivot(index="Year", columns="State", values="PacksPerCapita").to_numpy(float)
    Q, c = [], []
    for last in range(8, len(packs)):
        for state in range(packs.shape[1]):
            A, b = np.delete(packs[:last], state, axis=1), packs[:last, state]
            Q.append(A.T @ A + 1e-6 * np.trace(A.T @ A) / A.shape[1] * np.eye(A.shape[1]))
            c.append(-A.T @ b)
    name = f"placebo tests of a synthetic control, {len(Q)} of {len(c[0])}"
    return Batch(name, np.array(Q), np.array(c))


def stacking() -> Batch:
    rng = np.random.default_rng(8)
    truth = rng.normal(size=2000)
    models = truth[:, None] + rng.normal(size=(2000, 10)) * rng.uniform(0.5, 2.0, 10)
    rows = rng.integers(0, 2000, (1000, 2000))
    Q = np.array([models[r].T @ models[r] for r in rows]) / 2000
    c = -np.array([models[r].T @ truth[r] for r in rows]) / 2000
    return Batch("stacking of bootstrap samples, 1000 of 10", Q, c)


def batches(quick: bool) -> Iterator[Batch]:
    sizes = [(128, 24), (1000, 50), (256, 100)]
    for count, n in sizes if quick else [*sizes, (10_000, 50), (100, 500)]:
        yield portfolios(count, n)
    folder = data_folder(required=False)
    if folder is not None:
        yield backtest(folder)
        yield weekly_backtest(folder)
        yield placebos(folder)
    yield stacking()
