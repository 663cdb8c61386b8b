"""The calls that `benchmarks.history` times in several commits: `make bench`, `make bench-history`.

We use pytest-benchmark rather than asv, because asv would build every commit in a new environment,
which takes minutes of C++ compilation each; `benchmarks.history` compiles only what changed.

Each benchmark is a call that users wait for, takes milliseconds, and checks its result. The file
also runs with older versions of the package. What an old version lacks is skipped there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pairstep
from pairstep import svm

Benchmark = Any


def skip_without(name: str) -> None:
    """Skip a benchmark of a function that an older version of the package does not have."""
    if not hasattr(pairstep, name):
        pytest.skip(f"this version has no {name}")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def covariance(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return the sample covariance of 2 n returns with a common factor."""
    returns = 0.01 * (rng.standard_normal((2 * n, n)) + rng.standard_normal((2 * n, 1)))
    return np.cov(returns, rowvar=False)


def classes(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two classes that overlap."""
    X = rng.standard_normal((rows, 20))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(rows) > 0).astype(int)


@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-1", "gs-q-lipschitz", "gs-1-lipschitz"])
def test_propose_for_100_000(benchmark: Benchmark, rng: np.random.Generator, rule: str) -> None:
    g, x = rng.standard_normal(100_000), rng.uniform(-1, 1, 100_000)
    lipschitz = rng.uniform(1, 2, 100_000) if rule.endswith("lipschitz") else None
    step = benchmark(pairstep.propose, rule, g, x, -1.0, 1.0, alpha=1.0, lipschitz=lipschitz)
    assert step.decrease > 0


@pytest.mark.parametrize("n", [10, 100, 500], ids="n={}".format)
def test_a_portfolio(benchmark: Benchmark, rng: np.random.Generator, n: int) -> None:
    Q, c = covariance(rng, n), -0.001 * rng.standard_normal(n)
    assert benchmark(pairstep.solve_qp, Q, c, upper=0.2).status == "optimal"


def test_a_frontier(benchmark: Benchmark, rng: np.random.Generator) -> None:
    Q, mean = covariance(rng, 50), 0.001 * rng.standard_normal(50)
    assert len(benchmark(pairstep.efficient_frontier, Q, mean).x) > 10


def test_unmixing_2000_pixels(benchmark: Benchmark, rng: np.random.Generator) -> None:
    A = rng.uniform(size=(100, 6))
    fractions = rng.dirichlet(np.ones(6), 2000).T
    result = benchmark(pairstep.simplex_lstsq, A, A @ fractions)
    assert np.abs(result.x - fractions.T).max() < 1e-6


def test_500_portfolios(benchmark: Benchmark, rng: np.random.Generator) -> None:
    skip_without("solve_qps")
    Q = np.array([covariance(rng, 20) for _ in range(500)])
    assert benchmark(pairstep.solve_qps, Q, upper=0.2).success.all()


def test_a_mixture(benchmark: Benchmark, rng: np.random.Generator) -> None:
    f = pairstep.MixtureLikelihood(rng.exponential(size=(2000, 50)))
    assert benchmark(pairstep.minimize, f, pairstep.Simplex()).status == "optimal"


def test_a_python_function(benchmark: Benchmark, rng: np.random.Generator) -> None:
    Q = covariance(rng, 50)

    def volatility(x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = Q @ x
        value = float(np.sqrt(x @ gradient))
        return value, gradient / value

    f = pairstep.Smooth(value_and_gradient=volatility, n=50)
    assert benchmark(pairstep.minimize, f, pairstep.Simplex()).status == "optimal"


@pytest.mark.parametrize("rows", [60, 2000], ids="rows={}".format)
def test_a_fit(benchmark: Benchmark, rng: np.random.Generator, rows: int) -> None:
    X, y = classes(rng, rows)
    assert benchmark(svm.SVC().fit, X, y).score(X, y) > 0.7


@pytest.mark.parametrize("rows", [1, 2000], ids="rows={}".format)
def test_a_prediction(benchmark: Benchmark, rng: np.random.Generator, rows: int) -> None:
    X, y = classes(rng, 2000)
    assert benchmark(svm.SVC().fit(X, y).predict, X[:rows]).shape == (rows,)


def test_a_search(benchmark: Benchmark, rng: np.random.Generator) -> None:
    X, y = classes(rng, 400)
    search = svm.SVCCV(Cs=[0.1, 1, 10], gammas=[0.01, 0.1], cv=3)
    assert benchmark(search.fit, X, y).best_score_ > 0.6
