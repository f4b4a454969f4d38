"""Messages against another implementation's bytes, and what is no message is refused with a reason.

The hexadecimal strings are from the tests of the crate ``messages`` of divviup/janus (MPL 2.0). Where its
newer drafts frame a message otherwise, the frame is left out here: a length before ``prepare_inits`` (drafts
before 16) and a list of extensions after a collection job's request (drafts after 18).
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from sfumato.crypto.hpke_base import public_point
from sfumato.federated.dap.aggregation_messages import (
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    PingPong,
    PingPongKind,
    PrepareContinue,
    PrepareInit,
    PrepareResp,
    PrepareStep,
)
from sfumato.federated.dap.collection_messages import (
    AggregateShare,
    AggregateShareAad,
    AggregateShareReq,
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.hpke_config import HpkeConfig, decoded_configs, encoded_configs
from sfumato.federated.dap.report_messages import (
    Extension,
    HpkeCiphertext,
    InputShareAad,
    PlaintextInputShare,
    Report,
    ReportError,
    ReportMetadata,
    ReportShare,
    ReportUploadStatus,
    decoded_reports,
    decoded_statuses,
)
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded

ONE, TWO = bytes(range(1, 17)), bytes(range(16, 0, -1))
WITH = (Extension(0, b"0123"),)
SEALED, OTHER = HpkeCiphertext(42, b"012345", b"543210"), HpkeCiphertext(13, b"abce", b"abfd")
TEN, TWELVE = HpkeCiphertext(10, b"0123", b"4567"), HpkeCiphertext(12, b"01234", b"567")
SHARES = (
    ReportShare(ReportMetadata(ONE, 54321), b"", SEALED),
    ReportShare(ReportMetadata(TWO, 73542, WITH), b"0123", OTHER),
)
INITS = (
    PrepareInit(SHARES[0], PingPong(PingPongKind.INITIALIZE, share=b"012345").to_bytes()),
    PrepareInit(SHARES[1], PingPong(PingPongKind.FINISH).to_bytes()),
)
BY_TIME, BY_LEADER = BatchMode.TIME_INTERVAL, BatchMode.LEADER_SELECTED
FIRST = (
    "0102030405060708090A0B0C0D0E0F10000000000000D431000000000000" + "2A000630313233343500000006353433323130"
)
SECOND = (
    "100F0E0D0C0B0A0908070605040302010000000000011F4600080000000430313233"
    "00000004303132330D0004616263650000000461626664"
)
ANSWER = (
    "000000000000D4310000000000003039" + "0A0004303132330000000434353637" + "0C0005303132333400000003353637"
)
CASES: list[tuple[Any, Any, str]] = [
    (HpkeCiphertext.read, TEN, "0A0004303132330000000434353637"),
    (HpkeCiphertext.read, TWELVE, "0C0005303132333400000003353637"),
    (
        HpkeConfig.read,
        HpkeConfig(23, b"0123456789abcdef", 0x20, 1, 3),
        "17002000010003001030313233343536373839616263646566",
    ),
    (Extension.read, Extension(0, b""), "00000000"),
    (Extension.read, Extension(0xFF00, b"0123"), "FF00000430313233"),
    (
        ReportMetadata.read,
        ReportMetadata(ONE, 12345),
        "0102030405060708090A0B0C0D0E0F1000000000000030390000",
    ),
    (
        ReportMetadata.read,
        ReportMetadata(TWO, 54321, WITH),
        "100F0E0D0C0B0A090807060504030201000000000000D43100080000000430313233",
    ),
    (PlaintextInputShare.read, PlaintextInputShare((), b"0123"), "00000000000430313233"),
    (
        PlaintextInputShare.read,
        PlaintextInputShare(WITH, b"4567"),
        "000800000004303132330000000434353637",
    ),
    (
        Report.read,
        Report(ReportMetadata(ONE, 12345), b"", SEALED, OTHER),
        (
            "0102030405060708090A0B0C0D0E0F100000000000003039000000000000"
            "2A0006303132333435000000063534333231300D0004616263650000000461626664"
        ),
    ),
    (
        Report.read,
        Report(ReportMetadata(TWO, 54321, WITH), b"3210", SEALED, OTHER),
        (
            "100F0E0D0C0B0A090807060504030201000000000000D431000800000004303132330000000433323130"
            "2A0006303132333435000000063534333231300D0004616263650000000461626664"
        ),
    ),
    (
        InputShareAad.read,
        InputShareAad(b"\x0c" * 32, ReportMetadata(ONE, 54321, WITH), b"0123"),
        "0C" * 32
        + "0102030405060708090A0B0C0D0E0F10000000000000D43100080000000430313233"
        + "0000000430313233",
    ),
    (ReportShare.read, SHARES[0], FIRST),
    (ReportShare.read, SHARES[1], SECOND),
    (PrepareInit.read, INITS[0], FIRST + "0000000B" + "0000000006303132333435"),
    (PrepareInit.read, INITS[1], SECOND + "00000005" + "0200000000"),
    (
        PrepareResp.read,
        PrepareResp(
            ONE, PrepareStep.CONTINUE, PingPong(PingPongKind.CONTINUE, b"012345", b"6789").to_bytes()
        ),
        "0102030405060708090A0B0C0D0E0F1000000000130100000006303132333435" + "0000000436373839",
    ),
    (
        PrepareResp.read,
        PrepareResp(TWO, PrepareStep.FINISH),
        "100F0E0D0C0B0A09080706050403020101",
    ),
    (
        PrepareResp.read,
        PrepareResp(b"\xff" * 16, PrepareStep.REJECT, error=ReportError.VDAF_PREP_ERROR),
        "FF" * 16 + "0206",
    ),
    (
        AggregationJobInitReq.read,
        AggregationJobInitReq(b"012345", BatchQuery(BY_TIME), INITS),
        "00000006303132333435"
        "010000" + FIRST + "0000000B0000000006303132333435" + SECOND + "000000050200000000",
    ),
    (BatchQuery.read_partial, BatchQuery(BY_TIME), "010000"),
    (BatchQuery.read_partial, BatchQuery(BY_LEADER, batch_id=b"\x03" * 32), "020020" + "03" * 32),
    (
        CollectionJobReq.read,
        CollectionJobReq(BatchQuery(BY_TIME, Interval(54321, 12345))),
        "010010000000000000D431000000000000303900000000",
    ),
    (
        CollectionJobReq.read,
        CollectionJobReq(BatchQuery(BY_TIME, Interval(48913, 44721)), b"012345"),
        "010010000000000000BF11000000000000AEB100000006303132333435",
    ),
    (CollectionJobReq.read, CollectionJobReq(BatchQuery(BY_LEADER)), "02000000000000"),
    (
        CollectionJobResp.read,
        CollectionJobResp(BatchQuery(BY_TIME), 23, Interval(54321, 12345), TEN, TWELVE),
        "0100000000000000000017" + ANSWER,
    ),
    (
        CollectionJobResp.read,
        CollectionJobResp(
            BatchQuery(BY_LEADER, batch_id=b"\x03" * 32), 0, Interval(54321, 12345), TEN, TWELVE
        ),
        "020020" + "03" * 32 + "0000000000000000" + ANSWER,
    ),
]
OWN: list[tuple[Any, Any]] = [
    (AggregationJobResp.read, AggregationJobResp((PrepareResp(ONE, PrepareStep.FINISH),))),
    (AggregationJobContinueReq.read, AggregationJobContinueReq(1, (PrepareContinue(ONE, b"x"),))),
    (AggregateShare.read, AggregateShare(TEN)),
    (
        AggregateShareReq.read,
        AggregateShareReq(BatchQuery(BY_TIME, Interval(7, 2)), b"", 23, bytes(range(32))),
    ),
    (AggregateShareAad.read, AggregateShareAad(bytes(32), b"p", BatchQuery(BY_LEADER, batch_id=bytes(32)))),
    (ReportUploadStatus.read, ReportUploadStatus(ONE, ReportError.TASK_EXPIRED)),
    (PingPong.read, PingPong(PingPongKind.FINISH, b"ab")),
]


def test_messages_are_the_other_implementations_bytes() -> None:
    for read, value, text in CASES:
        assert value.to_bytes().hex().upper() == text, value
        assert decoded(bytes.fromhex(text), read) == value


def test_messages_come_back() -> None:
    for read, value in OWN:
        assert decoded(value.to_bytes(), read) == value
    reports = tuple(value for read, value, _ in CASES if read is Report.read)
    assert decoded_reports(b"".join(one.to_bytes() for one in reports)) == reports
    statuses = (
        ReportUploadStatus(ONE, ReportError(3)).to_bytes()
        + ReportUploadStatus(TWO, ReportError(9)).to_bytes()
    )
    assert [(one.report_id, one.error.value) for one in decoded_statuses(statuses)] == [(ONE, 3), (TWO, 9)]
    point = public_point(bytes(32))
    configs = (HpkeConfig(1, point), HpkeConfig(2, point, aead=3), HpkeConfig(3, b"x", kem=0x10))
    assert decoded_configs(encoded_configs(*configs)) == configs
    assert [one.usable for one in configs] == [True, True, False]


def test_errors_have_the_drafts_numbers() -> None:
    names = (
        "RESERVED BATCH_COLLECTED REPORT_REPLAYED REPORT_DROPPED HPKE_UNKNOWN_CONFIG_ID HPKE_DECRYPT_ERROR"
    )
    names += " VDAF_PREP_ERROR TASK_EXPIRED INVALID_MESSAGE REPORT_TOO_EARLY TASK_NOT_STARTED"
    names += " OUTDATED_CONFIG"
    assert [one.name for one in ReportError] == names.split()
    assert [one.value for one in ReportError] == list(range(12))


def test_every_truncation_and_every_longer_message_is_refused() -> None:
    whole = (AggregationJobInitReq.read, AggregationJobResp.read, AggregationJobContinueReq.read)
    for read, value in [(read, value) for read, value, _ in CASES] + OWN:
        data = value.to_bytes()
        with pytest.raises(MalformedMessage):
            decoded(data + b"\x00", read)
        for size in range(len(data)):
            if read in whole:  # ends between two elements are ends of shorter messages
                continue
            with pytest.raises(MalformedMessage):
                decoded(data[:size], read)


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (HpkeCiphertext.read, "0AFFFF30", "ends too early"),
        (HpkeCiphertext.read, "0A000130FFFFFFFF00", "ends too early"),
        (HpkeCiphertext.read, "0A00000000000130", "shorter than it may be"),
        (ReportError.read, "0C", "unknown number"),
        (PingPong.read, "0300000000", "unknown number"),
        (PrepareResp.read, "00" * 16 + "03", "unknown number"),
        (BatchQuery.read_query, "000000", "unknown number"),
        (BatchQuery.read_query, "030000", "unknown number"),
        (BatchQuery.read_query, "020020" + "00" * 32, "bytes follow"),
        (BatchQuery.read_partial, "010010" + "00" * 16, "bytes follow"),
        (BatchQuery.read_selector, "01000F" + "00" * 15, "ends too early"),
        (BatchQuery.read_selector, "020021" + "00" * 33, "bytes follow"),
        (Interval.read, "FF" * 8 + "00" * 7 + "01", "after all times"),
        (ReportMetadata.read, "00" * 24 + "0003000000", "ends too early"),
    ],
)
def test_the_reason_is_told(read: Any, text: str, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        decoded(bytes.fromhex(text), read)


def test_lists_of_keys_are_not_empty_and_name_each_once() -> None:
    one = HpkeConfig(1, bytes(32))
    with pytest.raises(MalformedMessage, match="empty"):
        decoded_configs(b"\x00\x00")
    with pytest.raises(MalformedMessage, match="one id"):
        decoded_configs(encoded_configs(one, one))


def test_elements_without_bytes_do_not_fill_the_memory() -> None:
    with pytest.raises(MalformedMessage, match="no bytes"):
        Reader(b"x").rest(lambda reader: reader.fixed(0))


def test_mutated_messages_are_refused_or_other_messages() -> None:
    chance = random.Random(22)
    refused = 0
    for read, value, _ in CASES:
        data = value.to_bytes()
        for _ in range(40):
            mutated = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            try:
                found = decoded(bytes(mutated), read)
            except MalformedMessage:
                refused += 1
            else:  # the encoding is canonical: what is read is written as it came
                assert found.to_bytes() == bytes(mutated)
    assert refused > 100
