"""Optional libraries, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The name of each library for pip, and the extra of pairstep that installs it.
EXTRAS = {
    "sklearn": ("scikit-learn", "sklearn"),
    "matplotlib": ("matplotlib", "plots"),
    "joblib": ("joblib", "plots"),
    "threadpoolctl": ("threadpoolctl", "plots"),
    "pandas": ("pandas", "cli"),
    "pyarrow": ("pyarrow", "cli"),
    "distributed": ("distributed", "dask"),
    "cupy": ("cupy", "cuda"),
    "jax": ("jax", "jax"),
    "torch": ("torch", "torch"),
}


def needed(module: str, by: str) -> Any:
    """Import a module; if it is missing, say what needs it and how to install it."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        package, extra = EXTRAS[library]
        message = f"{by} needs {package}: pip install 'pairstep[{extra}]'"
        raise ImportError(message, name=library) from error
