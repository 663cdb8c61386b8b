"""`pairstep info`: system information for bug reports."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "info",
        help="versions, threads, instruction set, BLAS, GPU",
        description="Print system information for bug reports.",
        epilog="example:\n  pairstep info",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one fact per line."""
    from ..versions import show_versions

    show_versions()
    return 0
