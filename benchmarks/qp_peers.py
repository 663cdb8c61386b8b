"""Other solvers of quadratic programs, each with one adapter.

An adapter takes a program and returns a function of the tolerance. A program is what solvers of
quadratic programs agree on: matrices in their preferred layout, prepared before the clock starts,
with the objective scaled to a mean diagonal of 1. It is dense, sparse, or lifted: ``y = Fx`` as
further variables, so that no n x n matrix is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
import threadpoolctl

from .harness import TIGHT, Entry, Solve
from .qp_problems import Problem

PACKAGES = ("quadprog", "daqp", "piqp", "proxsuite", "cvxopt", "highspy", "clarabel", "osqp",
            "moreau", "qpsolvers", "scipy")  # fmt: skip


@dataclass
class Program:
    """Minimize ``x'Px / 2 + c'x`` with ``Ax = b``, ``low <= Cx <= high`` and bounds."""

    P: Any
    c: np.ndarray
    A: Any
    b: np.ndarray
    C: Any
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n: int  # the first variables are the solution

    def one_sided(self) -> tuple[np.ndarray, np.ndarray]:
        """Return G and h of ``Gx <= h`` for the rows C."""
        above, below = np.isfinite(self.high), np.isfinite(self.low)
        stack = scipy.sparse.vstack if scipy.sparse.issparse(self.C) else np.vstack
        return stack([self.C[above], -self.C[below]]), np.r_[self.high[above], -self.low[below]]


def program(p: Problem, form: str) -> Program:
    """Return a problem in one of the three forms."""
    scale = float(p.diagonal.mean())
    c, A, b = p.c / scale, p.sums.reshape(1, -1), np.array([p.total])
    if form == "dense":
        return Program(p.Q / scale, c, A, b, p.rows, p.low, p.high, p.lower, p.upper, p.n)
    sparse = scipy.sparse
    A, C = sparse.csc_matrix(A), sparse.csc_matrix(p.rows)
    if form == "sparse":
        P = sparse.csc_matrix(p.Q / scale)
        return Program(P, c, A, b, C, p.low, p.high, p.lower, p.upper, p.n)
    m = len(p.root)
    P = sparse.diags(np.r_[p.D / scale, np.ones(m)], format="csc")
    root = sparse.csc_matrix(p.root / np.sqrt(scale))
    A = sparse.bmat([[A, None], [root, -sparse.eye(m)]], format="csc")
    C = sparse.hstack([C, sparse.csc_matrix((C.shape[0], m))], format="csc")
    free = np.full(m, np.inf)
    return Program(P, np.r_[c, np.zeros(m)], A, np.r_[b, np.zeros(m)], C, p.low, p.high,
                   np.r_[p.lower, -free], np.r_[p.upper, free], p.n)  # fmt: skip


# ---------------------------------------------------------------------------------------- adapters


def quadprog(p: Program) -> Solve:
    """Goldfarb and Idnani. The tolerance is a ridge, which a singular matrix needs."""
    import quadprog

    eye, (G, h) = np.eye(p.n), p.one_sided()
    above, below = np.isfinite(p.upper), np.isfinite(p.lower)
    C = np.ascontiguousarray(np.vstack([p.A, eye[below], -eye[above], -G]).T)
    b = np.r_[p.b, p.lower[below], -p.upper[above], -h]

    def solve(ridge: float) -> np.ndarray:
        P = p.P if ridge == 0 else p.P + ridge * eye
        return quadprog.solve_qp(P, -p.c, C, b, 1)[0]

    return solve


def daqp(p: Program) -> Solve:
    """A dual active-set method; a tolerance of 0 stands for its defaults."""
    import daqp

    A = np.ascontiguousarray(np.vstack([p.A, p.C]))
    low = np.maximum(np.r_[p.lower, p.b, p.low], -1e30)
    high = np.minimum(np.r_[p.upper, p.b, p.high], 1e30)
    sense = np.zeros(len(low), np.int32)
    sense[p.n] = 5  # an equality

    def solve(tol: float) -> np.ndarray | None:
        tight = {"primal_tol": tol, "dual_tol": tol} if tol else {}
        x, _, flag, _ = daqp.solve(p.P, p.c, A, high, low, sense, iter_limit=100_000, **tight)
        return x if flag > 0 else None

    return solve


def piqp(p: Program) -> Solve:
    """A proximal interior-point method, through its dense interface."""
    import piqp

    P, A, C = (np.asfortranarray(matrix) for matrix in (p.P, p.A, p.C))
    rows = (C, p.low, p.high) if len(C) else (None, None, None)

    def solve(tol: float) -> np.ndarray:
        solver = piqp.DenseSolver()
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, tol)
        solver.setup(P, p.c, A, p.b, *rows, p.lower, p.upper)
        solver.solve()
        return np.array(solver.result.x)

    return solve


def proxqp(p: Program) -> Solve:
    """A proximal augmented Lagrangian method, through its dense interface."""
    import proxsuite

    rows = (p.C, p.low, p.high) if len(p.C) else (None, None, None)
    low, high = np.maximum(p.lower, -1e20), np.minimum(p.upper, 1e20)

    def solve(tol: float) -> np.ndarray:
        qp = proxsuite.proxqp.dense.QP(p.n, 1, len(p.C), True)
        qp.settings.eps_abs, qp.settings.eps_rel = tol, tol
        qp.init(p.P, p.c, p.A, p.b, *rows, low, high)
        qp.solve()
        return np.array(qp.results.x)

    return solve


def through_qpsolvers(name: str, p: Program) -> Solve:
    """Return a solver through the common interface of qpsolvers."""
    import qpsolvers

    if name not in qpsolvers.available_solvers:
        raise ImportError(f"qpsolvers does not find {name}")
    G, h = p.one_sided()
    stated = qpsolvers.Problem(
        p.P, p.c, *((G, h) if len(h) else (None, None)), A=p.A, b=p.b, lb=p.lower,
        ub=None if np.isinf(p.upper).all() else p.upper,
    )  # fmt: skip

    def options(tol: float) -> dict[str, Any]:
        both = {"eps_abs": tol, "eps_rel": tol}
        at_least = max(tol, 1e-10)  # the smallest that HiGHS accepts
        return {
            "piqp": {**both, "eps_duality_gap_abs": tol, "eps_duality_gap_rel": tol},
            "proxqp": {**both, "max_iter": 100_000},
            "osqp": {**both, "polish": True, "max_iter": 1_000_000},
            "clarabel": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
            "highs": {"primal_feasibility_tolerance": at_least,
                      "dual_feasibility_tolerance": at_least},
            "cvxopt": {"abstol": tol, "reltol": tol, "feastol": tol},
        }[name]  # fmt: skip

    def solve(tol: float) -> np.ndarray | None:
        x = qpsolvers.solve_problem(stated, solver=name, **options(tol)).x
        return None if x is None else x[: p.n]

    return solve


def slsqp(p: Program) -> Solve:
    threadpoolctl.threadpool_limits(1)  # more threads are slower at this size
    budget = {"type": "eq", "fun": lambda x: p.A @ x - p.b, "jac": lambda x: p.A}
    bounds = scipy.optimize.Bounds(p.lower, p.upper)
    start = np.clip(np.full(p.n, p.b[0] / p.A.sum()), p.lower, p.upper)

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        product = p.P @ x
        return 0.5 * x @ product + p.c @ x, product + p.c

    return lambda tol: scipy.optimize.minimize(
        both, start, jac=True, method="SLSQP", bounds=bounds, constraints=budget,
        options={"ftol": tol, "maxiter": 1000},
    ).x  # fmt: skip


def moreau_solvers(kind: str, batch: list[Program], tols: tuple[float, ...],
                   gradients: bool = False) -> tuple[dict[float, Any], tuple, tuple]:  # fmt: skip
    """Return Moreau's solver of a batch for each tolerance, and the arguments of its two calls.

    The programs have all constraints in common.
    """
    import moreau

    p, n = batch[0], batch[0].n
    eye, (G, h) = np.eye(n), p.one_sided()
    above, below = np.isfinite(p.upper), np.isfinite(p.lower)
    A = scipy.sparse.csr_matrix(np.vstack([p.A, G, -eye[below], eye[above]]))
    b = np.r_[p.b, h, -p.lower[below], p.upper[above]]
    cones = moreau.Cones(num_zero_cones=1, num_nonneg_cones=len(b) - 1)
    solvers = {}
    for tol in tols:
        settings = moreau.Settings(
            solver=kind, device="cpu", batch_size=len(batch), enable_grad=gradients
        )
        if kind == "ipm":
            settings.ipm_settings = moreau.IPMSettings(
                tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol
            )
        solvers[tol] = moreau.CompiledSolver(
            n, len(b), np.arange(0, n * n + 1, n), np.tile(np.arange(n), n), A.indptr, A.indices,
            cones, settings,
        )  # fmt: skip
    matrices = np.array([one.P.ravel() for one in batch]), np.tile(A.data, (len(batch), 1))
    return solvers, matrices, (np.array([one.c for one in batch]), np.tile(b, (len(batch), 1)))


def moreau_batch(kind: str, batch: list[Program]) -> Solve:
    solvers, matrices, vectors = moreau_solvers(kind, batch, MOREAU[kind])

    def solve(tol: float) -> np.ndarray:
        solvers[tol].setup(*matrices)
        return np.asarray(solvers[tol].solve(*vectors).x)

    return solve


def moreau(kind: str, p: Program) -> Solve:
    solve = moreau_batch(kind, [p])
    return lambda tol: solve(tol)[0]


def proxqp_batch(batch: list[Program]) -> Solve:
    """Return ProxQP's parallel solver of a batch, on two threads."""
    from proxsuite import proxqp

    n, eye = batch[0].n, np.eye(batch[0].n)

    def solve(tol: float) -> np.ndarray:
        problems = proxqp.dense.BatchQP()
        for p in batch:
            qp = problems.init_qp_in_place(n, 1, n)
            qp.settings.eps_abs = tol
            qp.init(p.P, p.c, p.A, p.b, eye, p.lower, np.minimum(p.upper, 1e20))
        proxqp.dense.solve_in_parallel(problems, 2)
        return np.array([problems.get(k).results.x for k in range(len(batch))])

    return solve


def loop(adapter: Callable[[Program], Solve], batch: list[Program]) -> Solve:
    """Return the solver of one program after the other."""
    solves = [adapter(p) for p in batch]
    return lambda tol: np.array([solve(tol) for solve in solves])


# ----------------------------------------------------------------------------------------- entries

ACTIVE_SET = (0.0, 1e-9, 1e-11, 1e-13)
MOREAU = {"active_set": (1e-6,), "ipm": TIGHT}
Adapter = Callable[[Program], Solve]
DENSE: dict[str, tuple[Adapter, tuple[float, ...]]] = {
    "quadprog": (quadprog, (0.0, 1e-13, 1e-11, 1e-9)),
    "daqp": (daqp, ACTIVE_SET),
    "piqp": (piqp, TIGHT),
    "proxqp": (proxqp, TIGHT),
    "cvxopt": (partial(through_qpsolvers, "cvxopt"), TIGHT),
    **{f"moreau {kind}": (partial(moreau, kind), MOREAU[kind]) for kind in MOREAU},
}
SPARSE = "highs", "clarabel", "osqp"
LIFTED = "piqp", "proxqp", "highs", "clarabel", "osqp", "cvxopt"


def peers(p: Problem) -> list[Entry]:
    """Return all other solvers, in each form that may be their fastest."""

    def entry(name: str, form: str, adapter: Adapter, ladder: tuple[float, ...] = TIGHT) -> Entry:
        return Entry(name, form, lambda: adapter(program(p, form)), ladder)

    found = []
    if p.Q is not None:
        found = [entry(name, "dense", *adapter) for name, adapter in DENSE.items()]
        found += [entry(name, "sparse", partial(through_qpsolvers, name)) for name in SPARSE]
        if p.n <= 100 and not len(p.rows):
            found.append(entry("slsqp", "dense", slsqp, (1e-9, 1e-12, 1e-15)))
    if p.root is not None and 2 * len(p.root) <= p.n:
        found += [entry(name, "lifted", partial(through_qpsolvers, name)) for name in LIFTED]
    return found


def batch_peers(problems: list[Problem]) -> list[Entry]:
    """Return the solvers of a batch of dense problems that differ in Q and c only."""
    methods: list[tuple[str, str, Callable[[list[Program]], Solve], tuple[float, ...]]] = [
        *((f"moreau {kind}", "batch", partial(moreau_batch, kind), MOREAU[kind])
          for kind in MOREAU),
        ("proxqp", "batch", proxqp_batch, (1e-5, 1e-7, 1e-9)),
        ("piqp", "loop", partial(loop, piqp), TIGHT),
        ("daqp", "loop", partial(loop, daqp), ACTIVE_SET),
    ]  # fmt: skip
    return [
        Entry(name, form, lambda method=method: method([program(p, "dense") for p in problems]),
              ladder)
        for name, form, method, ladder in methods
    ]  # fmt: skip
