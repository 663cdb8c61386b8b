"""Progress messages: none by default, on standard output with verbose, and in the logger."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from pairstep import (
    LeastSquares,
    Quadratic,
    Simplex,
    Smooth,
    log,
    minimize,
    simplex_lstsq,
    solve_qp,
)
from pairstep.svm import SVC

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(40, 60))
RISK = ROOT.T @ ROOT
WIDE = LeastSquares(RNG.normal(size=(300, 1200)), RNG.normal(size=300))
SMOOTH = Smooth(lambda x: float(x @ RISK @ x / 2), lambda x: RISK @ x, n=60)
SOLVERS = {
    "greedy": (Quadratic(RISK, RNG.normal(size=60)), {"rule": "gs-s"}),
    "block": (WIDE, {}),
    "loop": (SMOOTH, {"x0": np.full(60, 1 / 60), "max_iter": 300, "rule": "gs-1"}),
    "smooth": (SMOOTH, {}),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)


@pytest.fixture
def often(monkeypatch):
    """Print a line at every chance instead of once a second."""
    monkeypatch.setattr(log, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("pairstep.solve.greedy.FIRST_STRIDE", 4)


@every_solver
def test_nothing_is_printed_by_default(solver, capfd):
    objective, options = SOLVERS[solver]
    minimize(objective, Simplex(), **options)
    assert capfd.readouterr() == ("", "")


@every_solver
def test_verbose_prints_lines_and_an_end(solver, capsys, often):
    objective, options = SOLVERS[solver]
    quiet = minimize(objective, Simplex(), **options)
    result = minimize(objective, Simplex(), verbose=True, **options)
    *progress, end = capsys.readouterr().out.splitlines()
    assert len(progress) > 3
    assert all(line.startswith("[pairstep] iteration ") for line in progress)
    counts = [int(line.split()[2].rstrip(":")) for line in progress]
    assert counts == sorted(counts)
    values = [float(line.split("value ")[1].split(",")[0]) for line in progress]
    assert values[-1] <= values[0]
    assert end.startswith(f"[pairstep] {result.status} after ")
    assert end.endswith(result.message)
    # Logging does not change the result.
    np.testing.assert_array_equal(result.x, quiet.x)
    assert result.n_iter == quiet.n_iter


@every_solver
def test_the_logger_gets_the_same_lines(solver, capsys, caplog, often):
    objective, options = SOLVERS[solver]
    with caplog.at_level(logging.INFO, logger="pairstep"):
        result = minimize(objective, Simplex(), **options)
    assert capsys.readouterr().out == ""
    assert {record.name for record in caplog.records} == {"pairstep"}
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert len(caplog.records) > 3
    assert result.message in caplog.messages[-1]


def test_convenience_functions_take_verbose(capsys):
    solve_qp(RISK, verbose=True)
    assert capsys.readouterr().out.startswith("[pairstep] optimal after ")
    simplex_lstsq(ROOT, ROOT[:, 0], verbose=True)
    assert capsys.readouterr().out.startswith("[pairstep] optimal after ")
    simplex_lstsq(ROOT, ROOT[:, :3], verbose=True)
    assert capsys.readouterr().out.startswith("[pairstep] 3 of 3 right-hand sides optimal after ")


def test_svm_fits_write_to_the_logger(caplog, capsys):
    X, y = RNG.normal(size=(3000, 20)), RNG.integers(0, 2, 3000)
    with caplog.at_level(logging.INFO, logger="pairstep"):
        SVC(C=10.0, gamma=0.05).fit(X, y)
    assert any("of 1 solved" in message for message in caplog.messages)
    assert capsys.readouterr().out == ""


def test_a_long_solve_is_logged_every_second():
    script = (
        "import numpy as np, pairstep\n"
        "rng = np.random.default_rng(0)\n"
        "F = rng.normal(size=(300, 300)) * np.geomspace(1, 1e4, 300)\n"
        "pairstep.minimize(pairstep.Quadratic(F.T @ F), pairstep.SumBox(lower=-1e9), rule='gs-s',\n"
        "                  max_iter=10**8, time_limit=2.5, verbose=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    *progress, end = done.stdout.splitlines()
    assert 1 <= len(progress) <= 2
    assert "time_limit after 2.5" in end
    assert done.stderr == ""
