"""`pairstep bench`: run a module of `benchmarks`, which only a source checkout has."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

from .command import complain

HERE = Path(__file__)


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "bench",
        help="run a benchmark of a source checkout, such as `bench rules`",
        description="Run a benchmark of a source checkout.",
        epilog="examples:\n  pairstep bench rules\n  pairstep bench svm --only a9a-C1",
    )
    parser.add_argument("name", nargs="?", help="without one: which there are")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="handed to the benchmark")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it as a script."""
    root = next((p for p in (Path.cwd(), HERE.parents[3]) if (p / "benchmarks").is_dir()), None)
    if root is None:
        return complain("benchmarks are in the source checkout of pairstep: run this from there")
    names = [
        path.stem
        for path in sorted((root / "benchmarks").glob("*.py"))
        if f"python -m benchmarks.{path.stem}"
        in path.read_text(encoding="utf-8")  # else a part of one
    ]
    if options.name not in names:
        return complain(f"say which benchmark to run: {', '.join(names)}")
    sys.path.insert(0, str(root))
    sys.argv = [f"pairstep bench {options.name}", *options.arguments]
    runpy.run_module(f"benchmarks.{options.name}", run_name="__main__", alter_sys=True)
    return 0
