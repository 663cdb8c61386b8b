"""What a fitted model keeps for `update`: its training data and, after an update, its solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from .._validation import Array
from ..constraints import Indices
from .engine import Dual, Kernel, Solution
from .plan import FitPlan, Targets
from .samples import KernelRows, Samples


@dataclass
class SolvedDual:
    """A dual at its solution."""

    dual: Dual  # its z and gradient are those of the solution
    solution: Solution
    # Sum of the squared changes of z since the gradient was last computed in full. The gradient has
    # the rounding errors of the kernel rows times these changes. Those of a solve with less precise
    # rows count more.
    moved: float = 0.0
    # The variables whose gradients determine the violation, if they were compared with precise
    # values at this z and agreed.
    verified: Indices | None = None


@dataclass
class TrainingData:
    """Training data of a fitted model. It is not copied or pickled with the model.

    Attributes
    ----------
    X : object
        The samples of a fit after the checks; None if they are not available, or after an update.
    targets : ndarray
        What the duals need from y: numbers, or classes as 0, 1, ...
    weights : ndarray
        Factors of C.
    solved : list of SolvedDual or None
        None before the first update.
    kernel : Kernel or None
        The kernel of `solved`; None before the first update.
    square : float or None
        At least the largest squared distance of a sample from the center; None before the first
        update.
    center : ndarray or None
        The origin for distances; None for the origin of the data, and before the first update.
    samples : Samples or None
        The samples of a model that has been updated; None before the first update.
    kernel_rows : list of KernelRows
        Kernel rows of some samples. The list is empty before the first update, and while an update
        of a model that shares it uses the rows.
    """

    X: Any = None
    targets: Targets | None = None
    weights: Array | None = None
    solved: list[SolvedDual] | None = None
    square: float | None = None
    kernel: Kernel | None = None
    center: Array | None = None
    samples: Samples | None = None
    kernel_rows: list[KernelRows] = field(default_factory=list)

    @staticmethod
    def of(plan: FitPlan) -> TrainingData:
        """Return references to the data of a fit, or nothing if they are not in memory."""
        is_matrix = isinstance(plan.X, np.ndarray) or scipy.sparse.issparse(plan.X)
        if not is_matrix or plan.kernel.name == "precomputed":
            return TrainingData()
        return TrainingData(plan.X, plan.targets, plan.weights)

    @property
    def is_known(self) -> bool:
        """Whether the training data are available."""
        return self.X is not None or self.samples is not None

    def __reduce__(self) -> tuple[type[TrainingData], tuple[()]]:
        return TrainingData, ()

    def __eq__(self, other: object) -> bool:  # like LaidOut, it is not part of the model
        return isinstance(other, TrainingData)

    def __hash__(self) -> int:
        return hash(TrainingData)
