"""The plan of each model: which duals it solves, and what their solutions mean."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import (
    assert_all_finite,
    check_random_state,
    column_or_1d,
    compute_class_weight,
)
from sklearn.utils.multiclass import check_classification_targets

from .._validation import Array
from ..constraints import Indices
from .data import is_plain
from .decisions import class_pairs
from .duals import (
    bias,
    c_classifications,
    epsilon_regression,
    limits,
    margin,
    nu_classification,
    nu_regression,
    one_class,
    quantile_regression,
    restore_sum,
)
from .engine import Dual, Duals, Solution, Solutions
from .parameters import quantiles_of
from .plan import FitPlan, Targets
from .probability import FOLDS, cross_validated, sigmoid

# With more samples than this, scikit-learn warns if there are more than half as many classes as
# samples. Its check of the labels is slow, so it is skipped where it could not warn or raise.
MAX_SAMPLES_WITHOUT_WARNING = 20


class SingleDualPlan(FitPlan):
    """The plan of a model with one dual: regression and novelty detection.

    `conclude` also reads several duals over the same rows, each of which is an output.
    """

    def check_targets(self, y: Any) -> Targets:
        """Return y as finite numbers."""
        targets = np.asarray(y if is_plain(y) else column_or_1d(y, warn=True), np.float64)
        assert_all_finite(targets, input_name="y")
        return targets

    @abstractmethod
    def dual(self) -> Dual:
        """Return the dual to solve."""

    def duals(self) -> Duals:
        """Return the dual to solve, as the only one."""
        return Duals.of([self.dual()])

    def conclude(self, duals: Duals, solutions: Solutions) -> None:
        """Read support vectors and intercept from the solution of the dual."""
        outputs: Array = np.zeros((len(duals), self.n))
        for z, dual, solution in zip(outputs, duals, solutions, strict=True):
            np.add.at(z, dual.rows, solution.z)  # a sample may have two variables
            if len(dual.totals) > 1:
                restore_sum(z, math.fsum(dual.totals))
        self.support = np.flatnonzero(outputs.any(axis=0)).astype(np.int32)
        self.coefficients = outputs[:, self.support]
        self.intercept = bias(solutions)
        # LIBSVM counts the support vectors of both sides of a regression.
        self.state["_n_support"] = np.full(2, len(self.support), np.int32)
        self.state["n_iter_"] = max(int(solutions.n_iter[0]), 1)


class SVRPlan(SingleDualPlan):
    """Epsilon-support vector regression."""

    def dual(self) -> Dual:
        """Return the dual to solve."""
        return epsilon_regression(self.targets, self.limits(), self.model.epsilon)


class QuantileSVRPlan(SingleDualPlan):
    """Quantile regression: one dual per quantile, all of them over the same rows."""

    def dual(self) -> Dual:
        """Return the dual of the first quantile."""
        dual: Dual = self.duals()[0]
        return dual

    def duals(self) -> Duals:
        """Return the dual of each quantile."""
        limit = self.limits()
        return Duals.of(
            [
                quantile_regression(self.targets, limit, quantile)
                for quantile in quantiles_of(self.model.quantile).tolist()
            ]
        )

    def conclude(self, duals: Duals, solutions: Solutions) -> None:
        """Read support vectors and intercepts from the solutions of the duals."""
        super().conclude(duals, solutions)
        if np.ndim(self.model.quantile):
            self.state["n_iter_"] = np.maximum(solutions.n_iter, 1).astype(np.int32)


class NuSVRPlan(SingleDualPlan):
    """Nu-support vector regression."""

    def dual(self) -> Dual:
        """Return the dual to solve."""
        if math.isinf(self.model.C):
            raise ValueError(
                "C must be finite, because nu is a fraction of it; got C=inf; use a large number"
            )
        return nu_regression(self.targets, limits(self.model.C, self.weights), self.model.nu)


class OneClassPlan(SingleDualPlan):
    """Novelty detection."""

    def check_targets(self, y: Any) -> Targets:
        """Return ones: there are no labels."""
        return np.ones(self.n)

    def dual(self) -> Dual:
        """Return the dual to solve."""
        return one_class(self.weights, self.model.nu)

    def conclude(self, duals: Duals, solutions: Solutions) -> None:
        """Read support vectors, intercept and offset from the solution of the dual."""
        super().conclude(duals, solutions)
        self.state["offset_"] = -self.intercept


class ClassificationPlan(FitPlan):
    """The plan of a classifier: a dual per pair of classes, and those of its folds if needed."""

    def read(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Check the training data, and keep them; warn of the parameter `probability`."""
        if self.model.probability != "deprecated":
            name = type(self.model).__name__
            warnings.warn(
                "The `probability` parameter was deprecated in version 1.9 of scikit-learn and "
                f"will be removed in its 1.11. Use `CalibratedClassifierCV({name}(), "
                f"ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
                stacklevel=5,
            )
        super().read(X, y, sample_weight)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.state["classes_"])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of classes."""
        return class_pairs(self.n_classes)

    def check_targets(self, y: Any) -> Targets:
        """Return the classes as 0, 1, ... in the order of their labels."""
        model = self.model
        labels = y if is_plain(y) else column_or_1d(y, warn=True)
        classes, targets = np.unique(labels, return_inverse=True)
        many = len(labels) > MAX_SAMPLES_WITHOUT_WARNING and 2 * len(classes) > len(labels)
        if many or not _are_labels(classes):
            assert_all_finite(labels, input_name="y")
            check_classification_targets(y)
        self.state["class_weight_"] = (
            np.ones(len(classes))
            if model.class_weight is None
            else compute_class_weight(model.class_weight, classes=classes, y=labels)
        )
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        self.state["classes_"] = classes
        model.__dict__.pop("_label_order", None)  # of a model that was read from a file
        return np.asarray(targets, np.int64)

    @abstractmethod
    def pair_duals(self) -> Duals:
        """Return the dual of each pair of classes."""

    def duals(self) -> Duals:
        """Return the duals of the pairs of classes, then those of their folds."""
        probability = self.model.probability
        self.state["_effective_probability"] = probability != "deprecated" and bool(probability)
        duals = self.pair_duals()
        if not self.state["_effective_probability"]:
            return duals
        seed = check_random_state(self.model.random_state).randint(np.iinfo("i").max)
        folds = [fold for dual in duals for fold in cross_validated(dual, seed)]
        return Duals.of([*duals, *folds])

    def members(self) -> list[Indices]:
        """Return the rows of each class."""
        return [np.flatnonzero(self.targets == k) for k in range(self.n_classes)]

    @property
    def sign(self) -> float:
        """With two classes the second one is positive, but in the dual it is the first."""
        return -1.0 if self.n_classes == 2 else 1.0

    def conclude(self, duals: Duals, solutions: Solutions) -> None:
        """Read support vectors, coefficients and intercepts from the solutions of all pairs."""
        pairs, targets = self.pairs, self.targets
        count = len(pairs)
        self.state["_probA"], self.state["_probB"] = np.zeros((2, 0))
        if len(duals) > count:
            self._calibrate(duals[count:], solutions[count:])
            duals, solutions = Duals.of(duals[:count]), Solutions.of(solutions[:count])
        factors = self.sign / self.scale(solutions)
        self.intercept = factors * bias(solutions)
        self.state["n_iter_"] = np.maximum(solutions.n_iter, 1).astype(np.int32)

        # Keep the variables of all pairs that are not 0.
        z = np.repeat(factors, duals.sizes) * solutions.z
        nonzero = np.flatnonzero(z)
        rows = duals.rows[nonzero]
        i, j = np.repeat(np.array(pairs).T, duals.sizes, axis=1)[:, nonzero]

        used = np.zeros(self.n, bool)
        used[rows] = True
        support = np.flatnonzero(used)
        support = support[np.argsort(targets[support], kind="stable")]
        self.support = support.astype(np.int32)
        counts = np.bincount(targets[support], minlength=self.n_classes)
        self.state["_n_support"] = counts.astype(np.int32)
        place = np.zeros(self.n, np.int64)
        place[support] = np.arange(len(support))
        self.coefficients = np.zeros((self.n_classes - 1, len(support)))
        self.coefficients[np.where(targets[rows] == i, j - 1, i), place[rows]] = z[nonzero]

    def _calibrate(self, duals: list[Dual], solutions: list[Solution]) -> None:
        """Fit the sigmoid of each pair to the decisions of its folds."""
        sigmoids = []
        for k, (first, _) in zip(range(0, len(duals), FOLDS), self.pairs, strict=False):
            folds = slice(k, k + FOLDS)
            positives = int(np.count_nonzero(self.targets[duals[k].rows] == first))
            sigmoids.append(sigmoid(duals[folds], solutions[folds], positives, self.scale))
        slopes, offsets = np.array(sigmoids).T.copy()
        self.state["_probA"], self.state["_probB"] = slopes, offsets


class SVCPlan(ClassificationPlan):
    """C-support vector classification."""

    def limits(self) -> Array:
        """Return C times the weights of the samples and of their classes."""
        with np.errstate(over="ignore"):
            return limits(self.model.C, self.weights * self.state["class_weight_"][self.targets])

    def pair_duals(self) -> Duals:
        """Return the dual of each pair of classes."""
        limit = self.limits()
        if np.count_nonzero(np.bincount(self.targets[limit > 0])) < 2:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class."
            )
        members = self.members()
        return c_classifications([(members[i], members[j]) for i, j in self.pairs], limit)


class NuSVCPlan(ClassificationPlan):
    """Nu-support vector classification."""

    def pair_duals(self) -> Duals:
        """Return the dual of each pair of classes."""
        members = self.members()
        self._require_feasible([float(self.weights[rows].sum()) for rows in members])
        nu = self.model.nu
        return Duals.of(
            [nu_classification(members[i], members[j], self.weights, nu) for i, j in self.pairs]
        )

    def _require_feasible(self, sizes: list[float]) -> None:
        """Raise if nu is too large for classes with these sums of weights."""
        nu = self.model.nu
        largest, (i, j) = min(
            (2 * min(sizes[i], sizes[j]) / max(sizes[i] + sizes[j], 1e-300), (i, j))
            for i, j in self.pairs
        )
        if nu > largest:
            names = self.state["classes_"][[i, j]].tolist()
            allowed = f"nu must be in (0, {largest:g}]" if largest > 0 else "no nu is possible"
            raise ValueError(
                f"specified nu is infeasible: the weights of the samples sum to {sizes[i]:g} in "
                f"class {names[0]!r} and to {sizes[j]:g} in class {names[1]!r}, so {allowed}; got "
                f"nu={nu:g}"
            )

    def scale(self, solution: Solution | Solutions) -> Array:
        """Return the margin of the solution."""
        return margin(solution)


def _are_labels(classes: Targets) -> bool:
    """Return whether classes are strings or whole numbers, which need no further check."""
    if classes.dtype.kind == "f":
        return bool(np.isfinite(classes).all() and (classes == np.rint(classes)).all())
    return classes.dtype.kind in "biuU"
