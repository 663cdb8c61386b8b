"""The native partition of a dual, compared with kernel matrices in NumPy.

Partitions are an interface of their own; a cluster would show only their sums.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from pairstep import _core
from pairstep.svm.engine import Kernel, native

KERNELS = {
    "rbf": (Kernel("rbf", 0.2), lambda X, Y: rbf_kernel(X, Y, gamma=0.2)),
    "linear": (Kernel("linear"), linear_kernel),
}


class Case:
    """A dual of n variables, with those from 100 on in the partition, and its derivatives."""

    def __init__(self, kernel, single, sparse, n=400, cache_bytes=1 << 20):
        random = np.random.default_rng(1)
        self.X = random.normal(size=(n, 5))
        self.kernel, function = KERNELS[kernel]
        self.K = function(self.X, self.X)
        self.linear = random.normal(size=n)
        self.z = np.zeros(n)
        self.own = np.arange(100, n)
        m = len(self.own)
        self.native = native(scipy.sparse.csr_matrix(self.X)) if sparse else self.X
        mine = scipy.sparse.csr_matrix(self.X[self.own]) if sparse else self.X[self.own]
        self.partition = _core.Partition(native(mine), None, self.kernel.native, 2)
        self.lower, self.upper = np.full(n, -1.0), np.full(n, 1.0)
        point = _core.Point(
            np.zeros(m), self.lower[self.own], self.upper[self.own], None, None, np.array([0, m])
        )
        self.partition.begin(
            self.own, np.arange(m), self.linear[self.own], point, n, cache_bytes, single
        )
        self.partition.append(self.native)  # changed variables are given by their index in the dual
        self.partition.introduce(np.arange(n), np.arange(n))

    @property
    def gradient(self):
        return self.K @ self.z + self.linear

    def change(self, coordinates, x):
        self.z[coordinates] = x
        free = np.abs(self.z[coordinates]) < 1
        self.partition.update_gradient(coordinates, self.z[coordinates], free)

    def change_some(self, seed, among=None):
        random = np.random.default_rng(seed)
        coordinates = random.choice(400 if among is None else among, size=30, replace=False)
        self.change(np.sort(coordinates), random.choice([-1.0, -0.3, 0.0, 0.2, 1.0], size=30))


@pytest.mark.parametrize("other", [
    scipy.sparse.csr_matrix(np.ones((2, 5))), np.ones((2, 5), np.float32), np.ones((2, 4)),
])  # fmt: skip
def test_rows_of_another_kind_are_refused(other):
    case = Case("rbf", True, False)
    library = _core.Library(case.kernel.native, None)
    library.append(case.X)
    for store in (case.partition, library):
        with pytest.raises(ValueError, match="same storage type and number of features"):
            store.append(native(other))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("cache_bytes", [0, 10_000, 1 << 20])
def test_derivatives_follow_every_changed_variable(kernel, single, sparse, cache_bytes):
    case = Case(kernel, single, sparse, cache_bytes=cache_bytes)
    for seed in range(6):
        case.change_some(seed)
        tolerance = 1e-4 if single else 1e-11
        assert np.allclose(case.partition.gradient(), case.gradient[case.own], atol=tolerance)


def test_candidates_are_the_best_and_the_free_variables():
    case = Case("rbf", False, False)
    case.change_some(0)
    coordinates, gradient = case.partition.select_candidates(5, True)
    mine = case.own
    derivative, z = case.gradient[mine], case.z[mine]
    largest = mine[z > -1][np.argsort(-derivative[z > -1])[:5]]
    smallest = mine[z < 1][np.argsort(derivative[z < 1])[:5]]
    free = mine[np.abs(z) < 1]
    assert set(coordinates) == {*largest, *smallest, *free}
    assert np.allclose(gradient, case.gradient[coordinates])


def test_recomputing_corrects_derivatives_near_the_extremes():
    case = Case("rbf", True, False)
    for seed in range(4):
        case.change_some(seed)
    intervals = case.partition.intervals()
    count, error = case.partition.recompute_gradient(intervals, 0.5, True)
    assert count > 0
    assert 0 < error < 1e-4
    far = np.abs(case.partition.gradient() - case.gradient[case.own])
    derivative = case.gradient[case.own]
    z = case.z[case.own]
    near = ((z > -1) & (derivative > intervals[0, 0] - 0.4)) | (
        (z < 1) & (derivative < intervals[0, 1] + 0.4)
    )
    assert far[near].max() < 1e-12
    assert case.partition.recompute_gradient(intervals, 0.5, False)[0] == 0
    assert case.partition.recompute_gradient(intervals, np.inf, False)[0] == len(case.own) - count
    assert np.abs(case.partition.gradient() - case.gradient[case.own]).max() < 1e-12


@pytest.mark.parametrize("single", [True, False])
def test_shrinking_leaves_out_fixed_variables_and_is_undone(single):
    case = Case("rbf", single, False)
    case.change(np.arange(400), np.where(case.linear > 0, -1.0, 1.0))
    case.change_some(0)
    intervals = np.array([[0.5, -0.5]])
    left = case.partition.active(intervals)
    case.partition.shrink(intervals)
    coordinates, _ = case.partition.select_candidates(400, True)
    assert 0 < len(set(coordinates)) <= left < 300
    case.change_some(1, among=coordinates)
    case.change_some(2, among=np.arange(100))  # of another partition
    again = case.partition.active(intervals / 4)
    case.partition.shrink(intervals / 4)
    assert again < left
    case.change_some(3)  # including shrunk ones, as after a recovery
    tolerance = 1e-4 if single else 1e-11
    case.partition.unshrink()
    case.partition.unshrink()
    assert np.allclose(case.partition.gradient(), case.gradient[case.own], atol=tolerance)
    free = {*case.own[np.abs(case.z[case.own]) < 1]}
    assert free <= {*case.partition.select_candidates(1, True)[0]}


@pytest.mark.parametrize("sparse", [True, False])
def test_a_library_returns_its_rows(sparse):
    case = Case("rbf", False, sparse)
    library = _core.Library(case.kernel.native, None)
    library.append(case.native)
    library.append(case.native)
    some = np.array([3, 500, 7])
    block = np.empty((len(some), len(some)))
    library.fill_block(some, True, 2, block)
    rows = some % 400
    assert np.allclose(block, case.K[np.ix_(rows, rows)])
    taken = library.take(some)
    if sparse:
        starts, columns, values, features = taken
        taken = scipy.sparse.csr_matrix((values, columns, starts), (3, features)).toarray()
    assert (taken == case.X[rows]).all()


def test_an_empty_partition():
    X = np.zeros((0, 5))
    partition = _core.Partition(X, None, Kernel("rbf").native, 1)
    none = np.zeros(0)
    nobody = np.zeros(0, np.int64)
    point = _core.Point(none, none, none, None, None, np.zeros(2, np.int64))
    partition.begin(nobody, nobody, none, point, 10, 1000, True)
    partition.append(np.ones((2, 5)))
    partition.introduce(np.array([1, 3]), np.array([0, 1]))
    partition.update_gradient(np.array([0, 1]), np.ones(2), np.ones(2, bool))
    assert [len(part) for part in partition.select_candidates(3, True)] == [0, 0]
    assert partition.recompute_gradient(partition.intervals(), 1.0, True) == (0, 0.0)


def test_indices_out_of_range_are_refused():
    case = Case("rbf", False, False)
    with pytest.raises(ValueError, match="in range"):
        case.partition.update_gradient(np.array([400]), np.ones(1), np.ones(1, bool))
    with pytest.raises(ValueError, match="in range"):
        case.partition.introduce(np.array([0]), np.array([400]))
