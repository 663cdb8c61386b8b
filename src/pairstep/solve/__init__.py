"""Solvers: `minimize`, the solvers it chooses from, and the functions built on it."""

from .batch import solve_batch
from .from_qp import from_qp
from .frontier import Frontier, Portfolio, efficient_frontier
from .minimize import minimize
from .path import path
from .qp import simplex_lstsq, solve_qp
from .qps import solve_qps

__all__ = [
    "Frontier",
    "Portfolio",
    "efficient_frontier",
    "from_qp",
    "minimize",
    "path",
    "simplex_lstsq",
    "solve_batch",
    "solve_qp",
    "solve_qps",
]
