"""The documents' code runs, page by page; what a `text` block shows is what was printed."""

import contextlib
import io

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

collect_ignore_glob = ["docs/*.py", "docs/*/*.py"]  # what builds the site has no doctests
PEERS = (
    "cvxopt",
    "cvxpy",
    "dask",
    "libsvm",
    "osqp",
    "pypfopt",
    "pysptools",
    "pysyncon",
    "qpsolvers",
    "sklearnex",
)


def run(example: Example) -> None:
    """Run a block of Python; without a peer that a page compares us with, the page is skipped."""
    page = example.namespace
    if "missing" in page:
        pytest.skip(page["missing"])
    code = compile("\n" * (example.line + 1) + example.parsed, example.path, "exec")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, page)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PEERS:
            raise
        page["missing"] = f"{error.name} is not installed: pip install '.[peers]'"
        pytest.skip(page["missing"])
    page["printed"] = printed.getvalue()


def compare(example: Example) -> None:
    """Compare what is shown with what the block before has printed."""
    if "missing" in example.namespace:
        pytest.skip(example.namespace["missing"])
    assert example.parsed == example.namespace["printed"]


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser("python", run), CodeBlockParser("text", compare)],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    excludes=["docs/_build/*"],
).pytest()
