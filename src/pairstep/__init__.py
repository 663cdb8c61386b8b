"""Minimize smooth functions whose variables sum to a fixed total and stay within bounds."""

from importlib import import_module
from typing import TYPE_CHECKING

from .constraints import Simplex, SumBox
from .coordinates import Step
from .objectives import (
    DOptimal,
    FactorModel,
    KLDivergence,
    L1Penalized,
    LeastSquares,
    LogGrowth,
    Logistic,
    MixtureLikelihood,
    Quadratic,
    RiskParity,
    Smooth,
)
from .result import BatchResult, History, Progress, Result, Status
from .solve import (
    Frontier,
    Portfolio,
    efficient_frontier,
    from_qp,
    minimize,
    path,
    simplex_lstsq,
    solve_qp,
    solve_qps,
)
from .versions import show_versions

if TYPE_CHECKING:
    from .paper import theory as theory
    from .paper.coordinate_descent import coordinate_descent
    from .paper.rules import propose
    from .simplex import SimplexRegressor

__version__ = "0.1.0"

__all__ = [
    "BatchResult",
    "DOptimal",
    "FactorModel",
    "Frontier",
    "History",
    "KLDivergence",
    "L1Penalized",
    "LeastSquares",
    "LogGrowth",
    "Logistic",
    "MixtureLikelihood",
    "Portfolio",
    "Progress",
    "Quadratic",
    "Result",
    "RiskParity",
    "Simplex",
    "SimplexRegressor",
    "Smooth",
    "Status",
    "Step",
    "SumBox",
    "coordinate_descent",
    "efficient_frontier",
    "from_qp",
    "minimize",
    "path",
    "propose",
    "show_versions",
    "simplex_lstsq",
    "solve_qp",
    "solve_qps",
]

# Loaded on first use: scikit-learn is optional and slow to import, and few solves need the paper.
_LAZY = {
    "SimplexRegressor": "simplex:SimplexRegressor",
    "coordinate_descent": "paper.coordinate_descent:coordinate_descent",
    "propose": "paper.rules:propose",
    "svm": "svm",
    "theory": "paper.theory",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    found = import_module(f".{module}", __name__)
    return getattr(found, attribute) if attribute else found
