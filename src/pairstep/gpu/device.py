"""The device: CuPy, and our kernels, which it compiles at run time and keeps on disk.

All that the oracle asks of a device is in the protocol, so that NumPy can stand in for it in tests.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._validation import Array
from ..extras import needed
from ..svm.machine import KERNELS, Kernel

# As in kernels.cu.
EDGE = {"float32": 128, "float64": 64}
SHARES = {"float32": 1, "float64": 4}
SLAB = 8
THREADS = 256
BINS = 2048
GROUP_BYTES = 2 * 8 + 2 * 4 * BINS + 2 * 4

CAPABILITY = 80  # from which on tensor units multiply in float64

PAD = 128  # points come in multiples of this
OUTPUTS = 12  # sums that are made at once
BLOCKS = 1056  # that keep all multiprocessors busy
USUAL = 4096  # found accounts that are brought over before their number is known


@dataclass(frozen=True)
class Packed:
    """Points on the device, feature by feature and padded, and their squared norms."""

    values: Any
    squares: Any
    count: int


class Prices(NamedTuple):
    """What prices and rooms are made of, on the device; kinks are at 0."""

    gradient: Any
    x: Any
    lower: Any
    upper: Any
    kink: Any | None
    starts: Any


class Device(Protocol):
    """What the oracle asks of a device."""

    xp: Any  # CuPy, or NumPy

    def at_work(self) -> AbstractContextManager[None]:
        """While a thread uses the device; all of its work is done afterwards."""

    def free_bytes(self) -> int:
        """Memory that is left."""

    def fetch(self, array: Any) -> Any:
        """Bring an array to the processor; it may be overwritten when the next one comes."""

    def pack(self, X: Any, rows: Any | None, center: Any, dtype: str) -> Packed:
        """Some rows of X (None: all) without the center, as points."""

    def kernel_matrix(self, kernel: Kernel, points: Packed, queries: Packed) -> Any:
        """The kernel of all points with all queries, in float64."""

    def add_sums(
        self, kernel: Kernel, points: Packed, queries: Packed, weights: Any, sums: Any
    ) -> None:
        """sums[o, p] += sum_q weights[o, q] k(point p, query q)."""

    def solve(self, matrix: Any, right: Any) -> Any | None:
        """Solve a symmetric system with several right sides; None if it is not positive definite.

        The matrix may be overwritten.
        """

    def outliers(self, prices: Prices, count: int, with_free: bool) -> tuple[Any, Array] | None:
        """Accounts and gradients as a survey wants them, or None where they are too many.

        At least the `count` furthest out on both sides of each group, in any order.
        """


class Cuda:
    """An NVIDIA GPU."""

    def __init__(self) -> None:
        self.xp = needed("cupy", by='device="cuda"')
        try:
            self.xp.cuda.runtime.getDeviceCount()
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(
                f'device="cuda" needs an NVIDIA GPU and its driver, and CUDA finds none ({error}); '
                'device="cpu" works everywhere'
            ) from error
        capability = self.xp.cuda.Device().compute_capability
        if int(capability) < CAPABILITY:
            raise RuntimeError(
                f'device="cuda" needs a GPU of compute capability {CAPABILITY / 10} or more, as '
                f'those since 2020 have; this one has {int(capability) / 10}; use device="cpu"'
            )
        self._own = threading.local()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """On a stream of this thread's own."""
        with self.xp.cuda.Stream(non_blocking=True) as stream:
            yield
            stream.synchronize()

    def free_bytes(self) -> int:
        """Memory that is left, in the pool of CuPy as well."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        return int(free + self.xp.get_default_memory_pool().free_bytes())

    def fetch(self, array: Any) -> Any:
        """Bring an array to the processor, into memory of this thread that is used again."""
        room = getattr(self._own, "room", None)
        if room is None or len(room) < array.nbytes:
            memory = self.xp.cuda.alloc_pinned_memory(array.nbytes + array.nbytes // 4)
            self._own.room = room = np.frombuffer(memory, np.uint8)
        out = room[: array.nbytes].view(array.dtype).reshape(array.shape)
        return array.get(out=out)

    def pack(self, X: Any, rows: Any | None, center: Any, dtype: str) -> Packed:
        """Some rows of X (None: all) without the center, as points."""
        count, features = len(X) if rows is None else len(rows), X.shape[1]
        stride, padded = _up(count, PAD), _up(features, SLAB)
        values = self.xp.empty((padded, stride), dtype)
        squares = self.xp.empty(stride, dtype)
        threads = 32 if count < 2**14 else THREADS
        name = "pack_float" if X.dtype == np.float32 else "pack_double"
        self._kernel(name, dtype)(
            (-(-stride // threads),), (threads,),
            (X, rows, center, count, stride, np.int32(features), np.int32(padded), values, squares),
        )  # fmt: skip
        return Packed(values, squares, count)

    def kernel_matrix(self, kernel: Kernel, points: Packed, queries: Packed) -> Any:
        """The kernel of all points with all queries, in float64."""
        matrix = self.xp.empty((points.count, queries.count))
        edge = EDGE[str(points.values.dtype)]
        self._kernel("kernel_matrix", str(points.values.dtype), kernel.name)(
            (-(-points.count // edge), -(-queries.count // edge)), (THREADS,),
            (*_points(points), points.count, *_points(queries), queries.count,
             np.int32(len(points.values)), *_parameters(kernel), matrix),
        )  # fmt: skip
        return matrix

    def add_sums(
        self, kernel: Kernel, points: Packed, queries: Packed, weights: Any, sums: Any
    ) -> None:
        """sums[o, p] += sum_q weights[o, q] k(point p, query q)."""
        dtype = str(points.values.dtype)
        edge, stride = EDGE[dtype], queries.values.shape[1]
        padded = self.xp.zeros((len(weights), stride), dtype)
        padded[:, : queries.count] = weights
        tiles = -(-points.count // edge)
        # Few points are not enough for all multiprocessors: then queries are shared out, too.
        shares = max(min(BLOCKS // tiles, stride // edge), 1)
        for first in range(0, len(weights), OUTPUTS):
            some = padded[first : first + OUTPUTS]
            parts = sums[first : first + OUTPUTS]
            in_place = shares == 1 and parts.flags.c_contiguous
            if not in_place:
                parts = self.xp.zeros((shares, *parts.shape))
            self._kernel("add_sums", dtype, kernel.name)(
                (tiles, shares), (THREADS,),
                (*_points(points), points.count, *_points(queries), np.int32(len(points.values)),
                 *_parameters(kernel), some, np.int32(len(some)), parts),
                shared_mem=len(some) * SHARES[dtype] * edge * 8,
            )  # fmt: skip
            if not in_place:
                sums[first : first + OUTPUTS] += parts.sum(axis=0)

    def solve(self, matrix: Any, right: Any) -> Any | None:
        """Solve a symmetric system by cuSOLVER; None if it is not positive definite."""
        cupyx, lapack = import_module("cupyx"), import_module("cupyx.lapack")
        with cupyx.errstate(linalg="raise"):
            try:
                return lapack.posv(matrix.T, right)
            except np.linalg.LinAlgError:
                return None

    def outliers(self, prices: Prices, count: int, with_free: bool) -> tuple[Any, Array] | None:
        """Accounts and gradients as a survey wants them, or None where they are too many."""
        xp = self.xp
        n, groups = len(prices.gradient), len(prices.starts) - 1
        state = xp.zeros(groups * GROUP_BYTES, xp.uint8)
        found = xp.empty((n + 1, 2), xp.int64)
        found[0] = 0
        grid = (max(1, min(-(-n // 1024), 264)), groups)
        for name in ("survey_extremes", "survey_count"):
            self._kernel(name)(grid, (THREADS,), (*prices, state))
        self._kernel("survey_cut")((2 * groups,), (THREADS,), (state, np.int32(count)))
        self._kernel("survey_collect")(
            grid, (THREADS,), (*prices, state, np.int32(with_free), found)
        )
        rows = self.fetch(found[: 1 + USUAL])
        total, outliers = rows[0]
        if outliers > 16 * groups * count + USUAL:
            return None
        if total > len(rows) - 1:
            rows = self.fetch(found[: 1 + total])
        accounts = rows[1 : 1 + total]
        return accounts[:, 0].copy(), accounts[:, 1].copy().view(np.float64)

    def _kernel(self, name: str, dtype: str = "float32", kernel: str = "rbf") -> Any:
        return _module(dtype, kernel).get_function(name)


@cache
def _module(dtype: str, kernel: str) -> Any:
    cupy = needed("cupy", by='device="cuda"')
    numbers = {"float32": ("-DREAL=float",), "float64": ("-DREAL=double", "-DDOUBLE")}[dtype]
    return cupy.RawModule(
        code=(files(__package__) / "kernels.cu").read_text(),
        options=("-std=c++17", *numbers, f"-DKERNEL={KERNELS.index(kernel)}"),
    )


def _points(points: Packed) -> tuple[Any, Any, int]:
    return points.values, points.squares, points.values.shape[1]


def _parameters(kernel: Kernel) -> tuple[float, float, Any]:
    return kernel.gamma, kernel.coef0, np.int32(kernel.degree)


def _up(count: int, multiple: int) -> int:
    return max(math.ceil(count / multiple), 1) * multiple
