"""Package metadata, the source distribution, and a wheel in a new environment."""

import contextlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import pairstep

pytestmark = pytest.mark.xdist_group("packaging")

ROOT = Path(__file__).parents[1]
CLIENT = Path(__file__).with_name("client.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist from the files that git tracks, and a wheel from the checkout.

    The native code of the checkout is compiled already. The workflow `wheels.yml` compiles a wheel
    from the sdist.
    """
    folder = tmp_path_factory.mktemp("built")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not in a checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "tree" / name)
    build_tools_installed = all(map(importlib.util.find_spec, ("scikit_build_core", "nanobind")))
    isolation = ["--no-isolation"] if build_tools_installed else []
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for arguments in (["--sdist", folder / "tree"], ["--wheel", ROOT]):
        done = subprocess.run(
            [sys.executable, "-m", "build", "--outdir", folder / "dist", *isolation, *arguments],
            cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (sdist,), (wheel,) = (folder.glob(f"dist/*{kind}") for kind in (".tar.gz", ".whl"))
    return sdist, wheel


@pytest.fixture(scope="module")
def fresh(built, tmp_path_factory):
    """Return the bin folder of a new environment with the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Use the dependencies of this environment, so that nothing is downloaded.
    (site / "dependencies.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", built[1]], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_oldest_versions_tested_are_those_declared(project):
    extras = project["optional-dependencies"]
    frames = [line for line in extras["test"] if line.startswith(("pandas", "polars", "pyarrow"))]
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


def test_the_package_is_marked_as_typed():
    assert Path(pairstep.__file__).with_name("py.typed").exists()


def test_the_example_client_runs_and_uses_every_public_name():
    subprocess.run([sys.executable, CLIENT], check=True)
    text = CLIENT.read_text()
    unused = [name for name in pairstep.__all__ if f"pairstep.{name}" not in text]
    assert not unused
    for name in ("solve_qp", "minimize", "simplex_lstsq", "efficient_frontier", "Smooth"):
        parameters = inspect.signature(getattr(pairstep, name)).parameters.values()
        options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert options
        assert [option for option in options if f"{option}=" not in text] == []


@pytest.mark.slow
@pytest.mark.unsanitized
def test_the_sdist_and_the_wheel_contain_the_right_files(built):
    sdist, wheel = built
    with tarfile.open(sdist) as file:
        sources = {name.partition("/")[2] for name in file.getnames()}
    assert {"CMakeLists.txt", "LICENSE", "cpp/core/types.hpp", "tests/smoke.py"} <= sources
    assert not [name for name in sources if name.startswith((".ci", ".github", "docs/"))]
    with zipfile.ZipFile(wheel) as file:
        installed = set(file.namelist())
        (metadata,) = (file.read(name).decode() for name in installed if "METADATA" in name)
    package = {name for name in installed if name.startswith("pairstep/")}
    tracked = {f"pairstep/{p.relative_to(ROOT / 'src/pairstep')}"
               for p in (ROOT / "src/pairstep").rglob("*")
               if p.suffix in (".py", ".pyi", ".cu", ".typed", ".html", ".mplstyle")}  # fmt: skip
    (native,) = package - tracked
    assert native.startswith("pairstep/_core.")
    assert tracked <= package
    assert all(name.startswith(("pairstep/", "pairstep-")) for name in installed)
    assert f"\nVersion: {pairstep.__version__}\n" in metadata
    info = f"pairstep-{pairstep.__version__}.dist-info"
    licenses = {"LICENSE", "licenses/nanobind.txt", "licenses/robin_map.txt"}
    assert {f"{info}/licenses/{name}" for name in licenses} <= installed
    assert set(re.findall(r"^License-File: (.*)$", metadata, re.M)) == licenses


@pytest.mark.slow
@pytest.mark.unsanitized
def test_the_wheel_lists_what_is_compiled_into_it(built):
    with zipfile.ZipFile(built[1]) as file:
        name = f"pairstep-{pairstep.__version__}.dist-info/sboms/pairstep.cdx.json"
        bom = json.loads(file.read(name))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    ours = bom["metadata"]["component"]
    assert (ours["name"], ours["version"]) == ("pairstep", pairstep.__version__)
    assert all(tool["version"] for tool in bom["metadata"]["tools"]["components"])
    components = {component["name"]: component for component in bom["components"]}
    assert {"nanobind", "robin-map"} <= components.keys()
    for component in components.values():
        assert component["purl"].endswith(f"@{component['version']}")
        assert re.fullmatch(r"\d+(\.\d+)+", component["version"]), component
    assert bom["dependencies"] == [{"ref": "pairstep", "dependsOn": list(components)}]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        assert components["nanobind"]["version"] == importlib.metadata.version("nanobind")


def test_licenses_are_those_of_the_sources_that_are_compiled():
    nanobind = pytest.importorskip("nanobind")
    folder = Path(nanobind.__file__).parent
    (theirs,) = folder.parent.glob("nanobind-*.dist-info/licenses/LICENSE")
    assert (ROOT / "licenses/nanobind.txt").read_text() == theirs.read_text()
    header = (folder / "ext/robin_map/include/tsl/robin_map.h").read_text()
    comment = header.partition("/**\n")[2].partition("*/")[0]
    lines = [line.removeprefix(" *").removeprefix(" ") for line in comment.rstrip().splitlines()]
    assert (ROOT / "licenses/robin_map.txt").read_text().splitlines() == lines


@pytest.mark.slow
@pytest.mark.unsanitized
def test_the_wheel_works_in_a_fresh_environment(fresh, tmp_path):
    done = subprocess.run(
        [fresh / "python", ROOT / "tests/smoke.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert str(fresh.parent) in done.stdout
    printed = subprocess.run([fresh / "pairstep", "--version"], capture_output=True, text=True)
    assert printed.stdout == f"pairstep {pairstep.__version__}\n", printed.stderr


def test_the_homepage_is_written_only_in_the_metadata(project):
    home = project["urls"]["Homepage"]
    assert f"\nrepository-code: {home}\n" in (ROOT / "CITATION.cff").read_text()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")):
        assert home not in path.read_text(encoding="utf-8"), path


def test_the_version_is_the_same_everywhere():
    assert importlib.metadata.version("pairstep") == pairstep.__version__
    assert f"\nversion: {pairstep.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    for page in filter(Path.exists, (ROOT / "README.md", ROOT / "docs" / "index.md")):
        cited = re.findall(r"\bversion\s*= \{(.*?)\}", page.read_text(encoding="utf-8"))
        assert cited == [pairstep.__version__], page
    assert not re.search(r'^version = "', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
