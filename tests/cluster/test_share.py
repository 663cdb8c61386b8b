"""The native share against kernel matrices in NumPy."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from pairstep import _core
from pairstep.svm.machine import Kernel, native

KERNELS = {
    "rbf": (Kernel("rbf", 0.2), lambda X, Y: rbf_kernel(X, Y, gamma=0.2)),
    "linear": (Kernel("linear"), linear_kernel),
}


class Case:
    """A dual of n accounts, those from 100 on in the share; and what its prices should be."""

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
        self.share = _core.Share(native(mine), None, self.kernel.native, 2)
        self.lower, self.upper = np.full(n, -1.0), np.full(n, 1.0)
        point = _core.Point(
            np.zeros(m), self.lower[self.own], self.upper[self.own], None, None, np.array([0, m])
        )
        self.share.begin(
            self.own, np.arange(m), self.linear[self.own], point, n, cache_bytes, single
        )
        self.share.append(self.native)  # movers have the numbers of accounts
        self.share.introduce(np.arange(n), np.arange(n))

    @property
    def gradient(self):
        return self.K @ self.z + self.linear

    def move(self, accounts, x):
        self.z[accounts] = x
        free = np.abs(self.z[accounts]) < 1
        self.share.advance(accounts, self.z[accounts], free)

    def move_some(self, seed, among=None):
        random = np.random.default_rng(seed)
        accounts = random.choice(400 if among is None else among, size=30, replace=False)
        self.move(np.sort(accounts), random.choice([-1.0, -0.3, 0.0, 0.2, 1.0], size=30))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("cache_bytes", [0, 10_000, 1 << 20])
def test_prices_follow_whoever_moves(kernel, single, sparse, cache_bytes):
    case = Case(kernel, single, sparse, cache_bytes=cache_bytes)
    for seed in range(6):
        case.move_some(seed)
        tolerance = 1e-4 if single else 1e-11
        assert np.allclose(case.share.gradient(), case.gradient[case.own], atol=tolerance)


def test_a_survey_tells_of_the_best_and_of_the_free():
    case = Case("rbf", False, False)
    case.move_some(0)
    accounts, gradient = case.share.survey(5, True)
    mine = case.own
    price, z = case.gradient[mine], case.z[mine]
    sellers = mine[z > -1][np.argsort(-price[z > -1])[:5]]
    buyers = mine[z < 1][np.argsort(price[z < 1])[:5]]
    free = mine[np.abs(z) < 1]
    assert set(accounts) == {*sellers, *buyers, *free}
    assert np.allclose(gradient, case.gradient[accounts])


def test_verification_puts_prices_right_near_the_extremes():
    case = Case("rbf", True, False)
    for seed in range(4):
        case.move_some(seed)
    markets = case.share.markets()
    count, error = case.share.verify(markets, 0.5, True)
    assert count > 0
    assert 0 < error < 1e-4
    far = np.abs(case.share.gradient() - case.gradient[case.own])
    price = case.gradient[case.own]
    z = case.z[case.own]
    near = ((z > -1) & (price > markets[0, 0] - 0.4)) | ((z < 1) & (price < markets[0, 1] + 0.4))
    assert far[near].max() < 1e-12
    assert case.share.verify(markets, 0.5, False)[0] == 0
    assert case.share.verify(markets, np.inf, False)[0] == len(case.own) - count
    assert np.abs(case.share.gradient() - case.gradient[case.own]).max() < 1e-12


@pytest.mark.parametrize("single", [True, False])
def test_shrinking_leaves_out_who_cannot_trade_and_is_taken_back(single):
    case = Case("rbf", single, False)
    case.move(np.arange(400), np.where(case.linear > 0, -1.0, 1.0))
    case.move_some(0)
    markets = np.array([[0.5, -0.5]])
    left = case.share.active(markets)
    case.share.shrink(markets)
    accounts, _ = case.share.survey(400, True)
    assert 0 < len(set(accounts)) <= left < 300
    case.move_some(1, among=accounts)
    case.move_some(2, among=np.arange(100))  # of another share
    again = case.share.active(markets / 4)
    case.share.shrink(markets / 4)
    assert again < left
    case.move_some(3)  # also who was left out, as a share that was restored may be told
    tolerance = 1e-4 if single else 1e-11
    case.share.unshrink()
    case.share.unshrink()
    assert np.allclose(case.share.gradient(), case.gradient[case.own], atol=tolerance)
    free = {*case.own[np.abs(case.z[case.own]) < 1]}
    assert free <= {*case.share.survey(1, True)[0]}


@pytest.mark.parametrize("sparse", [True, False])
def test_a_library_gives_back_what_it_was_given(sparse):
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


def test_an_empty_share():
    X = np.zeros((0, 5))
    share = _core.Share(X, None, Kernel("rbf").native, 1)
    none = np.zeros(0)
    nobody = np.zeros(0, np.int64)
    point = _core.Point(none, none, none, None, None, np.zeros(2, np.int64))
    share.begin(nobody, nobody, none, point, 10, 1000, True)
    share.append(np.ones((2, 5)))
    share.introduce(np.array([1, 3]), np.array([0, 1]))
    share.advance(np.array([0, 1]), np.ones(2), np.ones(2, bool))
    assert [len(part) for part in share.survey(3, True)] == [0, 0]
    assert share.verify(share.markets(), 1.0, True) == (0, 0.0)


def test_what_is_out_of_range_is_refused():
    case = Case("rbf", False, False)
    with pytest.raises(ValueError, match="out of range"):
        case.share.advance(np.array([400]), np.ones(1), np.ones(1, bool))
    with pytest.raises(ValueError, match="out of range"):
        case.share.introduce(np.array([0]), np.array([400]))
