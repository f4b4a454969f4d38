"""The client half of marginals by their tables: one table is drawn, and a person's cell in it reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer, category_protocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.rows import RowsRandomizer
from sfumato.local.device.base.sampled_part import OnePart
from sfumato.local.device.domains.categories import Domain
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["SampledMarginalsRandomizer", "checked_views"]

_MOST_VIEWS: Final = 1 << 16
_MOST_CELLS: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMarginalsRandomizer(OnePart, RowsRandomizer):
    r"""The cell of a person's row in one table of some attributes, drawn evenly, with all of epsilon.

    Parameters
    ----------
    epsilon, domains
        See `RowsRandomizer`.
    views : tuple of tuples of int
        The tables: indices of their attributes, ascending. At most 2^16 tables of at most 2^20 cells.
    protocols : tuple of str
        Of each table: the name of the client half that reports one category, of epsilon and a domain.

    Attributes
    ----------
    parts : tuple of CategoricalRandomizer
        One for each table, over its cells: the last attribute's categories run fastest.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one: see `OnePart`.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> views = ((0, 1), (0, 2), (1, 2))
    >>> domains = [Domain(["no", "yes"]), Domain(range(5)), Domain(["a", "b", "c"])]
    >>> names = ("randomized-response",) * 3
    >>> device = SampledMarginalsRandomizer(epsilon=1.0, domains=domains, views=views, protocols=names)
    >>> [len(part.domain) for part in device.parts], device.width
    ([10, 6, 15], 4)
    """

    wire_name: ClassVar[str] = "sampled-marginals"
    chosen: ClassVar[tuple[str, ...]] = (*RowsRandomizer.chosen, "views", "protocols")

    views: tuple[tuple[int, ...], ...]
    protocols: tuple[str, ...]
    parts: tuple[CategoricalRandomizer, ...] = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        views = checked_views(self.views, [len(domain) for domain in self.domains])
        given: object = self.protocols
        names = tuple(given) if isinstance(given, tuple | list) else ()
        if len(names) != len(views) or not all(isinstance(name, str) for name in names):
            _check.refuse("protocols", f"be {len(views)} names", type(given).__name__, "pass one a table")
        made: dict[tuple[str, int], CategoricalRandomizer] = {}
        for name, view in zip(names, views, strict=True):
            cells = prod(len(self.domains[at]) for at in view)
            if (name, cells) not in made:
                kind = category_protocol("protocols", name)
                made[name, cells] = kind(epsilon=self.epsilon, domain=Domain(range(cells)))
        parts = tuple(
            made[name, prod(len(self.domains[at]) for at in view)]
            for name, view in zip(names, views, strict=True)
        )
        self._set(views=views, protocols=names, parts=parts)

    def _chances(self) -> dict[str, Any]:
        return {"parts": [part.digest.hex() for part in self.parts]}

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        sizes = [len(domain) for domain in self.domains]
        which = uniform_integers(len(self.parts), codes.shape[1], source)

        def made(at: int, rows: NDArray[np.int64]) -> Records:
            cells = np.zeros(len(rows), np.int64)
            for attribute in self.views[at]:
                cells = cells * sizes[attribute] + codes[attribute, rows]
            return self.parts[at].randomize_batch(cells, source).records

        return self._assembled(which, made)

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a row true: private, and for few and small tables.

        The client halves of its parts must have such a method.

        Parameters
        ----------
        value
            A row: one category of each domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        sizes, codes = [len(domain) for domain in self.domains], self._codes([value])[:, 0].tolist()
        distribution = {}
        for at, (view, part) in enumerate(zip(self.views, self.parts, strict=True)):
            cell = 0
            for attribute in view:
                cell = cell * sizes[attribute] + codes[attribute]
            oracle: Any = part
            for report, chance in oracle.probabilities(cell).items():
                whole = self._assembled(np.array([at]), _given(report, at))
                distribution[whole.tobytes()] = chance / len(self.parts)
        return distribution


def _given(report: bytes, chosen: int) -> Any:
    """Return a function that yields one known record for its own part."""
    row = np.frombuffer(report, np.uint8)[None, :]
    return lambda at, rows: row if at == chosen else np.empty((0, 1), np.uint8)


def checked_views(given: object, sizes: list[int]) -> tuple[tuple[int, ...], ...]:
    """Return tables' attributes as tuples, or refuse anything else.

    Parameters
    ----------
    given : sequence of sequences of int
    sizes : list of int
        Categories of each attribute.

    Returns
    -------
    tuple of tuples of int

    Raises
    ------
    ParameterError
        If an index is unknown or repeated, a table occurs twice, or there are too many or too large tables.
    """
    rule = "be tables of ascending indices of attributes, none of them twice"
    outer = list(given) if isinstance(given, tuple | list) else []
    views = [tuple(view) if isinstance(view, tuple | list) else () for view in outer]
    for view in views:
        whole = all(isinstance(at, int) and not isinstance(at, bool) for at in view)
        if (
            not view
            or not whole
            or list(view) != sorted(set(view))
            or not 0 <= view[0] <= view[-1] < len(sizes)
        ):
            _check.refuse("views", rule, view, f"attributes are counted from 0 to {len(sizes) - 1}")
        if prod(sizes[at] for at in view) > _MOST_CELLS:
            _check.refuse(
                "views", f"have at most {_MOST_CELLS} cells", view, "take fewer attributes together"
            )
    if not views or len(views) > _MOST_VIEWS or len(set(views)) < len(views):
        _check.refuse("views", rule, len(views), f"pass from 1 to {_MOST_VIEWS}")
    return tuple(views)
