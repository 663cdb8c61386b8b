"""Drawings of the figures, in the styles of the mplstyle files beside this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Colors by their index in the palette of the style, which is looked up when a figure is drawn.
# Rules of one family have the same color.
BLUE, RED, GREEN, PURPLE, GRAY, BLACK, OCHER = (f"C{k}" for k in range(7))
DOTTED, DASHED, MIXED = (0, (1, 1)), (0, (4, 1.5)), (0, (5, 1, 1, 1))
LINES: dict[str, dict[str, Any]] = {
    "random": {"color": GRAY, "linestyle": DOTTED},
    "random-lipschitz": {"color": BLACK, "linestyle": DASHED},
    "greedy": {"color": BLUE},
    "gs-s": {"color": BLUE, "linestyle": DASHED},
    "gs-q": {"color": RED},
    "gs-q-lipschitz": {"color": RED},
    "gs-1": {"color": GREEN},
    "gs-1-lipschitz": {"color": GREEN},
    "ratio": {"color": PURPLE, "linestyle": MIXED},
    "libsvm": {"color": OCHER, "linestyle": MIXED},
}
THEMES = {"light": "", "dark": "-dark"}  # suffix of the file names of each theme
WIDTH, HEIGHT = 4.6, 3.3  # of one panel, in inches


def curves(
    ax: Axes, rows: pd.DataFrame, x: str, y: str, label: Callable[[str], str] = str, **options: Any
) -> None:
    """Draw a labeled curve for each rule; the options are those of the axes."""
    ax.set(**({"xlabel": x} | options))
    for rule, of in rows.groupby("rule", sort=False):
        ax.plot(of[x], of[y], label=label(rule), **LINES.get(rule, {"color": BLACK}))
    ax.legend()


def draw(panels: Mapping[str, Callable[[Axes], None]], columns: int, path: Path) -> None:
    """Draw panels side by side into SVG and PNG files, in both themes.

    The files have no date, so that equal figures have equal bytes.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    here = Path(__file__).parent
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    for theme, ending in THEMES.items():
        with style.context([here / "figures.mplstyle", here / f"{theme}.mplstyle"]):
            figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows))
            axes = list(figure.subplots(rows, columns, squeeze=False).flat)
            for ax, (title, panel) in zip(axes, panels.items(), strict=False):
                ax.set_title(title)
                panel(ax)
                ax.minorticks_off()
            for ax in axes[len(panels) :]:
                ax.remove()
            for kind, without in (("svg", "Date"), ("png", "Software")):
                figure.savefig(f"{path}{ending}.{kind}", metadata={without: None})
