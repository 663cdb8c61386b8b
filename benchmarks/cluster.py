"""SVMs on a local Dask cluster, compared with native fits of the same models.

    PAIRSTEP_DATA=... python -m benchmarks.cluster [--only covtype-100k]

Table "cluster". Each worker process has one thread and listens on the loopback address. The rows
are on the workers before a fit begins. Every fit is checked: violation and objective are recomputed
in float64 from the data and the support vectors. Objectives are compared to 1e-8; if the tolerance
of the timed fits is too loose for that, the model is fitted once more with a tighter one. A latency
delays each message and each answer by a number of milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import dask.array
import numpy as np
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

import pairstep.dask
from pairstep import svm
from pairstep.dask.cluster import Partitions, Traffic

from .harness import Table, data_folder, digits, named, parser, times_of
from .svm_problems import Data, Problem, a9a, covtype, rbf
from .svm_truth import Truth, examine

TOL = 1e-3  # of the timed fits


@dataclass
class Plan:
    """A problem, its native fits by threads, and its fits by workers and latency (ms)."""

    problem: Problem
    tol: float  # at which objectives are compared
    threads: tuple[int, ...] = (1, 2)
    workers: tuple[tuple[int, float], ...] = ((1, 0.0), (2, 0.0))


def covtype_of(rows: int) -> Problem:
    return rbf(f"covtype-{rows // 1000}k", partial(covtype, count=rows), 10.0, 1.0)


PLANS = [
    Plan(rbf("a9a", a9a, 1.0, 1 / 123), 1e-5),
    Plan(covtype_of(20_000), 1e-5),
    Plan(covtype_of(100_000), TOL, workers=((1, 0.0), (2, 0.0), (2, 50.0))),
    Plan(covtype_of(200_000), TOL, (2,), ((2, 0.0),)),
]
COLUMNS = (
    "data", "run on", "seconds", "1 worker / this", "this / native", "rounds", "MB sent",
    "MB received", "support vectors", "objective difference", "violation",
)  # fmt: skip


@dataclass
class Fit:
    """A timed fit and the results of its check."""

    model: Any
    seconds: float
    violation: float
    objective: float


def delayed(milliseconds: float) -> Any:
    """Return a context in which each message to a partition, and each answer, is delayed."""
    call = Partitions._call

    async def slowly(partitions: Partitions, connection: Any, message: Any) -> Any:
        await asyncio.sleep(milliseconds / 1e3)
        answer = await call(partitions, connection, message)
        await asyncio.sleep(milliseconds / 1e3)
        return answer

    return patch.object(Partitions, "_call", slowly if milliseconds else call)


def check(model: Any, params: dict[str, Any], data: Data) -> Truth:
    threads = os.cpu_count() or 1
    return examine("SVC", {**params, "kernel": "rbf"}, data.X, data.y, None, model, threads)


def measure(plan: Plan, data: Data, X: Any, y: Any, model: Any) -> Fit:
    """Fit a model to X and y, which are the data or Dask collections of them."""
    params = plan.problem.params
    model.set_params(**params)
    (seconds,), _ = times_of(partial(model.fit, X, y), most=1)
    found = check(model, params, data)
    objective = found.objective
    if plan.tol != TOL:
        objective = check(clone(model).set_params(tol=plan.tol).fit(X, y), params, data).objective
    return Fit(model, seconds, found.violation, objective)


def over_workers(plan: Plan, data: Data, count: int, latency: float) -> Fit:
    # Dask sets OMP_NUM_THREADS=1 in this process for the workers. Restore it, because the client
    # and the native fits use all threads.
    with patch.dict(os.environ):
        cluster = LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        )  # fmt: skip
    with cluster, Client(cluster):
        X, y = (
            dask.array.from_array(a, chunks=(20_000, *a.shape[1:])).persist()
            for a in (data.X, data.y)
        )
        wait([X, y])
        pairstep.dask.SVC().fit(X[:500], y[:500])  # so that the workers have imported everything
        with delayed(latency):
            return measure(plan, data, X, y, pairstep.dask.SVC())


def counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("s" if count > 1 else "")


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = data_folder()
    warnings.filterwarnings("ignore", "Sending large graph")  # from one computer to itself
    table = Table(options.out, "cluster", "SVMs on a Dask cluster", COLUMNS, ["distributed"])
    for plan in PLANS:
        name = plan.problem.name
        if not named(name, options.only):
            continue
        data = plan.problem.data(folder)
        native: dict[int, Fit] = {}
        for count in plan.threads:
            fit = native[count] = measure(plan, data, data.X, data.y, svm.SVC(n_jobs=count))
            table.add(name, counted(count, "thread"), digits(fit.seconds), *[None] * 5,
                      len(fit.model.support_), None, digits(fit.violation, 2))  # fmt: skip
        one: dict[float, float] = {}  # seconds of one worker, by latency
        for count, latency in plan.workers:
            fit = over_workers(plan, data, count, latency)
            if count == 1:
                one[latency] = fit.seconds
            traffic: Traffic = fit.model.traffic_
            runner = counted(count, "worker") + (f", {latency:g} ms" if latency else "")
            expected = native[plan.threads[0]].objective
            table.add(
                name, runner, digits(fit.seconds), digits(one.get(latency, np.nan) / fit.seconds),
                digits(fit.seconds / native[count].seconds), traffic.rounds,
                digits(traffic.sent / 2**20), digits(traffic.received / 2**20),
                len(fit.model.support_), digits(abs(fit.objective / expected - 1), 2),
                digits(fit.violation, 2),
            )  # fmt: skip


if __name__ == "__main__":
    main()
