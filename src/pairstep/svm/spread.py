"""Cross-validation on the workers of a cluster, with one joblib task per kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from .cross_validation import Candidate, CrossValidation, Evaluation, grouped


def evaluate(
    validation: CrossValidation,
    candidates: Sequence[Candidate],
    wanted: Set[tuple[int, int]],
    seconds: float,
    may_stop: bool,
) -> Iterator[Evaluation]:
    """Evaluate candidates as `validation` does, on a cluster if joblib is configured for one."""
    if not _joblib_has_a_cluster():
        yield from validation.evaluate(candidates, wanted, seconds, may_stop)
        return
    ends = time.time() + seconds  # the only clock that all computers share
    splits = range(len(validation.splits))
    tasks = []
    for _, of_gamma in grouped(range(len(candidates)), candidates, ["gamma"]):
        if pairs := [(k, split) for k in of_gamma for split in splits if (k, split) in wanted]:
            # joblib scatters large arguments once. It does not look into lists, so the data are
            # separate arguments.
            given = type(validation), *validation.given
            tasks.append(delayed(_evaluate)(candidates, pairs, ends, *given))
    for found in Parallel(return_as="generator_unordered")(tasks):
        yield from found


def _joblib_has_a_cluster() -> bool:
    """Return whether joblib's backend uses more than one worker by default, as dask's does."""
    backend, _ = get_active_backend()
    return bool(backend.default_n_jobs != 1)


def _evaluate(
    candidates: Sequence[Candidate],
    pairs: list[tuple[int, int]],
    ends: float,
    Validation: Any,
    *given: Any,
) -> list[Evaluation]:
    """Evaluate some pairs of candidate and split on a worker."""
    seconds = max(ends - time.time(), 0.0)
    return list(Validation(*given).evaluate(candidates, set(pairs), seconds, may_stop=False))
