"""`pairstep bench`: run a module of `benchmarks`, which exists only in a source checkout."""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
from pathlib import Path
from typing import Any

from .command import complain, did_you_mean

HERE = Path(__file__)


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "bench",
        help="run a benchmark of a source checkout, such as `bench rules`",
        description="Run a benchmark of a source checkout.",
        epilog="examples:\n"
        "  pairstep bench                      list the benchmarks\n"
        "  pairstep bench rules\n"
        "  pairstep bench svm --only a9a-C1",
    )
    parser.add_argument("name", nargs="?", help="omit to list the benchmarks")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the benchmark")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run a benchmark as a script, or list all benchmarks."""
    root = next((p for p in (Path.cwd(), HERE.parents[3]) if (p / "benchmarks").is_dir()), None)
    if root is None:
        return complain("benchmarks are in the source checkout of pairstep: run this from there")
    benchmarks = available(root / "benchmarks")
    if options.name is None:
        for name, summary in benchmarks.items():
            print(f"{name:<14}{summary}".rstrip())
        return 0
    if options.name not in benchmarks:
        hint = did_you_mean(options.name, benchmarks)
        return complain(f"no benchmark {options.name!r}{hint}; there are {', '.join(benchmarks)}")
    sys.path.insert(0, str(root))
    sys.argv = [f"pairstep bench {options.name}", *options.arguments]
    runpy.run_module(f"benchmarks.{options.name}", run_name="__main__", alter_sys=True)
    return 0


def available(folder: Path) -> dict[str, str]:
    """Return the benchmarks of a folder by name, each with the first line of its docstring.

    A module is a benchmark if its docstring says how to run it. The others are parts of one.
    """
    found = {}
    for path in sorted(folder.glob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if f"python -m benchmarks.{path.stem}" in docstring:
            found[path.stem] = docstring.splitlines()[0]
    return found
