"""Version checksums."""

from __future__ import annotations

import pytest

from deltalog._util.json import dumps
from deltalog.log.checksum import parse_checksum
from tests.support import logs

BASE = {
    "tableSizeBytes": 10,
    "numFiles": 2,
    "numMetadata": 1,
    "numProtocol": 1,
    "protocol": logs.PROTOCOL["protocol"],
    "metadata": logs.metadata()["metaData"],
}


@pytest.mark.protocol("B-19")
@pytest.mark.parametrize("spelling", ["fileSizeHistogram", "histogramOpt"])
def test_members_are_read(spelling: str) -> None:
    text = dumps(
        {
            **BASE,
            "txnId": "t",
            "inCommitTimestampOpt": 5,
            "setTransactions": [logs.txn("a", 1)["txn"]],
            "domainMetadata": [logs.domain("d")["domainMetadata"]],
            "numDeletedRecordsOpt": 3,
            "numDeletionVectorsOpt": 1,
            spelling: {"sortedBinBoundaries": [0]},
        }
    )
    checksum = parse_checksum(text)
    assert checksum is not None
    assert (checksum.table_size_bytes, checksum.num_files) == (10, 2)
    assert checksum.in_commit_timestamp_ms == 5
    assert checksum.set_transactions is not None
    assert checksum.set_transactions[0].app_id == "a"
    assert checksum.domain_metadata is not None
    assert checksum.domain_metadata[0].domain == "d"
    assert checksum.num_deleted_records == 3
    assert checksum.file_size_histogram == {"sortedBinBoundaries": [0]}


def test_what_was_not_recorded_is_none() -> None:
    checksum = parse_checksum(dumps(BASE))
    assert checksum is not None
    assert checksum.set_transactions is None
    assert checksum.in_commit_timestamp_ms is None


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([1, 0, 2], (1, 0, 2)), ([1, "2"], None), ([1, True], None), ("12", None), (None, None)],
)
def test_counts_are_whole_numbers_or_not_known(counts: object, expected: object) -> None:
    found = {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": counts}}
    checksum = parse_checksum(dumps({**BASE, **found}))
    assert checksum is not None
    assert checksum.deleted_record_counts == expected


@pytest.mark.protocol("D-53")
@pytest.mark.parametrize(
    "data",
    [b"", b"crc", b"[]", b"{}", dumps({**BASE, "numFiles": "x"}), dumps({**BASE, "metadata": {}}),
     dumps({**BASE, "setTransactions": 3})],
)  # fmt: skip
def test_a_damaged_checksum_is_none(data: bytes) -> None:
    assert parse_checksum(data) is None
