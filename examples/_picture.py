"""The look of the examples' pictures, and the one option of their command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Dark variants of the palette of Okabe and Ito: apart for all kinds of colour vision, and dark
# enough for text.
BLUE, RED, GREEN, PURPLE, OCHRE = "#0067A5", "#C44E00", "#007A5A", "#A63A79", "#94690A"
GREY, BLACK, PALE = "#767676", "#222222", "#C8C8C8"

pyplot.rcParams.update(
    {
        "font.size": 12,
        "axes.titlesize": 12.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#555555",
        "xtick.color": "#555555",
        "ytick.color": "#555555",
        "axes.axisbelow": True,
        "grid.color": "#E6E6E6",
        "lines.linewidth": 2.2,
        "lines.solid_capstyle": "round",
    }
)


def panels(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> tuple[Figure, Any]:
    """Make a figure of panels."""
    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", **options)


def label(ax: Axes, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """Write the name of a curve beside it, in its colour."""
    style = {"va": "center", "fontweight": "bold", "fontsize": 11} | options
    ax.text(x, y, text, color=colour, **style)


def save(figure: Figure, out: Path, made_up: bool = False) -> None:
    """Write the picture, with a word on its data where they are made up."""
    if made_up:
        figure.supxlabel(
            "made-up data: set PAIRSTEP_DATA for the real ones",
            color=RED, fontsize=11, style="italic",
        )  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)
    print(f"picture: {out}")


def run(main: Callable[[Path], None], description: str | None) -> None:
    """Run an example from its command line."""
    summary = (description or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    name = Path(main.__code__.co_filename).with_suffix(".png").name
    parser.add_argument(
        "--out", type=Path, default=Path(name), help=f"the picture to write (default: {name})"
    )
    main(parser.parse_args().out)
