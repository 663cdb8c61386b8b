"""Portfolios with at most K names and minimum holdings, proven optimal.

    PAIRSTEP_DATA=... python -m benchmarks.cardinality [--quick] [--only PART...] [--budget 60]

Tables "cardinality" and "cardinality-peers". Problems: the setting of Chang, Meade, Beasley and
Sharaiha (2000) on OR-Library's port1 to port3: minimize ``lambda x'Qx - (1 - lambda) mean'x`` with
x >= 0, sum(x) = 1, at most K = 5, 10 or 20 names and holdings of at least 0.01, for 50 values of
lambda from 0 to 1. The same for the 20 stocks of the S&P 500 data set (20 names are no limit there,
so 5 and 10 names as well), and for the 174 stocks of OR-Library's index tracking sets 2 and 3 with
20 names. All gaps are 1e-6.

Peers, for a few values of lambda, each until the budget is spent: SCIP with the quadratic as one
constraint, as a sum of squares (Cholesky), and as perspective cones with the diagonal that pairstep
separates; HiGHS, which has no mixed-integer quadratic programs, in a loop of linear programs with
tangents (outer approximation). All use one thread. The objective is scaled to a mean variance of 1
for them. The fastest form of a solver counts, and optima must agree. A solver that does not finish
counts with the budget, so that its ratio is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.optimize

import pairstep
from pairstep.solve.cardinality import separable_part
from pairstep.solve.parametric import Curvature

from .harness import (
    Entry,
    Solve,
    Table,
    data_folder,
    digits,
    fastest,
    log,
    named,
    parser,
    race,
    times_of,
)  # fmt: skip
from .qp_problems import index_tracking, or_portfolio

GAP = 1e-6
SAME = 20 * GAP  # relative difference of objectives; the points of peers are feasible to 1e-6 only
INFEASIBLE = 1e-5
HOLDING = 0.01
POINTS = 50
PEER_LAMBDAS = (0.5, 0.9, 0.96, 1.0)


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

    def infeasibility(self, x: np.ndarray) -> float:
        largest = np.sort(x)[::-1]
        holdings = largest[: self.names]
        short = np.minimum(HOLDING - holdings, holdings)  # a holding is 0 or at least HOLDING
        rest = largest[self.names :]
        return float(max(abs(x.sum() - 1), -x.min(), short.max(), rest.max(initial=0)))

    def scaled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return Q and c with a mean variance of 1."""
        scale = 1 / max(float(np.diag(self.Q).mean()), 1e-300)
        return scale * self.Q, scale * self.c


def problem(family: Family, weight: float) -> Problem:
    return Problem(2 * weight * family.covariance, -(1 - weight) * family.mean, family.names)


def families(folder: Path, quick: bool) -> Iterator[Family]:
    for k in (1, 2) if quick else (1, 2, 3):
        p = or_portfolio(folder, k)
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


def scip(form: str, p: Problem) -> Solve:
    from pyscipopt import Model, quicksum

    n = len(p.c)
    Q, c = p.scaled()

    def solve(_: float) -> np.ndarray | None:
        model = Model()
        model.hideOutput()
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
        proven = model.getStatus() in ("optimal", "gaplimit")
        return np.array([model.getVal(v) for v in x]) if proven else None

    return solve


def highs(p: Problem) -> Solve:
    """Outer approximation: linear programs with tangents of the quadratic at earlier points."""
    n = len(p.c)
    Q, c = p.scaled()
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

    def solve(_: float) -> np.ndarray | None:
        tangents = [np.r_[Q @ x, np.zeros(n), -1.0] for x in eye]
        limits = [0.5 * float(x @ Q @ x) for x in eye]
        best, point, bound = math.inf, None, -math.inf
        while best - bound > GAP * abs(best) or point is None:
            cuts = scipy.optimize.LinearConstraint(np.array(tangents), -np.inf, limits)
            found = scipy.optimize.milp(
                np.r_[c, np.zeros(n), 1.0], integrality=integral, bounds=bounds,
                constraints=[*fixed, cuts], options={"mip_rel_gap": GAP / 10},
            )  # fmt: skip
            if found.x is None:
                return None
            if found.mip_dual_bound is not None:
                bound = max(bound, found.mip_dual_bound)
            x = np.maximum(found.x[:n], 0.0)
            x = x / x.sum()
            value = float(0.5 * x @ Q @ x + c @ x)
            if value < best:
                best, point = value, x
            tangents.append(np.r_[Q @ x, np.zeros(n), -1.0])
            limits.append(0.5 * float(x @ Q @ x))
        return point

    return solve


FORMS = "one constraint", "sum of squares", "perspective"


# --------------------------------------------------------------------------------------- measuring


def ours(p: Problem, seconds: float) -> pairstep.Result:
    return pairstep.solve_qp(
        p.Q, p.c, max_names=p.names, min_holding=HOLDING, gap=GAP, time_limit=seconds
    )


def whole_frontier(family: Family, points: int, seconds: float) -> list[object]:
    """Return cells about pairstep over all values of lambda, each solved once."""
    times, nodes, unproven = [], 0, 0
    for weight in np.linspace(0.0, 1.0, points):
        ((took,), result) = times_of(partial(ours, problem(family, weight), seconds), most=1)
        times.append(took)
        nodes += result.nodes or 0
        unproven += not result.success
    return [points, digits(sum(times)), digits(max(times[1:])), nodes, unproven]


def compare(p: Problem, seconds: float, peers: list[str]) -> list[object]:
    """Return cells: seconds of each solver, and how many times as long SCIP takes."""
    expected = ours(p, seconds)
    if not expected.success:
        log(f"  pairstep proves a gap of {expected.gap:.1e} within {seconds:g} s")
        return ["not proven", None, None, None]
    entries = [
        Entry("pairstep", "", lambda: lambda _: ours(p, seconds).x, (GAP,)),
        *(Entry("SCIP", form, partial(scip, form, p), (GAP,)) for form in FORMS),
        Entry("HiGHS", "tangents", partial(highs, p), (GAP,)),
    ]
    runs = race(
        entries,
        lambda x: ((p.value(x) - expected.fun) / abs(expected.fun), p.infeasibility(x)),
        (SAME, INFEASIBLE), seconds, peers,
    )  # fmt: skip
    own = fastest(runs, "pairstep")
    assert own is not None, runs[0].status
    cells: list[object] = [digits(1e3 * own.best)]
    ratios = []
    for solver in ("SCIP", "HiGHS"):
        best = fastest(runs, solver)
        late = any(r.entry.solver == solver and r.status.startswith("over") for r in runs)
        took = best.best if best else seconds if late else math.nan
        cells.append(f">{seconds:g}" if late and not best else digits(took))
        ratios.append(digits(took / own.best))
    return [*cells, ratios[0]]


def main() -> None:
    arguments = parser(__doc__, budget=60.0)
    arguments.add_argument("--points", type=int, default=POINTS, help="lambdas for pairstep")
    arguments.add_argument("--lambdas", type=float, nargs="*", default=PEER_LAMBDAS,
                           help="for peers")  # fmt: skip
    options = arguments.parse_args()
    alone = Table(options.out, "cardinality", "Portfolios with at most K names, all lambdas", [
        "problem", "lambdas", "seconds", "slowest, s", "nodes", "not proven"])  # fmt: skip
    table = Table(
        options.out, "cardinality-peers", "Portfolios with at most K names",
        ["problem", "lambda", "`solve_qp`, ms", "SCIP, s", "HiGHS, s", "faster than SCIP by"],
        ["pyscipopt", "scipy"],
    )  # fmt: skip
    for family in families(data_folder(), options.quick):
        if named(family.name, options.only):
            alone.add(family.name, *whole_frontier(family, options.points, options.budget))
            for weight in options.lambdas:
                log(f"\n{family.name}, lambda = {weight}")
                p = problem(family, weight)
                table.add(family.name, weight, *compare(p, options.budget, options.peers))
    table.summarize("faster than SCIP by")


if __name__ == "__main__":
    main()
