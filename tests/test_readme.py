"""What the documents say is so: their code runs, and what they name exists."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pairstep
from pairstep.rules import RULES
from pairstep.solve.steps import STEPS

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/paper-notes.md")
FOLDERS = ("src", "cpp", "tests", "docs", "benchmarks", "examples")

pytestmark = pytest.mark.skipif(
    not all((ROOT / name).exists() for name in DOCUMENTS), reason="not a full source checkout"
)
README = (ROOT / "README.md").read_text(encoding="utf-8") if (ROOT / "README.md").exists() else ""
every_document = pytest.mark.parametrize("name", DOCUMENTS)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def marked(text, name):
    """What stands between <!-- name --> and <!-- end name -->."""
    return text.split(f"<!-- {name} -->")[1].split(f"<!-- end {name} -->")[0]


def first_column(table):
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


@pytest.mark.parametrize("name", ["README.md", "docs/paper-notes.md"])
def test_python_blocks_run(name, capsys):
    pattern = r"^```python\n(.*?)^```(?:\n+```text\n(.*?)^```)?"
    blocks = re.findall(pattern, text_of(name), flags=re.M | re.S)
    assert blocks
    namespace = {}
    for block, shown in blocks:
        exec(compile(block, name, "exec"), namespace)
        said = capsys.readouterr().out
        assert not shown or said == shown


def test_the_first_thing_seen_is_labels_in_and_labels_out():
    code, shown = re.search(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```", README, re.M | re.S
    ).groups()
    before = README.split(code)[0]
    assert "```" not in before.removesuffix("```python\n")
    assert len(before.splitlines()) < 20
    assert "pd.Series" in code
    assert "bonds" in shown


@every_document
def test_files_exist(name):
    text = text_of(name)
    links = [
        link
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text, flags=re.S)
        if not link.startswith("https://")
    ]
    quoted = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*|[\w-]+\.(?:md|toml|txt))`", text)
    run = re.findall(r"python ((?:\w+/)+\w+\.py)", text)
    base = (ROOT / name).parent
    for path in links:
        assert (base / path).exists(), path
    for path in quoted + run:
        assert (ROOT / path).exists(), path


@every_document
def test_commands_exist(name):
    text = text_of(name)
    makefile = text_of("Makefile")
    for target in re.findall(r"(?:^    |`)make ([\w-]+)", text, flags=re.M):
        assert re.search(rf"^{re.escape(target)}:", makefile, flags=re.M), target
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    for benchmark in re.findall(r"`pairstep bench (\w+)", text):
        assert (ROOT / "benchmarks" / f"{benchmark}.py").exists(), benchmark
    scripts = tomllib.loads(text_of("pyproject.toml"))["project"]["scripts"]
    assert "pairstep" in scripts
    commands = set(re.findall(r"`pairstep (\w+)", text))
    if commands:
        usage = subprocess.run(
            [sys.executable, "-m", "pairstep", "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for command in commands:
            assert re.search(rf"^ +{command}\b", usage, flags=re.M), command


@every_document
def test_no_place_of_one_machine_is_named(name):
    assert not re.search(
        r"/(?:work|home|root|tmp|Users)/|localhost|\d+\.\d+\.\d+\.\d+", text_of(name)
    )


def test_the_public_surface_is_told_whole():
    assert sorted(first_column(marked(text_of("README.md"), "surface"))) == sorted(pairstep.__all__)


def test_every_rule_is_in_the_table():
    assert sorted(first_column(marked(text_of("README.md"), "rules"))) == sorted(RULES)


def test_rules_and_steps_named_with_figures_exist():
    text = text_of("README.md")
    for rule in re.findall(r"^\| (?:\d+ \| )?`([\w-]+)` \| +[\d.]", text, flags=re.M):
        assert rule in RULES, rule
    steps = re.search(r"^Steps: (.*)$", text, flags=re.M)[1]
    assert set(re.findall(r'`"([^"]+)"`', steps)) == set(STEPS) - {"auto"}


def test_every_status_is_told():
    text = text_of("README.md")
    for status in pairstep.Status:
        assert f"`{status}`" in text, status


def test_native_files_are_told():
    text = text_of("CONTRIBUTING.md")
    for path in (ROOT / "cpp").rglob("*.*"):
        named = {path, path.with_suffix(".cpp")}  # a header stands with its source
        names = {p.relative_to(ROOT).as_posix() for p in named}
        names.add(f"{path.parent.relative_to(ROOT).as_posix()}/")  # a folder of one kind
        assert any(f"| `{name}`" in text or f", `{name}`" in text for name in names), path.name


def test_names_in_contributing_exist():
    text = text_of("CONTRIBUTING.md")
    for name, path in [
        ("RULES = {", "src/pairstep/rules/__init__.py"),
        ("struct Rule {", "cpp/core/types.hpp"),
        ("enum class Step", "cpp/core/types.hpp"),
        ("class Units", "cpp/isa/selection/units.hpp"),
        ("class Objective(Protocol)", "src/pairstep/objectives/objective.py"),
        ("STEPS = (", "src/pairstep/solve/steps.py"),
        ("def plan(", "src/pairstep/solve/steps.py"),
        ("def assumed_curvature(", "src/pairstep/solve/loop.py"),
        ("assumed_curvature(", "cpp/isa/greedy.hpp"),
        ("BACKTRACKING", "src/pairstep/solve/minimize.py"),
        ("OBJECTIVES = {", "tests/test_minimize.py"),
        ("STEPS = (", "tests/test_minimize.py"),
        ("NORM = {", "tests/rules/test_rules.py"),
        ("class Layout", "src/pairstep/constraints/layout.py"),
        ("nb::enum_<Step>", "cpp/python/module.cpp"),
        ("class Oracle {", "cpp/engine/oracle.hpp"),
        ("class Oracle(Protocol)", "src/pairstep/solve/oracle.py"),
        ("class Axis", "src/pairstep/labels.py"),
    ]:
        assert f"`{path}`" in text, path
        assert name in text_of(path), (name, path)


@pytest.mark.slow
def test_the_picture_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "prices.png"
    subprocess.run([sys.executable, ROOT / "docs/picture.py", "--out", out], check=True)
    assert out.read_bytes().startswith(b"\x89PNG")
