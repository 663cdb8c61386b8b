"""Where the examples find their data: the folder PAIRSTEP_DATA names, or a made-up substitute."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def find(name: str) -> Path | None:
    """Give the path of a data file, or None, having said so, where there is none."""
    folder = os.environ.get("PAIRSTEP_DATA")
    if not folder:
        print(f"PAIRSTEP_DATA is not set: made-up data takes the place of {name}")
        return None
    path = Path(folder) / name
    if not path.is_file():
        print(f"{path} does not exist: made-up data takes its place")
        return None
    return path


def numbers(path: Path) -> Array:
    """Read all the numbers of a text file, gzipped or not."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return np.array(content.split(), float)


def daily_stocks(premium: float = 0.0) -> tuple[list[str], Array, bool]:
    """Give the names of 20 stocks, their daily returns, and whether they are made up."""
    path = find("finance/skfolio_sp500_dataset.csv.gz")
    if path is None:
        returns, _ = made_up_market(np.random.default_rng(4), 20, 2500, premium)
        return [f"stock {k}" for k in range(20)], 0.3 * returns, True
    with gzip.open(path, "rt") as file:
        (_, *names), *rows = csv.reader(file)
    prices = np.array([row[1:] for row in rows], float)
    return names, prices[1:] / prices[:-1] - 1, False


def made_up_market(
    rng: np.random.Generator, n: int, weeks: int, premium: float = 0.0
) -> tuple[Array, Array]:
    """Give weekly returns of n stocks (weeks x n) under one market factor, and the factor."""
    market = 0.001 + 0.02 * rng.standard_normal(weeks)
    exposure = rng.uniform(0.5, 1.5, n)
    own = rng.uniform(0.02, 0.05, n)
    drift = premium * own * rng.standard_normal(n)
    return drift + np.outer(market, exposure) + own * rng.standard_normal((weeks, n)), market
