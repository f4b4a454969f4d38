"""A domain that was bought, as a release and as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self, final

import pyarrow as pa

from sfumato import _check
from sfumato._wire import BOOLEAN, TEXT, Codec, Field, Format, Record, canonical, optional, parse, sequence
from sfumato.mechanisms.base.release import Release
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.neighboring import RELATION
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["DomainRelease"]

_FORMAT: Final = Format("sfumato.bought-domain", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DomainRelease(Release):
    """A domain that was bought, with what it cost.

    Parameters
    ----------
    value : TableDomain or None
        None if no column has any cell.
    absent : tuple of str
        Columns in which no category was found; the domain lacks them.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import BoughtCategories, BoughtDomain
    >>> bought = BoughtDomain({"city": BoughtCategories()}, epsilon=1.0, delta=1e-6)
    >>> bought.release(pa.table({"city": ["Rome"] * 90 + ["Oslo"]}), rng=1).domain
    <TableDomain of 1 columns, cells city: 2>
    """

    absent: tuple[str, ...] = ()

    @property
    def domain(self) -> TableDomain:
        """The domain.

        Raises
        ------
        ParameterError
            If no column has any cell.
        """
        if self.value is None:
            _check.refuse_state("domain", "have a column", "no category was found", "declare categories")
        found: TableDomain = self.value
        return found

    def to_json(self) -> str:
        """Return the release as a document of the format ``sfumato.bought-domain``, without its receipt.

        Returns
        -------
        str
        """
        return canonical(_FORMAT.wrap(_DOCUMENT.encode(self)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the release that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        DomainRelease

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        read: Self = _DOCUMENT.decode("text", _FORMAT.unwrap("text", parse("text", text))[1])
        return read

    def to_arrow(self) -> pa.Table:
        """Return the cells, a row for each.

        Returns
        -------
        pyarrow.Table
            ``column`` and ``cell``, its label as a text.
        """
        cells = [
            {"column": name, "cell": None if label is None else str(label)}
            for name, attribute in ({} if self.value is None else self.domain).items()
            for label in attribute.labels
        ]
        return pa.Table.from_pylist(cells, pa.schema([("column", pa.string()), ("cell", pa.string())]))


_DOMAIN: Final[Codec[TableDomain]] = Codec(
    lambda domain: domain.to_json(), lambda name, written: TableDomain.from_json(TEXT.decode(name, written))
)
_DOCUMENT: Final[Record[Any]] = Record(
    "a bought domain",
    DomainRelease,
    {
        "domain": Field("value", optional(_DOMAIN)),
        "absent": sequence(TEXT),
        "loss": LOSS,
        "neighboring": RELATION,
        "simulated": BOOLEAN,
    },
)
