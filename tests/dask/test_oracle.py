"""The oracle over partitions, compared with the whole problem in NumPy."""

import os

import numpy as np
import pytest
from clusters import kill, lazy, problem
from sklearn.metrics.pairwise import rbf_kernel

from pairstep.dask.cluster import Partitions
from pairstep.dask.matrix import ClusterMatrix
from pairstep.dask.oracle import ClusterOracle
from pairstep.svm.duals import c_classification
from pairstep.svm.engine import Kernel

pytestmark = pytest.mark.xdist_group("dask")

GAMMA = 0.3


class Case:
    def __init__(self, client):
        self.X, y, _ = problem(1000)
        self.partitions = Partitions(client, lazy(self.X)[0])
        self.dual = c_classification(np.flatnonzero(y), np.flatnonzero(y == 0), np.ones(1000))
        rows = self.X[self.dual.rows]
        self.K = rbf_kernel(rows, rows, gamma=GAMMA)
        self.random = np.random.default_rng(0)

    def __enter__(self):
        matrix = ClusterMatrix(self.partitions.__enter__(), None)
        matrix.open(Kernel("rbf", GAMMA))
        self.oracle = ClusterOracle(
            matrix, self.dual, tol=1e-3, cache_bytes=1 << 20, threads=1, single=False
        )
        return self

    def __exit__(self, *_):
        self.partitions.close()

    @property
    def gradient(self):
        return self.K @ self.dual.z + self.dual.linear

    def change(self, among):
        chosen = np.sort(self.random.choice(among, size=60, replace=False))
        before = self.dual.z[chosen]
        after = self.random.choice([0.0, 0.5, 1.0], size=60)
        self.dual.z[chosen] = np.clip(
            np.where(self.dual.linear[chosen] < 0, after, -after),
            self.dual.lower[chosen], self.dual.upper[chosen],
        )  # fmt: skip
        moved = self.dual.z[chosen] != before
        self.oracle.update_gradient(chosen[moved], (self.dual.z[chosen] - before)[moved])

    def check(self):
        coordinates, gradient, scale, noise = self.oracle.select_candidates(20, True)
        assert scale == 1.0
        assert 0 <= noise < 1e-10  # rounding in float64
        assert np.allclose(gradient, self.gradient[coordinates], atol=1e-10)
        return coordinates


def test_candidates_and_gradients_match_numpy(client):
    with Case(client) as case:
        case.change(np.arange(1000))
        coordinates = case.check()
        z, derivative = case.dual.z, case.gradient
        down = np.flatnonzero(z > case.dual.lower)
        up = np.flatnonzero(z < case.dual.upper)
        free = np.intersect1d(down, up)
        best = down[np.argsort(-derivative[down])[:20]], up[np.argsort(derivative[up])[:20]]
        assert {*best[0], *best[1], *free} <= {*coordinates}
        some = np.array([3, 500, 999])
        block = np.empty((len(some), len(some)))
        case.oracle.fill_block(some, block)
        assert np.allclose(block, case.K[np.ix_(some, some)])
        case.oracle.recompute_gradient()
        assert np.allclose(case.oracle.gradient(), case.gradient, atol=1e-10)


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_shrinking(restarting_client, killed):
    with Case(restarting_client) as case:
        for _ in range(3):
            case.change(np.arange(1000))
        middle = np.median(case.gradient)
        assert case.oracle.shrink(np.array([[np.inf, -np.inf]])) == 0  # all can change
        left = case.oracle.shrink(np.array([[middle - 0.4, middle + 0.4]]))
        assert 2 <= left < 700
        active = np.unique(case.check())
        case.change(active)
        if killed:
            (pid,) = restarting_client.run(
                os.getpid, workers=[case.partitions.connections[0].worker]
            ).values()
            kill(pid)
        case.change(active)
        case.check()
        case.oracle.unshrink()
        case.check()
        assert np.allclose(case.oracle.gradient(), case.gradient, atol=1e-10)
        assert case.partitions.traffic.recoveries == killed
