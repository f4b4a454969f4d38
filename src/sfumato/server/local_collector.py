"""The collector of plain local reports: checks them, forgets their order, and releases them as Parquet."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import _check
from sfumato.local.device.base.client_nonce import NONCE
from sfumato.local.device.base.public_question import PublicQuestion
from sfumato.local.device.base.record_layout import Records
from sfumato.server.collector import Collector
from sfumato.server.store import Report

__all__ = ["LocalCollector"]

_COLUMN: Final = "report"
_STORE: Final = b"sfumato local 1 store\x00"


@final
class LocalCollector(Collector):
    """One question's collector, without the network: what it is given is bytes, and no address.

    Parameters
    ----------
    question : sfumato.local.device.PublicQuestion
    folder : Path
        Its own: ``waiting.db`` holds what waits, ``batches`` what is released. Made if there is none.
    batch_size : int
        How many devices' reports are released together, in random order; at least 2.

    Raises
    ------
    ParameterError
        If the folder is another question's or of another batch size, another process has it open, or it holds
        batches that its ``waiting.db`` does not know of.

    Notes
    -----
    What a `Collector` guarantees: durable when it is taken, one report for each nonce, whole batches in
    random order. Each report was randomized by its device, so that the loss of the question's randomizer is
    guaranteed whatever happens here; the batches separate reports from nonces and from when they came, which
    is more than that loss requires. Reports that are fewer than a batch wait.

    A report is checked before it is stored: its length, the tag of the question's specification, and that its
    payload is one that the protocol sends.

    Examples
    --------
    Four devices' reports become one file, whose reports are counted:

    >>> import tempfile
    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["yes", "no"]))
    >>> question = PublicQuestion(randomizer=oracle.device, name="week 7")
    >>> with tempfile.TemporaryDirectory() as folder, LocalCollector(question, folder, 4) as collector:
    ...     sent = [question.submission("yes", bytes([device]) * 32) for device in range(4)]
    ...     taken = collector.take([*sent, sent[0], bytes(21)])
    ...     counted = local.aggregate_parquet(oracle, [collector.path(1)], "report", processes=1)
    >>> taken, counted.accepted, collector.refused
    ([True, True, True, True, True, False], 4, {'shape': 0, 'tag': 1, 'encoding': 0})
    """

    owner: ClassVar = "collector"
    suffix: ClassVar = ".parquet"
    reasons: ClassVar = ("shape", "tag", "encoding")

    __slots__ = ("_question",)

    def __init__(self, question: PublicQuestion, folder: Path, batch_size: int) -> None:
        _check.instance("question", question, PublicQuestion, "pass that of sfumato.local.device")
        size = _check.integer("batch_size", batch_size, minimum=2)
        self._question = question
        super().__init__(
            folder,
            store_id=hashlib.sha256(_STORE + question.id + size.to_bytes(8, "big")).digest(),
            collection_id=question.id,
            batch_size=size,
            envelope_width=question.submission_width,
            stored_width=question.randomizer.width,
        )

    @property
    def question(self) -> PublicQuestion:
        """What is asked."""
        return self._question

    def _report(self, envelope: bytes) -> Report | str:
        if len(envelope) != self.envelope_width:
            return "shape"
        report, randomizer = envelope[NONCE:], self._question.randomizer
        record = np.frombuffer(report, np.uint8).reshape(1, -1)
        if not randomizer.layout.genuine(record)[0]:
            return "tag"
        return Report(envelope[:NONCE], report) if randomizer.well_formed(record)[0] else "encoding"

    def _mixed(self, number: int, clients: Records) -> bytes:
        width = self._question.randomizer.width
        records = np.ascontiguousarray(self._shuffled(clients, width))
        held = pa.py_buffer(records.tobytes())
        column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(records), [None, held])
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({_COLUMN: column}), sink)
        content: bytes = sink.getvalue().to_pybytes()
        return content
