"""How objects are shown: a line for a problem; a table, an HTML card or a plot for a result."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from .extras import needed

if TYPE_CHECKING:
    from ._validation import Array
    from .result import BatchResult, History, Result
    from .solve import Frontier, Portfolio

WEIGHTS_IN_TABLE = 5  # largest weights shown; more would hide the other rows of the table
WEIGHTS_IN_PLOT = 30  # as many bars with labels as fit into a figure of the default size
Rows = list[tuple[str, str]]


def described(kind: str, **parts: Any) -> str:
    """Describe an object in one line: the shapes of its matrices, the ranges of its vectors.

    Examples
    --------
    >>> import numpy as np
    >>> described("LeastSquares", A=np.ones((5, 3)), b=np.arange(5.0), ridge=np.full(3, 0.1))
    'LeastSquares(A=5x3, b=0..4, ridge=0.1)'
    """
    parts_shown = (f"{name}={_briefly(part)}" for name, part in parts.items() if part is not None)
    return f"{kind}({', '.join(parts_shown)})"


def _briefly(part: Any) -> str:
    if scipy.sparse.issparse(part):
        return f"{'x'.join(map(str, part.shape))} sparse"
    if callable(part):
        return getattr(part, "__name__", type(part).__name__)
    if not isinstance(part, np.ndarray):
        return repr(part)
    if part.ndim == 2:
        return "x".join(map(str, part.shape))
    low, high = part.min(initial=np.inf), part.max(initial=-np.inf)
    return f"{low:.3g}" if low == high else f"{low:.3g}..{high:.3g}"


def table(title: str, rows: Rows) -> str:
    """Format a title and rows of two columns as text."""
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows)])


def rows_of(result: Result) -> Rows:
    """Return the table of a result."""
    facts = [
        ("message", result.message),
        ("value", f"{result.fun:.9g}"),
        ("KKT violation", f"{result.kkt_violation:.2e}"),
        ("bound", f"at most {result.suboptimality_bound:.2e} above the optimum"),
        ("iterations", str(result.n_iter)),
        ("time", duration(result.setup_time + result.solve_time)),
    ]
    return [*facts, ("weights", _count(result.x)), *_largest_of(result)]


def rows_of_batch(batch: BatchResult) -> Rows:
    """Return the table of a batch: the largest violation, bound and number of iterations."""
    endings, counts = np.unique(batch.status, return_counts=True)
    solved = batch.status != "invalid"
    facts = [("status", ", ".join(f"{k} {s}" for s, k in zip(endings, counts, strict=True)))]
    if solved.any():
        worst = (
            ("KKT violation", batch.kkt_violation, ".2e"),
            ("bound", batch.suboptimality_bound, ".2e"),
            ("iterations", batch.n_iter, "d"),
        )
        facts += [(name, f"at most {v[solved].max():{form}}") for name, v, form in worst]
    return [*facts, ("time", duration(batch.setup_time + batch.solve_time))]


def rows_of_portfolio(portfolio: Portfolio) -> Rows:
    """Return the table of a portfolio: return, risk and the number of assets held."""
    return [
        ("return", f"{portfolio.expected_return:.6g}"),
        ("risk", f"{portfolio.risk:.6g}"),
        ("assets held", f"{int((portfolio.x != 0).sum())}"),
        ("KKT violation", f"{portfolio.kkt_violation:.2e}"),
    ]


def rows_of_frontier(frontier: Frontier) -> Rows:
    """Return the table of a frontier: the ranges of return and risk."""
    if not len(frontier.x):
        return [("return", "no target was given")]
    spans = (("return", frontier.expected_return), ("risk", frontier.risk))
    facts = [(name, f"{values.min():.6g} to {values.max():.6g}") for name, values in spans]
    return [*facts, ("KKT violation", f"at most {frontier.kkt_violation.max():.2e}")]


def duration(seconds: float) -> str:
    """Format a time in s, ms or us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _count(x: Array) -> str:
    zeros = int((x == 0).sum())
    return f"{len(x)}, {zeros} of them 0" if zeros else str(len(x))


def _largest_of(result: Result) -> Rows:
    named = _largest(result, WEIGHTS_IN_TABLE, "x[{}]")
    return [(f"  {name}", f"{weight:.6g}") for name, weight in named]


def _largest(result: Result, count: int, unlabeled: str) -> list[tuple[str, float]]:
    """Return the largest nonzero weights with their labels or indices."""
    order = np.argsort(-np.abs(result.x), kind="stable")[:count]
    names = result.variables.names
    return [
        (unlabeled.format(i) if names is None else str(names[i]), float(result.x[i]))
        for i in order
        if result.x[i] != 0
    ]


def card(result: Result) -> str:
    """Return a result as HTML, with a plot of its convergence if it has a history."""
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows_of(result)[1:]  # the message is in the title
    )
    title = f"<strong>{result.status}</strong>: {html.escape(result.message)}"
    sketch = "" if result.history is None else _sketch(result.history)
    return f'<div class="pairstep"><p>{title}</p><table>{cells}</table>{sketch}</div>'


def _sketch(history: History, width: int = 320, height: int = 80) -> str:
    """Return a logarithmic plot of the KKT violation over the iterations, as SVG."""
    violation = _positive(history.violation)
    at = np.unique(np.linspace(0, len(violation) - 1, min(len(violation), width)).astype(int))
    digits = np.log10(violation[at])
    low, high = digits.min(), digits.max()
    x = at / max(len(violation) - 1, 1) * (width - 4) + 2
    y = 2 + (high - digits) / (high - low or 1.0) * (height - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    caption = (
        f"KKT violation from {violation[0]:.1e} to {violation[-1]:.1e} "
        f"over {len(violation) - 1} iterations"
    )
    return (
        f'<svg role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{caption}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
        f"<p><small>{caption}, logarithmic scale</small></p>"
    )


def _positive(values: Array) -> Array:
    """Replace zeros by the smallest positive value, for a logarithmic scale."""
    above = values > 0
    return np.where(above, values, values[above].min(initial=1.0) if above.any() else 1.0)


def plot(result: Result) -> list[Any]:
    """Plot the largest weights as bars and, if it was recorded, the convergence."""
    pyplot = needed("matplotlib.pyplot", by="plot")
    history = result.history
    figure = pyplot.figure(layout="constrained")
    bars, *beside = figure.subplots(1, 1 if history is None else 2, squeeze=False)[0]
    named = _largest(result, WEIGHTS_IN_PLOT, "{}")[::-1]
    bars.barh([name for name, _ in named], [weight for _, weight in named])
    bars.set(xlabel="weight", title=f"{len(named)} of {len(result.x)} weights")
    if history is not None:
        (axes,) = beside
        axes.semilogy(_positive(history.violation))
        axes.set(xlabel="iteration", title="KKT violation")
    return [bars, *beside]


def plot_frontier(frontier: Frontier) -> Any:
    """Plot expected return over risk, with the corners and the single assets."""
    pyplot = needed("matplotlib.pyplot", by="plot")
    axes = pyplot.figure(layout="constrained").subplots()
    order = np.argsort(frontier.risk, kind="stable")
    axes.plot(frontier.risk[order], frontier.expected_return[order], marker="o", markersize=3)
    corners, path = frontier.corners, frontier._path
    axes.scatter(corners.risk, corners.expected_return, s=12, marker="|", label="corners")
    single = np.eye(len(path.mean))
    axes.scatter(
        np.sqrt(path.curvature.square(single)), path.mean, s=12, color="gray", label="single assets"
    )
    axes.set(
        xlabel="risk (standard deviation)", ylabel="expected return", title="Efficient frontier"
    )
    axes.legend()
    return axes
