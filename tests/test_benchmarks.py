"""The regression benchmarks run, and the baseline has a time for each of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "benchmarks" / "regressions"


@pytest.mark.slow
def test_every_benchmark_runs_and_has_a_baseline():
    pytest.importorskip("pytest_benchmark")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", SUITE,
         "--benchmark-disable"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    baseline = json.loads((SUITE / "baseline.json").read_text())
    timed = {benchmark["name"] for benchmark in baseline["benchmarks"]}
    ran = {line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("PASSED")}
    assert ran == timed
    assert "node" not in baseline["machine_info"]
