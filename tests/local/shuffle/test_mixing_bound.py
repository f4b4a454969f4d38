"""Split and mix: all multisets of the shares of a few clients, all graphs, the bound for many clients."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.local.shuffle.mixing_bound import _beyond, _recursion, fewest_shares, log_excess, revealing_mass
from sfumato.local.shuffle.split_and_mix import mixed_loss
from sfumato.numerics.randomness.source import SimulatedSource
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate

Counts = tuple[int, ...]
SMALL = [(2, 3, 4), (2, 5, 2), (3, 3, 2), (2, 4, 4), (3, 3, 4), (4, 3, 2), (2, 3, 8)]


def compositions(total: int, places: int) -> Iterator[Counts]:
    """All ways to write a number as a sum of so many, in order."""
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, places - 1))


def orders(counts: Counts) -> int:
    """In how many orders a multiset can be written."""
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


@cache
def client_law(number: int, shares: int, modulus: int) -> dict[Counts, Fraction]:
    """The law of one client's shares, as how often each residue is among them."""
    return {
        counts: Fraction(orders(counts), modulus ** (shares - 1))
        for counts in compositions(shares, modulus)
        if (sum(value * count for value, count in enumerate(counts)) - number) % modulus == 0
    }


@cache
def mixed_law(numbers: tuple[int, ...], shares: int, modulus: int) -> dict[Counts, Fraction]:
    """The law of the mixed shares of clients with such numbers."""
    if not numbers:
        return {(0,) * modulus: Fraction(1)}
    found: Counter[Counts] = Counter()
    before = mixed_law(numbers[:-1], shares, modulus)
    for (old, mass), (new, chance) in itertools.product(
        before.items(), client_law(numbers[-1], shares, modulus).items()
    ):
        found[tuple(a + b for a, b in zip(old, new, strict=True))] += mass * chance  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


def even_law(total: int, size: int, modulus: int) -> dict[Counts, Fraction]:
    return client_law(total % modulus, size, modulus)


def distances(numbers: tuple[int, ...], shares: int, modulus: int) -> tuple[Fraction, Fraction]:
    """The chi-squared divergence of the mixed shares from even ones, and their total variation distance."""
    law = mixed_law(numbers, shares, modulus)
    even = even_law(sum(numbers), shares * len(numbers), modulus)
    assert law.keys() <= even.keys()
    assert sum(law.values()) == sum(even.values()) == 1
    squares = sum((law.get(key, Fraction(0)) - mass) ** 2 / mass for key, mass in even.items())
    total = sum(abs(law.get(key, Fraction(0)) - mass) for key, mass in even.items())
    return Fraction(squares), Fraction(total) / 2


def parts_of(clients: int, shares: int) -> Counter[int]:
    """How many matchings have so many connected parts, from all of them."""
    found: Counter[int] = Counter()
    for matched in itertools.permutations(range(clients * shares)):
        root = list(range(2 * clients))
        for left, right in enumerate(matched):
            a, b = root[left // shares], root[clients + right // shares]
            root = [a if each == b else each for each in root]
        found[len(set(root))] += 1
    return found


def mean_power(clients: int, shares: int, modulus: int) -> Fraction:
    """The mean of q^(C-1) by the recursion of the notes, with the chances of being connected."""

    def ratio(n: int, k: int) -> Fraction:
        return Fraction(k, n) * Fraction(math.comb(n, k) ** 2, math.comb(n * shares, k * shares))

    connected, mean = [Fraction(1)] * (clients + 1), [Fraction(1)] * (clients + 1)
    for n in range(1, clients + 1):
        connected[n] = 1 - sum((ratio(n, k) * connected[k] for k in range(1, n)), Fraction(0))
        apart = (ratio(n, k) * connected[k] * mean[n - k] for k in range(1, n))
        mean[n] = connected[n] + modulus * sum(apart, Fraction(0))
    return mean[clients]


@pytest.mark.parametrize(("clients", "shares"), [(2, 2), (2, 3), (3, 2)])
def test_all_graphs_have_as_many_parts_as_the_recursion_says(clients: int, shares: int) -> None:
    found = parts_of(clients, shares)
    for modulus in (2, 3, 16):
        mean = Fraction(sum(modulus ** (c - 1) * n for c, n in found.items()), found.total())
        assert mean == mean_power(clients, shares, modulus)


@cases(("clients", "shares", "modulus"), SMALL)
def test_mixed_shares_of_few_clients_are_as_even_as_proved(clients: int, shares: int, modulus: int) -> None:
    exact = mean_power(clients, shares, modulus) - 1
    bound = math.exp(log_excess(clients, shares, modulus.bit_length() - 1))
    # The bound takes all graphs for connected where the recursion asks whether they are, and q for q - 1.
    assert exact <= bound <= 1.6 * exact * modulus / (modulus - 1)
    for numbers in itertools.combinations_with_replacement(range(modulus), clients):
        squares, total = distances(numbers, shares, modulus)
        assert squares <= exact
        assert 4 * total**2 <= squares
        if len(set(numbers)) == 1:
            assert squares == exact


@pytest.mark.parametrize(("clients", "shares", "bits"), [(3, 3, 20), (8, 3, 12), (12, 4, 16), (30, 4, 40)])
def test_graphs_of_many_parts_are_counted(clients: int, shares: int, bits: int) -> None:
    exact = mean_power(clients, shares, 1 << bits) - 1
    bound = log_excess(clients, shares, bits)
    assert exact > 1
    assert math.log(exact) <= bound <= math.log(exact) + 0.05


@pytest.mark.parametrize(("clients", "shares", "bits"), [(1500, 5, 20), (3000, 4, 12), (1100, 6, 30)])
def test_the_bound_for_many_clients_lies_just_above_the_recursion(
    clients: int, shares: int, bits: int
) -> None:
    whole = _recursion(1026, shares, bits)[1]
    direct = float(_recursion(clients, shares, bits)[0][clients])
    assert direct - 1e-3 <= _beyond(clients, shares, bits, whole) <= direct + 0.02
    assert log_excess(clients, shares, bits) == _beyond(clients, shares, bits, whole)


def test_more_clients_and_more_shares_tell_less() -> None:
    across = [log_excess(clients, 6, 24) for clients in (200, 1000, 1026, 1027, 5000, 10**6, 10**9)]
    assert across == sorted(across, reverse=True)
    more = [log_excess(10_000, shares, 24) for shares in range(5, 12)]
    assert more == sorted(more, reverse=True)
    # The leading term of the notes: two parts, of which one has a single vertex on each side.
    n, m, bits = 10**6, 6, 34
    leading = bits * math.log(2) + 2 * math.log(n) - math.log(math.comb(n * m, m))
    assert leading <= log_excess(n, m, bits) <= leading + 0.02
    # Balle, Bell, Gascón, Nissim (2019), "Improved summation from shuffling": twelve messages of 32 bits from
    # 10^4 clients keep numbers with one sum within 2^-40 of each other. Here it takes ten.
    assert log_excess(10**4, 10, 32) / 2 <= -40 * math.log(2) < log_excess(10**4, 9, 32) / 2
    # Nothing is proved where graphs of some hundred clients fall apart.
    assert log_excess(10**6, 3, 40) == math.inf
    assert revealing_mass(10**6, 3, 40, 1.0) == 1.0
    assert log_excess(1, 3, 10) == -math.inf
    assert revealing_mass(1, 3, 10, 1.0) == 0.0
    assert log_excess(5000, 2, 10) == math.inf


@pytest.mark.parametrize(
    ("clients", "bits", "epsilon", "delta"), [(1000, 20, 1.0, 1e-6), (50, 12, 4.0, 1e-9)]
)
def test_no_share_too_many(clients: int, bits: int, epsilon: float, delta: float) -> None:
    shares = fewest_shares(clients, bits, epsilon, delta)
    assert revealing_mass(clients, shares, bits, epsilon) <= delta
    assert revealing_mass(clients, shares - 1, bits, epsilon) > delta
    expected = math.exp(log_excess(clients, shares, bits) / 2) / 2 * (1 + math.exp(epsilon)) ** 2 / 2
    assert revealing_mass(clients, shares, bits, epsilon) == pytest.approx(expected, rel=1e-6)
    assert fewest_shares(1, 20, 1.0, 1e-9) == 3
    with pytest.raises(ParameterError, match="clients must be enough for at most 256 shares"):
        fewest_shares(2, 50, 1.0, 1e-200)


def part_of_noise(split: Split, scale: Fraction) -> list[float]:
    """The law of one client's part of the noise, modulo a small number."""
    r, q, modulus = 1 / split.clients, math.exp(-1 / scale), 1 << split.bits
    masses, found = [(1 - q) ** r], [0.0] * modulus
    while masses[-1] > 1e-18:
        k = len(masses) - 1
        masses.append(masses[-1] * q * (r + k) / (k + 1))
    for (up, a), (down, b) in itertools.product(enumerate(masses), repeat=2):
        found[(up - down) % modulus] += a * b
    return found


@pytest.mark.parametrize(
    ("split", "epsilon", "steps"),
    [
        (Split(2, 8, 2), 1.0, 1),
        (Split(2, 9, 2), 2.0, 2),
        (Split(3, 5, 2), 1.0, 1),
        (Split(3, 8, 1), 2.0, 1),
    ],
)
def test_all_that_is_seen_of_few_clients_keeps_the_loss(split: Split, epsilon: float, steps: int) -> None:
    scale, modulus = steps / Fraction(epsilon), 1 << split.bits
    loss = mixed_loss(split, scale, steps)
    part = part_of_noise(split, scale)
    laws: dict[Counts, dict[Counts, float]] = {}
    for numbers in itertools.combinations_with_replacement(range(modulus), split.clients):
        exact = mixed_law(numbers, split.shares, modulus)
        laws[numbers] = {key: float(mass) for key, mass in exact.items()}

    def seen(places: Counts) -> Counter[Counts]:
        whole: Counter[Counts] = Counter()
        for noises in itertools.product(range(modulus), repeat=split.clients):
            chance = math.prod(part[noise] for noise in noises)
            numbers = sorted((a + b) % modulus for a, b in zip(places, noises, strict=True))
            for key, mass in laws[tuple(numbers)].items():
                whole[key] += chance * mass  # type: ignore[assignment]
        return whole

    nearest = 0.0
    for others in itertools.combinations_with_replacement((0, steps), split.clients - 1):
        one, other = (seen((*others, place)) for place in (0, steps))
        assert sum(one.values()) == pytest.approx(1.0)
        for first, second in ((one, other), (other, one)):
            for at in (0.0, 0.3, 0.6, 0.9, 1.0, 1.2, 2.0):
                factor = math.exp(at * epsilon)
                true = sum(max(0.0, mass - factor * second[key]) for key, mass in first.items())
                bound = loss.delta(at * epsilon)
                assert true <= bound * (1 + 1e-9) + 1e-13
                nearest = max(nearest, true / bound)
    assert nearest > 0.3


def test_shares_add_up_and_are_even_but_for_that() -> None:
    split, n = Split(3, 3, 2), 100_000
    numbers = np.full(n, 1)
    shares = split.shared(numbers, Fraction(1, 3), SimulatedSource(3))
    assert shares.shape == (n, 3)
    assert shares.max() == 3
    part = part_of_noise(split, Fraction(1, 3))
    sums = shares.sum(axis=1) % 4
    for noise, chance in enumerate(part):
        hits, other = int((sums == (1 + noise) % 4).sum()), part[(noise + 1) % 4]
        accepts_only(rate(hits, n), chance, of_the_next=other, of_no_noise=float(noise == 0))
    for two in itertools.combinations(range(3), 2):
        cells = Counter((shares[:, two[0]] * 4 + shares[:, two[1]]).tolist())
        even, odd = dict.fromkeys(range(16), 1 / 16), {cell: (15 + cell % 2 * 2) / 256 for cell in range(16)}
        accepts_only(frequencies(cells), even, odd_ones_an_eighth_more=odd)
    wide = Split(1000, 5, 40).shared(np.arange(50) << 30, Fraction(1, 40), SimulatedSource(1))
    assert (wide.sum(axis=1) % (1 << 40) == np.arange(50) << 30).all()


@cases("told", [(0, 3, 4), (5, 1, 4), (5, 257, 4), (5, 3, 0), (5, 3, 53), (2**41, 3, 9)])
def test_what_cannot_be_is_refused(told: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError):
        Split(*told)
    with pytest.raises(ParameterError):
        Split.from_specification(dict(zip(("clients", "shares", "bits"), told, strict=True)))


def test_nothing_is_proven_where_either_condition_of_the_induction_fails() -> None:
    for shares, bits in ((3, 11), (4, 21), (4, 22), (5, 32)):
        whole = _recursion(1026, shares, bits)[1]
        assert whole[513:].max() > math.log(2)  # and the first bound of the induction holds all the same
        assert _beyond(1026, shares, bits, whole) <= 0
        assert log_excess(2000, shares, bits) == math.inf
