"""A task: what is measured, by whom it is aggregated, and what all its parties agree on."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato._wire import Format
from sfumato.crypto.hpke_base import AES_128_GCM
from sfumato.federated.dap.collection_messages import BatchMode, BatchQuery
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.report_messages import TASK_ID_SIZE
from sfumato.federated.dap.version import VERSION
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.named_functions import prio3_count, prio3_histogram, prio3_sum, prio3_sum_vec
from sfumato.federated.vdaf.prio3 import Prio3

__all__ = ["LAST_TIME", "DapTask", "base64url", "unbase64url"]

LAST_TIME: Final = 1 << 62
"""Times of tasks and queries are below it, so that they and their sums fit into 63 bits."""

_FORMAT: Final = Format("sfumato.dap-task")
_FUNCTIONS: Final[dict[str, tuple[Callable[..., Prio3], tuple[str, ...]]]] = {
    "Prio3Count": (prio3_count, ()),
    "Prio3Sum": (prio3_sum, ("max_measurement",)),
    "Prio3SumVec": (prio3_sum_vec, ("length", "max_measurement", "chunk_length")),
    "Prio3Histogram": (prio3_histogram, ("length", "chunk_length")),
}
_REMEDY: Final = "pass what `sfumato dap task` wrote"
_GIVEN: Final = (
    "leader", "helper", "vdaf", "min_batch_size", "time_precision", "start", "duration", "epsilon", "delta",
)  # fmt: skip
_FIELDS: Final = frozenset((*_GIVEN, "task_id", "batch_mode", "collector", "draft"))


def base64url(data: bytes) -> str:
    """Return bytes in the alphabet of URLs, without padding.

    Examples
    --------
    >>> base64url(b"abcd")
    'YWJjZA'
    """
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text: str, size: int) -> bytes | None:
    """Return the bytes of a text in the alphabet of URLs, or None if it is not one of that many bytes.

    Examples
    --------
    >>> unbase64url("YWJjZA", 4)
    b'abcd'
    >>> unbase64url("YWJjZB", 4) is None
    True
    """
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == size and base64url(data) == text else None


@final
@dataclass(frozen=True, kw_only=True)
class DapTask:
    """What clients, leader, helper and collector of one measurement agree on; all of it is public.

    Parameters
    ----------
    task_id : bytes
        32 bytes, unique.
    leader, helper : str
        The URLs under which the aggregators serve their resources.
    vdaf : mapping
        ``"type"`` is ``"Prio3Count"``, ``"Prio3Sum"``, ``"Prio3SumVec"`` or ``"Prio3Histogram"``; the others
        are its parameters: ``max_measurement``, ``length``, ``chunk_length``.
    collector : HpkeConfig
        For which the shares of sums are sealed.
    min_batch_size : int
        Of how many reports a sum is at least.
    batch_mode : BatchMode, optional
        Batches by time, as the collector asks, or by the leader.
    time_precision : int, optional
        Seconds in a unit of time; reports have no finer time.
    start, duration : int, optional
        The interval of the task in units of time since 1970: reports outside are refused.
    epsilon, delta : float, optional
        What each aggregator's own noise guarantees for each batch; left out, aggregators add no noise and
        sums are exact.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: with ``epsilon``, the sum of a batch, together with the number of its reports and their times,
    is (epsilon, delta)-DP under replace-one (one report's valid measurement is another valid one), against
    the collector and one aggregator together, while the other aggregator follows the protocol; the secrecy
    of shares makes it computational. A report is in one batch only. The unit is one report: a client who
    sends k of them is protected by group privacy only.

    Examples
    --------
    >>> task = DapTask(
    ...     task_id=bytes(32), leader="http://127.0.0.1:8421", helper="http://127.0.0.1:8422",
    ...     vdaf={"type": "Prio3Histogram", "length": 4, "chunk_length": 2},
    ...     collector=HpkeConfig(1, bytes(range(32))), min_batch_size=100, epsilon=1.0,
    ... )
    >>> task.prio3.public_share_size, task.noise.privacy_loss.epsilon()
    (64, 1.0)
    >>> DapTask.from_specification(task.specification()) == task
    True
    """

    task_id: bytes
    leader: str
    helper: str
    vdaf: Mapping[str, Any]
    collector: HpkeConfig
    min_batch_size: int
    batch_mode: BatchMode = BatchMode.TIME_INTERVAL
    time_precision: int = 3600
    start: int = 0
    duration: int = LAST_TIME - 1
    epsilon: float | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        task_id: object = self.task_id
        mode: object = self.batch_mode
        if not isinstance(task_id, bytes) or len(task_id) != TASK_ID_SIZE:
            _check.refuse_type("task_id", f"be {TASK_ID_SIZE} bytes", task_id, "draw it at random")
        for name in ("leader", "helper"):
            _check_url(name, getattr(self, name))
        _check.integer("min_batch_size", self.min_batch_size, minimum=2)
        if not isinstance(mode, BatchMode):
            _check.refuse("batch_mode", "be a BatchMode", mode, "use BatchMode.TIME_INTERVAL")
        _check.integer("time_precision", self.time_precision, minimum=1)
        _check.integer("start", self.start)
        _check.integer("duration", self.duration, minimum=1)
        if self.start + self.duration >= LAST_TIME:
            _check.refuse("start + duration", "be below 2**62", self.start + self.duration, "end it earlier")
        _check.instance("collector", self.collector, HpkeConfig)
        if not self.collector.usable or self.collector.aead != AES_128_GCM:
            rule = "be an X25519 key for AES-128-GCM, and no point of small order"
            _check.refuse("collector", rule, self.collector, "make a new key")
        _ = self.prio3, self.noise  # which check the function and the guarantee

    @cached_property
    def prio3(self) -> Prio3:
        """The function, bound to the draft and the task."""
        vdaf: object = self.vdaf
        kind = vdaf.get("type") if isinstance(vdaf, Mapping) else None
        if not isinstance(kind, str) or kind not in _FUNCTIONS:
            _check.refuse("vdaf", f"have a type among {', '.join(_FUNCTIONS)}", kind, "name one of them")
        make, names = _FUNCTIONS[kind]
        given = {name: value for name, value in self.vdaf.items() if name != "type"}
        if set(given) != set(names):
            _check.refuse("vdaf", f"have the parameters {list(names)}", sorted(given), "pass these only")
        return make(**given, context=VERSION + self.task_id)

    @cached_property
    def noise(self) -> AggregatorNoise | None:
        """The noise of each aggregator, or None where sums are exact."""
        if self.epsilon is None:
            if self.delta:
                _check.refuse("delta", "come with epsilon", self.delta, "pass both, or neither")
            return None
        return AggregatorNoise.calibrated(self.prio3, epsilon=self.epsilon, delta=self.delta)

    def covers(self, query: BatchQuery) -> bool:
        """Report whether a query or selector is one that this task's batches can have.

        Parameters
        ----------
        query : BatchQuery
            Of any batch mode.

        Returns
        -------
        bool
        """
        if query.mode != self.batch_mode:
            return False
        return query.interval is None or (query.interval.duration > 0 and query.interval.end <= LAST_TIME)

    def specification(self) -> dict[str, Any]:
        """Return the task as a JSON document.

        Returns
        -------
        dict
        """
        return _FORMAT.wrap(
            {
                "draft": VERSION.decode(),
                "task_id": base64url(self.task_id),
                "leader": self.leader,
                "helper": self.helper,
                "vdaf": dict(self.vdaf),
                "batch_mode": self.batch_mode.name.lower(),
                "min_batch_size": self.min_batch_size,
                "time_precision": self.time_precision,
                "start": self.start,
                "duration": self.duration,
                "collector": {"id": self.collector.id, "public_key": self.collector.public_key.hex()},
                "epsilon": self.epsilon,
                "delta": self.delta,
            }
        )

    @classmethod
    def from_specification(cls, document: object) -> DapTask:
        """Return the task that `specification` described.

        Parameters
        ----------
        document : object
            Of JSON.

        Returns
        -------
        DapTask

        Raises
        ------
        ParameterError
            If it is no such document, or is of another draft.
        """
        _, fields = _FORMAT.unwrap("task", document)
        if set(fields) != _FIELDS:
            _check.refuse("task", f"have the fields {sorted(_FIELDS)}", sorted(fields), _REMEDY)
        if fields["draft"] != VERSION.decode():
            _check.refuse("draft", f"be {VERSION.decode()!r}", fields["draft"], "both ends must speak it")
        key = fields["collector"]
        modes = {mode.name.lower(): mode for mode in BatchMode}
        try:
            collector = HpkeConfig(key["id"], bytes.fromhex(key["public_key"]))
            task_id, mode = unbase64url(fields["task_id"], TASK_ID_SIZE), modes[fields["batch_mode"]]
        except (KeyError, TypeError, ValueError):
            _check.refuse_state(
                "task", "have a key, an id and a batch mode", "one of them is another", _REMEDY
            )
        names = ("leader", "helper", "vdaf", "min_batch_size", "time_precision", "start", "duration")
        given = {name: fields[name] for name in (*names, "epsilon", "delta")}
        return cls(task_id=task_id or b"", collector=collector, batch_mode=mode, **given)


def _check_url(name: str, url: object) -> None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        whole = bool(parts.hostname) and parts.port != 0 and not (parts.query or parts.fragment)
    except ValueError:
        whole = False
    if not whole or parts.scheme not in ("http", "https") or parts.username is not None:
        _check.refuse(name, "be an http:// or https:// URL without a query", url, "leave out what follows ?")
