"""Derivatives through batches of quadratic programs.

    PAIRSTEP_DATA=... python -m benchmarks.gradients [--only PART...]

Table "gradients". The problems of `benchmarks.qp_batches` without the largest. The derivative of a
random linear function of the solutions with respect to all Q and c is computed by pairstep, by
Moreau with `enable_grad` (active set and interior point), by qpth, and by cvxpylayers (on a part of
the batch, extrapolated). The log has the median distance of a peer's derivatives with respect to c
from those of pairstep, relative to their size. It is not asserted: on the placebo tests, whose
matrices are ill-conditioned, solvers do not agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pairstep

from .harness import Table, described, digits, log, named, parser, times_of
from .qp_peers import moreau_solvers, program
from .qp_problems import Batch, batches

PART = 16  # problems for peers that are too slow for a whole batch
# The number of problems, the forward pass, and the backward pass: the derivatives for c.
Layer = tuple[int, Callable[[], Any], Callable[[], np.ndarray]]


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the median relative distance over the problems whose solution is not a vertex."""
    size = np.abs(expected).max(axis=1)
    moves = size > 0
    return float(np.median(np.abs(found - expected).max(axis=1)[moves] / size[moves]))


def ours(p: Batch, v: np.ndarray) -> Layer:
    result = pairstep.solve_qps(p.Q, p.c, upper=p.upper)
    return (
        len(v),
        lambda: pairstep.solve_qps(p.Q, p.c, upper=p.upper),
        lambda: result.vjp(v)["c"],
    )


def moreau(kind: str, p: Batch, v: np.ndarray) -> Layer:
    programs = [program(one, "dense") for one in p.problems()]
    solvers, matrices, vectors = moreau_solvers(kind, programs, (1e-8,), gradients=True)
    solver = solvers[1e-8]
    # A program is scaled; the derivatives are those for its linear term.
    scale = np.array([float(one.diagonal.mean()) for one in p.problems()])[:, None]

    def forward() -> Any:
        solver.setup(*matrices)
        return solver.solve(*vectors)

    return len(v), forward, lambda: np.asarray(solver.backward(v)["dq"]) / scale


def passes(forward: Callable[[], Any], linear: Any, v: np.ndarray) -> tuple[Callable, Callable]:
    """Return both passes of a layer of PyTorch."""
    import torch

    loss = (forward() * torch.tensor(v)).sum()

    def backward() -> np.ndarray:
        linear.grad = None
        loss.backward(retain_graph=True)
        return linear.grad.numpy()

    return forward, backward


def cvxpylayer(p: Batch, v: np.ndarray) -> Layer:
    """A part of the batch: the layer solves one problem after the other."""
    import cvxpy as cp
    import torch
    from cvxpylayers.torch import CvxpyLayer

    count, n = min(p.shape[0], PART), p.shape[1]
    root, linear, x = cp.Parameter((n, n)), cp.Parameter(n), cp.Variable(n)
    limits = [cp.sum(x) == 1, x >= 0] + ([] if p.upper is None else [x <= p.upper])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(root @ x) / 2 + linear @ x), limits)
    layer = CvxpyLayer(problem, parameters=[root, linear], variables=[x])
    factors = np.linalg.cholesky(p.Q[:count]).transpose(0, 2, 1).copy()
    roots = torch.tensor(factors, requires_grad=True)
    linears = torch.tensor(p.c[:count], requires_grad=True)
    return count, *passes(lambda: layer(roots, linears)[0], linears, v[:count])


def qpth(p: Batch, v: np.ndarray) -> Layer:
    """The whole batch, by an interior-point method."""
    import torch
    from qpth.qp import QPFunction

    count, n = p.shape
    G = -np.eye(n) if p.upper is None else np.vstack([-np.eye(n), np.eye(n)])
    h = np.zeros(n) if p.upper is None else np.r_[np.zeros(n), p.upper]
    Q, c = (torch.tensor(values, requires_grad=True) for values in (p.Q, p.c))
    shared = [torch.tensor(a) for a in (G, h, np.ones((1, n)), np.ones(1))]
    layer = QPFunction(verbose=-1)
    return count, *passes(lambda: layer(Q, c, *shared), c, v)


LAYERS: dict[str, Callable[[Batch, np.ndarray], Layer]] = {
    "pairstep": ours,
    "moreau active_set": partial(moreau, "active_set"),
    "moreau ipm": partial(moreau, "ipm"),
    "qpth": qpth,
    "cvxpylayers": cvxpylayer,
}


def measure(p: Batch) -> dict[str, tuple[float, float]]:
    """Return the seconds of both passes of each solver, for the whole batch."""
    v = np.random.default_rng(0).normal(size=p.shape)
    found: dict[str, tuple[float, float]] = {}
    expected = None
    for name, build in LAYERS.items():
        try:
            count, forward, backward = build(p, v)
            there, _ = times_of(forward)
            back, gradient = times_of(backward)
        except Exception as error:  # a peer that is not installed or fails
            if name == "pairstep":
                raise
            log(f"  {name:24}{described(error)}")
            continue
        expected = gradient if expected is None else expected
        factor = p.shape[0] / count
        found[name] = factor * min(there), factor * min(back)
        log(f"  {name:20}{1e3 * found[name][0]:9.2f} + {1e3 * found[name][1]:.2f} ms, from {count} "
            f"of them, gradients differ by {distance(gradient, expected[:count]):.0e}")  # fmt: skip
    return found


def main() -> None:
    options = parser(__doc__).parse_args()
    table = Table(
        options.out, "gradients", "Derivatives",
        ["problems", "forward + backward, ms", "Moreau, ms", "faster by", "faster than qpth by",
         "faster than cvxpylayers by"],
        ["moreau", "qpth", "cvxpylayers", "torch"],
        ("faster by", "times faster than the best peer"),
    )  # fmt: skip
    for p in batches(quick=True):
        if not named(p.name, options.only):
            continue
        log(f"\n{p.name}")
        found = measure(p)
        both = {name: sum(seconds) for name, seconds in found.items()}
        own = both["pairstep"]

        def cell(name: str, found: dict = found) -> str | None:
            return " + ".join(f"{1e3 * s:.3g}" for s in found[name]) if name in found else None

        fastest = min((name for name in both if "moreau" in name), key=both.__getitem__, default="")
        ratios = [digits(min((s for name, s in both.items() if part in name), default=np.nan) / own)
                  for part in ("moreau", "qpth", "cvxpylayers")]  # fmt: skip
        table.add(p.name, cell("pairstep"), cell(fastest), *ratios)
    table.summarize("faster by")


if __name__ == "__main__":
    main()
