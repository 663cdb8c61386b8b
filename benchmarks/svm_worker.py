"""Run one fit in a separate process, so that memory, threads and warm-up are not shared.

`benchmarks/svm.py` starts this module with the path of a task, a JSON file that names the data, the
estimator and its parameters. The report is written next to it and updated after every stage. A fit
or a prediction that exceeds its time budget ends the process (SIGALRM).
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from pairstep.threads import available

from .harness import extra_memory, times_of
from .svm_reference import reference_cost
from .svm_truth import binaries, examine

MODULES = {"pairstep": "pairstep.svm", "libsvm": "sklearn.svm", "onedal": "sklearnex.svm"}
CACHE_MB = 2000  # of kernel rows, for every solver

# A fit is repeated until one of these is reached, and the fastest counts.
REPEAT_SECONDS, REPEATS = 5.0, 5


def in_process(task: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Run a task and return its report; `exceeded` is set if the fit exceeded its budget."""
    path = scratch / "task.json"
    path.write_text(json.dumps(task))
    path.with_suffix(".out").unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.svm_worker", str(path)]
    home = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home)
    try:
        report = json.loads(path.with_suffix(".out").read_text())
    except (OSError, ValueError):
        report = {"status": "failed: " + (done.stderr.strip().splitlines() or ["no report"])[-1]}
    report["exceeded"] = done.returncode == -signal.SIGALRM and "violation" not in report
    if done.returncode and not report["exceeded"] and "violation" not in report:
        report["status"] = f"crashed ({done.returncode})"
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


def work(task: dict[str, Any], report: Callable[..., None]) -> None:
    data = joblib.load(task["data"])
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


def main(path: Path) -> None:
    task = json.loads(path.read_text())
    result: dict[str, Any] = {"status": "failed"}

    def report(**entries: Any) -> None:
        result.update(entries)
        path.with_suffix(".out").write_text(json.dumps(result))

    report()
    try:
        work(task, report)
    except NotOffered:
        report(status="not offered")
    except Exception as error:
        report(status=f"failed: {type(error).__name__}: {error}"[:160])


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    main(Path(sys.argv[1]))
