"""What a stored release says of itself, in words, where the query that it answers is not at hand."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.queries.release.record import ReleaseRecord

__all__ = ["explain_record"]


def explain_record(record: ReleaseRecord) -> Iterator[str]:
    """Yield lines on guarantee, columns, noise and cost; all of it stands in the record.

    Parameters
    ----------
    record : ReleaseRecord
    """
    yield (
        f"Guarantee: ({record.epsilon:g}, {record.delta:g})-differential privacy for this answer alone, when "
        f"one {record.privacy_unit} is added or removed."
    )
    if record.simulated:
        yield "Simulated: the noise came from a seed, so nothing is protected."
    yield "Read back from a ledger, which stores no queries: its charge's description says what was asked."
    if record.keys:
        chosen = "" if record.threshold is None else f"; shown from a noisy count of {record.threshold} units"
        yield f"Groups: {', '.join(record.keys)}{chosen}"
    for column in record.columns:
        measure = record.measures[column.total]
        step = "" if measure.exponent == 0 else f" steps of 2**{measure.exponent}"
        yield (
            f"{column.name}: {column.kind.value}; noise: {measure.distribution.value}, scale "
            f"{float(measure.scale):.6g}{step}"
        )
    for computed in record.computed:
        yield f"{computed.name}: {computed.sql}, computed from the answer; it costs nothing."
    for bounds in record.found:
        yield f"Found for {bounds.words}: [{bounds.lower:g}, {bounds.upper:g}]"
    yield f"Loss charged: {record.loss!r}"
