"""Objectives: smooth functions, and what a solver may ask of them.

A solver asks for what it needs and is told `None` where an objective cannot give it: `hessian` for
the greedy gear, `lipschitz` for the weighted rules, `curvature` for exact steps. To add an
objective, write a class with the members of `Objective`.
"""

from .d_optimal import DOptimal
from .kinked import Kinked, Slopes
from .kl_divergence import KLDivergence
from .least_squares import FactorModel, LeastSquares, inner
from .log_growth import LogGrowth
from .logistic import Logistic
from .mixture import MixtureLikelihood
from .objective import Objective, value_and_gradient
from .quadratic import Quadratic
from .risk_parity import RiskParity
from .smooth import Smooth

__all__ = [
    "DOptimal",
    "FactorModel",
    "KLDivergence",
    "Kinked",
    "LeastSquares",
    "LogGrowth",
    "Logistic",
    "MixtureLikelihood",
    "Objective",
    "Quadratic",
    "RiskParity",
    "Slopes",
    "Smooth",
    "inner",
    "value_and_gradient",
]
