"""The paper's experiments and a few more: one module per figure, or per group of similar figures.

Each module defines what to measure (parts), what to keep (CSV tables), what to conclude (claims)
and how to draw it (panels, which use only the CSV tables). `reproduce` runs them all.
"""

from ..extras import needed

for _library in ("joblib", "threadpoolctl"):  # only drawing needs matplotlib
    needed(_library, by="reproduce")

from .reproduce import EXPERIMENTS, redraw, reproduce  # noqa: E402

__all__ = ["EXPERIMENTS", "redraw", "reproduce"]
