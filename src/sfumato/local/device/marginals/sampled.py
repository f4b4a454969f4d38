"""The client half of marginals by their tables: one table is drawn, and a person's cell in it reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer, category_protocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.rows import RowsRandomizer
from sfumato.local.device.base.sampled_question import SampledQuestionRandomizer
from sfumato.local.device.domains.categories import Domain

__all__ = ["SampledMarginalsRandomizer", "checked_views"]

_MAX_VIEWS: Final = 1 << 16
_MAX_CELLS: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMarginalsRandomizer(SampledQuestionRandomizer, RowsRandomizer):
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
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one: see `SampledQuestionRandomizer`.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> views = ((0, 1), (0, 2), (1, 2))
    >>> domains = [Domain(["no", "yes"]), Domain(range(5)), Domain(["a", "b", "c"])]
    >>> names = ("randomized-response",) * 3
    >>> device = SampledMarginalsRandomizer(epsilon=1.0, domains=domains, views=views, protocols=names)
    >>> [len(part.domain) for part in device.parts], device.width
    ([10, 6, 15], 7)
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
            _check.refuse_type("protocols", f"be {len(views)} names", given, "pass one a table")
        cells = [prod(len(self.domains[at]) for at in view) for view in views]
        made = {
            (name, count): category_protocol("protocols", name)(
                epsilon=self.epsilon, domain=Domain(range(count))
            ).within()
            for name, count in dict.fromkeys(zip(names, cells, strict=True))
        }
        parts = tuple(made[pair] for pair in zip(names, cells, strict=True))
        self._set(views=views, protocols=names, parts=parts)

    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return the cells of one table that rows are in.

        Parameters
        ----------
        codes : int64 array, shape (attributes, n)
            Indices in all domains.
        question : int
            Index of the table.

        Returns
        -------
        int64 array, shape (n,)
        """
        view = self.views[question]
        sizes = [len(self.domains[at]) for at in view]
        return np.asarray(np.ravel_multi_index(tuple(codes[list(view)]), sizes), np.int64)

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
        codes, distribution = self._codes([value]), {}
        for at, part in enumerate(self.parts):
            oracle: Any = part
            for report, chance in oracle.probabilities(int(self.answers(codes, at)[0])).items():
                row = np.frombuffer(report, np.uint8)[None]
                whole = self._assembled(np.array([at]), partial(_same, row))
                distribution[whole.tobytes()] = chance / len(self.parts)
        return distribution


def _same(row: Records, at: int, rows: NDArray[np.int64]) -> Records:
    return row


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
            _check.refuse("views", rule, view, f"count attributes from 0 to {len(sizes) - 1}")
        if prod(sizes[at] for at in view) > _MAX_CELLS:
            _check.refuse("views", f"have at most {_MAX_CELLS} cells", view, "take fewer attributes together")
    if not views or len(views) > _MAX_VIEWS or len(set(views)) < len(views):
        _check.refuse("views", rule, len(views), f"pass from 1 to {_MAX_VIEWS}")
    return tuple(views)
