# Written by `make stubs` from the bindings in cpp/python.
import enum
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy
from numpy.typing import NDArray

class NumericalPolicy:
    gain_per_tol: float = 100.0

    gradient_rounding: float = 1e-14

    sum_rounding: float = 1.7763568394002505e-15

    vanishing_scale: float = 1e-06

    base_patience: int = 1000

    @staticmethod
    def patience(n: int) -> int: ...

class StopReason(enum.Enum):
    optimal = 0

    max_iter = 1

    stopped = 2

    stalled = 3

    imprecise = 4

    unbounded = 5

    paused = 6

    solved_directly = 7

class Convex(enum.Enum):
    no = 0

    but_for_rounding = 1

    yes = 2

class RowFunction(enum.Enum):
    minus_log = 0

    logistic = 1

class Point:
    def __init__(
        self,
        x: NDArray[numpy.float64],
        lower: NDArray[numpy.float64],
        upper: NDArray[numpy.float64],
        l1: NDArray[numpy.float64] | None,
        breakpoint: NDArray[numpy.float64] | None,
        starts: NDArray[numpy.int64],
        low: NDArray[numpy.float64] | None = None,
        high: NDArray[numpy.float64] | None = None,
    ) -> None: ...

class GreedySolve:
    def __init__(
        self,
        hessian: NDArray[numpy.float64],
        point: Point,
        gradient: NDArray[numpy.float64],
        value: float,
        *,
        record: bool,
    ) -> None: ...
    def renew(self, gradient: NDArray[numpy.float64], value: float) -> None: ...
    def run(self, threshold: float, max_iter: int, seconds: float) -> StopReason: ...
    def take_history(self) -> NDArray[numpy.float64]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def value(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def least_curvature(self) -> float: ...
    @property
    def ray(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]: ...
    @property
    def curved(self) -> tuple[int, int]: ...

class Oracle:
    pass

def gram_oracle(
    A: object,
    b: NDArray[numpy.float64],
    ridge: NDArray[numpy.float64],
    c: NDArray[numpy.float64],
    point: Point,
    threads: int,
    weight: NDArray[numpy.float64] | None = None,
) -> Oracle: ...
def matrix_oracle(
    Q: object, linear: NDArray[numpy.float64], point: Point, threads: int
) -> Oracle: ...

class BlockSolve:
    def __init__(
        self,
        oracle: object,
        point: Point,
        totals: NDArray[numpy.float64],
        eager: bool,
        block_bytes: int = 134217728,
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
    def ray(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]: ...
    @property
    def least_curvature(self) -> float: ...

def batch(
    hessian: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    start: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    totals: NDArray[numpy.float64],
    low: NDArray[numpy.float64] | None = None,
    high: NDArray[numpy.float64] | None = None,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    threads: int,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.uint8]]: ...
def few_columns(
    A: NDArray[numpy.float64],
    B: NDArray[numpy.float64],
    hessian: NDArray[numpy.float64],
    ridge: NDArray[numpy.float64],
    start: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    *,
    total: float,
    tol: float,
    max_iter: int,
    most_squares: float,
    seconds: float,
    threads: int,
) -> tuple[
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.int64],
    NDArray[numpy.uint8],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.uint8],
]: ...

MAX_FEW_COLUMNS: int = 32

UNSOLVED: int = 0

INVALID: int = 2

MAX_SMALL_VARIABLES: int = 300

def small_start(
    hessian: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    total: float,
    tol: float,
) -> NDArray[numpy.float64] | None: ...
def small(
    Q: object, c: object, total: object, lower: object, upper: object, tol: object
) -> (
    tuple[NDArray[numpy.float64], NDArray[numpy.float64], float, int, float, float, float, float]
    | Literal[False]
    | None
): ...

class Parametric:
    def __init__(
        self,
        hessian: NDArray[numpy.float64] | None,
        factors: NDArray[numpy.float64] | None,
        diagonal: NDArray[numpy.float64] | None,
        linear: NDArray[numpy.float64],
        lower: NDArray[numpy.float64],
        upper: NDArray[numpy.float64],
        l1: NDArray[numpy.float64] | None,
        center: NDArray[numpy.float64] | None,
        matrix: NDArray[numpy.float64],
        low: NDArray[numpy.float64],
        high: NDArray[numpy.float64],
    ) -> None: ...
    def copy(self) -> Parametric: ...
    def solve(
        self,
        start: NDArray[numpy.float64],
        holds: NDArray[numpy.float64],
        *,
        seed: int = 0,
        seconds: float = float("inf"),
    ) -> int: ...
    def follow(
        self,
        linear: NDArray[numpy.float64],
        l1: NDArray[numpy.float64] | None = None,
        *,
        distance: float = float("inf"),
        measure: int = 0,
        b: NDArray[numpy.float64] | None = None,
        product: NDArray[numpy.float64] | None = None,
        limit: float = 0.0,
        corners: bool = False,
        seconds: float = float("inf"),
    ) -> tuple[
        int,
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
    ]: ...
    def move(
        self, i: int, value: float, lower: float, upper: float, *, seconds: float = float("inf")
    ) -> int: ...
    @property
    def value(self) -> float: ...
    @property
    def x(self) -> NDArray[numpy.float64]: ...
    @property
    def multipliers(self) -> NDArray[numpy.float64]: ...
    @property
    def t(self) -> float: ...
    @property
    def changes(self) -> int: ...

def solve_cardinality(
    hessian: NDArray[numpy.float64] | None,
    factors: NDArray[numpy.float64] | None,
    separable: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    l1: NDArray[numpy.float64] | None,
    center: NDArray[numpy.float64] | None,
    matrix: NDArray[numpy.float64],
    low: NDArray[numpy.float64],
    high: NDArray[numpy.float64],
    holding: NDArray[numpy.float64],
    cost: NDArray[numpy.float64],
    *,
    max_names: int,
    gap: float,
    max_nodes: int,
    start: NDArray[numpy.float64] | None,
    seconds: float,
    callback: Callable[[int, NDArray[numpy.float64] | None, float, float, float, int], bool] | None,
) -> tuple[
    tuple[int, NDArray[numpy.float64] | None, float, float, float, int],
    float,
    NDArray[numpy.float64],
    NDArray[numpy.float64],
]: ...
def largest_diagonal(
    matrix: NDArray[numpy.float64], *, seconds: float
) -> NDArray[numpy.float64]: ...

SOLVED: int = 2

def small_batch(
    hessian: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    total: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    *,
    count: int,
    tol: float,
    seconds: float,
    threads: int,
) -> tuple[
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.int64],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.uint8],
]: ...
def kkt_systems(
    hessian: NDArray[numpy.float64],
    constraints: NDArray[numpy.float64],
    diagonal: NDArray[numpy.float64],
    free: NDArray[numpy.uint8],
    r: NDArray[numpy.float64],
    s: NDArray[numpy.float64],
    *,
    threads: int,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint8]]: ...
def matrix_derivatives(
    w: NDArray[numpy.float64], x: NDArray[numpy.float64], *, threads: int
) -> NDArray[numpy.float64]: ...
def moving(
    point: Point,
    gradient: NDArray[numpy.float64],
    multiplier: NDArray[numpy.float64],
    violation: float,
) -> NDArray[numpy.int64]: ...
def largest_product(diagonal: NDArray[numpy.float64], x: NDArray[numpy.float64]) -> float: ...
def largest_size(x: NDArray[numpy.float64]) -> float: ...
def excess(
    point: Point, gradient: NDArray[numpy.float64], allowance: NDArray[numpy.float64]
) -> tuple[float, float, float]: ...
def certify(
    point: Point,
    gradient: NDArray[numpy.float64],
    linear: NDArray[numpy.float64] | None = None,
    totals: NDArray[numpy.float64] | None = None,
) -> tuple[float, float, float, float, float, NDArray[numpy.float64], float]: ...
def certify_quadratic(
    point: Point,
    gradient: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    diagonal: NDArray[numpy.float64] | None,
    totals: NDArray[numpy.float64],
    tol: float,
) -> tuple[
    float,
    float,
    float,
    float,
    float,
    NDArray[numpy.float64],
    float,
    float,
    float,
    float,
    float,
    float,
    float,
]: ...
def scale(
    point: Point, gradient: NDArray[numpy.float64], linear: NDArray[numpy.float64] | None
) -> float: ...
def convex_along(
    hessian: NDArray[numpy.float64],
    index: NDArray[numpy.int64] | None,
    starts: NDArray[numpy.int64],
) -> Convex: ...
def first_invalid_bound(
    lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], limit: float
) -> int: ...
def sum_ranges(
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    low: NDArray[numpy.float64],
    high: NDArray[numpy.float64],
) -> list[tuple[float, float, float]]: ...
def project(
    y: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    totals: NDArray[numpy.float64],
    low: NDArray[numpy.float64] | None = None,
    high: NDArray[numpy.float64] | None = None,
) -> NDArray[numpy.float64]: ...
def fill(
    derivative: NDArray[numpy.float64],
    curvature: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    totals: NDArray[numpy.float64],
    low: NDArray[numpy.float64] | None = None,
    high: NDArray[numpy.float64] | None = None,
) -> NDArray[numpy.float64]: ...
def restore_sums(
    x: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    totals: NDArray[numpy.float64],
    breakpoint: NDArray[numpy.float64] | None = None,
    low: NDArray[numpy.float64] | None = None,
    high: NDArray[numpy.float64] | None = None,
) -> None: ...
def two_coordinate_constant(hessian: NDArray[numpy.float64]) -> float: ...
@overload
def asymmetry(
    matrix: NDArray[numpy.float32], threads: int
) -> tuple[float, float, int, int, float]: ...
@overload
def asymmetry(
    matrix: NDArray[numpy.float64], threads: int
) -> tuple[float, float, int, int, float]: ...
def quadratic(
    Q: NDArray[numpy.float64], c: NDArray[numpy.float64], x: NDArray[numpy.float64]
) -> tuple[float, NDArray[numpy.float64]]: ...
def times(matrix: NDArray[numpy.float64], x: NDArray[numpy.float64]) -> NDArray[numpy.float64]: ...
def certify_rows(
    gradient: NDArray[numpy.float64],
    linear: NDArray[numpy.float64],
    diagonal: NDArray[numpy.float64],
    x: NDArray[numpy.float64],
    value: NDArray[numpy.float64],
    lower: NDArray[numpy.float64],
    upper: NDArray[numpy.float64],
    starts: NDArray[numpy.int64],
    low: NDArray[numpy.float64] | None,
    high: NDArray[numpy.float64] | None,
    *,
    tol: float,
    threads: int,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint8]]: ...
def inner(
    left: NDArray[numpy.float64], right: NDArray[numpy.float64], threads: int
) -> NDArray[numpy.float64]: ...
def gram(
    matrix: NDArray[numpy.float64],
    columns: NDArray[numpy.int64] | None,
    threads: int,
    left: NDArray[numpy.float64] | None = None,
    right: NDArray[numpy.float64] | None = None,
) -> NDArray[numpy.float64]: ...
def row_sum(
    phi: RowFunction,
    matrix: NDArray[numpy.float64],
    factor: NDArray[numpy.float64] | None,
    offset: NDArray[numpy.float64],
    weight: NDArray[numpy.float64],
    x: NDArray[numpy.float64],
    threads: int,
) -> tuple[
    float, NDArray[numpy.float64], NDArray[numpy.float64], tuple[float, float, float, float]
]: ...
def largest(values: NDArray[numpy.float64]) -> float: ...
def dot(a: NDArray[numpy.float64], b: NDArray[numpy.float64]) -> float: ...
def divide_by_hessian(
    steps: NDArray[numpy.float64],
    changes: NDArray[numpy.float64],
    along: NDArray[numpy.float64],
    diagonal: NDArray[numpy.float64],
    direction: NDArray[numpy.float64],
) -> NDArray[numpy.float64]: ...
def factor_hessian(
    steps: NDArray[numpy.float64],
    changes: NDArray[numpy.float64],
    along: NDArray[numpy.float64],
    diagonal: NDArray[numpy.float64],
) -> NDArray[numpy.float64]: ...
def times_vector(
    A: NDArray[numpy.float64], x: NDArray[numpy.float64]
) -> NDArray[numpy.float64]: ...
def transposed_times_vector(
    A: NDArray[numpy.float64], r: NDArray[numpy.float64]
) -> NDArray[numpy.float64]: ...
def cholesky(matrix: NDArray[numpy.float64]) -> bool: ...
def cholesky_solve(factor: NDArray[numpy.float64], b: NDArray[numpy.float64]) -> None: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> bool: ...

class KernelName(enum.Enum):
    linear = 0

    poly = 1

    rbf = 2

    sigmoid = 3

    precomputed = 4

class Kernel:
    def __init__(
        self, name: KernelName, gamma: float, coef0: float, degree: int, differences: bool = False
    ) -> None: ...

class Duals:
    def __init__(
        self,
        rows: NDArray[numpy.int64],
        linear: NDArray[numpy.float64],
        lower: NDArray[numpy.float64],
        upper: NDArray[numpy.float64],
        l1: NDArray[numpy.float64] | None,
        starts: NDArray[numpy.int64],
        totals: NDArray[numpy.float64],
        z: NDArray[numpy.float64],
        gradient: NDArray[numpy.float64],
        known: bool = False,
        closely: bool = True,
    ) -> None: ...

class SupportVectors:
    def __init__(
        self, kernel: Kernel, support: object, center: NDArray[numpy.float64] | None
    ) -> None: ...
    def decide(
        self,
        weights: NDArray[numpy.float64],
        X: object,
        sums: NDArray[numpy.float64],
        threads: int,
        allowed: float,
        starts: NDArray[numpy.int64] | None = None,
    ) -> None: ...

def pair_decisions(
    sums: NDArray[numpy.float64], intercept: NDArray[numpy.float64], classes: int, threads: int
) -> NDArray[numpy.float64]: ...
def vote(pairs: NDArray[numpy.float64], classes: int, threads: int) -> NDArray[numpy.int64]: ...
def one_vs_rest(
    pairs: NDArray[numpy.float64], classes: int, threads: int
) -> NDArray[numpy.float64]: ...

class Arenas:
    def __init__(self) -> None: ...

def solve_duals(
    X: object,
    center: NDArray[numpy.float64] | None,
    kernel: Kernel,
    duals: Duals,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    cache_bytes: int,
    threads: int,
    single: bool,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    arenas: Arenas | None = None,
) -> NDArray[numpy.float64]: ...
def leave_out(
    matrix: object,
    dual: Duals,
    multiplier: NDArray[numpy.float64],
    free: NDArray[numpy.int64],
    inverse: NDArray[numpy.float64],
    transform: NDArray[numpy.float64],
    transposed: NDArray[numpy.float64],
    known: NDArray[numpy.int64],
    columns: NDArray[numpy.float64],
    *,
    tol: float,
    cache_bytes: int,
    left_out: NDArray[numpy.int64],
    total_changes: NDArray[numpy.float64],
    threads: int,
    keep_going: Callable[[int], bool] | None = None,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]: ...
def solve_chains(
    X: object,
    center: NDArray[numpy.float64] | None,
    kernel: Kernel,
    duals: Duals,
    C_before: float,
    Cs: NDArray[numpy.float64],
    columns: NDArray[numpy.int64],
    z: NDArray[numpy.float64],
    gradient: NDArray[numpy.float64],
    sums: NDArray[numpy.float64] | None,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    cache_bytes: int,
    threads: int,
    single: bool,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    arenas: Arenas | None = None,
) -> NDArray[numpy.float64]: ...
def start_scaled(
    point: Point, gradient: NDArray[numpy.float64], linear: NDArray[numpy.float64], ratio: float
) -> None: ...

SAMPLE_GROWTH: int = 4

SAMPLE_MIN_SIZE: int = 2000

SAMPLE_TOLERANCE_FACTOR: float = 30.0

SAMPLE_MIN_AT_BOUND: float = 0.02

def examine(
    X: object,
    center: NDArray[numpy.float64] | None,
    kernel: Kernel,
    dual: Duals,
    tol: float,
    threads: int,
) -> tuple[float, float]: ...
def needs_differences(
    kernel: Kernel, X: object, center: NDArray[numpy.float64] | None, weight: float, allowed: float
) -> bool: ...
def linear_center(X: object) -> NDArray[numpy.float64] | None: ...
def center_offset(
    kernel: Kernel,
    X: object,
    center: NDArray[numpy.float64],
    rows: NDArray[numpy.int64],
    weights: NDArray[numpy.float64],
) -> float: ...
def kernel_matrix(
    kernel: Kernel,
    X: object,
    center: NDArray[numpy.float64] | None,
    rows: NDArray[numpy.int64],
    single: bool,
    threads: int,
    seconds: float = float("inf"),
) -> NDArray[numpy.float32] | NDArray[numpy.float64] | None: ...
def squared_distances(
    X: object,
    center: NDArray[numpy.float64] | None,
    rows: NDArray[numpy.int64],
    single: bool,
    threads: int,
    seconds: float = float("inf"),
) -> NDArray[numpy.float32] | NDArray[numpy.float64] | None: ...
@overload
def rbf_of_distances(
    distances: NDArray[numpy.float32],
    gamma: float,
    out: NDArray[numpy.float32],
    threads: int,
    seconds: float = float("inf"),
) -> bool: ...
@overload
def rbf_of_distances(
    distances: NDArray[numpy.float64],
    gamma: float,
    out: NDArray[numpy.float64],
    threads: int,
    seconds: float = float("inf"),
) -> bool: ...
def measure(X: object) -> tuple[float, float]: ...
def rounded_mean(X: object) -> NDArray[numpy.float64]: ...
def float32_rounding(kernel: Kernel, square: float) -> float | None: ...
@overload
def exponentials(x: NDArray[numpy.float32]) -> NDArray[numpy.float32] | NDArray[numpy.float64]: ...
@overload
def exponentials(x: NDArray[numpy.float64]) -> NDArray[numpy.float32] | NDArray[numpy.float64]: ...
def add_kernel(
    kernel: Kernel,
    support: object,
    center: NDArray[numpy.float64] | None,
    queries: NDArray[numpy.int64],
    weights: NDArray[numpy.float64],
    X: object,
    columns: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
    threads: int,
    allowed: float,
    starts: NDArray[numpy.int64] | None = None,
) -> None: ...

class Library:
    def __init__(self, kernel: Kernel, center: NDArray[numpy.float64] | None) -> None: ...
    def append(self, X: object) -> None: ...
    def fill_block(
        self, places: NDArray[numpy.int64], exact: bool, threads: int, out: NDArray[numpy.float64]
    ) -> None: ...
    def take(
        self, places: NDArray[numpy.int64]
    ) -> (
        NDArray[numpy.float64]
        | NDArray[numpy.float32]
        | tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float64], int]
    ): ...

class Partition:
    def __init__(
        self, X: object, center: NDArray[numpy.float64] | None, kernel: Kernel, threads: int
    ) -> None: ...
    def begin(
        self,
        coordinates: NDArray[numpy.int64],
        rows: NDArray[numpy.int64],
        linear: NDArray[numpy.float64],
        point: Point,
        whole: int,
        cache_bytes: int,
        single: bool,
    ) -> tuple[float, float]: ...
    def append(self, X: object) -> None: ...
    def introduce(self, coordinates: NDArray[numpy.int64], slots: NDArray[numpy.int64]) -> None: ...
    def update_gradient(
        self, movers: NDArray[numpy.int64], x: NDArray[numpy.float64], free: NDArray[numpy.bool_]
    ) -> None: ...
    def select_candidates(
        self, count: int, with_free: bool
    ) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]: ...
    def recompute_gradient(
        self, intervals: NDArray[numpy.float64], margin: float, restart: bool
    ) -> tuple[int, float]: ...
    def intervals(self) -> NDArray[numpy.float64]: ...
    def active(self, intervals: NDArray[numpy.float64]) -> int: ...
    def shrink(self, intervals: NDArray[numpy.float64]) -> None: ...
    def unshrink(self) -> None: ...
    def gradient(self) -> NDArray[numpy.float64]: ...

def shuffled(n: int, seed: int) -> NDArray[numpy.int64]: ...
def fit_sigmoid(decisions: NDArray[numpy.float64], positives: int) -> tuple[float, float]: ...
def couple(
    decisions: NDArray[numpy.float64],
    slopes: NDArray[numpy.float64],
    offsets: NDArray[numpy.float64],
    classes: int,
    threads: int,
) -> NDArray[numpy.float64]: ...

class StepLength(enum.Enum):
    model = 0

    norm = 1

    lipschitz = 2

    exact = 3

class Choice:
    def __init__(
        self,
        rule: int,
        alpha: float,
        lipschitz: NDArray[numpy.float64] | None,
        generator: object | None,
    ) -> None: ...

def rules() -> list[tuple[list[str], dict[str, Any]]]: ...
def propose(
    point: Point, gradient: NDArray[numpy.float64], choice: Choice, turn: int
) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64], float, int]: ...
def coordinate_descent(
    hessian: NDArray[numpy.float64],
    point: Point,
    gradient: NDArray[numpy.float64],
    value: float,
    choice: Choice,
    *,
    step: StepLength,
    one_norm_constant: float,
    patience: int,
    record: bool,
) -> GreedySolve: ...
def bare_pass(arrays: Sequence[NDArray[numpy.float64]]) -> float: ...
def bare_updates(
    hessian: NDArray[numpy.float64], gradient: NDArray[numpy.float64], indices: NDArray[numpy.int64]
) -> float: ...
