"""Cross-validation of many candidates with shared kernel matrices.

All candidates with the same gamma, and all splits, use the same kernel matrix. On each split, the
candidates with ascending C form a chain, in which each fit starts from the solution of the last
one. Chains run in parallel. While the last chains of a kernel are running, the first ones of the
next kernel begin. Decisions on test samples are sums of rows of the same matrix. `shared_kernel.py`
says what happens if the matrix does not fit into memory.
"""

from __future__ import annotations

import heapq
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from .._validation import Array
from ..constraints import Indices
from .arrays import device_of_search
from .base import BaseSVM, with_known_decisions
from .compatibility import check_method_params, is_builtin_scorer, num_samples, take_split
from .compatibility import score as score_model
from .duals import bias
from .engine import Duals, Kernel, KernelName, Solution, SolvedChains
from .kernels import gamma_of, require_finite
from .plan import FitPlan
from .shared_kernel import SharedKernel, SharedKernels

Candidate = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """The score of one candidate on one split."""

    candidate: int
    split: int
    score: float
    fit_time: float
    score_time: float
    error: str | None = None  # the traceback of a fit that failed
    failed: list[Solution] = field(default_factory=list)  # not solved to the tolerance


@dataclass(frozen=True)
class Fold:
    """A split of the samples, and the plan of a fit to its training samples."""

    split: int
    train: Indices
    test: Indices
    plan: FitPlan  # of a fit to the training rows
    X: Any  # what a model is scored on
    y: Any
    score_parameters: dict[str, Any]


class Trial(NamedTuple):
    """A fitted candidate that has yet to be scored, or the traceback of its fit."""

    candidate: int
    fold: Fold
    model: BaseSVM
    fit_time: float
    failed: list[Solution]
    error: str | None = None


class CrossValidation:
    """Scores candidates on all splits of the samples."""

    def __init__(
        self,
        model: BaseSVM,
        X: Any,
        y: Any,
        splits: Iterable[tuple[Any, Any]],
        scorer: Callable[..., float],
        fit_parameters: dict[str, Any],
        score_parameters: dict[str, Any],
    ):
        self.scorer = scorer
        whole = self.whole = FitPlan.of(clone(model))
        self.needs_gamma = isinstance(model.kernel, str) and model.kernel != "precomputed"
        whole.read(X, y, fit_parameters.get("sample_weight"))
        self.X = whole.X
        if self.needs_gamma:
            whole.matrix = self.X  # each candidate has its own gamma
        else:
            whole.prepare_kernel()
        # This raises errors that concern all samples before any split is tried.
        self.largest_dual = int(whole.duals().sizes.max())
        self.folds: list[Fold] = []
        self.errors: dict[int, str] = {}  # tracebacks of splits on which no fit is possible
        every = np.arange(num_samples(X))
        self.splits = [(every[train], every[test]) for train, test in splits]
        self.given = model, X, y, self.splits, scorer, fit_parameters, score_parameters
        self.order = self._order()
        place = np.argsort(self.order)
        for split, (train, test) in enumerate(self.splits):
            # In this order, sums over the training rows read the matrix in memory order.
            train = train[np.argsort(place[train])]
            try:
                plan = whole.on_rows(train)
            except ValueError:
                self.errors[split] = traceback.format_exc()
                continue
            X_test, y_test = take_split(model, X, y, test, train)
            given = check_method_params(X, score_parameters, indices=test)
            self.folds.append(Fold(split, train, test, plan, X_test, y_test, given))

    def _order(self) -> Indices:
        """Return rows sorted by class and split, which makes those of a fit nearly adjacent."""
        n = num_samples(self.X)
        if not self.needs_gamma:  # the matrix exists already, in the order of the samples
            return np.arange(n)
        split_of = np.full(n, len(self.splits))
        for split, (_, test) in enumerate(self.splits):
            split_of[test] = split
        if not is_classifier(self.whole.model):
            return np.argsort(split_of, kind="stable")
        return np.lexsort((split_of, self.whole.targets))

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        wanted: Set[tuple[int, int]],
        seconds: float,
        may_stop: bool,
    ) -> Iterator[Evaluation]:
        """Yield the scores of the wanted pairs of candidate and split until the time is over.

        If the search `may_stop` early, all folds of a candidate are fitted before the next C, so
        that the scores of most candidates are complete then. Otherwise all C of a fold are fitted
        in one call, which is faster.

        Fits run in worker threads, but scorers run in the calling thread, because they may depend
        on its context, such as scikit-learn's configuration.
        """
        for split, error in self.errors.items():
            for k in range(len(candidates)):
                if (k, split) in wanted:
                    yield Evaluation(k, split, math.nan, 0.0, 0.0, error)
        kernels = self._kernels(candidates, wanted)
        if not kernels:
            return
        available = self.whole.threads(self.whole.matrix_work())
        shared_kernels = self._shared_kernels(kernels[0][0].name, len(kernels))
        chains_at_once = shared_kernels.at_once * max(len(chains) for _, chains in kernels)
        workers = min(available, shared_kernels.max_chains, chains_at_once)
        training = Training(
            self, candidates, time.perf_counter() + seconds, available // workers, workers,
            step=1 if may_stop else len(candidates),
        )  # fmt: skip
        coming = enumerate(kernels)
        waiting: list[Chain] = []  # a heap, in the order of the ranks
        running: list[Chain] = []
        trials: list[Trial] = []  # scored while others are being fitted
        with ThreadPoolExecutor(workers) as pool:
            try:
                while True:
                    in_use = {id(chain.shared): chain.shared for chain in waiting + running}
                    if not waiting and len(in_use) < shared_kernels.at_once:
                        for place, (kernel, chains) in islice(coming, 1):
                            waiting = _chains(
                                place, chains, kernel.gamma,
                                shared_kernels.of(
                                    kernel, available, in_use.values(),
                                    training.ends - time.perf_counter(),
                                ),
                            )  # fmt: skip
                    while waiting and len(running) < workers:
                        running.append(heapq.heappop(waiting))
                        pool.submit(training.run, running[-1])
                    for trial in trials:
                        yield self._scored(trial)
                    if not running:
                        return
                    chain, result = training.results.get()
                    running = [other for other in running if other is not chain]
                    if isinstance(result, BaseException):
                        raise result
                    trials = result
                    if trials and chain.candidates:
                        heapq.heappush(waiting, chain)
                    del chain  # the last chain of a kernel releases its matrix
            finally:
                training.over = True

    def _shared_kernels(self, name: KernelName, count: int) -> Any:
        """Return what computes and keeps the kernel matrices, on the CPU or on a GPU."""
        whole, model = self.whole, self.whole.model
        device = device_of_search(model.device, model.kernel, self.largest_dual)
        given = count, self.order, whole.cache_bytes(), model.dtype
        if device is None:
            return SharedKernels(whole.matrix, name, *given)
        from ..gpu.shared_kernel import DeviceKernels

        return DeviceKernels(device, whole.matrix, *given)

    def _kernels(
        self, candidates: Sequence[Candidate], wanted: Set[tuple[int, int]]
    ) -> list[tuple[Kernel, list[tuple[int, Fold, list[int]]]]]:
        """Return all kernels with their chains, as (path, fold, candidates)."""
        kernels = []
        others = [name for name in candidates[0] if name not in ("C", "gamma")]
        for shown, of_gamma in grouped(range(len(candidates)), candidates, ["gamma"]):
            paths = [
                sorted(path, key=lambda k: candidates[k]["C"])
                for _, path in grouped(of_gamma, candidates, others)
            ]
            for kernel, folds in self._by_kernel(shown.get("gamma", self.whole.model.gamma)):
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
        """Return the folds of each kernel: with gamma="scale" every fold has its own."""
        kernels: dict[Kernel, list[Fold]] = {}
        for fold in self.folds:
            number = 0.0
            if self.needs_gamma:
                number = gamma_of(gamma, self.X[fold.train] if gamma == "scale" else self.X)
            kernel = fold.plan.kernel_with(number)
            if self.needs_gamma:
                require_finite(kernel, self.X)
            kernels.setdefault(kernel, []).append(fold)
        return list(kernels.items())

    def _scored(self, trial: Trial) -> Evaluation:
        k, fold, model, fit_time, failed, error = trial
        if error is not None:
            return Evaluation(k, fold.split, math.nan, 0.0, 0.0, error)
        began = time.perf_counter()
        score = score_model(
            model, fold.X, fold.y, self.scorer, fold.score_parameters, error_score=math.nan
        )
        score_time = time.perf_counter() - began
        return Evaluation(k, fold.split, score, fit_time, score_time, None, failed)


@dataclass
class Chain:
    """Candidates that differ only in C, in ascending order, to be fitted on one fold."""

    rank: tuple[int, int, int, int]  # (kernel, path, number of candidates fitted, split)
    fold: Fold
    candidates: list[int]  # those that are left
    shared: SharedKernel
    gamma: float
    # The last C, and z and gradient of all duals for it.
    last: tuple[float, Array, Array] | None = None

    def __lt__(self, other: Chain) -> bool:
        return self.rank < other.rank

    def take(self, count: int) -> list[int]:
        """Return the next candidates."""
        taken, self.candidates = self.candidates[:count], self.candidates[count:]
        kernel, path, fitted, split = self.rank
        self.rank = kernel, path, fitted + count, split
        return taken


@dataclass
class Training:
    """Fits of chains in worker threads."""

    validation: CrossValidation
    candidates: Sequence[Candidate]
    ends: float  # when to stop, on the clock of `time.perf_counter`
    threads: int  # number of threads for each chain
    at_once: int  # number of chains that run in parallel
    step: int  # number of candidates of a chain that are fitted in one call
    results: SimpleQueue[tuple[Chain, list[Trial] | BaseException]] = field(
        default_factory=SimpleQueue
    )
    over: bool = False  # the results of running fits are no longer needed

    def run(self, chain: Chain) -> None:
        """Fit the next candidates of a chain, and queue those that were fitted in time."""
        try:
            self.results.put((chain, self._trials(chain)))
        except BaseException as error:  # raised again in the calling thread
            self.results.put((chain, error))

    def _trials(self, chain: Chain) -> list[Trial]:
        fold, whole = chain.fold, self.validation.whole
        began = time.perf_counter()
        if self.over or began >= self.ends:
            return []
        trials, plans, possible = [], [], []
        for k in chain.take(self.step):
            plan = fold.plan.with_parameters(self.candidates[k], chain.gamma)
            try:
                plan.limits()
            except ValueError:
                trials.append(Trial(k, fold, plan.model, 0.0, [], traceback.format_exc()))
                continue
            plans.append(plan)
            possible.append(k)
        if not plans:
            return trials
        Cs = np.array([float(plan.model.C) for plan in plans])
        unit = plans[0].with_parameters({"C": 1.0}, chain.gamma)
        try:
            duals = unit.duals()
        except ValueError:
            error = traceback.format_exc()
            return trials + [
                Trial(k, fold, plan.model, 0.0, [], error)
                for k, plan in zip(possible, plans, strict=True)
            ]
        C_before = 0.0
        if chain.last is not None:
            C_before, z, gradient = chain.last
            duals = replace(duals, z=z, gradient=gradient)
        # Each C starts from the last one, not from another fold with the same C. The other start
        # took more iterations or more time in most long fits (with large C) that were measured,
        # because the rows that the other fold has left out affect all other variables.
        found = chain.shared.solve_chains(
            fold.train, duals, Cs, fold.test, C_before=C_before,
            tol=whole.model.tol, max_iter=whole.max_iterations(), time_limit=self.ends - began,
            cold=whole.model.max_iter == -1, threads=self.threads, at_once=self.at_once,
            keep_going=lambda *_: not self.over,
        )  # fmt: skip
        seconds = (time.perf_counter() - began) / max(found.reached, 1)
        if chain.candidates:
            z, gradient = found.last
            chain.last = float(Cs[-1]), z.copy(), gradient.copy()
        for c, plan in enumerate(plans[: found.reached]):
            plan.state.update(unit.state)
            model, failed = self._fitted(plan, duals, found, c)
            trials.append(Trial(possible[c], fold, model, seconds, failed))
        return trials

    def _fitted(
        self, plan: FitPlan, duals: Duals, found: SolvedChains, c: int
    ) -> tuple[BaseSVM, list[Solution]]:
        """Return the model for the c-th C, and the solutions that are not optimal.

        A scorer of scikit-learn needs only decisions, unless the model has probabilities.
        """
        decides = is_builtin_scorer(self.validation.scorer) and not plan.has_probabilities
        solutions = found.solutions(c)
        if found.sums is None or not decides:
            plan.conclude(duals, solutions)
            failed = plan.report(solutions)
            return plan.fitted(), failed
        decisions = plan.decisions(bias(solutions), found.sums[:, c])
        plan.model.__dict__.update(plan.state, intercept_=plan.intercept)
        failed = solutions.unfinished(plan.max_iterations())
        return with_known_decisions(plan.model, decisions), failed


def _chains(
    place: int, chains: list[tuple[int, Fold, list[int]]], gamma: float, shared: SharedKernel
) -> list[Chain]:
    """Return the chains of one kernel."""
    return [
        Chain((place, path, 0, fold.split), fold, candidates, shared, gamma)
        for path, fold, candidates in chains
    ]


def grouped(
    indices: Iterable[int], candidates: Sequence[Candidate], names: list[str]
) -> list[tuple[Candidate, list[int]]]:
    """Return groups of candidates that agree in some parameters, each with its first member."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k in indices:
        groups.setdefault(tuple(candidates[k].get(name) for name in names), []).append(k)
    return [(candidates[group[0]], group) for group in groups.values()]
