"""The directive `benchmark`: a table, and optionally a plot, from a committed JSON file.

    ```{benchmark} qp
    ```

shows ``docs/benchmarks/qp.json``, which records the measurement, its command, commit, machine and
date:

- ``title``, ``command``, ``commit``, ``machine``, ``date``: strings;
- ``versions``, optional: those of pairstep and of the other solvers, by package;
- ``columns`` and ``rows``: the table, one list of cells (strings or numbers) per row;
- ``note``, optional: remarks on the numbers, in Markdown;
- ``plot``, optional: ``{"name": column, "bar": column, "label": text}``, one bar
  per row on a logarithmic scale, with a line at 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from docutils import nodes
from docutils.statemachine import StringList
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from picture import light_and_dark
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).parents[1] / "benchmarks"
INK = {"light": "#333333", "dark": "#ced6dd"}
BAR = {"light": "#0067A5", "dark": "#5EB1E6"}


def shown(cell: Any) -> str:
    """Format a cell, with commas between thousands from 10,000 on."""
    if isinstance(cell, int):
        return f"{cell:,}" if cell >= 10_000 else str(cell)
    return "" if cell is None else str(cell)


def table(benchmark: dict[str, Any]) -> list[str]:
    """Lines of a Markdown table, with numbers aligned right."""
    columns, rows = benchmark["columns"], benchmark["rows"]
    numeric = [
        all(isinstance(row[k], int | float | None) for row in rows) for k in range(len(columns))
    ]
    return [
        f"| {' | '.join(columns)} |",
        f"| {' | '.join('---:' if right else '---' for right in numeric)} |",
        *(f"| {' | '.join(map(shown, row))} |" for row in rows),
    ]


def draw(benchmark: dict[str, Any], look: str, out: Path) -> None:
    """Draw the bars of one column, for light or dark pages."""
    plot = benchmark["plot"]
    name, bar = (benchmark["columns"].index(plot[key]) for key in ("name", "bar"))
    rows = [row for row in benchmark["rows"] if isinstance(row[bar], int | float)][::-1]
    figure = Figure(figsize=(7.2, 0.6 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots()
    names, values = zip(*((row[name].replace("`", ""), row[bar]) for row in rows), strict=True)
    bars = axes.barh(names, [value - 1 for value in values], left=1, color=BAR[look], height=0.62)
    axes.bar_label(bars, [f"{value:g}" for value in values], padding=3, color=INK[look])
    axes.axvline(1.0, color=INK[look], linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.margins(x=0.12)
    axes.set_xlabel(plot["label"], color=INK[look])
    axes.tick_params(colors=INK[look], which="both")
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.savefig(out, transparent=True)


class Benchmark(SphinxDirective):
    """Show the table, the plot and the origin of a benchmark."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Read the file, and register it as a dependency of the page."""
        name = self.arguments[0]
        path = FOLDER / f"{name}.json"
        self.env.note_dependency(str(path))
        benchmark = json.loads(path.read_text(encoding="utf-8"))
        lines = [f"**{benchmark['title']}**", "", benchmark.get("note", ""), ""]
        if "plot" in benchmark:
            pictures = Path(self.env.srcdir) / "_build" / "benchmarks"
            pictures.mkdir(parents=True, exist_ok=True)
            draw(benchmark, "light", pictures / f"{name}.svg")
            draw(benchmark, "dark", pictures / f"{name}-dark.svg")
            alt = f"{benchmark['plot']['label']}, by {benchmark['plot']['name']}"
            lines += light_and_dark(f"/_build/benchmarks/{name}.svg", alt)
        origin = (
            f"`{benchmark['command']}` · commit {benchmark['commit']} · {benchmark['machine']} · "
            f"{benchmark['date']}"
        )
        if "versions" in benchmark:
            versions = benchmark["versions"].items()
            origin += f" · {', '.join(f'{name} {version}' for name, version in versions)}"
        lines += [*table(benchmark), "", ":::{div} benchmark-origin", origin, ":::"]
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source=str(path)), self.content_offset, holder)
        return holder.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True}
