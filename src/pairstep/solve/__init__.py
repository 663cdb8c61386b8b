"""Solvers: one entry point, the gears it chooses from, and what is built on it."""

from .batch import solve_batch
from .budget import simplex_lstsq, solve_qp
from .from_qp import from_qp
from .frontier import Frontier, efficient_frontier
from .minimize import minimize
from .path import path

__all__ = [
    "Frontier",
    "efficient_frontier",
    "from_qp",
    "minimize",
    "path",
    "simplex_lstsq",
    "solve_batch",
    "solve_qp",
]
