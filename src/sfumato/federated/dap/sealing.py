"""Sealed shares: of reports for one aggregator, and of sums for the collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato.crypto.hpke_base import open_base, public_point, seal_base
from sfumato.federated.dap.collection_messages import AggregateShareAad, BatchQuery
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.report_messages import HpkeCiphertext, InputShareAad
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import VERSION, Role

__all__ = ["HpkeKey", "sealed_aggregate_share", "sealed_input_share"]


@final
@dataclass(frozen=True, slots=True)
class HpkeKey:
    """A party's own key.

    Parameters
    ----------
    secret : bytes
        32 random bytes.
    id : int, optional
        What ciphertexts call it.

    Examples
    --------
    >>> "secret" in repr(HpkeKey(bytes(range(32))))
    False
    """

    secret: bytes
    id: int = 1

    def __repr__(self) -> str:
        return f"HpkeKey(id={self.id})"

    @property
    def config(self) -> HpkeConfig:
        """What is published."""
        return HpkeConfig(self.id, public_point(self.secret))

    def opened_input_share(self, sealed: HpkeCiphertext, role: Role, aad: InputShareAad) -> bytes | None:
        """Return what a client sealed for this aggregator, or None."""
        info = VERSION + b" input share" + bytes([Role.CLIENT, role])
        return open_base(self.secret, sealed.enc, info, aad.to_bytes(), sealed.payload)

    def opened_aggregate_share(
        self, sealed: HpkeCiphertext, role: Role, aad: AggregateShareAad
    ) -> bytes | None:
        """Return what an aggregator sealed for this collector, or None."""
        info = VERSION + b" aggregate share" + bytes([role, Role.COLLECTOR])
        return open_base(self.secret, sealed.enc, info, aad.to_bytes(), sealed.payload)


def sealed_input_share(config: HpkeConfig, role: Role, aad: InputShareAad, share: bytes) -> HpkeCiphertext:
    """Seal a report's share for an aggregator; see `sfumato.crypto.hpke_base.seal_base`.

    Examples
    --------
    >>> from sfumato.federated.dap.report_messages import ReportMetadata
    >>> key, aad = HpkeKey(bytes(range(32))), InputShareAad(bytes(32), ReportMetadata(bytes(16), 7), b"")
    >>> key.opened_input_share(sealed_input_share(key.config, Role.LEADER, aad, b"yes"), Role.LEADER, aad)
    b'yes'
    """
    info = VERSION + b" input share" + bytes([Role.CLIENT, role])
    enc, payload = seal_base(config.public_key, info, aad.to_bytes(), share, cipher=config.aead)
    return HpkeCiphertext(config.id, enc, payload)


def sealed_aggregate_share(task: DapTask, role: Role, selector: BatchQuery, share: bytes) -> HpkeCiphertext:
    """Seal an aggregator's share of a sum for the collector, bound to the batch."""
    config = task.collector
    info = VERSION + b" aggregate share" + bytes([role, Role.COLLECTOR])
    aad = AggregateShareAad(task.task_id, b"", selector).to_bytes()
    enc, payload = seal_base(config.public_key, info, aad, share, cipher=config.aead)
    return HpkeCiphertext(config.id, enc, payload)
