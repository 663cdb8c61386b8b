"""The pairwise samples that other tests use."""

from itertools import combinations, product

from pairwise import pairwise

OPTIONS = "abc", range(5), (True, False), "xyz"


def pairs(rows):
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


def test_every_pair_occurs_in_few_combinations():
    rows = pairwise(*OPTIONS)
    assert pairs(rows) == pairs(product(*OPTIONS))
    assert len(rows) <= 20  # 15 pairs of the two longest options need 15; the product has 90


def test_combinations_can_be_left_out():
    def where(letter, number, flag, end):
        return flag or number > 2

    rows = pairwise(*OPTIONS, where=where)
    assert all(where(*row) for row in rows)
    assert pairs(rows) == pairs(row for row in product(*OPTIONS) if where(*row))
