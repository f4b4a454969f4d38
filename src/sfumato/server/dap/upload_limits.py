"""What a leader stores of uploads at most: of its task, at a time, and of one address."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, final

from sfumato import _check
from sfumato.federated.dap.problem_document import Problem
from sfumato.federated.dap.task import DapTask
from sfumato.server.dap.aggregator_store import AggregatorStore

__all__ = ["UploadCounts", "UploadLimits", "network_of"]

_HOUR: Final = 3600
_ADDRESSES: Final = 100_000
_WAITING_BYTES: Final = 1 << 32
_OVERHEAD: Final = 256
_KNOWN: Final = "SELECT count(*) FROM report"
_WAITING: Final = "SELECT count(*) FROM report WHERE content IS NOT NULL AND job IS NULL"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Bounds on the reports that a leader takes from who has no token.

    Parameters
    ----------
    reports : int
        Of the task, over all its time: their ids are remembered for good. Those beyond it get the status
        ``report_dropped``.
    waiting : int
        That are not aggregated yet, and at most 4 GiB of them; a request beyond it gets the status 503.
    address : int
        In an hour from one address, or from one network of 64 bits for IPv6; a request beyond it gets the
        status 429.

    Notes
    -----
    Addresses are counted in memory, for at most an hour, and never written. Of more than 100,000 in an hour
    the further ones share one count. Behind a proxy all clients have the proxy's address: bound them there.
    The bounds keep the leader's disk and memory. They do not keep out who sends from many addresses: that one
    can use up ``waiting`` for a time, and ``reports`` for good.

    Examples
    --------
    >>> UploadLimits(address=0)
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: address must be an integer of at least 1, got 0
    """

    reports: int = 100_000_000
    waiting: int = 1_000_000
    address: int = 100_000

    def __post_init__(self) -> None:
        for name in ("reports", "waiting", "address"):
            _check.integer(name, getattr(self, name), minimum=1)


@final
class UploadCounts:
    """What was taken so far, held against the limits; to be used in the store's transactions.

    Parameters
    ----------
    limits : UploadLimits
    store : AggregatorStore
        The leader's.

    Notes
    -----
    The store is asked how many reports there are, and how many of them wait, at the beginning only: to count
    a million that wait takes seconds, in which nothing else is done. Reports of a transaction that fails stay
    counted until the process ends.
    """

    def __init__(self, limits: UploadLimits, store: AggregatorStore) -> None:
        self._limits = limits
        self._most = min(limits.waiting, max(1, _WAITING_BYTES // _report_bytes(store.task)))
        self._known: int = store.execute(_KNOWN).rows[0][0]
        self._waiting: int = store.execute(_WAITING).rows[0][0]
        self._hour: float = 0
        self._of: dict[bytes, int] = {}

    def admit(self, network: bytes, count: int, now: float) -> None:
        """Count a request's reports, or refuse the request.

        Raises
        ------
        Problem
            With the status 413 if so many are never taken at once, or else 429 or 503.
        """
        most = min(self._most, self._limits.address)
        if count > most:
            raise Problem(413, f"a request has at most {most} reports")
        if not self._hour <= now < self._hour + _HOUR:
            self._hour, self._of = now, {}
        if network not in self._of and len(self._of) >= _ADDRESSES:
            network = b""
        sent = self._of.get(network, 0) + count
        if sent > self._limits.address:
            why = f"one address sends at most {self._limits.address} reports an hour"
            raise Problem(429, why, retry_after=int(self._hour + _HOUR - now) + 1)
        if self._waiting + count > self._most:
            raise Problem(503, f"at most {self._most} reports wait at a time", retry_after=60)
        self._of[network] = sent

    @property
    def full(self) -> bool:
        """Whether the task has as many reports as it may have."""
        return self._known >= self._limits.reports

    def remember(self, new: int) -> None:
        """Count reports that were stored, and wait."""
        self._known += new
        self._waiting += new

    def leave(self, count: int) -> None:
        """Count reports that wait no more."""
        self._waiting -= count


def _report_bytes(task: DapTask) -> int:
    """Return a bound on the bytes of one report, which all have the same."""
    prio3 = task.prio3
    shares = prio3.input_share_size(0) + prio3.input_share_size(1)
    return prio3.public_share_size + shares + _OVERHEAD


def network_of(host: object) -> bytes:
    """Return what is counted of a client's address: four bytes, eight of IPv6, or none if it has no such.

    Examples
    --------
    >>> network_of("192.0.2.7").hex(), network_of("::ffff:192.0.2.7").hex(), network_of(None)
    ('c0000207', 'c0000207', b'')
    >>> network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:0:1::1")
    True
    """
    try:
        found = ip_address(host if isinstance(host, str) else "")
    except ValueError:
        return b""
    whole = (getattr(found, "ipv4_mapped", None) or found).packed
    return bytes(whole[:8])
