"""Sensitivity: exact integer bounds on how far one unit moves an answer, in several norms at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Norm", "Shift", "Stability", "check_public_size"]


class Norm(Enum):
    """In what norm a sensitivity is stated; L0 is the number of entries that move.

    Examples
    --------
    >>> [norm.name for norm in Norm]
    ['L0', 'L1', 'L2', 'LINF']
    """

    L0 = "l0"
    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The most that an answer, a vector of whole steps, differs between neighbors.

    Parameters
    ----------
    l0 : int
        Number of entries that differ.
    l1, l2_squared, linf : int
        Norms of the difference, in steps; all are whole numbers, the L2 norm squared.

    Examples
    --------
    >>> Shift.entries(2, 1).norm(Norm.L1)
    Fraction(2, 1)
    >>> Shift.entries(2, 1).within(Shift.entries(2, 3))
    True
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    @classmethod
    def entries(cls, l0: int, linf: int) -> Shift:
        """Make the shift of ``l0`` entries by ``linf`` steps each.

        Parameters
        ----------
        l0 : int
            How many entries move.
        linf : int
            By how many steps each.

        Returns
        -------
        Shift
        """
        return cls(l0=l0, l1=l0 * linf, l2_squared=l0 * linf**2, linf=linf)

    def times(self, count: int, entries: int | None = None) -> Shift:
        """Return the bound for a chain of ``count`` neighbors (the triangle inequality).

        Parameters
        ----------
        count : int
            How many neighbors follow one another.
        entries : int
            Of the answer: no more can move.

        Returns
        -------
        Shift
        """
        l0 = self.l0 * count
        return Shift(
            l0=l0 if entries is None else min(l0, entries),
            l1=self.l1 * count,
            l2_squared=self.l2_squared * count**2,
            linf=self.linf * count,
        )

    def tightest(self, other: Shift) -> Shift:
        """Return the smaller bound in every norm; both must hold.

        Parameters
        ----------
        other : Shift
            Another bound on the same answer.

        Returns
        -------
        Shift
        """
        return Shift(
            l0=min(self.l0, other.l0),
            l1=min(self.l1, other.l1),
            l2_squared=min(self.l2_squared, other.l2_squared),
            linf=min(self.linf, other.linf),
        )

    def within(self, other: Shift) -> bool:
        """Return whether no norm exceeds the other's.

        Parameters
        ----------
        other : Shift
            What is compared with.

        Returns
        -------
        bool
        """
        return self.tightest(other) == self

    def norm(self, norm: Norm) -> Fraction:
        """Return the bound in that norm, exact but for the square root, which is rounded up.

        Parameters
        ----------
        norm : Norm
            Which norm.

        Returns
        -------
        Fraction
            In steps.
        """
        if norm is Norm.L2:
            return sqrt_up(Fraction(self.l2_squared))
        return Fraction({Norm.L0: self.l0, Norm.L1: self.l1, Norm.LINF: self.linf}[norm])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How many records a transformation of the data lets one unit move.

    Parameters
    ----------
    add_remove : int or None
        Adding or removing one unit adds or removes at most this many records of the result, in total.
    replace_one : int or None
        Replacing one unit's data replaces at most this many records, and their number stays.
    zero_out : int or None
        Zeroing one unit's data zeroes at most this many records, and their number stays.

    Notes
    -----
    Guarantee: a query with sensitivity S after a k-stable transformation has sensitivity k S, in every norm,
    by the triangle inequality over a chain of k neighbors (F. McSherry, "Privacy integrated queries", SIGMOD
    2009). Relation by relation: add/remove takes ``add_remove`` times S under add/remove; replace-one takes
    the smaller of ``replace_one`` times S under replace-one and 2 ``add_remove`` times S under add/remove (a
    replacement is one removal and one addition); zero-out takes ``zero_out`` times S under zero-out. What is
    not stated is refused.

    Examples
    --------
    >>> Stability.rows(3) * Stability(add_remove=2)
    Stability(add_remove=6, replace_one=None, zero_out=None)
    """

    add_remove: int | None = None
    replace_one: int | None = None
    zero_out: int | None = None

    def __post_init__(self) -> None:
        for name in ("add_remove", "replace_one", "zero_out"):
            count = getattr(self, name)
            if count is not None:
                object.__setattr__(self, name, _stable(name, count))

    @classmethod
    def rows(cls, count: int) -> Stability:
        """Return the stability where one unit owns at most ``count`` records, under each relation.

        Parameters
        ----------
        count : int
            Records that one unit owns at most.

        Returns
        -------
        Stability
        """
        return cls(add_remove=count, replace_one=count, zero_out=count)

    def __mul__(self, other: Stability) -> Stability:
        """Return the stability of one transformation after another."""

        def times(first: int | None, second: int | None) -> int | None:
            return None if first is None or second is None else first * second

        return Stability(
            add_remove=times(self.add_remove, other.add_remove),
            replace_one=times(self.replace_one, other.replace_one),
            zero_out=times(self.zero_out, other.zero_out),
        )

    def factors(self, neighboring: Neighboring) -> list[tuple[int, Neighboring]]:
        """Return every proven pair (chain length, relation of its links) for neighbors under a relation.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        list of (int, Neighboring)

        Raises
        ------
        UnboundedSensitivity
            If nothing is stated for that relation.
        """
        stated = {
            Neighboring.ADD_REMOVE: self.add_remove,
            Neighboring.REPLACE_ONE: self.replace_one,
            Neighboring.ZERO_OUT: self.zero_out,
        }[neighboring]
        proven = [] if stated is None else [(stated, neighboring)]
        if neighboring is Neighboring.REPLACE_ONE and self.add_remove is not None:
            proven.append((2 * self.add_remove, Neighboring.ADD_REMOVE))
        if not proven:
            raise UnboundedSensitivity(
                f"stability must be stated under {neighboring.name}, got {self!r}; "
                f"pass {neighboring.name.lower()}= once it is proved"
            )
        return proven


def check_public_size(neighboring: Neighboring, remedy: str = "") -> None:
    """Refuse add/remove where the number of records is public, as then no neighbor has a record more.

    Raises
    ------
    UnboundedSensitivity
        The answer alone may have a bound there; together with the published number it has none.
    """
    if neighboring is Neighboring.ADD_REMOVE:
        raise UnboundedSensitivity(
            "neighboring must be replace-one or zero-out where n is public, got add/remove; pass "
            "Neighboring.REPLACE_ONE" + (f", or {remedy}" if remedy else "")
        )


def _stable(name: str, count: object) -> int:
    if count == float("inf"):
        raise UnboundedSensitivity(
            f"{name} must be a finite number of records, got {count!r}; bound what one unit contributes"
        )
    return _check.integer(name, count, minimum=1)
