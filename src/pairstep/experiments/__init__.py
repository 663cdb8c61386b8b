"""The paper's experiments and a few beyond it: a module per figure, or for figures that are alike.

Each module says what to measure (parts), what to keep (CSV tables), what to conclude (claims) and
how to draw it (panels, from the CSV tables alone). `reproduce` runs them all.
"""

from .reproduce import EXPERIMENTS, redraw, reproduce

__all__ = ["EXPERIMENTS", "redraw", "reproduce"]
