"""The names of the figures that `pairstep reproduce` draws.

They are separate from `pairstep.paper`, which imports SciPy and joblib, so that the command
line can list them quickly.
"""

from enum import StrEnum


class Figure(StrEnum):
    """A figure of the paper, or an additional one; its CSV and image files have the same name."""

    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FIGURE4 = "figure4"
    FIGURE5 = "figure5"
    FIGURE6 = "figure6"
    THEORY = "theory"
    SCALING = "scaling"
    SUPPORT_VECTORS = "support_vectors"
    SIMPLEX = "simplex"
    WEIGHTS = "weights"
    PEERS = "peers"
