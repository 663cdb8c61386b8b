"""Batches of different quadratic programs.

    PAIRSTEP_DATA=... python -m benchmarks.qp_batches [--quick] [--only PART...] [--budget 60]

Table "qps". Problems: random portfolios of several sizes (covariances of 2n random returns, means,
a cap of 10% or 3/n); backtests with real returns: 1000 dates of 35 NYSE stocks with windows of 250
days, and 239 weeks of 100 stocks of two indices with windows of 52 weeks and a shrunk covariance; a
placebo test of a synthetic control, with every state and every year as if it had been treated
(least squares, as quadratic programs); and stacking weights of bootstrap samples. All have x >= 0
and sum(x) = 1.

Peers: Moreau's compiled batch solver (active set and interior point), ProxQP's parallel batch, and
loops over piqp, daqp and pairstep's own `solve_qp`. Times do not include the arrangement of the
data for a solver, except for what a solver must repeat when the matrices change. Every solver must
reach the objective of the best within 1e-7 of the improvement over equal weights, and feasibility
within 1e-7.
"""

from __future__ import annotations

import numpy as np

import pairstep

from .harness import Entry, Judge, Solve, Table, fastest, log, named, parser, race, versus
from .qp_peers import PACKAGES, batch_peers
from .qp_problems import Batch, batches

GAP = 1e-7  # largest valid suboptimality, relative to the improvement over equal weights
INFEASIBLE = 1e-7
COLUMNS = ("problems", "`solve_qps`, ms", "loop over `solve_qp`, ms", "best peer, ms", "faster by")


def ours(p: Batch) -> list[Entry]:
    def batch() -> Solve:
        return lambda tol: pairstep.solve_qps(p.Q, p.c, upper=p.upper, tol=tol).x

    def loop() -> Solve:
        return lambda tol: np.array([pairstep.solve_qp(Q, c, upper=p.upper, tol=tol).x
                                     for Q, c in zip(p.Q, p.c, strict=True)])  # fmt: skip

    ladder = (1e-8, 1e-10, 1e-12)
    return [Entry("pairstep", "batch", batch, ladder), Entry("pairstep*", "loop", loop, ladder)]


def judge(p: Batch) -> Judge:
    """Return a function for the largest gap and the largest infeasibility of a batch."""
    best = p.values(pairstep.solve_qps(p.Q, p.c, upper=p.upper, tol=1e-12).x)
    gain = np.maximum(p.values(np.full(p.shape, 1 / p.shape[1])) - best, 1e-12 * np.abs(best))
    cap = np.inf if p.upper is None else p.upper

    def judged(X: np.ndarray) -> tuple[float, float]:
        gaps = (p.values(X) - best) / gain
        beyond = max(-X.min(), (X - cap).max(), np.abs(X.sum(1) - 1).max())
        return float(gaps[np.argmax(np.abs(gaps))]), float(beyond)

    return judged


def main() -> None:
    options = parser(__doc__, budget=60.0).parse_args()
    table = Table(options.out, "qps", "Many different quadratic programs", COLUMNS, PACKAGES,
                  ("faster by", "times faster than the best peer"))  # fmt: skip
    for p in batches(options.quick):
        if not named(p.name, options.only):
            continue
        log(f"\n{p.name}")
        runs = race([*ours(p), *batch_peers(p.problems())], judge(p), (GAP, INFEASIBLE),
                    options.budget, options.peers)  # fmt: skip
        own, peer, ratio = versus(runs, options.budget)
        one_by_one = fastest(runs, "pairstep*")
        table.add(p.name, own, one_by_one and float(f"{1e3 * one_by_one.best:.3g}"), peer, ratio)
    table.summarize("faster by")


if __name__ == "__main__":
    main()
