"""Versions, threads, instruction sets, BLAS and GPU, for bug reports."""

from __future__ import annotations

import importlib.util
import os
import platform
from typing import Any

REQUIRED = ("numpy", "scipy")
# What the extras of pairstep install, and the libraries whose objects it accepts. CuPy is listed
# with the GPU, because its distribution has another name for each version of CUDA.
OPTIONAL = (
    "scikit-learn",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "joblib",
    "threadpoolctl",
    "dask",
    "distributed",
    "jax",
    "torch",
)


def show_versions() -> None:
    """Print the versions of pairstep and its dependencies, and what it uses of this computer.

    The output belongs in a bug report. ``python -m pairstep info`` prints the same.

    Examples
    --------
    >>> import pairstep
    >>> pairstep.show_versions()
    pairstep        ...
    python          ...
    instruction set ...
    """
    for name, fact in facts().items():
        print(f"{name:<16}{fact}")


def facts() -> dict[str, str]:
    """Return the name and the text of each line."""
    from . import __version__, _core, threads

    sets = ", ".join(_core.instruction_sets())
    return {
        "pairstep": __version__,
        "python": f"{platform.python_version()}, {platform.platform()}",
        **{library: _version(library) for library in (*REQUIRED, *OPTIONAL)},
        "threads": f"{threads.available()} of {os.cpu_count()}",
        "instruction set": f"{_core.instruction_set()} (of {sets})",
        "BLAS": _blas(),
        "GPU": _gpu(),
    }


def _version(library: str) -> str:
    # Importing it takes 15 ms, which `import pairstep` must not.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
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
    """Return the names of the GPUs that CuPy finds, and its version."""
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
    return f"{', '.join(names) or 'none found'} (CuPy {cupy.__version__})"
