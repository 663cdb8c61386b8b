"""Objectives: smooth functions, and what solvers need to know about them.

To add an objective, write a class with the members of `Objective`. A member that the objective
cannot provide is None; `objective.py` lists the optional members.
"""

from .d_optimal import DOptimal
from .kl_divergence import KLDivergence
from .l1_penalized import L1Penalized, Slopes
from .least_squares import FactorModel, LeastSquares, inner
from .log_growth import LogGrowth
from .logistic import Logistic
from .mixture import MixtureLikelihood
from .objective import Objective, falls_along, rounding_errors, value_and_gradient
from .quadratic import Quadratic
from .risk_parity import RiskParity
from .smooth import Smooth

__all__ = [
    "DOptimal",
    "FactorModel",
    "KLDivergence",
    "L1Penalized",
    "LeastSquares",
    "LogGrowth",
    "Logistic",
    "MixtureLikelihood",
    "Objective",
    "Quadratic",
    "RiskParity",
    "Slopes",
    "Smooth",
    "falls_along",
    "inner",
    "rounding_errors",
    "value_and_gradient",
]
