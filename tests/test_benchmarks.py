"""The calls of `make bench` run, and the comparison finds a version that is slower."""

import importlib
import math
import shutil
import sys
from pathlib import Path

import pytest

import pairstep

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="not a full source checkout"
)


@pytest.fixture(scope="module")
def compare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module("benchmarks.compare")


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
