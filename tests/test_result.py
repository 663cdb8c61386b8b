"""Results: repr, HTML, plot, the attribute names of SciPy, and multipliers of the bounds."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import pairstep
from pairstep import (  # fmt: skip
    FactorModel,
    L1Penalized,
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    Status,
    SumBox,
    coordinate_descent,
    minimize,
    simplex_lstsq,
    solve_qp,
)
from pairstep.extras import needed
from pairstep.show import described, duration

RNG = np.random.default_rng(4)
N = 8
ROOT = RNG.normal(size=(20, N))
RISK = ROOT.T @ ROOT / 20
PROFIT = 0.1 * RNG.normal(size=N)
NAMES = list("hgfedcba")
LABELED = pd.DataFrame(RISK, index=NAMES, columns=NAMES)


# ------------------------------------------------------------------ SciPy's names


def test_attribute_names_of_scipy():
    result = solve_qp(RISK)
    assert result.success is True
    assert result.nit == result.n_iter
    assert "within the tolerance" in result.message
    stopped = solve_qp(RISK, -PROFIT, max_iter=0)
    assert stopped.success is False
    batch = simplex_lstsq(np.eye(2), [[0.9, math.nan], [0.5, 2.0]])
    assert batch.success.tolist() == [True, False]
    assert batch.nit is batch.n_iter


def test_equality_does_not_raise():
    first, second = solve_qp(RISK), solve_qp(RISK)
    assert first == first
    assert first != second
    assert len({first, second}) == 2
    batch = simplex_lstsq(np.eye(2), np.eye(2))
    assert batch == batch
    assert batch != simplex_lstsq(np.eye(2), np.eye(2))
    recorded = minimize(Quadratic(RISK), Simplex(), history=True)
    assert recorded.history != minimize(Quadratic(RISK), Simplex(), history=True).history


# ------------------------------------------------------------------ multipliers of the bounds

CASES = {
    "bounds": ({"upper": 0.3}, {}),
    "coefficients": ({"upper": 0.3, "coefficients": RNG.uniform(0.5, 2.0, N)}, {}),
    "negative coefficients": (
        {"lower": -0.5, "upper": 0.3, "coefficients": np.r_[-1.0, np.ones(N - 1)]},
        {},
    ),
    "range": ({"total": (0.5, 1.0), "upper": 0.3}, {}),
    "groups": ({"total": [1.0, 0.7], "upper": 0.4, "groups": np.arange(N) % 2}, {}),
    "l1_terms": ({"upper": 0.3}, {"l1": 0.02, "center": 0.1}),
    "l1 terms at the bounds": ({"upper": 0.3}, {"l1": 0.02, "center": 0.3}),
    "fixed": ({"lower": np.r_[0.2, np.zeros(N - 1)], "upper": np.r_[0.2, np.full(N - 1, 0.3)]}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_multipliers_are_derivatives_of_the_optimum_by_the_bounds(name):
    """Compared with finite differences of the optimum in each bound."""
    bounds, l1_terms = CASES[name]
    bounds = {"lower": 0.0, "total": 1.0} | bounds
    lower, upper = (np.broadcast_to(bounds[k], N).astype(float) for k in ("lower", "upper"))

    def optimum(low, high):
        moved = bounds | {"lower": low, "upper": high}
        return solve_qp(RISK, -PROFIT, **moved, **l1_terms, tol=1e-12)

    result = optimum(lower, upper)
    assert result.success
    at = (result.x == lower) | (result.x == upper)
    assert at.any()
    assert (result.bound_multipliers[~at] == 0).all()
    free_above, free_below = lower < upper, result.x > lower
    assert (result.bound_multipliers[(result.x == lower) & free_above] >= 0).all()
    assert (result.bound_multipliers[(result.x == upper) & free_below] <= 0).all()
    step = 1e-6
    for i in np.flatnonzero(at):
        change = np.zeros(N)
        change[i] = step
        moves_lower = result.x[i] == lower[i]
        moves_upper = result.x[i] == upper[i]
        ends = [
            optimum(lower + sign * change * moves_lower, upper + sign * change * moves_upper).fun
            for sign in (-1, 1)
        ]
        slopes = (result.fun - ends[0]) / step, (ends[1] - result.fun) / step
        # An L1 term at a bound has two slopes; any multiplier between them is valid.
        low, high = min(slopes) - 1e-4, max(slopes) + 1e-4
        assert low <= result.bound_multipliers[i] <= high, (i, slopes, result.bound_multipliers[i])


def test_multipliers_and_gradient_add_up():
    result = solve_qp(RISK, -PROFIT, upper=0.3, tol=1e-12)
    np.testing.assert_allclose(result.gradient, RISK @ result.x - PROFIT)
    np.testing.assert_allclose(
        result.gradient, result.sum_multiplier + result.bound_multipliers, atol=1e-9
    )


# ------------------------------------------------------------------ as text


def test_a_result_is_a_table():
    result = replace(solve_qp(LABELED, -PROFIT, upper=0.4), setup_time=1e-3, solve_time=0.25e-3)
    lines = repr(result).splitlines()
    assert lines[0] == "Result: optimal"
    facts = {line[2:17].strip(): line[17:].strip() for line in lines[1:8]}
    assert facts["message"] == result.message
    assert float(facts["value"]) == pytest.approx(result.fun)
    assert float(facts["KKT violation"]) == pytest.approx(result.kkt_violation, rel=0.01)
    assert facts["bound"] == f"at most {result.suboptimality_bound:.2e} above the optimum"
    assert facts["iterations"] == str(result.n_iter)
    assert facts["time"] == "1.25 ms"
    zeros = int((result.x == 0).sum())
    assert facts["weights"] == f"{N}, {zeros} of them 0"
    largest = result.weights.abs().sort_values(ascending=False, kind="stable").index[:5]
    assert [line.split()[0] for line in lines[8:]] == list(largest)
    assert str(result) == repr(result)


def test_without_labels_indices_are_shown():
    assert "x[0]  " in repr(solve_qp(np.diag([1.0, 2.0])))


def test_a_batch_is_a_table():
    batch = simplex_lstsq(np.eye(2), [[0.9, math.nan], [0.5, 2.0]])
    lines = repr(batch).splitlines()
    assert lines[0] == "BatchResult: 2 problems of 2 variables"
    assert lines[1].split(maxsplit=1)[1] == "1 invalid, 1 optimal"
    assert [line.split("  ")[1] for line in lines[2:]] == [
        "KKT violation", "bound", "iterations", "time"
    ]  # fmt: skip
    nothing = simplex_lstsq(np.eye(2), [[math.nan], [0.5]])
    assert "1 invalid" in repr(nothing)
    assert "violation" not in repr(nothing)


def test_durations_are_printed_with_units():
    assert [duration(t) for t in (12.345, 0.0123, 4.2e-5)] == ["12.3 s", "12.3 ms", "42 us"]


def test_what_is_not_given_is_not_described():
    assert described("Nothing", x=None) == "Nothing()"


def flat(x):
    return 0.0


QUADRATIC = Quadratic(np.eye(2), [1.0, -1.0])
REPRS = [
    (QUADRATIC, "Quadratic(Q=2x2, c=-1..1)"),
    (Quadratic(scipy.sparse.eye_array(3)), "Quadratic(Q=3x3 sparse, c=0)"),
    (LeastSquares(np.eye(2), [1.0, 2.0], 0.5), "LeastSquares(A=2x2, b=1..2, ridge=0.5)"),
    (FactorModel([[1.0, 1.0]], [1.0, 3.0]), "FactorModel(F=1x2, D=1..3, c=0)"),
    (
        L1Penalized(QUADRATIC, 0.5, [0.6, 0.4]),
        "L1Penalized(objective=Quadratic(Q=2x2, c=-1..1), l1=0.5, center=0.4..0.6)",
    ),
    (Smooth(flat), "Smooth(value=flat)"),
    (
        Smooth(flat, np.zeros_like, lipschitz=2.0),
        "Smooth(value=flat, gradient=zeros_like, lipschitz=2)",
    ),
    (pairstep.MixtureLikelihood([[1.0, 2.0]]), "MixtureLikelihood(m=1, n=2)"),
    (pairstep.DOptimal(np.eye(2)), "DOptimal(A=2x2)"),
    (pairstep.RiskParity(np.eye(2), [0.2, 0.8]), "RiskParity(Q=2x2, budgets=0.2..0.8)"),
]


@pytest.mark.parametrize(("thing", "expected"), REPRS)
def test_objectives_have_a_repr_and_cannot_be_changed(thing, expected):
    assert repr(thing) == expected
    for name in {"n", "variables"} & set(vars(thing)):
        with pytest.raises(AttributeError, match=f"cannot set {name}: .* is immutable; create a"):
            setattr(thing, name, None)


# ------------------------------------------------------------------ immutability


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (Quadratic(np.eye(2)), "c"),
        (LeastSquares(np.eye(2), [1.0, 2.0]), "b"),
        (FactorModel([[1.0, 1.0]], 1.0), "ridge"),
        (L1Penalized(Quadratic(np.eye(2)), 1.0), "l1_terms"),
    ],
)
def test_vectors_of_objectives_cannot_be_changed(thing, name):
    kind = type(thing).__name__
    with pytest.raises(AttributeError, match=f"cannot set {name}: a {kind} is immutable; create"):
        setattr(thing, name, None)
    held = getattr(thing, name)
    held = held[0] if isinstance(held, tuple) else held
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 5.0


# ------------------------------------------------------------------ in notebooks


def test_the_card_is_well_formed_and_escaped():
    names = ["<b>", "a & b"]
    risk = pd.DataFrame(np.eye(2), names, names)
    result = coordinate_descent(
        Quadratic(risk, [0.0, -0.5]), Simplex(), rule="gs-s", step=0.3, history=True
    )
    tree = ET.fromstring(result._repr_html_())
    cells = [cell.text.strip() for cell in tree.iter("th")]
    assert cells[:2] == ["value", "KKT violation"]
    assert set(cells[-2:]) == set(names)
    (line,) = tree.iter("polyline")
    points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    assert len(points) == len(result.history.value)
    assert all(0 <= x <= 320 and 0 <= y <= 80 for x, y in points)
    assert points[0][1] < points[-1][1]  # the violation decreases; in SVG, y grows downward
    assert f"over {result.n_iter} iterations" in tree.find(".//{*}title").text


def test_the_card_without_a_history_has_no_sketch():
    assert "<svg" not in solve_qp(RISK)._repr_html_()


def test_a_sketch_of_many_points_or_of_one_is_small():
    start = [0.25] * 4
    already = coordinate_descent(
        Quadratic(np.eye(4)), Simplex(), x0=start, rule="gs-s", history=True
    )
    assert already.n_iter == 0
    ET.fromstring(already._repr_html_())
    long = coordinate_descent(
        Quadratic(RISK), SumBox(lower=-1), rule="random", seed=1, tol=1e-14, history=True
    )
    assert len(long.history.value) > 320
    points = re.search(r'points="([^"]*)"', long._repr_html_())[1]
    assert len(points.split()) <= 320


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    (bars,) = solve_qp(LABELED, -PROFIT).plot()
    assert len(bars.patches) == (solve_qp(LABELED, -PROFIT).x != 0).sum() > 2
    result = minimize(Quadratic(LABELED, -PROFIT), Simplex(), history=True)
    bars, convergence = result.plot()
    assert bars.get_yticklabels()[-1].get_text() == result.weights.abs().idxmax()
    np.testing.assert_array_equal(
        convergence.lines[0].get_ydata()[:2], result.history.violation[:2]
    )
    assert convergence.get_yscale() == "log"
    pyplot.close("all")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    import sys

    for module, message in (
        ("matplotlib.pyplot", "plot needs matplotlib: pip install 'pairstep[plots]'"),
        ("sklearn", "plot needs scikit-learn: pip install 'pairstep[sklearn]'"),
    ):
        for name in [m for m in sys.modules if m.split(".")[0] == module.split(".")[0]]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [_Refuses(module.split(".")[0])])
        with pytest.raises(ImportError) as said:
            needed(module, by="plot")
        assert str(said.value) == message
        monkeypatch.undo()


def test_import_errors_within_a_package_are_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "matplotlib.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    import sys

    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        needed("matplotlib", by="plot")


class _Refuses:
    def __init__(self, library):
        self.library = library

    def find_spec(self, name, path=None, target=None):
        raise ModuleNotFoundError(f"No module named {name!r}", name=self.library)


def test_statuses_are_strings():
    assert solve_qp(RISK).status is Status.OPTIMAL
    assert pairstep.Status("optimal") == "optimal"


def test_the_multiplier_of_a_bound_at_the_center_of_an_l1_term():
    """The variable can only leave both upward, where the L1 term adds to the derivative."""
    given = {"Q": np.eye(2), "c": [0.0, 2.0], "l1": 0.3, "center": 0.0}
    result = solve_qp(**given)
    moved = solve_qp(**given, lower=[0.0, 1e-6])
    assert result.x.tolist() == [1.0, 0.0]
    assert result.bound_multipliers == pytest.approx(
        [0.0, (moved.fun - result.fun) / 1e-6], abs=1e-5
    )
