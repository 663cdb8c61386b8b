"""The checks of a release fail for what they check, with a message that says what to do."""

import importlib.util
import json
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools"
VERSION = "1.2.3"

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="not a full source checkout")

# A project in which every quick check passes.
FILES = {
    "src/pairstep/__init__.py": '"""A package."""\n__version__ = "1.2.3"\n',
    "pyproject.toml": "[project]\n"
    'name = "pairstep"\ndynamic = ["version"]\n[project.urls]\n'
    + "".join(
        f'{name} = "https://example.org/{name}"\n'
        for name in ("Homepage", "Documentation", "Changelog", "Issues")
    ),
    "README.md": "@software{pairstep, version = {1.2.3}}\n",
    "docs/index.md": "@software{pairstep, version = {1.2.3}}\n",
    "docs/conf.py": 'RELEASES: tuple[str, ...] = ("1.2.3", "1.2.2")  # newest first\n',
    "recipe/recipe.yaml": 'context:\n  version: "1.2.3"\n'
    "about:\n  homepage: https://example.org/Homepage\n",
    "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - 2026-01-31\n\n- A change.\n\n"
    "## [1.2.2] - 2025-12-31\n\n- Another.\n",
    "CITATION.cff": "cff-version: 1.2.0\nmessage: Cite it.\ntitle: pairstep\nauthors:\n"
    "  - name: We\nversion: 1.2.3\ndate-released: 2026-01-31\n",
    "Makefile": "docs:\n\ttrue\n",
}
QUICK = ("tree", "version", "changelog", "citation", "tags", "urls")


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def reproducible():
    return loaded("reproducible")


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Return the module for a project in a temporary folder, which is committed."""
    monkeypatch.syspath_prepend(TOOLS)
    module = loaded("release")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    commit(tmp_path)
    return module


def commit(folder):
    author = ["-c", "user.name=We", "-c", "user.email=we@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "All"]):
        subprocess.run(["git", *author, *words], cwd=folder, check=True)


def test_quick_checks_pass_where_everything_fits(release, capsys):
    assert release.main([VERSION, "--checks", *QUICK]) == 0
    printed = capsys.readouterr().out
    assert "FAILED" not in printed
    assert "Not run: recipe, documentation, tests, sdist, wheels." in printed


@pytest.mark.parametrize(
    ("name", "old", "new", "check", "message"),
    [
        ("README.md", "", "x", "tree", "not committed: M README.md"),
        ("src/pairstep/__init__.py", "1.2.3", "1.2.4", "version", "__version__ is ['1.2.4']"),
        ("pyproject.toml", "dynamic", 'version = "1"\ndynamic', "version", "not repeat it"),
        ("docs/index.md", "1.2.3", "1.2.2", "version", "docs/index.md: the citation"),
        ("recipe/recipe.yaml", "1.2.3", "1.2.2", "version", "recipe.yaml has another version"),
        ("docs/conf.py", '"1.2.3", ', "", "version", 'add "1.2.3" to RELEASES'),
        ("CHANGELOG.md", "[1.2.3] - 2026-01-31", "[Unreleased]", "changelog", "rename the section"),
        ("CHANGELOG.md", "2026-01-31", "2999-01-31", "changelog", "in the future"),
        ("CHANGELOG.md", "- A change.", "", "changelog", "has no entries"),
        ("CHANGELOG.md", "## [1.2.3]", "## [Unreleased]\n\n- New.\n\n## [1.2.3]", "changelog",
         "Unreleased has entries"),
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "citation", "set `version: 1.2.3`"),
        ("CITATION.cff", "2026-01-31", "2026-01-30", "citation", "`date-released: 2026-01-31`"),
        ("CITATION.cff", "authors:", "people:", "citation", "no authors"),
        ("pyproject.toml", "Issues = ", "Bugs = ", "urls", "has no Issues"),
        ("recipe/recipe.yaml", "/Homepage", "", "urls", "another homepage"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(release, tmp_path, capsys, name, old, new, check, message):
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new) if old else text + new)
    assert release.main([VERSION, "--checks", check]) == 1
    printed = capsys.readouterr().out
    assert message in printed
    assert f"cannot be released: {check} failed" in printed


@pytest.mark.parametrize(
    ("tag", "message"),
    [("v1.2.3", "exists"), ("v1.10.0", "v1.10.0 is a later version"), ("v1.2.3rc1", ""),
     ("v1.2.2", ""), ("very-old", "")],
)  # fmt: skip
def test_the_tag_must_be_new_and_the_highest(release, tmp_path, capsys, tag, message):
    subprocess.run(["git", "tag", tag], cwd=tmp_path, check=True)
    assert release.main([VERSION, "--checks", "tags"]) == int(bool(message))
    assert message in capsys.readouterr().out


def test_a_command_that_fails_shows_the_end_of_its_output(release, tmp_path, capsys):
    (tmp_path / "Makefile").write_text(".PHONY: docs\ndocs:\n\t@echo a warning in a page; exit 3\n")
    assert release.main([VERSION, "--checks", "documentation"]) == 1
    printed = capsys.readouterr().out
    assert "`make docs` failed" in printed
    assert "a warning in a page" in printed
    log = tmp_path / "build/release/documentation.txt"
    assert log.read_text().startswith("a warning in a page\n")


def test_everything_runs_and_the_remaining_steps_are_printed(release, monkeypatch, capsys):
    monkeypatch.setattr(release, "CHECKS", {name: lambda version: iter(()) for name in "ab"})
    assert release.main([VERSION]) == 0
    assert f"git tag -a v{VERSION}" in capsys.readouterr().out


def wheel(path, files, time=(2026, 1, 31, 0, 0, 0)):
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(zipfile.ZipInfo(name, time), text)
    return path


@pytest.mark.parametrize(
    ("files", "time", "message"),
    [
        ({"a": "1", "b": "2"}, (2026, 1, 31, 0, 0, 0), None),
        ({"a": "1", "b": "3"}, (2026, 1, 31, 0, 0, 0), "the contents of b differ"),
        ({"a": "1", "b": "2"}, (2026, 2, 1, 0, 0, 0), "the time of a differs"),
        ({"a": "1"}, (2026, 1, 31, 0, 0, 0), "b is in only one of them"),
        ({"b": "2", "a": "1"}, (2026, 1, 31, 0, 0, 0), "the order of the files"),
    ],
)
def test_differences_of_wheels_are_named(reproducible, tmp_path, files, time, message):
    first = wheel(tmp_path / "one" / "x.whl", {"a": "1", "b": "2"})
    second = wheel(tmp_path / "two" / "x.whl", files, time)
    found = reproducible.differences(first, second)
    assert (found == []) if message is None else (message in found[0])


def test_paths_of_the_build_are_found_in_a_wheel(reproducible, tmp_path):
    built = wheel(tmp_path / "one" / "x.whl", {"a.so": "\x7fELF ../folder/of/build/x.cpp", "b": ""})
    assert reproducible.leaks(built, ["folder/of/build"]) == ["a.so contains folder/of/build"]
    assert reproducible.leaks(built, ["another/folder"]) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, None),
        ({"sboms/pairstep.cdx.json": None}, "has no SBOM"),
        ({"licenses/licenses/robin_map.txt": None}, "has no licenses/robin_map.txt"),
        ({"sboms/pairstep.cdx.json": "1.2.2"}, "the SBOM has another version"),
    ],
)
def test_a_wheel_needs_its_bill_of_materials_and_all_licenses(release, tmp_path, changed, message):
    files = {
        "sboms/pairstep.cdx.json": VERSION,
        **{f"licenses/{name}": "..." for name in
           ("LICENSE", "licenses/nanobind.txt", "licenses/robin_map.txt")},
        **changed,
    }  # fmt: skip
    if bom := files["sboms/pairstep.cdx.json"]:
        components = [{"name": "nanobind", "version": "3"}]
        files["sboms/pairstep.cdx.json"] = json.dumps(
            {"metadata": {"component": {"version": bom}}, "components": components}
        )
    built = wheel(
        tmp_path / "dist" / "pairstep-1.2.3-x.whl",
        {f"pairstep-1.2.3.dist-info/{name}": text for name, text in files.items() if text},
    )
    found = list(release.materials(built, VERSION))
    assert (found == []) if message is None else (message in found[0])


def test_the_recipe_repeats_the_metadata():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    required = [line for line in recipe["requirements"]["run"] if line != "python"]
    assert [line.replace(" ", "") for line in required] == project["dependencies"]
    host = [line.replace(" ", "") for line in recipe["requirements"]["host"]]
    assert set(settings["build-system"]["requires"]) <= set(host)
    about = recipe["about"]
    assert about["license"] == project["license"]
    assert about["summary"] == project["description"]
    assert about["homepage"] == about["repository"] == project["urls"]["Homepage"]
    assert about["documentation"] == project["urls"]["Documentation"]
    licenses = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "licenses").iterdir())
    assert about["license_file"] == ["LICENSE", *licenses]


def test_every_check_has_a_description(release, capsys):
    assert release.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(release.CHECKS)
    assert all(len(line.split()) > 3 for line in lines)


def test_the_makefile_passes_the_version_and_the_checks():
    done = subprocess.run(
        ["make", "--dry-run", "release", "VERSION=1.2.3", "CHECKS=tree tags"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "tools/release.py 1.2.3 --checks tree tags" in done.stdout
