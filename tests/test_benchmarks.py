"""The comparison of `make bench` finds a slower version, and races time only what is optimal."""

import importlib
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pairstep

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="not a full source checkout"
)


def imported(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module(f"benchmarks.{name}")


@pytest.fixture(scope="module")
def compare():
    yield from imported("compare")


@pytest.fixture(scope="module")
def harness():
    yield from imported("harness")


@pytest.fixture
def package(tmp_path):
    """Return a folder with a copy of the package and of its compiled module."""
    copy = tmp_path / "package" / "pairstep"
    shutil.copytree(Path(pairstep.__file__).parent, copy)
    compiled = Path(sys.modules["pairstep._core"].__file__)
    if not (copy / compiled.name).exists():
        shutil.copy(compiled, copy)
    return copy.parent


def test_every_call_runs_with_a_correct_result(compare, package):
    times = {name: [math.inf, math.inf] for name in compare.CALLS}
    errors = {name: ["", ""] for name in compare.CALLS}
    compare.measure([package, package], compare.CALLS, 1, 0.0, times, errors)
    assert errors == {name: ["", ""] for name in compare.CALLS}
    assert all(0 < time < math.inf for pair in times.values() for time in pair)


def test_a_slower_version_and_a_broken_call_are_found(compare, package, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(package, other)
    with open(other / "pairstep" / "__init__.py", "a", encoding="utf-8") as file:
        file.write(
            "\n_quick = solve_qp\n"
            "def solve_qp(*args, **kwargs):\n"
            "    sum(range(10_000))\n"
            "    return _quick(*args, **kwargs)\n"
            "del efficient_frontier\n"
        )
    names = ["QP, n = 20", "frontier, n = 20"]
    times = {name: [math.inf, math.inf] for name in names}
    errors = {name: ["", ""] for name in names}
    compare.measure([package, other], names, 1, 0.01, times, errors)
    assert times[names[0]][1] > 2 * times[names[0]][0]
    assert math.isfinite(times[names[1]][0])
    assert "efficient_frontier" in errors[names[1]][1]


LIMITS = 1e-9, 1e-9
BUDGET = 60.0


def projection(n=5):
    """Return the problem of projecting a point onto the simplex, and a judge of solutions."""
    target = np.linspace(0, 1, n)
    best = np.sum((pairstep.Simplex().project(target) - target) ** 2)

    def judge(x):
        return np.sum((x - target) ** 2) - best, max(abs(x.sum() - 1), -x.min())

    return target, judge


def entry(harness, solver, solve, ladder=(1e-4, 1e-8)):
    return harness.Entry(solver, "", lambda: solve, ladder)


class TestRace:
    def test_only_optimal_points_are_timed(self, harness, tmp_path):
        target, judge = projection()
        calls = tmp_path / "calls"  # entries run in processes of their own

        def noted(name, x):
            def solve(tol):
                with open(calls, "a", encoding="utf-8") as file:
                    file.write(f"{name} {tol:g}\n")
                return None if x is None else x(tol)

            return entry(harness, name, solve)

        right = pairstep.Simplex().project(target)
        runs = harness.race(
            [
                noted("pairstep", lambda _: right),
                noted("rough", lambda tol: right + tol * np.array([1, -1, 0, 0, 0]) ** 2 / 2),
                noted("equal weights", lambda _: np.full(5, 0.2)),
                noted("infeasible", lambda _: target),
                noted("not finite", lambda _: np.full(5, np.nan)),
                noted("none", None),
            ],
            judge, LIMITS, BUDGET,
        )  # fmt: skip
        status = {run.entry.solver: run.status for run in runs}
        assert status["pairstep"] == "ok"
        assert status["rough"].endswith("infeasible by 1e-08")
        assert status["equal weights"].startswith("failed: gap 5e-01, infeasible by 0e+00")
        assert status["infeasible"].startswith("failed: gap -")
        assert status["not finite"] == status["none"] == "no solution"
        assert [run.entry.solver for run in runs if run.best > 0] == ["pairstep"]
        assert harness.fastest(runs) is None
        counts = {name: calls.read_text().count(f"{name} ") for name in status}
        assert counts.pop("pairstep") >= 5
        assert set(counts.values()) == {2}  # once for each tolerance, and never timed

    def test_a_solver_runs_at_the_loosest_tolerance_that_suffices(self, harness):
        target, judge = projection()
        right = pairstep.Simplex().project(target)
        shift = np.array([0, 0, 0, 1.0, -1.0])
        ladder = (1e-2, 1e-4, 1e-6, 1e-8)
        loose = entry(harness, "loose", lambda tol: right + tol * shift, ladder)
        (run,) = harness.race([loose], judge, LIMITS, BUDGET)
        assert run.ok
        assert run.tol == max(tol for tol in ladder if abs(judge(right + tol * shift)[0]) <= 1e-9)
        assert 0 < run.best <= run.first

    def test_other_failures_are_named(self, harness):
        _, judge = projection()

        def missing():
            import a_solver_that_does_not_exist  # noqa: F401

        def broken(_):
            raise RuntimeError("no convergence")

        entries = [harness.Entry("missing", "", missing), entry(harness, "broken", broken)]
        missing, broken = harness.race(entries, judge, LIMITS, BUDGET)
        assert missing.status.startswith(
            "not installed (No module named 'a_solver_that_does_not_exist'"
        )
        assert broken.status == "RuntimeError: no convergence"
        slow = entry(harness, "slow", lambda _: time.sleep(BUDGET))
        (slow,) = harness.race([slow], judge, LIMITS, budget=1.0)
        assert slow.status == "over 1 s"
        assert not any(run.best > 0 for run in (missing, broken, slow))

    def test_a_lower_value_than_the_reference_is_a_failure(self, harness):
        target, judge = projection()
        right = pairstep.Simplex().project(target)
        entries = [entry(harness, "better", lambda _: right)]
        (run,) = harness.race(entries, lambda x: (judge(x)[0] - 0.1, judge(x)[1]), LIMITS, BUDGET)
        assert not run.ok
        assert "LOWER THAN THE REFERENCE" in run.status


@pytest.mark.parametrize(
    ("module", "only", "table"),
    [
        ("qp", "factor model, n = 100", "qp-larger"),
        ("rows", "dense 20 x 5", "rows"),
        ("smooth", "stacking of log odds", "smooth"),
    ],
)
def test_a_benchmark_writes_its_table(module, only, table, tmp_path):
    pytest.importorskip("quadprog")
    pytest.importorskip("qpsolvers")
    pytest.importorskip("cvxpy")
    command = [sys.executable, "-m", f"benchmarks.{module}", "--quick", "--only", only, "--peers",
               "quadprog", "SLSQP", "--out", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    content = json.loads((tmp_path / f"{table}.json").read_text(encoding="utf-8"))
    (row,) = content["rows"]
    cells = dict(zip(content["columns"], row, strict=True))
    assert row[0].startswith(only)
    assert cells["faster by"] > 0
    assert cells["best peer, ms"].split()[1] in ("(quadprog)", "(SLSQP)")
    assert content["command"].startswith(f"python -m benchmarks.{module} --quick --only")
    assert str(tmp_path) not in content["command"]
    assert content["versions"]["pairstep"] == pairstep.__version__
    assert f"| {row[0]} | " in done.stdout
    assert "gap" in done.stderr
