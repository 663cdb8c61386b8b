"""The style of the figures: colors for all kinds of color vision, labels next to their curves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from .experiment import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.3, 3.3  # of one panel, in inches
LEFT, BOTTOM, TOP = 0.72, 0.56, 0.42  # margins of the axes, in inches; the right is `label_width`

# The palette of Okabe and Ito, darkened for white and lightened for black backgrounds, so that its
# colors differ for all kinds of color vision and have enough contrast for text. Rules of one family
# have the same color. Colors are named by their index in the palette ("C0"), which matplotlib looks
# up when it draws, so that one figure can be drawn in both themes.
BLUE, RED, GREEN, PURPLE, GRAY, BLACK, OCHER = (f"C{k}" for k in range(7))
PALETTES = {
    "light": ("#0067A5", "#C44E00", "#007A5A", "#A63A79", "#767676", "#222222", "#94690A"),
    "dark": ("#6CB6EC", "#F28E4E", "#3FC19A", "#E58CBD", "#9A9A9A", "#E4E4E0", "#D9AE45"),
}
BACKGROUND = {"light": "#FFFFFF", "dark": "#1D2024"}
LINES = {"light": ("#555555", "#E6E6E6"), "dark": ("#B0B5BB", "#383D43")}  # axes and grid
COLORS = {
    "random": GRAY,
    "random-lipschitz": BLACK,
    "greedy": BLUE,
    "gs-s": BLUE,
    "gs-q": RED,
    "gs-q-lipschitz": RED,
    "gs-1": GREEN,
    "gs-1-lipschitz": GREEN,
    "ratio": PURPLE,
    "libsvm": OCHER,
}
DASHES: dict[str, Any] = {
    "random": (0, (1, 1)),
    "random-lipschitz": (0, (4, 1.5)),
    "ratio": (0, (5, 1, 1, 1)),
    "gs-s": (0, (4, 1.2)),
    "libsvm": (0, (5, 1, 1, 1)),
}

SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.7,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "path",
    "svg.hashsalt": "pairstep",
    "path.simplify": True,
}


def settings(theme: str) -> dict[Any, Any]:
    """Return matplotlib's settings for a theme, "light" or "dark"."""
    from cycler import cycler

    palette, (axes, grid) = PALETTES[theme], LINES[theme]
    colors = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), axes)
    colors |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), palette[5])
    colors |= dict.fromkeys(
        ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), BACKGROUND[theme]
    )
    return SETTINGS | colors | {"grid.color": grid, "axes.prop_cycle": cycler(color=palette)}


LINE = 0.085  # height of a label, as a fraction of the height of the axes

Array = NDArray[np.float64]
End = tuple[float, float, str, str]  # where a curve ends, its label, its color


def curve(ax: Axes, x: ArrayLike, y: ArrayLike, rule: str, label: str | None = None) -> End:
    """Draw the curve of a rule, and return its end and label for `label_ends`."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    ax.plot(xs, ys, color=COLORS[rule], linestyle=DASHES.get(rule, "-"))
    return float(xs[-1]), float(ys[-1]), label or rule, COLORS[rule]


def label_ends(ax: Axes, ends: Sequence[End]) -> None:
    """Write the label of each curve to the right of the axes, with a line to the curve's end.

    Labels are at least one line apart, and otherwise as close to their curves as possible, which is
    an isotonic regression.
    """
    points, ends = in_axes(ax, ends)
    offsets = LINE * np.arange(len(ends))
    heights = isotonic_regression(points[:, 1] - offsets).x
    heights = np.clip(heights, 0.0, max(1.0 - offsets[-1], 0.0)) + offsets
    for point, height, (_, _, label, color) in zip(points, heights, ends, strict=True):
        leader(ax, point, height, label, color)


def in_axes(ax: Axes, ends: Sequence[End]) -> tuple[Array, list[End]]:
    """Return the ends in axes coordinates, and their labels, from bottom to top."""
    ax.get_xlim(), ax.get_ylim()  # autoscaling happens when limits are read
    to_axes = ax.transData + ax.transAxes.inverted()
    points = np.array([to_axes.transform(end[:2]) for end in ends])
    order = np.argsort(points[:, 1], kind="stable")
    return points[order], [ends[k] for k in order]


def leader(ax: Axes, point: Array, height: float, label: str, color: str) -> None:
    """Write a label on the right, with a thin line from a point; all in axes coordinates."""
    ax.plot(
        [point[0], 1.05], [point[1], height], color=color, linewidth=0.7, alpha=0.6,
        transform=ax.transAxes, clip_on=False, zorder=1.5,
    )  # fmt: skip
    ax.text(1.07, height, label, color=color, transform=ax.transAxes, va="center", fontsize=10.5)


def draw(
    panels: Sequence[Panel], columns: int, label_width: float, theme: str, kinds: Sequence[str]
) -> list[bytes]:
    """Draw panels side by side, and return the figure in several formats."""
    from matplotlib import rc_context

    with rc_context(settings(theme)):
        figure = compose(panels, columns, label_width)
        return [render(figure, kind) for kind in kinds]


def compose(panels: Sequence[Panel], columns: int, label_width: float) -> Figure:
    """Draw panels side by side, each with `label_width` inches for labels on its right."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    total = WIDTH * columns, HEIGHT * rows
    width, height = WIDTH - LEFT - label_width, HEIGHT - BOTTOM - TOP
    figure = Figure(figsize=total)
    for k, panel in enumerate(panels):
        row, column = divmod(k, columns)
        left, bottom = column * WIDTH + LEFT, (rows - 1 - row) * HEIGHT + BOTTOM
        ax = figure.add_axes(
            (left / total[0], bottom / total[1], width / total[0], height / total[1])
        )
        ax.set_title(panel.title)
        panel.draw(ax)
        ax.minorticks_off()
    return figure


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as SVG or PNG, without a date, so that equal figures have equal bytes."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=160, metadata=metadata)
    return buffer.getvalue()
