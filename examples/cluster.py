"""Fit an SVM on a Dask cluster.

Start a scheduler and workers, each in its own terminal. On several computers, use the address of
the scheduler instead of the loopback address:

    dask scheduler --host 127.0.0.1 --port 8786
    dask worker tcp://127.0.0.1:8786 --host 127.0.0.1 --nworkers 2 --nthreads 1

Then run

    python examples/cluster.py tcp://127.0.0.1:8786

The workers generate the samples and keep them. The fit reaches the same optimum as
`pairstep.svm.SVC` on one computer, within the same tolerance. The script also fits that model and
compares the two.
"""

import sys
import time

import dask.array
import numpy as np
from distributed import Client

import pairstep.dask
from pairstep import svm

SAMPLES, FEATURES, CHUNK = 20_000, 10, 5_000

# %%
# Generate the samples on the workers
# -----------------------------------

client = Client(sys.argv[1])
print(f"{len(client.nthreads())} workers")
random = dask.array.random.default_rng(0)
X = random.normal(size=(SAMPLES, FEATURES), chunks=(CHUNK, FEATURES)).persist()
noise = random.normal(size=SAMPLES, chunks=CHUNK)
y = (dask.array.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * noise > 0).persist()

# %%
# Fit on the cluster
# ------------------

start = time.perf_counter()
model = pairstep.dask.SVC(client=client, C=10.0, gamma=0.1).fit(X, y)
traffic = model.traffic_
print(f"on the cluster: {time.perf_counter() - start:.1f} s, {traffic.rounds} rounds")
print(f"sent {traffic.sent / 2**20:.1f} MB, received {traffic.received / 2**20:.1f} MB")
print(f"support vectors: {len(model.support_)}")
print(f"violation: {model.optimality_.kkt_violation[0]:.1e}")
print(f"accuracy: {(model.predict(X) == y).mean().compute():.4f}")

# %%
# Compare with a fit on one computer
# ----------------------------------

X_local, y_local = np.asarray(X), np.asarray(y)
client.close()
start = time.perf_counter()
local = svm.SVC(C=10.0, gamma=0.1).fit(X_local, y_local)
print(f"on one computer: {time.perf_counter() - start:.1f} s")
difference = np.abs(model.decision_function(X_local) - local.decision_function(X_local)).max()
print(f"decisions differ by at most {difference:.1e}")
