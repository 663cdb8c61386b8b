"""Portfolios with at most K names and minimum holdings, proven optimal.

    PAIRSTEP_DATA=... python -m benchmarks.cardinality [--quick] [--only NAME] [--seconds 60]

Problems: the setting of Chang, Meade, Beasley and Sharaiha (2000) on OR-Library's port1 to port3:
minimize ``lambda x'Qx - (1 - lambda) mean'x`` with x >= 0, sum(x) = 1, at most K = 5, 10 or 20
names and holdings of at least 0.01, for 50 values of lambda from 0 to 1. The same for the 20 stocks
of the S&P 500 data set (20 names are no limit there, so 5 and 10 names as well), and for the
174 stocks of OR-Library's index tracking sets 2 and 3 with 20 names. All gaps are 1e-6.

Peers, for a few values of lambda, each with the time limit of --seconds: SCIP with the quadratic as
one constraint, as a sum of squares (Cholesky), and as perspective cones with the diagonal that
pairstep separates; HiGHS, which has no mixed-integer quadratic programs, in a loop of linear
programs with tangents (outer approximation). All use one thread. The objective is scaled to a mean
variance of 1 for them. The fastest form of a solver counts. Optima must agree within the gap.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.optimize

import pairstep
from pairstep.solve.cardinality import separable_part
from pairstep.solve.parametric import Curvature

from .qp_problems import data_folder, index_tracking, or_portfolio

GAP = 1e-6
HOLDING = 0.01
POINTS = 50
PEER_LAMBDAS = (0.5, 0.9, 0.96, 1.0)
REPETITIONS = 3  # of pairstep, for the problems that peers solve; the best counts


@dataclass
class Family:
    name: str
    covariance: np.ndarray
    mean: np.ndarray
    names: int


@dataclass
class Problem:
    """Minimize ``x'Qx / 2 + c'x`` over portfolios of at most `names` holdings."""

    Q: np.ndarray
    c: np.ndarray
    names: int

    def value(self, x: np.ndarray) -> float:
        return float(0.5 * x @ self.Q @ x + self.c @ x)

    def scaled(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return Q and c with a mean variance of 1, and the factor."""
        scale = 1 / max(float(np.diag(self.Q).mean()), 1e-300)
        return scale * self.Q, scale * self.c, scale


@dataclass
class Answer:
    """What a peer found: its point, its own lower bound and why it ended."""

    x: np.ndarray | None
    bound: float
    status: str


def problem(family: Family, weight: float) -> Problem:
    return Problem(2 * weight * family.covariance, -(1 - weight) * family.mean, family.names)


def families(folder: Path, quick: bool) -> Iterator[Family]:
    for k in (1, 2) if quick else (1, 2, 3):
        p = or_portfolio(folder, k)
        assert p.Q is not None
        assert p.c is not None
        for names in (5, 10, 20):
            yield Family(f"port{k}, {p.n} assets, {names} names", p.Q, -p.c / 0.2, names)
    prices = pd.read_csv(folder / "finance" / "skfolio_sp500_dataset.csv.gz", index_col=0)
    returns = prices.pct_change().dropna().to_numpy(float)
    n = returns.shape[1]
    for names in (5, 10, 20):
        title = f"sp500, {n} assets, {names} names"
        yield Family(title, np.cov(returns.T), returns.mean(axis=0), names)
    if not quick:
        weekly = np.hstack([index_tracking(folder, k).A for k in (2, 3)])
        title = f"indtrack2+3, {weekly.shape[1]} assets, 20 names"
        yield Family(title, np.cov(weekly.T), weekly.mean(axis=0), 20)


# ----------------------------------------------------------------------------------------- solvers


def ours(p: Problem, seconds: float) -> pairstep.Result:
    return pairstep.solve_qp(
        p.Q, p.c, max_names=p.names, min_holding=HOLDING, gap=GAP, time_limit=seconds
    )


def scip(form: str) -> Callable[[Problem, float], Answer]:
    def solve(p: Problem, seconds: float) -> Answer:
        from pyscipopt import Model, quicksum

        n = len(p.c)
        Q, c, scale = p.scaled()
        model = Model()
        model.hideOutput()
        model.setParam("limits/time", seconds)
        model.setParam("limits/gap", GAP)
        model.setParam("parallel/maxnthreads", 1)
        model.setParam("lp/threads", 1)
        x = [model.addVar(lb=0, ub=1) for _ in range(n)]
        z = [model.addVar(vtype="B") for _ in range(n)]
        model.addCons(quicksum(x) == 1)
        model.addCons(quicksum(z) <= p.names)
        for own, used in zip(x, z, strict=True):
            model.addCons(own <= used)
            model.addCons(own >= HOLDING * used)
        square = model.addVar(lb=0)
        if form == "one constraint":
            terms = [
                float(Q[i, j] * (1 if i == j else 2)) * x[i] * x[j]
                for i in range(n)
                for j in range(i, n)
            ]
            model.addCons(quicksum(terms) <= square)
            total = 0.5 * square
        else:
            d = np.zeros(n)
            if form == "perspective":
                d = separable_part(Curvature(Q), np.ones(n), np.ones(n), math.inf)
            values, vectors = np.linalg.eigh(Q - np.diag(d))
            root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
            if form == "sum of squares":
                root = np.linalg.cholesky(Q).T
            y = [model.addVar(lb=None) for _ in range(n)]
            for own, line in zip(y, root, strict=True):
                model.addCons(
                    own == quicksum(float(a) * v for a, v in zip(line, x, strict=True) if a)
                )
            model.addCons(quicksum(own * own for own in y) <= square)
            total = 0.5 * square
            if form == "perspective":
                parts = [model.addVar(lb=0) for _ in range(n)]
                for own, used, part in zip(x, z, parts, strict=True):
                    model.addCons(own * own <= part * used)
                total = total + quicksum(
                    0.5 * float(a) * part for a, part in zip(d, parts, strict=True)
                )
        model.setObjective(total + quicksum(float(a) * v for a, v in zip(c, x, strict=True)))
        model.optimize()
        found = np.array([model.getVal(v) for v in x]) if model.getNSols() else None
        status = "optimal" if model.getStatus() in ("optimal", "gaplimit") else model.getStatus()
        return Answer(found, model.getDualbound() / scale, status)

    return solve


def highs(p: Problem, seconds: float) -> Answer:
    """Outer approximation: linear programs with tangents of the quadratic at earlier points."""
    n = len(p.c)
    Q, c, scale = p.scaled()
    eye, none = np.eye(n), np.zeros((n, 1))
    ones, zeros = np.ones((1, n)), np.zeros((1, n))
    fixed = [
        scipy.optimize.LinearConstraint(np.hstack([ones, zeros, [[0.0]]]), 1.0, 1.0),
        scipy.optimize.LinearConstraint(np.hstack([zeros, ones, [[0.0]]]), 0.0, p.names),
        scipy.optimize.LinearConstraint(np.hstack([eye, -eye, none]), -np.inf, 0.0),
        scipy.optimize.LinearConstraint(np.hstack([eye, -HOLDING * eye, none]), 0.0, np.inf),
    ]
    bounds = scipy.optimize.Bounds(0.0, np.r_[np.ones(2 * n), np.inf])
    integral = np.r_[np.zeros(n), np.ones(n), 0.0]
    tangents = [np.r_[Q @ x, np.zeros(n), -1.0] for x in eye]
    limits = [0.5 * float(x @ Q @ x) for x in eye]
    best, point, bound = math.inf, None, -math.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        cuts = scipy.optimize.LinearConstraint(np.array(tangents), -np.inf, limits)
        found = scipy.optimize.milp(
            np.r_[c, np.zeros(n), 1.0], integrality=integral, bounds=bounds,
            constraints=[*fixed, cuts],
            options={"mip_rel_gap": GAP / 10, "time_limit": max(end - time.perf_counter(), 0.01)},
        )  # fmt: skip
        if found.x is None:
            break
        if found.mip_dual_bound is not None:
            bound = max(bound, found.mip_dual_bound)
        x = np.maximum(found.x[:n], 0.0)
        x = x / x.sum()
        value = float(0.5 * x @ Q @ x + c @ x)
        if value < best:
            best, point = value, x
        if best - bound <= GAP * abs(best):
            return Answer(point, bound / scale, "optimal")
        tangents.append(np.r_[Q @ x, np.zeros(n), -1.0])
        limits.append(0.5 * float(x @ Q @ x))
    return Answer(point, bound / scale, "timelimit")


PEERS: dict[str, Callable[[Problem, float], Answer]] = {
    "SCIP, one constraint": scip("one constraint"),
    "SCIP, sum of squares": scip("sum of squares"),
    "SCIP, perspective": scip("perspective"),
    "HiGHS, outer approximation": highs,
}


# --------------------------------------------------------------------------------------- measuring


def frontier(family: Family, points: int, seconds: float) -> None:
    """Print the times of pairstep over all values of lambda, each solved once."""
    times, nodes, unproven = [], 0, []
    for weight in np.linspace(0.0, 1.0, points):
        began = time.perf_counter()
        result = ours(problem(family, weight), seconds)
        times.append(time.perf_counter() - began)
        nodes += result.nodes or 0
        if not result.success:
            unproven.append((weight, result.gap))
    slowest = int(np.argmax(times[1:])) + 1
    print(
        f"  pairstep, {points} points: {sum(times):.3f} s, the first {times[0]:.3f} s, the slowest "
        f"other {times[slowest]:.3f} s at lambda = {slowest / (points - 1):.3f}, {nodes} nodes, "
        f"proven {points - len(unproven)} of {points}",
        flush=True,
    )
    for weight, gap in unproven:
        print(f"    lambda = {weight:.3f}: gap {gap:.1e}")


def compare(family: Family, weight: float, seconds: float, peers: list[str]) -> float | None:
    """Print the times of one problem; return how many times as long SCIP's fastest form takes."""
    p = problem(family, weight)
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        result = ours(p, seconds)
        times.append(time.perf_counter() - began)
    own = min(times)
    print(
        f"  lambda = {weight}: pairstep {own * 1e3:.1f} ms, {result.nodes} nodes, {result.status}"
    )
    fastest: dict[str, float] = {}
    for name in peers:
        began = time.perf_counter()
        try:
            answer = PEERS[name](p, seconds)
        except Exception as error:  # a peer that is not installed or fails
            print(f"    {name:28} {type(error).__name__}: {str(error)[:70]}", flush=True)
            continue
        took = time.perf_counter() - began
        value = math.inf if answer.x is None else p.value(answer.x)
        distance = (value - result.fun) / abs(result.fun)
        note = f"{100 * distance:+.4f}% from our value"
        solver = name.split(",")[0]
        if answer.status == "optimal":
            # Their points satisfy constraints to their tolerance of 1e-6, ours exactly.
            if not -20 * GAP <= distance <= 20 * GAP or not result.success:
                note += " (NOT EQUAL, not counted)"
            else:
                fastest[solver] = min(fastest.get(solver, math.inf), took)
        else:
            note += f", {answer.status}, gap {(value - answer.bound) / abs(value):.1e}"
            fastest.setdefault(solver, math.inf)
        ratio = f"{took / own:8.0f}x" + ("" if answer.status == "optimal" else " or more")
        print(f"    {name:28} {took:8.2f} s {ratio}  {note}", flush=True)
    if "SCIP" not in fastest:
        return None
    return min(fastest["SCIP"], seconds) / own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without port3 and the 174 stocks")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each solve")
    parser.add_argument("--points", type=int, default=POINTS, help="values of lambda for pairstep")
    parser.add_argument("--lambdas", type=float, nargs="*", default=PEER_LAMBDAS, help="for peers")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="parts of their names")
    options = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("set PAIRSTEP_DATA to the folder with the data sets")
    peers = [name for name in PEERS if any(part in name for part in options.peers)]
    ratios = []
    for family in families(folder, options.quick):
        if options.only not in family.name:
            continue
        print(f"\n{family.name}")
        frontier(family, options.points, options.seconds)
        for weight in options.lambdas if peers else ():
            ratio = compare(family, weight, options.seconds, peers)
            if ratio is not None:
                ratios.append(ratio)
    if ratios:
        print(
            f"\nSCIP's fastest form takes {np.exp(np.mean(np.log(ratios))):.0f} times as long in "
            f"the geometric mean of {len(ratios)} problems, {min(ratios):.0f} to {max(ratios):.0f} "
            f"times; solves that hit the limit of {options.seconds:g} s count with that time"
        )


if __name__ == "__main__":
    main()
