"""Cross-validation on the workers of a cluster, with one task per kernel."""

from __future__ import annotations

import sys
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
    backend, _ = get_active_backend()
    if backend.default_n_jobs == 1:  # that of a cluster, such as dask's, uses all workers
        yield from validation.evaluate(candidates, wanted, seconds, may_stop)
        return
    ends = time.time() + seconds  # the only clock that all computers share
    splits = range(len(validation.splits))
    tasks = []
    for _, of_gamma in grouped(range(len(candidates)), candidates, ["gamma"]):
        if pairs := [(k, split) for k in of_gamma for split in splits if (k, split) in wanted]:
            tasks.append((pairs, ends))
    data = type(validation), validation.given, candidates
    for found in _results(backend, data, tasks):
        yield from found


def _results(
    backend: Any, data: Any, tasks: list[tuple[list[tuple[int, int]], float]]
) -> Iterator[list[Evaluation]]:
    """Yield the result of each task, as soon as it is known."""
    if not _is_dask(backend):
        calls = [delayed(_evaluate)(data, *task) for task in tasks]
        yield from Parallel(return_as="generator_unordered")(calls)
        return
    # Through joblib, the data would be lost with a worker.
    from ..dask.shared_data import call_all

    # In a task of dask, this lets other tasks run on its thread until the search ends.
    with backend.retrieval_context():
        yield from call_all(
            backend.client, _evaluate, data, tasks, "pairstep-search", backend.submit_kwargs
        )


def _is_dask(backend: Any) -> bool:
    distributed = sys.modules.get("distributed")  # dask's backend has imported it
    return distributed is not None and isinstance(
        getattr(backend, "client", None), distributed.Client
    )


def _evaluate(data: Any, pairs: list[tuple[int, int]], ends: float) -> list[Evaluation]:
    """Evaluate some pairs of candidate and split on a worker."""
    Validation, given, candidates = data
    seconds = max(ends - time.time(), 0.0)
    evaluations = Validation(*given).evaluate(candidates, set(pairs), seconds, may_stop=False)
    return list(evaluations)
