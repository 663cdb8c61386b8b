"""Constraints: sums and bounds, and their translation into accounts."""

from .groups import GroupLabels, GroupTotal
from .layout import Indices, Layout
from .sum_box import Simplex, SumBox, Total

__all__ = ["GroupLabels", "GroupTotal", "Indices", "Layout", "Simplex", "SumBox", "Total"]
