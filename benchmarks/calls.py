"""Calls that users wait for, each with a check of its result; `benchmarks.compare` times them.

Each function prepares data and returns the call. The file also runs with older versions of the
package: a call that a version lacks is left out of the comparison. As a program it reads lines
"seconds name" and answers each with the least CPU time of the call, in seconds, or with the error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pairstep
from pairstep import svm

Call = Callable[[], Any]
Check = Callable[[Any], Any]
RULES = ("gs-s", "gs-q", "gs-1", "gs-q-lipschitz", "gs-1-lipschitz")
MIN_SECONDS_PER_SAMPLE = 2e-3  # shorter calls are repeated, because the clock has microseconds


def covariance(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return the sample covariance of 2 n returns with a common factor."""
    returns = 0.01 * (rng.standard_normal((2 * n, n)) + rng.standard_normal((2 * n, 1)))
    return np.cov(returns, rowvar=False)


def classes(
    rng: np.random.Generator, rows: int, count: int = 2, columns: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """Draw classes that overlap."""
    X = rng.standard_normal((rows, columns))
    score = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(rows)
    return X, np.argsort(np.argsort(score)) * count // rows


def is_optimal(result: Any) -> bool:
    return result.status == "optimal"


def proposal(rule: str) -> tuple[Call, Check]:
    rng = np.random.default_rng(0)
    g, x = rng.standard_normal(100_000), rng.uniform(-1, 1, 100_000)
    lipschitz = rng.uniform(1, 2, 100_000) if rule.endswith("lipschitz") else None
    return (
        lambda: pairstep.propose(rule, g, x, -1.0, 1.0, alpha=1.0, lipschitz=lipschitz),
        lambda step: step.decrease > 0,
    )


def portfolio(n: int, **given: Any) -> tuple[Call, Check]:
    rng = np.random.default_rng(n)
    Q, c = covariance(rng, n), -0.001 * rng.standard_normal(n)
    return lambda: pairstep.solve_qp(Q, c, upper=0.2 if n > 5 else 1.0, **given), is_optimal


def labeled_portfolio(n: int) -> tuple[Call, Check]:
    import pandas as pd

    rng = np.random.default_rng(n)
    names = [f"asset {i}" for i in range(n)]
    Q = pd.DataFrame(covariance(rng, n), names, names)
    c = pd.Series(-0.001 * rng.standard_normal(n), names)
    return lambda: pairstep.solve_qp(Q, c, upper=0.2), is_optimal


def portfolio_with_groups(n: int) -> tuple[Call, Check]:
    limits = {0: 0.3, 1: 0.3}
    return portfolio(n, groups=np.arange(n) % 2, group_lower=limits)


def portfolio_with_costs(n: int) -> tuple[Call, Check]:
    return portfolio(n, l1=1e-4, center=np.full(n, 1.0 / n))


def portfolio_with_rows(n: int, count: int) -> tuple[Call, Check]:
    rows = np.random.default_rng(1).standard_normal((count, n))
    middle = rows.mean(axis=1)
    return portfolio(n, rows=rows, rows_lower=middle - 0.01, rows_upper=middle + 0.01)


def portfolio_with_turnover(n: int) -> tuple[Call, Check]:
    return portfolio(n, turnover=(np.full(n, 1.0 / n), 0.2))


def frontier(n: int) -> tuple[Call, Check]:
    rng = np.random.default_rng(n)
    Q, mean = covariance(rng, n), 0.001 * rng.standard_normal(n)
    return lambda: pairstep.efficient_frontier(Q, mean), lambda found: len(found.x) > 2


def batch(count: int, n: int) -> tuple[Call, Check]:
    rng = np.random.default_rng(n)
    Q = np.array([covariance(rng, n) for _ in range(count)])
    return lambda: pairstep.solve_qps(Q, upper=0.2), lambda found: found.success.all()


def unmixing() -> tuple[Call, Check]:
    rng = np.random.default_rng(0)
    A = rng.uniform(size=(100, 6))
    fractions = rng.dirichlet(np.ones(6), 2000).T
    return (
        lambda: pairstep.simplex_lstsq(A, A @ fractions),
        lambda found: np.abs(found.x - fractions.T).max() < 1e-6,
    )


def mixture() -> tuple[Call, Check]:
    f = pairstep.MixtureLikelihood(np.random.default_rng(0).exponential(size=(2000, 50)))
    return lambda: pairstep.minimize(f, pairstep.Simplex()), is_optimal


def large_quadratic(n: int) -> tuple[Call, Check]:
    rng = np.random.default_rng(n)
    f = pairstep.Quadratic(covariance(rng, n), -1e-4 * rng.standard_normal(n))
    return lambda: pairstep.minimize(f, pairstep.SumBox(1.0, 0.0, 0.2)), is_optimal


def factor_model(n: int) -> tuple[Call, Check]:
    rng = np.random.default_rng(n)
    F, D = rng.standard_normal((20, n)), rng.uniform(0.1, 1.0, n)
    f = pairstep.FactorModel(F, D, -0.1 * rng.standard_normal(n))
    return lambda: pairstep.minimize(f, pairstep.Simplex()), is_optimal


def python_function() -> tuple[Call, Check]:
    Q = covariance(np.random.default_rng(0), 50)

    def volatility(x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = Q @ x
        value = float(np.sqrt(x @ gradient))
        return value, gradient / value

    f = pairstep.Smooth(value_and_gradient=volatility, n=50)
    return lambda: pairstep.minimize(f, pairstep.Simplex()), is_optimal


def fit(rows: int, count: int = 2) -> tuple[Call, Check]:
    X, y = classes(np.random.default_rng(0), rows, count)
    return lambda: svm.SVC().fit(X, y), lambda model: model.score(X, y) > 0.4


def regression(rows: int) -> tuple[Call, Check]:
    X, _ = classes(np.random.default_rng(0), rows)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    return lambda: svm.SVR().fit(X, y), lambda model: model.score(X, y) > 0.5


def prediction(rows: int) -> tuple[Call, Check]:
    X, y = classes(np.random.default_rng(0), 2000)
    model = svm.SVC().fit(X, y)
    return lambda: model.predict(X[:rows]), lambda found: found.shape == (rows,)


def search() -> tuple[Call, Check]:
    X, y = classes(np.random.default_rng(0), 400)
    grid = svm.SVCCV(Cs=[0.1, 1, 10], gammas=[0.01, 0.1], cv=3)
    return lambda: grid.fit(X, y), lambda found: found.best_score_ > 0.5


def leave_one_out(rows: int, count: int) -> tuple[Call, Check]:
    X, y = classes(np.random.default_rng(0), rows, count)
    model = svm.SVC().fit(X, y)
    return lambda: svm.leave_one_out(model, X, y), lambda found: found.score > 0.1


def update(rows: int) -> tuple[Call, Check]:
    """Replace the oldest sample by itself, so that all calls do the same work."""
    X, y = classes(np.random.default_rng(0), rows)
    model = svm.SVC().fit(X, y)
    oldest = iter(range(10**9))

    def call() -> Any:
        k = next(oldest) % rows
        return model.update(X[k : k + 1], y[k : k + 1], remove=[0])

    return call, lambda found: len(found.support_) > 0


CALLS: dict[str, Callable[[], tuple[Call, Check]]] = {
    **{f"propose, {rule}, n = 100,000": lambda rule=rule: proposal(rule) for rule in RULES},
    **{f"QP, n = {n}": lambda n=n: portfolio(n) for n in (3, 20, 85, 225)},
    "QP with labels, n = 20": lambda: labeled_portfolio(20),
    "QP with groups, n = 20": lambda: portfolio_with_groups(20),
    "QP with L1 terms, n = 20": lambda: portfolio_with_costs(20),
    "QP with 2 rows, n = 20": lambda: portfolio_with_rows(20, 2),
    "QP with 7 rows, n = 60": lambda: portfolio_with_rows(60, 7),
    "QP with a turnover cap, n = 20": lambda: portfolio_with_turnover(20),
    "frontier, n = 20": lambda: frontier(20),
    "frontier, n = 85": lambda: frontier(85),
    "500 QPs, n = 20": lambda: batch(500, 20),
    "unmixing of 2000 pixels": unmixing,
    "mixture, 2000 rows": mixture,
    "dense quadratic, n = 1000": lambda: large_quadratic(1000),
    "factor model, n = 500": lambda: factor_model(500),
    "Python function, n = 50": python_function,
    "SVC, 60 rows": lambda: fit(60),
    "SVC, 2000 rows": lambda: fit(2000),
    "SVC, 10 classes, 1000 rows": lambda: fit(1000, 10),
    "SVR, 1000 rows": lambda: regression(1000),
    "prediction, 1 row": lambda: prediction(1),
    "prediction, 2000 rows": lambda: prediction(2000),
    "search, 6 candidates": search,
    "leave-one-out, 500 rows": lambda: leave_one_out(500, 2),
    "leave-one-out, 10 classes, 200 rows": lambda: leave_one_out(200, 10),
    "update, 1000 rows": lambda: update(1000),
}


def least_cpu_time(call: Call, seconds: float) -> float:
    """Return the least CPU time of a call over some seconds, at least three samples."""
    began = time.process_time()
    call()
    repeats = max(1, int(MIN_SECONDS_PER_SAMPLE / max(time.process_time() - began, 1e-7)))
    times: list[float] = []
    while len(times) < 3 or time.process_time() - began < seconds:
        start = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - start) / repeats)
    return min(times)


def main() -> None:
    """Answer requests from `benchmarks.compare` until the input ends."""
    prepared: dict[str, Call] = {}
    for line in sys.stdin:
        seconds, _, name = line.rstrip("\n").partition(" ")
        try:
            if name not in prepared:
                call, check = CALLS[name]()
                assert check(call()), "the result is wrong"
                prepared[name] = call
            answer = repr(least_cpu_time(prepared[name], float(seconds)))
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
