"""`pairstep info`: system information for bug reports."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

LIBRARIES = ("numpy", "scipy", "scikit-learn")


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "info",
        help="version, threads, instruction set, BLAS, GPU",
        description="Print system information for bug reports.",
        epilog="example:\n  pairstep info",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one fact per line."""
    from .. import __version__, _core, threads

    sets = ", ".join(_core.instruction_sets())
    facts = {
        "pairstep": __version__,
        "python": f"{platform.python_version()}, {platform.platform()}",
        **{library: _version(library) for library in LIBRARIES},
        "threads": f"{threads.available()} of {os.cpu_count()}",
        "instruction set": f"{_core.instruction_set()} (of {sets})",
        "BLAS": _blas(),
        "GPU": _gpu(),
    }
    for name, fact in facts.items():
        print(f"{name:<16}{fact}")
    return 0


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    """Return the name and version of the BLAS that NumPy uses."""
    import numpy as np

    try:
        built: Any = np.show_config(mode="dicts")
        blas = built["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    except (TypeError, KeyError):  # before NumPy 1.25
        return "unknown (NumPy 1.25 or later is needed)"


def _gpu() -> str:
    """Return the names of the GPUs that CuPy finds."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    try:
        import cupy

        runtime = cupy.cuda.runtime
        names = [
            runtime.getDeviceProperties(k)["name"].decode() for k in range(runtime.getDeviceCount())
        ]
    except Exception as error:  # CuPy raises many types if a driver is missing or too old
        return f"none found by CuPy: {error}"
    return ", ".join(names) or "none found by CuPy"
