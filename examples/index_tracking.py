"""Index tracking with few stocks
==============================

Follow a stock index with few of its stocks, and see what happens next.

The weights of the portfolio are not negative, add up to one, and make its weekly returns nearest to
the index's over the first half of 290 weeks. Then the smallest holding is sold for good and the
rest solved again, from the last solution, until one is left. The second half shows the error that
an investor would have seen. Data: three indices of Beasley's OR-Library.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _data import Array, find, made_up_market, numbers
from _picture import BLUE, GREY, RED, label, panels, run, save

import pairstep

INDICES = {"indtrack1": "Hang Seng", "indtrack2": "DAX 100", "indtrack3": "FTSE 100"}
FEW = 10


def prices(name: str) -> tuple[Array, bool]:
    """Give weekly prices (weeks + 1 x 1 + stocks), the index first, and whether made up."""
    path = find(f"finance/{name}.txt.gz")
    if path is not None:
        data = numbers(path)
        stocks = int(data[0])
        return data[2:].reshape(stocks + 1, -1).T, False
    rng = np.random.default_rng(list(INDICES).index(name))
    returns, _ = made_up_market(rng, 40, 290)
    index = returns @ rng.dirichlet(np.ones(40)) + 0.0005 * rng.standard_normal(290)
    steps = 1 + np.column_stack([index, returns])
    return np.vstack([np.ones(41), np.cumprod(steps, axis=0)]), True


def thin_out(stocks: Array, index: Array) -> list[Array]:
    """Give portfolios of ever fewer stocks: sell the smallest holding, solve again."""
    portfolios = []
    cap = np.ones(stocks.shape[1])
    start = None
    while True:
        result = pairstep.simplex_lstsq(stocks, index, upper=cap, x0=start)
        assert result.status == pairstep.Status.OPTIMAL, result.message
        portfolios.append(result.x)
        held = np.flatnonzero(result.x)
        if len(held) == 1:
            return portfolios
        smallest, largest = held[np.argmin(result.x[held])], np.argmax(result.x)
        start = result.x.copy()
        start[largest] += start[smallest]
        start[smallest] = 0.0
        cap = np.where(start > 0, 1.0, 0.0)


def error(stocks: Array, index: Array, weights: Array) -> float:
    """Tracking error: the root mean square of the weekly difference, in percent."""
    return float(100 * np.sqrt(np.mean((stocks @ weights - index) ** 2)))


def main(out: Path) -> None:
    """Track the three indices, print and draw the errors in both halves."""
    figure, axes = panels(2, 3, (12.5, 7.0))
    made_up = False
    for k, (name, title) in enumerate(INDICES.items()):
        table, made_up = prices(name)
        returns = table[1:] / table[:-1] - 1
        index, stocks = returns[:, 0], returns[:, 1:]
        half = len(returns) // 2
        seen, unseen = slice(0, half), slice(half, None)
        portfolios = thin_out(stocks[seen], index[seen])
        counts = np.array([np.count_nonzero(x) for x in portfolios])
        inside, outside = (
            np.array([error(stocks[part], index[part], x) for x in portfolios])
            for part in (seen, unseen)
        )
        few = int(np.flatnonzero(counts <= FEW)[0])
        label_of = f"made-up index {k + 1}" if made_up else title
        for at in (0, few):
            print(
                f"{label_of}: {counts[at]} of {stocks.shape[1]} stocks, tracking error "
                f"{inside[at]:.3f}% a week in the first half, {outside[at]:.3f}% in the second"
            )
        print(f"{label_of}: weights sum to {math.fsum(portfolios[few])!r}")

        top, bottom = axes[:, k]
        weeks = np.arange(len(returns) + 1)
        grown = np.append(1.0, np.cumprod(1 + index))
        tracked = np.append(1.0, np.cumprod(1 + stocks @ portfolios[few]))
        top.axvspan(half, len(returns), color="#F2F2F2", linewidth=0)
        top.plot(weeks, grown, color=BLUE, linewidth=3.4, alpha=0.55)
        top.plot(weeks, tracked, color=RED, linewidth=1.2)
        top.set(title=label_of, xlabel="week", xlim=(0, len(returns)))
        bottom.plot(counts, inside, color=BLUE)
        bottom.plot(counts, outside, color=RED)
        for colour, curve in ((BLUE, inside), (RED, outside)):
            bottom.plot(counts[few], curve[few], "o", color=colour, markersize=7)
        bottom.set(xlabel="stocks held", xscale="log", xlim=(1, counts[0] * 1.05))
        ticks = [t for t in (1, 2, 5, 10, 20, 50) if t <= counts[0]]
        bottom.set_xticks(ticks, ticks)
        bottom.minorticks_off()
        bottom.grid(axis="y")
        if k == 0:
            top.set_ylabel("value of 1 invested")
            bottom.set_ylabel("tracking error, % a week")
            where = {"transform": bottom.transAxes}
            label(bottom, 0.3, 0.72, "second half, unseen", RED, **where)
            label(bottom, 0.06, 0.12, "first half, fitted", BLUE, **where)
            where = {"transform": top.transAxes}
            label(top, 0.03, 0.93, "index", BLUE, **where)
            label(top, 0.03, 0.83, f"{counts[few]} stocks", RED, **where)
            label(top, 0.98, 0.06, "unseen", GREY, ha="right", fontweight="normal", **where)
    highest = max(ax.get_ylim()[1] for ax in axes[1])
    for ax in axes[1]:
        ax.set_ylim(0, highest)
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
