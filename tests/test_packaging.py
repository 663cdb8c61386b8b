"""What is declared of the package is so: versions, extras, types."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import pairstep
from pairstep import _core

ROOT = Path(__file__).parents[1]
CLIENT = Path(__file__).with_name("client.py")


def build_wheel(folder):
    """The package as it is here, in a wheel: what a build would make, without compiling again."""
    name = f"pairstep-{pairstep.__version__}"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    points = "".join(f"{command} = {place}\n" for command, place in scripts.items())
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: pairstep\nVersion: {pairstep.__version__}\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "entry_points.txt": f"[console_scripts]\n{points}",
    }
    path = folder / f"{name}-py3-none-any.whl"
    package = Path(pairstep.__file__).parent
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted(package.rglob("*.py")):
            wheel.write(file, file.relative_to(package.parent))
        wheel.write(_core.__file__, f"pairstep/{Path(_core.__file__).name}")
        for file, text in about.items():
            wheel.writestr(f"{name}.dist-info/{file}", text)
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    return path


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
def test_the_path_of_a_new_user(tmp_path):
    """Install, train on a svmlight file, predict, see the accuracy."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    script = """
        set -e
        python -m pip --python venv/bin/python install --quiet --no-deps --no-build-isolation "$1"
        PATH="$PWD/venv/bin:$PATH"
        pairstep --version
        pairstep train train.svm model
        pairstep predict test.svm model predictions
    """
    # What it depends on is here already, so that nothing has to be fetched.
    (site / "dependencies.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[::2], y[::2], str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X[1::2], y[1::2], str(tmp_path / "test.svm"), zero_based=False)
    wheel = build_wheel(tmp_path)
    done = subprocess.run(
        ["bash", "-c", script, "bash", wheel], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    version, trained, accuracy = done.stdout.splitlines()
    assert version == f"pairstep {pairstep.__version__}"
    assert "support vectors of 75 samples" in trained
    assert re.fullmatch(r"accuracy 0\.9\d+ \(\d+ of 75\)", accuracy)
    assert len((tmp_path / "predictions").read_text().splitlines()) == 75


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
