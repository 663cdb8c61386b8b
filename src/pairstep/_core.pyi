"""Native core of pairstep: functions over arrays, and solves that can be paused."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

class StepLength(Enum):
    model = 0
    norm = 1
    lipschitz = 2
    exact = 3

class RowFunction(Enum):
    minus_log = 0
    logistic = 1

class StopReason(Enum):
    optimal = 0
    max_iter = 1
    stopped = 2
    stalled = 3
    imprecise = 4
    unbounded = 5
    paused = 6
    solved_directly = 7

class Convex(Enum):
    no = 0
    but_for_rounding = 1
    yes = 2

class KernelName(Enum):
    linear = 0
    poly = 1
    rbf = 2
    sigmoid = 3
    precomputed = 4

# The values and their reasons are in cpp/core/policy.hpp.
class NumericalPolicy:
    gain_per_tol: float
    gradient_rounding: float
    sum_rounding: float
    vanishing_scale: float
    base_patience: int
    @staticmethod
    def patience(n: int) -> int: ...

class Point:
    def __init__(
        self,
        x: Array,
        lower: Array,
        upper: Array,
        l1: Array | None,
        breakpoint: Array | None,
        starts: Indices,
        low: Array | None = None,
        high: Array | None = None,
    ) -> None: ...

class Choice:
    def __init__(
        self, rule: int, alpha: float, lipschitz: Array | None, generator: object
    ) -> None: ...

class GreedySolve:
    def __init__(
        self,
        hessian: Array | None,
        point: Point,
        gradient: Array,
        value: float,
        choice: Choice,
        *,
        step: StepLength,
        one_norm_constant: float,
        patience: int,
        newton_phase: bool,
        record: bool,
    ) -> None: ...
    def renew(self, gradient: Array, value: float) -> None: ...
    def run(self, threshold: float, max_iter: int, seconds: float) -> StopReason: ...
    def take_history(self) -> Array: ...
    @property
    def iterations(self) -> int: ...
    @property
    def value(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def least_curvature(self) -> float: ...
    @property
    def ray(self) -> tuple[Indices, Array]: ...
    @property
    def curved(self) -> tuple[int, int]: ...

# A native oracle, made by `gram_oracle` or `matrix_oracle`.
class Oracle: ...

class BlockSolve:
    def __init__(
        self,
        oracle: object,
        point: Point,
        totals: Array,
        rule: int,
        eager: bool,
        block_bytes: int = ...,
    ) -> None: ...
    def run(self, tol: float, max_iter: int, rounds: int, seconds: float) -> StopReason: ...
    def conclude(self) -> None: ...
    @property
    def iterations(self) -> int: ...
    @property
    def moved(self) -> int: ...
    @property
    def violation(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def least_curvature(self) -> float: ...
    @property
    def ray(self) -> tuple[Indices, Array]: ...

class Kernel:
    def __init__(
        self, name: KernelName, gamma: float, coef0: float, degree: int, differences: bool = False
    ) -> None: ...

class Duals:
    def __init__(
        self,
        rows: Indices,
        linear: Array,
        lower: Array,
        upper: Array,
        l1: Array | None,
        starts: Indices,
        totals: Array,
        z: Array,
        gradient: Array,
        known: bool = False,
        closely: bool = True,
    ) -> None: ...

class Library:
    def __init__(self, kernel: Kernel, center: Array | None) -> None: ...
    def append(self, X: object) -> None: ...
    def fill_block(self, places: Indices, exact: bool, threads: int, out: Array) -> None: ...
    def take(self, places: Indices) -> Any: ...

class Partition:
    def __init__(self, X: object, center: Array | None, kernel: Kernel, threads: int) -> None: ...
    def begin(
        self,
        coordinates: Indices,
        rows: Indices,
        linear: Array,
        point: Point,
        whole: int,
        cache_bytes: int,
        single: bool,
    ) -> tuple[float, float]: ...
    def append(self, X: object) -> None: ...
    def introduce(self, coordinates: Indices, slots: Indices) -> None: ...
    def update_gradient(self, movers: Indices, x: Array, free: NDArray[np.bool_]) -> None: ...
    def select_candidates(self, count: int, with_free: bool) -> tuple[Indices, Array]: ...
    def recompute_gradient(
        self, intervals: Array, margin: float, restart: bool
    ) -> tuple[int, float]: ...
    def intervals(self) -> Array: ...
    def active(self, intervals: Array) -> int: ...
    def shrink(self, intervals: Array) -> None: ...
    def unshrink(self) -> None: ...
    def gradient(self) -> Array: ...

def gram_oracle(
    A: object,
    b: Array,
    ridge: Array,
    c: Array,
    point: Point,
    threads: int,
    weight: Array | None = None,
) -> Oracle: ...
def matrix_oracle(Q: object, linear: Array, point: Point, threads: int) -> Oracle: ...
def rules() -> list[tuple[list[str], dict[str, Any]]]: ...
def propose(
    point: Point, gradient: Array, choice: Choice, turn: int
) -> tuple[Indices, Array, float, int]: ...
def moving(point: Point, gradient: Array, multiplier: Array, violation: float) -> Indices: ...
def certify(
    point: Point, gradient: Array, linear: Array | None = None, totals: Array | None = None
) -> tuple[float, float, float, float, float, Array, float]: ...
def excess(point: Point, gradient: Array, allowance: Array) -> tuple[float, float, float]: ...
def certify_quadratic(
    point: Point,
    gradient: Array,
    linear: Array,
    diagonal: Array | None,
    totals: Array,
    tol: float,
) -> tuple[
    float, float, float, float, float, Array, float, float, float, float, float, float, float
]: ...
def largest_product(diagonal: Array, x: Array) -> float: ...
def largest_size(x: Array) -> float: ...
def scale(point: Point, gradient: Array, linear: Array | None) -> float: ...
def convex_along(hessian: Array, index: Indices | None, starts: Indices) -> Convex: ...
def first_invalid_bound(lower: Array, upper: Array, limit: float) -> int: ...
def sum_ranges(
    lower: Array, upper: Array, starts: Indices, low: Array, high: Array
) -> list[tuple[float, float, float]]: ...
def project(
    y: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    totals: Array,
    low: Array | None = None,
    high: Array | None = None,
) -> Array: ...
def fill(
    derivative: Array,
    curvature: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    totals: Array,
    low: Array | None = None,
    high: Array | None = None,
) -> Array: ...
def restore_sums(
    x: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    totals: Array,
    breakpoint: Array | None = None,
    low: Array | None = None,
    high: Array | None = None,
) -> None: ...
def two_coordinate_constant(hessian: Array) -> float: ...
def asymmetry(
    matrix: NDArray[np.floating[Any]], threads: int
) -> tuple[float, float, int, int, float]: ...
def times(matrix: Array, x: Array) -> Array: ...
def quadratic(Q: Array, c: Array, x: Array) -> tuple[float, Array]: ...
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
    low: Array | None = None,
    high: Array | None = None,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    threads: int,
) -> tuple[Array, Indices, NDArray[np.uint8]]: ...
def few_columns(
    A: Array,
    B: Array,
    hessian: Array,
    ridge: Array,
    start: Array,
    lower: Array,
    upper: Array,
    *,
    total: float,
    tol: float,
    max_iter: int,
    most_squares: float,
    seconds: float,
    threads: int,
) -> tuple[Array, Array, Indices, NDArray[np.uint8], Array, Array, NDArray[np.uint8]]: ...
def certify_rows(
    gradient: Array,
    linear: Array,
    diagonal: Array,
    x: Array,
    value: Array,
    lower: Array,
    upper: Array,
    starts: Indices,
    low: Array | None,
    high: Array | None,
    *,
    tol: float,
    threads: int,
) -> tuple[Array, Array, NDArray[np.uint8]]: ...

MAX_SMALL_VARIABLES: int

def small_start(
    hessian: Array, linear: Array, lower: Array, upper: Array, total: float, tol: float
) -> Array | None: ...
def small(
    Q: object, c: object, total: object, lower: object, upper: object, tol: object
) -> tuple[Array, Array, float, int, float, float, float, float] | Literal[False] | None: ...
def small_batch(
    hessian: Array,
    linear: Array,
    total: Array,
    lower: Array,
    upper: Array,
    *,
    count: int,
    tol: float,
    seconds: float,
    threads: int,
) -> tuple[Array, Array, Array, Indices, Array, Array, Array, Array, NDArray[np.uint8]]: ...
def kkt_systems(
    hessian: Array,
    constraints: Array,
    diagonal: Array,
    free: NDArray[np.uint8],
    r: Array,
    s: Array,
    *,
    threads: int,
) -> tuple[Array, Array, NDArray[np.uint8]]: ...
def matrix_derivatives(w: Array, x: Array, *, threads: int) -> Array: ...

class Parametric:
    def __init__(
        self,
        hessian: Array | None,
        factors: Array | None,
        diagonal: Array | None,
        linear: Array,
        lower: Array,
        upper: Array,
        l1: Array | None,
        center: Array | None,
        matrix: Array,
        low: Array,
        high: Array,
    ) -> None: ...
    def copy(self) -> Parametric: ...
    def solve(
        self, start: Array, holds: Array, *, seed: int = ..., seconds: float = ...
    ) -> int: ...
    def follow(
        self,
        linear: Array,
        l1: Array | None = None,
        *,
        distance: float = ...,
        measure: int = ...,
        b: Array | None = None,
        product: Array | None = None,
        limit: float = ...,
        corners: bool = ...,
        seconds: float = ...,
    ) -> tuple[int, Array, Array, Array, Array]: ...
    def move(
        self, i: int, value: float, lower: float, upper: float, *, seconds: float = ...
    ) -> int: ...
    @property
    def value(self) -> float: ...
    @property
    def x(self) -> Array: ...
    @property
    def multipliers(self) -> Array: ...
    @property
    def t(self) -> float: ...
    @property
    def changes(self) -> int: ...

def solve_cardinality(
    hessian: Array | None,
    factors: Array | None,
    separable: Array,
    linear: Array,
    lower: Array,
    upper: Array,
    l1: Array | None,
    center: Array | None,
    matrix: Array,
    low: Array,
    high: Array,
    holding: Array,
    cost: Array,
    *,
    max_names: int,
    gap: float,
    max_nodes: int,
    start: Array | None,
    seconds: float,
    callback: Callable[[int, Array | None, float, float, float, int], bool] | None,
) -> tuple[tuple[int, Array | None, float, float, float, int], float, Array, Array]: ...
def largest_diagonal(matrix: Array, *, seconds: float) -> Array: ...

SOLVED: int
MAX_FEW_COLUMNS: int
UNSOLVED: int
INVALID: int

class SupportVectors:
    def __init__(self, kernel: Kernel, support: object, center: Array | None) -> None: ...
    def decide(
        self,
        weights: Array,
        X: object,
        sums: Array,
        threads: int,
        allowed: float,
        starts: Indices | None = None,
    ) -> None: ...

def pair_decisions(sums: Array, intercept: Array, classes: int, threads: int) -> Array: ...
def vote(pairs: Array, classes: int, threads: int) -> Indices: ...
def one_vs_rest(pairs: Array, classes: int, threads: int) -> Array: ...

class Arenas:
    def __init__(self) -> None: ...

def solve_duals(
    X: object,
    center: Array | None,
    kernel: Kernel,
    duals: Duals,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    cache_bytes: int,
    threads: int,
    single: bool,
    rule: int,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    arenas: Arenas | None = None,
) -> Array: ...
def solve_chains(
    X: object,
    center: Array | None,
    kernel: Kernel,
    duals: Duals,
    C_before: float,
    Cs: Array,
    columns: Indices,
    z: Array,
    gradient: Array,
    sums: Array | None,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    cache_bytes: int,
    threads: int,
    single: bool,
    rule: int,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    arenas: Arenas | None = None,
) -> Array: ...
def start_scaled(point: Point, gradient: Array, linear: Array, ratio: float) -> None: ...

SAMPLE_GROWTH: int
SAMPLE_MIN_SIZE: int
SAMPLE_TOLERANCE_FACTOR: float
SAMPLE_MIN_AT_BOUND: float

def squared_distances(
    X: object,
    center: Array | None,
    rows: Indices,
    single: bool,
    threads: int,
    seconds: float = ...,
) -> NDArray[np.floating[Any]] | None: ...
def rbf_of_distances(
    distances: NDArray[np.floating[Any]],
    gamma: float,
    out: NDArray[np.floating[Any]],
    threads: int,
    seconds: float = ...,
) -> bool: ...
def kernel_matrix(
    kernel: Kernel,
    X: object,
    center: Array | None,
    rows: Indices,
    single: bool,
    threads: int,
    seconds: float = ...,
) -> NDArray[np.floating[Any]] | None: ...
def leave_out(
    matrix: object,
    dual: Duals,
    multiplier: Array,
    free: Indices,
    inverse: Array,
    transform: Array,
    transposed: Array,
    known: Indices,
    columns: Array,
    *,
    tol: float,
    cache_bytes: int,
    left_out: Indices,
    total_changes: Array,
    threads: int,
    keep_going: Callable[[int], bool] | None = None,
) -> tuple[Array, Array, Array]: ...
def measure(X: object) -> tuple[float, float]: ...
def rounded_mean(X: object) -> Array: ...
def examine(
    X: object,
    center: Array | None,
    kernel: Kernel,
    dual: Duals,
    tol: float,
    threads: int,
) -> tuple[float, float]: ...
def needs_differences(
    kernel: Kernel, X: object, center: Array | None, weight: float, allowed: float
) -> bool: ...
def linear_center(X: object) -> Array | None: ...
def center_offset(
    kernel: Kernel, X: object, center: Array, rows: Indices, weights: Array
) -> float: ...
def float32_rounding(kernel: Kernel, square: float) -> float | None: ...
def add_kernel(
    kernel: Kernel,
    support: object,
    center: Array | None,
    queries: Indices,
    weights: Array,
    X: object,
    columns: Indices,
    sums: Array,
    threads: int,
    allowed: float,
    starts: Indices | None = None,
) -> None: ...
def shuffled(n: int, seed: int) -> Indices: ...
def fit_sigmoid(decisions: Array, positives: int) -> tuple[float, float]: ...
def couple(
    decisions: Array, slopes: Array, offsets: Array, classes: int, threads: int
) -> Array: ...
def exponentials(x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]: ...
def inner(left: Array, right: Array, threads: int) -> Array: ...
def gram(
    matrix: Array,
    columns: Indices | None,
    threads: int,
    left: Array | None = None,
    right: Array | None = None,
) -> Array: ...
def row_sum(
    phi: RowFunction,
    matrix: Array,
    factor: Array | None,
    offset: Array,
    weight: Array,
    x: Array,
    threads: int,
) -> tuple[float, Array, Array, tuple[float, float, float, float]]: ...
def largest(values: Array) -> float: ...
def dot(a: Array, b: Array) -> float: ...
def divide_by_hessian(
    steps: Array, changes: Array, along: Array, diagonal: Array, direction: Array
) -> Array: ...
def factor_hessian(steps: Array, changes: Array, along: Array, diagonal: Array) -> Array: ...
def times_vector(A: Array, x: Array) -> Array: ...
def transposed_times_vector(A: Array, r: Array) -> Array: ...
def cholesky(matrix: Array) -> bool: ...
def cholesky_solve(factor: Array, b: Array) -> None: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> bool: ...
