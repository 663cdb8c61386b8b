"""Quadratic programs with general linear rows, and with caps.

    PAIRSTEP_DATA=... python -m benchmarks.rows [--quick] [--only NAME]

Problems: random portfolios (covariances of 2n random returns, means, a cap of 10% or 5/n) whose
rows are random exposures within a band around those of equal weights, and overlapping groups with
an upper limit; the same with factor models of 20 factors, and as least squares on 2n observations;
and weekly returns of real stocks (OR-Library indices), with rows from their data: beta to the
equal-weighted market, momentum, volatility, and groups of stocks that a clustering of their
correlations finds. All have x >= 0 and sum(x) = 1.

Caps: a tracking-error cap and a turnover cap, against Clarabel (second-order cones, with the factor
of the covariance computed beforehand), for the same portfolios.

Peers: piqp, daqp, quadprog, clarabel, highs, proxqp, osqp, cvxopt and moreau, each with the form of
the problem in which it is fastest: dense, sparse, or lifted (with factors as variables). Times do
not include the arrangement of the data for a solver. The best of several calls counts. Every solver
must reach the best objective within 1e-7 of the improvement over the feasible starting portfolio,
and feasibility within 1e-7; it is run with the loosest tolerance of a ladder that does so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import qpsolvers
import scipy

import pairstep

from .qp_batches import FEASIBLE, GAP, best_time
from .qp_problems import data_folder, index_tracking

SLOW = 10.0  # seconds; a peer that takes longer is stopped, or skipped at larger sizes


@dataclass
class Problem:
    name: str
    c: np.ndarray
    upper: np.ndarray
    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray
    Q: np.ndarray | None = None
    F: np.ndarray | None = None  # Q = F'F + diag(D)
    D: np.ndarray | None = None
    family: str = ""

    @property
    def n(self) -> int:
        return len(self.c)

    def value(self, x: np.ndarray) -> float:
        if self.F is None:
            return float(0.5 * x @ (self.Q @ x) + self.c @ x)
        exposures = self.F @ x
        return float(0.5 * (exposures @ exposures + (self.D * x) @ x) + self.c @ x)

    def infeasibility(self, x: np.ndarray) -> float:
        activity = self.rows @ x
        beyond = np.r_[-x, x - self.upper, self.low - activity, activity - self.high]
        return max(float(beyond.max()), abs(float(x.sum()) - 1))


def with_rows(name: str, c: np.ndarray, k: int, rng: np.random.Generator, **form) -> Problem:
    """Half of the rows are exposures within a band, the others are groups with a limit."""
    n = len(c)
    even = np.full(n, 1 / n)
    exposures = rng.normal(size=(k - k // 2, n))
    band = 0.3 / np.sqrt(n)
    groups = (rng.random((k // 2, n)) < 0.2).astype(float)
    middle = exposures @ even
    rows = np.vstack([exposures, groups])
    low = np.r_[middle - band, np.full(k // 2, -np.inf)]
    high = np.r_[middle + band, groups @ even * 1.05]
    return Problem(name, c, np.full(n, max(0.1, 5 / n)), rows, low, high, **form)


def dense(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    returns = rng.normal(size=(2 * n, n)) + 0.1 * rng.normal(size=n)
    Q = returns.T @ returns / (2 * n)
    return with_rows(f"dense {n} x {k}", -returns.mean(axis=0), k, rng, Q=Q, family=f"dense {k}")


def factor(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    F = rng.normal(size=(20, n)) / np.sqrt(20)
    D = rng.uniform(0.2, 1.0, n)
    c = -0.1 * rng.normal(size=n)
    return with_rows(f"factor {n} x {k}", c, k, rng, F=F, D=D, family=f"factor {k}")


def least_squares(n: int, k: int) -> Problem:
    rng = np.random.default_rng(n + k)
    A = rng.normal(size=(2 * n, n)) / np.sqrt(2 * n)
    b = A @ rng.dirichlet(np.full(n, 0.1)) + 0.1 * rng.normal(size=2 * n) / np.sqrt(2 * n)
    name = f"least squares {n} x {k}"
    problem = with_rows(name, -A.T @ b, k, rng, Q=A.T @ A, family=f"least squares {k}")
    problem.A, problem.b = A, b  # type: ignore[attr-defined]
    return problem


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
    c = -0.2 * returns.mean(axis=0)
    return Problem(f"index {index}: {n} x {len(rows)}", c, np.full(n, 0.1), rows, low, high, Q=Q)


def problems(quick: bool) -> Iterator[Problem]:
    for n, k in ((20, 1), (20, 5), (50, 5), (100, 10), (200, 20), (500, 20), (500, 100)):
        yield dense(n, k)
    for n, k in ((100, 10), (500, 10), (2000, 10), (2000, 50)):
        yield factor(n, k)
    for n, k in ((100, 10), (500, 20)):
        yield least_squares(n, k)
    folder = data_folder()
    if folder is not None:
        for index in (1, 2, 3):
            yield real(folder, index)
    if not quick:
        yield dense(1000, 20)
        yield dense(2000, 20)
        yield dense(1000, 100)
        yield factor(5000, 10)
        yield factor(5000, 100)


# ----------------------------------------------------------------------------------------- solvers

Solve = Callable[[], np.ndarray | None]


def ours(p: Problem, tol: float) -> Solve:
    limits = {"upper": p.upper, "rows": p.rows, "rows_lower": p.low, "rows_upper": p.high}
    A = getattr(p, "A", None)
    if A is not None:
        b = p.b  # type: ignore[attr-defined]
        return lambda: pairstep.simplex_lstsq(A, b, tol=tol, **limits).x
    Q = p.Q if p.F is None else (p.F, p.D)
    return lambda: pairstep.solve_qp(Q, p.c, tol=tol, **limits).x


def one_sided(p: Problem) -> tuple[np.ndarray, np.ndarray]:
    above, below = np.isfinite(p.high), np.isfinite(p.low)
    return np.vstack([p.rows[above], -p.rows[below]]), np.r_[p.high[above], -p.low[below]]


def program(p: Problem, form: str) -> qpsolvers.Problem:
    """Return the problem: dense, sparse, or lifted with ``y = Fx`` as further variables."""
    G, h = one_sided(p)
    n, ones = p.n, np.ones((1, p.n))
    if form != "lifted":
        Q = p.Q if p.F is None else p.F.T @ p.F + np.diag(p.D)
        change = scipy.sparse.csc_matrix if form == "sparse" else np.asarray
        return qpsolvers.Problem(change(Q), p.c, change(G), h, change(ones), np.ones(1),
                                 np.zeros(n), p.upper)  # fmt: skip
    m = len(p.F)
    sparse = scipy.sparse
    P = sparse.diags(np.r_[p.D, np.ones(m)], format="csc")
    A = sparse.bmat([[sparse.csc_matrix(ones), None], [sparse.csc_matrix(p.F), -sparse.eye(m)]],
                    format="csc")  # fmt: skip
    G = sparse.csc_matrix(np.hstack([G, np.zeros((len(G), m))]))
    free = np.full(m, np.inf)
    return qpsolvers.Problem(P, np.r_[p.c, np.zeros(m)], G, h, A, np.r_[1.0, np.zeros(m)],
                             np.r_[np.zeros(n), -free], np.r_[p.upper, free])  # fmt: skip


def through_qpsolvers(name: str, form: str, p: Problem, tol: float) -> Solve:
    both = {"eps_abs": tol, "eps_rel": tol}
    settings = {
        "piqp": {**both, "eps_duality_gap_abs": tol, "eps_duality_gap_rel": tol},
        "proxqp": {**both, "max_iter": 100_000},
        "osqp": {**both, "polish": True, "max_iter": 200_000, "time_limit": SLOW},
        "clarabel": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
        "highs": {"time_limit": SLOW, "primal_feasibility_tolerance": max(tol, 1e-10),
                  "dual_feasibility_tolerance": max(tol, 1e-10)},
        "cvxopt": {"abstol": tol, "reltol": tol, "feastol": tol},
        "quadprog": {},
    }[name]  # fmt: skip
    stated = program(p, form)

    def solve() -> np.ndarray | None:
        x = qpsolvers.solve_problem(stated, solver=name, **settings).x
        return None if x is None else x[: p.n]

    return solve


def piqp_dense(p: Problem, tol: float) -> Solve:
    import piqp

    P, A = np.asfortranarray(p.Q), np.ones((1, p.n), order="F")
    G = np.asfortranarray(p.rows)
    b, low = np.ones(1), np.zeros(p.n)

    def solve() -> np.ndarray:
        solver = piqp.DenseSolver()
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, tol)
        solver.setup(P, p.c, A, b, G, p.low, p.high, low, p.upper)
        solver.solve()
        return np.array(solver.result.x)

    return solve


def daqp_dense(p: Problem, tol: float) -> Solve:
    import daqp

    A = np.ascontiguousarray(np.vstack([np.ones((1, p.n)), p.rows]))
    low = np.r_[np.zeros(p.n), 1.0, np.maximum(p.low, -1e30)]
    high = np.r_[p.upper, 1.0, np.minimum(p.high, 1e30)]
    sense = np.zeros(len(low), np.int32)
    sense[p.n] = 5

    def solve() -> np.ndarray:
        return daqp.solve(p.Q, p.c, A, high, low, sense, primal_tol=tol, dual_tol=tol)[0]

    return solve


def moreau_dense(kind: str, p: Problem, tol: float) -> Solve:
    import moreau

    G, h = one_sided(p)
    n = p.n
    cones = moreau.Cones(num_zero_cones=1, num_nonneg_cones=len(h) + 2 * n)
    A = np.vstack([np.ones((1, n)), G, -np.eye(n), np.eye(n)])
    b = np.r_[1.0, h, np.zeros(n), p.upper]
    stored = scipy.sparse.csr_matrix(A)
    settings = moreau.Settings(solver=kind, device="cpu", batch_size=1)
    if kind == "ipm":
        settings.ipm_settings = moreau.IPMSettings(tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    solver = moreau.CompiledSolver(
        n, len(b), np.arange(0, n * n + 1, n), np.tile(np.arange(n), n), stored.indptr,
        stored.indices, cones, settings,
    )  # fmt: skip

    def solve() -> np.ndarray:
        solver.setup(p.Q.reshape(1, -1), stored.data.reshape(1, -1))
        return np.asarray(solver.solve(p.c[None], b[None]).x)[0]

    return solve


def peers(p: Problem) -> dict[str, tuple[Callable[[Problem, float], Solve], tuple[float, ...]]]:
    tight = (1e-6, 1e-8, 1e-10)
    found: dict = {}
    if p.F is None:
        found["piqp"] = piqp_dense, tight
        found["daqp"] = daqp_dense, (1e-6, 1e-9, 1e-12)
        found["quadprog"] = partial(through_qpsolvers, "quadprog", "dense"), (0.0,)
        for name, form in (("proxqp", "dense"), ("clarabel", "sparse"), ("highs", "sparse"),
                           ("osqp", "sparse"), ("cvxopt", "dense")):  # fmt: skip
            found[name] = partial(through_qpsolvers, name, form), tight
        for kind in ("active_set", "ipm"):
            found[f"moreau {kind}"] = partial(moreau_dense, kind), tight
    else:
        for name in ("piqp", "proxqp", "clarabel", "highs", "osqp", "cvxopt"):
            found[f"{name} lifted"] = partial(through_qpsolvers, name, "lifted"), tight
        if p.n <= 500:
            for name in ("piqp", "quadprog"):
                found[f"{name} dense"] = partial(through_qpsolvers, name, "dense"), tight
    return found


def compare(p: Problem, too_slow: set[tuple[str, str]]) -> float | None:
    """Print the times of all solvers; return the ratio of the best peer to pairstep."""
    x = ours(p, 1e-10)()
    best, even = p.value(x), p.value(np.full(p.n, 1 / p.n))
    found: dict[str, float] = {}
    print(f"\n{p.name}")
    solvers = {"pairstep": (ours, (1e-8,)), **peers(p)}
    for name, (build, ladder) in solvers.items():
        if (name, p.family) in too_slow:
            continue
        gap = beyond = np.inf
        for tol in ladder:
            try:
                first, seconds, x = best_time(build(p, tol))
            except Exception as error:  # a peer that is not installed or fails
                print(f"  {name:20} {type(error).__name__}: {str(error)[:70]}")
                break
            if first > 0.5 * SLOW:
                too_slow.add((name, p.family))
            if x is None:
                continue
            gap = (p.value(x) - best) / max(even - best, 1e-12 * abs(best))
            beyond = p.infeasibility(x)
            if abs(gap) <= GAP and beyond <= FEASIBLE:
                found[name] = seconds
                ratio = seconds / found["pairstep"]
                print(f"  {name:20} {seconds * 1e3:9.3f} ms  {ratio:8.2f}x   "
                      f"first {first * 1e3:.1f} ms, gap {gap:.0e}, infeasible by {beyond:.0e}",
                      flush=True)  # fmt: skip
                break
        else:
            print(f"  {name:20} not valid: gap {gap:.1e}, infeasible by {beyond:.1e}", flush=True)
    assert "pairstep" in found, "pairstep did not reach the optimum"
    of_peers = {name: s for name, s in found.items() if name != "pairstep"}
    if not of_peers:
        return None
    name = min(of_peers, key=of_peers.__getitem__)
    ratio = of_peers[name] / found["pairstep"]
    print(f"  the best peer, {name}, takes {ratio:.2f} times as long")
    return ratio


# -------------------------------------------------------------------------------------------- caps


def capped(n: int, kind: str) -> tuple[Solve, Solve, Callable[[np.ndarray], tuple[float, float]]]:
    """Return our solve, Clarabel's, and a function for the value and infeasibility of x."""
    import clarabel

    rng = np.random.default_rng(n)
    returns = rng.normal(size=(2 * n, n))
    Q = returns.T @ returns / (2 * n)
    c = -returns.mean(axis=0)
    start = rng.dirichlet(np.ones(n))
    upper = np.full(n, max(0.1, 5 / n))
    start = np.minimum(start, upper)
    start /= start.sum()
    free = pairstep.solve_qp(Q, c, upper=upper).x
    away = free - start
    error = 0.5 * float(np.sqrt(away @ Q @ away))
    turnover = 0.5 * float(np.abs(away).sum())
    cap = {"tracking_error": (start, error)} if kind == "tracking error" else {
        "turnover": (start, turnover)}  # fmt: skip
    eye, N = np.eye(n), n if kind == "tracking error" else 2 * n
    blocks, rhs = [np.r_[np.ones(n), np.zeros(N - n)][None]], [np.ones(1)]
    lines, limits = (
        [np.hstack([s * eye, np.zeros((n, N - n))]) for s in (-1, 1)],
        [0 * upper, upper],
    )
    if kind == "turnover":
        lines += [np.hstack([s * eye, -eye]) for s in (1, -1)]
        lines.append(np.r_[np.zeros(n), np.ones(n)][None])
        limits += [start, -start, np.array([turnover])]
    blocks.append(np.vstack(lines))
    rhs.append(np.concatenate(limits))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(rhs[-1]))]
    if kind == "tracking error":
        root = np.linalg.cholesky(Q).T
        blocks.append(np.vstack([np.zeros((1, n)), -root]))
        rhs.append(np.r_[error, -root @ start])
        cones.append(clarabel.SecondOrderConeT(n + 1))
    P = np.zeros((N, N))
    P[:n, :n] = np.triu(Q)
    data = (scipy.sparse.csc_matrix(P), np.r_[c, np.zeros(N - n)],
            scipy.sparse.csc_matrix(np.vstack(blocks)), np.concatenate(rhs), cones)  # fmt: skip

    def peer() -> np.ndarray:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
        return np.array(clarabel.DefaultSolver(*data, settings).solve().x)[:n]

    def judge(x: np.ndarray) -> tuple[float, float]:
        from_start = x - start
        over = np.sqrt(from_start @ Q @ from_start) - error if kind == "tracking error" else (
            np.abs(from_start).sum() - turnover)  # fmt: skip
        beyond = max(over, -x.min(), (x - upper).max(), abs(x.sum() - 1))
        return float(0.5 * x @ Q @ x + c @ x), float(beyond)

    return lambda: pairstep.solve_qp(Q, c, upper=upper, **cap).x, peer, judge


def compare_caps(n: int, kind: str) -> float:
    mine, peer, judge = capped(n, kind)
    first, seconds, x = best_time(mine)
    peer_first, peer_seconds, y = best_time(peer)
    (value, beyond), (other, peer_beyond) = judge(x), judge(y)
    assert abs(value - other) <= 1e-6 * abs(other), (value, other)
    assert beyond <= FEASIBLE
    ratio = peer_seconds / seconds
    print(f"{kind} {n}: pairstep {1e3 * seconds:.2f} ms (first {1e3 * first:.1f}), clarabel "
          f"{1e3 * peer_seconds:.2f} ms (first {1e3 * peer_first:.1f}): {ratio:.1f}x; infeasible "
          f"by {beyond:.0e} and {peer_beyond:.0e}, value lower by {other - value:.0e}",
          flush=True)  # fmt: skip
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the largest problems")
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    ratios: dict[str, float] = {}
    too_slow: set[tuple[str, str]] = set()
    for p in problems(options.quick):
        if options.only in p.name:
            ratio = compare(p, too_slow)
            if ratio is not None:
                ratios[p.name] = ratio
    print("\nCaps, against Clarabel")
    for kind in ("tracking error", "turnover"):
        for n in (100, 300) if options.quick else (100, 300, 1000):
            if options.only in f"{kind} {n}":
                ratios[f"{kind} {n}"] = compare_caps(n, kind)
    print("\nSummary: time of the best peer / time of pairstep\n")
    for name, ratio in ratios.items():
        print(f"  {name:28} {ratio:8.2f}")


if __name__ == "__main__":
    main()
