"""Names in the documents exist, and their numbers are those of the benchmarks.

The code blocks also run as tests: see `conftest.py` in the root folder.
"""

import inspect
import json
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pairstep
from pairstep import cli
from pairstep.paper.rules import RULES
from pairstep.paper.steps import STEPS

ROOT = Path(__file__).parents[1]
SITE = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "guide/*.md",
        "migration/*.md",
        "theory/*.md",
        "extending/*.md",
        "api/*.md",
    )
    for path in (ROOT / "docs").glob(pattern)
)
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md", *SITE)
FOLDERS = ("src", "cpp", "tests", "docs", "benchmarks", "examples")
BENCHMARKS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))
BUILT = ("_build/", "examples/")  # created when the site is built

pytestmark = pytest.mark.skipif(
    not (SITE and all((ROOT / name).exists() for name in DOCUMENTS)),
    reason="not a full source checkout",
)
every_document = pytest.mark.parametrize("name", DOCUMENTS)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def marked(text, name):
    """Return the text between <!-- name --> and <!-- end name -->."""
    return text.split(f"<!-- {name} -->")[1].split(f"<!-- end {name} -->")[0]


def first_column(table):
    rows = [line for line in table.splitlines() if re.match(r"\| \[?`", line)]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


class TestEveryDocument:
    @every_document
    def test_files_exist(self, name):
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
            target = (base / path).resolve().relative_to(ROOT)
            built = (
                target.as_posix().removeprefix("docs/").startswith(BUILT)
                and target.parts[0] == "docs"
            )
            assert built or (ROOT / target).exists(), path
        for path in quoted + run:
            assert (ROOT / path).exists(), path

    @every_document
    def test_commands_exist(self, name):
        text = text_of(name)
        makefile = text_of("Makefile")
        for target in re.findall(r"(?:^    |`)make ([\w-]+)", text, flags=re.M):
            assert re.search(rf"^{re.escape(target)}:", makefile, flags=re.M), target
        for module in re.findall(r"python -m (benchmarks[\w.]+)", text):
            assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module

    @every_document
    def test_no_local_paths_or_addresses_occur(self, name):
        assert not re.search(
            r"/(?:work|home|root|tmp|Users)/|localhost|\d+\.\d+\.\d+\.\d+", text_of(name)
        )

    def test_the_experiments_in_the_readme_are_the_quick_ones(self):
        """tests/paper/test_reproduce.py runs them, so the block of the README does not."""
        (line,) = re.findall(r"^pairstep (reproduce.*)$", text_of("README.md"), flags=re.M)
        options = cli.parser().parse_args(shlex.split(line, comments=True))
        assert options.quick
        assert f"writes {options.out}/report.html" in line

    def test_subcommands_exist(self):
        scripts = tomllib.loads(text_of("pyproject.toml"))["project"]["scripts"]
        assert "pairstep" in scripts
        usage = cli.parser().format_help()
        documented = {
            command
            for name in DOCUMENTS
            for command in re.findall(r"(?:`|^    )pairstep (\w+)", text_of(name), flags=re.M)
        }
        assert documented
        for command in documented:
            assert re.search(rf"^ +{command}\b", usage, flags=re.M), command


class TestReadme:
    def test_the_readme_is_short(self):
        assert len(text_of("README.md").splitlines()) < 110

    def test_the_first_example_has_labeled_input_and_output(self):
        readme = text_of("README.md")
        code, shown = re.search(
            r"^```python\n(.*?)^```\n+```text\n(.*?)^```", readme, re.M | re.S
        ).groups()
        before = readme.split(code)[0]
        assert "```" not in before.removesuffix("```python\n")
        assert len(before.splitlines()) < 20
        assert "pd.Series" in code
        assert "bonds" in shown

    def test_figures_are_those_of_the_benchmarks(self):
        record = runpy.run_path(str(ROOT / "docs" / "record.py"))
        assert marked(text_of("README.md"), "figures").lstrip() == record["figures"]()


class TestSite:
    def test_every_public_name_is_documented(self):
        table = marked(text_of("docs/api/index.md"), "surface")
        assert sorted(first_column(table)) == sorted(pairstep.__all__)

    @pytest.mark.parametrize(
        "module", ["pairstep", "pairstep.svm", "pairstep.dask", "pairstep.paper.theory"]
    )
    def test_every_name_has_a_page(self, module):
        pytest.importorskip("sklearn")
        if module == "pairstep.dask":
            pytest.importorskip("distributed")
        here = pkgutil.resolve_name(module)
        public = getattr(here, "__all__", None) or [
            name
            for name, value in vars(here).items()
            if inspect.isfunction(value) and value.__module__ == module and name[0] != "_"
        ]
        pages = "\n".join(
            page for page in map(text_of, SITE) if f".. currentmodule:: {module}\n" in page
        )
        for name in public:
            assert re.search(rf"^   {name}$", pages, flags=re.M), name

    def test_every_extra_is_in_the_table_with_what_it_installs(self):
        extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
        page = text_of("docs/start.md")
        table = marked(page, "extras")
        (line,) = re.findall(r"^.*The extras (.*) are for development", page, flags=re.M)
        for_development = re.findall(r"`(\w+)`", line)
        assert sorted([*first_column(table), *for_development]) == sorted(extras)
        for row in (row.split("|") for row in table.splitlines() if row.startswith("| `")):
            installed = row[2].split(", ")
            for requirement in extras[row[1].strip(" `")]:
                package = re.match(r"[\w-]+", requirement)[0]
                if package == "pairstep":  # pairstep[sklearn]
                    package = "scikit-learn"
                assert package in [name.strip() for name in installed]

    def test_every_rule_is_in_the_table(self):
        table = marked(text_of("docs/guide/rules.md"), "rules")
        assert sorted(first_column(table)) == sorted(RULES)

    def test_every_step_is_documented(self):
        steps = re.search(r"^Steps: (.*)$", text_of("docs/guide/rules.md"), flags=re.M)[1]
        assert set(re.findall(r'`"([^"]+)"`', steps)) == set(STEPS) - {"auto"}

    def test_every_status_is_documented(self):
        text = text_of("docs/guide/stopping.md")
        for status in pairstep.Status:
            assert f"`{status}`" in text, status

    def test_every_parameter_of_scikit_learn_is_documented(self):
        svm = pytest.importorskip("sklearn.svm")
        documented = first_column(marked(text_of("docs/migration/scikit-learn.md"), "parameters"))
        theirs = {
            parameter
            for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
            for parameter in inspect.signature(getattr(svm, name)).parameters
        }
        assert theirs <= set(documented)

    def test_every_option_of_libsvm_is_documented(self):
        documented = marked(text_of("docs/migration/libsvm.md"), "options")
        for option in ("s", "t", "d", "g", "r", "c", "n", "p", "m", "e", "h", "b", "wi", "v", "q"):
            assert re.search(rf"`-{option}\b", documented), option

    def test_long_options_exist(self):
        documented = marked(text_of("docs/migration/libsvm.md"), "options")
        usage = subprocess.run(
            [sys.executable, "-m", "pairstep", "train", "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for option in re.findall(r"`(--[\w-]+)", documented):
            assert re.search(rf"{option}\b", usage), option


class TestBenchmarks:
    @pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
    def test_record_their_origin(self, path):
        benchmark = json.loads(path.read_text(encoding="utf-8"))
        assert {"title", "command", "commit", "machine", "date", "columns", "rows"} <= set(
            benchmark
        )
        assert re.fullmatch(r"[0-9a-f]{7,40}", benchmark["commit"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", benchmark["date"])
        module = re.match(r"python -m (benchmarks\.\w+)", benchmark["command"])[1]
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
        assert {len(row) for row in benchmark["rows"]} == {len(benchmark["columns"])}
        for column in (benchmark.get("plot", {}).get(key) for key in ("name", "bar")):
            assert column is None or column in benchmark["columns"]

    def test_are_all_on_the_site(self):
        shown = re.findall(r"```\{benchmark\} ([\w-]+)", text_of("docs/benchmarks.md"))
        assert sorted(shown) == sorted(path.stem for path in BENCHMARKS)

    def test_rules_in_tables_exist(self):
        for path in BENCHMARKS:
            for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                for cell in row:
                    for rule in re.findall(r"^`([\w-]+)`$", str(cell)):
                        assert rule in RULES, rule


class TestContributing:
    def test_native_files_are_documented(self):
        text = text_of("CONTRIBUTING.md")
        for path in (ROOT / "cpp").rglob("*.*"):
            named = {path, path.with_suffix(".cpp")}  # a header is listed with its source
            names = {p.relative_to(ROOT).as_posix() for p in named}
            names.add(f"{path.parent.relative_to(ROOT).as_posix()}/")  # or with its folder
            assert any(f"| `{name}`" in text or f", `{name}`" in text for name in names), path.name


@pytest.mark.slow
def test_the_picture_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "derivatives.png"
    subprocess.run([sys.executable, ROOT / "docs/picture.py", "--out", out], check=True)
    assert out.read_bytes().startswith(b"\x89PNG")
