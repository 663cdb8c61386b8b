"""The regression benchmarks run, and commits are compared by their ratios to the reference loop."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "benchmarks" / "regressions"

pytestmark = pytest.mark.skipif(not SUITE.exists(), reason="not a full source checkout")


@pytest.fixture
def history():
    spec = importlib.util.spec_from_file_location("history", ROOT / "benchmarks" / "history.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_benchmark_runs_and_is_in_the_published_history(history):
    pytest.importorskip("pytest_benchmark")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", SUITE,
         "--benchmark-disable"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    ran = {line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("PASSED")}
    published = json.loads(history.PUBLISHED.read_text(encoding="utf-8"))
    assert {row[0] for row in published["rows"]} == {history.shown(name) for name in ran}


def test_the_published_history_has_at_least_five_commits(history):
    published = json.loads(history.PUBLISHED.read_text(encoding="utf-8"))
    commits = published["columns"][1:-1]
    assert len(commits) >= 5
    assert all(f"{commit} (" in published["note"] for commit in commits)
    assert published["commit"] == commits[-1]


def test_a_ratio_is_the_fastest_round_divided_by_the_reference_loop(history):
    benchmark = {"name": "test_a", "stats": {"min": 3.0}, "extra_info": {"reference": 2.0}}
    assert history.ratios({"benchmarks": [benchmark]}) == {"test_a": 1.5}


@pytest.fixture
def compared(history, monkeypatch, capsys):
    """Compare two commits with given ratios: one dict per run, base and working tree in turn."""

    def compare(*runs):
        left = list(runs)
        monkeypatch.setattr(history, "installed", Path)
        monkeypatch.setattr(history, "described", str)
        monkeypatch.setattr(history, "run_suite", lambda package, seconds: left.pop(0))
        code = history.compare("base", repeats=1, seconds=0.0)
        assert not left
        return code, capsys.readouterr().out

    return compare


BASE = {"test_a_fit[rows=60]": 2.0, "test_a_search": 10.0}


def test_a_slower_call_is_named_and_fails(compared):
    slower = {**BASE, "test_a_fit[rows=60]": 2.6}
    code, printed = compared(BASE, slower, BASE, slower)
    assert code == 1
    assert "a fit, rows=60 takes 1.30 times as long as in base" in printed
    assert "a search takes" not in printed
    assert "| **a fit, rows=60** | 2 | 2.6 | **1.30** |" in printed


def test_noise_of_one_run_does_not_fail(compared):
    code, printed = compared(BASE, {**BASE, "test_a_search": 20.0}, BASE, BASE)
    assert code == 0
    assert "No call became 25% slower." in printed


def test_small_differences_new_and_removed_calls_do_not_fail(compared):
    code, printed = compared(
        {**BASE, "test_old": 1.0}, {**BASE, "test_a_search": 12.4, "test_new": 3.0}
    )
    assert code == 0
    assert "| new | | 3 | new |" in printed
    assert "| old | 1 | | gone |" in printed


def test_the_table_of_a_history_has_a_column_per_commit(history, monkeypatch):
    monkeypatch.setattr(history, "git", lambda *arguments: f"{arguments[-1][:7]} (x)")
    found = {"a" * 40: {"test_b": 2.0}, "c" * 40: {"test_b": 1.0, "test_new": 0.12345}}
    published = history.table(found, "python -m benchmarks.history measure", "")
    assert published["columns"] == ["call", "aaaaaaa", "ccccccc", "newest / oldest"]
    assert published["note"] == "Commits: aaaaaaa (x); ccccccc (x)."
    assert published["rows"] == [["b", 2.0, 1.0, 0.5], ["new", None, 0.123, 1.0]]


def test_the_default_base_is_a_commit_of_this_branch(history):
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("not in a checkout")
    base = history.merge_base()
    assert base == history.resolved(base)
    assert history.git("merge-base", base, "HEAD") == base


def test_a_failing_benchmark_has_no_ratio(tmp_path):
    pytest.importorskip("pytest_benchmark")
    (tmp_path / "conftest.py").write_text((SUITE / "conftest.py").read_text())
    (tmp_path / "test_two.py").write_text(
        "def test_right(benchmark): benchmark(int)\n"
        "def test_wrong(benchmark): assert benchmark(int) == 1\n"
    )
    # In a worker of pytest-xdist, pytest-benchmark measures nothing.
    alone = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path,
         "--benchmark-max-time=0.01", f"--benchmark-json={tmp_path / 'times.json'}"],
        env=alone, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    times = json.loads((tmp_path / "times.json").read_text())
    (benchmark,) = times["benchmarks"]
    assert benchmark["name"] == "test_right"
    assert benchmark["extra_info"]["reference"] > 0
    assert "node" not in times["machine_info"]


def test_a_measurement_is_written_with_its_command(history, monkeypatch, tmp_path):
    monkeypatch.setattr(history, "git", lambda *arguments: arguments[-1])
    monkeypatch.setattr(history, "resolved", lambda commit: commit * 40)
    monkeypatch.setattr(history, "installed", Path)
    monkeypatch.setattr(history, "run_suite", lambda package, seconds: BASE)
    out = tmp_path / "history.json"
    assert history.main(
        ["measure", "--commits", "a", "b", "--repeats", "2", "--out", str(out), "--note", "Busy."]
    ) == 0  # fmt: skip
    written = json.loads(out.read_text(encoding="utf-8"))
    line = "python -m benchmarks.history measure --commits a b --repeats 2 --seconds 0.5"
    assert written["command"] == line
    assert written["columns"] == ["call", "aaaaaaa", "bbbbbbb", "newest / oldest"]
    assert written["note"].endswith(". Busy.")
