"""QPs with a sum constraint, compared with other solvers at their best settings.

    python -m benchmarks.qp [--quick] [--only PART...] [--peers NAME...] [--budget 20]

Tables "qp" and "qp-larger". Each solver runs at the loosest of several tolerances that reaches the
best known objective within 1e-9, relative to the larger term of the objective. The other solvers
("peers") get every advantage: see `benchmarks.qp_peers`. The fastest form counts. pairstep is
called through its public functions on the raw problem, input validation included, with Q, with its
factors, or with the data of a least squares problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import pairstep

from .harness import Contest, Entry, Table, compete, in_child, log, parser
from .qp_peers import PACKAGES, peers
from .qp_problems import Problem, problems

GAP = 1e-9
INFEASIBLE = 1e-6  # more is no point of the problem; less counts in the gap, which is two-sided
LADDER = (1e-8, 1e-10, 1e-12, 1e-14)
TITLES = {
    "qp": "Quadratic programs", "qp-larger": "Quadratic programs of many kinds and sizes",
}  # fmt: skip
COLUMNS = "problem", "n", "`solve_qp`, ms", "best peer, ms", "faster by"
PLOT = "faster by", "times faster than the best peer"


def ours(p: Problem) -> list[Entry]:
    """Return pairstep with the matrix, with factors, and with the data of least squares."""
    box = {"total": p.total, "lower": p.lower,
           "upper": None if np.isinf(p.upper).all() else p.upper}  # fmt: skip
    if len(p.rows):
        box |= {"rows": p.rows, "rows_lower": p.low, "rows_upper": p.high}
    weighted = {**box, "coefficients": p.coefficients} if p.coefficients is not None else box
    calls: dict[str, Callable[..., pairstep.Result]] = {}
    if p.Q is not None:
        calls["Q"] = partial(pairstep.solve_qp, p.Q, p.c, **weighted)
    if p.F is not None:
        calls["factors"] = partial(pairstep.solve_qp, (p.F, p.D), p.c, **weighted)
    if p.A is not None:
        calls["A, b"] = partial(pairstep.simplex_lstsq, p.A, p.b, **box)

    def prepared(call: Callable[..., pairstep.Result]) -> Callable[[float], np.ndarray]:
        return lambda tol: call(tol=tol).x

    return [Entry("pairstep", name, partial(prepared, call), LADDER)
            for name, call in calls.items()]  # fmt: skip


def reference(p: Problem) -> tuple[float, float, float]:
    """Return the best known objective, its scale, and a bound on its relative distance to f*.

    The objective is pairstep's, or also that of peers if pairstep's bound is too large. Points are
    made feasible first, so that infeasibility is no advantage.
    """
    best, scale, bound = np.inf, 1.0, np.inf
    for entry in [*ours(p), *(e for e in peers(p) if e.solver in ("piqp", "clarabel"))]:
        for x in in_child(lambda send, entry=entry: send(entry.prepare()(1e-12)), 60):
            if not isinstance(x, np.ndarray):  # why there is no point
                continue
            x = p.feasible(x)
            if p.value(x) < best:
                best, scale = p.value(x), p.scale(x)
            bound = min(bound, p.certificate(x))
        if bound <= GAP / 10 * scale:
            break
    return best, scale, bound / scale


def contest(p: Problem) -> Contest:
    best, scale, bound = reference(p)
    log(f"  the optimum is known to {bound:.0e}")
    return [*ours(p), *peers(p)], lambda x: (
        (p.value(x) - best) / scale, p.infeasibility(x) / max(1, abs(p.total)))  # fmt: skip


def main() -> None:
    options = parser(__doc__, budget=20.0).parse_args()
    tables = {name: Table(options.out, name, title, COLUMNS, PACKAGES, PLOT)
              for name, title in TITLES.items()}  # fmt: skip
    for name, p in problems(options.quick):
        compete(options, tables[name], p.name, partial(contest, p), (GAP, INFEASIBLE), [p.n])
    for table in tables.values():
        table.summarize("faster by")


if __name__ == "__main__":
    main()
