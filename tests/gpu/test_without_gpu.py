"""The GPU code without a GPU: NumPy replaces CuPy.

Parts are replaced and limits are lowered, because no other way leads small problems through it.
"""

import math
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from stand_in import StandIn

import pairstep.gpu.device
import pairstep.gpu.newton
import pairstep.gpu.svm
import pairstep.svm.driver
from pairstep._core import StopReason
from pairstep.gpu.gram import Computed
from pairstep.gpu.newton import Newton
from pairstep.gpu.oracle import KernelOracle
from pairstep.gpu.points import Data
from pairstep.gpu.shared_kernel import DeviceKernels
from pairstep.result import Status
from pairstep.svm import SVC, SVCCV, SVR, OneClassSVM
from pairstep.svm.duals import (
    c_classification,
    epsilon_regression,
    limits,
    nu_classification,
    nu_regression,
    one_class,
)
from pairstep.svm.engine import Kernel, decide, solve
from pairstep.svm.sample import start_from_samples

RBF = Kernel("rbf", 0.2)
KERNELS = [
    RBF,
    Kernel("linear"),
    Kernel("poly", 0.2, 2, 1.0),
    Kernel("sigmoid", 0.05, coef0=0.1),
]


def tune(monkeypatch, **constants):
    tuning = replace(pairstep.gpu.svm.TUNING, **constants)
    monkeypatch.setattr(pairstep.gpu.svm, "TUNING", tuning)


@pytest.fixture(autouse=True)
def everything_on_the_device(monkeypatch):
    tune(monkeypatch, local_size=0)


def data(n=700, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X**2).sum(axis=1) + rng.normal(size=n)
    return X, y


def posed(n=700):
    X, y = data(n)
    sides = np.flatnonzero(y > 4), np.flatnonzero(y <= 4)
    weights = np.random.default_rng(1).uniform(0.5, 2, n)
    return X, {
        "SVC": c_classification(*sides, limits(2.0, weights)),
        "NuSVC": nu_classification(*sides, weights, 0.3),
        "SVR": epsilon_regression(y, limits(2.0, weights), 0.2),
        "NuSVR": nu_regression(y, limits(2.0, weights), 0.4),
        "OneClassSVM": one_class(weights, 0.3),
    }


def solved(X, kernel, *duals, device=None, **options):
    options = {"tol": 1e-3, "max_iter": 10**7, "time_limit": math.inf} | options
    found = solve(X, kernel, duals, cache_bytes=2**27, threads=2, device=device, **options)
    return found if len(found) > 1 else found[0]


def value(dual, solution):
    l1_terms = 0.0 if dual.l1 is None else dual.l1 @ np.abs(solution.z)
    return solution.z @ (solution.gradient + dual.linear) / 2 + l1_terms


# ------------------------------------------------------------------ the same optimum


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("model", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_duals_end_at_the_optimum_of_the_cpu(model, kernel):
    X, duals = posed()
    dual = duals[model]
    there = solved(X, kernel, dual, device=StandIn())
    here = solved(X, kernel, dual)
    if kernel.name != "sigmoid":  # the sigmoid kernel is not convex
        assert there.status == here.status == Status.OPTIMAL
        gap = max(here.duality_gap, there.duality_gap)
        assert abs(value(dual, there) - value(dual, here)) <= gap
    assert (there.z >= dual.lower).all()
    assert (there.z <= dual.upper).all()
    sums = [math.fsum(group) for group in np.split(there.z, dual.starts[1:-1])]
    np.testing.assert_allclose(sums, dual.totals, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("stops", [True, False])
def test_float64_continues_if_float32_does_not_reach_the_tolerance(monkeypatch, stops):
    run, types = pairstep.svm.driver._Driver._run_block_solver, []

    def run_and_note(self, oracle, *arguments):
        types.append(oracle.points.dtype)
        stop, used = run(self, oracle, *arguments)
        return (StopReason.imprecise if types == ["float32"] else stop), used

    monkeypatch.setattr(pairstep.svm.driver._Driver, "_run_block_solver", run_and_note)
    if not stops:  # float32 is not even tried where its rounding is too large for a start
        monkeypatch.setattr(pairstep.gpu.gram.Computed, "rounding", lambda _, points: (
            math.inf if points.dtype == "float32" else 0.0
        ))  # fmt: skip
    X, duals = posed(300)
    found = solved(X, RBF, duals["SVC"], device=StandIn(), tol=1e-9, cold=False)
    assert found.status == Status.OPTIMAL
    assert found.kkt_violation <= 1e-9
    assert types == ["float32", "float64"] if stops else ["float64"]


def test_several_duals_in_parallel():
    X, duals = posed()
    for dual in duals.values():
        there = solved(X, RBF, dual, replace(dual, z=dual.z.copy()), device=StandIn())
        alone = solved(X, RBF, dual, device=StandIn())
        for found in there:
            np.testing.assert_array_equal(found.z, alone.z)


def test_small_duals_are_solved_on_the_cpu(monkeypatch):
    tune(monkeypatch, local_size=250)  # for each of two threads
    X, duals = posed()
    few = c_classification(np.arange(100), np.arange(100, 300), limits(1.0, np.ones(700)))
    device = StandIn()
    found = solved(X, RBF, few, duals["SVC"], few, device=device)
    here, also = solved(X, RBF, few, few)
    np.testing.assert_array_equal(found[0].z, here.z)
    np.testing.assert_array_equal(found[2].z, also.z)
    assert len(found[1].z) == 700
    assert device.packed > 0
    idle = StandIn()
    solved(X, RBF, few, few, device=idle)
    assert idle.packed == 0
    solved(X, RBF, few, device=idle)
    assert idle.packed > 0


# ------------------------------------------------------------------ precomputed kernel matrices


def test_a_matrix_that_does_not_fit_is_left_to_the_cpu():
    X, duals = posed(300)
    K, dual = X @ X.T, duals["SVC"]
    small = StandIn(free=8 * K.size)
    small.solve = None
    found, expected = (
        solved(K, Kernel("precomputed"), dual, device=device) for device in (small, None)
    )
    np.testing.assert_array_equal(found.z, expected.z)


# ------------------------------------------------------------------ Newton's method


def dense(dual, X):
    return np.exp(-RBF.gamma * ((X[:, None] - X) ** 2).sum(axis=2))[np.ix_(dual.rows, dual.rows)]


@pytest.mark.parametrize(
    ("iterations", "violators", "memory"),
    [
        (0, 8192, 2**34),
        (10**6, 8192, 2**34),
        (10**6, 100, 2**34),
        (10**6, 100, 2**20),
        (10**6, 100, 10),
    ],
)
@pytest.mark.parametrize("model", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_newton_alone_finds_the_optimum(model, iterations, violators, memory, monkeypatch):
    monkeypatch.setattr(pairstep.gpu.newton, "CG_ITERATIONS", iterations)
    monkeypatch.setattr(pairstep.gpu.newton, "MAX_VIOLATORS", violators)
    X, duals = posed(400)
    dual = replace(duals[model], z=duals[model].z.copy())
    gram = Computed(StandIn(memory), Data(StandIn(), X, None), RBF, single=False)
    oracle = KernelOracle(gram, dual, gram.points(dual.rows, "float64"), 1e-6)
    newton = Newton(oracle, 1e-6)
    values = []

    def goes_on(violation):
        gradient = oracle.derivatives.gradient
        values.append(value(dual, SimpleNamespace(z=dual.z, gradient=gradient)))
        return True

    while not newton.done and len(values) < 3000:
        newton.descend(10**6, goes_on)
    assert newton.done
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()
    assert (dual.z >= dual.lower).all()
    assert (dual.z <= dual.upper).all()
    sums = [math.fsum(group) for group in np.split(dual.z, dual.starts[1:-1])]
    np.testing.assert_allclose(sums, dual.totals, atol=1e-9)
    truth = dense(dual, X) @ dual.z + dual.linear
    np.testing.assert_allclose(oracle.derivatives.gradient, truth, atol=1e-9)
    here = solved(X, RBF, duals[model], tol=1e-6)
    assert abs(values[-1] - value(dual, here)) <= 1e-4 * max(abs(values[-1]), 1)


def test_newton_declines_problems_that_are_not_convex():
    X, duals = posed(200)
    dual = replace(duals["SVC"], z=duals["SVC"].z.copy())

    class Indefinite(StandIn):
        def kernel_matrix(self, kernel, points, queries):
            return -super().kernel_matrix(kernel, points, queries)

    gram = Computed(Indefinite(), Data(StandIn(), X, None), RBF, single=False)
    oracle = KernelOracle(gram, dual, gram.points(dual.rows, "float64"), 1e-3)
    newton = Newton(oracle, 1e-3)
    newton.descend(10**6, lambda violation: True)
    assert not newton.done
    assert newton.allowance > pairstep.gpu.newton.MAX_PAIR_STEP_READS


def test_newton_is_due_when_pair_steps_have_cost_enough(monkeypatch):
    X, duals = posed()
    plain = solved(X, RBF, duals["SVR"], device=StandIn(), tol=1e-8)
    monkeypatch.setattr(pairstep.gpu.newton, "MAX_PAIR_STEP_READS", 0.0)
    solving = []

    class Noting(StandIn):
        def solve(self, matrix, right):
            solving.append(len(matrix))
            return super().solve(matrix, right)

    helped = solved(X, RBF, duals["SVR"], device=Noting(), tol=1e-8)
    assert solving
    assert helped.status == plain.status == Status.OPTIMAL
    assert helped.n_iter < plain.n_iter
    np.testing.assert_allclose(helped.gradient, plain.gradient, atol=1e-5)


# ------------------------------------------------------------------ data larger than GPU memory


@pytest.mark.parametrize("fraction", [100, 0.3, 0.01])
def test_stripes_give_the_same_answers(fraction):
    X, duals = posed()
    whole, striped = StandIn(), StandIn(free=int(4 * fraction * 8 * X.size))
    for dual in (duals["SVC"], duals["NuSVR"]):
        found = solved(X, RBF, dual, device=striped)
        assert found.status == Status.OPTIMAL
        assert abs(value(dual, found) - value(dual, solved(X, RBF, dual, device=whole))) <= 1e-2
    assert (striped.packed > whole.packed) == (fraction < 1)


def test_sparse_data_are_made_dense():
    X, duals = posed()
    X[np.abs(X) < 0.5] = 0
    sparse, dense = (
        solved(data, RBF, duals["SVC"], device=StandIn()) for data in (scipy.sparse.csr_array(X), X)
    )
    assert sparse.status == Status.OPTIMAL
    assert abs(value(duals["SVC"], sparse) - value(duals["SVC"], dense)) <= 1e-2
    with pytest.raises(ValueError, match=r"X is sparse.*GB.*device=\"cpu\""):
        solved(scipy.sparse.csr_array(X), RBF, duals["SVC"], device=StandIn(free=1000))


# ------------------------------------------------------------------ the start from samples


def test_large_duals_start_from_samples(monkeypatch):
    tune(monkeypatch, sample_min_size=100, sample_min_largest=None)
    X, duals = posed(1700)
    sizes = []
    start_from_samples(
        duals["SVC"],
        lambda sample: sizes.append(len(sample.z)) is None,
        lambda sample, whole: whole.linear,
        growth=8,
        min_size=100,
    )
    assert len(sizes) == 1  # an unsolved sample is empty and predicts nothing
    for dual in (duals["SVC"], duals["SVR"], duals["OneClassSVM"]):
        warm = solved(X, RBF, dual, device=StandIn())
        cold = solved(X, RBF, dual, device=StandIn(), cold=False)
        assert warm.status == cold.status == Status.OPTIMAL
        gap = max(warm.duality_gap, cold.duality_gap)
        assert abs(value(dual, warm) - value(dual, cold)) <= gap


# ------------------------------------------------------------------ limits, callbacks and errors


def test_limits_are_kept():
    X, duals = posed()
    dual = duals["SVR"]
    assert solved(X, RBF, dual, device=StandIn(), time_limit=0.0).status == Status.TIME_LIMIT
    few = solved(X, RBF, dual, device=StandIn(), max_iter=10, cold=False)
    assert few.status == Status.MAX_ITER
    assert few.n_iter == 10


def test_a_callback_ends_the_fit(monkeypatch):
    tune(monkeypatch, rounds_per_call=1)
    X, duals = posed()

    def never(violation, iterations, solved):
        return False

    class Slow(StandIn):
        def add_sums(self, *arguments):
            super().add_sums(*arguments)
            time.sleep(0.05)

    found = solved(X, RBF, duals["SVR"], device=Slow(), tol=1e-12, keep_going=never)
    assert found.status == Status.STOPPED


def test_errors_in_a_thread_are_raised():
    class Broken(StandIn):
        def kernel_matrix(self, *_):
            raise MemoryError("no more")

        def add_sums(self, *_):
            pass

    X, duals = posed()
    with pytest.raises(MemoryError, match="no more"):
        solved(X, RBF, *4 * [duals["SVC"]], device=Broken())


# As CuPy raises them if GPU memory is full.
class OutOfMemoryError(MemoryError):
    pass


class CUBLASError(RuntimeError):
    pass


class CUSOLVERError(RuntimeError):
    pass


class Stream(nullcontext):
    def synchronize(self):
        pass


class FullCuda(pairstep.gpu.device.Cuda):
    """The real device's check of errors, with errors as CuPy raises them."""

    def __init__(self, free):
        runtime = SimpleNamespace(memGetInfo=lambda: (free, 2**37))
        memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
        self.freed, self.number, self._local = 0, -1, threading.local()
        pool = SimpleNamespace(free_bytes=lambda: 0, free_all_blocks=self._free)
        self.xp = SimpleNamespace(
            cuda=SimpleNamespace(
                runtime=runtime, memory=memory, Stream=self._stream, Device=nullcontext
            ),
            get_default_memory_pool=lambda: pool,
        )

    def _free(self):
        self.freed += 1

    def _stream(self, non_blocking):
        return Stream()


@pytest.mark.parametrize(
    ("error", "free", "is_full"),
    [
        (OutOfMemoryError("Out of memory allocating 512 bytes"), 2**30, True),
        (CUBLASError("CUBLAS_STATUS_ALLOC_FAILED"), 2**30, True),
        (CUBLASError("CUBLAS_STATUS_NOT_INITIALIZED"), 2**20, True),
        (CUBLASError("CUBLAS_STATUS_NOT_INITIALIZED"), 2**30, False),
        (CUSOLVERError("CUSOLVER_STATUS_INTERNAL_ERROR"), 2**20, True),
        (MemoryError("on the CPU"), 2**20, False),
        (ValueError("of something else"), 2**20, False),
    ],
)
def test_out_of_memory_errors_are_recognized(error, free, is_full):
    assert FullCuda(free).is_full(error) is is_full


@pytest.mark.parametrize("free", [2**20, 2**30])
def test_unused_memory_blocks_are_freed_for_other_libraries(free):
    device = FullCuda(free)
    with device.at_work():
        assert device.freed == (free < 2**28)


@pytest.mark.parametrize("fails", ["pack", "kernel_matrix", "add_sums", "free_bytes"])
def test_out_of_memory_names_the_bytes_needed_and_free(fails):
    class Full(StandIn):
        def is_full(self, error):
            return isinstance(error, CUBLASError)

    def failing(*_):
        raise CUBLASError("CUBLAS_STATUS_NOT_INITIALIZED")

    X, duals = posed()
    device = Full(free=3 * 2**20)
    setattr(device, fails, failing)
    free = "almost nothing is free" if fails == "free_bytes" else "3 MB are free"
    said = rf"a fit of 700 samples needs at least [\d.]+ MB, and {free}.* device=\"cpu\""
    with pytest.raises(MemoryError, match=said) as caught:
        solved(X, RBF, *4 * [duals["SVC"]], device=device)
    assert isinstance(caught.value.__cause__, CUBLASError)
    if fails != "kernel_matrix":
        with pytest.raises(MemoryError, match=rf"a decision on 700 samples needs .* {free}"):
            decide(X, RBF, np.ones((700, 1)), X, threads=1, device=device)


# ------------------------------------------------------------------ decisions


# ------------------------------------------------------------------ estimators


@pytest.fixture
def stand_in(monkeypatch):
    devices = []

    def make(number):
        devices.append(StandIn())
        devices[-1].number = number
        return devices[-1]

    monkeypatch.setattr(pairstep.gpu.device, "Cuda", make)
    return devices


def test_a_symmetric_problem_has_no_intercept(stand_in):
    """It is a tie up to the rounding of the gradient."""
    X = np.concatenate([data(200)[0], -data(200)[0]])
    model = SVC(kernel="linear", device="cuda").fit(X, X[:, 0] > 0)
    assert stand_in
    assert model.intercept_[0] == 0


def test_callable_kernels_need_no_device(stand_in):
    X, y = data(200)
    SVC(kernel=lambda A, B: A @ B.T, device="cuda").fit(X, y > 4).predict(X)
    SVC(device="auto").fit(X, y > 4).predict(X)
    assert stand_in == []


class OnDevice:
    """Looks like an array in the memory of a GPU."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def __dlpack_device__(self):
        return 2, 3

    def get(self):
        return self.array


def test_results_have_the_array_type_of_the_input(stand_in, monkeypatch):
    cupy = SimpleNamespace(from_dlpack=lambda array: array, asarray=OnDevice)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, OnDevice.__module__.partition(".")[0], cupy)
    X, y = data()
    model = SVR(device="auto").fit(OnDevice(X), OnDevice(y), sample_weight=OnDevice(np.ones(700)))
    assert [device.number for device in stand_in] == [3]  # the GPU that X is on
    assert type(model.dual_coef_) is np.ndarray
    found = model.predict(OnDevice(X))
    assert type(found) is OnDevice
    assert len(stand_in) == 2
    np.testing.assert_allclose(found.get(), SVR().fit(X, y).predict(X), atol=0.01)
    names = SVC(device="auto").fit(OnDevice(X), np.where(y > 4, "far", "near"))
    assert set(names.predict(OnDevice(X))) == {"far", "near"}
    inside = OneClassSVM(device="auto", nu=0.1).fit(OnDevice(X))
    assert type(inside.score_samples(OnDevice(X))) is OnDevice
    assert type(model.predict(X)) is np.ndarray
    assert len(stand_in) == 6


# ------------------------------------------------------------------ searches


@pytest.fixture
def searching(monkeypatch):
    monkeypatch.setattr(pairstep.gpu.svm, "MIN_SEARCH_SIZE", 0)


GRID = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.05, 0.5], "cv": 3, "tol": 1e-4}


@pytest.mark.parametrize("matrices", [0, 1, 2])
def test_a_search_uses_the_matrices_that_fit(matrices, stand_in, searching, monkeypatch):
    X, y = data(240)
    read = []

    class Small(StandIn):
        def add_rows(self, matrix, *arguments):
            read.append(matrix)
            super().add_rows(matrix, *arguments)

    free = int((matrices + 0.1) * 4 * 240**2 / pairstep.gpu.shared_kernel.MATRIX_FRACTION)
    monkeypatch.setattr(pairstep.gpu.device, "Cuda", lambda number: Small(free=free))
    kernels = DeviceKernels(Small(free=free), X, 5, np.arange(240), 2**27, np.float32)
    assert kernels.at_once == max(matrices, 1)
    there = SVCCV(device="cuda", **GRID).fit(X, y > 4)
    here = SVCCV(**GRID).fit(X, y > 4)
    assert bool(read) == bool(matrices)
    assert all(matrix.dtype == np.float32 and matrix.shape == (240, 240) for matrix in read)
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=0.013
    )


def test_a_search_ends_in_time(searching, monkeypatch):
    class Slow(StandIn):
        def add_rows(self, *arguments):
            time.sleep(0.3)
            super().add_rows(*arguments)

    monkeypatch.setattr(pairstep.gpu.device, "Cuda", lambda number: Slow())
    X, y = data(200)
    with pytest.warns(ConvergenceWarning, match="time_limit=0.2: . of 6 candidates were left out"):
        SVCCV(device="cuda", time_limit=0.2, refit=False, **GRID).fit(X, y > 4)


def test_values_too_large_for_float32_are_not_stored(searching):
    X = 1e20 * data(50)[0]
    kernels = DeviceKernels(StandIn(), X, 1, np.arange(50), 2**27, np.float32)
    assert kernels.of(Kernel("poly", 1.0, 2), 2).stored is None
    assert kernels.of(RBF, 2).stored is not None


def test_small_searches_stay_on_the_cpu(stand_in):
    X, y = data(200)
    search = SVCCV(device="cuda", refit=False, **GRID).fit(X, y > 4)
    assert stand_in == []
    expected = SVCCV(refit=False, **GRID).fit(X, y > 4).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


def test_a_search_names_the_memory_that_it_needs(searching, monkeypatch):
    class Full(StandIn):
        def is_full(self, error):
            return isinstance(error, OutOfMemoryError)

        def kernel_matrix(self, *_):
            raise OutOfMemoryError("Out of memory allocating 512 bytes")

    monkeypatch.setattr(pairstep.gpu.device, "Cuda", lambda number: Full())
    X, y = data(200)
    with pytest.raises(MemoryError, match=r"a search over 200 samples needs at least .* are free"):
        SVCCV(device="cuda", **GRID).fit(X, y > 4)


# ------------------------------------------------------------------ missing packages and hardware


def test_a_gpu_is_chosen_by_its_number(stand_in):
    X, y = data(200)
    model = SVC(device="cuda:1").fit(X, y > 4)
    model.set_params(device="cuda").predict(X)
    assert [device.number for device in stand_in] == [1, 0]


class CUDARuntimeError(RuntimeError):
    pass


def failing(error):
    def fail(*_):
        raise CUDARuntimeError(error)

    return fail


def old(number):
    return SimpleNamespace(compute_capability="75")


@pytest.mark.parametrize(
    ("count", "device", "answer", "error", "message"),
    [
        (lambda: 1, None, None, ValueError, r'no device="cuda:2": CUDA found 1 GPU'),
        (failing("cudaErrorNoDevice"), None, None, RuntimeError,
         r'NVIDIA GPU.*cudaErrorNoDevice.*device="cpu"'),
        (lambda: 3, old, None, RuntimeError,
         r'capability 8\.0 or higher.*has 7\.5.*device="cpu"'),
        (lambda: 3, failing("cudaErrorMemoryAllocation"), "87", MemoryError,
         r'needs about 530 MB .* 87 MB are free.*device="cpu"'),
        (lambda: 3, failing("cudaErrorMemoryAllocation"), None, MemoryError,
         r'needs about 530 MB .* less is free.*device="cpu"'),
    ],
    ids=["number", "none", "old", "full", "full, unknown"],
)  # fmt: skip
def test_gpus_that_cannot_be_used(count, device, answer, error, message, monkeypatch):
    """`answer` is that of nvidia-smi to how much memory is free."""

    def run(command, **_):
        assert command[-1] == "0000:01:00.0"
        if answer is None:
            raise FileNotFoundError("nvidia-smi")
        return SimpleNamespace(stdout=f"{answer}\n")

    runtime = SimpleNamespace(
        getDeviceCount=count, CUDARuntimeError=CUDARuntimeError,
        deviceGetPCIBusId=lambda number: "0000:01:00.0",
    )  # fmt: skip
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=device))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(pairstep.gpu.device.subprocess, "run", run)
    model = SVR(device="cuda:2")
    with pytest.raises(error, match=message):
        model.fit(*data(50))
    assert not hasattr(model, "support_")


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    X, y = data(50)
    with pytest.raises(ImportError, match=r"device=\"cuda\" needs cupy.*pairstep\[cuda\]"):
        SVR(device="cuda").fit(X, y)
