"""SVM classifiers: one model per pair of classes, in LIBSVM's layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import deprecated
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .arrays import chosen_device, from_anywhere
from .base import BaseSVM, KernelFunction, of_one_fit
from .decisions import class_pairs, group_starts, pair_decisions, pairs_in_order
from .documentation import documented
from .model_plans import NuSVCPlan, SVCPlan

# Bytes of pairwise decisions that are in memory at a time: samples are processed in pieces of this
# size. On the CPU a piece should fit into the cache. On the GPU it must be large enough to keep the
# GPU busy.
CPU_PIECE_BYTES, GPU_PIECE_BYTES = 2**22, 2**27

DEPRECATION = (
    "Attribute `{}` was deprecated in version 1.9 of scikit-learn and will be removed in its 1.11, "
    "as the `probability=True` option for SVC and NuSVC was deprecated and will be removed in 1.11."
)


def _gives_probabilities(model: Classifier) -> bool:
    if model.probability == "deprecated" or not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


def label_order(model: Any) -> Indices:
    """Return the indices into `classes_` in the order in which the classes were numbered.

    The order is that of the labels, unless the model was read from a LIBSVM file. It breaks
    ties: the second of two classes wins a decision of 0, and the first of the classes with equal
    votes wins. Probabilities are coupled in this order as well, because it affects their rounding.
    """
    order: Indices = np.arange(len(model.classes_))[vars(model).get("_label_order", slice(None))]
    return order


class Classifier(ClassifierMixin, BaseSVM):  # type: ignore[misc]
    """A classifier that has a model for each pair of classes.

    `dual_coef_` has LIBSVM's layout. Support vectors are grouped by class. The coefficients of
    those of class i in the model of the pair (i, j) are in row j - 1 if j > i, and in row j
    otherwise. The class that comes first in `classes_` is positive, except that the second one is
    positive if there are only two classes.
    """

    decision_function_shape: str
    break_ties: bool
    class_weight: dict[Any, float] | str | None
    probability: bool | str
    random_state: Any

    classes_: NDArray[Any]
    class_weight_: Array
    n_iter_: NDArray[np.int32]
    _effective_probability: bool
    _probA: Array
    _probB: Array

    @property
    def _sign(self) -> float:
        return -1.0 if len(self.classes_) == 2 else 1.0

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        return self._n_support

    @from_anywhere
    @of_one_fit
    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision function.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples. With ``kernel="precomputed"`` their kernel matrix with the training samples, or
            with the support vectors if `support_columns` is True.

        Returns
        -------
        ndarray
            With two classes, an array of shape (n_samples,) that is positive for ``classes_[1]``.
            With more classes, an array of shape (n_samples, n_classes), or of shape (n_samples,
            n_classes * (n_classes - 1) / 2) if `decision_function_shape` is "ovo". In the latter, a
            column is positive for the first class of its pair.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self._single_decision(X)
        if self.decision_function_shape == "ovo":
            return self._from_pairs(X, lambda pairs: pairs)
        classes = len(self.classes_)
        return self._from_pairs(
            X, lambda pairs: _core.one_vs_rest(pairs, classes, self._threads(pairs.size))
        )

    def _from_pairs(self, X: Any, function: Callable[[Array], NDArray[Any]]) -> NDArray[Any]:
        """Apply a function to the decisions of all pairs of classes, some rows at a time.

        The decisions have a column per pair of classes, positive for the first class of the pair.
        Memory does not grow with rows times pairs, because the function gets a few rows at a time.
        """
        if len(self.classes_) == 2:
            return function(-self._single_decision(X)[:, None])
        n, pieces = self._pair_decisions(X)
        found: NDArray[Any] | None = None
        first = 0
        for piece in map(function, pieces):
            if len(piece) == n:
                return piece
            if found is None:
                found = np.empty((n, *piece.shape[1:]), piece.dtype)
            found[first : first + len(piece)] = piece
            first += len(piece)
        assert found is not None  # X has at least one row
        return found

    def _pair_decisions(self, X: Any) -> tuple[int, Iterator[Array]]:
        """Return the number of rows of X, and the decisions of all pairs, some rows at a time."""
        X = self._new_data(X)
        return X.shape[0], self._pieces(X)

    def _pieces(self, X: Any) -> Iterator[Array]:
        """Yield the decisions of all pairs of more than two classes, some rows at a time."""
        coefficients, starts = self._dense_coefficients().T, group_starts(self.n_support_)
        device = chosen_device(self.device, self.kernel)
        outputs = coefficients.shape[1] * (len(starts) - 1)
        rows = max((CPU_PIECE_BYTES if device is None else GPU_PIECE_BYTES) // (8 * outputs), 1)
        for first in range(0, X.shape[0], rows):
            some = X[first : first + rows] if rows < X.shape[0] else X
            sums = self._decide(coefficients, some, device, starts, first)
            yield pair_decisions(sums, self.intercept_, len(self.classes_), self.n_jobs)

    def _coefficients_by_class(self) -> list[tuple[slice, Array]]:
        dense = self._dense_coefficients()
        ends = np.cumsum(self.n_support_)
        blocks = [slice(end - n, end) for n, end in zip(self.n_support_, ends, strict=True)]
        return [(block, dense[:, block]) for block in blocks]

    @from_anywhere
    @of_one_fit
    def predict(self, X: Any) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels. With more than two classes, the class with the most votes. Ties go to the
            first class, or to the one with the largest decision if `break_ties` is True.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        order = label_order(self)
        if len(order) == 2:
            decision = self._single_decision(X)
            second = decision >= 0 if order[1] == 1 else decision > 0
            return self.classes_[second.astype(np.intp)]
        if self.break_ties:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        winners = self._from_pairs(
            X,
            lambda pairs: _core.vote(self._in_order(pairs), len(order), self._threads(pairs.size)),
        )
        return self.classes_[order[winners]]

    def _in_order(self, pairs: Array) -> Array:
        """Return decisions for the pairs of classes in the order of `label_order`."""
        if "_label_order" not in vars(self):
            return pairs
        at, signs = pairs_in_order(label_order(self))
        return np.ascontiguousarray(signs * pairs[:, at])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @from_anywhere
    @of_one_fit
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of the classes, if `probability` is True.

        They come from cross-validation within the fit, so that the most likely class may differ
        from the result of `predict`.

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
        order = label_order(self)
        at, signs = pairs_in_order(order)
        slopes, offsets = self._probA[at], signs * self._probB[at]

        def coupled(pairs: Array) -> Array:
            # Coupling a pair takes about as long as 100 multiplications: about a dozen sweeps with
            # one or two divisions each.
            workers = self._threads(100.0 * pairs.size)
            found = _core.couple(self._in_order(pairs), slopes, offsets, len(order), workers)
            probabilities = np.empty_like(found)
            probabilities[:, order] = found
            return probabilities

        return self._from_pairs(X, coupled)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @from_anywhere
    @of_one_fit
    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of the probabilities of the classes, if `probability` is True.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Samples, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logarithms of the result of `predict_proba`.
        """
        return np.asarray(np.log(self.predict_proba(X)))

    @deprecated(DEPRECATION.format("probA_"))  # type: ignore[prop-decorator, untyped-decorator]
    @property
    def probA_(self) -> Array:
        """Slopes of the sigmoids, one per pair of classes; empty if `probability` is False."""
        return self._probA

    @deprecated(DEPRECATION.format("probB_"))  # type: ignore[prop-decorator, untyped-decorator]
    @property
    def probB_(self) -> Array:
        """Offsets of the sigmoids, one per pair of classes; empty if `probability` is False."""
        return self._probB

    def _primal(self) -> Any:
        if len(self.classes_) == 2:
            return super()._primal()
        vectors = self._centered_vectors()
        by_class = [
            safe_sparse_dot(coefficients, vectors[members])
            for members, coefficients in self._coefficients_by_class()
        ]
        coef = np.vstack(
            [by_class[i][j - 1] + by_class[j][i] for i, j in class_pairs(len(self.classes_))]
        )
        return type(self.support_vectors_)(coef) if self._sparse else coef


@documented
class SVC(Classifier):
    """C-support vector classification.

    A drop-in replacement for `sklearn.svm.SVC` with a different solver.

    Parameters
    ----------
    C : float, default=1.0
        Cost of errors. The upper bound of a dual variable is C times the weights of its sample and
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
    >>> model = SVC(kernel="linear").fit(X, ["left", "left", "right", "right"])
    >>> model.predict([[-0.8, -1.0], [3.0, 0.0]])
    array(['left', 'right'], dtype='<U5')
    >>> model.dual_coef_, model.support_
    (array([[-0.25,  0.25]]), array([0, 2], dtype=int32))
    >>> bool(model.optimality_.kkt_violation[0] <= model.tol)
    True
    """

    plan_type = SVCPlan
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
        cache_size: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
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
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device


@documented
class NuSVC(Classifier):
    """Nu-support vector classification.

    A drop-in replacement for `sklearn.svm.NuSVC` with a different solver.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the fraction of margin errors, and lower bound on the fraction of support
        vectors. It may be at most ``2 * min(n, m) / (n + m)`` for any two classes with n and m
        samples (or sums of weights).
    <kernel parameters>
    <tolerance parameters>
    <memory parameters>
    <probability parameters>
    class_weight : dict or "balanced", default=None
        Only sets `class_weight_`, as in scikit-learn. Use `sample_weight` to weight samples.
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

    plan_type = NuSVCPlan
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
        cache_size: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
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
        self.dtype = dtype
        self.support_columns = support_columns
        self.device = device
