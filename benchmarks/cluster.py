"""One machine over a cluster on this computer: `python -m benchmarks.cluster`.

Worker processes of one thread each, bound to the loopback address, against the native fit with as
many threads. Every fit is checked before its time is told: the objective against the native fit's,
the violation recomputed from the data in float64. Where the tolerance of the timed fits leaves the
objective open to more than 1e-8 of its size, both are fitted once more for that comparison, with a
tolerance that does not. `--latency` makes each message take so many milliseconds longer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

import pairstep.dask
from pairstep import svm
from pairstep.dask.cluster import Shares

from .svm_problems import Data, a9a, covtype
from .svm_truth import Truth, examine

TOL = 1e-3  # of the fits that are timed

# Data, parameters, and the tolerance at which objectives are compared.
PROBLEMS: dict[str, tuple[Any, dict[str, float], float]] = {
    "a9a": (a9a, {"C": 1.0, "gamma": 1 / 123}, 1e-5),
    "covtype-20k": (partial(covtype, count=20_000), {"C": 10.0, "gamma": 1.0}, 1e-5),
    "covtype-100k": (partial(covtype, count=100_000), {"C": 10.0, "gamma": 1.0}, TOL),
    "covtype-200k": (partial(covtype, count=200_000), {"C": 10.0, "gamma": 1.0}, TOL),
}
HEAD = "{:14}{:>18}{:>9}{:>8}{:>9}{:>9}{:>9}{:>12}{:>11}"
LINE = "{:14}{:>18}{:9.2f}{:8.2f}{:>9}{:>9}{:>9}{:12.1e}{:11.1e}"


def add_latency(milliseconds: float) -> None:
    """Have each message to a share, and each answer, take so much longer."""
    ask = Shares._ask

    async def slowly(shares: Shares, line: Any, message: Any) -> Any:
        await asyncio.sleep(milliseconds / 1e3)
        answer = await ask(shares, line, message)
        await asyncio.sleep(milliseconds / 1e3)
        return answer

    Shares._ask = slowly  # type: ignore[method-assign]


def timed(machine: Any, X: Any, y: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    machine.fit(X, y)
    return machine, time.perf_counter() - began


def check(machine: Any, params: dict[str, float], data: Data) -> Truth:
    return examine("SVC", {**params, "kernel": "rbf"}, data.X, data.y, None, machine, 2)


def compared(machine: Any, X: Any, y: Any, tol: float) -> Any:
    """The machine whose objective is compared: this one, or one that is fitted further."""
    return machine if tol == TOL else clone(machine).set_params(tol=tol).fit(X, y)


def measure(name: str, folder: Path, workers: list[int], native: list[int]) -> None:
    load, params, tol = PROBLEMS[name]
    data = load(folder)
    seconds: dict[int, float] = {}
    objective = np.nan
    for threads in native:
        machine, seconds[threads] = timed(svm.SVC(**params, n_jobs=threads), data.X, data.y)
        found = check(machine, params, data)
        objective = check(compared(machine, data.X, data.y, tol), params, data).objective
        row = name, f"{threads} threads", seconds[threads], 1.0, "", "", "", 0.0, found.violation
        print(LINE.format(*row), flush=True)
    for count in workers:
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster),
        ):  # fmt: skip
            X, y = (
                dask.array.from_array(a, chunks=(20_000, *a.shape[1:])).persist()
                for a in (data.X, data.y)
            )
            small = slice(0, 500)
            pairstep.dask.SVC().fit(X[small], y[small])  # imports
            machine, spent = timed(pairstep.dask.SVC(**params), X, y)
            further = compared(machine, X, y, tol)
        found, traffic = check(machine, params, data), machine.traffic_
        off = abs(check(further, params, data).objective - objective) / abs(objective)
        row = (
            name, f"{count} workers", spent, spent / seconds.get(count, np.nan), traffic.rounds,
            f"{traffic.sent / 2**20:.1f}", f"{traffic.received / 2**20:.1f}", off,
            found.violation,
        )  # fmt: skip
        print(LINE.format(*row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--latency", type=float, default=0.0)
    arguments = parser.parse_args()
    folder = os.environ.get("PAIRSTEP_DATA")
    if folder is None:
        print("PAIRSTEP_DATA is not set: there is no data to fit")
        return
    warnings.filterwarnings("ignore", "Sending large graph")  # from one computer to itself
    if arguments.latency:
        add_latency(arguments.latency)
    print(HEAD.format("data", "who", "seconds", "ratio", "rounds", "MB sent", "MB back",
                      "objective", "violation"))  # fmt: skip
    for name in arguments.only:
        measure(name, Path(folder), arguments.workers, arguments.threads)


if __name__ == "__main__":
    main()
