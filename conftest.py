"""The documents' code runs, page by page, in a folder of the page's own.

Blocks of `python` and of `bash` run in their order, those of `bash slow` where slow ones do; what a
`text` block shows is what the block before it has printed, with ... for times. What installs
something, or goes on for minutes, is shown in blocks of `console`, which do not run.
"""

import contextlib
import doctest
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

collect_ignore_glob = ["docs/*.py", "docs/*/*.py"]  # what builds the site has no doctests
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
    "qpsolvers",
    "sklearnex",
)
FOLDER = "the page's folder"  # no name that a block might use


def skip_without_peers(page: dict) -> None:
    """Without a peer that a page compares us with, the rest of it is skipped."""
    if "missing" in page:
        pytest.skip(f"{page['missing']} is not installed")


def run_python(example: Example) -> None:
    """Run a block of Python."""
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
    """Run commands of a shell, that of this environment's `pairstep` among them."""
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
    """Compare what is shown with what the block before has printed."""
    skip_without_peers(example.namespace)
    shown, printed = example.parsed, example.namespace["printed"]
    if not doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS):
        assert shown == printed


def open_page(page: dict) -> None:
    """Give a page its folder."""
    page[FOLDER] = tempfile.mkdtemp()


def close_page(page: dict) -> None:
    """Remove what the page has written."""
    shutil.rmtree(page[FOLDER])


pytest_collect_file = Sybil(
    parsers=[
        CodeBlockParser("python", run_python),
        CodeBlockParser("bash", run_bash),
        CodeBlockParser("bash slow", run_bash),
        CodeBlockParser("text", compare),
    ],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    excludes=["docs/_build/*"],
    setup=open_page,
    teardown=close_page,
).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the blocks that are slow."""
    for item in items:
        example = getattr(item, "example", None)
        if example and example.region.lexemes.get("arguments") == "bash slow":
            item.add_marker("slow")
