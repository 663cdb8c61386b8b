"""One machine over a cluster on this computer, against the native fit of the same machine.

    PAIRSTEP_DATA=... python -m benchmarks.cluster [--only covtype-100k] [--workers 1 2]
                                                   [--threads 1 2] [--latency 50] [--out FILE]

Worker processes have one thread each and are bound to the loopback address. Rows lie on the workers
before a fit begins. Every fit is checked: violation and objective are recomputed from the data and
the support vectors in float64, block by block. Where the tolerance of the timed fits leaves the
objective open to more than 1e-8 of its size, the machine is fitted once more for that comparison,
with a tolerance that does not. `--latency` makes each message, and each answer, take so many
milliseconds longer. `--out` gets a file as those in `docs/benchmarks`; fits that are in it already
are kept, unless they are measured again, so that each can have a run of its own (`--threads`
without a number: no native fit).
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import time
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask.array
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

import pairstep.dask
from pairstep import svm
from pairstep.dask.cluster import Shares, Traffic

from .qp_problems import data_folder
from .svm import run_by
from .svm_problems import Data, a9a, covtype
from .svm_truth import Truth, examine

TOL = 1e-3  # of the fits that are timed
WORKERS, THREADS = "workers", "threads"

# Data, parameters, and the tolerance at which objectives are compared.
PROBLEMS: dict[str, tuple[Any, dict[str, float], float]] = {
    "a9a": (a9a, {"C": 1.0, "gamma": 1 / 123}, 1e-5),
    "covtype-20k": (partial(covtype, count=20_000), {"C": 10.0, "gamma": 1.0}, 1e-5),
    "covtype-100k": (partial(covtype, count=100_000), {"C": 10.0, "gamma": 1.0}, TOL),
    "covtype-200k": (partial(covtype, count=200_000), {"C": 10.0, "gamma": 1.0}, TOL),
}


@dataclass
class Fit:
    """One fit that was timed, and what was found when it was checked."""

    data: str
    count: int
    of: str  # WORKERS, or THREADS of the native fit
    latency: float  # milliseconds
    seconds: float
    rounds: int
    sent: int
    received: int
    support: int
    violation: float
    objective: float

    def is_same(self, other: Fit) -> bool:
        """Whether the same was measured."""
        mine, others = ((f.data, f.of, f.count, f.latency) for f in (self, other))
        return mine == others


def add_latency(milliseconds: float) -> None:
    """Have each message to a share, and each answer, take so much longer."""
    ask = Shares._ask

    async def slowly(shares: Shares, line: Any, message: Any) -> Any:
        await asyncio.sleep(milliseconds / 1e3)
        answer = await ask(shares, line, message)
        await asyncio.sleep(milliseconds / 1e3)
        return answer

    Shares._ask = slowly  # type: ignore[method-assign]


def check(machine: Any, params: dict[str, float], data: Data) -> Truth:
    threads = os.cpu_count() or 1
    return examine("SVC", {**params, "kernel": "rbf"}, data.X, data.y, None, machine, threads)


def measure(name: str, data: Data, X: Any, y: Any, machine: Any, count: int, latency: float) -> Fit:
    """Fit a machine to X and y, which are the data or dask's collections of them."""
    _, params, tol = PROBLEMS[name]
    machine.set_params(**params)
    began = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - began
    found = check(machine, params, data)
    objective = found.objective
    if tol != TOL:
        objective = check(clone(machine).set_params(tol=tol).fit(X, y), params, data).objective
    traffic = getattr(machine, "traffic_", Traffic())
    return Fit(
        name, count, WORKERS if hasattr(machine, "traffic_") else THREADS, latency, seconds,
        traffic.rounds, traffic.sent, traffic.received, len(machine.support_), found.violation,
        objective,
    )  # fmt: skip


def over_workers(name: str, data: Data, count: int, latency: float) -> Fit:
    # Nannies in this process set OMP_NUM_THREADS=1 here for the sake of their workers; the client
    # and native fits are to have all threads.
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
        pairstep.dask.SVC().fit(X[:500], y[:500])  # imports
        return measure(name, data, X, y, pairstep.dask.SVC(), count, latency)


# ----------------------------------------------------------------------------------------- showing

COLUMNS = {
    "data": 14, "who": 26, "seconds": 9, "1 worker / it": 15, "it / native": 13,
    "rounds": 8, "MB sent": 9, "MB back": 9, "support vectors": 17, "objective off": 15,
    "violation": 11,
}  # fmt: skip


def row(fit: Fit, fits: list[Fit]) -> list[Any]:
    """What the table shows of a fit; ratios are to the other fits of the same data."""
    same = [other for other in fits if other.data == fit.data]
    native = [other for other in same if other.of == THREADS]
    one = [f for f in same if f.of == WORKERS and f.count == 1 and f.latency == fit.latency]
    equal = [other for other in native if other.count == fit.count]
    who = f"{fit.count} {fit.of[:-1] if fit.count == 1 else fit.of}"
    told = [fit.data.replace("-", " "), f"{who}, {fit.latency:g} ms" if fit.latency else who]
    told += [round(fit.seconds, 2)]
    if fit.of == THREADS:
        return [*told, *[None] * 5, fit.support, None, float(f"{fit.violation:.1e}")]
    off = abs(fit.objective / native[0].objective - 1) if native else None
    return [
        *told,
        round(one[0].seconds / fit.seconds, 2) if one else None,
        round(fit.seconds / equal[0].seconds, 2) if equal else None,
        fit.rounds,
        *(round(amount / 2**20, 1) for amount in (fit.sent, fit.received)),
        fit.support,
        None if off is None else float(f"{off:.1e}"),
        float(f"{fit.violation:.1e}"),
    ]


def show(cells: Any) -> None:
    shown = ("" if cell is None else str(cell) for cell in cells)
    padded = (f"{cell:>{width}}" for cell, width in zip(shown, COLUMNS.values(), strict=True))
    print("".join(padded), flush=True)


def save(out: Path, fits: list[Fit]) -> None:
    report = {
        "title": "One machine over a cluster", **run_by(),
        "command": "python -m benchmarks.cluster",
        "date": datetime.date.today().isoformat(),
        "columns": list(COLUMNS), "rows": [row(fit, fits) for fit in fits],
        "fits": [asdict(fit) for fit in fits],
    }  # fmt: skip
    lines = [f"  {json.dumps(name)}: {_lines(value)}" for name, value in report.items()]
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(value: Any) -> str:
    """In JSON; a list of lists or of objects with a line for each."""
    if not (isinstance(value, list) and value and isinstance(value[0], list | dict)):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"    {json.dumps(part)}" for part in value) + "\n  ]"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("PAIRSTEP_DATA is not set: there is no data to fit")
        return
    warnings.filterwarnings("ignore", "Sending large graph")  # from one computer to itself
    if arguments.latency:
        add_latency(arguments.latency)
    fits: list[Fit] = []
    if arguments.out and arguments.out.exists():
        fits = [Fit(**fit) for fit in json.loads(arguments.out.read_text("utf-8"))["fits"]]

    def note(fit: Fit) -> None:
        fits[:] = [*(other for other in fits if not other.is_same(fit)), fit]
        fits.sort(key=lambda f: (list(PROBLEMS).index(f.data), f.of, f.latency, f.count))
        show(row(fit, fits))
        if arguments.out:
            save(arguments.out, fits)

    show(COLUMNS)
    for name in arguments.only:
        data = PROBLEMS[name][0](folder)
        for count in arguments.threads:
            note(measure(name, data, data.X, data.y, svm.SVC(n_jobs=count), count, 0.0))
        for count in arguments.workers:
            note(over_workers(name, data, count, arguments.latency))


if __name__ == "__main__":
    main()
