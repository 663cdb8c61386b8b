"""The choice of an instruction set, and agreement between the results of all of them."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pairstep
from pairstep import _core

# Differences between instruction sets that docs/guide/reproducibility.md promises not to exceed.
SOLUTION_TOLERANCE = 1e-8
KERNEL_VALUE_TOLERANCE = 1e-12


def imported(**environment):
    """Import the package in a new process and return that process."""
    code = "from pairstep import _core; print(_core.instruction_set())"
    variables = {k: v for k, v in os.environ.items() if k != "PAIRSTEP_ISA"} | environment
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", _core.instruction_sets())
def test_the_environment_chooses_an_instruction_set(name):
    assert imported(PAIRSTEP_ISA=name).stdout.strip() == name


@pytest.mark.parametrize("environment", [{}, {"PAIRSTEP_ISA": ""}])
def test_the_best_instruction_set_is_the_default(environment):
    assert imported(**environment).stdout.strip() == _core.instruction_sets()[-1]


def test_an_instruction_set_that_the_cpu_lacks_is_an_error():
    done = imported(PAIRSTEP_ISA="avx1024")
    assert done.returncode != 0
    assert "ImportError: PAIRSTEP_ISA=avx1024 is not an instruction set of this CPU" in done.stderr
    assert ", ".join(_core.instruction_sets()) in done.stderr


def test_the_instruction_sets_are_those_of_the_cpu():
    expected = ["baseline"]
    if platform.machine() in ("aarch64", "arm64"):
        expected.append("neon")
    elif platform.machine() == "x86_64":
        listed = Path("/proc/cpuinfo")
        if not listed.exists():
            pytest.skip("no list of CPU features")
        (flags, *_) = (line for line in listed.read_text().splitlines() if line.startswith("flags"))
        has = set(flags.split()).issuperset
        if has({"avx2", "fma", "bmi1", "bmi2"}):
            expected.append("avx2")
            if has({"avx512f", "avx512dq", "avx512vl", "avx512bw"}):
                expected.append("avx512")
    assert _core.instruction_sets() == expected


def with_baseline(solve):
    """Return the result of a function with the instruction set of the test and with baseline."""
    here = solve()
    assert _core.use_instruction_set("baseline")
    return here, solve()


def problem(n=60):
    rng = np.random.default_rng(5)
    B = rng.standard_normal((2 * n, n))
    return B.T @ B / n, rng.standard_normal(n), B, rng.standard_normal(2 * n)


Q, C, B, RIGHT = problem()
SOLVES = {
    "quadratic program": lambda: pairstep.solve_qp(Q, C, upper=0.1, tol=1e-10),
    "smooth function": lambda: pairstep.minimize(
        pairstep.Logistic(B[:, :20], np.sign(RIGHT)), pairstep.SumBox(1.0, -2, 2), tol=1e-10
    ),
    "rows": lambda: pairstep.solve_qp(
        Q, C, rows=np.random.default_rng(6).random((4, 60)), rows_upper=np.full(4, 0.55)
    ),
}


@pytest.mark.parametrize("name", SOLVES)
def test_solutions_agree(name, instruction_set):
    here, baseline = with_baseline(lambda: SOLVES[name]().x)
    np.testing.assert_allclose(here, baseline, rtol=0, atol=SOLUTION_TOLERANCE)


@pytest.mark.parametrize("rule", ["gs-s", "gs-q", "gs-1", "libsvm"])
def test_steps_have_the_same_bits(rule, instruction_set):
    f = pairstep.Quadratic(Q, C)
    # Without the Newton phase, which factorizes matrices, every operation is a step.
    here, baseline = with_baseline(
        lambda: pairstep.coordinate_descent(f, pairstep.Simplex(), rule=rule, max_iter=40, tol=0).x
    )
    np.testing.assert_array_equal(here, baseline)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_decision_functions_agree(kernel, instruction_set):
    pytest.importorskip("sklearn", reason="scikit-learn has no wheels for musl")
    from pairstep import svm

    X = np.random.default_rng(7).standard_normal((300, 6))
    y = X[:, 0] ** 2 + X[:, 1] > 0.5
    model = svm.SVC(kernel=kernel, tol=1e-9).fit(X, y)
    here, baseline = with_baseline(lambda: model.decision_function(X))
    scale = np.abs(model.dual_coef_).sum()
    np.testing.assert_allclose(here, baseline, rtol=0, atol=KERNEL_VALUE_TOLERANCE * scale)
