"""What a report costs a device, and whether its budget allows it, by public parameters and the past alone."""

from __future__ import annotations

import math
from typing import Final, NoReturn

from sfumato.errors import DeviceBudgetExceeded
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.budget.budget_file import UNIT, BudgetState, CollectionSpent, units_above
from sfumato.local.device.longitudinal.memo_store import MemoClient

__all__ = ["begin_day", "pay"]

_MAX_COLLECTIONS: Final = 1 << 16
_DAY: Final = 86_400


def begin_day(state: BudgetState, now: float) -> None:
    """Begin the clock's day, unless that has begun already, or a later one.

    Parameters
    ----------
    state : BudgetState
        Changed in place.
    now : float
        Seconds since 1970.
    """
    day = int(now // _DAY)
    if day > state.day:
        state.day, state.today = day, 0


def pay(
    state: BudgetState, randomizer: Randomizer, count: int, collection: str, client: MemoClient | None
) -> None:
    """Add what some reports cost to what was spent, or refuse them.

    Parameters
    ----------
    state : BudgetState
        Changed in place.
    randomizer : Randomizer
    count : int
        Number of reports.
    collection : str
        Whose reports they are.
    client : MemoClient or None
        Where they are made of memos.

    Raises
    ------
    DeviceBudgetExceeded
        If a cap or a pin does not allow them; then nothing is changed.
    """
    if client is not None:
        _forget_lost_memos(state, client)
    entry = state.collections.get(collection, CollectionSpent())
    each, cost = _cost(randomizer, count, client, entry)
    _check_pins(state, randomizer, each)
    _check_caps(state, entry, cost)
    if collection not in state.collections and len(state.collections) >= _MAX_COLLECTIONS:
        _exceeded(f"be of one of {_MAX_COLLECTIONS} collections at most", "one more", "use another budget")
    state.spent, state.today = state.spent + cost, state.today + cost
    entry.spent, entry.reports = entry.spent + cost, entry.reports + count
    if client is not None:
        entry.memos = client.generation
    state.collections[collection] = entry


def _forget_lost_memos(state: BudgetState, client: MemoClient) -> None:
    """Take no memos for paid if the store is older than after the last report: it may lack some of them.

    A report is paid for at one generation of the store and makes the next one. Later reports to any question
    must find a later one, or else what others write would hide that the store was replaced.
    """
    known = [one.memos for one in state.collections.values() if one.memos is not None]
    if known and client.generation <= max(known):
        for one in state.collections.values():
            one.memos = None


def _cost(
    randomizer: Randomizer, count: int, client: MemoClient | None, entry: CollectionSpent
) -> tuple[float, int]:
    """Return the epsilon of one report or memo, and what all cost in units."""
    if client is None:
        each = randomizer.report_epsilon
        return each, 0 if each == math.inf else count * units_above(each)
    each = client.protocol.permanent_epsilon
    paid = client.memory is not None and entry.memos is not None
    return each, 0 if paid else client.protocol.memo_limit * units_above(each)


def _check_pins(state: BudgetState, randomizer: Randomizer, each: float) -> None:
    if state.digests is not None and randomizer.digest.hex() not in state.digests:
        _exceeded("be of a specification that it pins", "another", "answer only those that it was made for")
    if each == math.inf:
        _exceeded(
            "be of reports that protect by themselves",
            "one of shares, which hide nothing without a shuffler",
            "take ShuffledHistogram, or answer without a budget",
        )
    if units_above(each) > state.report:
        _exceeded(
            f"be of an epsilon of at most {state.report / UNIT:g}", f"{each:g}", "ask for a smaller epsilon"
        )


def _check_caps(state: BudgetState, entry: CollectionSpent, cost: int) -> None:
    caps = [
        ("in its lifetime", state.lifetime - state.spent, "nothing more can be answered at that price"),
        ("today", state.daily - state.today, "answer on a later day"),
    ]
    if state.collection is not None:
        caps.append(("of this collection", state.collection - entry.spent, "let others answer it"))
    for what, left, remedy in caps:
        if cost > left:
            _exceeded(
                f"cost at most the epsilon {left / UNIT:g} that is left {what}", f"{cost / UNIT:g}", remedy
            )


def _exceeded(rule: str, found: str, remedy: str) -> NoReturn:
    raise DeviceBudgetExceeded(f"report must {rule}, got {found}; {remedy}; nothing was spent or drawn")
