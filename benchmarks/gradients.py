"""Derivatives through batches of quadratic programs.

    PAIRSTEP_DATA=... python -m benchmarks.gradients [--only NAME]

The problems of `benchmarks.qp_batches` without the largest. The derivative of a random linear
function of the solutions with respect to all Q and c is computed by pairstep, by Moreau with
`enable_grad` (active set and interior point), by qpth, and by cvxpylayers (on a part of the batch,
extrapolated). The last column is the median distance of a peer's derivatives with respect to
c from those of pairstep, relative to their size.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import pairstep

from .qp_batches import Batch, batches, best_time, moreau_solver

PART = 16  # problems for peers that are too slow for a whole batch


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the median relative distance over the problems whose solution is not a vertex."""
    size = np.abs(expected).max(axis=1)
    moves = size > 0
    return float(np.median(np.abs(found - expected).max(axis=1)[moves] / size[moves]))


def compare(p: Batch) -> None:
    count, n = p.shape
    v = np.random.default_rng(0).normal(size=(count, n))
    print(f"\n{p.name}, with derivatives")
    _, forward, result = best_time(lambda: pairstep.solve_qps(p.Q, p.c, upper=p.upper))

    def backward() -> tuple[np.ndarray, np.ndarray]:
        derivatives = result.vjp(v)
        return derivatives["c"], derivatives["Q"]

    _, back, (expected, _) = best_time(backward)
    show = "  {:24} {:9.2f} + {:.2f} ms forward and backward  {:8.1f}x{}"
    print(show.format("pairstep", forward * 1e3, back * 1e3, 1.0, ""))
    for kind in ("active_set", "ipm"):
        try:
            solver, matrices, vectors = moreau_solver(p, kind, 1e-8, gradients=True)

            def solve(solver=solver, matrices=matrices, vectors=vectors) -> object:
                solver.setup(*matrices)
                return solver.solve(*vectors)

            _, theirs, _ = best_time(solve)
            _, theirs_back, found = best_time(lambda solver=solver: solver.backward(v))
            gradient = np.asarray(found["dq"])
        except Exception as error:
            print(f"  moreau, {kind:16} {type(error).__name__}: {str(error)[:90]}")
            continue
        ratio = (theirs + theirs_back) / (forward + back)
        differs = f"   gradients differ by {distance(gradient, expected):.0e}"
        row = show.format(f"moreau, {kind}", theirs * 1e3, theirs_back * 1e3, ratio, differs)
        print(row, flush=True)
    for name, build in LAYERS.items():
        try:
            count, forward_pass, linear = build(p)
        except ImportError as error:
            print(f"  {name}: {error}")
            continue
        theirs, theirs_back, gradient = timed_layer(forward_pass, linear, v[:count])
        factor = p.shape[0] / count
        ratio = (theirs + theirs_back) * factor / (forward + back)
        differs = f"   gradients differ by {distance(gradient, expected[:count]):.0e}"
        if count < p.shape[0]:
            differs += f", from {count} problems"
        row = show.format(name, theirs * factor * 1e3, theirs_back * factor * 1e3, ratio, differs)
        print(row, flush=True)


def timed_layer(forward_pass: Callable, linear: Any, v: np.ndarray) -> tuple:
    """Return the times of both passes of a layer of PyTorch, and its derivative."""
    import torch

    _, forward, found = best_time(forward_pass)
    loss = (found * torch.tensor(v)).sum()

    def backward() -> np.ndarray:
        linear.grad = None
        loss.backward(retain_graph=True)
        return linear.grad.numpy()

    _, back, gradient = best_time(backward)
    return forward, back, gradient


def cvxpylayer(p: Batch) -> tuple[int, Callable, Any]:
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
    return count, lambda: layer(roots, linears)[0], linears


def qpth_layer(p: Batch) -> tuple[int, Callable, Any]:
    """The whole batch, by an interior-point method."""
    import torch
    from qpth.qp import QPFunction

    count, n = p.shape
    G = -np.eye(n) if p.upper is None else np.vstack([-np.eye(n), np.eye(n)])
    h = np.zeros(n) if p.upper is None else np.r_[np.zeros(n), p.upper]
    Q, c = (torch.tensor(values, requires_grad=True) for values in (p.Q, p.c))
    shared = [torch.tensor(a) for a in (G, h, np.ones((1, n)), np.ones(1))]
    layer = QPFunction(verbose=-1)
    return count, lambda: layer(Q, c, *shared), c


LAYERS = {"cvxpylayers": cvxpylayer, "qpth": qpth_layer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    for p in batches(quick=True):
        if options.only in p.name:
            compare(p)


if __name__ == "__main__":
    main()
