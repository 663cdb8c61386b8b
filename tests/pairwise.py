"""Pairwise samples of the cross product of test parameters.

Most defects that depend on options depend on one option or on the combination of two, so a test
need not run with every combination of three or more (Kuhn, Wallace and Gallo, "Software fault
interactions and implications for software testing", 2004).
"""

from collections.abc import Callable, Iterable
from itertools import combinations, product


def pairwise(*options: Iterable, where: Callable[..., bool] | None = None) -> list[tuple]:
    """Return combinations in which every pair of values of two options occurs.

    Parameters
    ----------
    *options
        The values of each option; values must be hashable.
    where
        Called with a combination; those for which it returns false are left out. Pairs that occur
        only in combinations that are left out are not covered.

    Returns
    -------
    combinations : list of tuple
        In the order of the cross product. The greedy choice takes, again and again, the first
        combination that has the most pairs that do not yet occur, so it is deterministic.
    """
    rows = [row for row in product(*options) if where is None or where(*row)]
    pairs = [frozenset(combinations(enumerate(row), 2)) for row in rows]
    missing = set().union(*pairs)
    chosen = set()
    while missing:
        best = max(range(len(rows)), key=lambda i: len(pairs[i] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return [rows[i] for i in sorted(chosen)]
