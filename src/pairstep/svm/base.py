"""What all estimators share: `fit`, which runs the stages of a `FitPlan`, and decisions."""

from __future__ import annotations

import math
import warnings
from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import threads
from .._validation import Array
from ..constraints import Indices
from ..kept import kept
from .arrays import chosen_device, from_anywhere
from .compatibility import CallbackSupportMixin, num_samples, with_callbacks
from .data import DATA_CHECKS, canonical, dense, entries_of, needs_no_conversion
from .decisions import with_intercepts
from .engine import Kernel, LaidOut, adds_up_to_zero, decide
from .export import as_sklearn
from .kernels import matrix_of, named_kernel
from .parameters import CONSTRAINTS, validate_parameters
from .plan import FitPlan, Optimality
from .progress import STEPS, FitProgress
from .training_data import TrainingData

KernelFunction = Callable[[Any, Any], Any]
Model = TypeVar("Model")
Method = TypeVar("Method", bound=Callable[..., Any])


def as_now(model: Model) -> Model:
    """Return a view of a fitted model that does not change if another thread fits it again.

    A fit replaces the estimator's `__dict__` in one step. So a method that reads several attributes
    must get all of them from one `__dict__`.
    """
    now = object.__new__(type(model))
    now.__dict__ = model.__dict__
    return now


def of_one_fit(method: Method) -> Method:
    """Let a method of an estimator read the attributes of one fit only; see `as_now`."""

    @wraps(method)
    def on_one_fit(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(as_now(self), *arguments, **named)

    return on_one_fit  # type: ignore[return-value]


class BaseSVM(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """An SVM in scikit-learn's interface; `plan_type` says which duals it solves."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    kernel: str | KernelFunction
    degree: int
    gamma: float | str
    coef0: float
    tol: float
    cache_size: float | str
    verbose: bool
    max_iter: int
    n_jobs: int | None
    warm_start: bool
    time_limit: float | None
    dtype: DTypeLike
    support_columns: bool
    device: str

    support_: Indices
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Array
    shape_fit_: tuple[int, ...]
    fit_status_: int
    optimality_: Optimality

    plan_type: ClassVar[type[FitPlan]]  # the stages of a fit
    _scikit_learn: ClassVar[Any]  # the estimator of scikit-learn with the same name
    _sparse: bool
    _gamma: float
    _X_fit: Any
    _n_support: NDArray[np.int32]

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        # scikit-learn's name for the table of valid values.
        cls._parameter_constraints = {
            name: CONSTRAINTS[name] for name in cls._get_param_names() if name in CONSTRAINTS
        }

    @from_anywhere
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to training data.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples. With ``kernel="precomputed"`` the kernel matrix, of shape (n_samples,
            n_samples). If the kernel is a function, anything that it accepts.
        y : array_like of shape (n_samples,)
            Class labels, or numbers in regression.
        sample_weight : array_like of shape (n_samples,), optional
            Factors of C, one per sample. Samples whose weight is not positive are left out.

        Returns
        -------
        object
            The fitted estimator itself.
        """
        validate_parameters(self)
        context = self._init_callback_context(max_subtasks=STEPS)
        plan = FitPlan.of(self)
        plan.read(X, y, sample_weight)
        duals = plan.duals()
        # A start from a sample spends iterations, so skip it when `max_iter` limits them.
        cold = not plan.continue_last_fit(duals) and self.max_iter == -1
        plan.prepare_kernel()

        given = {"estimator": self, "X": plan.X, "y": plan.y}
        if sample_weight is not None:
            given["metadata"] = {"sample_weight": sample_weight}
        context.call_on_fit_task_begin(**given)
        progress = FitProgress(self, context, self.tol, len(duals), bool(self.verbose))
        solutions = plan.solve(duals, cold=cold, keep_going=progress)
        plan.conclude(duals, solutions)
        failed = plan.report(solutions)
        fitted = plan.fitted()
        progress.summarize(solutions, len(plan.support))
        if failed:
            warnings.warn(plan.warning(failed), ConvergenceWarning, stacklevel=4)
        if self.warm_start:
            fitted.__dict__["_last_duals"] = replace(duals, z=solutions.z)
        fitted.__dict__["_training"] = TrainingData.of(plan)
        # One assignment replaces all attributes, so that a fit that fails or is interrupted leaves
        # the estimator unchanged, and another thread sees either the old fit or the new one.
        self.__dict__ = fitted.__dict__
        context.call_on_fit_task_end(**given, reconstruction_attributes={})
        return self

    def update(
        self,
        X_new: Any = None,
        y_new: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        remove: ArrayLike | None = None,
    ) -> Self:
        """Add training samples to a fitted model, and remove others.

        The result is that of a fit to the new set of samples, with the same certificate
        (`optimality_`). It is repaired from the last solution, which takes far less time than a fit
        if few samples change. With as many samples added as removed, the model learns from a
        sliding window.

        Parameters
        ----------
        X_new : array_like or sparse array of shape (n_new, n_features), optional
            Samples to add, in the format of the training samples.
        y_new : array_like of shape (n_new,), optional
            Their labels or numbers; not used by a OneClassSVM. New classes need a new fit.
        sample_weight : array_like of shape (n_new,), optional
            Their weights, 1 by default. The other samples keep theirs.
        remove : array_like of int, optional
            Training samples to remove, numbered from 0 in the order of the training set. The
            remaining samples keep their order, and new ones are added at the end. `support_` has
            these numbers as well.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        ValueError
            If the model does not have its training data, if labels are new, or if a class would
            lose its last sample. The model is not changed.

        Warns
        -----
        ConvergenceWarning
            If the solver does not reach `tol`, as in `fit`.

        Notes
        -----
        Gamma and the class weights keep their values of the last `fit`, also with
        ``gamma="scale"`` and ``class_weight="balanced"``. A fit keeps references to its training
        data, not copies, and the first update computes what later ones need: it takes longer, and
        copies the data. Updates keep up to 256 MB of kernel rows, and at most half of `cache_size`.
        Pickles, copies and files of the model have no training data, so such a model needs a fit
        before its next update. Kernels that are functions or precomputed, and ``probability=True``,
        are not supported.

        Examples
        --------
        >>> from pairstep.svm import SVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        >>> model = SVC(kernel="linear").fit(X, y)
        >>> model.update([[4.0], [5.0]], [1, 1], remove=[0]).shape_fit_
        (5, 1)
        >>> model.predict([[1.25], [1.75]])
        array([0, 1])
        """
        from .update import updated

        self.__dict__ = updated(self, X_new, y_new, sample_weight, remove).__dict__
        return self

    def _validate_params(self) -> None:  # the name that scikit-learn calls
        validate_parameters(self)

    def _kernel(self) -> Kernel:
        return named_kernel(self.kernel, self._gamma, self.degree, self.coef0)

    def _threads(self, multiplications: float = math.inf) -> int:
        return threads.count(self.n_jobs, multiplications)

    def _decide(
        self,
        coefficients: Array,
        X: Any,
        device: Any,
        starts: Indices | None = None,
        first: int = 0,
    ) -> Array:
        """Return the kernel of X with the support vectors, times `coefficients`.

        Each column of `coefficients` is an output. If `starts` is given, there is one set of
        outputs for each group of support vectors that begins there. Error messages count the rows
        of X from `first`.
        """
        kernel = self._kernel()
        precomputed = kernel.name == "precomputed"
        support = self._support_columns() if precomputed else self.support_vectors_
        work = float(X.shape[0]) * coefficients.size
        if not precomputed:
            work += float(entries_of(X)) * len(coefficients)
        # Decisions need not be more precise than the fit: the error of a float32 sum may take up
        # half of its tolerance.
        allowed = self.tol / 2 if X.dtype == np.float32 else 0.0
        return decide(
            support, kernel, coefficients, X, allowed=allowed, starts=starts,
            threads=self._threads(work), laid_out=self._laid_out, device=device, first=first,
        )  # fmt: skip

    @kept
    def _laid_out(self) -> LaidOut:
        return LaidOut()

    def _support_columns(self) -> Indices:
        """Return the columns of the support vectors in the kernel matrix of new samples."""
        if self.support_columns and not callable(self.kernel):
            return np.arange(len(self.support_))
        return np.asarray(self.support_, np.int64)

    def _single_decision(self, X: Any) -> Array:
        """Return the decisions of an estimator without pairs of classes, or with one pair.

        They have a column per output if there are several.
        """
        X = self._new_data(X)
        device = chosen_device(self.device, self.kernel)
        sums = self._decide(self._dense_coefficients().T, X, device)
        return with_intercepts(sums, self.intercept_)

    def _dense_coefficients(self) -> Array:
        return np.asarray(dense(self.dual_coef_))

    def _new_data(self, X: Any) -> Any:
        """Return X in the format of the support vectors, or its kernel matrix."""
        if self.support_vectors_.shape[0] not in (0, self.n_support_.sum()):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        if callable(self.kernel):
            K = matrix_of(self.kernel, X, self._X_fit)
            expected = num_samples(X), self.shape_fit_[0]
            if K.shape != expected:
                raise ValueError(
                    f"kernel must return a matrix of shape {expected} for {expected[0]} samples "
                    f"and {expected[1]} training samples, got {K.shape}"
                )
            return K
        if self.kernel == "precomputed" and self.support_columns:
            X = check_array(X, **DATA_CHECKS)
            if X.shape[1] != len(self.support_):
                raise ValueError(
                    f"X has {X.shape[1]} columns, but with support_columns=True it must have "
                    f"{len(self.support_)}, one per support vector in the order of support_"
                )
            return X
        known = needs_no_conversion(X) and X.shape[1] == self.n_features_in_
        if not known or hasattr(self, "feature_names_in_"):
            X = validate_data(self, X, reset=False, **DATA_CHECKS)
        if self.kernel == "precomputed":
            return X
        if scipy.sparse.issparse(X) and not self._sparse:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            )
        if self._sparse:
            X = canonical(X if scipy.sparse.issparse(X) else type(self.support_vectors_)(X))
        return X if X.dtype == self.support_vectors_.dtype else X.astype(np.float64)

    @property
    @of_one_fit
    def coef_(self) -> Any:
        """Weights of the features, read-only. Only available with a linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._primal()
        (coef.data if scipy.sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    @property
    def _sign(self) -> float:
        """The sign of `dual_coef_` and `intercept_` relative to LIBSVM's."""
        return 1.0

    @property
    def _dual_coef_(self) -> Any:
        return self._sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, coefficients: Any) -> None:
        self.dual_coef_ = self._sign * coefficients

    @of_one_fit
    def to_sklearn(self) -> Any:
        """Return scikit-learn's estimator with the same fit.

        Use it for tools that require scikit-learn's estimators, such as skl2onnx.
        `pairstep.svm.to_sklearn` also converts pipelines and fitted searches.

        Returns
        -------
        object
            An instance of the class with the same name in `sklearn.svm`. It has the same
            parameters, except those that scikit-learn does not have, and a copy of the fit.

        Examples
        --------
        >>> from pairstep.svm import SVR
        >>> theirs = SVR(C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).to_sklearn()
        >>> type(theirs).__module__, theirs.C
        ('sklearn.svm._classes', 10.0)
        >>> theirs.predict([[1.0]]).round(3)
        array([1.])
        """
        check_is_fitted(self)
        return as_sklearn(self, self._scikit_learn)

    def _primal(self) -> Any:
        return safe_sparse_dot(self.dual_coef_, self._centered_vectors())

    def _centered_vectors(self) -> Any:
        """Return the support vectors minus their mean, if the coefficients sum to 0.

        This does not change the weights of the features, but they lose fewer digits to rounding.
        Sparse support vectors are returned unchanged.
        """
        vectors = self.support_vectors_
        if self._sparse or len(vectors) == 0 or not adds_up_to_zero(self.dual_coef_):
            return vectors
        return vectors - vectors.mean(axis=0, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


class SingleDualSVM(BaseSVM):
    """An estimator with one dual per output: regression and novelty detection."""

    n_iter_: int | NDArray[np.int32]

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors."""
        return self._n_support[:1]


class KnownDecisions(BaseSVM):
    """A fitted estimator that predicts one set of samples only, whose decisions are known.

    Cross-validation computes the decisions on the test samples of a split from the kernel matrix
    that all splits share. The scorers of scikit-learn pass exactly these samples to the estimator,
    which can therefore ignore its argument.
    """

    _decisions: Array

    def _single_decision(self, X: Any) -> Array:
        return self._decisions

    def _pair_decisions(self, X: Any) -> tuple[int, Iterator[Array]]:
        return len(self._decisions), iter([self._decisions])


@cache
def _known_decisions_type(Estimator: Any) -> Any:
    return type(Estimator.__name__, (KnownDecisions, Estimator), {"__doc__": Estimator.__doc__})


def with_known_decisions(model: Any, decisions: Array) -> Any:
    """Return a copy of a fitted model that always returns the given decisions.

    They have one column per pair of classes if there are more than two classes.
    """
    Estimator: Any = type(model)
    known: Any = object.__new__(_known_decisions_type(Estimator))
    known.__dict__.update(model.__dict__, _decisions=decisions)
    return known
