"""What is declared of the package is so: versions, extras, types."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pairstep

ROOT = Path(__file__).parents[1]
CLIENT = Path(__file__).with_name("client.py")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_oldest_versions_tested_are_those_declared(project):
    extras = project["optional-dependencies"]
    frames = [line for line in extras["test"] if line.startswith(("pandas", "polars"))]
    declared = [*project["dependencies"], *extras["sklearn"], *frames]
    pins = (ROOT / "tests/oldest.txt").read_text().splitlines()[1:]
    lowest = dict(line.split(">=") for line in declared)
    tested = dict(line.split("==") for line in pins)
    assert tested.keys() == lowest.keys()
    for name, version in tested.items():
        assert re.fullmatch(rf"{re.escape(lowest[name])}(\.0){{0,2}}", version), name


def test_extras_that_errors_name_exist(project):
    from pairstep.extras import EXTRAS

    for package, extra in EXTRAS.values():
        wanted = project["optional-dependencies"][extra]
        assert any(requirement.startswith(package) for requirement in wanted)


def test_types_are_told():
    assert Path(pairstep.__file__).with_name("py.typed").exists()


def test_the_client_runs_and_uses_the_whole_surface():
    subprocess.run([sys.executable, CLIENT], check=True)
    text = CLIENT.read_text()
    unused = [name for name in pairstep.__all__ if f"pairstep.{name}" not in text]
    assert not unused


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_client_is_well_typed(checker):
    pytest.importorskip(checker)
    options = ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, CLIENT],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
