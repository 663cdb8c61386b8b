"""A user's script for type checkers: it uses the whole public API, and it runs."""

from __future__ import annotations

import io
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from numpy.typing import NDArray

import pairstep
from pairstep.svm import SVC, SVCCV, SVR, SVRCV, NuSVC, NuSVR, OneClassSVM, load, save

Array = NDArray[np.float64]
GENERAL: dict[str, Any] = {"G": -np.eye(4), "h": np.zeros(4), "A": np.ones(4), "b": 1.0, "ub": 0.5}


def problem() -> tuple[Array, Array]:
    """A covariance and a mean."""
    returns = np.random.default_rng(0).normal(0.001, 0.02, (60, 4))
    return np.cov(returns.T), returns.mean(axis=0)


def portfolio(covariance: Array, mean: Array) -> pairstep.Result:
    """Solve a portfolio with every argument."""
    names = ["a", "b", "c", "d"]
    risk = pd.DataFrame(covariance, index=names, columns=names)
    result: pairstep.Result = pairstep.solve_qp(
        risk, pd.Series(-mean, index=names), total=1.0, lower=0.0, upper=[0.5] * 4, l1=1e-4,
        center=0.25, x0=np.full(4, 0.25), tol=1e-9, max_iter=1000, time_limit=10.0,
        callback=stop_late, verbose=False,
    )  # fmt: skip
    ranged = pairstep.solve_qp(
        (np.eye(4), 0.1), total=(0.5, 1.0), coefficients=[1.0, 1.0, 2.0, 2.0], groups=[0, 0, 0, 0]
    )
    polars = pairstep.solve_qp(pl.DataFrame(covariance, schema=names, orient="row"))
    costly = pairstep.solve_qp(risk, l1=(0.0, pd.Series(1e-4, index=names)), center=result.weights)
    assert all(other.success for other in (ranged, polars, costly))
    return result


def sectors(covariance: Array, mean: Array) -> None:
    """Solve with limits on groups under one total."""
    result = pairstep.solve_qp(
        covariance, groups=list("xxyy"), group_total={"x": (0.0, 0.3), "y": 0.7}
    )
    limits = pd.DataFrame({"low": [0.0], "high": [0.3]}, index=["x"])
    framed = pairstep.solve_qp(covariance, groups=list("xxyy"), group_total=limits)
    assert np.allclose(framed.x, result.x)
    capped = pairstep.solve_qp(
        covariance, groups=list("xxyy"), group_lower={"y": 0.7}, group_upper={"x": 0.3}
    )
    assert np.allclose(capped.x, result.x)
    assert pairstep.solve_qp(covariance, constraint=pairstep.Simplex()).success
    added: dict[Hashable, float] | None = result.group_multipliers
    assert added is not None
    assert added["x"] < 0
    box = pairstep.SumBox(total=1.0, groups=["x", 1, 1, ("y", 2)], group_total={1: (0.0, 0.3)})
    size: int | None = box.size
    assert size == 4
    frontiers = [
        pairstep.efficient_frontier(covariance, mean, box, target_return=0.002),
        pairstep.efficient_frontier((covariance, 0.1), mean, target_risk=[0.2, 0.3], tol=1e-8),
    ]
    for frontier in frontiers:
        rows: Array = frontier.x
        numbers = frontier.expected_return, frontier.risk, frontier.tradeoff, frontier.kkt_violation
        assert all(len(values) == len(rows) for values in numbers), frontier.weights


def stop_late(progress: pairstep.Progress) -> bool:
    """A callback."""
    x: Array = progress.x
    violation: float = progress.violation
    return progress.n_iter > 10_000 and progress.time > 60 and violation < x.max() < progress.value


def attributes(result: pairstep.Result) -> None:
    """Read the attributes of a result."""
    x: Array = result.x
    multipliers: Array = result.bound_multipliers
    multiplier: float | Array = result.sum_multiplier
    status: pairstep.Status = result.status
    success: bool = result.success
    numbers: list[float] = [
        result.fun, result.kkt_violation, result.suboptimality_bound, result.setup_time,
        result.solve_time,
    ]  # fmt: skip
    counts: tuple[int, int] = result.n_iter, result.nit
    text: str = result.message + result.remark + str(status) + repr(result)
    tolerance: float = result.tolerance
    assert result.kkt_violation <= tolerance
    history: pairstep.History | None = result.history
    assert history is None or len(history.value) == len(history.interior) == len(history.time)
    assert len(x) == len(multipliers) == len(result.gradient) == len(result.weights)
    assert np.isfinite([*numbers, *np.ravel(multiplier), *counts]).all()
    assert success, text


def batch(A: Array) -> pairstep.BatchResult:
    """Many right-hand sides."""
    batch = pairstep.solve_qps(np.array([np.eye(3), np.eye(3)]), total=[1.0, 2.0], n_jobs=2)
    assert batch.vjp(np.ones((2, 3)))["total"].shape == batch.jvp(total=1.0).sum(axis=1).shape
    limited = pairstep.solve_qp(np.eye(3), rows=np.eye(3)[:1], rows_lower=0.5, rows_upper=0.6)
    assert limited.row_multipliers is not None
    even = np.full(3, 1 / 3)
    capped = pairstep.solve_qp(
        np.eye(3), [0.0, 0.1, 0.2], turnover=(even, 0.5), tracking_error=(even, 0.3),
        max_risk=0.9, min_return=([0.1, 0.2, 0.3], 0.1),
    )  # fmt: skip
    assert capped.cap_multipliers is not None
    assert pairstep.solve_qp(None, [0.0, 0.1, 0.2], covariance=np.eye(3), max_risk=0.6).success
    few = pairstep.solve_qp(
        np.eye(3), max_names=2, min_holding=[0.1, 0.1, 0.2], fixed_cost=0.01, gap=1e-4,
        time_limit=10.0, callback=stop_late,
    )  # fmt: skip
    gap: float | None = few.gap
    bound: float | None = few.bound
    nodes: int | None = few.nodes
    assert gap is not None
    assert bound is not None
    assert nodes is not None
    assert [gap, bound, -nodes] <= [1e-4, few.fun, 0]
    result = pairstep.simplex_lstsq(A, A[:, :2], upper=1.0, ridge=0.1, n_jobs=2, verbose=False)
    assert isinstance(result, pairstep.BatchResult)
    success: NDArray[np.bool_] = result.success
    points: Array = result.x
    assert success.all(), points
    return result


def objectives(covariance: Array, mean: Array) -> list[pairstep.Result]:
    """Every objective, with rules, steps and constraints."""
    box = pairstep.SumBox(total=1.0, lower=-0.5, upper=[1.0] * 4)
    start: Array = box.start()
    near: Array = box.project([1.0, 2.0, 3.0, 4.0])
    quadratic = pairstep.Quadratic(covariance, -mean)
    smooth = pairstep.Smooth(quadratic.value, quadratic.gradient, lipschitz=np.diag(covariance))
    both = pairstep.Smooth(value_and_gradient=quadratic.value_and_gradient, n=4)
    with_hessian = [
        pairstep.Smooth(quadratic.value, quadratic.gradient, hessian, n=4)
        for hessian in (dense_hessian, sparse_hessian, factors, model)
    ]
    values = pairstep.Smooth(quadratic.value, n=4)
    results = [
        pairstep.coordinate_descent(quadratic, box, rule="gs-1", step="1/L2", history=True, seed=1),
        pairstep.minimize(pairstep.LeastSquares(covariance, mean), box, x0=near),
        pairstep.minimize(pairstep.FactorModel(covariance, 0.1, -mean), box, x0=start),
        pairstep.minimize(pairstep.L1Penalized(quadratic, 0.1, 0.25), pairstep.Simplex(2.0)),
        *(pairstep.minimize(f, box, max_iter=50) for f in (smooth, both, values, *with_hessian)),
        pairstep.minimize(pairstep.L1Penalized(both, (0.1, [0.2] * 4)), box, callback=stop_late),
        pairstep.minimize(*pairstep.from_qp(covariance, -mean, **GENERAL)),
    ]
    results += [
        pairstep.minimize(objective, pairstep.Simplex()) for objective in ready_made(covariance)
    ]
    frontier: pairstep.Frontier = pairstep.efficient_frontier(covariance, mean, n_points=3)
    assert len(frontier.risk) == 3
    best: pairstep.Portfolio = frontier.max_sharpe(risk_free=0.0)
    assert best.risk >= frontier.min_variance.risk
    assert len(frontier.corners.x) > 1
    assert frontier.at(target_return=best.expected_return).x.shape == best.x.shape
    costly = pairstep.efficient_frontier(
        covariance, mean, l1=1e-4, center=0.25, rows=np.eye(4)[:1], rows_lower=0.1, rows_upper=0.9
    )
    assert costly.x[:, 0].min() >= 0.1 - 1e-12
    results += pairstep.path(quadratic, pairstep.Simplex, over=[1.0, 2.0], tol=1e-6)
    return results


def dense_hessian(x: Array) -> Array:
    """A dense Hessian; the next functions return its other forms."""
    return np.eye(len(x))


def sparse_hessian(x: Array) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(np.eye(len(x)))


def factors(x: Array) -> tuple[Array, float]:
    return np.ones((1, len(x))), 1.0


def model(x: Array) -> pairstep.FactorModel:
    return pairstep.FactorModel(np.ones((1, len(x))), 1.0)


def ready_made(covariance: Array) -> list[pairstep.Smooth]:
    """Every built-in smooth objective."""
    positive = np.abs(covariance) + 0.1
    return [
        pairstep.MixtureLikelihood(positive),
        pairstep.LogGrowth(0.1 * covariance, weights=[1.0, 1.0, 2.0, 1.0]),
        pairstep.Logistic(covariance, [0, 1, 1, 0]),
        pairstep.KLDivergence(positive, [1.0, 2.0, 3.0, 4.0]),
        pairstep.DOptimal(covariance),
        pairstep.RiskParity(covariance, budgets=0.5),
    ]


def own_rule(coordinates: pairstep.coordinates.Coordinates, alpha: float) -> pairstep.Step:
    """A custom rule."""
    i, j = int(np.argmax(coordinates.left_derivative)), int(np.argmin(coordinates.right_derivative))
    gap = float(coordinates.left_derivative[i] - coordinates.right_derivative[j])
    amount = min(alpha * gap / 2, coordinates.max_decrease[i], coordinates.max_increase[j])
    return pairstep.Step(np.array([i, j]), np.array([-amount, amount]), amount * gap)


def estimators(X: Array) -> None:
    """Estimators with scikit-learn's interface."""
    y = X[:, 0] > X[:, 0].mean()
    for model in (SVC(C=10.0), NuSVC(nu=0.2)):
        assert model.fit(X, y).predict(X).shape == y.shape
    for regressor in (SVR(epsilon=0.01), NuSVR(n_jobs=1), pairstep.SimplexRegressor(upper=0.9)):
        assert regressor.fit(X, X[:, 1]).predict(X).shape == y.shape
    assert OneClassSVM(nu=0.1).fit(X).predict(X).shape == y.shape
    file = io.BytesIO()
    save(SVC().fit(X, y), file)
    file.seek(0)
    assert (load(file).predict(X) == SVC().fit(X, y).predict(X)).all()
    for search in (SVCCV(Cs=[1.0, 10.0], cv=2), SVRCV(Cs=[1.0], cv=2)):
        assert search.fit(X, y).predict(X).shape == y.shape


def main() -> None:
    """Run everything."""
    covariance, mean = problem()
    attributes(portfolio(covariance, mean))
    attributes(pairstep.solve_qp(covariance, -mean))
    sectors(covariance, mean)
    batch(covariance)
    for result in objectives(covariance, mean):
        assert result.x.shape == (4,)
    rule = pairstep.coordinate_descent(
        pairstep.Quadratic(covariance), pairstep.Simplex(), rule=own_rule
    )
    step: pairstep.Step = pairstep.propose("gs-1", mean, rule.x, 0.0, 1.0, alpha=0.1)
    assert abs(step.delta.sum()) < 1e-12
    assert step.decrease >= 0
    assert len(step.indices) == len(step.delta)
    estimators(np.random.default_rng(1).normal(size=(30, 3)))
    pairstep.show_versions()


if __name__ == "__main__":
    main()
