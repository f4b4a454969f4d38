"""The privacy loss: an immutable tree of what was run, from which every bound is computed.

A *leaf* states the views it can prove in closed form and nothing else. Repetition and composition are two
nodes, written once against those views. The normal form makes equal things equal: a composition is flat,
sorted, without duplicates, and repetition is a number beside a part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER
from sfumato.errors import NeighboringMismatch
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.neighboring import Neighboring, Relation, common_relation, refuse_further
from sfumato.privacy.serialization import LOSS, LOSSES, parameter_names, serialized_as, to_text
from sfumato.privacy.viewed_loss import ViewedLoss
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["Composed", "PrivacyLoss", "Repeated", "Term", "compose"]


class PrivacyLoss(ViewedLoss):
    """What was run on the data, as far as privacy is concerned; never anything about the data itself.

    Losses are frozen, compare by what was run, and compose with ``+`` and ``*``. Every number is an upper
    bound, rounded outward, and holds for the relation ``neighboring``.

    Notes
    -----
    Guarantee: under `epsilon` and `delta` the parts may be chosen adaptively from earlier answers, but each
    part's parameters are fixed beforehand. Under the three additive views (`pure`, `zcdp`, `gdp`) the
    parameters may depend on earlier answers as well, provided that the sum stays below a limit fixed
    beforehand (a filter).

    A subclass that is neither repetition nor composition overrides the views that it can prove; any
    other view raises `UnsupportedView`, which names the loss.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Laplace
    >>> loss = Gaussian(2.0) * 10 + Laplace(5.0)
    >>> loss
    Gaussian(noise_multiplier=2.0) * 10 + Laplace(noise_multiplier=5.0)
    >>> loss.epsilon(1e-6) < Gaussian(2.0).epsilon(1e-6) * 10 + 0.2
    True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def neighboring(self) -> Relation | None:
        """The relation that the loss is about; None only for the empty composition, which holds under all."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The parts that are neither repetitions nor compositions, each with its count."""
        return ((self, 1),)

    def parameters(self) -> dict[str, object]:
        """Return what the constructor takes, by keyword.

        Returns
        -------
        dict of str to object
            By name, as the constructor takes them.

        Examples
        --------
        >>> from sfumato.privacy import ApproximateDP
        >>> ApproximateDP(1.0, 1e-6).parameters()["delta"]
        1e-06
        """
        return {name: getattr(self, field) for name, field in parameter_names(type(self)).items()}

    def to_json(self) -> str:
        """Return the loss as JSON text that every later version reads to the same or a smaller number.

        Returns
        -------
        str
            A document of format ``sfumato.loss``; `loss_from_json` reads it.

        Examples
        --------
        >>> from sfumato.privacy import PureDP
        >>> PureDP(0.5).to_json()
        '{"format":"sfumato.loss","loss":{"epsilon":0.5,"kind":"pure-dp","neighboring":"add-remove"},"version":1}'
        """
        return to_text(self)

    def __mul__(self, count: int) -> PrivacyLoss:
        count = _check.integer("count", count, remedy="a mechanism runs a natural number of times")
        return _compose((term, times * count) for term, times in self.terms)

    __rmul__ = __mul__

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return _compose((*self.terms, *other.terms))

    def group(self, size: int) -> PrivacyLoss:
        """Return a bound on the loss of any ``size`` units together, for those who must protect groups.

        Parameters
        ----------
        size : int
            At least 1. The result is about that many units, of which under add/remove and zero-out one
            dataset has all and the other none; what it is composed with should be about as many.

        Returns
        -------
        PrivacyLoss
            Under the same relation, of that many units.

        Raises
        ------
        ParameterError
            If ``size`` is not an integer of at least 1.
        UnsupportedView
            If no theorem bounds a part for groups.
        NeighboringMismatch
            If the loss is about another relation than the three members of `Neighboring`.

        Notes
        -----
        Guarantee: each part is bounded by itself, then composed, so that each must be a mechanism of its own.
        Where repetition stands for the entries of one vector that a unit may move, a group may move more of
        them: state that loss anew. Gaussian, Laplace, discrete, pure and zCDP
        parts stay what they are, with more loss (exact for the first four, for each may have a query that
        all units move in one direction); all others by the chain of their trade-off functions, see
        `GroupPrivacy`.

        Where some units enter while as many leave, a loss may be greater that is not the same in both orders
        (a sampled one, or two unlike distributions): that is ``under(Neighboring.REPLACE_ONE)``, of any
        group.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian
        >>> (Gaussian(6.0) * 4).group(3)
        Gaussian(noise_multiplier=2.0) * 4
        """
        size = _check.integer("size", size, minimum=1, remedy="pass how many units act together")
        own = self.neighboring
        if size == 1 or own is None:
            return self
        refuse_further("a group of units", own)
        return self._chained(size, cast("Neighboring", own))

    def under(self, relation: Neighboring) -> PrivacyLoss:
        """Return a bound on the loss under another relation, where a theorem gives one.

        Add/remove and zero-out become replace-one: the unit's record is taken out, then another is put in,
        two steps from neighbor to neighbor (see `group`). Stating the loss with the query's own sensitivity
        under the other relation is often better.

        Parameters
        ----------
        relation : Neighboring
            The relation that the result is about.

        Returns
        -------
        PrivacyLoss
            The loss itself if it is about that relation already.

        Raises
        ------
        NeighboringMismatch
            If no theorem leads from one relation to the other.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian, Neighboring
        >>> Gaussian(2.0).under(Neighboring.REPLACE_ONE).noise_multiplier
        1.0
        """
        _check.instance("relation", relation, Neighboring, "pass Neighboring.REPLACE_ONE")
        own = self.neighboring
        if own is None or own is relation:
            return self
        refuse_further("a loss that is restated under another relation", own)
        if relation is not Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                f"relation must follow from that of the loss, got {own} and {relation}; no theorem leads "
                "from one to the other: state the loss under the relation that is meant"
            )
        return self._chained(2, relation)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        """Bound ``steps`` steps under the own relation, which make one under ``relation``."""
        del steps
        self._missing(f"group or {relation}")


Term: TypeAlias = tuple[PrivacyLoss, int]


class _Sum(PrivacyLoss):
    """Common base of repetition and composition: every view is that of their terms, added."""

    __slots__ = ()

    @property
    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """The parts with their counts."""

    @property
    def neighboring(self) -> Relation | None:
        """The relation that all parts are about."""
        return next((term.neighboring for term, _ in self.terms), None)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add the divergences of the parts (Mironov 2017, Proposition 1)."""
        return closed_forms.rdp(self.terms, orders)

    def zcdp(self) -> ZCDPView:
        """Add rhos and deltas (Bun and Steinke 2016)."""
        return closed_forms.zcdp(self.terms)

    def gdp(self) -> GDPView:
        """Add the squares of mu and the masses (Dong, Roth and Su 2022)."""
        return closed_forms.gdp(self.terms)

    def pure(self) -> PureView:
        """Add epsilons and deltas (basic composition)."""
        return closed_forms.pure(self.terms)

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Part off the chance that any part fails."""
        return closed_forms.split(self.terms)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return compose([term._chained(steps, relation) * count for term, count in self.terms])  # noqa: SLF001


@final
@serialized_as("repeated", loss=LOSS, count=INTEGER)
@dataclass(frozen=True, slots=True)
class Repeated(_Sum):
    """One loss, many times; written ``loss * count``.

    Parameters
    ----------
    loss : PrivacyLoss
        Neither a repetition nor a composition.
    count : int
        At least 2.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> Gaussian(1.0) * 3 == Repeated(Gaussian(1.0), 3)
    True
    """

    loss: PrivacyLoss
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _check.integer("count", self.count, minimum=2, remedy=_WRITE))
        if self.loss.neighboring is not None and not self.loss.neighboring.composes:
            _refuse_sum(self.loss.neighboring)
        if isinstance(self.loss, _Sum):
            _check.refuse_type("loss", "be neither a repetition nor a composition", self.loss, _WRITE)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The repeated loss with its count."""
        return ((self.loss, self.count),)

    def __repr__(self) -> str:
        return f"{self.loss!r} * {self.count}"


@final
@serialized_as("composed", losses=LOSSES)
@dataclass(frozen=True, slots=True)
class Composed(_Sum):
    """Several different losses together; written ``a + b``. ``Composed(())`` is the loss of doing nothing.

    Parameters
    ----------
    losses : tuple of PrivacyLoss
        None, or two or more that stay different; put into normal form.

    Examples
    --------
    >>> Composed(()).epsilon(0.0)
    0.0
    """

    losses: tuple[PrivacyLoss, ...]

    def __post_init__(self) -> None:
        parts = _normal(term for loss in self.losses for term in loss.terms)
        if len(parts) == 1:
            _check.refuse_state("losses", "hold none or several different losses", "it holds one", _WRITE)
        object.__setattr__(self, "losses", parts)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All parts with their counts."""
        return tuple(term for loss in self.losses for term in loss.terms)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.losses)) or "Composed(())"


_WRITE = "write a + b and loss * count, which preserve the normal form"


def compose(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """Return the composition of any number of losses, in one pass.

    Parameters
    ----------
    losses : iterable of PrivacyLoss
        All about the same neighboring relation.

    Returns
    -------
    PrivacyLoss
        In normal form: equal losses are merged into one with a count.

    Raises
    ------
    NeighboringMismatch
        If two losses protect different relations.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Laplace
    >>> compose([Laplace(2.0), Gaussian(1.0), Laplace(2.0)])
    Gaussian(noise_multiplier=1.0) + Laplace(noise_multiplier=2.0) * 2
    """
    return _compose(term for loss in losses for term in loss.terms)


def _compose(terms: Iterable[Term]) -> PrivacyLoss:
    parts = _normal(terms)
    if len(parts) == 1:
        return parts[0]
    composed = object.__new__(Composed)  # whose constructor would bring them into normal form again
    object.__setattr__(composed, "losses", parts)
    return composed


def _normal(terms: Iterable[Term]) -> tuple[PrivacyLoss, ...]:
    """Merge equal terms and sort them by their serialised form."""
    counts: Counter[PrivacyLoss] = Counter()
    for term, count in terms:
        counts[term] += count
    distinct = [term for term, count in counts.items() if count]
    relation = common_relation(term.neighboring for term in distinct)
    if relation is not None and not relation.composes and sum(counts[term] for term in distinct) > 1:
        _refuse_sum(relation)
    if len(distinct) > 1:
        distinct.sort(key=to_text)
    return tuple(term if counts[term] == 1 else Repeated(term, counts[term]) for term in distinct)


def _refuse_sum(relation: Relation) -> NoReturn:
    raise NeighboringMismatch(
        f"losses must be about a relation under which they add, got {str(relation)!r}; bound all mechanisms "
        "together by a theorem for that relation, and state that as one loss"
    )
