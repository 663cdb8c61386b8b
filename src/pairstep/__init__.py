"""Minimise smooth functions whose variables add up to a fixed total and stay within bounds."""

from .budget import simplex_lstsq, solve_qp
from .constraints import Simplex, SumBox
from .minimize import minimize
from .objectives import FactorModel, Kinked, LeastSquares, Quadratic, Smooth
from .result import BatchResult, History, Progress, Result, Status
from .rules import Move, propose

__version__ = "0.1.0"

__all__ = [
    "BatchResult",
    "FactorModel",
    "History",
    "Kinked",
    "LeastSquares",
    "Move",
    "Progress",
    "Quadratic",
    "Result",
    "Simplex",
    "Smooth",
    "Status",
    "SumBox",
    "minimize",
    "propose",
    "simplex_lstsq",
    "solve_qp",
]
