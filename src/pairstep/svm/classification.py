"""Classification: one against one, as LIBSVM lays it out."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from itertools import combinations
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import (
    assert_all_finite,
    check_random_state,
    column_or_1d,
    compute_class_weight,
    deprecated,
)
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .. import _core, threads
from .._validation import Array
from ..constraints import Indices
from .arrays import from_anywhere
from .base import KernelFunction, SupportVectorMachine, Targets, is_plain
from .documentation import documented
from .duals import bias, c_classification, limits, margin, nu_classification
from .machine import Dual, Solution
from .probability import FOLDS, cross_validated, sigmoid

DEPRECATED = (
    "Attribute `{}` was deprecated in version 1.9 of scikit-learn and will be removed in its 1.11, "
    "as the `probability=True` option for SVC and NuSVC was deprecated and will be removed in 1.11."
)


def _gives_probabilities(machine: Classifier) -> bool:
    if machine.probability == "deprecated" or not machine.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


def _are_names(classes: Targets) -> bool:
    if classes.dtype.kind == "f":
        return bool(np.isfinite(classes).all() and (classes == np.rint(classes)).all())
    return classes.dtype.kind in "biuU"


class Classifier(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]
    """A machine per pair of classes.

    `dual_coef_` is LIBSVM's: support vectors side by side by class; those of class i have in row
    j - 1 (j > i) or j (j < i) their coefficients in the machine of i against j, in which the class
    that comes first in `classes_` is positive. With two classes the second one is positive.
    """

    decision_function_shape: str
    break_ties: bool
    class_weight: dict[Any, float] | str | None
    probability: bool | str
    random_state: Any

    def _targets(self, X: Any, y: Any) -> Targets:
        labels = y if is_plain(y) else column_or_1d(y, warn=True)
        classes, targets = np.unique(labels, return_inverse=True)
        # Names and whole numbers are classes, unless they are so many that a warning may be due.
        if not _are_names(classes) or 2 * len(classes) > len(labels):
            assert_all_finite(labels, input_name="y")
            check_classification_targets(y)
        self.class_weight_ = (
            np.ones(len(classes))
            if self.class_weight is None
            else compute_class_weight(self.class_weight, classes=classes, y=labels)
        )
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        self.classes_ = classes
        return np.asarray(targets, np.int64)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.classes_)), 2))

    def _members(self, targets: Targets) -> list[Indices]:
        return [np.flatnonzero(targets == k) for k in range(len(self.classes_))]

    @property
    def _sign(self) -> float:
        return -1.0 if len(self.classes_) == 2 else 1.0

    def _scale(self, solution: Solution) -> float:
        """What a solution is divided by."""
        return 1.0

    @abstractmethod
    def _pair_duals(self, targets: Targets, weights: Array) -> list[Dual]:
        """The dual of each pair of classes."""

    def _duals(self, targets: Targets, weights: Array) -> list[Dual]:
        given = self.probability != "deprecated"
        self._effective_probability = given and bool(self.probability)
        if given:
            name = type(self).__name__
            warnings.warn(
                "The `probability` parameter was deprecated in version 1.9 of scikit-learn and "
                f"will be removed in its 1.11. Use `CalibratedClassifierCV({name}(), "
                f"ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
                stacklevel=5,
            )
        duals = self._pair_duals(targets, weights)
        if not self._effective_probability:
            return duals
        seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        return duals + [fold for dual in duals for fold in cross_validated(dual, seed)]

    def _conclude(self, targets: Targets, duals: list[Dual], solutions: list[Solution]) -> Array:
        pairs = len(self._pairs)
        self._calibrate(targets, duals[pairs:], solutions[pairs:])
        duals, solutions = duals[:pairs], solutions[:pairs]
        used = np.zeros(len(targets), bool)
        for dual, solution in zip(duals, solutions, strict=True):
            used[dual.rows[solution.z != 0]] = True
        by_class = [np.flatnonzero(used & (targets == k)) for k in range(len(self.classes_))]
        self.support_: Indices = np.concatenate(by_class).astype(np.int32)
        self._n_support = np.array([len(rows) for rows in by_class], np.int32)
        self.n_iter_ = np.array([max(s.n_iter, 1) for s in solutions], np.int32)

        scales = [self._sign / self._scale(s) for s in solutions]
        self.intercept_ = np.array(
            [scale * bias(s) for scale, s in zip(scales, solutions, strict=True)]
        )
        place = np.zeros(len(targets), np.int64)
        place[self.support_] = np.arange(len(self.support_))
        coefficients = np.zeros((len(self.classes_) - 1, len(self.support_)))
        z = [scale * solution.z for scale, solution in zip(scales, solutions, strict=True)]
        for (i, j), dual, own in zip(self._pairs, duals, z, strict=True):
            moved = own != 0
            rows = dual.rows[moved]
            at = np.where(targets[rows] == i, j - 1, i)
            coefficients[at, place[rows]] = own[moved]
        return coefficients

    def _calibrate(self, targets: Targets, duals: list[Dual], solutions: list[Solution]) -> None:
        """Learn the sigmoid of each pair from its cross-validated machines, if there are any."""
        sigmoids = []
        for k, (first, _) in zip(range(0, len(duals), FOLDS), self._pairs, strict=False):
            machines = slice(k, k + FOLDS)
            positives = int(np.count_nonzero(targets[duals[k].rows] == first))
            sigmoids.append(sigmoid(duals[machines], solutions[machines], positives, self._scale))
        self._probA, self._probB = np.array(sigmoids).reshape(-1, 2).T.copy()

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        return self._n_support

    @from_anywhere
    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision function.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples; with ``kernel="precomputed"`` their kernel with the training samples, or with
            the support vectors if `support_columns`.

        Returns
        -------
        ndarray
            Of shape (n_samples,) with two classes: positive for ``classes_[1]``. Else of shape
            (n_samples, n_classes), or (n_samples, n_classes * (n_classes - 1) / 2) if
            `decision_function_shape` is "ovo": positive for the first class of each pair.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self._single_decision(X)
        pairs = self._pair_decisions(X)
        if self.decision_function_shape == "ovo":
            return pairs
        return np.asarray(_ovr_decision_function(pairs < 0, -pairs, len(self.classes_)))

    def _pair_decisions(self, X: Any) -> Array:
        """A column per pair of classes, positive for the first of them."""
        if len(self.classes_) == 2:
            return -self._single_decision(X)[:, None]
        X = self._new_data(X)
        classes = len(self.classes_)
        starts = np.concatenate([[0], np.cumsum(self.n_support_, dtype=np.int64)])
        by_class = self._decide(self._dense_coefficients().T, X, starts)
        i, j = np.array(self._pairs).T
        values = by_class[:, i * (classes - 1) + j - 1] + by_class[:, j * (classes - 1) + i]
        return np.asarray(values + self.intercept_)

    def _coefficients_by_class(self) -> list[tuple[slice, Array]]:
        dense = self._dense_coefficients()
        ends = np.cumsum(self.n_support_)
        blocks = [slice(end - n, end) for n, end in zip(self.n_support_, ends, strict=True)]
        return [(block, dense[:, block]) for block in blocks]

    @from_anywhere
    def predict(self, X: Any) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels. With more than two classes the one with most votes: of several the first
            one, or with `break_ties` the most confident one.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if len(self.classes_) == 2:
            return self.classes_[(self._single_decision(X) >= 0).astype(np.intp)]
        if self.break_ties:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        pairs = self._pair_decisions(X)
        n, classes = len(pairs), len(self.classes_)
        winners = np.where(pairs > 0, *np.array(self._pairs).T)
        votes = np.bincount((winners + classes * np.arange(n)[:, None]).ravel(), None, n * classes)
        return self.classes_[np.argmax(votes.reshape(n, classes), axis=1)]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @from_anywhere
    def predict_proba(self, X: Any) -> Array:
        """Give probabilities of the classes, if `probability` is True.

        They come from cross-validation within the fit, so that the likeliest class need not be the
        one that `predict` gives.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        if not self._effective_probability:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        pairs, classes = self._pair_decisions(X), len(self.classes_)
        # A dozen sweeps over all pairs, of a division or two each.
        workers = min(self._threads(), threads.worth(100.0 * pairs.size))
        return _core.couple(pairs, self._probA, self._probB, classes, workers)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @from_anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """Give logarithms of the probabilities of the classes, if `probability` is True.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logarithms of what `predict_proba` gives.
        """
        return np.asarray(np.log(self.predict_proba(X)))

    @deprecated(DEPRECATED.format("probA_"))  # type: ignore[prop-decorator, untyped-decorator]
    @property
    def probA_(self) -> Array:
        """Slopes of the sigmoids, one for each pair of classes; empty without `probability`."""
        return self._probA

    @deprecated(DEPRECATED.format("probB_"))  # type: ignore[prop-decorator, untyped-decorator]
    @property
    def probB_(self) -> Array:
        """Offsets of the sigmoids, one for each pair of classes; empty without `probability`."""
        return self._probB

    def _primal(self) -> Any:
        if len(self.classes_) == 2:
            return super()._primal()
        by_class = [
            safe_sparse_dot(coefficients, self.support_vectors_[members])
            for members, coefficients in self._coefficients_by_class()
        ]
        coef = np.vstack([by_class[i][j - 1] + by_class[j][i] for i, j in self._pairs])
        return type(self.support_vectors_)(coef) if self._sparse else coef


@documented
class SVC(Classifier):
    """C-support vector classification.

    scikit-learn's `sklearn.svm.SVC` on another engine.

    Parameters
    ----------
    C : float
        How much errors cost: the bound of the dual variables, times the weights of sample and
        class.
    <kernel parameters>
    <tolerance parameters>
    <memory parameters>
    <probability parameters>
    <classes parameters>
    <iterations parameters>
    <decisions parameters>
    <added parameters>

    Attributes
    ----------
    <classes attributes>
    <fit attributes>

    Examples
    --------
    >>> from pairstep.svm import SVC
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> machine = SVC(kernel="linear").fit(X, ["left", "left", "right", "right"])
    >>> machine.predict([[-0.8, -1.0], [3.0, 0.0]])
    array(['left', 'right'], dtype='<U5')
    >>> machine.dual_coef_, machine.support_
    (array([[-0.25,  0.25]]), array([0, 2], dtype=int32))
    >>> bool(machine.optimality_.kkt_violation[0] <= machine.tol)
    True
    """

    _scikit_learn = sklearn.svm.SVC

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        rule: str = "auto",
        dtype: DTypeLike = np.float32,
        support_columns: bool = False,
        device: str = "cpu",
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.rule = rule
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device

    def _pair_duals(self, targets: Targets, weights: Array) -> list[Dual]:
        with np.errstate(over="ignore"):
            limit = weights * self.class_weight_[targets]
        if len(np.unique(targets[limit > 0])) < 2:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class."
            )
        limit = limits(self.C, limit)
        members = self._members(targets)
        return [c_classification(members[i], members[j], limit) for i, j in self._pairs]


@documented
class NuSVC(Classifier):
    """Nu-support vector classification.

    scikit-learn's `sklearn.svm.NuSVC` on another engine.

    Parameters
    ----------
    nu : float
        At most this share of the samples are margin errors, and at least this share are support
        vectors. Of two classes with n and m samples (sums of their weights) it may be at most
        ``2 * min(n, m) / (n + m)``.
    <kernel parameters>
    <tolerance parameters>
    <memory parameters>
    <probability parameters>
    class_weight : dict or "balanced", optional
        Has no effect but on `class_weight_`, as in scikit-learn; `sample_weight` has.
    <iterations parameters>
    <decisions parameters>
    <added parameters>

    Attributes
    ----------
    <classes attributes>
    <fit attributes>

    Examples
    --------
    >>> from pairstep.svm import NuSVC
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> NuSVC(nu=0.5).fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]])
    array([1])
    """

    _scikit_learn = sklearn.svm.NuSVC

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        rule: str = "auto",
        dtype: DTypeLike = np.float32,
        support_columns: bool = False,
        device: str = "cpu",
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.rule = rule
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device

    def _pair_duals(self, targets: Targets, weights: Array) -> list[Dual]:
        members = self._members(targets)
        self._require_feasible([float(weights[rows].sum()) for rows in members])
        return [nu_classification(members[i], members[j], weights, self.nu) for i, j in self._pairs]

    def _require_feasible(self, sizes: list[float]) -> None:
        most, (i, j) = min(
            (2 * min(sizes[i], sizes[j]) / max(sizes[i] + sizes[j], 1e-300), (i, j))
            for i, j in self._pairs
        )
        if self.nu > most:
            names = self.classes_[[i, j]].tolist()
            allowed = f"nu must be in (0, {most:g}]" if most > 0 else "no nu is possible"
            raise ValueError(
                f"specified nu is infeasible: the samples of class {names[0]!r} weigh "
                f"{sizes[i]:g} and those of class {names[1]!r} {sizes[j]:g}, so {allowed}; got "
                f"nu={self.nu:g}"
            )

    def _scale(self, solution: Solution) -> float:
        return margin(solution)
