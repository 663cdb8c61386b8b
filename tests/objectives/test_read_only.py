"""Arrays that a caller can reach are copies or read-only, so later solves do not change."""

import copy
import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from small_problem import solve_by

from pairstep import (
    DOptimal,
    FactorModel,
    KLDivergence,
    L1Penalized,
    LeastSquares,
    LogGrowth,
    Logistic,
    MixtureLikelihood,
    Quadratic,
    RiskParity,
    Simplex,
    Smooth,
    SumBox,
    minimize,
    path,
)
from pairstep.constraints import sum_box

N = 6
RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 1.0, (9, N))
B = RNG.uniform(0.1, 1.0, 9)
Q = A.T @ A + np.eye(N)
ENDS = np.full(N, 0.1), np.full(N, 0.6)

OBJECTIVES = {
    "Quadratic": lambda: Quadratic(Q, -B[:N]),
    "LeastSquares": lambda: LeastSquares(A, B, 0.1),
    "FactorModel": lambda: FactorModel(A, B[:N], -B[:N]),
    "L1Penalized": lambda: L1Penalized(
        L1Penalized(Quadratic(Q), 0.1, 0.2), (np.full(N, 0.1), B[:N]), 0.2
    ),
    "Smooth": lambda: Smooth(lambda x: float(x @ x), lambda x: 2 * x, lipschitz=np.full(N, 2.0)),
    "DOptimal": lambda: DOptimal(A[:N, :2]),
    "KLDivergence": lambda: KLDivergence(A, B),
    "LogGrowth": lambda: LogGrowth(A),
    "Logistic": lambda: Logistic(A - 0.5, np.sign(B - 0.5)),
    "MixtureLikelihood": lambda: MixtureLikelihood(A),
    "RiskParity": lambda: RiskParity(Q, B[:N]),
}
GROUPS = np.array([0, 1, 0, 1, 0, 1])
CONSTRAINTS = {
    "Simplex": lambda: Simplex(),
    "numbers": lambda: SumBox(1.0, 0.05, 0.6),
    "arrays": lambda: SumBox(1.0, *ENDS, np.linspace(0.5, 1.5, N)),
    "range": lambda: SumBox((0.9, 1.1), *ENDS),
    "groups": lambda: SumBox(np.array([0.5, 0.6]), 0.05, groups=GROUPS),
    "nested": lambda: SumBox(1.0, *ENDS, groups=GROUPS, group_total={0: (0.2, 0.4)}),
}


def arrays_in(thing, depth=3):
    """Every array that is reachable through public attributes, tuples and dataclass fields."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from arrays_in(part, depth)
    elif depth and type(thing).__module__.startswith("pairstep"):
        for name in dir(thing):
            value = None if name.startswith("_") else getattr(thing, name)
            if not callable(value):
                yield from arrays_in(value, depth - 1)
        if is_dataclass(thing):
            yield from arrays_in([getattr(thing, f.name) for f in fields(thing)], depth - 1)


def overwrite(*things):
    """Write into every array that allows it."""
    for array in arrays_in(list(things)):
        if array.dtype.kind in "fi":
            try:
                array[...] = 7
            except ValueError as error:
                assert "read-only" in str(error)  # noqa: PT017


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_writing_into_arrays_does_not_change_later_solves(objective, constraint):
    first = [given.copy() for given in (A, B, Q, *ENDS, GROUPS)]
    f, box = OBJECTIVES[objective](), CONSTRAINTS[constraint]()
    rules = ("auto", "gs-1-lipschitz") if f.lipschitz is not None else ("auto", "gs-1")
    for rule in rules:
        result = solve_by(rule, f, box, history=rule != "auto")
        x = result.x.copy()
        start = box.start(N)
        overwrite(result, f, box, box.layout(N), start, box.project(np.ones(N)))
        assert (solve_by(rule, f, box).x == x).all()
        assert (solve_by(rule, OBJECTIVES[objective](), box).x == x).all()
    for given, before in zip((A, B, Q, *ENDS, GROUPS), first, strict=True):
        assert (given == before).all()  # nor did the arguments change


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_copies_are_read_only_too(objective):
    f = OBJECTIVES[objective]()
    if objective == "Smooth":  # lambdas cannot be pickled
        others = [copy.copy(f), copy.deepcopy(f)]
    else:
        others = [copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))]
    x = minimize(f, Simplex()).x
    for other in others:
        overwrite(other)
        assert (minimize(other, Simplex()).x == x).all()


@pytest.mark.parametrize("constraint", [Simplex(), lambda t: Simplex(1.0 + 0.1 * t)])
def test_a_path_continues_from_its_own_points(constraint):
    def along():
        return path(lambda t: Quadratic(Q, -t * B[:N]), constraint, over=[0.0, 1.0, 2.0])

    points = [result.x for result in along()]
    for result, x in zip(along(), points, strict=True):
        assert (result.x == x).all()
        overwrite(result)


def test_a_constraint_keeps_the_layouts_of_few_variables():
    simplex = Simplex()
    for n in range(1, 40):
        simplex.layout(1000 * n)
    kept = list(simplex._layouts)
    assert kept[-1] == 39_000
    assert sum(kept) <= sum_box.MAX_VARIABLES_CACHED
    assert simplex._layout(39_000) is simplex._layout(39_000)
    simplex.layout(10 * sum_box.MAX_VARIABLES_CACHED)
    assert len(simplex._layouts) == 1
