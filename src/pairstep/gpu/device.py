"""The GPU: CuPy, and the CUDA kernels of kernels.cu and vectors.cu.

The protocol `Device` has everything that the oracle needs from a GPU, so that NumPy can replace it
in tests.

CuPy compiles our kernels on first use and caches them on disk. It would also compile a kernel for
every array expression, each with headers that take longer than all of our kernels. So CuPy arrays
are only memory here: they are created, copied and passed to our kernels and to cuSOLVER.
"""

from __future__ import annotations

import math
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..constraints import Indices
from ..extras import needed
from ..svm.engine import KERNELS, Kernel

# These must agree with kernels.cu and vectors.cu.
EDGE = {"float32": 128, "float64": 64}  # points and queries per tile
PARTIAL_SUMS = {"float32": 1, "float64": 4}  # warps that hold partial sums of the same point
SLAB = 8  # the number of features is padded to a multiple of this
THREADS = 256  # per CUDA block
BINS = 2048  # of the histogram that selects candidates
GROUP_BYTES = 2 * 8 + 2 * 4 * BINS + 2 * 4  # size of the struct Group

# Compute capability times 10. Tensor cores multiply in float64 since 8.0.
MIN_COMPUTE_CAPABILITY = 80

# Points are padded to a multiple of this, the larger of the two tile edges.
PAD = 128
# Outputs that `add_sums` computes in one launch: their sums must fit into shared memory.
MAX_OUTPUTS = 12
# Outputs that `add_rows` computes in one launch: their sums must fit into registers.
MAX_ROW_OUTPUTS = 4
# CUDA blocks that keep all multiprocessors of a large GPU busy: 132 multiprocessors, 8 each.
TARGET_BLOCKS = 1056
# Largest second dimension of a grid.
MAX_GRID_ROWS = 2**16 - 1
# CUDA blocks per group that scan the variables: 132 multiprocessors, 2 each. Each thread has at
# least 4 variables.
MAX_SCAN_BLOCKS, VARIABLES_PER_SCAN_BLOCK = 264, 1024

# cuBLAS, cuSOLVER and the driver allocate a few hundred MB outside CuPy's memory pool. If less than
# this is free, the pool is emptied, and their errors count as a lack of memory.
LIBRARY_BYTES = 2**28
# The types of their errors, and the words that report that memory is exhausted. If memory is
# exhausted, cuBLAS and cuSOLVER may instead report a failed initialization or an internal error.
LIBRARY_ERRORS = {"CUDARuntimeError", "CUDADriverError", "CUBLASError", "CUSOLVERError"}
NO_MEMORY = ("MemoryAllocation", "OUT_OF_MEMORY", "ALLOC_FAILED")

# Pinned memory for copies of a thread to the GPU. Longer arrays are copied by CuPy.
STAGING_BYTES = 2**22

# GPU memory that CUDA takes for each process: 530 MB on an H200.
CONTEXT_BYTES = 530 * 2**20

# Candidates that are copied to the CPU together with their number. If there are more, a second copy
# is needed; if this is larger, every copy takes longer.
FIRST_COPY = 4096
# Sorting replaces the histogram if it selects more than this many times the candidates needed: most
# derivatives are then in one bin.
MAX_EXCESS = 16


@dataclass(frozen=True)
class Packed:
    """Points on the GPU, one row per feature, padded, and their squared norms."""

    values: Any
    squares: Any
    count: int


class Derivatives(NamedTuple):
    """Arrays on the GPU from which the one-sided derivatives follow. L1 terms are centered at 0."""

    gradient: Any
    x: Any
    lower: Any
    upper: Any
    l1: Any | None
    starts: Any


class Device(Protocol):
    """What the oracle needs from a GPU. Vectors are NumPy arrays unless stated otherwise."""

    xp: Any  # CuPy, or NumPy in tests

    def at_work(self) -> AbstractContextManager[None]:
        """Return a context in which a thread uses the GPU; leaving it waits for all its work."""

    def compile(self, kernel: Kernel, dtypes: Sequence[str]) -> None:
        """Compile all that is needed for kernel values of these types, if that takes long."""

    def free_bytes(self) -> int:
        """Return the free memory in bytes."""

    def is_full(self, error: Exception) -> bool:
        """Return whether an error was raised because the GPU has no memory left."""

    def fetch(self, array: Any) -> Any:
        """Copy an array to the CPU. The next call by the same thread may overwrite the copy."""

    def sent(self, array: NDArray[Any]) -> Any:
        """Return a copy of a short array on the GPU."""

    def send(self, values: Array, target: Any) -> None:
        """Copy an array of the CPU to a contiguous array of the same type on the GPU."""

    def pack(self, X: Any, rows: Any | None, center: Any, dtype: str) -> Packed:
        """Return some rows of X (all if None) minus the center, as points."""

    def kernel_matrix(
        self, kernel: Kernel, points: Packed, queries: Packed, out: Any = None
    ) -> Any:
        """Return the kernel of all points with all queries, computed in float64.

        `out` is the matrix to overwrite, which may have float32 entries.
        """

    def add_sums(
        self, kernel: Kernel, points: Packed, queries: Packed, weights: Array, sums: Any
    ) -> None:
        """Compute sums[o, p] += sum_q weights[o, q] k(point p, query q), on the GPU."""

    def add_rows(self, matrix: Any, rows: Indices, weights: Array, columns: Any, sums: Any) -> None:
        """Compute sums[o, p] += sum_k weights[o, k] matrix[rows[k], columns[p]], on the GPU."""

    def submatrix(self, matrix: Any, rows: Indices, ridge: float = 0.0) -> Any:
        """Return matrix[rows, rows] plus a ridge on its diagonal, on the GPU."""

    def diagonal(self, matrix: Any) -> Array:
        """Return the diagonal of a matrix on the GPU."""

    def scatter(self, target: Any, indices: Indices, values: Array) -> None:
        """Set target[indices] = values, on the GPU."""

    def product(self, matrix: Any, vector: Array) -> Array:
        """Return the product of a symmetric matrix on the GPU with a vector."""

    def solve(self, matrix: Any, right: Array) -> Array | None:
        """Solve a symmetric system with several right-hand sides.

        Returns None if the matrix is not positive definite. The matrix may be overwritten.
        """

    def outliers(
        self, derivatives: Derivatives, count: int, with_free: bool
    ) -> tuple[Any, Array] | None:
        """Return the candidates for a working set and their gradients, in any order.

        These are at least the `count` variables of each group with the largest left derivatives,
        the `count` with the smallest right derivatives and, with `with_free`, all free
        variables. Returns None if the method would select far more.
        """


class Lane:
    """A CUDA stream, and pinned memory for copies. One thread at a time uses it.

    Idle lanes are kept. CuPy only reuses the memory of an array for the same stream, and pinned
    memory takes long to allocate.
    """

    idle: ClassVar[dict[int, list[Lane]]] = {}  # by number of the GPU

    def __init__(self, xp: Any) -> None:
        self.stream = xp.cuda.Stream(non_blocking=True)
        self.buffer: Any = None  # for copies to the CPU
        self.staging: Any = None  # for copies to the GPU
        self.staged = 0  # bytes of `staging` whose copies may not have ended

    @classmethod
    def of(cls, xp: Any, number: int) -> Lane:
        """Return an idle lane of a GPU, or a new one."""
        try:
            return cls.idle.setdefault(number, []).pop()
        except IndexError:
            return cls(xp)


class Cuda:
    """An NVIDIA GPU, by its number."""

    def __init__(self, number: int = 0) -> None:
        self.xp = needed("cupy", by='device="cuda"')
        self.number = number
        runtime = self.xp.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise RuntimeError(
                f'device="cuda" needs an NVIDIA GPU and its driver, but CUDA found none ({error}); '
                'use device="cpu"'
            ) from error
        if number >= count:
            raise ValueError(
                f'there is no device="cuda:{number}": CUDA found {count} GPU'
                f"{'s' if count > 1 else ''}, numbered from 0"
            )
        try:
            capability = self.xp.cuda.Device(number).compute_capability
        except runtime.CUDARuntimeError as error:
            if not any(word in str(error) for word in NO_MEMORY):
                raise
            raise MemoryError(
                f"the GPU is out of memory: CUDA itself needs about {CONTEXT_BYTES / 2**20:.0f} MB "
                f"for each process, and {_free_before_start(runtime, number)} free. Free memory "
                'that other processes hold, or use device="cpu"'
            ) from error
        if int(capability) < MIN_COMPUTE_CAPABILITY:
            raise RuntimeError(
                'device="cuda" needs a GPU of compute capability '
                f"{MIN_COMPUTE_CAPABILITY / 10} or higher (2020 or newer), but this one has "
                f'{int(capability) / 10}; use device="cpu"'
            )
        self._local = threading.local()  # the lane of each thread

    def _current(self) -> AbstractContextManager[Any]:
        """Return a context in which CuPy uses this GPU."""
        return self.xp.cuda.Device(self.number)  # type: ignore[no-any-return]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Return a context with a CUDA stream for this thread."""
        outer = getattr(self._local, "lane", None)
        with self._current():
            self._leave_room()
            lane = self._local.lane = Lane.of(self.xp, self.number)
            try:
                with lane.stream:
                    yield
                    lane.stream.synchronize()
                Lane.idle[self.number].append(lane)  # but not after an error
            finally:
                self._local.lane = outer

    def compile(self, kernel: Kernel, dtypes: Sequence[str]) -> None:
        """Compile what a kernel needs, in parallel."""
        _compile_all(self.number, kernel.name, kernel.differences, tuple(dtypes))

    def free_bytes(self) -> int:
        """Return the free memory in bytes, including that of CuPy's pool."""
        with self._current():
            pool = self.xp.get_default_memory_pool()
            return self._free_for_libraries() + int(pool.free_bytes())

    def _free_for_libraries(self) -> int:
        """Return the free memory outside CuPy's pool in bytes."""
        with self._current():
            free, _ = self.xp.cuda.runtime.memGetInfo()
        return int(free)

    def is_full(self, error: Exception) -> bool:
        """Return whether CuPy or one of NVIDIA's libraries ran out of memory."""
        if isinstance(error, self.xp.cuda.memory.OutOfMemoryError):
            return True
        if type(error).__name__ not in LIBRARY_ERRORS:
            return False
        return any(word in str(error) for word in NO_MEMORY) or (
            self._free_for_libraries() < LIBRARY_BYTES
        )

    def fetch(self, array: Any) -> Any:
        """Copy an array to pinned memory of this thread, which the next call reuses."""
        lane = getattr(self._local, "lane", None)
        if lane is None:
            return array.get()
        if lane.buffer is None or len(lane.buffer) < array.nbytes:
            memory = self.xp.cuda.alloc_pinned_memory(array.nbytes + array.nbytes // 4)
            lane.buffer = np.frombuffer(memory, np.uint8)
        out = lane.buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
        array.get(out=out)
        lane.staged = 0  # this has waited for all earlier copies
        return out

    def sent(self, array: NDArray[Any]) -> Any:
        """Copy a short array to the GPU.

        CuPy's own copies take several calls of the driver. Each of them releases the interpreter's
        lock, for which a thread may then have to wait.
        """
        lane, size = getattr(self._local, "lane", None), array.nbytes
        if lane is None or size > STAGING_BYTES:
            return self.xp.asarray(np.ascontiguousarray(array))
        if lane.staging is None:
            memory = self.xp.cuda.alloc_pinned_memory(STAGING_BYTES)
            lane.staging = np.frombuffer(memory, np.uint8, STAGING_BYTES)
        if lane.staged + size > STAGING_BYTES:
            lane.stream.synchronize()
            lane.staged = 0
        staged = lane.staging[lane.staged : lane.staged + size].view(array.dtype)
        staged.reshape(array.shape)[...] = array
        lane.staged += -(-size // 16) * 16  # keeps numbers aligned
        out = self.xp.empty(array.shape, array.dtype)
        out.data.copy_from_host_async(staged.ctypes.data, size, lane.stream)
        return out

    def send(self, values: Array, target: Any) -> None:
        """Copy an array of the CPU to a contiguous array of the same type on the GPU."""
        target.set(values)

    def pack(self, X: Any, rows: Any | None, center: Any, dtype: str) -> Packed:
        """Return some rows of X (all if None) minus the center, as points."""
        count, features = len(X) if rows is None else len(rows), X.shape[1]
        stride, padded = _padded(count, PAD), _padded(features, SLAB)
        values = self.xp.empty((padded, stride), dtype)
        squares = self.xp.empty(stride, dtype)
        threads = 32 if count < 2**14 else THREADS  # small blocks spread few points over the GPU
        self._vector_kernel(f"pack_{X.dtype}_{dtype}")(
            (-(-stride // threads),), (threads,),
            (X, rows, center, count, stride, np.int32(features), np.int32(padded), values, squares),
        )  # fmt: skip
        return Packed(values, squares, count)

    def kernel_matrix(
        self, kernel: Kernel, points: Packed, queries: Packed, out: Any = None
    ) -> Any:
        """Return the kernel of all points with all queries, computed in float64."""
        matrix = self.xp.empty((points.count, queries.count)) if out is None else out
        edge = EDGE["float64"]
        self._kernel(f"matrix_{matrix.dtype}", "float64", kernel)(
            (-(-points.count // edge), -(-queries.count // edge)), (THREADS,),
            (*_points(points), points.count, *_points(queries), queries.count,
             np.int32(len(points.values)), *_parameters(kernel), matrix),
        )  # fmt: skip
        return matrix

    def add_sums(
        self, kernel: Kernel, points: Packed, queries: Packed, weights: Array, sums: Any
    ) -> None:
        """Compute sums[o, p] += sum_q weights[o, q] k(point p, query q), on the GPU."""
        dtype = str(points.values.dtype)
        edge, stride = EDGE[dtype], queries.values.shape[1]
        padded = np.zeros((len(weights), stride), dtype)
        padded[:, : queries.count] = weights
        tiles = -(-points.count // edge)
        # The tiles of a few points do not occupy all multiprocessors, so split the queries, too.
        splits = max(min(TARGET_BLOCKS // tiles, stride // edge), 1)
        for first in range(0, len(weights), MAX_OUTPUTS):
            some = self.xp.asarray(padded[first : first + MAX_OUTPUTS])
            out = sums[first : first + MAX_OUTPUTS]
            parts = out if splits == 1 else self.xp.zeros((splits, *out.shape))
            self._kernel("add_sums", dtype, kernel)(
                (tiles, splits), (THREADS,),
                (*_points(points), points.count, *_points(queries), np.int32(len(points.values)),
                 *_parameters(kernel), some, np.int32(len(some)), parts, parts.strides[-2] // 8),
                shared_mem=len(some) * PARTIAL_SUMS[dtype] * edge * 8,
            )  # fmt: skip
            if splits > 1:
                self._add_parts(parts, out)

    def add_rows(self, matrix: Any, rows: Indices, weights: Array, columns: Any, sums: Any) -> None:
        """Compute sums[o, p] += sum_k weights[o, k] matrix[rows[k], columns[p]], on the GPU."""
        if len(rows) > 0 and len(columns) > 0:
            self._add_rows(matrix, self.sent(rows), weights, columns, len(columns), sums)

    def _add_rows(
        self, matrix: Any, rows: Any, weights: Array, columns: Any, width: int, sums: Any
    ) -> None:
        """Add rows, all if `rows` is None, at columns, all if `columns` is None."""
        height = weights.shape[1]
        tiles = -(-width // THREADS)
        splits = max(min(TARGET_BLOCKS // tiles, -(-height // THREADS)), 1)
        for first in range(0, len(weights), MAX_ROW_OUTPUTS):
            some = self.sent(weights[first : first + MAX_ROW_OUTPUTS])
            parts = self.xp.empty((splits, len(some), width))
            self._vector_kernel(f"add_rows_{matrix.dtype}")(
                (tiles, splits), (THREADS,),
                (matrix, matrix.shape[1], rows, some, height, np.int32(len(some)), columns, width,
                 parts),
            )  # fmt: skip
            self._add_parts(parts, sums[first : first + MAX_ROW_OUTPUTS])

    def _add_parts(self, parts: Any, sums: Any) -> None:
        count, outputs, columns = parts.shape
        self._vector_kernel("add_parts")(
            (_blocks(columns), outputs), (THREADS,),
            (parts, np.int32(count), np.int32(outputs), columns, sums, sums.strides[0] // 8),
        )  # fmt: skip

    def submatrix(self, matrix: Any, rows: Indices, ridge: float = 0.0) -> Any:
        """Return matrix[rows, rows] plus a ridge on its diagonal, on the GPU."""
        count = len(rows)
        part = self.xp.empty((count, count))
        self._vector_kernel("submatrix")(
            (_blocks(count), max(min(count, MAX_GRID_ROWS), 1)), (THREADS,),
            (matrix, matrix.shape[1], self.sent(rows), count, ridge, part),
        )  # fmt: skip
        return part

    def diagonal(self, matrix: Any) -> Array:
        """Return the diagonal of a matrix on the GPU."""
        entries = self.xp.empty(len(matrix))
        self._vector_kernel("diagonal")(
            (_blocks(len(matrix)),), (THREADS,), (matrix, len(matrix), entries)
        )
        return np.array(self.fetch(entries))

    def scatter(self, target: Any, indices: Indices, values: Array) -> None:
        """Set target[indices] = values, on the GPU."""
        if len(indices) > 0:
            self._vector_kernel("scatter")(
                (_blocks(len(indices)),), (THREADS,),
                (target, self.sent(indices), self.sent(values), len(indices)),
            )  # fmt: skip

    def product(self, matrix: Any, vector: Array) -> Array:
        """Return the product of a symmetric matrix on the GPU with a vector."""
        out = self.xp.zeros((1, len(vector)))
        self._add_rows(matrix, None, vector[None], None, len(vector), out)
        return np.array(self.fetch(out)[0])

    def _leave_room(self) -> None:
        """Give memory that no array uses back to the driver if NVIDIA's libraries lack it."""
        if self._free_for_libraries() < LIBRARY_BYTES:
            self.xp.get_default_memory_pool().free_all_blocks()

    def solve(self, matrix: Any, right: Array) -> Array | None:
        """Solve a symmetric system by cuSOLVER; return None if it is not positive definite."""
        cusolver, cublas = (
            import_module(f"cupy_backends.cuda.libs.{name}") for name in ("cusolver", "cublas")
        )
        self._leave_room()
        handle, side = self.xp.cuda.device.get_cusolver_handle(), cublas.CUBLAS_FILL_MODE_LOWER
        n, columns = right.shape
        # cuSOLVER stores columns, so the right-hand sides are the rows of this array.
        solution, info = self.sent(right.T), self.xp.empty(1, np.int32)
        size = cusolver.dpotrf_bufferSize(handle, side, n, matrix.data.ptr, n)
        work = self.xp.empty(size)
        cusolver.dpotrf(
            handle, side, n, matrix.data.ptr, n, work.data.ptr, size, info.data.ptr
        )  # fmt: skip
        if int(self.fetch(info)[0]) != 0:
            return None
        cusolver.dpotrs(
            handle, side, n, columns, matrix.data.ptr, n, solution.data.ptr, n, info.data.ptr
        )
        return np.array(self.fetch(solution)).T

    def outliers(
        self, derivatives: Derivatives, count: int, with_free: bool
    ) -> tuple[Any, Array] | None:
        """Select candidates by a histogram of the derivatives; None if it selects too many."""
        xp = self.xp
        n, groups = len(derivatives.gradient), len(derivatives.starts) - 1
        memory = xp.zeros(16 * (n + 1) + groups * GROUP_BYTES, xp.uint8)
        found, state = memory[: 16 * (n + 1)].view(xp.int64).reshape(-1, 2), memory[16 * (n + 1) :]
        blocks = min(-(-n // VARIABLES_PER_SCAN_BLOCK), MAX_SCAN_BLOCKS)
        grid = (max(1, blocks), groups)
        for name in ("scan_extremes", "scan_count"):
            self._vector_kernel(name)(grid, (THREADS,), (*derivatives, state))
        self._vector_kernel("scan_cut")((2 * groups,), (THREADS,), (state, np.int32(count)))
        self._vector_kernel("scan_collect")(
            grid, (THREADS,), (*derivatives, state, np.int32(with_free), found)
        )
        rows = self.fetch(found[: 1 + FIRST_COPY])
        total, outliers = rows[0]
        if outliers > MAX_EXCESS * groups * count + FIRST_COPY:
            return None
        if total > len(rows) - 1:
            rows = self.fetch(found[: 1 + total])
        coordinates = rows[1 : 1 + total]
        return coordinates[:, 0].copy(), coordinates[:, 1].copy().view(np.float64)

    def _kernel(self, name: str, dtype: str, kernel: Kernel) -> Any:
        return _module(dtype, kernel.name, kernel.differences).get_function(name)

    def _vector_kernel(self, name: str) -> Any:
        return _compiled("vectors.cu").get_function(name)


def _module(dtype: str, kernel: str, differences: bool) -> Any:
    numbers = {"float32": ("-DREAL=float",), "float64": ("-DREAL=double", "-DDOUBLE")}[dtype]
    return _compiled(
        "kernels.cu",
        *numbers,
        f"-DKERNEL={KERNELS.index(kernel)}",
        *(["-DDIFFERENCES"] if differences else []),
    )


@cache
def _compiled(file: str, *options: str) -> Any:
    cupy = needed("cupy", by='device="cuda"')
    code = (files(__package__) / file).read_text()
    return cupy.RawModule(code=code, options=("-std=c++17", *options))


@cache
def _compile_all(number: int, kernel: str, differences: bool, dtypes: tuple[str, ...]) -> None:
    """Compile and load all modules that a kernel needs, in parallel: each takes up to a second."""
    cupy = needed("cupy", by='device="cuda"')

    def load(module: Any, name: str) -> None:
        with cupy.cuda.Device(number):
            module.get_function(name)

    computed = () if kernel == "precomputed" else dtypes
    modules = [_module(dtype, kernel, differences) for dtype in computed]
    pool = ThreadPoolExecutor(len(modules) + 1)
    pending = [pool.submit(load, module, "add_sums") for module in modules]
    # Loading cuSOLVER takes up to half a second, and only Newton's method needs it: do not wait.
    pool.submit(import_module, "cupy_backends.cuda.libs.cusolver")
    load(_compiled("vectors.cu"), "scatter")
    for future in pending:
        future.result()
    pool.shutdown(wait=False)


def _free_before_start(runtime: Any, number: int) -> str:
    """Return how much memory is free on a GPU that has no memory left to ask it."""
    try:
        command = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "-i"]
        found = subprocess.run(
            [*command, runtime.deviceGetPCIBusId(number)],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
        return f"{int(found.stdout)} MB are"
    except Exception:  # an error message must not fail
        return "less is"


def _points(points: Packed) -> tuple[Any, Any, int]:
    return points.values, points.squares, points.values.shape[1]


def _parameters(kernel: Kernel) -> tuple[float, float, Any]:
    return kernel.gamma, kernel.coef0, np.int32(kernel.degree)


def _padded(count: int, multiple: int) -> int:
    """Round up to a positive multiple."""
    return max(math.ceil(count / multiple), 1) * multiple


def _blocks(count: int) -> int:
    """Return how many CUDA blocks have a thread for each of `count` elements."""
    return max(math.ceil(count / THREADS), 1)
