"""Run the code blocks of README.md and docs/ as tests.

The blocks of a page run in order, in a temporary folder and with one namespace per page. `python`
and `bash` blocks run. A `text` block must equal the output of the block before it, where ...
matches anything. `console` blocks do not run: they install packages, take minutes, or another test
runs them.
"""

import contextlib
import doctest
import functools
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

# No test asserts a duration: the first example of a test may import a library.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

# Code that builds the site or starts clusters has no doctests, and imports optional packages.
collect_ignore_glob = ["docs/*.py", "docs/*/*.py", "tests/clusters.py"]
# Modules whose import needs a library that may be missing.
collect_ignore_glob += [
    f"src/pairstep/{name}.py" for name in ("jax", "torch") if importlib.util.find_spec(name) is None
]
PEERS = (
    "cupy",
    "cvxopt",
    "cvxpy",
    "dask",
    "distributed",
    "libsvm",
    "osqp",
    "pypfopt",
    "pysptools",
    "pysyncon",
    "pyscipopt",
    "qpsolvers",
    "skfolio",
    "sklearnex",
)
# Folders and files that take ten seconds or more, in the order in which they start. No worker must
# be left alone with one of them at the end.
LONG = (
    "tests/paper",
    "tests/test_site.py",
    "tests/cli",
    "tests/dask",
    "tests/test_examples.py",
    "tests/paper/rules/test_rules.py",
    "tests/cpp",
    "docs/guide/command-line.md",
    "tests/test_packaging.py",
    "tests/svm",
    "tests/solve",
)
FOLDER = "temporary folder"  # a key of the namespace that is not an identifier


def skip_without_peers(page: dict) -> None:
    """Skip the rest of a page that compares pairstep with a package that is not installed."""
    if "missing" in page:
        pytest.skip(f"{page['missing']} is not installed")


def run_python(example: Example) -> None:
    """Run a Python block and keep its output."""
    page = example.namespace
    skip_without_peers(page)
    code = compile("\n" * (example.line + 1) + example.parsed, example.path, "exec")
    printed = io.StringIO()
    try:
        with contextlib.chdir(page[FOLDER]), contextlib.redirect_stdout(printed):
            exec(code, page)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PEERS:
            raise
        page["missing"] = error.name
        skip_without_peers(page)
    page["printed"] = printed.getvalue()


def run_bash(example: Example) -> None:
    """Run a shell block, with the `pairstep` command of this environment, and keep its output."""
    page = example.namespace
    skip_without_peers(page)
    if shutil.which("bash") is None:
        pytest.skip("no bash on the PATH")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-ec", example.parsed],
        cwd=page[FOLDER], env={**os.environ, "PATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page["printed"] = done.stdout


def compare(example: Example) -> None:
    """Compare a text block with the output of the block before it."""
    skip_without_peers(example.namespace)
    shown, printed = example.parsed, example.namespace["printed"]
    if not doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS):
        assert shown == printed


def open_page(page: dict) -> None:
    """Create the temporary folder of a page."""
    page[FOLDER] = tempfile.mkdtemp()


def close_page(page: dict) -> None:
    """Delete the temporary folder of a page."""
    shutil.rmtree(page[FOLDER])


pytest_collect_file = Sybil(
    parsers=[
        CodeBlockParser("python", run_python),
        CodeBlockParser("bash", run_bash),
        CodeBlockParser("text", compare),
    ],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    excludes=["docs/_build/*"],
    setup=open_page,
    teardown=close_page,
).pytest()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order of the files. pytest-xdist would start those with the most tests first."""
    if hasattr(config.option, "loadscopereorder"):  # of pytest-xdist
        config.option.loadscopereorder = False


@functools.cache
def _turn(file: Path) -> int:
    """Return the position of a file or its folder in `LONG`; all others come last."""
    root = Path(__file__).parent
    return next((k for k, path in enumerate(LONG) if file.is_relative_to(root / path)), len(LONG))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with long files, and run all blocks of a page in one worker: they share names."""
    items.sort(key=lambda item: _turn(item.path))
    for item in items:
        if hasattr(item, "example"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
