"""Fit and check one SVM in a process of its own, so that memory and threads are not shared.

The process sends a part of its report after every stage. A fit or a prediction that exceeds its
time budget ends the process (SIGALRM).
"""

from __future__ import annotations

import importlib
import logging
import math
import signal
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pairstep.threads import available

from .harness import described, extra_memory, in_child, times_of
from .svm_problems import Data
from .svm_reference import reference_cost
from .svm_truth import binaries, examine

MODULES = {"pairstep": "pairstep.svm", "libsvm": "sklearn.svm", "onedal": "sklearnex.svm"}
CACHE_MB = 2000  # of kernel rows, for every solver

# A fit is repeated until one of these is reached, and the fastest counts.
REPEAT_SECONDS, REPEATS = 5.0, 5
LONGEST = 24 * 3600.0  # seconds of a stage; only fits and predictions have budgets


def in_process(task: dict[str, Any], data: Data) -> dict[str, Any]:
    """Run a task and return its report; `exceeded` is set if the fit exceeded its budget."""
    report: dict[str, Any] = {"status": "failed", "exceeded": False}
    for message in in_child(partial(reported, task, data), LONGEST):
        if isinstance(message, dict):
            report |= message
        elif "violation" not in report:  # a later stage may fail
            report["status"] = message
            report["exceeded"] = message == f"crashed ({-signal.SIGALRM})"
    return report


class Fallbacks(logging.Handler):
    """Records the calls that scikit-learn-intelex hands back to scikit-learn."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "fallback" in record.getMessage():
            self.seen.append(record.getMessage())


class NotOffered(Exception):
    pass


def make(solver: str, estimator: str, params: dict[str, Any], tol: float) -> Any:
    kind = getattr(importlib.import_module(MODULES[solver]), estimator, None)
    if kind is None:
        raise NotOffered
    extra = {"pairstep": {"n_jobs": -1}, "onedal": {"max_iter": 10**8}}.get(solver, {})
    if "n_jobs" in extra and "n_jobs" not in kind().get_params():
        extra = {}
    return kind(**params, **extra, tol=tol, cache_size=CACHE_MB)


def limited(call: Callable[[], Any], budget: float) -> Callable[[], Any]:
    """Return a call that ends the process (SIGALRM) when it exceeds its budget."""

    def called() -> Any:
        signal.setitimer(signal.ITIMER_REAL, budget)
        result = call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return result

    return called


def reported(task: dict[str, Any], data: Data, send: Callable[[object], None]) -> None:
    """Run a task, and send what stops it."""
    try:
        work(task, data, lambda **entries: send(entries))
    except NotOffered:
        send({"status": "not offered"})
    except Exception as error:  # solvers raise exceptions of many types
        send({"status": f"failed: {described(error)}"})


def work(task: dict[str, Any], data: Data, report: Callable[..., None]) -> None:
    dtype = np.dtype(task["dtype"])
    X, Xt = data.X.astype(dtype), data.Xt.astype(dtype)
    params, estimator = task["params"], task["estimator"]
    model = make(task["solver"], estimator, params, task["tol"])
    fallbacks = Fallbacks()
    for name in ("sklearnex", "onedal"):
        logging.getLogger(name).addHandler(fallbacks)
        logging.getLogger(name).setLevel(logging.INFO)
    extra = {} if data.weight is None else {"sample_weight": data.weight}

    fit = limited(lambda: model.fit(X, data.y, **extra), task["budget"])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        memory, ((first,), _) = extra_memory(lambda: times_of(fit, most=1))
        report(first=first, seconds=first, memory=memory)
        if task["solver"] == "onedal" and fallbacks.seen:
            report(status="falls back")
            return
        left = REPEAT_SECONDS - first
        if first < left:
            report(seconds=min(first, *times_of(fit, left, most=REPEATS - 1)[0]))
    threads = available()
    truth = examine(estimator, params, data.X, data.y, data.weight, model, threads)
    status = "ok" if math.isfinite(truth.violation + truth.objective) else "not finite"
    report(
        **vars(truth), status=status, support=len(model.support_),
        iterations=int(np.sum(model.n_iter_)), threads=threads,
        note="; ".join(sorted({str(w.message).split("\n")[0][:80] for w in warned})),
    )  # fmt: skip
    if task["reference"] and params.get("kernel", "rbf") == "rbf":
        duals = list(binaries(estimator, params, model, data.y, data.weight))
        report(reference=reference_cost(data.X, duals, params["gamma"], threads))
    if task["predict"]:
        predict = limited(lambda: model.predict(Xt), task["budget"])
        times, _ = times_of(predict, REPEAT_SECONDS, most=REPEATS)
        report(predict_first=times[0], predict=min(times), predicted=Xt.shape[0])
        if fallbacks.seen:
            report(note=f"predict: {fallbacks.seen[-1]}")
