"""Numbers of any size: a rule is asked in units in which it may multiply them with each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .accounts import Accounts, Array, Move, no_move

NEGLIGIBLE, ENDLESS = 2.0**-900, 2.0**600
MOST = np.finfo(float).max


def guided_in_units(
    rule: Callable[[Accounts, float], Move], accounts: Accounts, alpha: float
) -> Move:
    """Ask a rule that looks at the prices.

    Where nothing that it compares can be told from nothing, its answer is the pair with the widest
    gap.
    """
    move = in_units(rule, accounts, alpha)
    if len(move.indices) or not accounts.sellers.max() > accounts.buyers.min():
        return move
    pair = np.array([np.argmax(accounts.sellers), np.argmin(accounts.buyers)])
    move = in_units(rule, accounts.some(pair), alpha)
    return Move(pair[move.indices], move.delta, move.decrease)


@np.errstate(over="ignore", under="ignore")
def in_units(rule: Callable[[Accounts, float], Move], accounts: Accounts, alpha: float) -> Move:
    """Ask a rule about the same accounts in units in which neither products nor sums overflow.

    The units are powers of 2, so that no choice depends on them: they make the widest gap, the
    smallest constant and the largest amount that anyone may trade about 1. What is 2^900 times
    smaller is not told from nothing.
    """
    dearest, cheapest = accounts.sellers.max(), accounts.buyers.min()
    if not dearest > cheapest:
        return no_move()
    sells, buys = accounts.sellers > cheapest, accounts.buyers < dearest
    gap = dearest - cheapest
    price = exponent(gap) if np.isfinite(gap) else 1 + exponent(dearest / 2 - cheapest / 2)
    constant = 2 * (exponent(accounts.lipschitz.min()) // 2)  # even, for roots are taken
    amount = exponent(alpha) + price - constant
    room = min(accounts.down_room[sells].max(), accounts.up_room[buys].max())
    if np.isfinite(room):
        amount = min(amount, exponent(room))
    down, up = (np.ldexp(room, -amount) for room in (accounts.down_room, accounts.up_room))
    scaled = Accounts(
        np.clip(np.ldexp(accounts.down_price, -price), -ENDLESS, ENDLESS),
        np.clip(np.ldexp(accounts.up_price, -price), -ENDLESS, ENDLESS),
        np.where(down >= NEGLIGIBLE, down, 0.0),
        np.where(up >= NEGLIGIBLE, up, 0.0),
        np.minimum(np.ldexp(accounts.lipschitz, -constant), ENDLESS),
    )
    step = np.ldexp(np.frexp(alpha)[0], exponent(alpha) + 1 + price - amount - constant)
    move = rule(scaled, min(float(step), ENDLESS))
    delta = translated(move, scaled, accounts, amount)
    if not (delta != 0).all() or not np.isfinite(delta).all():
        return no_move()
    return Move(move.indices, delta, min(float(np.ldexp(move.decrease, amount + price)), MOST))


def exponent(number: float) -> int:
    """The power of 2 at or below a positive number."""
    return int(np.frexp(number)[1]) - 1


def translated(move: Move, scaled: Accounts, accounts: Accounts, amount: int) -> Array:
    """The changes of a move in the old units; what used up its room still does, to the bit."""
    falls, size = move.delta < 0, np.abs(move.delta)
    room = np.where(falls, accounts.down_room[move.indices], accounts.up_room[move.indices])
    limit = np.where(falls, scaled.down_room[move.indices], scaled.up_room[move.indices])
    size = np.minimum(np.where(size >= limit, room, np.ldexp(size, amount)), room)
    if len(size) == 2:
        size = np.full(2, min(size.min(), MOST))
    return np.where(falls, -size, size)
