"""Kelly's criterion
=================

The portfolio whose wealth grows fastest.

With the returns of m days in the rows of R, the growth rate of a portfolio that is rebalanced daily
is mean(log(1 + Rx)). Its maximum over x >= 0, sum(x) = 1 is Kelly's portfolio, in hindsight: what
nobody could have known, and so what any strategy is measured against. A limit on each holding costs
growth; the right panel shows how the holdings spread. Data: daily prices of 20 stocks.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from _data import daily_stocks
from _picture import BLACK, BLUE, GREEN, GREY, RED, label, panels, run, save

import pairstep

LIMITS = {1.0: BLUE, 0.3: GREEN, 0.1: RED}
DAYS_IN_A_YEAR = 252


def main(out: Path) -> None:
    """Find the portfolio for each limit, print growth and holdings, draw."""
    names, returns, made_up = daily_stocks(premium=0.03)
    figure, (left, right) = panels(1, 2, (11.5, 5.0))
    years = np.arange(len(returns)) / DAYS_IN_A_YEAR
    even = np.full(len(names), 1 / len(names))
    holdings = {}
    for row, (limit, colour) in enumerate(LIMITS.items()):
        began = time.perf_counter()
        result = pairstep.minimize(
            pairstep.LogGrowth(returns), pairstep.SumBox(total=1.0, upper=limit), tol=1e-10
        )
        milliseconds = 1e3 * (time.perf_counter() - began)
        assert result.status == pairstep.Status.OPTIMAL, result.message
        growth = 100 * math.expm1(-DAYS_IN_A_YEAR * result.fun)
        holdings[limit] = result.x
        print(f"limit {limit:g}: growth {growth:.3f}% a year, in {milliseconds:.1f} ms")
        print(f"limit {limit:g}: largest holding {result.x.max():.6f}, sum {math.fsum(result.x)}")
        left.plot(years, np.cumsum(np.log1p(returns @ result.x)) / math.log(10), color=colour)
        name = f"at most {limit:.0%} each: {growth:.1f}% a year"
        label(left, 0.04, 0.93 - 0.07 * row, name, colour, transform=left.transAxes)
    growth = 100 * math.expm1(DAYS_IN_A_YEAR * np.log1p(returns @ even).mean())
    print(f"equal holdings: growth {growth:.3f}% a year")
    left.plot(years, np.cumsum(np.log1p(returns @ even)) / math.log(10), color=GREY)
    label(left, 0.04, 0.72, f"equal: {growth:.1f}% a year", GREY, transform=left.transAxes)
    ticks = np.arange(0, math.ceil(left.get_ylim()[1]) + 1)
    left.set_yticks(ticks, [f"{10.0**t:g}" for t in ticks])
    left.set(title="Wealth, in multiples of the start", xlabel="years")
    left.grid()
    order = np.argsort(-sum(holdings.values()))[:10]
    for k, (limit, colour) in enumerate(LIMITS.items()):
        places = np.arange(len(order)) + 0.27 * (k - 1)
        right.barh(places, 100 * holdings[limit][order], 0.25, color=colour)
    right.set_yticks(np.arange(len(order)), [names[i] for i in order], color=BLACK)
    right.invert_yaxis()
    right.set(title="Holdings, %")
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
