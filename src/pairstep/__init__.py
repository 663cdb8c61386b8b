"""Minimize smooth functions whose variables sum to a fixed total and stay within bounds."""

from importlib import import_module
from typing import TYPE_CHECKING

from .constraints import Simplex, SumBox
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
from .rules import Step, propose
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

# Loaded on first use: scikit-learn is optional, and importing it takes longer than all the rest.
_ESTIMATORS = {"SimplexRegressor": "simplex"}
_SUBMODULES = {"svm": "svm", "theory": "paper.theory"}


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        return import_module(f".{_SUBMODULES[name]}", __name__)
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ESTIMATORS[name]}", __name__), name)
