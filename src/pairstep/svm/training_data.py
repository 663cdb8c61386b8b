"""What a fitted model keeps for `update`: its training data and, after an update, its solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from .._validation import Array
from .engine import Dual, Solution
from .plan import FitPlan, Targets


@dataclass
class SolvedDual:
    """A dual at its solution."""

    dual: Dual  # its z and gradient are those of the solution
    solution: Solution
    # Sum of the squared changes of z since the gradient was last computed in full. The gradient has
    # the rounding errors of the kernel rows times these changes.
    moved: float = 0.0


@dataclass
class TrainingData:
    """Training data of a fitted model. It is not copied or pickled with the model.

    Attributes
    ----------
    X : object
        The samples after the checks; None if they are not available.
    targets : ndarray
        What the duals need from y: numbers, or classes as 0, 1, ...
    weights : ndarray
        Factors of C.
    solved : list of SolvedDual or None
        None before the first update.
    square : float or None
        At least the largest squared norm of a sample; None before the first update.
    """

    X: Any = None
    targets: Targets | None = None
    weights: Array | None = None
    solved: list[SolvedDual] | None = None
    square: float | None = None

    @staticmethod
    def of(plan: FitPlan) -> TrainingData:
        """Return references to the data of a fit, or nothing if they are not in memory."""
        is_matrix = isinstance(plan.X, np.ndarray) or scipy.sparse.issparse(plan.X)
        if not is_matrix or plan.kernel.name == "precomputed":
            return TrainingData()
        return TrainingData(plan.X, plan.targets, plan.weights)

    def __reduce__(self) -> tuple[type[TrainingData], tuple[()]]:
        return TrainingData, ()

    def __eq__(self, other: object) -> bool:  # like LaidOut, it is not part of the model
        return isinstance(other, TrainingData)

    def __hash__(self) -> int:
        return hash(TrainingData)
