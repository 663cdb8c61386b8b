"""Progress lines: sent to the logger "pairstep", and printed if `verbose` is set.

Lines have the level INFO, so nothing is shown by default. ``verbose=True`` prints the same lines,
as scikit-learn's estimators do.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("pairstep")

SECONDS_BETWEEN_LINES = 1.0  # of one solve; a shorter time would flood the log


def is_enabled(verbose: bool) -> bool:
    """Return whether a line would be printed or logged."""
    return bool(verbose) or logger.isEnabledFor(logging.INFO)


def write(line: str, verbose: bool) -> None:
    """Log a line, and print it if `verbose`."""
    logger.info("%s", line)
    if verbose:
        print(f"[pairstep] {line}", flush=True)
