"""The look of the figures: colours that everybody can tell apart, labels beside their curves."""

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

WIDTH, HEIGHT = 4.3, 3.3  # inches, of one panel
LEFT, BOTTOM, TOP = 0.72, 0.56, 0.42  # inches around the axes; the right depends on the labels

# The palette of Okabe and Ito, darker on white and lighter on black: apart for all kinds of colour
# vision, with enough contrast for text. Rules of one family share a colour. Colours are named by
# their place in the palette, which matplotlib looks up when it draws: a figure has no other colours
# of its own, so that it can be drawn in either.
BLUE, RED, GREEN, PURPLE, GREY, BLACK, OCHRE = (f"C{k}" for k in range(7))
PALETTES = {
    "light": ("#0067A5", "#C44E00", "#007A5A", "#A63A79", "#767676", "#222222", "#94690A"),
    "dark": ("#6CB6EC", "#F28E4E", "#3FC19A", "#E58CBD", "#9A9A9A", "#E4E4E0", "#D9AE45"),
}
PAPER = {"light": "#FFFFFF", "dark": "#1D2024"}
LINES = {"light": ("#555555", "#E6E6E6"), "dark": ("#B0B5BB", "#383D43")}  # axes and grid
COLOURS = {
    "random": GREY,
    "random-lipschitz": BLACK,
    "greedy": BLUE,
    "gs-s": BLUE,
    "gs-q": RED,
    "gs-q-lipschitz": RED,
    "gs-1": GREEN,
    "gs-1-lipschitz": GREEN,
    "ratio": PURPLE,
    "libsvm": OCHRE,
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
    """Give matplotlib's settings for a theme, "light" or "dark"."""
    from cycler import cycler

    palette, (axes, grid) = PALETTES[theme], LINES[theme]
    colours = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), axes)
    colours |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), palette[5])
    colours |= dict.fromkeys(
        ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAPER[theme]
    )
    return SETTINGS | colours | {"grid.color": grid, "axes.prop_cycle": cycler(color=palette)}


LINE = 0.085  # the height of a line of labels, as a share of the axes

Array = NDArray[np.float64]
End = tuple[float, float, str, str]  # where a curve ends, its label, its colour


def curve(ax: Axes, x: ArrayLike, y: ArrayLike, rule: str, label: str | None = None) -> End:
    """Draw a rule's curve; returns what `label_ends` needs to name it."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    ax.plot(xs, ys, color=COLOURS[rule], linestyle=DASHES.get(rule, "-"))
    return float(xs[-1]), float(ys[-1]), label or rule, COLOURS[rule]


def label_ends(ax: Axes, ends: Sequence[End]) -> None:
    """Write the label of each curve to the right of the axes, with a line to the curve's end.

    Labels keep a distance of a line from one another, each as near to its curve as that allows:
    an isotonic regression.
    """
    points, ends = in_axes(ax, ends)
    steps = LINE * np.arange(len(ends))
    heights = isotonic_regression(points[:, 1] - steps).x
    heights = np.clip(heights, 0.0, max(1.0 - steps[-1], 0.0)) + steps
    for point, height, (_, _, label, colour) in zip(points, heights, ends, strict=True):
        leader(ax, point, height, label, colour)


def in_axes(ax: Axes, ends: Sequence[End]) -> tuple[Array, list[End]]:
    """Give the ends in coordinates of the axes, from bottom to top."""
    ax.get_xlim(), ax.get_ylim()  # settles the limits
    to_axes = ax.transData + ax.transAxes.inverted()
    points = np.array([to_axes.transform(end[:2]) for end in ends])
    order = np.argsort(points[:, 1], kind="stable")
    return points[order], [ends[k] for k in order]


def leader(ax: Axes, point: Array, height: float, label: str, colour: str) -> None:
    """Write a label on the right at a height, with a thin line from a point, all in axes units."""
    ax.plot(
        [point[0], 1.05], [point[1], height], color=colour, linewidth=0.7, alpha=0.6,
        transform=ax.transAxes, clip_on=False, zorder=1.5,
    )  # fmt: skip
    ax.text(1.07, height, label, color=colour, transform=ax.transAxes, va="center", fontsize=10.5)


def draw(
    panels: Sequence[Panel], columns: int, label_room: float, theme: str, kinds: Sequence[str]
) -> list[bytes]:
    """Draw panels side by side, and give the figure in some formats."""
    from matplotlib import rc_context

    with rc_context(settings(theme)):
        figure = compose(panels, columns, label_room)
        return [render(figure, kind) for kind in kinds]


def compose(panels: Sequence[Panel], columns: int, label_room: float) -> Figure:
    """Draw panels side by side, with so many inches for the labels on the right of each."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    total = WIDTH * columns, HEIGHT * rows
    width, height = WIDTH - LEFT - label_room, HEIGHT - BOTTOM - TOP
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
    """Give a figure as SVG or PNG, without a date, so that the same figure gives the same bytes."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=160, metadata=metadata)
    return buffer.getvalue()
