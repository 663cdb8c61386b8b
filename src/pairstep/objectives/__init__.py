"""Objectives: smooth functions, and what a solver may ask of them.

A solver asks for what it needs and is told `None` where an objective cannot give it: `hessian` for
the greedy gear, `lipschitz` for the weighted rules, `curvature` for exact steps. To add an
objective, write a class with the members of `Objective`.
"""

from .kinked import Kinked, Slopes
from .least_squares import FactorModel, LeastSquares, inner
from .objective import Objective, value_and_gradient
from .quadratic import Quadratic
from .smooth import Smooth

__all__ = [
    "FactorModel",
    "Kinked",
    "LeastSquares",
    "Objective",
    "Quadratic",
    "Slopes",
    "Smooth",
    "inner",
    "value_and_gradient",
]
