"""Batches of different quadratic programs.

    PAIRSTEP_DATA=... python -m benchmarks.qp_batches [--quick] [--only NAME]

Problems: random portfolios of several sizes (covariances of 2n random returns, means, a cap of 10%
or 3/n); backtests with real returns: 1000 dates of 36 NYSE stocks with windows of 250 days, and 238
weeks of 100 stocks of two indices with windows of 52 weeks and a shrunk covariance; a placebo test
of a synthetic control, with every state and every year as if it had been treated (least squares, as
quadratic programs); and stacking weights of bootstrap samples. All have x >= 0 and sum(x) = 1.

Peers: Moreau's compiled batch solver (active set and interior point), ProxQP's parallel batch, and
loops over piqp, daqp and pairstep's own `solve_qp`. Times do not include the arrangement of the
data for a solver, except for what a solver must repeat when the matrices change. The best of
several calls counts. Every solver must reach the objective of the best within 1e-7 of the
improvement over equal weights, and feasibility within 1e-7; it is run with its loosest tolerance of
a ladder that does so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import pairstep

from .qp_problems import data_folder, index_tracking

SECONDS = 1.0  # a call is repeated for this long
MAX_CALLS = 30
GAP = 1e-7  # largest valid suboptimality, relative to the improvement over equal weights
FEASIBLE = 1e-7


@dataclass
class Batch:
    name: str
    Q: np.ndarray
    c: np.ndarray
    upper: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.shape[0], self.c.shape[1]

    def values(self, X: np.ndarray) -> np.ndarray:
        return np.einsum("bi,bij,bj->b", X, self.Q, X) / 2 + np.einsum("bi,bi->b", self.c, X)


def portfolios(count: int, n: int, capped: bool = True) -> Batch:
    rng = np.random.default_rng(n)
    returns = rng.normal(size=(count, 2 * n, n)) + 0.1 * rng.normal(size=(count, 1, n))
    Q = np.matmul(returns.transpose(0, 2, 1), returns) / (2 * n)
    upper = np.full(n, max(0.1, 3 / n)) if capped else None
    return Batch(f"{count} x {n}", Q, -returns.mean(axis=1), upper)


def backtest(folder: Path) -> Batch:
    relatives = pd.read_csv(folder / "finance" / "olps_nyse_o.csv.gz", index_col=0).to_numpy(float)
    returns = relatives - 1 if relatives.min() > 0 else relatives
    windows = np.lib.stride_tricks.sliding_window_view(returns, 250, axis=0)[-4000::4]
    Q = np.array([np.cov(window) for window in windows])
    return Batch(
        f"backtest {len(Q)} x {Q.shape[1]}",
        Q,
        -0.2 * windows.mean(axis=2),
        np.full(Q.shape[1], 0.2),
    )


def weekly_backtest(folder: Path) -> Batch:
    returns = np.hstack([index_tracking(folder, k).A for k in (2, 3)])[:, :100]
    windows = np.lib.stride_tricks.sliding_window_view(returns, 52, axis=0)
    Q = np.array([np.cov(window) for window in windows])
    variance = np.trace(Q, axis1=1, axis2=2) / Q.shape[1]
    Q = 0.8 * Q + 0.2 * variance[:, None, None] * np.eye(Q.shape[1])
    name = f"weekly backtest {len(Q)} x {Q.shape[1]}"
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
    return Batch(f"placebos {len(Q)} x {len(c[0])}", np.array(Q), np.array(c), None)


def stacking() -> Batch:
    rng = np.random.default_rng(8)
    truth = rng.normal(size=2000)
    models = truth[:, None] + rng.normal(size=(2000, 10)) * rng.uniform(0.5, 2.0, 10)
    rows = rng.integers(0, 2000, (1000, 2000))
    Q = np.array([models[r].T @ models[r] for r in rows]) / 2000
    c = -np.array([models[r].T @ truth[r] for r in rows]) / 2000
    return Batch("stacking 1000 x 10", Q, c, None)


def batches(quick: bool) -> Iterator[Batch]:
    sizes = [(128, 24), (1000, 50), (256, 100)]
    for count, n in sizes if quick else [*sizes, (10_000, 50), (100, 500)]:
        yield portfolios(count, n)
    folder = data_folder()
    if folder is not None:
        yield backtest(folder)
        yield weekly_backtest(folder)
        yield placebos(folder)
    yield stacking()


# ----------------------------------------------------------------------------------------- solvers

Solve = Callable[[], np.ndarray]


def ours(p: Batch, tol: float) -> Solve:
    return lambda: pairstep.solve_qps(p.Q, p.c, upper=p.upper, tol=tol).x


def our_loop(p: Batch, tol: float) -> Solve:
    return lambda: np.array(
        [pairstep.solve_qp(Q, c, upper=p.upper, tol=tol).x for Q, c in zip(p.Q, p.c, strict=True)]
    )


def daqp_loop(p: Batch, tol: float) -> Solve:
    import daqp

    count, n = p.shape
    A = np.ones((1, n))
    high = np.r_[np.full(n, 1e30) if p.upper is None else p.upper, 1.0]
    low = np.r_[np.zeros(n), 1.0]
    sense = np.r_[np.zeros(n, np.int32), np.int32(5)].astype(np.int32)

    def solve() -> np.ndarray:
        return np.array([
            daqp.solve(p.Q[k], p.c[k], A, high, low, sense, primal_tol=tol, dual_tol=tol)[0]
            for k in range(count)
        ])  # fmt: skip

    return solve


def piqp_loop(p: Batch, tol: float) -> Solve:
    import piqp

    count, n = p.shape
    A, b = np.ones((1, n), order="F"), np.ones(1)
    low, high = np.zeros(n), np.full(n, np.inf) if p.upper is None else p.upper
    matrices = [np.asfortranarray(Q) for Q in p.Q]

    def solve() -> np.ndarray:
        X = np.empty((count, n))
        for k in range(count):
            solver = piqp.DenseSolver()
            solver.settings.verbose = False
            solver.settings.eps_abs = solver.settings.eps_rel = tol
            solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tol
            solver.setup(P=matrices[k], c=p.c[k], A=A, b=b, x_l=low, x_u=high)
            solver.solve()
            X[k] = solver.result.x
        return X

    return solve


def proxqp_batch(p: Batch, tol: float) -> Solve:
    from proxsuite import proxqp

    count, n = p.shape
    A, b = np.ones((1, n)), np.ones(1)
    high = np.full(n, 1e20) if p.upper is None else p.upper

    def solve() -> np.ndarray:
        problems = proxqp.dense.BatchQP()
        for k in range(count):
            qp = problems.init_qp_in_place(n, 1, n)
            qp.settings.eps_abs = tol
            qp.init(p.Q[k], p.c[k], A, b, np.eye(n), np.zeros(n), high)
        proxqp.dense.solve_in_parallel(problems, 2)
        return np.array([problems.get(k).results.x for k in range(count)])

    return solve


def moreau_solver(p: Batch, kind: str, tol: float, gradients: bool = False):
    """Return a compiled solver, and the arguments of its two calls."""
    import moreau

    count, n = p.shape
    caps = 0 if p.upper is None else n
    m = 1 + n + caps
    rows = [np.arange(n)] + [np.array([i]) for i in range(n)] + [np.array([i]) for i in range(caps)]
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    values = np.concatenate([np.ones(n), -np.ones(n), np.ones(caps)])
    b = np.concatenate([[1.0], np.zeros(n), p.upper if caps else []])
    settings = moreau.Settings(
        solver=kind, device="cpu", batch_size=count, enable_grad=gradients,
    )  # fmt: skip
    if kind == "ipm":
        settings.ipm_settings = moreau.IPMSettings(tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    solver = moreau.CompiledSolver(
        n, m, np.arange(0, n * n + 1, n), np.tile(np.arange(n), n), offsets,
        np.concatenate(rows), moreau.Cones(num_zero_cones=1, num_nonneg_cones=n + caps), settings,
    )  # fmt: skip
    matrices = p.Q.reshape(count, -1), np.tile(values, (count, 1))
    return solver, matrices, (p.c, np.tile(b, (count, 1)))


def moreau_batch(kind: str) -> Callable[[Batch, float], Solve]:
    def build(p: Batch, tol: float) -> Solve:
        solver, matrices, vectors = moreau_solver(p, kind, tol)

        def solve() -> np.ndarray:
            solver.setup(*matrices)
            return np.asarray(solver.solve(*vectors).x)

        return solve

    return build


PEERS: dict[str, tuple[Callable[[Batch, float], Solve], tuple[float, ...]]] = {
    "moreau, active set": (moreau_batch("active_set"), (1e-6,)),
    "moreau, interior point": (moreau_batch("ipm"), (1e-6, 1e-8, 1e-10)),
    "proxqp, parallel": (proxqp_batch, (1e-5, 1e-7, 1e-9)),
    "piqp, loop": (piqp_loop, (1e-6, 1e-8, 1e-10)),
    "daqp, loop": (daqp_loop, (1e-6, 1e-9, 1e-12)),
}


# --------------------------------------------------------------------------------------- measuring


def best_time(call: Callable[[], object]) -> tuple[float, float, object]:
    """Return the first and the best time, and the result."""
    times: list[float] = []
    while not times or (len(times) < MAX_CALLS and sum(times) + times[-1] < SECONDS):
        began = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - began)
    return times[0], min(times), found


def quality(p: Batch, X: np.ndarray, best: np.ndarray) -> tuple[float, float]:
    """Return the largest relative suboptimality and the largest infeasibility."""
    n = p.shape[1]
    even = p.values(np.full(p.shape, 1 / n))
    gap = (p.values(X) - best) / np.maximum(even - best, 1e-12 * np.abs(best))
    cap = np.inf if p.upper is None else p.upper
    beyond = max(np.maximum(-X, 0).max(), np.maximum(X - cap, 0).max(), np.abs(X.sum(1) - 1).max())
    return float(np.nanmax(gap)), float(beyond)


def compare(p: Batch) -> None:
    X = ours(p, 1e-12)()
    best = p.values(X)
    found: dict[str, float] = {}
    solvers = {"pairstep": (ours, (1e-8,)), "pairstep, loop": (our_loop, (1e-8,))} | PEERS
    print(f"\n{p.name}")
    for name, (build, ladder) in solvers.items():
        for tol in ladder:
            try:
                first, seconds, X = best_time(build(p, tol))
            except Exception as error:  # a peer that is not installed or fails
                print(f"  {name:24} {type(error).__name__}: {str(error)[:70]}")
                break
            gap, beyond = quality(p, X, best)
            if gap <= GAP and beyond <= FEASIBLE:
                found[name] = seconds
                ratio = seconds / found["pairstep"]
                print(f"  {name:24} {seconds * 1e3:9.2f} ms  {ratio:8.1f}x   "
                      f"first {first * 1e3:.1f} ms, gap {gap:.0e}, tol {tol:.0e}",
                      flush=True)  # fmt: skip
                break
        else:
            print(f"  {name:24} not valid: gap {gap:.1e}, infeasible by {beyond:.1e}", flush=True)
    peers = {name: s for name, s in found.items() if not name.startswith("pairstep")}
    if peers:
        name = min(peers, key=peers.__getitem__)
        print(f"  the best peer, {name}, takes {peers[name] / found['pairstep']:.1f} times as long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the largest batches")
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    for p in batches(options.quick):
        if options.only in p.name:
            compare(p)


if __name__ == "__main__":
    main()
