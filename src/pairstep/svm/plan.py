"""The stages of a fit: data -> targets -> duals -> solutions -> coefficients.

An estimator runs the stages once. Cross-validation and the regularization path run the first ones
once and the last ones for every candidate or every value of C. Estimators on a dask cluster replace
two stages: how data are checked, and how duals are solved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import validate_data

from .. import threads
from .._validation import Array
from ..constraints import Indices
from ..memory import automatic_cache_bytes
from ..result import Status
from .arrays import chosen_device
from .compatibility import check_sample_weight, num_samples, take_rows
from .data import DATA_CHECKS, canonical, entries_of, is_plain, needs_no_conversion
from .duals import continue_from, limits
from .engine import Duals, Kernel, LaidOut, Solution, Solutions, solve
from .kernels import NOT_FINITE, gamma_of, matrix_of, named_kernel, require_finite, symmetric

Targets = NDArray[Any]  # numbers, or classes as 0, 1, ...
Instance = TypeVar("Instance")

# Work estimates, in multiplications, from which the number of threads follows. If they were larger,
# smaller fits would use several threads, which only pays off above some amount of work.
# The solver's steps for one variable. They count for the variables beyond the number of samples,
# whose duals are solved in parallel with the others.
MULTIPLICATIONS_PER_VARIABLE = 2**13
# A kernel value, in addition to its inner product.
MULTIPLICATIONS_PER_PAIR = 16.0
# Iterations that `max_iter=-1` stands for: at least this many, and this many per sample, as in
# LIBSVM.
MIN_DEFAULT_ITERATIONS = 10_000_000
DEFAULT_ITERATIONS_PER_SAMPLE = 100
# Largest number of iterations and of bytes that is passed to native code, which counts with signed
# 64-bit integers. It is half of their range, so that adding to it does not overflow.
MAX_NATIVE_COUNT = 2**62


@dataclass(frozen=True)
class Optimality:
    """How close each binary problem is to its optimum, recomputed before it is reported.

    Attributes
    ----------
    kkt_violation : ndarray
        What `tol` bounds: the largest violation of the optimality conditions by a pair of
        variables, in float64 from the data.
    duality_gap : ndarray
        An upper bound on the distance of the dual objective to its optimum, up to rounding. The
        gradients of samples away from the margin have the rounding of the kernel rows (`dtype`).
    status : ndarray of str
        Why the solver stopped; see `pairstep.Status`.
    """

    kkt_violation: Array
    duality_gap: Array
    status: NDArray[np.str_]


def shallow_copy(model: Instance) -> Instance:
    """Return a copy of an estimator that has the same attributes."""
    other = object.__new__(type(model))
    other.__dict__.update(model.__dict__)
    return other


class FitPlan(ABC):
    """The stages of one fit of an estimator.

    The stages are methods, in this order: `read`, `duals`, `prepare_kernel`, `solve`, `conclude`,
    `report`, `fitted`. They work on a copy of the estimator, so that a fit that fails or is
    interrupted leaves the estimator unchanged.

    Attributes
    ----------
    model : estimator
        The copy: its parameters say what is solved, and how.
    state : dict
        The fitted attributes that have been found so far.
    X, y : object
        The training data after the checks.
    rows : ndarray or None
        The rows of X that the fit uses; None if it uses all.
    n : int
        The number of these rows.
    targets : ndarray
        What the duals need from y.
    weights : ndarray of shape (n,)
        Factors of C.
    matrix : object
        What the solver reads: X, or a kernel matrix.
    gamma : float
        The number that the parameter `gamma` stands for.
    support : ndarray
        The support vectors, as indices into the rows of the fit.
    coefficients : ndarray
        Their coefficients, as in `dual_coef_`.
    intercept : ndarray
        The constants of the decision functions.
    """

    X: Any
    y: Any
    n: int
    targets: Targets
    weights: Array
    matrix: Any
    gamma: float
    support: Indices
    coefficients: Array
    intercept: Array

    def __init__(self, estimator: Any):
        self.model = shallow_copy(estimator)
        self.state: dict[str, Any] = {}
        self.rows: Indices | None = None

    @staticmethod
    def of(estimator: Any) -> FitPlan:
        """Return the plan of a fit of an estimator."""
        plan: FitPlan = type(estimator).plan_type(estimator)
        return plan

    # Data, targets and weights.

    def read(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Check the training data, and keep them."""
        self.X, self.y = self.check_data(X, y)
        self.n = num_samples(self.X)
        self.targets = self.check_targets(self.y)
        self.state["shape_fit_"] = self.X.shape if hasattr(self.X, "shape") else (self.n,)
        self.weights = self.check_weights(sample_weight)

    def check_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X in a format that the solver reads, and y of the same length."""
        model = self.model
        if scipy.sparse.issparse(X) and model.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        sparse = scipy.sparse.issparse(X) and not callable(model.kernel)
        self.state["_sparse"] = sparse
        supervised = get_tags(model).target_tags.required
        if callable(model.kernel):
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                model.__dict__.pop(name, None)
            if supervised:
                check_consistent_length(X, y)
            return X, y
        if needs_no_conversion(X) and (not supervised or (is_plain(y) and y.shape == X.shape[:1])):
            model.n_features_in_ = X.shape[1]
            model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        elif supervised:
            X, y = validate_data(model, X, y, **DATA_CHECKS)
        else:
            X = validate_data(model, X, **DATA_CHECKS)
        if sparse:
            X = canonical(X)
        if model.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    @abstractmethod
    def check_targets(self, y: Any) -> Targets:
        """Check y, and return what the duals need from it."""

    def check_weights(self, sample_weight: ArrayLike | None) -> Array:
        """Return the weights of the samples; negative ones become 0."""
        if sample_weight is None:
            return np.ones(self.n)
        weights = check_sample_weight(sample_weight, self.X, dtype=np.float64)
        if not (weights > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        weights = np.maximum(weights, 0.0)
        with np.errstate(over="ignore"):
            if not np.isfinite(weights.sum()):
                raise ValueError(
                    f"sample_weight must have a finite sum, got weights up to {weights.max():g}"
                )
        return np.asarray(weights)

    # Other fits with the same data.

    def on_rows(self, rows: Indices) -> Self:
        """Return the plan of a fit to some rows of the data. It keeps the whole of X.

        Raises
        ------
        ValueError
            If no fit to these rows is possible, for example because all belong to one class.
        """
        part = self._copy()
        part.rows, part.n = rows, len(rows)
        part.state["shape_fit_"] = (part.n, *np.shape(self.X)[1:])
        if self.model.kernel == "precomputed":
            part.state["shape_fit_"], part.model.n_features_in_ = (part.n, part.n), part.n
        if callable(self.model.kernel):
            part.state["_X_fit"] = take_rows(self.X, rows)
        part.weights = self.weights[rows]
        part.targets = part.check_targets(take_rows(self.y, rows))
        return part

    def with_parameters(self, parameters: dict[str, Any], gamma: float) -> Self:
        """Return the plan of a fit with other parameters; gamma is given as a number."""
        other = self._copy()
        other.model.__dict__.update(parameters)
        other.gamma = gamma
        return other

    def _copy(self) -> Self:
        other = copy(self)
        other.model, other.state = shallow_copy(self.model), dict(self.state)
        return other

    # Duals.

    @abstractmethod
    def duals(self) -> Duals:
        """Return the duals to solve."""

    def limits(self) -> Array:
        """Return the largest |z| of each sample."""
        return limits(self.model.C, self.weights)

    def continue_last_fit(self, duals: Duals) -> bool:
        """Start the duals from those of the last fit, and return whether there were any."""
        earlier: Duals | None = self.model.__dict__.pop("_last_duals", None)
        if earlier is None or not self.model.warm_start or len(earlier) != len(duals):
            return False
        for old, dual in zip(earlier, duals, strict=True):
            continue_from(old, dual)
        return True

    # Kernel.

    def prepare_kernel(self) -> None:
        """Set `gamma` and `matrix`.

        `matrix` is the kernel matrix if the kernel is precomputed or a function, and otherwise X.
        """
        kernel, X = self.model.kernel, self.X
        self.gamma = 0.0
        # Predictions pass the training samples to a kernel that is a function.
        self.state["_X_fit"] = X if callable(kernel) else None
        if callable(kernel):
            K = matrix_of(kernel, X, X)
            if K.shape != (self.n, self.n):
                raise ValueError(
                    f"kernel must return a matrix of shape {(self.n, self.n)} for {self.n} "
                    f"samples, got {K.shape}"
                )
            if not np.isfinite(K).all():
                raise ValueError("kernel returns a matrix with NaN or infinite entries")
            self.matrix = symmetric(K, "the matrix that kernel returns")
        elif kernel == "precomputed":
            self.matrix = symmetric(X, "a precomputed kernel")
        else:
            self.gamma = gamma_of(self.model.gamma, X)
            require_finite(self.kernel, X)
            self.matrix = X

    @property
    def kernel(self) -> Kernel:
        """The kernel that the solver evaluates."""
        return self.kernel_with(self.gamma)

    def kernel_with(self, gamma: float) -> Kernel:
        """Return the kernel of the model for some gamma."""
        model = self.model
        return named_kernel(model.kernel, gamma, model.degree, model.coef0)

    # Solutions.

    def solve(
        self, duals: Duals, *, cold: bool, keep_going: Callable[..., bool] | None
    ) -> Solutions:
        """Solve the duals as the parameters of the model say."""
        model = self.model
        in_parallel = len(duals.rows) - self.n
        work = self.matrix_work() + MULTIPLICATIONS_PER_VARIABLE * in_parallel
        return self.run_solver(
            duals, tol=model.tol, max_iter=self.max_iterations(), time_limit=self.time_limit(),
            cache_bytes=self.cache_bytes(), threads=self.threads(work), dtype=model.dtype,
            cold=cold, keep_going=keep_going,
            device=chosen_device(model.device, model.kernel),
        )  # fmt: skip

    def run_solver(self, duals: Duals, **options: Any) -> Solutions:
        """Solve the duals on this computer."""
        return solve(self.matrix, self.kernel, duals, **options)

    def matrix_work(self) -> float:
        """Return about how many multiplications the kernel matrix takes."""
        return self.n * (entries_of(self.matrix) + MULTIPLICATIONS_PER_PAIR * self.n)

    def threads(self, work: float) -> int:
        """Return how many threads to use for this many multiplications."""
        return threads.count(self.model.n_jobs, work)

    def max_iterations(self) -> int:
        """Return the limit of iterations that `max_iter` stands for."""
        limit = self.model.max_iter
        if limit == -1:
            limit = max(MIN_DEFAULT_ITERATIONS, DEFAULT_ITERATIONS_PER_SAMPLE * self.n)
        return int(min(limit, MAX_NATIVE_COUNT))

    def time_limit(self) -> float:
        """Return the time limit in seconds, infinite if there is none."""
        return math.inf if self.model.time_limit is None else float(self.model.time_limit)

    def cache_bytes(self) -> int:
        """Return the memory for kernel rows, in bytes."""
        size = self.model.cache_size
        if size == "auto":
            return automatic_cache_bytes()
        return int(min(size, MAX_NATIVE_COUNT / 2**20) * 2**20)

    # Coefficients.

    @abstractmethod
    def conclude(self, duals: Duals, solutions: Solutions) -> None:
        """Set `support`, `coefficients`, `intercept` and the fitted attributes of the model."""

    @property
    def has_probabilities(self) -> bool:
        """Whether the fit calibrates probabilities, with duals of its own."""
        return bool(self.state.get("_effective_probability"))

    @property
    def sign(self) -> float:
        """The sign of coefficients and intercepts relative to the variables of the duals."""
        return 1.0

    def scale(self, solution: Solution | Solutions) -> Array:
        """Return the number by which coefficients and intercept of a solution are divided.

        Of many solutions, return one number for each.
        """
        return np.ones(np.shape(solution.kkt_violation))

    def decisions(self, biases: Array, sums: Array) -> Array:
        """Return the decisions on some samples, and set `intercept`.

        `biases` has the intercept of each dual, and `sums` the sums of its variables times their
        kernels with each sample. There is a column per dual if there are several.
        """
        self.intercept = self.sign * biases
        found = self.intercept + self.sign * sums.T
        if not np.isfinite(found).all():
            raise ValueError(NOT_FINITE)
        return found.ravel() if found.shape[1] == 1 else found

    def report(self, solutions: Solutions) -> list[Solution]:
        """Set `optimality_` and `fit_status_`; return the solutions that deserve a warning."""
        shown = len(self.intercept)  # without those of cross-validation
        self.state["optimality_"] = Optimality(
            solutions.kkt_violation[:shown].copy(),
            solutions.duality_gap[:shown].copy(),
            np.array(solutions.status[:shown], np.str_),
        )
        # As in LIBSVM, a solve that has used all its iterations counts as unfinished, even if the
        # last of them has reached the optimum.
        max_iter = self.model.max_iter
        unfinished = solutions.unfinished(MAX_NATIVE_COUNT if max_iter == -1 else max_iter)
        self.state["fit_status_"] = int(bool(unfinished))
        # No warning for a fit that a callback has stopped: that was intended.
        return [s for s in unfinished if s.status != Status.STOPPED]

    def warning(self, failed: list[Solution]) -> str:
        """Return the text of the warning about solutions that are not optimal."""
        model = self.model
        worst = max(failed, key=lambda s: s.kkt_violation)
        which = f" in {len(failed)} binary problems" if len(failed) > 1 else ""
        advice = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
        if worst.status in (Status.MAX_ITER, Status.OPTIMAL):
            begin = f"Solver terminated early (max_iter={model.max_iter}).  {advice}"
        elif worst.status == Status.TIME_LIMIT:
            begin = f"Solver stopped by time_limit={model.time_limit:g}.  {advice}"
        elif worst.status == Status.IMPRECISE:
            return (
                "Solver cannot reach tol in float64.  Consider pre-processing your data with "
                "StandardScaler or MinMaxScaler, or lower C. The KKT violation is "
                f"{worst.kkt_violation:.2e}{which} (tol={model.tol:g}) after {worst.n_iter} "
                f"iterations, and the rounding error of the gradient is about {worst.error:.1e}."
            )
        else:
            begin = f"Solver makes no further progress.  {advice}"
        return (
            f"{begin} The KKT violation is {worst.kkt_violation:.2e}{which} (tol={model.tol:g}) "
            f"after {worst.n_iter} iterations: raise max_iter, time_limit or tol, or lower C."
        )

    def fitted(self) -> Any:
        """Return the copy of the estimator with all that the fit has found."""
        if not (np.isfinite(self.coefficients).all() and np.isfinite(self.intercept).all()):
            raise ValueError(NOT_FINITE)
        precomputed = self.kernel.name == "precomputed"
        support = self.support if self.rows is None else self.rows[self.support]
        vectors = np.empty((0, 0)) if precomputed else self.X[support]
        coefficients = self.coefficients
        self.model.__dict__.update(
            self.state,
            support_=self.support,
            intercept_=self.intercept,
            support_vectors_=vectors,
            dual_coef_=type(vectors)(coefficients) if self.state["_sparse"] else coefficients,
            _gamma=self.gamma,
            _laid_out=LaidOut(),  # here, because a prediction must not add attributes
        )
        return self.model
