"""Searches for good parameters of a machine, in the spirit of LassoCV: `SVCCV` and `SVRCV`."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, MutableMapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._search_successive_halving import BaseSuccessiveHalving
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .. import log
from ..extras import needed
from . import halving, spread
from .base import CONSTRAINTS, KernelFunction, SupportVectorMachine
from .classification import SVC
from .compatibility import CallbackSupportMixin, with_callbacks
from .cross_validation import Candidate, CrossValidation, Evaluation
from .documentation import documented
from .kernels import gamma_of
from .regression import SVR

# What a search remembers of what it has found: (candidate, split) -> score. A candidate is written
# as its parameters, pairs of name and value in the order of the names.
Journal = MutableMapping[tuple[tuple[tuple[str, Any], ...], int], float]

OWN = {"random_state", "time_limit"}  # of the search: the machine's mean something else

GRID: list[Any] = [Interval(Integral, 1, None, closed="left"), "array-like"]
SEARCH_CONSTRAINTS: dict[str, list[Any]] = {
    "Cs": GRID,
    "gammas": GRID,
    "epsilons": GRID,
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "refit": ["boolean", callable],
    "halving": ["boolean"],
    "journal": [MutableMapping, None],
}


class Round(NamedTuple):
    """What was scored on so many samples: by candidate, counted from 0, and split."""

    candidates: list[Candidate]
    samples: int
    found: dict[tuple[int, int], Evaluation]


class Search(BaseSearchCV, CallbackSupportMixin):  # type: ignore[misc]
    """A search over the parameters of one kind of machine; scikit-learn's BaseSearchCV around it.

    A parameter of the search with the name of one of the machine is given to all of its machines.
    """

    _machine: ClassVar[type[SupportVectorMachine]]

    Cs: int | ArrayLike
    gammas: int | ArrayLike
    kernel: str | KernelFunction
    cv: Any
    refit: bool
    halving: bool
    random_state: Any
    time_limit: float | None
    journal: Journal | None

    # What BaseSearchCV would let the user choose.
    error_score = math.nan
    return_train_score = False
    pre_dispatch = 1

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        known = CONSTRAINTS | SEARCH_CONSTRAINTS
        cls._parameter_constraints = {name: known[name] for name in cls._get_param_names()}

    @property
    def estimator(self) -> SupportVectorMachine:
        """The machine that is searched for, without what is searched for."""
        shared = set(self._machine._get_param_names()) - OWN
        given = self.get_params(deep=False).items()
        machine = self._machine(**{name: value for name, value in given if name in shared})
        return machine.set_fit_request(sample_weight=True) if _routing_enabled() else machine

    def _grid(self, X: Any, y: Any) -> dict[str, list[Any]]:
        """What is searched: the values of each parameter."""
        grid = {"C": _values("Cs", self.Cs, 1e-2, 1e3)}
        if self.kernel in ("rbf", "poly", "sigmoid"):
            scale = gamma_of("scale", X)
            grid["gamma"] = _values("gammas", self.gammas, 1e-2 * scale, 1e2 * scale)
        return grid

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Score all candidates by cross-validation, and fit the best one to all samples.

        Parameters
        ----------
        X : array_like or sparse array of shape (n_samples, n_features)
            Training samples, as the machine takes them.
        y : array_like of shape (n_samples,)
            Class labels or, in regression, numbers.
        **params : dict
            `sample_weight` for the machines and the scorer, `groups` for the splitter, and what
            scikit-learn's metadata routing brings, all as in its GridSearchCV.

        Returns
        -------
        object
            The search itself.
        """
        self._validate_params()
        scorer, _ = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params)
        routed = self._get_routed_params_for_fit(params)
        machine = self.estimator
        splits = self._splits(X, y, **routed.splitter.split)
        validation = CrossValidation(
            machine, X, y, splits, scorer, routed.estimator.fit, routed.scorer.score
        )
        n_splits = len(validation.splits)
        candidates = list(ParameterGrid(self._grid(validation.X, y)))
        plan = halving.plan(len(candidates), len(validation.order), self.halving)

        context = self._init_callback_context(
            max_subtasks=sum(some for some, _ in plan) * n_splits + bool(self.refit)
        )
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        results = self._searched(validation, candidates, plan, context)

        self.scorer_, self.n_splits_, self.multimetric_ = scorer, n_splits, False
        select = BaseSuccessiveHalving if self.halving else self
        self.best_index_ = int(select._select_best_index(self.refit, "score", results))
        self.best_params_ = results["params"][self.best_index_]
        if not callable(self.refit):
            self.best_score_ = results["mean_test_score"][self.best_index_]
        self.cv_results_ = results
        if self.refit:
            task = context.subcontext(task_name="refit-with-best-params")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            began = time.perf_counter()
            self.best_estimator_ = machine.set_params(**self.best_params_)
            self.best_estimator_.fit(X, y, **routed.estimator.fit)
            self.refit_time_ = time.perf_counter() - began
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
            task.call_on_fit_task_end(estimator=self, X=X, y=y)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def plot(self) -> Any:
        """Draw the mean scores of all C and gamma: a line of C, or a map of both.

        Of several epsilon the best one counts.

        Returns
        -------
        matplotlib.axes.Axes
            matplotlib is in the extra ``pairstep[plots]``.
        """
        check_is_fitted(self)
        pyplot = needed("matplotlib.pyplot", by="plot")
        score, shown = self.cv_results_["mean_test_score"], self.cv_results_["params"]
        best: dict[tuple[Any, Any], float] = {}
        # Of several rounds the last one that a candidate was in.
        latest = {tuple(some.items()): value for some, value in zip(shown, score, strict=True)}
        for items, value in latest.items():
            candidate = dict(items)
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
        """Iterations of the best machine."""
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
        plan: list[tuple[int, int]],
        context: Any,
    ) -> dict[str, Any]:
        """Evaluate what the journal does not know; everything as GridSearchCV has it."""
        splits = range(len(validation.splits))
        journal: Journal = {} if self.journal is None else self.journal
        began = time.perf_counter()
        ends = math.inf if self.time_limit is None else began + self.time_limit
        total = sum(some for some, _ in plan) * len(splits)
        order = halving.drawn(validation.given[2], is_classifier(self), self.random_state or 0)
        rounds: list[Round] = []
        for to_come, (_, samples) in zip(reversed(range(len(plan))), plan, strict=True):
            part = validation.on_some(np.sort(order[:samples])) if to_come else validation
            before = sum(len(earlier.found) for earlier in rounds)
            names = [tuple(sorted(candidate.items())) for candidate in candidates]
            # The journal numbers the splits of all rounds, backwards: a search without halving
            # knows what the last round of one with it has found.
            keys = {
                (k, split): (name, to_come * len(splits) + split)
                for k, name in enumerate(names)
                for split in splits
            }
            found = {
                (k, split): Evaluation(k, split, journal[key], 0.0, 0.0)
                for (k, split), key in keys.items()
                if key in journal
            }
            rounds.append(Round(candidates, samples, found))
            wanted = keys.keys() - found.keys()
            seconds = ends - time.perf_counter()
            for evaluation in spread.evaluate(part, candidates, wanted, seconds):
                at = evaluation.candidate, evaluation.split
                task = context.subcontext(task_name="candidate-split-evaluation")
                task.call_on_fit_task_begin(estimator=self)
                found[at] = evaluation
                if evaluation.error is None:
                    journal[keys[at]] = evaluation.score
                self._tell(evaluation, names[at[0]], before + len(found), total, began)
                if task.call_on_fit_task_end(estimator=self):
                    return self._results(rounds, plan, len(splits), stopped=True)
            if len(found) < len(keys) or time.perf_counter() >= ends:
                break
            scores = [np.mean([found[k, s].score for s in splits]) for k in range(len(candidates))]
            candidates = halving.best_of(candidates, scores)
        return self._results(rounds, plan, len(splits), stopped=False)

    def _tell(
        self,
        evaluation: Evaluation,
        name: tuple[tuple[str, Any], ...],
        count: int,
        total: int,
        began: float,
    ) -> None:
        if log.heard(bool(self.verbose)):
            said = ", ".join(f"{parameter}={_written(value)}" for parameter, value in name)
            log.tell(
                f"{count} of {total} scored: {said}, split {evaluation.split}: "
                f"{evaluation.score:.4f}, {time.perf_counter() - began:.2g} s",
                bool(self.verbose),
            )

    def _results(
        self, rounds: list[Round], plan: list[tuple[int, int]], n_splits: int, stopped: bool
    ) -> dict[str, Any]:
        """What was found, as `cv_results_`; warnings of what was not."""
        left_out = Evaluation(-1, -1, math.nan, math.nan, math.nan)
        evaluations = [
            one.found.get((k, split), left_out)
            for one in rounds
            for k in range(len(one.candidates))
            for split in range(n_splits)
        ]
        done = [evaluation for evaluation in evaluations if evaluation is not left_out]
        _warn_or_raise_about_fit_failures(
            [{"fit_error": evaluation.error} for evaluation in done], self.error_score
        )
        if failed := [solution for evaluation in done for solution in evaluation.failed]:
            worst = max(solution.kkt_violation for solution in failed)
            warnings.warn(
                f"{len(failed)} of the binary problems of the search were not solved to "
                f"tol={self.tol:g}: the largest KKT violation is {worst:.2e}. Raise max_iter or "
                "tol, or search among smaller C.",
                ConvergenceWarning,
                stacklevel=5,
            )
        candidates = [candidate for one in rounds for candidate in one.candidates]
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
                stacklevel=5,
            )
        elif len(rounds) < len(plan) and not stopped:
            warnings.warn(
                f"Search stopped by time_limit={self.time_limit:g} before its last round: the best "
                f"candidate is that of {rounds[-1].samples} samples.",
                ConvergenceWarning,
                stacklevel=5,
            )
        out = [
            {
                "test_scores": evaluation.score,
                "fit_time": evaluation.fit_time,
                "score_time": evaluation.score_time,
            }
            for evaluation in evaluations
        ]
        more_results: dict[str, Any] = {}
        if self.halving:
            levels = [level for level, one in enumerate(rounds) for _ in one.candidates]
            resources = [rounds[level].samples for level in levels]
            more_results = {"iter": levels, "n_resources": resources}
        with warnings.catch_warnings():
            if missing:
                warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
            return dict(self._format_results(candidates, n_splits, out, more_results))


@documented
class SVCCV(Search):
    """The C and the gamma with which an `SVC` does best in cross-validation.

    It gives the scores of scikit-learn's GridSearchCV over an `SVC` with the same splits, but the
    work is shared. The kernel matrix of all samples is computed once for each gamma, from distances
    that are computed once for all: all splits, pairs of classes and C are solved on it, and
    decisions on held-out samples are read from it. Each C starts from the solutions for the one
    before it on the same split, which was mostly faster than to start from another split. Up to
    three quarters of `cache_size` are for these matrices: if only one fits, each is computed from
    the samples; if none does, each machine computes the kernel rows that it needs, from the same
    starts. `n_jobs` machines are trained side by side; scores are the same for any number.

    Parameters
    ----------
    Cs : int or array_like
        The C to try. A number means so many, evenly spaced on a logarithmic scale, from 0.01 to
        1000.
    gammas : int or array_like
        The gamma to try, which may include "scale" and "auto": these stand for what they are on the
        training samples of each split. A number means so many, evenly spaced on a logarithmic
        scale, from a hundredth to a hundred times what "scale" is on all samples. Unused by kernels
        without gamma.
    <search parameters>
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
        As in `SVC`; so are `degree`, `coef0`, `tol`, `class_weight`, `max_iter`,
        `decision_function_shape`, `break_ties` and `rule`.
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

    _machine = SVC

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        halving: bool = False,
        random_state: Any = None,
        time_limit: float | None = None,
        rule: str = "auto",
        dtype: DTypeLike = np.float32,
        journal: Journal | None = None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
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
        self.halving = halving
        self.random_state = random_state
        self.time_limit = time_limit
        self.rule = rule
        self.dtype = dtype
        self.journal = journal


@documented
class SVRCV(Search):
    """The C, gamma and epsilon with which an `SVR` does best in cross-validation.

    Everything is as in `SVCCV`; machines that differ in epsilon share the kernel matrix, too.

    Parameters
    ----------
    Cs : int or array_like
        The C to try. A number means so many, evenly spaced on a logarithmic scale, from 0.01 to
        1000.
    gammas : int or array_like
        The gamma to try, which may include "scale" and "auto"; see `SVCCV`.
    epsilons : int or array_like
        The epsilon to try. A number means so many, evenly spaced on a logarithmic scale, from a
        thousandth of the standard deviation of y to the whole of it.
    <search parameters>
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
        As in `SVR`; so are `degree`, `coef0`, `tol`, `max_iter` and `rule`.
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

    _machine = SVR

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        epsilons: int | ArrayLike = (0.1,),
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        halving: bool = False,
        random_state: Any = None,
        time_limit: float | None = None,
        rule: str = "auto",
        dtype: DTypeLike = np.float32,
        journal: Journal | None = None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
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
        self.halving = halving
        self.random_state = random_state
        self.time_limit = time_limit
        self.rule = rule
        self.dtype = dtype
        self.journal = journal

    def _grid(self, X: Any, y: Any) -> dict[str, list[Any]]:
        spread = float(np.std(y)) or 1.0
        epsilons = _values("epsilons", self.epsilons, 1e-3 * spread, spread)
        return super()._grid(X, y) | {"epsilon": epsilons}


def _written(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, Real) else str(value)


def _values(name: str, given: int | ArrayLike, low: float, high: float) -> list[Any]:
    """The values of a parameter: those given, or that many from low to high."""
    if isinstance(given, Integral):
        middle = math.sqrt(low * high)
        return [middle] if given == 1 else np.geomspace(low, high, int(given)).tolist()
    values = list(given)  # type: ignore[arg-type]
    if not values:
        raise ValueError(f"{name} must have at least one value")
    return [value.item() if isinstance(value, np.generic) else value for value in values]
