"""One support vector machine over a cluster.

Start a scheduler and workers, each in a terminal of its own (on several computers, give the
scheduler's own address instead of the loopback one):

    dask scheduler --host 127.0.0.1 --port 8786
    dask worker tcp://127.0.0.1:8786 --host 127.0.0.1 --nworkers 2 --nthreads 1

and then

    python examples/cluster.py tcp://127.0.0.1:8786

The samples are made where they will stay, on the workers. The machine is the one that
`pairstep.svm.SVC` would find on one computer, to the same tolerance: the script fits that one too,
and compares.
"""

from __future__ import annotations

import sys
import time

import dask.array
import numpy as np
from distributed import Client

import pairstep.dask
from pairstep import svm

SAMPLES, FEATURES, BLOCK = 20_000, 10, 5_000


def main(address: str) -> None:
    """Fit over the cluster at this address."""
    with Client(address) as client:
        print(f"{len(client.nthreads())} workers")
        random = dask.array.random.default_rng(0)
        X = random.normal(size=(SAMPLES, FEATURES), chunks=(BLOCK, FEATURES)).persist()
        noise = random.normal(size=SAMPLES, chunks=BLOCK)
        y = (dask.array.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * noise > 0).persist()

        began = time.perf_counter()
        machine = pairstep.dask.SVC(client=client, C=10.0, gamma=0.1).fit(X, y)
        traffic = machine.traffic_
        print(f"over the cluster: {time.perf_counter() - began:.1f} s, {traffic.rounds} rounds")
        print(f"sent {traffic.sent / 2**20:.1f} MB, received {traffic.received / 2**20:.1f} MB")
        print(f"support vectors: {len(machine.support_)}")
        print(f"violation: {machine.optimality_.kkt_violation[0]:.1e}")
        accuracy = (machine.predict(X) == y).mean().compute()
        print(f"accuracy: {accuracy:.4f}")
        here = np.asarray(X), np.asarray(y)

    began = time.perf_counter()
    alone = svm.SVC(C=10.0, gamma=0.1).fit(*here)
    print(f"on one computer: {time.perf_counter() - began:.1f} s")
    off = np.abs(machine.decision_function(here[0]) - alone.decision_function(here[0])).max()
    print(f"decisions differ by at most {off:.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
