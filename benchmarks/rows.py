"""Quadratic programs with general linear rows, and with caps.

    PAIRSTEP_DATA=... python -m benchmarks.rows [--quick] [--only PART...] [--budget 10]

Table "rows". Problems: random portfolios (covariances of 2n random returns, means, a cap of 10% or
5/n) whose rows are random exposures within a band around those of equal weights, and overlapping
groups with an upper limit; the same with factor models of 20 factors, and as least squares on 2n
observations; and weekly returns of real stocks (OR-Library indices), with rows from their data:
beta to the equal-weighted market, momentum, volatility, and groups of stocks that a clustering of
their correlations finds. All have x >= 0 and sum(x) = 1.

Table "caps": a tracking-error cap and a turnover cap, against Clarabel (second-order cones, with
the factor of the covariance computed beforehand), for the same portfolios.

The peers are those of `benchmarks.qp`, each with the form of the problem in which it is fastest.
Every solver must reach the best objective within 1e-7 of the improvement over equal weights (of the
objective itself for caps: 1e-6), and feasibility within 1e-7.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import scipy

import pairstep

from .harness import Contest, Entry, Solve, Table, compete, data_folder, parser
from .qp import ours
from .qp_peers import PACKAGES, peers
from .qp_problems import Problem, index_tracking

GAP = 1e-7  # largest valid suboptimality, relative to the improvement over equal weights
CAP_GAP = 1e-6  # the same with a cap, relative to the objective
INFEASIBLE = 1e-7
COLUMNS = "problem", "`solve_qp`, ms", "best peer, ms", "faster by"


def with_rows(name: str, n: int, k: int, rng: np.random.Generator, **form) -> Problem:
    """Half of the rows are exposures within a band, the others are groups with a limit."""
    even = np.full(n, 1 / n)
    exposures = rng.normal(size=(k - k // 2, n))
    band = 0.3 / np.sqrt(n)
    groups = (rng.random((k // 2, n)) < 0.2).astype(float)
    middle = exposures @ even
    return Problem(
        f"{name} {n} x {k}", n, upper=max(0.1, 5 / n), rows=np.vstack([exposures, groups]),
        low=np.r_[middle - band, np.full(k // 2, -np.inf)],
        high=np.r_[middle + band, groups @ even * 1.05], **form,
    )  # fmt: skip


def dense(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    returns = rng.normal(size=(2 * n, n)) + 0.1 * rng.normal(size=n)
    Q = returns.T @ returns / (2 * n)
    return with_rows("dense", n, k, rng, Q=Q, c=-returns.mean(axis=0))


def factor(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    F = rng.normal(size=(20, n)) / np.sqrt(20)
    D = rng.uniform(0.2, 1.0, n)
    return with_rows("factor", n, k, rng, F=F, D=D, c=-0.1 * rng.normal(size=n))


def least_squares(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    A = rng.normal(size=(2 * n, n)) / np.sqrt(2 * n)
    b = A @ rng.dirichlet(np.full(n, 0.1)) + 0.1 * rng.normal(size=2 * n) / np.sqrt(2 * n)
    return with_rows("least squares", n, k, rng, A=A, b=b)


def real(folder: Path, index: int) -> Problem:
    """Stocks of an index, with beta, momentum, volatility and clusters as rows."""
    returns = index_tracking(folder, index).A
    n = returns.shape[1]
    Q = np.cov(returns.T)
    Q += 0.1 * np.trace(Q) / n * np.eye(n)
    market = returns.mean(axis=1)
    beta = np.array([np.cov(r, market)[0, 1] for r in returns.T]) / market.var()
    momentum = returns[-52:].sum(axis=0)
    volatility = returns.std(axis=0)
    distance = scipy.spatial.distance.squareform(
        np.sqrt(np.maximum(1 - np.corrcoef(returns.T), 0)), checks=False
    )
    tree = scipy.cluster.hierarchy.linkage(distance, "average")
    cluster = scipy.cluster.hierarchy.fcluster(tree, 8, "maxclust")
    groups = np.array([(cluster == g).astype(float) for g in np.unique(cluster)])
    rows = np.vstack([beta, momentum, volatility, groups])
    even = rows @ np.full(n, 1 / n)
    low = np.r_[0.95, even[1], -np.inf, np.maximum(even[3:] - 0.05, 0)]
    high = np.r_[1.05, np.inf, even[2], even[3:] + 0.05]
    return Problem(
        f"index {index}: {n} x {len(rows)}", n, Q=Q, c=-0.2 * returns.mean(axis=0), upper=0.1,
        rows=rows, low=low, high=high,
    )  # fmt: skip


def problems(quick: bool) -> Iterator[Problem]:
    for n, k in ((20, 1), (20, 5), (50, 5), (100, 10), (200, 20), (500, 20), (500, 100)):
        yield dense(n, k)
    for n, k in ((100, 10), (500, 10), (2000, 10), (2000, 50)):
        yield factor(n, k)
    for n, k in ((100, 10), (500, 20)):
        yield least_squares(n, k)
    folder = data_folder(required=False)
    if folder is not None:
        for index in (1, 2, 3):
            yield real(folder, index)
    if not quick:
        yield dense(1000, 20)
        yield dense(2000, 20)
        yield dense(1000, 100)
        yield factor(5000, 10)
        yield factor(5000, 100)


# -------------------------------------------------------------------------------------------- caps


def capped(n: int, kind: str) -> Contest:
    """Return pairstep and Clarabel on a portfolio with a cap, and the judge of their points."""
    rng = np.random.default_rng(n)
    returns = rng.normal(size=(2 * n, n))
    Q = returns.T @ returns / (2 * n)
    c = -returns.mean(axis=0)
    upper = np.full(n, max(0.1, 5 / n))
    start = np.minimum(rng.dirichlet(np.ones(n)), upper)
    start /= start.sum()
    away = pairstep.solve_qp(Q, c, upper=upper).x - start
    error = 0.5 * float(np.sqrt(away @ Q @ away))
    turnover = 0.5 * float(np.abs(away).sum())
    cap = {"tracking_error": (start, error)} if kind == "tracking error" else {
        "turnover": (start, turnover)}  # fmt: skip

    def own() -> Solve:
        return lambda tol: pairstep.solve_qp(Q, c, upper=upper, tol=tol, **cap).x

    def clarabel() -> Solve:
        import clarabel

        eye, N = np.eye(n), n if kind == "tracking error" else 2 * n
        equality = np.r_[np.ones(n), np.zeros(N - n)][None]
        lines = [np.hstack([s * eye, np.zeros((n, N - n))]) for s in (-1, 1)]
        limits = [0 * upper, upper]
        if kind == "turnover":
            lines += [np.hstack([s * eye, -eye]) for s in (1, -1)]
            lines.append(np.r_[np.zeros(n), np.ones(n)][None])
            limits += [start, -start, np.array([turnover])]
        blocks, rhs = [equality, *lines], [np.ones(1), *limits]
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(sum(map(len, limits)))]
        if kind == "tracking error":
            root = np.linalg.cholesky(Q).T
            blocks.append(np.vstack([np.zeros((1, n)), -root]))
            rhs.append(np.r_[error, -root @ start])
            cones.append(clarabel.SecondOrderConeT(n + 1))
        P = np.zeros((N, N))
        P[:n, :n] = np.triu(Q)
        data = (scipy.sparse.csc_matrix(P), np.r_[c, np.zeros(N - n)],
                scipy.sparse.csc_matrix(np.vstack(blocks)), np.concatenate(rhs), cones)  # fmt: skip

        def solve(tol: float) -> np.ndarray:
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
            return np.array(clarabel.DefaultSolver(*data, settings).solve().x)[:n]

        return solve

    def value(x: np.ndarray) -> float:
        return float(0.5 * x @ Q @ x + c @ x)

    best = value(own()(1e-10))

    def judged(x: np.ndarray) -> tuple[float, float]:
        moved = x - start
        over = np.sqrt(moved @ Q @ moved) - error if kind == "tracking error" else (
            np.abs(moved).sum() - turnover)  # fmt: skip
        beyond = max(over, -x.min(), (x - upper).max(), abs(x.sum() - 1))
        return (value(x) - best) / abs(best), float(beyond)

    ladder = (1e-8, 1e-10)
    return [
        Entry("pairstep", "Q", own, ladder), Entry("clarabel", "cones", clarabel, ladder),
    ], judged  # fmt: skip


def contest(p: Problem) -> Contest:
    best = p.value(ours(p)[-1].prepare()(1e-10))
    gain = max(p.value(np.full(p.n, 1 / p.n)) - best, 1e-12 * abs(best))
    return [*ours(p), *peers(p)], lambda x: ((p.value(x) - best) / gain, p.infeasibility(x))


def main() -> None:
    options = parser(__doc__, budget=10.0).parse_args()
    plot = "faster by", "times faster than the best peer"
    table = Table(options.out, "rows", "Quadratic programs with rows", COLUMNS, PACKAGES, plot)
    for p in problems(options.quick):
        compete(options, table, p.name, partial(contest, p), (GAP, INFEASIBLE))
    caps = Table(options.out, "caps", "Portfolios with a cap", COLUMNS, ["clarabel"], plot)
    for kind in ("tracking error", "turnover"):
        for n in (100, 300) if options.quick else (100, 300, 1000):
            compete(options, caps, f"{kind} {n}", partial(capped, n, kind), (CAP_GAP, INFEASIBLE))
    table.summarize("faster by")
    caps.summarize("faster by")


if __name__ == "__main__":
    main()
