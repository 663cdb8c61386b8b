"""What is told of work under way: to the logger "pairstep", and to the screen if `verbose` asks.

Lines have the level INFO, so that nothing is said by default. `verbose=True` prints the same lines,
as scikit-learn's estimators do.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("pairstep")

EVERY = 1.0  # seconds between two lines of one solve


def heard(verbose: bool) -> bool:
    """Whether anybody listens."""
    return bool(verbose) or logger.isEnabledFor(logging.INFO)


def tell(line: str, verbose: bool) -> None:
    """Say a line."""
    logger.info("%s", line)
    if verbose:
        print(f"[pairstep] {line}", flush=True)
