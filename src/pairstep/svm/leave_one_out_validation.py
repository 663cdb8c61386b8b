"""Scores of candidates by leave-one-out, for searches with ``cv="loo"``."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np
from sklearn.base import clone

from ..result import Status
from .base import BaseSVM, with_known_decisions
from .compatibility import is_builtin_scorer, num_samples, score
from .cross_validation import Candidate, Evaluation
from .left_out import left_out
from .plan import FitPlan


class LeaveOneOutValidation:
    """Scores candidates as `CrossValidation` does, with one split whose test set is all samples.

    Each candidate is fitted once, and its predictions on all samples are those of `leave_one_out`.
    """

    def __init__(
        self,
        model: BaseSVM,
        X: Any,
        y: Any,
        scorer: Callable[..., float],
        fit_parameters: dict[str, Any],
        score_parameters: dict[str, Any],
    ):
        if not is_builtin_scorer(scorer):
            raise ValueError(
                'cv="loo" needs a scorer of scikit-learn or of make_scorer, because a function may '
                "call the model with other samples than those it is scored on"
            )
        self.given = model, X, y, scorer, fit_parameters, score_parameters
        whole = FitPlan.of(clone(model))
        whole.read(X, y, fit_parameters.get("sample_weight"))
        whole.duals()  # raises errors that concern all candidates
        self.X = whole.X
        everything = np.arange(num_samples(X))
        self.splits = [(everything, everything)]

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        wanted: Set[tuple[int, int]],
        seconds: float,
        may_stop: bool,
    ) -> Iterator[Evaluation]:
        """Yield the scores of the wanted candidates until the time is over.

        Each candidate is complete before the next one begins, whether the search `may_stop` or not.
        """
        ends = time.perf_counter() + seconds
        for k, candidate in enumerate(candidates):
            if (k, 0) in wanted and time.perf_counter() < ends:
                yield self._evaluation(k, candidate)

    def _evaluation(self, k: int, candidate: Candidate) -> Evaluation:
        model, X, y, scorer, fit_parameters, score_parameters = self.given
        began = time.perf_counter()
        fitted: Any = clone(model).set_params(**candidate, verbose=False)
        try:
            fitted.fit(X, y, **fit_parameters)
            found = left_out(fitted, X, y, fit_parameters.get("sample_weight"), False)
        except ValueError:
            return Evaluation(k, 0, math.nan, 0.0, 0.0, traceback.format_exc())
        fit_time = time.perf_counter() - began
        known = with_known_decisions(fitted, found.decisions)
        value = score(known, X, y, scorer, score_parameters, error_score=math.nan)
        failed = [one for one in found.solutions if one.status != Status.OPTIMAL]
        score_time = time.perf_counter() - began - fit_time
        return Evaluation(k, 0, value, fit_time, score_time, None, failed)
