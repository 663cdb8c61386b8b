"""Cross-validation of many machines over one sample, which share what they have in common.

Candidates that do not differ in gamma have the same kernel, and so have all splits of the sample:
one kernel matrix serves them all. On each split the machines for rising C form a chain, each
started where the last one ended; chains are trained side by side, and while the last ones of a
kernel are under way, those of the next one begin. What a machine decides on the samples that it has
not seen is summed up from rows of the same matrix, so that no kernel value is computed twice.
"""

from __future__ import annotations

import heapq
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from .. import threads
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from .base import SupportVectorMachine, Targets, entries_of
from .classification import Classifier
from .kernels import gamma_of, require_finite
from .machine import Kernel, Solution
from .shared_kernel import SharedKernel, SharedKernels, Trained, continued

Candidate = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """How well one candidate does on one split."""

    candidate: int
    split: int
    score: float
    fit_time: float
    score_time: float
    error: str | None = None  # what went wrong
    failed: list[Solution] = field(default_factory=list)  # not solved to the tolerance


@dataclass(frozen=True)
class Fold:
    """A split, with the machine that is to be trained on it."""

    split: int
    train: Indices
    test: Indices
    machine: SupportVectorMachine
    targets: Targets
    weights: Array
    X: Any  # what it is scored on
    y: Any
    score_parameters: dict[str, Any]


class Trial(NamedTuple):
    """A machine that was trained, to be scored; or what went wrong."""

    candidate: int
    fold: Fold
    machine: SupportVectorMachine
    fit_time: float
    failed: list[Solution]
    error: str | None = None


class CrossValidation:
    """Scores candidates on splits of a sample, one after the other."""

    def __init__(
        self,
        machine: SupportVectorMachine,
        X: Any,
        y: Any,
        splits: Iterable[tuple[Any, Any]],
        scorer: Callable[..., float],
        fit_parameters: dict[str, Any],
        score_parameters: dict[str, Any],
    ):
        self.scorer = scorer
        whole = self.whole = clone(machine)
        self.needs_gamma = isinstance(machine.kernel, str) and machine.kernel != "precomputed"
        self.X, targets = whole._training_data(X, y)
        # The kernel matrix, if that is what there is; the data otherwise.
        self.matrix = self.X if self.needs_gamma else whole._matrix(self.X)
        weights = whole._weights(self.X, fit_parameters.get("sample_weight"))
        whole._duals(whole._targets(self.X, targets), weights)  # what is wrong with all of it
        self.folds: list[Fold] = []
        self.errors: dict[int, str] = {}  # of splits on which no machine can be trained
        every = np.arange(_num_samples(X))
        self.splits = [(every[train], every[test]) for train, test in splits]
        self.given = machine, X, y, self.splits, scorer, fit_parameters, score_parameters
        self.order = self._order(targets)
        place = np.argsort(self.order)
        for split, (train, test) in enumerate(self.splits):
            # Sums over the rows of a machine so read the memory of the matrix in order.
            train = train[np.argsort(place[train])]
            part = copy(whole)
            part.shape_fit_ = (len(train), *np.shape(self.X)[1:])
            if machine.kernel == "precomputed":
                part.shape_fit_, part.n_features_in_ = (len(train), len(train)), len(train)
            if callable(machine.kernel):
                part._X_fit = _safe_indexing(X, train)
            try:
                own = part._targets(None, _safe_indexing(targets, train))
            except ValueError:
                self.errors[split] = traceback.format_exc()
                continue
            X_test, y_test = _safe_split(machine, X, y, test, train)
            given = _check_method_params(X, score_parameters, indices=test)
            self.folds.append(
                Fold(split, train, test, part, own, weights[train], X_test, y_test, given)
            )

    def on_some(self, rows: Indices) -> CrossValidation:
        """The same splits of some of the samples, which are given in rising order."""
        machine, X, y, splits, scorer, *parameters = self.given
        X_some, y_some = _safe_split(machine, X, y, rows, rows)
        fit_parameters, score_parameters = (
            _check_method_params(X, given, indices=rows) for given in parameters
        )

        def within(side: Indices) -> Indices:
            return np.searchsorted(rows, side[np.isin(side, rows)])

        some = [(within(train), within(test)) for train, test in splits]
        return CrossValidation(
            machine, X_some, y_some, some, scorer, fit_parameters, score_parameters
        )

    def _order(self, targets: Any) -> Indices:
        """Rows by class and split, so that those of a machine are side by side in the matrix."""
        n = _num_samples(self.X)
        if not self.needs_gamma:  # the matrix is there already
            return np.arange(n)
        split_of = np.full(n, len(self.splits))
        for split, (_, test) in enumerate(self.splits):
            split_of[test] = split
        if not isinstance(self.whole, Classifier):
            return np.argsort(split_of, kind="stable")
        _, classes = np.unique(targets, return_inverse=True)
        return np.lexsort((split_of, classes))

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        wanted: Set[tuple[int, int]],
        seconds: float,
    ) -> Iterator[Evaluation]:
        """Evaluate candidates on the splits that they are wanted on, as long as there is time.

        Chains are trained in threads of their own, and scored here: what scorers may rely on is
        what they find in the thread that the search was started in.
        """
        for split, error in self.errors.items():
            for k in range(len(candidates)):
                if (k, split) in wanted:
                    yield Evaluation(k, split, math.nan, 0.0, 0.0, error)
        kernels = self._kernels(candidates, wanted)
        if not kernels:
            return
        n = len(self.order)
        available = threads.count(self.whole.n_jobs, n * (entries_of(self.matrix) + 16.0 * n))
        shared_kernels = SharedKernels(
            self.matrix, kernels[0][0].name, len(kernels), self.order, self.whole._cache_bytes(),
            self.whole.dtype,
        )  # fmt: skip
        workers = min(available, shared_kernels.at_once * max(len(some) for _, some in kernels))
        training = Training(
            self, candidates, time.perf_counter() + seconds, available // workers, workers
        )
        coming = enumerate(kernels)
        waiting: list[Chain] = []  # a heap: what is first in the order of candidates goes first
        running: list[Chain] = []
        trial: Trial | None = None  # to be scored while others are trained
        with ThreadPoolExecutor(workers) as pool:
            try:
                while True:
                    in_use = {id(chain.shared): chain.shared for chain in waiting + running}
                    if not waiting and len(in_use) < shared_kernels.at_once:
                        for place, (kernel, some) in islice(coming, 1):
                            waiting = _chains(
                                place, some, kernel.gamma,
                                shared_kernels.of(kernel, available, in_use.values()),
                            )  # fmt: skip
                    while waiting and len(running) < workers:
                        running.append(heapq.heappop(waiting))
                        pool.submit(training.step, running[-1])
                    if trial is not None:
                        yield self._scored(trial)
                    if not running:
                        return
                    chain, news = training.told.get()
                    running.remove(chain)
                    if isinstance(news, BaseException):
                        raise news
                    trial = news
                    if trial is not None:
                        heapq.heappush(waiting, chain)
                    del chain  # with the last one of a kernel goes its matrix
            finally:
                training.over = True

    def _kernels(
        self, candidates: Sequence[Candidate], wanted: Set[tuple[int, int]]
    ) -> list[tuple[Kernel, list[tuple[int, Fold, list[int]]]]]:
        """All kernels with their chains: which path, on which fold, of which candidates."""
        kernels = []
        others = [name for name in candidates[0] if name not in ("C", "gamma")]
        for shown, of_gamma in _grouped(range(len(candidates)), candidates, ["gamma"]):
            paths = [
                sorted(path, key=lambda k: candidates[k]["C"])
                for _, path in _grouped(of_gamma, candidates, others)
            ]
            for kernel, folds in self._by_kernel(shown.get("gamma", self.whole.gamma)):
                chains = [
                    (place, fold, some)
                    for place, path in enumerate(paths)
                    for fold in folds
                    if (some := [k for k in path if (k, fold.split) in wanted])
                ]
                if chains:
                    kernels.append((kernel, chains))
        return kernels

    def _by_kernel(self, gamma: float | str) -> list[tuple[Kernel, list[Fold]]]:
        """Folds whose machines have the same kernel: with gamma="scale" each has its own."""
        kernels: dict[Kernel, list[Fold]] = {}
        for fold in self.folds:
            machine = copy(fold.machine)
            if self.needs_gamma:
                machine._gamma = gamma_of(gamma, self.X[fold.train] if gamma == "scale" else self.X)
                require_finite(machine._kernel(), self.matrix)
            kernels.setdefault(machine._kernel(), []).append(fold)
        return list(kernels.items())

    def _scored(self, trial: Trial) -> Evaluation:
        k, fold, machine, fit_time, failed, error = trial
        if error is not None:
            return Evaluation(k, fold.split, math.nan, 0.0, 0.0, error)
        began = time.perf_counter()
        score = _score(
            machine, fold.X, fold.y, self.scorer, fold.score_parameters, error_score=math.nan
        )
        score_time = time.perf_counter() - began
        return Evaluation(k, fold.split, score, fit_time, score_time, None, failed)


class Chain:
    """Candidates that differ in C alone, in rising order, to be trained on one fold."""

    def __init__(
        self,
        rank: tuple[int, ...],
        fold: Fold,
        candidates: list[int],
        shared: SharedKernel,
        gamma: float,
    ):
        self.rank = rank  # kernel, path, machines that are trained, split
        self.fold, self.candidates, self.shared, self.gamma = fold, candidates, shared, gamma
        self.last: tuple[float, list[Solution]] | None = None  # the last C, and the solutions

    def __lt__(self, other: Chain) -> bool:
        return self.rank < other.rank

    def next_candidate(self) -> int | None:
        """The one to train now, if there is one left."""
        kernel, path, trained, split = self.rank
        self.rank = kernel, path, trained + 1, split
        return self.candidates[trained] if trained < len(self.candidates) else None


@dataclass
class Training:
    """How chains are trained, side by side."""

    validation: CrossValidation
    candidates: Sequence[Candidate]
    ends: float  # when to stop, on the clock of `time.perf_counter`
    threads: int  # of each chain
    at_once: int
    told: SimpleQueue[tuple[Chain, Trial | BaseException | None]] = field(
        default_factory=SimpleQueue
    )
    over: bool = False  # nobody waits for what is still under way

    def step(self, chain: Chain) -> None:
        """Train the next machine of a chain, and tell of it; of None if there is none."""
        try:
            self.told.put((chain, self._trial(chain)))
        except BaseException as error:  # for the thread that waits
            self.told.put((chain, error))

    def _trial(self, chain: Chain) -> Trial | None:
        fold, whole = chain.fold, self.validation.whole
        k, began = chain.next_candidate(), time.perf_counter()
        if k is None or self.over or began >= self.ends:
            return None
        machine = copy(fold.machine)
        machine.__dict__.update(self.candidates[k])
        machine._gamma = chain.gamma
        try:
            duals = machine._duals(fold.targets, fold.weights)
        except ValueError:
            return Trial(k, fold, machine, 0.0, [], traceback.format_exc())
        # From the last C, not from the solution of another fold for the same one: where a fit is
        # long, for large C, that took more iterations or more time in most cases measured, for the
        # rows that it has left out must find their place among all others.
        if chain.last is not None:
            for solution, dual in zip(chain.last[1], duals, strict=True):
                continued(solution, dual, machine.C / chain.last[0])
        solutions = chain.shared.solve(
            [(fold.train, dual) for dual in duals],
            tol=whole.tol, max_iter=whole._most_iterations(len(self.validation.order)),
            time_limit=self.ends - began, rule=whole.rule,
            cold=whole.max_iter == -1 and chain.last is None,
            threads=self.threads, at_once=self.at_once, keep_going=lambda *_: not self.over,
        )  # fmt: skip
        if self.over or any(solution.status == Status.TIME_LIMIT for solution in solutions):
            return None
        chain.last = machine.C, solutions
        coefficients = machine._conclude(fold.targets, duals, solutions)
        support = fold.train[machine.support_]
        machine._keep(self.validation.X, coefficients, support)
        weights = np.ascontiguousarray(coefficients.T)
        trained = Trained(support, weights, machine._group_starts(), fold.test)
        for sums in chain.shared.sums([trained], self.threads):
            machine._known = fold.X, machine._combined(sums)
        failed = machine._report(solutions)
        return Trial(k, fold, machine, time.perf_counter() - began, failed)


def _chains(
    place: int, some: list[tuple[int, Fold, list[int]]], gamma: float, shared: SharedKernel
) -> list[Chain]:
    """The chains of the kernel that comes at this place."""
    return [
        Chain((place, path, 0, fold.split), fold, candidates, shared, gamma)
        for path, fold, candidates in some
    ]


def _grouped(
    indices: Iterable[int], candidates: Sequence[Candidate], names: list[str]
) -> list[tuple[Candidate, list[int]]]:
    """Candidates that agree in these parameters, with what they have there."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k in indices:
        groups.setdefault(tuple(candidates[k].get(name) for name in names), []).append(k)
    return [(candidates[some[0]], some) for some in groups.values()]
