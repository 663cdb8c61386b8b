"""Bad input is refused before any work with a message that names the argument and the numbers."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from pairwise import pairwise

from pairstep import (
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    SumBox,
    minimize,
    propose,
    simplex_lstsq,
)
from pairstep.rules import RULES, specification

NAN, INF = float("nan"), float("inf")
EYE = np.eye(3)
POINT = {
    "gradient": [3.0, 1.0, 2.0],
    "x": [0.2, 0.3, 0.5],
    "lower": 0.0,
    "upper": 1.0,
    "alpha": 1.0,
}


def refuses(call, *words, error=ValueError):
    """Check that the call raises an error whose message has every word, in any order."""
    with pytest.raises(error) as refusal:
        call()
    message = str(refusal.value)
    for word in words:
        assert re.search(rf"(?<![\w.]){re.escape(str(word))}(?![\w])", message), (word, message)


def solve(objective=None, constraint=None, **options):
    objective = Quadratic(EYE) if objective is None else objective
    return minimize(objective, constraint or Simplex(), **options)


def ask(rule="gs-s", form=propose, **changes):
    return form(rule, **(POINT | changes))


# ------------------------------------------------------------------ NaN and infinity


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_objectives_must_be_finite(bad):
    matrix, vector = EYE.copy(), np.ones(3)
    matrix[1, 1] = vector[2] = bad
    refuses(lambda: Quadratic(matrix), "Q[1, 1]", bad)
    refuses(lambda: Quadratic(EYE, vector), "c[2]", bad)
    refuses(lambda: LeastSquares(matrix, np.ones(3)), "A[1, 1]", bad)
    refuses(lambda: LeastSquares(EYE, vector), "b[2]", bad)
    refuses(lambda: LeastSquares(scipy.sparse.csr_array(matrix), np.ones(3)), "A", bad)
    refuses(lambda: LeastSquares(EYE, np.ones(3), ridge=bad), "ridge", bad)
    refuses(lambda: Smooth(sum, sum, lipschitz=vector), "lipschitz[2]", bad)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_non_finite_values_at_symmetric_positions_are_found(bad):
    matrix = np.eye(100)
    matrix[7, 90] = matrix[90, 7] = bad
    refuses(lambda: Quadratic(matrix), "Q[7, 90]", bad)


def test_constraints_must_be_numbers():
    refuses(lambda: solve(constraint=SumBox(NAN)), "total", "nan")
    refuses(lambda: solve(constraint=SumBox(INF)), "total", "inf")
    refuses(lambda: solve(constraint=SumBox((NAN, 1.0))), "total[0]", "nan")
    refuses(lambda: solve(constraint=SumBox((0.0, NAN))), "total[1]", "nan")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=NAN)), "lower", "nan")
    refuses(lambda: solve(constraint=SumBox(1.0, upper=[1.0, NAN, 1.0])), "upper[1]", "NaN")
    refuses(
        lambda: solve(constraint=SumBox(1.0, coefficients=[1, NAN, 1])), "coefficients[1]", "nan"
    )
    refuses(
        lambda: solve(constraint=SumBox(1.0, coefficients=[1, 1, INF])), "coefficients[2]", "inf"
    )
    refuses(lambda: solve(constraint=SumBox(1.0, coefficients=[1, 0.0, 1])), "coefficients[1]", "0")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=INF)), "lower", "inf")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=-INF, upper=-INF)), "upper", "-inf")


def test_a_range_must_leave_a_finite_sum():
    for end in (INF, -INF):
        refuses(lambda end=end: solve(constraint=SumBox((end, end), -INF)), "total", end)
    refuses(lambda: solve(constraint=SumBox((1e200, INF))), "total[0]", "1e+200", "1e+100")
    refuses(lambda: solve(constraint=SumBox((-INF, -1e200), -INF)), "total[1]", "-1e+200")
    groups = {"groups": [0, 1, 1]}
    refuses(lambda: solve(constraint=SumBox(([0.0, 3.0], [1.0, 2.0]), **groups)), "3 > 2")
    refuses(lambda: solve(constraint=SumBox(([0.0, INF], INF), **groups)), "total[0]", "inf")


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_numbers_whose_products_overflow(form):
    """Values above the limit are refused with advice to scale; values just below are accepted."""
    huge = EYE.copy()
    huge[1, 1] = 1.1e100
    place = "Q[1, 1]" if form is np.asarray else "Q.data[1]"
    refuses(lambda: Quadratic(form(huge)), place, "1.1e+100", "1e+100", "scale")
    huge[1, 1] = -1.1e50
    for matrix, make in (("A", lambda: LeastSquares(form(huge), [1.0, 1.0, 1.0])),
                         ("F", lambda: FactorModel(form(huge)))):  # fmt: skip
        place = f"{matrix}[1, 1]" if form is np.asarray else f"{matrix}.data[1]"
        refuses(make, place, "-1.1e+50", "1e+50", "scale")
    assert solve(Quadratic(form(EYE * 9e99))).status == "optimal"
    assert solve(LeastSquares(form(EYE * 9e49), np.full(3, 9e49))).status == "optimal"


def test_vectors_whose_products_overflow():
    big, bigger = [0.0, 1.1e50, 0.0], [0.0, 0.0, -1.1e100]
    refuses(lambda: Quadratic(EYE, bigger), "c[2]", "-1.1e+100", "scale")
    refuses(lambda: Quadratic(EYE).with_linear(bigger), "c[2]", "-1.1e+100")
    refuses(lambda: LeastSquares(EYE, big), "b[1]", "1.1e+50", "1e+50")
    refuses(lambda: LeastSquares(EYE, np.ones(3), 1e200), "ridge[0]", "1e+200")
    refuses(lambda: FactorModel(EYE, [0.0, 1e101, 0.0]), "D[1]", "1e+101")
    refuses(lambda: L1Penalized(Quadratic(EYE), 1e101), "l1[0]", "1e+101")
    refuses(lambda: L1Penalized(Quadratic(EYE), 1.0, bigger), "center[2]", "-1.1e+100")
    refuses(lambda: solve(x0=[1e101, 0.0, 0.0]), "x0[0]", "1e+101")
    refuses(lambda: Simplex().project([1e101, 0.0, 0.0]), "y[0]", "1e+101")
    batch = simplex_lstsq(EYE, np.array([[1.0, 1e60], [0.0, 0.0], [0.0, 0.0]]))
    assert batch.status.tolist() == ["optimal", "invalid"]


def test_constraints_whose_products_overflow():
    refuses(lambda: solve(constraint=SumBox(1e200)), "total", "1e+200", "1e+100", "scale")
    refuses(lambda: solve(constraint=SumBox([1.0, -1e101], -INF, groups=[0, 1, 1])), "total[1]")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=2e100)), "lower[0]", "2e+100")
    refuses(lambda: solve(constraint=SumBox(1.0, -INF, -2e100)), "upper[0]", "-2e+100")
    refuses(
        lambda: solve(constraint=SumBox(1.0, coefficients=[1, 1e51, 1])), "coefficients[1]", "1e+51"
    )
    refuses(
        lambda: solve(constraint=SumBox(1.0, coefficients=[1, 1, 1e-51])),
        "coefficients[2]",
        "1e-51",
    )
    box = SumBox(1.0, 0.0, [1.0, 1e90, 1.0], coefficients=[1.0, -1e40, 1.0])
    refuses(lambda: solve(constraint=box), "(coefficients * upper)[1]", "-1e+130", "scale")


def test_options_must_be_numbers():
    refuses(lambda: solve(x0=[1.0, NAN, 0.0]), "x0[1]", "nan")
    refuses(lambda: solve(x0=[1.0, INF, 0.0]), "x0[1]", "inf")
    refuses(lambda: solve(tol=NAN), "tol", "nan")
    refuses(lambda: solve(tol=-1e-3), "tol", "-0.001")
    refuses(lambda: solve(time_limit=NAN), "time_limit", "nan")
    refuses(lambda: solve(time_limit=-1), "time_limit", "-1")
    for bad in (-1, 2.5, NAN, "many", True):
        refuses(lambda bad=bad: solve(max_iter=bad), "max_iter", repr(bad))
    for bad in (0, -0.5, NAN, INF):
        refuses(lambda bad=bad: solve(step=bad), "step", f"{float(bad):g}")


@pytest.mark.parametrize("form", [propose, specification])
def test_propose_refuses_numbers_that_are_not_finite(form):
    refuses(lambda: ask(form=form, gradient=[1.0, NAN, 2.0]), "gradient[1]", "nan")
    refuses(lambda: ask(form=form, gradient=[1.0, 2.0, INF]), "gradient[2]", "inf")
    refuses(lambda: ask(form=form, x=[NAN, 0.5, 0.5]), "x[0]", "nan")
    refuses(lambda: ask(form=form, lower=[0.0, NAN, 0.0]), "lower[1]", "NaN")
    refuses(lambda: ask(form=form, upper=NAN), "upper", "nan")
    for bad in (0.0, -1.0, NAN, INF):
        refuses(lambda bad=bad: ask(form=form, alpha=bad), "alpha", f"{bad:g}")
    for bad in (-1, 0.5, "first"):
        refuses(lambda bad=bad: ask("cyclic", form, turn=bad), "turn", repr(bad))


def test_callables_with_invalid_results_are_refused():
    box = SumBox(1.0, upper=np.ones(2))
    good = lambda x: np.zeros(2)  # noqa: E731
    refuses(lambda: solve(Smooth(lambda x: NAN, good), box), "value", "nan")
    refuses(lambda: solve(Smooth(lambda x: "high", good), box), "value", "'high'")
    refuses(lambda: solve(Smooth(lambda x: 0.0, lambda x: [NAN, 0.0]), box), "gradient[0]", "nan")
    refuses(lambda: solve(Smooth(lambda x: 0.0, lambda x: np.zeros(3)), box), "gradient", 2, 3)
    refuses(lambda: solve(Smooth(lambda x: 0.0, lambda x: None), box), "gradient")


# ------------------------------------------------------------------ shapes and sizes


def test_wrong_shapes_are_refused():
    refuses(lambda: Quadratic(np.ones((2, 3))), "Q", "square", "(2, 3)")
    refuses(lambda: Quadratic(np.ones(3)), "Q", 2, "(3,)")
    refuses(lambda: Quadratic(EYE, np.ones(4)), "c", 3, 4)
    refuses(lambda: Quadratic([[1.0, 2.0], [3.0]]), "Q")
    refuses(lambda: LeastSquares(np.ones(3), [1.0]), "A", 2, "(3,)")
    refuses(lambda: LeastSquares(EYE, np.ones(2)), "b", 3, 2)
    refuses(lambda: LeastSquares(EYE, EYE), "b", 1, "(3, 3)")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=[0.0, 0.0])), "lower", 3, 2)
    refuses(lambda: solve(constraint=SumBox(1.0, upper=np.ones((3, 1)))), "upper", 1, "(3, 1)")
    refuses(lambda: solve(constraint=SumBox(1.0, coefficients=np.ones(5))), "coefficients", 3, 5)
    refuses(lambda: solve(constraint=SumBox([1.0, 2.0])), "total", 1, 2)
    refuses(lambda: solve(constraint=SumBox((1.0, 2.0, 3.0))), "total", "(1.0, 2.0, 3.0)")
    refuses(lambda: solve(x0=np.ones(4)), "x0", 3, 4)
    refuses(lambda: solve(x0=np.ones((3, 1)) / 3), "x0", 1, "(3, 1)")
    refuses(lambda: ask(gradient=[1.0, 2.0]), "gradient", 3, 2)
    refuses(lambda: ask(upper=[1.0, 2.0]), "upper", 3, 2)
    refuses(lambda: ask("ratio", lipschitz=[1.0, 2.0]), "lipschitz", 3, 2)


def test_an_unknown_number_of_variables():
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x)
    refuses(lambda: solve(f, Simplex()), "number of variables")
    refuses(lambda: SumBox(1.0).start(), "n")


def test_no_variables():
    refuses(lambda: Quadratic(np.zeros((0, 0))), "Q", "empty")
    refuses(lambda: LeastSquares(np.zeros((4, 0)), np.zeros(4)), "A", "no columns")
    f = Smooth(lambda x: 0.0, lambda x: x)
    refuses(lambda: solve(f, SumBox(0.0, upper=np.zeros(0))), "n = 0")
    refuses(lambda: solve(f, SumBox(0.0), x0=[]), "n = 0")


@pytest.mark.parametrize("form", [propose, specification])
@pytest.mark.parametrize("rule", RULES)
def test_one_variable_has_no_pair(rule, form):
    step = form(rule, [1.0], [0.0], -1.0, 1.0, alpha=1.0, lipschitz=[1.0], rng=0)
    assert len(step.indices) == len(step.delta) == 0
    assert step.decrease == 0


NO_VARIABLES = """
from pairstep.rules import RULES, propose, specification
for rule in RULES:
    for form in (propose, specification):
        print(rule, flush=True)
        step = form(rule, [], [], 0.0, 1.0, alpha=1.0, lipschitz=[], rng=0)
        assert len(step.indices) == len(step.delta) == step.decrease == 0
print("survived")
"""


def test_no_variables_have_no_pair():
    """Runs in a child process: a native division by n = 0 would end it."""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_VARIABLES], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert child.stdout.splitlines()[-1] == "survived", child.stderr
    assert child.returncode == 0


@pytest.mark.parametrize("rule", ["auto", *RULES])
def test_one_variable_has_a_single_feasible_point(rule):
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x, lipschitz=[2.0])
    for objective in (Quadratic([[2.0]]), LeastSquares([[1.0]], [0.0]), f):
        result = minimize(objective, SumBox(0.3), rule=rule, seed=0)
        assert result.status == "optimal"
        assert result.x.tolist() == [0.3]
        assert result.n_iter == 0
        assert result.kkt_violation == 0
        assert result.suboptimality_bound == 0


@pytest.mark.parametrize("step", ["1/L2", "lipschitz", "exact", "backtracking"])
def test_one_variable_and_any_step(step):
    assert minimize(Quadratic([[2.0]]), SumBox(0.3), step=step).status == "optimal"
    result = minimize(Quadratic([[2.0]], [1.0]), SumBox((-3.0, 3.0), -INF), step=step)
    assert result.x == pytest.approx([-0.5], abs=1e-7)


# ------------------------------------------------------------------ bounds, totals, groups


def test_crossed_bounds():
    box = SumBox(1.0, lower=[0.0, 0.5, 0.0], upper=[1.0, 0.25, 1.0])
    refuses(lambda: solve(constraint=box), "lower[1]", 0.5, "upper[1]", 0.25)
    refuses(lambda: box.start(), "lower[1]", 0.5, "upper[1]", 0.25)
    refuses(lambda: ask(lower=[0.0, 0.5, 0.0], upper=[1.0, 0.25, 1.0]), 0.5, 0.25)


def test_an_infeasible_total_names_the_possible_sums():
    refuses(
        lambda: solve(constraint=SumBox(1.0, upper=[0.1, 0.3, 0.4])),
        "the bounds allow sums from 0 to 0.8; total is 1",
    )
    refuses(lambda: solve(constraint=SumBox(-1.0)), "from 0 to inf", "total is -1")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=0.5)), "from 1.5 to inf", "total is 1")
    refuses(
        lambda: solve(constraint=SumBox([2.0, 1.0], upper=0.5, groups=["a", "b", "b"])),
        "group 'a'",
        "from 0 to 0.5",
        2,
    )
    refuses(
        lambda: solve(constraint=SumBox(9.0, upper=1.0, coefficients=[1.0, -2.0, 3.0])),
        "from -2 to 4",
        "total is 9",
    )
    refuses(lambda: solve(constraint=SumBox((4.0, 5.0), upper=1.0)), "from 0 to 3", "(4, 5)")
    refuses(lambda: solve(constraint=SumBox((5.0, 4.0))), "total", 5, 4)
    refuses(lambda: SumBox(1.0, upper=0.1).start(3), "from 0 to 0.3", "total is 1")
    refuses(lambda: SumBox(1.0, upper=0.1).project(np.zeros(3)), "from 0 to 0.3", "total is 1")


def test_groups_must_cover():
    refuses(lambda: solve(constraint=SumBox(1.0, groups=[0, 1])), "groups", 3, "(2,)")
    refuses(lambda: solve(constraint=SumBox(1.0, groups=[[0, 1, 1]])), "groups", "(1, 3)")
    refuses(lambda: SumBox(1.0, groups=["a", None, "b"]), "groups[1]", "missing")
    refuses(lambda: SumBox(1.0, groups=[0.5, np.nan, 1.0]), "groups[1]", "missing", "nan")
    refuses(lambda: solve(constraint=SumBox([1.0, 2.0, 3.0], groups=[0, 1, 1])), "total", 2, 3)
    refuses(lambda: solve(constraint=SumBox(1.0, groups=0)), "groups")


def test_an_infeasible_start():
    refuses(lambda: solve(x0=[0.5, 0.2, 0.2]), "x0", "sums to 0.9", "total is 1")
    refuses(lambda: solve(x0=[1.5, -0.5, 0.0]), "x0[1]", -0.5, "[0, inf]")
    refuses(
        lambda: solve(constraint=SumBox([1.0, 1.0], groups=[0, 0, 1]), x0=[0.5, 0.5, 0.5]),
        "x0",
        0.5,
        1,
    )
    refuses(
        lambda: solve(constraint=SumBox(1.0, coefficients=[1.0, 2.0, 1.0]), x0=[0.5, 0.5, 0.0]),
        1.5,
        1,
    )
    refuses(lambda: ask(x=[0.2, 0.3, 1.5]), "x[2]", 1.5, "[0, 1]")


@pytest.mark.parametrize(("x0", "its_sum"), [([0.5, 0.5, 0.5], "1.5"), ([0.1, 0.1, 0.0], "0.2")])
def test_a_start_outside_the_range_of_the_sum(x0, its_sum):
    refuses(
        lambda: solve(constraint=SumBox((0.5, 0.8)), x0=x0),
        "x0",
        f"sums to {its_sum}",
        "0.5",
        "0.8",
    )


def test_a_start_that_is_feasible_up_to_rounding_is_accepted():
    x0 = np.array([0.1] * 10)
    assert sum(x0.tolist()) != 1.0
    assert minimize(Quadratic(np.eye(10)), Simplex(), x0=x0).status == "optimal"


# ------------------------------------------------------------------ matrices, constants, kinds


def test_asymmetric_matrices_are_refused():
    Q = np.diag([1.0, 2.0, 3.0])
    Q[0, 2] = 0.5
    refuses(lambda: Quadratic(Q), "symmetric", "Q[0, 2]", 0.5, "Q[2, 0]", 0)
    big = np.eye(200)
    big[130, 70] = 1e-3
    refuses(lambda: Quadratic(big), "symmetric", 0.001, "130", "70")
    # Rounding is not asymmetry.
    Q = np.random.default_rng(0).normal(size=(20, 20))
    Quadratic((Q @ np.diag(np.arange(20.0))) @ Q.T)


def test_lipschitz_constants_must_be_positive():
    f = lambda x: float(x @ x)  # noqa: E731
    for bad in (0.0, -2.0):
        refuses(lambda bad=bad: Smooth(f, f, lipschitz=[1.0, bad, 1.0]), "lipschitz[1]", f"{bad:g}")
        refuses(lambda bad=bad: Smooth(f, f, lipschitz=bad), "lipschitz", f"{bad:g}")
        for rule in ("gs-q-lipschitz", "gs-1-lipschitz", "ratio", "random-lipschitz", "libsvm"):
            refuses(
                lambda bad=bad, rule=rule: ask(rule, lipschitz=[1.0, bad, 1.0]),
                "lipschitz[1]",
                f"{bad:g}",
            )


@pytest.mark.parametrize("rule", [rule for rule in RULES if RULES[rule].weighted])
def test_a_weighted_rule_asks_for_its_constants(rule):
    refuses(lambda: ask(rule), repr(rule), "lipschitz")
    f = Smooth(lambda x: float(x @ x), lambda x: 2 * x)
    refuses(lambda: solve(f, SumBox(1.0, upper=np.ones(3)), rule=rule), repr(rule), "lipschitz")


def test_a_negative_diagonal_is_no_lipschitz_constant():
    Q = np.diag([1.0, -2.0, 1.0])
    refuses(lambda: solve(Quadratic(Q), rule="gs-q-lipschitz"), "gs-q-lipschitz", "-2", "1")
    refuses(lambda: solve(Quadratic(Q), step="lipschitz"), "lipschitz", "-2", "1")


@pytest.mark.parametrize(
    "array", [np.array([1, 2, "x"], object), np.array([1j, 1, 1]), np.array(["1", "2", "3"])]
)
def test_only_real_numbers(array):
    kind = str(array.dtype)
    refuses(lambda: Quadratic(EYE, array), "c", kind)
    refuses(lambda: Quadratic(np.array([array] * 3)), "Q", kind)
    refuses(lambda: LeastSquares(np.array([array] * 3), np.ones(3)), "A", kind)
    refuses(lambda: LeastSquares(EYE, array), "b", kind)
    refuses(lambda: solve(constraint=SumBox(1.0, lower=array)), "lower", kind)
    refuses(lambda: solve(constraint=SumBox(1.0, upper=array)), "upper", kind)
    refuses(lambda: solve(constraint=SumBox(1.0, coefficients=array)), "coefficients", kind)
    refuses(lambda: solve(constraint=SumBox(array)), "total", kind)
    refuses(lambda: solve(x0=array), "x0", kind)
    refuses(lambda: ask(gradient=array), "gradient", kind)
    refuses(lambda: ask("ratio", lipschitz=array), "lipschitz", kind)
    refuses(lambda: Smooth(sum, sum, lipschitz=array), "lipschitz", kind)


def test_only_real_scalars():
    refuses(lambda: solve(constraint=SumBox(1j)), "total", "1j")
    refuses(lambda: solve(constraint=SumBox(None)), "total", "None")
    refuses(lambda: solve(constraint=SumBox("one")), "total", "'one'")
    refuses(lambda: solve(constraint=SumBox(1.0, lower=None)), "lower", "None")
    refuses(lambda: solve(tol="small"), "tol", "'small'")
    refuses(lambda: LeastSquares(EYE, np.ones(3), ridge=-1.0), "ridge", "-1")
    refuses(lambda: LeastSquares(EYE, np.ones(3), ridge=1j), "ridge", "1j")
    sparse = scipy.sparse.csr_array(EYE * 1j)
    refuses(lambda: LeastSquares(sparse, np.ones(3)), "A", "complex128")


def test_wrong_types_of_objective_and_constraint_are_refused():
    refuses(lambda: solve(EYE), "objective", error=TypeError)
    refuses(lambda: minimize(Quadratic(EYE), 1.0), "constraint", "SumBox", error=TypeError)
    refuses(lambda: Smooth(1.0, sum), "value", "callable")
    refuses(lambda: Smooth(sum, 1.0), "gradient", "callable")
    refuses(lambda: Smooth(sum, sum, 1.0), "hessian", "callable")


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("gs_q", "gs-q"), ("GS-1", "gs-1"), ("cylic", "cyclic"), ("gs-q-lipshitz", "gs-q-lipschitz")],
)
def test_a_misspelled_rule_gets_a_suggestion(typed, meant):
    refuses(lambda: solve(rule=typed), "rule", repr(typed), f"did you mean {meant!r}")
    refuses(lambda: ask(typed), "rule", repr(typed), f"did you mean {meant!r}")


@pytest.mark.parametrize(
    ("typed", "meant"), [("1/l2", "1/L2"), ("exakt", "exact"), ("backtrack", "backtracking")]
)
def test_a_misspelled_step_gets_a_suggestion(typed, meant):
    refuses(lambda: solve(step=typed), "step", repr(typed), f"did you mean {meant!r}")


def test_names_of_the_wrong_type_are_refused():
    for bad in (None, 3, ["gs-s"]):
        refuses(lambda bad=bad: solve(rule=bad), "rule", repr(bad))
        refuses(lambda bad=bad: ask(bad), "rule", repr(bad))
    refuses(lambda: solve(rule="zzzz"), "rule", "'zzzz'", *RULES)
    refuses(lambda: solve(step=None), "step", "None")
    refuses(lambda: solve(step=[1.0]), "step", "[1.0]")


# ------------------------------------------------------------------ callables that raise


class Boom(Exception):
    pass


SOLVERS = {
    "native": Quadratic(np.diag([1.0, 2.0, 3.0]), [0.1, 0.3, 0.2]),
    "readable": Smooth(
        lambda x: float(x @ (x * [1, 2, 3]) / 2 + x @ [0.1, 0.3, 0.2]),
        lambda x: x * [1, 2, 3] + [0.1, 0.3, 0.2],
    ),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_callback_that_raises_propagates_and_leaves_nothing_behind(solver):
    objective, constraint = SOLVERS[solver], SumBox(1.0, upper=np.ones(3))
    before = minimize(objective, constraint)

    def boom(progress):
        raise Boom(f"at {progress.n_iter}")

    with pytest.raises(Boom, match="at "):
        minimize(objective, constraint, callback=boom)
    after = minimize(objective, constraint)
    assert after.x.tobytes() == before.x.tobytes()
    assert after.n_iter == before.n_iter


def test_an_objective_or_a_step_that_raises_propagates():
    def boom(_):
        raise Boom

    box = SumBox(1.0, upper=np.ones(3))
    with pytest.raises(Boom):
        minimize(Smooth(boom, lambda x: x), box)
    with pytest.raises(Boom):
        minimize(Smooth(lambda x: 0.0, boom), box)
    with pytest.raises(Boom):
        minimize(SOLVERS["readable"], box, step=boom)


@pytest.mark.parametrize("answer", [0.0, -1.0, NAN])
def test_a_step_function_must_return_a_step_size(answer):
    refuses(
        lambda: minimize(SOLVERS["native"], SumBox(1.0), step=lambda progress: answer),
        "step",
        f"{answer:g}",
    )


# ------------------------------------------------------------------ indefinite matrices

INDEFINITE = {
    "a hill": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "a negative diagonal": np.diag([1.0, -3.0, 1.0]),
    "all directions fall": -np.eye(3),
}


@pytest.mark.parametrize(
    ("name", "rule", "step", "upper"),
    pairwise(
        INDEFINITE,
        ["auto", "gs-s", "gs-q", "gs-1", "libsvm", "random", "cyclic"],
        ["auto", "exact", "backtracking", "1/L2", 0.1],
        [INF, 0.7],
    ),
)
def test_an_indefinite_matrix_is_not_called_optimal(name, rule, step, upper):
    """The status is not `optimal` where the function is not convex along the pairs of the solve."""
    result = minimize(
        Quadratic(INDEFINITE[name], [0.3, 0.1, 0.2]), SumBox(1.0, 0.0, upper), rule=rule, step=step,
        seed=0, max_iter=20_000,
    )  # fmt: skip
    assert result.status in ("stalled", "unbounded"), result.message
    assert result.n_iter < 20_000
    assert (result.x >= 0).all()


def test_the_top_of_a_hill_is_not_optimal():
    """f = x0 x1 on the simplex: the start is stationary but the maximum."""
    result = minimize(Quadratic([[0.0, 1.0], [1.0, 0.0]]), Simplex())
    assert result.status in ("stalled", "unbounded"), result.message


@pytest.mark.parametrize("rule", ["auto", "gs-s"])
def test_a_saddle_that_no_pair_reveals_is_not_optimal(rule):
    """Every pair is convex or flat, but along (1, -2, 1) the function falls without bound."""
    saddle = Quadratic(np.diag([1.0, -1.0, 1.0]), [1.0, 2.0, 3.0])
    result = minimize(saddle, SumBox(0.0, -INF), rule=rule)
    assert result.status in ("stalled", "unbounded"), result.message


def test_negative_curvature_off_the_constraint_does_not_matter():
    """I - 11' is indefinite, but convex on every set with a fixed sum."""
    Q = np.eye(4) - np.ones((4, 4))
    result = minimize(Quadratic(Q, [1.0, 0.5, 0.2, 0.1]), Simplex())
    assert result.status == "optimal"


# ------------------------------------------------------------------ Ctrl-C

LONG_SOLVE = """
import numpy as np, pairstep, sys
n = 2000
rng = np.random.default_rng(0)
A = rng.normal(size=(n, 40)) * np.logspace(0, 4, 40)
Q = A @ A.T + np.diag(np.logspace(-4, 0, n))
f = pairstep.Quadratic(Q, rng.normal(size=n))
box = pairstep.SumBox(0.0, -1e3, 1e3)
for options in sys.argv[1:]:
    options = dict(tol=0, max_iter=10**12, seed=0) | eval(options)
    print("ready", flush=True)
    try:
        result = pairstep.minimize(f, box, **options)
        print("ended", result.status, result.n_iter, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
LONG_OPTIONS = [
    *({"rule": rule} for rule in ("gs-s", "libsvm", "gs-1", "gs-q-lipschitz", "random")),
    {"rule": "random", "history": True},
]


@pytest.mark.faults
@pytest.mark.unsanitized
@pytest.mark.slow
def test_ctrl_c_stops_the_native_loop_within_a_second():
    with subprocess.Popen(
        [sys.executable, "-c", LONG_SOLVE, *map(repr, LONG_OPTIONS)],
        stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            for options in LONG_OPTIONS:
                assert child.stdout.readline() == "ready\n"
                time.sleep(0.5)
                assert child.poll() is None
                child.send_signal(signal.SIGINT)
                sent = time.perf_counter()
                assert child.stdout.readline() == "interrupted\n", options
                assert time.perf_counter() - sent < 1.0, options
            child.wait(timeout=5)
        finally:
            child.kill()


UP = np.nextafter(0.5, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SumBox(1.0, [0, 0, UP], [1, 1, 0.5]).start(),
        lambda: SumBox((UP, 0.5)).start(3),
        lambda: SumBox(1.0, groups=list("aab"), group_total={"a": (UP, 0.5)}),
        lambda: L1Penalized(L1Penalized(Quadratic(EYE), 1.0, 0.5), 1.0, [0.5, UP, UP]),
        lambda: ask(x=[0.2, 0.3, UP], upper=[1.0, 1.0, 0.5]),
        lambda: SumBox(1.0, coefficients=[1.0, 1e-50 * (1 - 1e-9)]),
        lambda: Quadratic(np.diag([1.0, np.nextafter(1e100, INF)])),
    ],
)
def test_two_numbers_that_differ_print_differently(call):
    with pytest.raises(ValueError, match=r"\d\.\d{12,}"):
        call()


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array, np.ndarray.tolist, list])
def test_allowed_asymmetry_depends_on_the_dtype(convert):
    rng = np.random.default_rng(0)
    returns = rng.standard_normal((200, 40)).astype(np.float32)
    covariance = (returns.T * rng.random(200).astype(np.float32)) @ returns
    assert (covariance != covariance.T).any()
    if convert is np.ndarray.tolist:  # Python's floats are float64
        refuses(lambda: Quadratic(covariance.tolist()), "symmetric", "rounding", "(Q + Q.T) / 2")
        return
    Q = Quadratic(convert(covariance)).Q
    assert abs(Q - Q.T).max() == 0
    covariance[0, 1] *= 1.01
    refuses(lambda: Quadratic(convert(covariance)), "symmetric", "Q[0, 1]")
