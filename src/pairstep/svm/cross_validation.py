"""Cross-validation of many machines over one sample, which share what they have in common.

Candidates that do not differ in gamma have the same kernel, and so have all splits of the sample:
one kernel matrix serves them all. The duals of all splits are solved side by side, and those of the
next C start where those of the last one ended. What a machine decides on the samples that it has
not seen is summed up from rows of the same matrix, so that no kernel value is computed twice.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

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
from .machine import Dual, Solution
from .shared_kernel import SharedKernel, Trained, continued

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


@dataclass
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
    last: tuple[float, list[Solution]] | None = None  # the last C, and the solutions for it

    def with_parameters(self, candidate: Candidate) -> SupportVectorMachine:
        """The machine of a candidate, to be trained."""
        machine = copy(self.machine)
        machine.__dict__.update(candidate)
        return machine

    def duals(self, machine: SupportVectorMachine) -> list[Dual]:
        """Its duals, started from the solutions for the last C."""
        duals = machine._duals(self.targets, self.weights)
        if self.last is not None:
            C, earlier = self.last
            for solution, dual in zip(earlier, duals, strict=True):
                continued(solution, dual, machine.C / C)
        return duals


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
        wanted: Callable[[int, int], bool],
        seconds: float,
    ) -> Iterator[Evaluation]:
        """Evaluate candidates on the splits that they are wanted on, as long as there is time."""
        ends = time.perf_counter() + seconds
        for split, error in self.errors.items():
            for k in range(len(candidates)):
                if wanted(k, split):
                    yield Evaluation(k, split, math.nan, 0.0, 0.0, error)
        for gamma, of_gamma in _grouped(range(len(candidates)), candidates, ["gamma"]):
            for folds in self._by_kernel(gamma.get("gamma", self.whole.gamma)):
                if not any(wanted(k, fold.split) for k in of_gamma for fold in folds):
                    continue
                shared = self._shared_by(folds)
                others = [name for name in candidates[0] if name not in ("C", "gamma")]
                for _, path in _grouped(of_gamma, candidates, others):
                    for fold in folds:
                        fold.last = None
                    for k in sorted(path, key=lambda k: candidates[k]["C"]):
                        some = [fold for fold in folds if wanted(k, fold.split)]
                        yield from self._evaluate(k, candidates[k], some, shared, ends)
                        if time.perf_counter() >= ends:
                            return

    def _by_kernel(self, gamma: float | str) -> list[list[Fold]]:
        """Folds whose machines have the same kernel: with gamma="scale" each has its own."""
        kernels: dict[float, list[Fold]] = {}
        for fold in self.folds:
            if self.needs_gamma:
                fold.machine._gamma = gamma_of(
                    gamma, self.X[fold.train] if gamma == "scale" else self.X
                )
            kernels.setdefault(fold.machine._gamma, []).append(fold)
        return list(kernels.values())

    def _shared_by(self, folds: list[Fold]) -> SharedKernel:
        kernel, whole, n = folds[0].machine._kernel(), self.whole, len(self.order)
        if self.needs_gamma:
            require_finite(kernel, self.matrix)
        return SharedKernel.of(
            self.matrix, kernel, self.order, whole._cache_bytes(), whole.dtype,
            threads.count(whole.n_jobs, n * (entries_of(self.matrix) + 16.0 * n)),
        )  # fmt: skip

    def _evaluate(
        self, k: int, candidate: Candidate, folds: list[Fold], shared: SharedKernel, ends: float
    ) -> Iterator[Evaluation]:
        """Train a candidate's machines on these folds, side by side, and score them."""
        began = time.perf_counter()
        trials = []
        for fold in folds:
            machine = fold.with_parameters(candidate)
            try:
                trials.append((fold, machine, fold.duals(machine)))
            except ValueError:
                yield Evaluation(k, fold.split, math.nan, 0.0, 0.0, traceback.format_exc())
        if not trials:
            return
        solutions = iter(
            shared.solve(
                [(fold.train, dual) for fold, _, duals in trials for dual in duals],
                tol=self.whole.tol, max_iter=self.whole._most_iterations(len(self.order)),
                time_limit=max(ends - began, 0.0), rule=self.whole.rule,
                cold=self.whole.max_iter == -1 and all(fold.last is None for fold, *_ in trials),
            )
        )  # fmt: skip
        done, trained = [], []
        for fold, machine, duals in trials:
            solved = list(islice(solutions, len(duals)))
            if any(solution.status == Status.TIME_LIMIT for solution in solved):
                continue
            fold.last = machine.C, solved
            coefficients = machine._conclude(fold.targets, duals, solved)
            support = fold.train[machine.support_]
            machine._keep(self.X, coefficients, support)
            weights = np.ascontiguousarray(coefficients.T)
            trained.append(Trained(support, weights, machine._group_starts(), fold.test))
            done.append((fold, machine, machine._report(solved)))
        for (fold, machine, _), sums in zip(done, shared.sums(trained), strict=False):
            machine._known = fold.X, machine._combined(sums)
        fit_time = (time.perf_counter() - began) / len(trials)
        for fold, machine, failed in done:
            began = time.perf_counter()
            score = _score(
                machine, fold.X, fold.y, self.scorer, fold.score_parameters, error_score=math.nan
            )
            score_time = time.perf_counter() - began
            yield Evaluation(k, fold.split, score, fit_time, score_time, None, failed)


def _grouped(
    indices: Iterable[int], candidates: Sequence[Candidate], names: list[str]
) -> list[tuple[Candidate, list[int]]]:
    """Candidates that agree in these parameters, with what they have there."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k in indices:
        groups.setdefault(tuple(candidates[k].get(name) for name in names), []).append(k)
    return [(candidates[some[0]], some) for some in groups.values()]
