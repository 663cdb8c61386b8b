"""SVMs on a local Dask cluster, compared with native fits of the same models.

    PAIRSTEP_DATA=... python -m benchmarks.cluster [--only covtype-100k] [--workers 1 2]
                                                   [--threads 1 2] [--latency 50] [--out FOLDER]

Table "cluster". Each worker process has one thread and listens on the loopback address. The rows
are on the workers before a fit begins. Every fit is checked: violation and objective are recomputed
in float64 from the data and the support vectors. Objectives are compared to 1e-8; if the tolerance
of the timed fits is too loose for that, the model is fitted once more with a tighter one.
`--latency` delays each message and each answer by a number of milliseconds. Fits that are already
in the file of the table are kept unless they are measured again, so that each can be measured in a
separate run (`--threads` without a number: no native fit).
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import dask.array
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

import pairstep.dask
from pairstep import svm
from pairstep.dask.cluster import Partitions, Traffic

from .harness import Table, data_folder, named, parser, times_of
from .svm_problems import Data, a9a, covtype
from .svm_truth import Truth, examine

TOL = 1e-3  # of the timed fits
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
    """A timed fit and the results of its check."""

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
        """Return whether both fits measure the same thing."""
        mine, others = ((f.data, f.of, f.count, f.latency) for f in (self, other))
        return mine == others


def add_latency(milliseconds: float) -> None:
    """Delay each message to a partition, and each answer."""
    call = Partitions._call

    async def slowly(partitions: Partitions, connection: Any, message: Any) -> Any:
        await asyncio.sleep(milliseconds / 1e3)
        answer = await call(partitions, connection, message)
        await asyncio.sleep(milliseconds / 1e3)
        return answer

    Partitions._call = slowly  # type: ignore[method-assign]


def check(model: Any, params: dict[str, float], data: Data) -> Truth:
    threads = os.cpu_count() or 1
    return examine("SVC", {**params, "kernel": "rbf"}, data.X, data.y, None, model, threads)


def measure(name: str, data: Data, X: Any, y: Any, model: Any, count: int, latency: float) -> Fit:
    """Fit a model to X and y, which are the data or Dask collections of them."""
    _, params, tol = PROBLEMS[name]
    model.set_params(**params)
    (seconds,), _ = times_of(partial(model.fit, X, y), most=1)
    found = check(model, params, data)
    objective = found.objective
    if tol != TOL:
        objective = check(clone(model).set_params(tol=tol).fit(X, y), params, data).objective
    traffic = getattr(model, "traffic_", Traffic())
    return Fit(
        name, count, WORKERS if hasattr(model, "traffic_") else THREADS, latency, seconds,
        traffic.rounds, traffic.sent, traffic.received, len(model.support_), found.violation,
        objective,
    )  # fmt: skip


def over_workers(name: str, data: Data, count: int, latency: float) -> Fit:
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
        return measure(name, data, X, y, pairstep.dask.SVC(), count, latency)


# ----------------------------------------------------------------------------------------- showing

COLUMNS = (
    "data", "run on", "seconds", "1 worker / this", "this / native", "rounds", "MB sent",
    "MB received", "support vectors", "objective difference", "violation",
)  # fmt: skip


def row(fit: Fit, fits: list[Fit]) -> list[Any]:
    """Return the table row of a fit; ratios are to the other fits of the same data."""
    same = [other for other in fits if other.data == fit.data]
    native = [other for other in same if other.of == THREADS]
    one = [f for f in same if f.of == WORKERS and f.count == 1 and f.latency == fit.latency]
    equal = [other for other in native if other.count == fit.count]
    runner = f"{fit.count} {fit.of[:-1] if fit.count == 1 else fit.of}"
    cells = [fit.data.replace("-", " "), f"{runner}, {fit.latency:g} ms" if fit.latency else runner]
    cells += [round(fit.seconds, 2)]
    if fit.of == THREADS:
        return [*cells, *[None] * 5, fit.support, None, float(f"{fit.violation:.1e}")]
    difference = abs(fit.objective / native[0].objective - 1) if native else None
    return [
        *cells,
        round(one[0].seconds / fit.seconds, 2) if one else None,
        round(fit.seconds / equal[0].seconds, 2) if equal else None,
        fit.rounds,
        *(round(amount / 2**20, 1) for amount in (fit.sent, fit.received)),
        fit.support,
        None if difference is None else float(f"{difference:.1e}"),
        float(f"{fit.violation:.1e}"),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    arguments.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    arguments.add_argument("--latency", type=float, default=0.0)
    options = arguments.parse_args()
    folder = data_folder()
    warnings.filterwarnings("ignore", "Sending large graph")  # from one computer to itself
    if options.latency:
        add_latency(options.latency)
    table = Table(options.out, "cluster", "SVMs on a Dask cluster", COLUMNS, ["distributed"])
    table.content["command"] = "python -m benchmarks.cluster"  # of all runs that the file is from
    fits: list[Fit] = []
    if table.path.exists():
        fits = [Fit(**fit) for fit in json.loads(table.path.read_text("utf-8"))["fits"]]

    def note(fit: Fit) -> None:
        fits[:] = [*(other for other in fits if not other.is_same(fit)), fit]
        fits.sort(key=lambda f: (list(PROBLEMS).index(f.data), f.of, f.latency, f.count))
        table.add(*row(fit, fits))
        table.save(rows=[row(f, fits) for f in fits], fits=[asdict(f) for f in fits])

    for name, (load, _, _) in PROBLEMS.items():
        if not named(name, options.only):
            continue
        data = load(folder)
        for count in options.threads:
            note(measure(name, data, data.X, data.y, svm.SVC(n_jobs=count), count, 0.0))
        for count in options.workers:
            note(over_workers(name, data, count, options.latency))


if __name__ == "__main__":
    main()
