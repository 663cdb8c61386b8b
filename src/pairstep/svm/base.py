"""What all support vector machines share: validation, the fit around the engine, decisions."""

from __future__ import annotations

import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    get_tags,
)
from sklearn.utils._param_validation import (
    Hidden,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from .. import threads
from .._validation import Array
from ..constraints import Indices
from ..kept import kept
from ..result import Status
from ..rules import RULES
from .arrays import from_anywhere, given_on_device
from .compatibility import CallbackSupportMixin, check_sample_weight, with_callbacks
from .duals import bias, continue_from
from .export import as_sklearn
from .kernels import NOT_FINITE, gamma_of, matrix_of, require_finite, symmetric
from .machine import KERNELS, Dual, Kernel, LaidOut, Solution, decide, solve
from .progress import STEPS, FitProgress

KernelFunction = Callable[[Any, Any], Any]
Targets = NDArray[Any]  # numbers, or classes as 0, 1, ...

CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "degree": [Interval(Integral, 0, 2**31 - 1, closed="both")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="right")],
    "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    "epsilon": [Interval(Real, 0.0, None, closed="left")],
    "shrinking": ["boolean"],
    "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "random_state": ["random_state"],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    "n_jobs": [Integral, None],
    "warm_start": ["boolean"],
    "time_limit": [Interval(Real, 0.0, None, closed="left"), None],
    "rule": [StrOptions({"auto", *(name for name, rule in RULES.items() if rule.guided)})],
    "dtype": [
        Options(type, {np.float32, np.float64}),
        StrOptions({"float32", "float64"}),
        Hidden(Options(np.dtype, {np.dtype(np.float32), np.dtype(np.float64)})),
    ],
    "support_columns": ["boolean"],
    "device": [StrOptions({"cpu", "cuda", "auto"})],
}


STEPS_EACH = 2**13  # multiplications that take as long as the steps of one variable of a dual

LARGEST = 2**62  # of the numbers of iterations and bytes that the engine takes

DATA_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}


@dataclass(frozen=True)
class Optimality:
    """How near to its optimum each binary problem is, recomputed before it is reported.

    Attributes
    ----------
    kkt_violation : ndarray
        What `tol` bounds: by how much the best exchange between two variables would pay, in
        float64 from the data.
    duality_gap : ndarray
        At least the dual objective's distance to its optimum, up to rounding: prices of samples
        away from the margin carry that of the kernel rows (`dtype`).
    status : ndarray of str
        Why the engine ended; see `pairstep.Status`.
    """

    kkt_violation: Array
    duality_gap: Array
    status: NDArray[np.str_]


class SupportVectorMachine(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A machine says what its duals are and what their solutions mean; the engine solves them."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _defaults: ClassVar[dict[str, Any]]

    kernel: str | KernelFunction
    degree: int
    gamma: float | str
    coef0: float
    tol: float
    cache_size: float
    verbose: bool
    max_iter: int
    n_jobs: int | None
    warm_start: bool
    time_limit: float | None
    rule: str
    dtype: DTypeLike
    support_columns: bool
    device: str

    _scikit_learn: ClassVar[Any]  # the estimator that this one stands in for
    _known: tuple[Any, Array] | None = None  # samples, and what the machine decides on them

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls._parameter_constraints = {
            name: CONSTRAINTS[name] for name in cls._get_param_names() if name in CONSTRAINTS
        }
        parameters = inspect.signature(cls.__init__).parameters
        cls._defaults = {name: parameters[name].default for name in cls._parameter_constraints}

    @abstractmethod
    def _targets(self, X: Any, y: Any) -> Targets:
        """Check y and say what the duals need of it."""

    @abstractmethod
    def _duals(self, targets: Targets, weights: Array) -> list[Dual]:
        """The duals to solve."""

    @abstractmethod
    def _conclude(self, targets: Targets, duals: list[Dual], solutions: list[Solution]) -> Array:
        """Set `support_`, `n_support_`, `intercept_` and `n_iter_`; return the coefficients."""

    @from_anywhere
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine to training data.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples; the kernel matrix, of shape (n_samples, n_samples), with
            ``kernel="precomputed"``; whatever the kernel takes if that is a function.
        y : array_like of shape (n_samples,)
            Class labels or, in regression, numbers.
        sample_weight : array_like of shape (n_samples,), optional
            Factors of C, one per sample. Samples whose weight is not positive are left out.

        Returns
        -------
        object
            The fitted machine itself.
        """
        self._validate_params()
        context = self._init_callback_context(max_subtasks=STEPS)
        # What the fit finds out is written to a copy, which takes this machine's place in one step:
        # a fit that is refused or interrupted leaves the machine as it was.
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        X, y = fitted._training_data(X, y)
        n = _num_samples(X)
        targets = fitted._targets(X, y)
        fitted.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        weights = fitted._weights(X, sample_weight)
        duals = fitted._duals(targets, weights)
        # Samples take iterations of their own, which who limits them has not asked for.
        cold = not fitted._continue(duals) and self.max_iter == -1
        K = fitted._matrix(X)
        # Duals beyond the first are solved side by side.
        beside = sum(len(dual.rows) for dual in duals) - n
        work = n * (entries_of(K) + 16.0 * n) + STEPS_EACH * beside

        told = {"estimator": self, "X": X, "y": y}
        if sample_weight is not None:
            told["metadata"] = {"sample_weight": sample_weight}
        context.call_on_fit_task_begin(**told)
        progress = FitProgress(self, context, self.tol, len(duals), bool(self.verbose))
        solutions = fitted._solve(
            K, duals, tol=self.tol, max_iter=self._most_iterations(n),
            time_limit=math.inf if self.time_limit is None else self.time_limit,
            cache_bytes=self._cache_bytes(),
            threads=self._threads(work),
            dtype=self.dtype, rule=self.rule, cold=cold, keep_going=progress,
            device=fitted._device(),
        )  # fmt: skip
        coefficients = fitted._conclude(targets, duals, solutions)
        fitted._keep(X, coefficients, fitted.support_)
        progress.summarise(solutions, len(fitted.support_))
        failed = fitted._report(solutions)
        if failed:
            warnings.warn(self._warning(failed), ConvergenceWarning, stacklevel=4)
        if self.warm_start:
            for dual, solution in zip(duals, solutions, strict=True):
                dual.z = solution.z
            fitted._last_duals = duals
        self.__dict__ = fitted.__dict__
        context.call_on_fit_task_end(**told, reconstruction_attributes={})
        return self

    def _solve(self, K: Any, duals: list[Dual], **how: Any) -> list[Solution]:
        """Have the engine solve the duals."""
        return solve(K, self._kernel(), duals, **how)

    def _validate_params(self) -> None:
        # Defaults are valid: what is left is seldom more than a few.
        given = {name: getattr(self, name) for name in self._parameter_constraints}
        validate_parameter_constraints(
            self._parameter_constraints,
            {name: value for name, value in given.items() if value is not self._defaults[name]},
            caller_name=type(self).__name__,
        )

    def _training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        if scipy.sparse.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        self._sparse = scipy.sparse.issparse(X) and not callable(self.kernel)
        supervised = get_tags(self).target_tags.required
        if callable(self.kernel):
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            if supervised:
                check_consistent_length(X, y)
            return X, y
        if needs_no_conversion(X) and (not supervised or (is_plain(y) and y.shape == X.shape[:1])):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        elif supervised:
            X, y = validate_data(self, X, y, **DATA_CHECKS)
        else:
            X = validate_data(self, X, **DATA_CHECKS)
        if self._sparse:
            X = _canonical(X)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    def _weights(self, X: Any, sample_weight: ArrayLike | None) -> Array:
        if sample_weight is None:
            return np.ones(_num_samples(X))
        weights = check_sample_weight(sample_weight, X, dtype=np.float64)
        if not (weights > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        weights = np.maximum(weights, 0.0)
        with np.errstate(over="ignore"):
            if not np.isfinite(weights.sum()):
                raise ValueError(
                    f"sample_weight must have a finite sum, got weights up to {weights.max():g}"
                )
        return np.asarray(weights)

    def _matrix(self, X: Any) -> Any:
        """What the engine reads: the data, or the kernel matrix that a function makes of them."""
        # A function will be asked for its kernel with new samples.
        self._X_fit = X if callable(self.kernel) else None
        if callable(self.kernel):
            n = _num_samples(X)
            self._gamma = 0.0
            X = matrix_of(self.kernel, X, X)
            if X.shape != (n, n):
                raise ValueError(
                    f"kernel must give a matrix of shape {(n, n)} for {n} samples, got {X.shape}"
                )
            if not np.isfinite(X).all():
                raise ValueError("kernel gives a matrix with NaN or infinite entries")
            return symmetric(X, "the matrix that kernel gives")
        if self.kernel == "precomputed":
            self._gamma = 0.0
            return symmetric(X, "a precomputed kernel")
        self._gamma = gamma_of(self.gamma, X)
        require_finite(self._kernel(), X)
        return X

    def _kernel(self) -> Kernel:
        name: Any = "precomputed" if callable(self.kernel) else self.kernel
        return Kernel(name, self._gamma, self.degree, self.coef0)

    def _most_iterations(self, n: int) -> int:
        most = max(10_000_000, 100 * n) if self.max_iter == -1 else self.max_iter
        return min(most, LARGEST)

    def _cache_bytes(self) -> int:
        return int(min(self.cache_size, LARGEST / 2**20) * 2**20)

    def _device(self) -> Any:
        """The device to use, if not the processor: what a callable computes is the processor's."""
        wanted = self.device == "cuda" or (self.device == "auto" and given_on_device.get())
        if not wanted or callable(self.kernel):
            return None
        from ..gpu.device import Cuda

        return Cuda()

    def _threads(self, multiplications: float = math.inf) -> int:
        return threads.count(self.n_jobs, multiplications)

    def _continue(self, duals: list[Dual]) -> bool:
        """Start from the last fit, if there is one to start from."""
        earlier: list[Dual] = self.__dict__.pop("_last_duals", [])
        if not self.warm_start or len(earlier) != len(duals):
            return False
        for old, dual in zip(earlier, duals, strict=True):
            continue_from(old, dual)
        return True

    def _keep(self, X: Any, coefficients: Array, support: Indices) -> None:
        """Keep coefficients, and the rows of X that they belong to."""
        if not (np.isfinite(coefficients).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(NOT_FINITE)
        precomputed = self._kernel().name == "precomputed"
        vectors = np.empty((0, 0)) if precomputed else X[support]
        self.support_vectors_ = vectors
        self.dual_coef_ = type(vectors)(coefficients) if self._sparse else coefficients
        self.__dict__["_laid_out"] = LaidOut()  # a prediction leaves a machine as it is

    def _report(self, solutions: list[Solution]) -> list[Solution]:
        """Set `optimality_` and `fit_status_`; the solutions that the user should hear of."""
        shown = solutions[: len(self.intercept_)]  # without those of cross-validation
        self.optimality_ = Optimality(
            np.array([s.kkt_violation for s in shown]),
            np.array([s.duality_gap for s in shown]),
            np.array([str(s.status) for s in shown]),
        )
        # What has used up its iterations counts as ended by them, as in LIBSVM, even where the last
        # of them has led to the optimum.
        ended = [
            s for s in solutions if s.status != Status.OPTIMAL or 0 <= self.max_iter <= s.n_iter
        ]
        self.fit_status_ = int(bool(ended))
        # Who asks a fit to stop need not be told that it has.
        return [s for s in ended if s.status != Status.STOPPED]

    def _warning(self, failed: list[Solution]) -> str:
        worst = max(failed, key=lambda s: s.kkt_violation)
        advice = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
        if worst.status in (Status.MAX_ITER, Status.OPTIMAL):
            begin = f"Solver terminated early (max_iter={self.max_iter}).  {advice}"
        elif worst.status == Status.TIME_LIMIT:
            begin = f"Solver stopped by time_limit={self.time_limit:g}.  {advice}"
        else:
            begin = f"Solver makes no further progress.  {advice}"
        which = f" in {len(failed)} binary problems" if len(failed) > 1 else ""
        return (
            f"{begin} The KKT violation is {worst.kkt_violation:.2e}{which} (tol={self.tol:g}) "
            f"after {worst.n_iter} iterations: raise max_iter, time_limit or tol, or lower C."
        )

    def _decide(self, coefficients: Array, X: Any, starts: Indices | None = None) -> Array:
        """Sums of `coefficients` (a column each) times the kernel with the support vectors.

        Those of the groups of support vectors that begin at `starts` are apart.
        """
        kernel = self._kernel()
        precomputed = kernel.name == "precomputed"
        support = self._support_columns() if precomputed else self.support_vectors_
        work = float(entries_of(X)) * (coefficients.shape[1] if precomputed else len(coefficients))
        # Decisions are as exact as the fit that they come from; two classes may share one.
        allowed = self.tol / 2 if X.dtype == np.float32 else 0.0
        return decide(
            support, kernel, coefficients, X, allowed=allowed, starts=starts,
            threads=self._threads(work), laid_out=self._laid_out, device=self._device(),
        )  # fmt: skip

    @kept
    def _laid_out(self) -> LaidOut:
        return LaidOut()

    def _support_columns(self) -> Indices:
        """Where the support vectors are in a row of the kernel matrix of new samples."""
        if self.support_columns and not callable(self.kernel):
            return np.arange(len(self.support_))
        return np.asarray(self.support_, np.int64)

    def _single_decision(self, X: Any) -> Array:
        if self._known is not None and X is self._known[0]:
            return self._known[1]
        X = self._new_data(X)
        return self._combined(self._decide(self._dense_coefficients().T, X))

    def _combined(self, sums: Array) -> Array:
        """Decisions, from what each group of support vectors sums up to."""
        return np.asarray(sums.ravel() + self.intercept_)

    def _group_starts(self) -> Indices:
        """Where the support vectors of each group begin, and how many there are."""
        return np.array([0, len(self.support_)])

    def _dense_coefficients(self) -> Array:
        coefficients: Any = self.dual_coef_
        return np.asarray(coefficients.toarray() if self._sparse else coefficients)

    def _new_data(self, X: Any) -> Any:
        """X as `decide` takes it: like the support vectors, or its kernel with samples."""
        if self.support_vectors_.shape[0] not in (0, self.n_support_.sum()):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        if callable(self.kernel):
            X = matrix_of(self.kernel, X, self._X_fit)
            n = self.shape_fit_[0]
            if X.ndim != 2 or X.shape[1] != n:
                raise ValueError(
                    f"X.shape[1] = {X.shape[-1]} should be equal to {n}, the number of samples at "
                    "training time"
                )
            return X
        if self.kernel == "precomputed" and self.support_columns:
            X = check_array(X, **DATA_CHECKS)
            if X.shape[1] != len(self.support_):
                raise ValueError(
                    f"X has {X.shape[1]} columns, but with support_columns=True it must have those "
                    f"of the {len(self.support_)} support vectors, in the order of support_"
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
            X = _canonical(X if scipy.sparse.issparse(X) else type(self.support_vectors_)(X))
        return X if X.dtype == self.support_vectors_.dtype else X.astype(np.float64)

    @property
    def coef_(self) -> Any:
        """Weights of the features, of a linear kernel only; read-only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._primal()
        (coef.data if scipy.sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    @property
    def _sign(self) -> float:
        """Of `dual_coef_` and `intercept_`, against LIBSVM's own."""
        return 1.0

    @property
    def _dual_coef_(self) -> Any:
        return self._sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, coefficients: Any) -> None:
        self.dual_coef_ = self._sign * coefficients

    def to_sklearn(self) -> Any:
        """Give scikit-learn's own estimator, fitted as this machine is.

        For what knows only theirs: converters such as skl2onnx, explainers, files.

        Returns
        -------
        object
            An instance of the class of this name in `sklearn.svm`: with this machine's parameters,
            except those that theirs does not have, and with a copy of its fit.

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
        return safe_sparse_dot(self.dual_coef_, self.support_vectors_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


class SingleMachine(SupportVectorMachine):
    """A machine with one dual: regression and novelty detection."""

    def _targets(self, X: Any, y: Any) -> Targets:
        targets = np.asarray(y if is_plain(y) else column_or_1d(y, warn=True), np.float64)
        assert_all_finite(targets, input_name="y")
        return targets

    @abstractmethod
    def _dual(self, targets: Targets, weights: Array) -> Dual:
        """The dual to solve."""

    def _duals(self, targets: Targets, weights: Array) -> list[Dual]:
        return [self._dual(targets, weights)]

    def _conclude(self, targets: Targets, duals: list[Dual], solutions: list[Solution]) -> Array:
        (dual,), (solution,) = duals, solutions
        z: Array = np.zeros(len(targets))
        np.add.at(z, dual.rows, solution.z)  # two variables of a sample may be in the dual
        self.support_: Indices = np.flatnonzero(z).astype(np.int32)
        self._n_support = np.full(2, len(self.support_), np.int32)  # LIBSVM's two sides
        self.intercept_: Array = np.array([bias(solution)])
        self.n_iter_ = max(int(solution.n_iter), 1)
        return z[None, self.support_]

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors."""
        return self._n_support[:1]


def is_plain(y: Any) -> bool:
    """Whether y is an array of numbers or names: their being finite and apt is looked at later."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"


def needs_no_conversion(X: Any) -> bool:
    """Whether X is as the engine takes it, so that scikit-learn would find nothing to say of it."""
    if scipy.sparse.issparse(X):
        if X.format != "csr" or X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
            return False
        entries = X.data
    elif type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous:
        entries = X
    else:
        return False
    if entries.dtype not in DATA_CHECKS["dtype"] or 0 in X.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(entries.sum())


def entries_of(X: Any) -> int:
    """How many entries X stores."""
    return int(X.nnz if scipy.sparse.issparse(X) else X.size)


def _canonical(X: Any) -> Any:
    """X with each entry stored once, in order."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X
