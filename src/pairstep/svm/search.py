"""Searches over the parameters of an SVM by cross-validation: `SVCCV` and `SVRCV`.

They are to `SVC` and `SVR` what scikit-learn's LassoCV is to Lasso.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from .. import log
from ..extras import needed
from . import spread
from .arrays import from_anywhere
from .base import BaseSVM, KernelFunction
from .checkpoint import Checkpoint, search_id
from .classification import SVC
from .compatibility import (
    BaseSearchCV,
    CallbackSupportMixin,
    Interval,
    StrOptions,
    check_method_params,
    may_need_probabilities,
    parameter_defaults,
    routing_enabled,
    validate_parameter_constraints,
    warn_of_failures,
    with_callbacks,
)
from .cross_validation import Candidate, CrossValidation, Evaluation
from .documentation import documented
from .kernels import gamma_of
from .leave_one_out_validation import LeaveOneOutValidation
from .parameters import CONSTRAINTS
from .regression import SVR, QuantileSVR

# Parameters that the estimator has too, but that here only concern the search.
SEARCH_ONLY = {"time_limit"}

GRID: list[Any] = [Interval(Integral, 1, None, closed="left"), "array-like"]
SEARCH_CONSTRAINTS: dict[str, list[Any]] = {
    "Cs": GRID,
    "gammas": GRID,
    "epsilons": GRID,
    "quantile": [*CONSTRAINTS["quantile"], None],
    "cv": ["cv_object", StrOptions({"loo"})],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "refit": ["boolean", callable],
    "checkpoint": [str, os.PathLike, None],
}


class Search(BaseSearchCV, CallbackSupportMixin):  # type: ignore[misc]
    """A search over the parameters of one estimator, with the interface of GridSearchCV.

    Parameters that the search and the estimator have in common are passed on to the estimator.
    """

    Cs: int | ArrayLike
    gammas: int | ArrayLike
    kernel: str | KernelFunction
    cv: Any
    refit: bool
    random_state: Any
    time_limit: float | None
    checkpoint: str | os.PathLike[str] | None

    # Options of BaseSearchCV that are fixed here.
    error_score = math.nan
    return_train_score = False
    pre_dispatch = 1

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        known = CONSTRAINTS | SEARCH_CONSTRAINTS
        cls._parameter_constraints = {name: known[name] for name in parameter_defaults(cls)}  # type: ignore[arg-type]

    @property
    @abstractmethod
    def _model(self) -> type[BaseSVM]:
        """The class of the estimator."""

    @property
    def estimator(self) -> BaseSVM:
        """The estimator, without the parameters that are searched."""
        shared = parameter_defaults(self._model).keys() - SEARCH_ONLY
        given = self.get_params(deep=False).items()
        model = self._model(**{name: value for name, value in given if name in shared})
        return model.set_fit_request(sample_weight=True) if routing_enabled() else model

    def _scored(self, scorer: Any) -> BaseSVM:
        """Return the estimator that cross-validation fits and a scorer scores."""
        return self.estimator

    def _grid(self, X: Any, y: Any) -> dict[str, list[Any]]:
        """Return the values of each parameter to try."""
        grid = {"C": _values("Cs", "C", self.Cs, 1e-2, 1e3)}
        if self.kernel in ("rbf", "poly", "sigmoid"):
            scale = gamma_of("scale", X)
            grid["gamma"] = _values("gammas", "gamma", self.gammas, 1e-2 * scale, 1e2 * scale)
        return grid

    @from_anywhere
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Score all candidates by cross-validation, and fit the best one to all samples.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples, as in the estimator.
        y : array_like of shape (n_samples,)
            Class labels, or numbers in regression.
        **params : dict
            `sample_weight` for the estimator and the scorer, `groups` for the splitter, and
            parameters of scikit-learn's metadata routing, as in GridSearchCV.

        Returns
        -------
        object
            The fitted search itself.
        """
        self._validate_params()
        scorer, _ = self._get_scorers()
        X, y = indexable(X, y)
        params = check_method_params(X, params)
        routed = self._get_routed_params_for_fit(params)
        model = self.estimator
        routed_to = scorer, routed.estimator.fit, routed.scorer.score
        validation: Any
        if isinstance(self.cv, str):  # "loo"
            validation = LeaveOneOutValidation(self._scored(scorer), X, y, *routed_to)
        else:
            splits = self._splits(X, y, **routed.splitter.split)
            validation = CrossValidation(self._scored(scorer), X, y, splits, *routed_to)
        n_splits = len(validation.splits)
        candidates = list(ParameterGrid(self._grid(validation.X, y)))
        checkpoint = None
        if self.checkpoint is not None:
            about = search_id(validation, y, params, model, self.scoring)
            checkpoint = Checkpoint(self.checkpoint, about)

        context = self._init_callback_context(
            max_subtasks=len(candidates) * n_splits + bool(self.refit)
        )
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        results = self._searched(validation, candidates, checkpoint, context)

        self.scorer_, self.n_splits_, self.multimetric_ = scorer, n_splits, False
        self.best_index_ = int(self._select_best_index(self.refit, "score", results))
        self.best_params_ = results["params"][self.best_index_]
        if not callable(self.refit):
            self.best_score_ = results["mean_test_score"][self.best_index_]
        self.cv_results_ = results
        if self.refit:
            task = context.subcontext(task_name="refit-with-best-params")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            began = time.perf_counter()
            best = model.set_params(**self.best_params_)
            self.best_estimator_ = best.fit(X, y, **routed.estimator.fit)
            self.refit_time_ = time.perf_counter() - began
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
            task.call_on_fit_task_end(estimator=self, X=X, y=y)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def plot(self) -> Any:
        """Plot the mean scores: a line over C, or a map over C and gamma.

        If several epsilon were tried, the best score is shown.

        Returns
        -------
        matplotlib.axes.Axes
            The plot. matplotlib is in the extra ``pairstep[plots]``.
        """
        check_is_fitted(self)
        pyplot = needed("matplotlib.pyplot", by="plot")
        score, shown = self.cv_results_["mean_test_score"], self.cv_results_["params"]
        best: dict[tuple[Any, Any], float] = {}
        for candidate, value in zip(shown, score, strict=True):
            at = candidate["C"], candidate.get("gamma")
            best[at] = np.fmax(best.get(at, math.nan), value)
        Cs, gammas = (list(dict.fromkeys(at[axis] for at in best)) for axis in (0, 1))
        axes = pyplot.figure(layout="constrained").subplots()
        if gammas == [None]:
            axes.semilogx(Cs, [best[C, None] for C in Cs], marker="o")
            axes.set(xlabel="C", ylabel="mean score")
            return axes
        image = axes.imshow([[best[C, gamma] for gamma in gammas] for C in Cs], origin="lower")
        axes.set_xticks(range(len(gammas)), list(map(_written, gammas)), rotation=45)
        axes.set_yticks(range(len(Cs)), list(map(_written, Cs)))
        at = gammas.index(self.best_params_["gamma"]), Cs.index(self.best_params_["C"])
        axes.plot(*at, marker="*", color="black", markersize=12)
        axes.set(xlabel="gamma", ylabel="C")
        axes.figure.colorbar(image, ax=axes, label="mean score")
        return axes

    @property
    def n_iter_(self) -> Any:
        """Number of iterations of the best estimator."""
        return self.best_estimator_.n_iter_

    def _splits(self, X: Any, y: Any, **params: Any) -> Iterator[tuple[Any, Any]]:
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        if self.random_state is not None and (self.cv is None or isinstance(self.cv, Integral)):
            kind, folds = type(splitter), splitter.n_splits
            splitter = kind(folds, shuffle=True, random_state=self.random_state)
        yield from splitter.split(X, y, **params)

    def _searched(
        self,
        validation: CrossValidation,
        candidates: list[Candidate],
        checkpoint: Checkpoint | None,
        context: Any,
    ) -> dict[str, Any]:
        """Evaluate candidates that are not in the checkpoint; return `cv_results_`."""
        began = time.perf_counter()
        seconds = math.inf if self.time_limit is None else self.time_limit
        names = [tuple(sorted(candidate.items())) for candidate in candidates]
        everything = {(k, s) for k in range(len(names)) for s in range(len(validation.splits))}
        known = {} if checkpoint is None else checkpoint.scores
        found = {
            (k, split): Evaluation(k, split, known[names[k], split], 0.0, 0.0)
            for k, split in everything
            if (names[k], split) in known
        }
        may_stop = (
            self.time_limit is not None or checkpoint is not None or hasattr(self, "_skl_callbacks")
        )
        stopped = False
        wanted = everything - found.keys()
        for evaluation in spread.evaluate(validation, candidates, wanted, seconds, may_stop):
            k, split = evaluation.candidate, evaluation.split
            task = context.subcontext(task_name="candidate-split-evaluation")
            task.call_on_fit_task_begin(estimator=self)
            found[k, split] = evaluation
            if checkpoint is not None and evaluation.error is None:
                checkpoint.add(names[k], split, evaluation.score)
            self._log(evaluation, names[k], len(found), len(everything), began)
            if task.call_on_fit_task_end(estimator=self):
                stopped = True
                break
        return self._results(candidates, found, len(validation.splits), stopped)

    def _log(
        self,
        evaluation: Evaluation,
        name: tuple[tuple[str, Any], ...],
        count: int,
        total: int,
        began: float,
    ) -> None:
        if log.is_enabled(bool(self.verbose)):
            shown = ", ".join(f"{parameter}={_written(value)}" for parameter, value in name)
            log.write(
                f"{count} of {total} scored: {shown}, split {evaluation.split}: "
                f"{evaluation.score:.4f}, {time.perf_counter() - began:.2g} s",
                bool(self.verbose),
            )

    def _results(
        self,
        candidates: list[Candidate],
        found: dict[tuple[int, int], Evaluation],
        n_splits: int,
        stopped: bool,
    ) -> dict[str, Any]:
        """Return `cv_results_`, and warn of candidates that failed or were left out."""
        left_out = Evaluation(-1, -1, math.nan, math.nan, math.nan)
        evaluations = [
            found.get((k, split), left_out)
            for k in range(len(candidates))
            for split in range(n_splits)
        ]
        done = [evaluation for evaluation in evaluations if evaluation is not left_out]
        warn_of_failures([{"fit_error": evaluation.error} for evaluation in done], self.error_score)
        if failed := [solution for evaluation in done for solution in evaluation.failed]:
            worst = max(solution.kkt_violation for solution in failed)
            warnings.warn(
                f"{len(failed)} of the binary problems of the search were not solved to "
                f"tol={self.tol:g}: the largest KKT violation is {worst:.2e}. Raise max_iter or "
                "tol, or search among smaller C.",
                ConvergenceWarning,
                stacklevel=6,
            )
        missing = [
            candidate
            for k, candidate in enumerate(candidates)
            if left_out in evaluations[k * n_splits : (k + 1) * n_splits]
        ]
        if missing and not stopped:
            some = ", ".join(map(str, missing[:3]))
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            warnings.warn(
                f"Search stopped by time_limit={self.time_limit:g}: {len(missing)} of "
                f"{len(candidates)} candidates were left out, namely {some}{more}.",
                ConvergenceWarning,
                stacklevel=6,
            )
        out = [
            {
                "test_scores": evaluation.score,
                "fit_time": evaluation.fit_time,
                "score_time": evaluation.score_time,
            }
            for evaluation in evaluations
        ]
        with warnings.catch_warnings():
            if missing:
                warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
            return dict(self._format_results(candidates, n_splits, out))


@documented
class SVCCV(Search):
    """Search over C and gamma of an `SVC` by cross-validation.

    The scores are those of scikit-learn's GridSearchCV over an `SVC` with the same splits, but the
    fits share work. The kernel matrix of all samples is computed once for each gamma, from
    distances that are computed once. All splits, pairs of classes and C use this matrix, and so do
    the decisions on test samples. Each C starts from the solution of the last C on the same split.
    The matrices take up to three quarters of `cache_size`. If only one fits, each is computed from
    the samples. If none fits, each fit computes the kernel rows that it needs. `n_jobs` fits run in
    parallel, and the scores do not depend on their number. A scorer that is a plain function,
    without `make_scorer`, computes its decisions again.

    Parameters
    ----------
    Cs : int or array_like, default=10
        The values of C to try. An int is the number of values, evenly spaced on a logarithmic scale
        from 0.01 to 1000.
    gammas : int or array_like, default=10
        The values of gamma to try, which may include "scale" and "auto"; these are computed from
        the training samples of each split. An int is the number of values, evenly spaced on a
        logarithmic scale from 0.01 to 100 times the value of "scale" on all samples. Ignored by
        kernels without gamma.
    <search parameters>
    probability : bool, default=False
        Whether `predict_proba` and `predict_log_proba` are available, as in `SVC`. Their folds are
        drawn by `random_state`. Candidates are calibrated only if the scorer needs probabilities,
        as "neg_log_loss" does; otherwise only the last fit is. Deprecated as in `SVC`: use
        ``CalibratedClassifierCV(search.best_estimator_, ensemble=False)`` instead.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        As in `SVC`, and so are `degree`, `coef0`, `tol`, `class_weight`, `max_iter`,
        `decision_function_shape` and `break_ties`.
    <shared parameters>

    Attributes
    ----------
    <search attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep.svm import SVCCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = (X**2).sum(axis=1) > 0.6
    >>> search = SVCCV(Cs=[0.1, 1.0, 10.0, 100.0], gammas=[0.1, 1.0, 10.0]).fit(X, y)
    >>> search.best_params_
    {'C': 100.0, 'gamma': 10.0}
    >>> search.predict([[0.0, 0.0], [1.0, 1.0]])
    array([False,  True])
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        probability: bool | str = "deprecated",
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        time_limit: float | None = None,
        dtype: DTypeLike = np.float32,
        device: str = "cpu",
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.probability = probability
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.time_limit = time_limit
        self.dtype = dtype
        self.device = device
        self.checkpoint = checkpoint

    @property
    def _model(self) -> type[BaseSVM]:
        return SVC

    def _scored(self, scorer: Any) -> BaseSVM:
        # Probabilities do not change decisions, and take five more fits.
        if may_need_probabilities(scorer):
            return self.estimator
        without: BaseSVM = self.estimator.set_params(probability="deprecated")
        return without


@documented
class SVRCV(Search):
    """Search over C, gamma and epsilon of an `SVR` by cross-validation.

    It works like `SVCCV`. Candidates that differ in epsilon share the kernel matrix as well. With
    `quantile` it searches over C and gamma of a `QuantileSVR`.

    Parameters
    ----------
    Cs : int or array_like, default=10
        The values of C to try. An int is the number of values, evenly spaced on a logarithmic scale
        from 0.01 to 1000.
    gammas : int or array_like, default=10
        The values of gamma to try, which may include "scale" and "auto"; see `SVCCV`.
    epsilons : int or array_like, default=(0.1,)
        The values of epsilon to try. An int is the number of values, evenly spaced on a logarithmic
        scale from 0.001 to 1 times the standard deviation of y. A quantile has no epsilon.
    quantile : float or array_like, default=None
        If given, the estimator is a `QuantileSVR` for this quantile or these quantiles. The default
        score is then D2 of the pinball loss; see `QuantileSVR.score`.
    <search parameters>
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        As in `SVR`, and so are `degree`, `coef0`, `tol` and `max_iter`.
    <shared parameters>

    Attributes
    ----------
    <search attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from pairstep.svm import SVRCV
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> search = SVRCV(Cs=[0.01, 1.0], gammas=[0.01, 1.0], random_state=0)
    >>> search.fit(X, np.sin(X).ravel()).best_params_
    {'C': 1.0, 'epsilon': 0.1, 'gamma': 1.0}
    """

    quantile: float | ArrayLike | None

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        epsilons: int | ArrayLike = (0.1,),
        quantile: float | ArrayLike | None = None,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
        time_limit: float | None = None,
        dtype: DTypeLike = np.float32,
        device: str = "cpu",
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.quantile = quantile
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.time_limit = time_limit
        self.dtype = dtype
        self.device = device
        self.checkpoint = checkpoint

    @property
    def _model(self) -> type[BaseSVM]:
        return SVR if self.quantile is None else QuantileSVR

    def _grid(self, X: Any, y: Any) -> dict[str, list[Any]]:
        if self.quantile is not None:
            if not np.array_equal(self.epsilons, parameter_defaults(SVRCV)["epsilons"]):
                raise ValueError(
                    "epsilons and quantile exclude each other: the loss of a quantile has no "
                    f"epsilon; got epsilons={self.epsilons!r} and quantile={self.quantile!r}"
                )
            return super()._grid(X, y)
        spread = float(np.std(y)) or 1.0
        epsilons = _values("epsilons", "epsilon", self.epsilons, 1e-3 * spread, spread)
        return super()._grid(X, y) | {"epsilon": epsilons}


def _written(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, Real) else str(value)


def _values(
    name: str, parameter: str, given: int | ArrayLike, low: float, high: float
) -> list[Any]:
    """Return the values of a parameter: `given`, or that many from low to high if it is an int."""
    if isinstance(given, Integral):
        middle = math.sqrt(low * high)
        return [middle] if given == 1 else np.geomspace(low, high, int(given)).tolist()
    values = list(given)  # type: ignore[arg-type]
    if not values:
        raise ValueError(f"{name} must have at least one value, or be the number of values to try")
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    for k, value in enumerate(values):
        try:
            validate_parameter_constraints(
                {parameter: CONSTRAINTS[parameter]}, {parameter: value}, caller_name="each model"
            )
        except ValueError as error:
            raise ValueError(f"{name}[{k}] = {value!r} cannot be tried: {error}") from None
    return values
