"""Native core of pairstep: functions over arrays, no state."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

def rules() -> list[tuple[list[str], dict[str, Any]]]: ...
def propose(
    rule: int,
    gradient: Array,
    x: Array,
    lower: Array,
    upper: Array,
    kink: Array | None,
    pivot: Array | None,
    starts: Indices,
    alpha: float,
    lipschitz: Array | None,
    bit_generator: object,
    turn: int,
) -> tuple[Indices, Array, float, int]: ...
def greedy(
    hessian: Array,
    gradient: Array,
    x: Array,
    lower: Array,
    upper: Array,
    kink: Array | None,
    pivot: Array | None,
    starts: Indices,
    rule: int,
    alpha: float,
    lipschitz: Array | None,
    bit_generator: object,
    step: int,
    one_norm_constant: float,
    threshold: float,
    iterations: int,
    max_iter: int,
    seconds: float,
    value: float,
    patience: int,
    finish: bool,
    record: bool,
) -> tuple[int, int, float, float, float, tuple[int, int], Array]: ...
def certify(
    gradient: Array,
    x: Array,
    lower: Array,
    upper: Array,
    kink: Array | None,
    pivot: Array | None,
    starts: Indices,
) -> tuple[float, float, Array]: ...
def convex_along(hessian: Array, index: Indices | None, starts: Indices) -> int: ...
def first_odd(lower: Array, upper: Array, limit: float) -> int: ...
def spans(
    lower: Array, upper: Array, starts: Indices, low: Array, high: Array
) -> list[tuple[float, float, float]]: ...
def project(y: Array, lower: Array, upper: Array, starts: Indices, totals: Array) -> Array: ...
def fill(
    price: Array, curvature: Array, lower: Array, upper: Array, starts: Indices, totals: Array
) -> Array: ...
def settle(
    x: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    totals: Array,
    pivot: Array | None = None,
) -> None: ...
def two_coordinate_constant(hessian: Array) -> float: ...
def asymmetry(matrix: NDArray[np.floating[Any]]) -> tuple[float, float, int, int, float]: ...
def times(matrix: Array, x: Array) -> Array: ...
def bare_pass(arrays: Sequence[Array]) -> float: ...
def bare_updates(hessian: Array, gradient: Array, indices: Indices) -> float: ...
def batch(
    hessian: Array,
    linear: Array,
    start: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    totals: Array,
    tol: float,
    max_iter: int,
    threads: int,
) -> tuple[Array, Indices]: ...
def certify_rows(
    gradient: Array, x: Array, lower: Array, upper: Array, starts: Indices
) -> Array: ...
def solve_duals(
    X: object,
    center: Array | None,
    kernel: tuple[int, float, float, int],
    duals: Sequence[tuple[object, ...]],
    tol: float,
    max_iter: int,
    seconds: float,
    cache_bytes: int,
    threads: int,
    single: bool,
    rule: int,
    keep_going: Callable[[float, int, int], bool] | None,
) -> list[tuple[int, int, float]]: ...
def add_kernel(
    kernel: tuple[int, float, float, int],
    support: object,
    center: Array | None,
    queries: Indices,
    weights: Array,
    X: object,
    columns: Indices,
    sums: Array,
    threads: int,
    allowed: float,
) -> None: ...
def exponentials(x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]: ...
def inner(left: Array, right: Array, threads: int) -> Array: ...
def gram(matrix: Array, columns: Indices | None, threads: int) -> Array: ...
def cholesky(matrix: Array) -> bool: ...
def cholesky_solve(factor: Array, b: Array) -> None: ...
def kernels() -> str: ...
def kernel_names() -> list[str]: ...
def use_kernels(name: str) -> bool: ...
