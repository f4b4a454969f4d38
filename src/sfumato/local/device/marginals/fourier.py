"""The client half of marginals by their coefficients: the sign of one, drawn by chance, for a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from math import comb, isqrt, prod
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.rows import RowsRandomizer
from sfumato.local.device.frequency.hadamard import parity
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["FourierMarginalsRandomizer", "filled_up"]

_MAX_COEFFICIENTS: Final = 1 << 22
_MAX_SETS: Final = 1 << 16
_MAX_WEIGHT: Final = 1 << 16
_UNIT: Final = 64
_BLOCK: Final = 1 << 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FourierMarginalsRandomizer(RowsRandomizer):
    r"""A coefficient of few attributes, drawn by chance, and its sign for the person's row, or the other one.

    Parameters
    ----------
    epsilon, domains
        See `RowsRandomizer`.
    order : int
        Attributes of the widest marginals that are wanted: a coefficient has from 1 to so many.
    weights : tuple of int, optional
        How likely a coefficient of 1, 2, ... attributes is to be drawn, from 1 to 65,536 each, in proportion
        to the sum over all coefficients. Without them they are chosen to minimise the squared error of all
        marginals of ``order`` attributes.

    Attributes
    ----------
    coefficients : int
        How many there are.
    sets : tuple of tuples of int
        The sets of attributes that have them.
    tickets : array of int
        Of each set: the weight of each of its coefficients.
    truth : Coin
        Falls on heads for the true sign: its odds are at most :math:`e^\epsilon`.

    Notes
    -----
    Attribute i with r categories has the :math:`2^{b_i}` characters of :math:`b_i = \lceil \log_2 r \rceil`
    bits: character a is -1 to the number of bits that a and the category's index share. A coefficient of a
    set A of attributes has one with :math:`a_i > 0` of each, and its sign is their product. They are numbered
    set by set: first by how many attributes, then in the order of the attributes; of a set, with the last
    attribute's character running fastest. The report is twice the number, and 1 more for a minus.

    *Chosen weights.* The squared error of a marginal is the sum of its coefficients' variances over the
    number of its cells. So a coefficient of the set A counts by :math:`u_A = \prod_{i \in A} \frac{r_i -
    1}{R_i (R_i - 1)} \sum_B \prod_{i \in B} \frac{1}{r_i}` over the sets B that fill A up to ``order``
    attributes, of r categories and R characters. The weighted sum of variances is minimal with weights as
    :math:`\sqrt{u_A}`; they are rounded down to whole multiples of 1/64 of the smallest, and at most 65,536.

    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one: which coefficient it is does not
    depend on what is true. Given that, a sign has the probability p or 1 - p, with :math:`p/(1-p) \le
    e^\epsilon` exactly.

    References
    ----------
    Cormode, Kulkarni, Srivastava (2018), "Marginal release under local differential privacy": InpHT, for two
    categories each and with even weights.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = FourierMarginalsRandomizer(epsilon=1.0, domains=[Domain(["no", "yes"])] * 16, order=2)
    >>> device.coefficients, sorted(set(device.tickets.tolist())), device.width
    (136, [64, 247], 6)
    """

    wire_name: ClassVar[str] = "fourier-marginals"
    chosen: ClassVar[tuple[str, ...]] = (*RowsRandomizer.chosen, "order", "weights")

    order: int = 2
    weights: tuple[int, ...] | None = None
    truth: Coin = field(init=False, repr=False, compare=False)
    coefficients: int = field(init=False, repr=False, compare=False)
    sets: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    starts: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    tickets: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        count = len(self.domains)
        order = _checked_order(self.order, count)
        self._set(order=order)
        if sum(comb(count, of) for of in range(1, order + 1)) > _MAX_SETS:
            _check.refuse("order", f"leave at most {_MAX_SETS} sets of attributes", order, "ask for less")
        chosen = [among for of in range(1, order + 1) for among in combinations(range(count), of)]
        characters = self.characters
        sizes = [prod(characters[at] for at in among) for among in chosen]
        if sum(sizes) > _MAX_COEFFICIENTS:
            rule = f"leave at most {_MAX_COEFFICIENTS} coefficients, not {sum(sizes)}"
            _check.refuse("order", rule, order, "ask for less, or for fewer categories")
        self._set(
            sets=tuple(chosen),
            starts=np.cumsum([0, *sizes]),
            coefficients=sum(sizes),
            weights=_checked_weights(self.weights, order),
        )
        self._set(tickets=np.array(self._tickets(), np.int64))
        self._set(truth=truth_coin(self.epsilon))

    @property
    def characters(self) -> list[int]:
        """How many characters each attribute has, beside the constant one."""
        return [(1 << (len(domain) - 1).bit_length()) - 1 for domain in self.domains]

    def _tickets(self) -> list[int]:
        """Return the weight of a coefficient of each set."""
        if self.weights is not None:
            return [self.weights[len(among) - 1] for among in self.sets]
        sizes = [len(domain) for domain in self.domains]
        kinds = [tuple(sorted(sizes[at] for at in among)) for among in self.sets]
        uses = {kind: _use(kind, sizes, self.order) for kind in set(kinds)}
        smallest = min(uses.values())
        roots = {kind: isqrt(int(_UNIT**2 * use / smallest)) for kind, use in uses.items()}
        return [min(_MAX_WEIGHT, roots[kind]) for kind in kinds]

    @property
    def chances(self) -> list[Fraction]:
        """Probability that a coefficient of each set is drawn."""
        total = int(self._urn[-1])
        return [Fraction(ticket, total) for ticket in self.tickets.tolist()]

    @property
    def _urn(self) -> NDArray[np.int64]:
        """Where the tickets of each set begin, and where they end."""
        return np.concatenate([[0], np.cumsum(self.tickets * np.diff(self.starts))])

    @property
    def _bits(self) -> int:
        return (2 * self.coefficients - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {
            "tickets": sha256(self.tickets.astype("<i8").tobytes()).hexdigest(),
            "coefficients": self.coefficients,
            "truth": self.truth.threshold,
        }

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        made = [np.empty((0, self.width), np.uint8)]
        for start in range(0, codes.shape[1], _BLOCK):
            part = codes[:, start : start + _BLOCK]
            drawn = self._drawn(part.shape[1], source)
            minus = self.negative(drawn, part) ^ ~self.truth.flip(len(drawn), source)
            made.append(self.layout.pack((2 * drawn + minus).astype(np.uint64)))
        return np.concatenate(made)

    def _drawn(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return numbers of coefficients, drawn by their weights."""
        urn = self._urn
        drawn = uniform_integers(int(urn[-1]), count, source)
        among = np.searchsorted(urn, drawn, side="right") - 1
        return np.asarray(self.starts[among] + (drawn - urn[among]) // self.tickets[among])

    def negative(self, numbers: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return where coefficients are negative.

        Parameters
        ----------
        numbers : int64 array, shape (n,)
            Of the coefficients.
        codes : int64 array, shape (domains, n)
            Indices of rows in their domains.

        Returns
        -------
        bool array, shape (n,)
        """
        if len(numbers) > self.coefficients:
            members, characters = (part[:, numbers] for part in self._opened(np.arange(self.coefficients)))
        else:
            members, characters = self._opened(numbers)
        columns, found = np.arange(codes.shape[1]), np.zeros(len(numbers), np.int64)
        for member, character in zip(members, characters, strict=True):
            found ^= character & codes[member, columns]
        return parity(found)

    def _opened(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the attributes of coefficients and their characters, as many rows as a set may have members.

        A set with fewer is filled up with the first attribute and its constant character.
        """
        among = np.searchsorted(self.starts, numbers, side="right") - 1
        rest = numbers - self.starts[among]
        none = len(self.domains)
        members = np.array([(*one, *(none,) * (self.order - len(one))) for one in self.sets])[among].T
        radix, characters = np.array([*self.characters, 1]), np.empty_like(members)
        for at in reversed(range(self.order)):
            rest, own = np.divmod(rest, radix[members[at]])
            characters[at] = np.where(members[at] == none, 0, own + 1)
        return np.where(members == none, 0, members), characters

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a coefficient.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) < np.uint64(2 * self.coefficients)

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a row true: private, and for few coefficients.

        Parameters
        ----------
        value
            A row: one category of each domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        numbers, sizes = np.arange(self.coefficients), np.diff(self.starts).tolist()
        pairs = zip(self.chances, sizes, strict=True)
        drawn = [chance for chance, size in pairs for _ in range(size)]
        signs = self.negative(numbers, np.repeat(self._codes([value]), len(numbers), axis=1))
        distribution = {}
        for sent in (False, True):
            records = self.layout.pack((2 * numbers + sent).astype(np.uint64))
            for row, chance, sign in zip(records, drawn, signs.tolist(), strict=True):
                distribution[row.tobytes()] = chance * (
                    self.truth.chance if sign == sent else 1 - self.truth.chance
                )
        return distribution


def _checked_order(given: object, count: int) -> int:
    order = _check.integer("order", given, minimum=1)
    if order > count:
        _check.refuse("order", f"be at most {count}, the attributes", order, "ask for less")
    return order


def _checked_weights(given: object, order: int) -> tuple[int, ...] | None:
    if given is None:
        return None
    weights = tuple(given) if isinstance(given, tuple | list) else ()
    known = all(isinstance(one, int) and not isinstance(one, bool) for one in weights)
    if len(weights) != order or not known or not all(1 <= one <= _MAX_WEIGHT for one in weights):
        raise ParameterError(
            f"weights must be {order} whole numbers from 1 to {_MAX_WEIGHT}, got others; "
            "leave them out to have them chosen"
        )
    return weights


def _use(kind: tuple[int, ...], sizes: list[int], order: int) -> Fraction:
    """Return how much a coefficient of attributes with so many categories counts."""
    own = Fraction(1)
    for size in kind:
        characters = 1 << (size - 1).bit_length()
        own *= Fraction(size - 1, characters * (characters - 1))
    return own * filled_up(kind, sizes, order)


def filled_up(kind: tuple[int, ...], sizes: list[int], order: int) -> Fraction:
    """Return the sum of one over the cells of all tables that fill up some attributes.

    Parameters
    ----------
    kind : tuple of int
        Categories of some attributes, whose own cells are left out.
    sizes : list of int
        Categories of all attributes.
    order : int
        Attributes of the tables.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> filled_up((2,), [2, 3, 2], 2)
    Fraction(5, 6)
    """
    rest = Counter(sizes) - Counter(kind)
    sums = [Fraction(1)] + [Fraction(0)] * (order - len(kind))
    for size, times in rest.items():
        powers = [Fraction(comb(times, of), size**of) for of in range(len(sums))]
        sums = [
            sum((sums[at - of] * powers[of] for of in range(at + 1)), Fraction(0)) for at in range(len(sums))
        ]
    return sums[-1]
