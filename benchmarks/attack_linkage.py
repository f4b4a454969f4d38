"""Linkage at size: equality and Fellegi-Sunter on a million records each, Scoreboard-RH on a rating matrix.

The persons are synthetic: given names (400) and surnames (20,000) by Zipf's law, birth dates of 80 years,
1,000 postal codes, sex. The other file has a typing error in each name with a probability of 5 %, another
postal code with 10 %, no birth date with 2 %. The ratings are synthetic too: items by rank ** -0.7, users by
a lognormal of deviation 1, stars around the item's mean, 2,000 days. Of a target's 8 known ratings 2 are a
star off, and days are 14 off at most. A million ratings of 48,000 users and 1,777 items: Netflix's density.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import (
    ComparisonLevels,
    EqualityLinkage,
    Findings,
    KnownRatings,
    ProbabilisticLinkage,
    RatingMatrix,
    ScoreboardLinkage,
)

__all__ = ["known_ratings", "mistyped", "people", "rating_matrix", "rows"]

ECCENTRICITY = 10.0
"""Absent users of sparser matrices reach more than the paper's 1.5; see the scores of controls."""
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def _words(rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    words = {"".join(rng.choice(_LETTERS, rng.integers(4, 10))) for _ in range(count + count // 5)}
    return np.array(sorted(words)[:count], dtype=object)


def _zipf(rng: np.random.Generator, count: int, exponent: float, size: int) -> np.ndarray[Any, Any]:
    weights = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.asarray(np.searchsorted(weights, rng.random(size) * weights[-1]))


def people(size: int, rng: np.random.Generator) -> pa.Table:
    """Return synthetic persons."""
    first, last = _words(rng, 400), _words(rng, 20_000)
    rng.shuffle(first)
    rng.shuffle(last)
    return pa.table(
        {
            "first": pa.array(first[_zipf(rng, 400, 0.8, size)]),
            "last": pa.array(last[_zipf(rng, 20_000, 0.8, size)]),
            "born": pa.array(rng.integers(0, 29_220, size).astype(np.int32)),
            "postal": pa.array(_zipf(rng, 1000, 0.5, size).astype(np.int32)),
            "sex": pa.array(rng.integers(0, 2, size).astype(np.int8)),
        }
    )


def mistyped(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return the persons as another office has them."""
    size = table.num_rows
    for name in ("first", "last"):
        words = table.column(name).to_numpy(zero_copy_only=False).astype(object)
        for place in np.flatnonzero(rng.random(size) < 0.05):
            word, at = words[place], int(rng.integers(len(words[place])))
            words[place] = word[:at] + str(rng.choice(_LETTERS)) + word[at + 1 :]
        table = table.set_column(table.column_names.index(name), name, pa.array(words))
    postal = table.column("postal").to_numpy().copy()
    moved = rng.random(size) < 0.1
    postal[moved] = _zipf(rng, 1000, 0.5, int(moved.sum()))
    table = table.set_column(3, "postal", pa.array(postal))
    born = pa.array(table.column("born").to_numpy(), mask=rng.random(size) < 0.02)
    return table.set_column(2, "born", born)


def rating_matrix(users: int, items: int, ratings: int, rng: np.random.Generator) -> RatingMatrix:
    """Return synthetic ratings; a user's second rating of an item is dropped."""
    weights = np.cumsum(rng.lognormal(0, 1, users))
    chosen = np.searchsorted(weights, rng.random(ratings) * weights[-1]).astype(np.int32)
    item = _zipf(rng, items, 0.7, ratings).astype(np.int32)
    keys = np.unique(item.astype(np.int64) * users + chosen)
    item, chosen = (keys // users).astype(np.int32), (keys % users).astype(np.int32)
    means = rng.uniform(2.5, 4.3, items)
    values = np.clip(np.rint(rng.normal(means[item], 1.0)), 1, 5).astype(np.int8)
    days = rng.integers(0, 2000, len(keys)).astype(np.int16)
    starts = np.searchsorted(item, np.arange(items + 1)).astype(np.int64)
    return RatingMatrix(users=chosen, values=values, days=days, starts=starts, count=users)


def known_ratings(
    matrix: RatingMatrix, targets: int, rng: np.random.Generator
) -> tuple[list[KnownRatings], np.ndarray[Any, Any]]:
    """Return 8 known ratings of some users who have that many, and the users."""
    items = np.repeat(np.arange(len(matrix.starts) - 1), np.diff(matrix.starts))
    order = np.argsort(matrix.users, kind="stable")
    ends = np.searchsorted(matrix.users[order], np.arange(matrix.count + 1))
    eligible = np.flatnonzero(np.diff(ends) >= 8)
    chosen = rng.choice(eligible, targets, replace=False)
    found = []
    for user in chosen.tolist():
        places = rng.choice(order[ends[user] : ends[user + 1]], 8, replace=False)
        values = matrix.values[places].astype(np.float64)
        wrong = rng.choice(8, 2, replace=False)
        values[wrong] = np.clip(values[wrong] + rng.choice([-1, 1], 2), 1, 5)
        days = matrix.days[places] + rng.integers(-14, 15, 8)
        found.append(KnownRatings(items[places], values, days.astype(np.float64)))
    return found, chosen


def without(matrix: RatingMatrix, users: np.ndarray[Any, Any]) -> RatingMatrix:
    """Return the ratings without those of some users, who are still numbered."""
    held = ~np.isin(matrix.users, users)
    before = np.concatenate([[0], np.cumsum(held)])
    return RatingMatrix(
        users=matrix.users[held],
        values=matrix.values[held],
        days=matrix.days[held],
        starts=before[matrix.starts],
        count=matrix.count,
    )


def _shares(found: Findings) -> tuple[str, str]:
    hits, claims = found.targets.hits or 0, found.targets.claims
    return f"{hits / max(claims, 1):.4f}", f"{hits / found.targets.people:.4f}"


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield time, precision and recall of each attack, beside its limit."""
    size = int(os.environ.get("SFUMATO_LINKAGE_ROWS", "1000000"))
    rng = np.random.default_rng(1)
    truth = rng.permutation(size)
    released = people(size, rng)
    auxiliary = released.take(pa.array(truth))
    yield ["attack", "records", "pairs", "precision", "recall", "CPU s", "limit s"]
    attack = EqualityLinkage(auxiliary=auxiliary, on=("born", "postal", "sex"))
    began = time.process_time()
    found = attack.run(released, truth=truth)
    spent = time.process_time() - began
    yield ["equality join", f"{size:,}", "", *_shares(found), f"{spent:.1f}", "5"]
    levels = {
        "first": ComparisonLevels("jaro_winkler", (0.92, 0.8)),
        "last": ComparisonLevels("jaro_winkler", (0.92, 0.8)),
        "born": ComparisonLevels("within", (1, 31)),
        "postal": ComparisonLevels("exact"),
        "sex": ComparisonLevels("exact"),
    }
    blocking = [["born", "sex"], ["last", "postal"]]
    likely = ProbabilisticLinkage(auxiliary=mistyped(auxiliary, rng), comparisons=levels, blocking=blocking)
    began = time.process_time()
    found = likely.run(released, truth=truth)
    spent = time.process_time() - began
    pairs = f"{found.numbers['pairs scored']:,.0f}"
    yield ["Fellegi-Sunter", f"{size:,}", pairs, *_shares(found), f"{spent:.1f}", "60"]
    for users, items, ratings in ((48_000, 1_777, 1_000_000), (480_000, 17_770, 5_000_000)):
        yield _scoreboard(users, items, ratings)


def _scoreboard(users: int, items: int, ratings: int) -> list[str]:
    """Return how many of 100 users are found, and how many of 100 absent ones are linked to nobody."""
    rng = np.random.default_rng(2)
    matrix = rating_matrix(users, items, ratings, rng)
    known, chosen = known_ratings(matrix, 200, rng)
    began = time.process_time()
    found = ScoreboardLinkage(targets=known[:100], eccentricity=ECCENTRICITY).run(
        without(matrix, chosen[100:]), truth=chosen[:100], controls=known[100:]
    )
    spent = time.process_time() - began
    absent = 1 - found.numbers["controls who are linked"]
    name = f"Scoreboard-RH, {users:,} x {items:,}"
    return [name, f"{len(matrix.users):,}", "", f"{absent:.3f} absent", _shares(found)[1], f"{spent:.1f}", ""]
