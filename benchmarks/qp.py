"""QPs with a sum constraint, compared with other solvers at their best settings.

    python -m benchmarks.qp [--quick] [--out results/qp] [--only PART] [--peers ...] [--budget 20]

Each solver runs at the loosest of several tolerances that reaches the best known objective within
1e-9, relative to the larger term of the objective. A solver that never does is reported as failed
with its gap. The other solvers ("peers") get every advantage: matrices in their preferred layout,
prepared before the clock starts; the objective scaled to a mean diagonal of 1; their own API where
qpsolvers adds overhead; dense and sparse forms; and factor models lifted (``y = Fx``) for solvers
that exploit sparsity. The fastest form counts. pairstep is called through its public functions on
the raw problem, input validation included, with Q or with its factors. Every solver runs in a
forked process, which is killed when one solve exceeds the budget.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import clarabel  # noqa: F401  (imported before the fork, so that the import is not timed)
import cvxopt  # noqa: F401
import daqp
import highspy  # noqa: F401
import numpy as np
import osqp  # noqa: F401
import piqp
import proxsuite
import qpsolvers
import quadprog
import scipy.optimize
import scipy.sparse
import threadpoolctl

import pairstep

from .child import in_child
from .qp_problems import Problem, problems

GAP = 1e-9
TIGHT = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
Solve = Callable[[float], np.ndarray | None]


@dataclass
class Form:
    """One way to run a solver on a problem; `prepare` returns a function of the tolerance."""

    solver: str
    name: str
    prepare: Callable[[], Solve]
    ladder: tuple[float, ...] = TIGHT


@dataclass
class Row:
    solver: str
    form: str
    status: str
    tol: float = np.nan
    first: float = np.nan
    best: float = np.nan
    gap: float = np.nan
    bounds: float = np.nan
    sums: float = np.nan


# ---------------------------------------------------------------------------------------- pairstep


def pairstep_forms(p: Problem) -> list[Form]:
    upper = None if np.isinf(p.upper).all() else p.upper
    box = {"total": p.total, "lower": p.lower, "upper": upper}
    weighted = {**box, "coefficients": p.coefficients}
    ladder = (1e-8, 1e-10, 1e-12, 1e-14)
    calls: dict[str, Callable[..., pairstep.Result]] = {}
    if p.Q is not None:
        calls["Q"] = partial(pairstep.solve_qp, p.Q, p.c, **weighted)
    if p.F is not None:
        calls["factors"] = partial(pairstep.solve_qp, (p.F, p.D), p.c, **weighted)
    if p.A is not None:
        calls["A, b"] = partial(pairstep.simplex_lstsq, p.A, p.b, **box)
    forms = [Form("pairstep", k, lambda f=f: lambda tol: f(tol=tol).x, ladder)
             for k, f in calls.items()]  # fmt: skip

    def prebuilt() -> Solve:
        objective = pairstep.Quadratic(p.Q, p.c)
        limits = pairstep.SumBox(p.total, p.lower, p.upper, p.coefficients)
        return lambda tol: pairstep.minimize(objective, limits, tol=tol).x

    return [*forms, Form("pairstep*", "prebuilt", prebuilt, ladder)] if p.Q is not None else forms


# ------------------------------------------------------------------------------------------- peers


def peer_forms(p: Problem) -> list[Form]:
    scale = float(p.diagonal.mean())
    c = p.c / scale
    forms = []
    if p.Q is not None:
        Q = p.Q / scale
        dense = {"quadprog": quadprog_direct, "daqp": daqp_direct, "piqp": piqp_direct,
                 "proxqp": proxqp_direct}  # fmt: skip
        for name, direct in dense.items():
            ladder = TIGHT if name in ("piqp", "proxqp") else (0.0, 1e-13, 1e-11, 1e-9)
            forms.append(Form(name, "dense", partial(direct, p, Q, c), ladder))
        matrices = {"dense": Q, "sparse": scipy.sparse.csc_matrix(Q)}
        for name, kind in (("cvxopt", "dense"), ("highs", "sparse"), ("clarabel", "sparse"),
                           ("osqp", "sparse")):  # fmt: skip
            program = qpsolvers.Problem(
                matrices[kind], c, A=row(p.sums, kind), b=np.array([p.total]), lb=p.lower,
                ub=None if np.isinf(p.upper).all() else p.upper,
            )  # fmt: skip
            forms.append(Form(name, kind, partial(through_qpsolvers, name, program, p.n)))
        if p.n <= 100:
            forms.append(Form("slsqp", "dense", partial(slsqp, p, Q, c), (1e-9, 1e-12, 1e-15)))
    root = p.F if p.A is None else p.A
    if root is not None and 2 * len(root) <= p.n:
        program = lifted(p, root / np.sqrt(scale), p.D / scale, c)
        for name in ("piqp", "proxqp", "highs", "clarabel", "osqp", "cvxopt"):
            forms.append(Form(name, "lifted", partial(through_qpsolvers, name, program, p.n)))
    return forms


def row(sums: np.ndarray, kind: str):
    matrix = sums.reshape(1, -1)
    return matrix if kind == "dense" else scipy.sparse.csc_matrix(matrix)


def lifted(p: Problem, root: np.ndarray, D: np.ndarray, c: np.ndarray) -> qpsolvers.Problem:
    """Return ``min y'y/2 + x'Dx/2 + c'x`` with ``y = root x``, which needs no n x n matrix."""
    m = len(root)
    P = scipy.sparse.diags(np.r_[D, np.ones(m)], format="csc")
    A = scipy.sparse.bmat(
        [[p.sums.reshape(1, -1), None], [scipy.sparse.csc_matrix(root), -scipy.sparse.eye(m)]],
        format="csc",
    )
    open_ended = np.full(m, np.inf)
    return qpsolvers.Problem(
        P, np.r_[c, np.zeros(m)], A=A, b=np.r_[p.total, np.zeros(m)],
        lb=np.r_[p.lower, -open_ended],
        ub=None if np.isinf(p.upper).all() else np.r_[p.upper, open_ended],
    )  # fmt: skip


def through_qpsolvers(name: str, program: qpsolvers.Problem, n: int) -> Solve:
    def options(tol: float) -> dict:
        both = {"eps_abs": tol, "eps_rel": tol}
        return {
            "piqp": {**both, "eps_duality_gap_abs": tol, "eps_duality_gap_rel": tol},
            "proxqp": {**both, "max_iter": 100_000},
            "osqp": {**both, "polish": True, "max_iter": 1_000_000},
            "clarabel": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
            "highs": {"primal_feasibility_tolerance": max(tol, 1e-10),
                      "dual_feasibility_tolerance": max(tol, 1e-10)},
            "cvxopt": {"abstol": tol, "reltol": tol, "feastol": tol},
        }[name]  # fmt: skip

    def solve(tol: float) -> np.ndarray | None:
        x = qpsolvers.solve_problem(program, solver=name, **options(tol)).x
        return None if x is None else x[:n]

    return solve


def quadprog_direct(p: Problem, Q: np.ndarray, c: np.ndarray) -> Solve:
    capped = np.isfinite(p.upper)
    eye = np.eye(p.n)
    C = np.ascontiguousarray(np.column_stack([p.sums, eye, -eye[:, capped]]))
    b = np.r_[p.total, p.lower, -p.upper[capped]]

    def solve(ridge: float) -> np.ndarray:
        G = Q if ridge == 0 else Q + ridge * eye
        return quadprog.solve_qp(G, -c, C, b, 1)[0]

    return solve


def daqp_direct(p: Problem, Q: np.ndarray, c: np.ndarray) -> Solve:
    A = np.ascontiguousarray(p.sums.reshape(1, -1))
    low = np.r_[np.maximum(p.lower, -1e30), p.total]
    high = np.r_[np.minimum(p.upper, 1e30), p.total]
    sense = np.r_[np.zeros(p.n, np.int32), np.int32(5)].astype(np.int32)

    def solve(tol: float) -> np.ndarray | None:
        tight = {"primal_tol": tol, "dual_tol": tol} if tol else {}
        x, _, flag, _ = daqp.solve(Q, c, A, high, low, sense, iter_limit=100_000, **tight)
        return x if flag > 0 else None

    return solve


def piqp_direct(p: Problem, Q: np.ndarray, c: np.ndarray) -> Solve:
    P, A = np.asfortranarray(Q), np.asfortranarray(p.sums.reshape(1, -1))
    b = np.array([p.total])

    def solve(tol: float) -> np.ndarray:
        solver = piqp.DenseSolver()
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, tol)
        solver.setup(P, c, A, b, x_l=p.lower, x_u=p.upper)
        solver.solve()
        return np.array(solver.result.x)

    return solve


def proxqp_direct(p: Problem, Q: np.ndarray, c: np.ndarray) -> Solve:
    A, b = p.sums.reshape(1, -1), np.array([p.total])
    low, high = np.maximum(p.lower, -1e20), np.minimum(p.upper, 1e20)

    def solve(tol: float) -> np.ndarray:
        qp = proxsuite.proxqp.dense.QP(p.n, 1, 0, True)
        qp.settings.eps_abs, qp.settings.eps_rel = tol, tol
        qp.init(Q, c, A, b, None, None, None, low, high)
        qp.solve()
        return np.array(qp.results.x)

    return solve


def slsqp(p: Problem, Q: np.ndarray, c: np.ndarray) -> Solve:
    threadpoolctl.threadpool_limits(1)  # more threads are slower at this size
    start = p.feasible(np.zeros(p.n))
    budget = {"type": "eq", "fun": lambda x: p.sums @ x - p.total, "jac": lambda x: p.sums}
    bounds = scipy.optimize.Bounds(p.lower, p.upper)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        product = Q @ x
        return 0.5 * x @ product + c @ x, product + c

    return lambda tol: scipy.optimize.minimize(
        both, start, jac=True, method="SLSQP", bounds=bounds, constraints=budget,
        options={"ftol": tol, "maxiter": 1000},
    ).x  # fmt: skip


# ----------------------------------------------------------------------------------------- running


def climb(form: Form, p: Problem, best: float, scale: float, send: Callable) -> None:
    """Tighten the tolerance until the objective is reached."""
    solve = form.prepare()
    send("ready")
    for tol in form.ladder:
        began = time.perf_counter()
        try:
            x = solve(tol)
            trouble = "no solution" if x is None or not np.isfinite(x).all() else ""
        except Exception as error:
            x, trouble = None, f"{type(error).__name__}: {error}"[:60]
        seconds = time.perf_counter() - began
        gap = np.nan if trouble else (p.value(x) - best) / scale
        send((tol, seconds, gap, None if trouble else x, trouble))
        if abs(gap) <= GAP:
            return


def repeat(form: Form, tol: float, send: Callable) -> None:
    solve = form.prepare()
    send("ready")
    began = time.perf_counter()
    count = 0
    while count < 4 or time.perf_counter() - began < 0.3:
        start = time.perf_counter()
        solve(tol)
        send(time.perf_counter() - start)
        count += 1


def run(form: Form, p: Problem, best: float, scale: float, budget: float) -> tuple[Row, list]:
    """Return the row of one form, and all points that it found."""
    result = Row(form.solver, form.name, "failed")
    points = []
    for message in in_child(partial(climb, form, p, best, scale), budget):
        if isinstance(message, str):
            result.status = result.status if message == "ready" else message
            continue
        tol, seconds, gap, x, trouble = message
        if x is not None and (np.isnan(result.gap) or abs(gap) < abs(result.gap)):
            points.append(x)
            result.tol, result.first, result.best, result.gap = tol, seconds, seconds, gap
            result.bounds, result.sums = p.violations(x)
        if trouble and not points:
            result.status = trouble
        if abs(gap) <= GAP:
            result.status = "ok"
        elif x is not None:
            result.status = f"failed (gap {result.gap:.0e})"
    if result.status == "ok" and result.first < budget / 5:
        times = [t for t in in_child(partial(repeat, form, result.tol), budget)
                 if isinstance(t, float)]  # fmt: skip
        if times:
            result.first, result.best = times[0], min(times)
    return result, points


def reference(p: Problem) -> tuple[float, float, float]:
    """Return the best known objective, its scale, and a bound on its relative distance to f*.

    The objective is pairstep's, or also that of peers if pairstep's bound is too large. Points are
    made feasible first, so that infeasibility is no advantage.
    """
    best, scale, bound = np.inf, 1.0, np.inf
    peers = [f for f in peer_forms(p) if f.solver in ("piqp", "clarabel")]
    for form in [*pairstep_forms(p), *peers]:
        tight = Form(form.solver, form.name, form.prepare, (1e-12,))
        for message in in_child(partial(climb, tight, p, 0.0, 1.0), 60):
            if isinstance(message, tuple) and message[3] is not None:
                x = p.feasible(message[3])
                value = p.value(x)
                if value < best:
                    best, scale = value, p.scale(x)
                bound = min(bound, p.certificate(x))
        if bound <= GAP / 10 * scale:
            break
    return best, scale, bound / scale


def fastest(rows: list[Row]) -> Row | None:
    done = [r for r in rows if r.status == "ok"]
    return min(done, key=lambda r: r.best) if done else None


def measure(p: Problem, budget: float, peers: list[str], pace: dict) -> tuple[list[Row], float]:
    """Return the fastest row of each solver, and the bound of the reference solution."""
    best, scale, bound = reference(p)
    groups: dict[str, list[Row]] = {}
    wanted = [f for f in peer_forms(p) if not peers or f.solver in peers]
    for form in [*pairstep_forms(p), *wanted]:
        key = form.solver, form.name
        rows = groups.setdefault(form.solver, [])
        size, seconds = pace.get(key, (p.n, 0.0))
        expected = seconds * (p.n / size) ** (1.2 if form.name == "lifted" else 2.5)
        if expected > budget and p.n >= size and not form.solver.startswith("pairstep"):
            rows.append(Row(*key, f"skipped ({expected:.0f} s expected)"))
            continue
        result, points = run(form, p, best, scale, budget)
        rows.append(result)
        if result.status == "timeout":
            result.status = f"over {budget:g} s"
            pace[key] = (p.n, 1.01 * budget)
        elif p.n >= 300:
            pace[key] = (p.n, result.best if result.status == "ok" else 0.0)
        for x in points:
            lower = (best - p.value(p.feasible(x))) / scale
            if lower > GAP / 5:
                print(f"  NOTE: {form.solver} found a feasible point {lower:.1e} lower")
    chosen = [fastest(rows) or min(rows, key=lambda r: (abs(r.gap) if r.gap == r.gap else 9e9))
              for rows in groups.values()]  # fmt: skip
    return chosen, bound


# --------------------------------------------------------------------------------------- reporting


def best_peer(rows: list[Row]) -> Row | None:
    return fastest([r for r in rows if not r.solver.startswith("pairstep")])


def show(p: Problem, rows: list[Row], bound: float) -> None:
    peer = best_peer(rows)
    print(f"\n{p.name} (n = {p.n}; optimum known to {bound:.0e})")
    print(f"  {'solver':10}{'form':>9}{'first ms':>11}{'best ms':>11}{'gap':>10}{'bounds':>9}"
          f"{'sum':>9}{'x peer':>9}  status")  # fmt: skip
    for r in sorted(rows, key=lambda r: (r.status != "ok", r.best)):
        ratio = r.best / peer.best if peer and r.status == "ok" else np.nan
        status = f"tol {r.tol:.0e}" if r.status == "ok" else r.status
        print(f"  {r.solver:10}{r.form:>9}{1e3 * r.first:11.3f}{1e3 * r.best:11.3f}{r.gap:10.0e}"
              f"{r.bounds:9.0e}{r.sums:9.0e}{ratio:9.3f}  {status}", flush=True)  # fmt: skip


def save(out: Path, table: dict[str, list[tuple[Problem, list[Row]]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    for family, entries in table.items():
        stem = out / family.lower().replace(" ", "-")
        with open(stem.with_suffix(".csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["problem", "n", "solver", "form", "status", "tol", "first_ms",
                             "best_ms", "gap", "bound_violation", "sum_violation",
                             "ratio_to_best_peer"])  # fmt: skip
            for p, rows in entries:
                peer = best_peer(rows)
                for r in rows:
                    ratio = r.best / peer.best if peer and r.status == "ok" else ""
                    writer.writerow([p.name, p.n, r.solver, r.form, r.status, r.tol, 1e3 * r.first,
                                     1e3 * r.best, r.gap, r.bounds, r.sums, ratio])  # fmt: skip
        figure, axes = plt.subplots(figsize=(1.6 * len(entries) + 4, 4.5), layout="constrained")
        solvers = sorted({r.solver for _, rows in entries for r in rows})
        for k, solver in enumerate(solvers):
            heights = [next((1e3 * r.best for r in rows if r.solver == solver and r.status == "ok"),
                            np.nan) for _, rows in entries]  # fmt: skip
            places = np.arange(len(entries)) + 0.8 * k / len(solvers)
            mine = solver.startswith("pairstep")
            axes.bar(places, heights, 0.75 / len(solvers), label=solver,
                     color="black" if mine else f"C{k}",
                     alpha=0.5 if solver == "pairstep*" else 1.0)  # fmt: skip
        axes.set_yscale("log")
        axes.set_xticks(np.arange(len(entries)) + 0.35, [p.name for p, _ in entries])
        axes.set_ylabel("ms, best of several (no bar: failed)")
        axes.set_title(f"{family}: time to the same objective (1e-9)")
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
        for kind in (".png", ".svg"):
            figure.savefig(stem.with_suffix(kind), dpi=150)
        plt.close(figure)


def summarize(entries: list[tuple[Problem, list[Row]]]) -> None:
    print("\nSummary: time of the best peer / time of pairstep\n")
    print(f"  {'problem':24}{'n':>6}{'pairstep ms':>13}"
          f"{'peer ms':>11}  {'peer':22}{'faster':>9}")  # fmt: skip
    large, small, losses = [], [], []
    for p, rows in entries:
        mine = next(r for r in rows if r.solver == "pairstep")
        peer = best_peer(rows)
        if mine.status != "ok" or mine.bounds > 0 or mine.sums > unit(p, mine):
            losses.append(f"{p.name}: {mine.status}, bounds {mine.bounds:.0e}, sum {mine.sums:.0e}")
        if mine.status != "ok" or peer is None:
            print(f"  {p.name:24}{p.n:6}{1e3 * mine.best:13.3f}  {mine.status}; "
                  f"{'no peer reached it' if peer is None else peer.solver}")  # fmt: skip
            continue
        ratio = peer.best / mine.best
        (large if p.n >= 500 else small).append((ratio, p.name))
        mark = "  SLOWER" if ratio < 1 else ""
        print(f"  {p.name:24}{p.n:6}{1e3 * mine.best:13.3f}{1e3 * peer.best:11.3f}  "
              f"{peer.solver + ' ' + peer.form:22}{ratio:8.1f}x{mark}")  # fmt: skip
    if large:
        mean = float(np.exp(np.mean([np.log(r) for r, _ in large])))
        print(f"\n  n >= 500: {mean:.1f}x in geometric mean, "
              f"worst {min(large)[0]:.2f}x at {min(large)[1]}")  # fmt: skip
    if small:
        print(f"  n < 500: worst {min(small)[0]:.2f}x at {min(small)[1]}")
    print("  pairstep inexact or infeasible: " + ("; ".join(losses) or "nowhere"))


def unit(p: Problem, mine: Row) -> float:
    """Return one ulp of the total, or more if coefficients round every term."""
    return (1 if p.coefficients is None else p.n) * float(np.spacing(max(abs(p.total), 1.0)))


def frontier(n: int, points: int = 50) -> None:
    """Compare a frontier over risk aversion, which uses warm starts, with cold solves."""
    from .qp_problems import factor_portfolio

    p = factor_portfolio("", "", n)
    tilts = np.linspace(0, 3, points)
    pairstep.solve_qp(p.Q, p.c, tol=1e-10)
    cold, alone = [], []
    for tilt in tilts:
        began = time.perf_counter()
        alone.append(pairstep.solve_qp(p.Q, tilt * p.c, tol=1e-10).fun)
        cold.append(time.perf_counter() - began)
    began = time.perf_counter()
    risk = pairstep.Quadratic(p.Q)
    results = list(
        pairstep.path(
            lambda tilt: risk.with_linear(tilt * p.c), pairstep.Simplex(), over=tilts, tol=1e-10
        )
    )
    warm = time.perf_counter() - began
    worst = max(abs(r.fun - f) / abs(f) for r, f in zip(results, alone, strict=True))
    print(f"\nFrontier of {points} points, n = {n}\n")
    print(
        f"  cold, solve_qp each: {1e3 * sum(cold):.1f} ms; warm, path: {1e3 * warm:.1f} ms, as "
        f"much as {warm / np.median(cold):.1f} cold solves; largest gap {worst:.0e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n up to 500")
    parser.add_argument("--out", type=Path, default=Path("results/qp"))
    parser.add_argument("--only", default="", help="problems or families with this in their name")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per solve")
    parser.add_argument("--peers", nargs="*", default=[], help="only these, for instance piqp")
    options = parser.parse_args()
    table: dict[str, list[tuple[Problem, list[Row]]]] = {}
    pace: dict = {}
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "default")
    print("pairstep* is minimize on a prebuilt Quadratic")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, BLAS threads: {threads}")
    for p in problems(options.quick):
        if options.only not in p.name and options.only not in p.family:
            continue
        rows, bound = measure(p, options.budget, options.peers, pace)
        show(p, rows, bound)
        p.Q = p.F = p.A = None  # free the memory
        table.setdefault(p.family, []).append((p, rows))
    if table:
        save(options.out, table)
        summarize([entry for entries in table.values() for entry in entries])
    if not options.only or options.only == "frontier":
        frontier(500 if options.quick else 1500)


if __name__ == "__main__":
    main()
