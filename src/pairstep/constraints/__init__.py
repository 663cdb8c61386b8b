"""Constraints: sums, bounds and groups, and their translation for solvers."""

from .groups import GroupLabels, GroupLimit, GroupTotal
from .layout import Indices, Layout
from .sum_box import Simplex, SumBox, Total

__all__ = [
    "GroupLabels",
    "GroupLimit",
    "GroupTotal",
    "Indices",
    "Layout",
    "Simplex",
    "SumBox",
    "Total",
]
