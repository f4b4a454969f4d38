"""What a ledger guarantees of one release, as a document that travels with the numbers and can be checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Codec, Field, Format, Record, canonical, parse
from sfumato.errors import LedgerMismatch, ParameterError, SourceError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.stored_releases import StoredRelease
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Relation
from sfumato.privacy.serialization import LOSS
from sfumato.queries.release.table import TableRelease

__all__ = ["METADATA_KEY", "GuaranteeStatement", "read_statement", "statement"]

METADATA_KEY: Final = b"sfumato.guarantee"
"""Where the schema of a table holds its statement."""

_FORMAT: Final = Format("sfumato.guarantee", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeStatement:
    """The guarantee of one stored release, and where it is recorded.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of this release alone.
    loss : PrivacyLoss
        What was run.
    neighboring : Neighboring or Relation
        Who may change, and how.
    privacy_unit : str
        Who is protected.
    period : str
        Which period's budget was charged; "" where it does not renew.
    simulated : bool
        Whether the noise came from a seed, so that nobody is protected.
    ledger : str
        Id of the ledger.
    charge : int
        Number of the charge.
    digest : str
        Of the chain with the charge, in hexadecimal: the receipt.
    payload : str
        SHA-256 of the stored release.
    head : ChainHead
        Where the ledger stood when the statement was made.

    Notes
    -----
    All of it is public, or follows from the release. It proves nothing by itself: `verify` compares it with
    the ledger.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato import report
    >>> with sf.connect(pa.table({"n": range(1000)}), privacy_unit=sf.ROW, epsilon=1.0) as session:
    ...     answer = session.sql(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS people FROM data"
    ...     )
    ...     table = report.statement(session.ledger, 1).attached(answer.to_arrow())
    ...     found = report.read_statement(table)
    ...     found.epsilon, found.privacy_unit, found.verify(session.ledger, table)
    (0.5, 'row', 'none')
    """

    epsilon: float
    delta: float
    loss: PrivacyLoss
    neighboring: Relation
    privacy_unit: str
    period: str
    simulated: bool
    ledger: str
    charge: int
    digest: str
    payload: str
    head: ChainHead

    @property
    def notion(self) -> str:
        """Which notion of privacy: pure or approximate differential privacy."""
        return "approximate-dp" if self.delta else "pure-dp"

    def attached(self, table: pa.Table) -> pa.Table:
        """Return a table with this statement in the metadata of its schema.

        Parameters
        ----------
        table : pyarrow.Table
            The numbers of the release.

        Returns
        -------
        pyarrow.Table
            Parquet, Feather and Arrow streams that are written of it hold the statement, too.
        """
        _check.instance("table", table, pa.Table, "pass release.to_arrow()")
        return table.replace_schema_metadata(
            {**(table.schema.metadata or {}), METADATA_KEY: self.to_json().encode()}
        )

    def verify(self, ledger: Ledger, table: pa.Table | None = None) -> str:
        """Compare the statement, and the numbers it came with, with the ledger.

        Parameters
        ----------
        ledger : Ledger
            The whole of it is checked, and that it continues `head`.
        table : pyarrow.Table, optional
            What the statement came with: it must be the release as `to_arrow` gives it, with or without
            intervals of 95 %, clamped or not.

        Returns
        -------
        str
            The state of the release's review: ``"none"``, ``"published"``, ``"withdrawn"`` or another.

        Raises
        ------
        LedgerMismatch
            If the statement is of another ledger, or says what the ledger does not, or the numbers are
            others; or if the charge costs more than was recorded, since a hole in the accounting was mended.
        LedgerCorrupt
            If the ledger was altered, or put back to before the statement was made.
        """
        _check.instance("ledger", ledger, Ledger, "pass Ledger.read(file)")
        if self.ledger != ledger.ledger_id:
            raise LedgerMismatch(
                "ledger must be the one of the statement, got another one; read the ledger that it names"
            )
        if table is not None:
            _check.instance("table", table, pa.Table, "pass pyarrow.parquet.read_table(file)")
        checked = ledger.verify(self.head)
        if not 1 <= self.charge <= self.head.charges or self._in(ledger) != self:
            raise LedgerMismatch(
                "statement must say what the ledger says of this charge, got one that was altered; "
                "make it again by report.statement"
            )
        if self.charge in checked.underpriced:
            raise LedgerMismatch(
                "statement must be of a charge that costs no more today than was recorded, got one whose "
                "accounting had a hole; 'sfumato ledger verify' says more"
            )
        if table is not None and not _is_of(table, ledger.release(self.charge)):
            raise LedgerMismatch(
                "table must hold the numbers of the release, got others; 'sfumato ledger release' writes them"
            )
        return ledger.reviews.of(self.charge).state

    def _in(self, ledger: Ledger) -> GuaranteeStatement | None:
        """Return what a ledger says of the charge, with this head; None where it stores no release."""
        try:
            return replace(statement(ledger, self.charge), head=self.head)
        except ParameterError:
            return None

    def to_json(self) -> str:
        """Return the statement as one line of JSON.

        Returns
        -------
        str
            Of the format ``sfumato.guarantee``.
        """
        return canonical(_FORMAT.wrap({"notion": self.notion, **_RECORD.encode(self)}))

    @classmethod
    def from_json(cls, text: str | bytes) -> GuaranteeStatement:
        """Read a statement.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.

        Returns
        -------
        GuaranteeStatement

        Raises
        ------
        ParameterError
            If it is no such text, or of a version that is not known here.
        """
        _, fields = _FORMAT.unwrap("statement", parse("statement", text))
        notion = fields.pop("notion", None)
        made = _RECORD.decode("statement", fields)
        if notion != made.notion:
            _check.refuse_state("statement", f"be of {made.notion}", "it says otherwise", "make it again")
        return made


_HEAD: Final[Codec[ChainHead]] = Codec(
    lambda head: head.to_json(), lambda name, written: ChainHead.from_json(TEXT.decode(name, written))
)

_RECORD: Final[Record[GuaranteeStatement]] = Record(
    "the guarantee of a release",
    GuaranteeStatement,
    {
        "epsilon": NUMBER,
        "delta": NUMBER,
        "loss": LOSS,
        "neighboring": RELATION,
        "privacy_unit": TEXT,
        "period": TEXT,
        "simulated": BOOLEAN,
        "ledger": TEXT,
        "charge": INTEGER,
        "digest": TEXT,
        "release_sha256": Field("payload", TEXT),
        "head": _HEAD,
    },
)


def statement(ledger: Ledger, number: int | TableRelease) -> GuaranteeStatement:
    """Return what a ledger guarantees of one of its stored releases.

    Parameters
    ----------
    ledger : Ledger
    number : int or TableRelease
        Of the charge; or an answer of this ledger, also one that was read back and has no receipt.

    Returns
    -------
    GuaranteeStatement

    Raises
    ------
    ParameterError
        If nothing was stored with this charge, or the answer is none of this ledger.

    Notes
    -----
    Guarantee: epsilon and delta are those that the ledger recorded before data was read, of the loss beside
    them; the statement costs nothing.
    """
    _check.instance("ledger", ledger, Ledger, "pass session.ledger, or Ledger.read(file)")
    number = _charge_of(ledger, number) if isinstance(number, TableRelease) else number
    found: Any = ledger.release(number)
    payload: bytes = (found.record if isinstance(found, TableRelease) else found).to_bytes()
    entry = ledger.entry(number)
    return GuaranteeStatement(
        epsilon=entry.epsilon,
        delta=entry.delta,
        loss=entry.loss,
        neighboring=ledger.neighboring,
        privacy_unit=found.privacy_unit,
        period=entry.period,
        simulated=entry.simulated,
        ledger=ledger.ledger_id,
        charge=number,
        digest=entry.digest,
        payload=hashlib.sha256(payload).hexdigest(),
        head=ledger.head(),
    )


def _charge_of(ledger: Ledger, release: TableRelease) -> int:
    """Return the number of an answer's charge: its receipt's, or of the last charge with the same bytes."""
    receipt, entries = release.receipt, ledger.entries()
    if receipt is None:
        likely = [each for each in entries if each.committed and each.loss == release.loss]
    else:
        found = receipt.ledger, receipt.sequence, receipt.digest
        likely = [each for each in entries if (ledger.ledger_id, each.sequence, each.digest) == found]
    wanted = release.record.to_bytes()
    for entry in reversed(likely):
        if _stored_bytes(ledger, entry.sequence) == wanted:
            return entry.sequence
    return _check.refuse_state(
        "release", "be one of this ledger", "it is none", "pass the ledger of the answer"
    )


def _stored_bytes(ledger: Ledger, number: int) -> bytes | None:
    """Return a stored answer's bytes; None of what is no table, such as the name of a counter."""
    try:
        stored = ledger.release(number)
    except ParameterError:
        return None
    return stored.record.to_bytes() if isinstance(stored, TableRelease) else None


def read_statement(source: pa.Table | pa.Schema | str | Path) -> GuaranteeStatement:
    """Return the statement that came with a table.

    Parameters
    ----------
    source : pyarrow.Table, pyarrow.Schema, str or Path
        The table, its schema, or a file of Parquet, of which no row is read.

    Returns
    -------
    GuaranteeStatement

    Raises
    ------
    SourceError
        If the file cannot be read as Parquet.
    ParameterError
        If there is no statement in the table's metadata, or none that is known here.
    """
    if isinstance(source, str | Path):
        try:
            schema = pq.read_schema(source)
        except (OSError, pa.ArrowInvalid) as error:
            message = f"{str(source)!r} must be a file of Parquet that can be read; check it"
            raise SourceError(message) from error
    else:
        given: object = source
        if not isinstance(given, pa.Table | pa.Schema):
            _check.refuse_type(
                "source", "be a table, a schema or a path", given, "pass a Parquet file's path"
            )
        schema = source.schema if isinstance(source, pa.Table) else source
    written = (schema.metadata or {}).get(METADATA_KEY)
    if written is None:
        remedy = "write it by 'sfumato ledger release', or attach report.statement(ledger, number)"
        _check.refuse_state("source", "hold a statement", "its metadata have none", remedy)
    return GuaranteeStatement.from_json(written)


def _is_of(table: pa.Table, found: StoredRelease) -> bool:
    """Return whether a table is a release as it is written, but for the metadata."""
    if not isinstance(found, TableRelease):
        return _same(table, found.to_arrow())
    shapes = ((intervals, clamp) for intervals in (True, False) for clamp in (False, True))
    return any(_same(table, found.to_arrow(intervals=each, clamp=clamp)) for each, clamp in shapes)


def _same(one: pa.Table, other: pa.Table) -> bool:
    """Return whether names, types and values are alike; NaN is NaN, and 0.0 is not -0.0."""
    if one.schema.names != other.schema.names or one.schema.types != other.schema.types:
        return False
    return all(
        repr(a.to_pylist()) == repr(b.to_pylist()) for a, b in zip(one.columns, other.columns, strict=True)
    )
