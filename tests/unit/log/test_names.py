"""Names in the log: what they tell, and which mean nothing."""

from __future__ import annotations

import pytest

from deltalog._util.paths import FileInfo
from deltalog.log import names
from deltalog.log.names import LogFile, LogFileKind, parse_log_name

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def parse(name: str) -> LogFile | None:
    return parse_log_name(FileInfo(f"_delta_log/{name}", 1, 1))


@pytest.mark.protocol("LOG-02", "CKPT-05", "CKPT-06", "B-15", "B-18", "B-19")
@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        (names.commit_name(10), LogFileKind.COMMIT, 10),
        (names.checkpoint_name(10), LogFileKind.CHECKPOINT, 10),
        (names.checkpoint_part_name(10, 2, 3), LogFileKind.CHECKPOINT_PART, 10),
        (names.v2_checkpoint_name(10, UUID, "json"), LogFileKind.CHECKPOINT_V2, 10),
        (names.v2_checkpoint_name(10, UUID, "parquet"), LogFileKind.CHECKPOINT_V2, 10),
        (names.compaction_name(10, 20), LogFileKind.COMPACTION, 10),
        (names.checksum_name(10), LogFileKind.CHECKSUM, 10),
    ],
)
def test_every_name_that_is_written_is_read(name: str, kind: LogFileKind, version: int) -> None:
    file = parse(name)
    assert file is not None
    assert (file.kind, file.version) == (kind, version)


@pytest.mark.protocol("LOG-01", "LOG-02", "CKPT-05", "CKPT-06")
def test_names_are_padded_as_the_protocol_says() -> None:
    assert names.commit_path(10) == "_delta_log/00000000000000000010.json"
    assert names.checkpoint_name(10) == "00000000000000000010.checkpoint.parquet"
    assert (
        names.checkpoint_part_name(10, 1, 3)
        == "00000000000000000010.checkpoint.0000000001.0000000003.parquet"
    )
    assert names.compaction_name(0, 5) == "00000000000000000000.00000000000000000005.compacted.json"
    assert names.checksum_name(0) == "00000000000000000000.crc"


def test_parts_and_ends_are_told() -> None:
    part = parse(names.checkpoint_part_name(7, 2, 3))
    compaction = parse(names.compaction_name(7, 9))
    assert part is not None
    assert (part.part, part.parts) == (2, 3)
    assert compaction is not None
    assert compaction.end_version == 9


@pytest.mark.protocol("LOG-10", "D-53")
@pytest.mark.parametrize(
    "name",
    [
        "0000000000000000007.crc",
        "-0000000000000000007.crc",
        "0_000000000000000007.crc",
        "000000000000000000\u0661\u0662.crc",
        "00000000000000000007.crc2",
        "_last_checkpoint",
        "_last_vacuum_info",
        "0.json",
        "00000000000000000000.json.tmp",
        "00000000000000000000.json.gz",
        "0000000000000000000a.json",
        "\u0660" * 20 + ".json",
        ".00000000000000000000.json.crc",
        ".00000000000000000000.crc.crc",
        "00000000000000000002.checkpoint.parquet.tmp",
        "00000000000000000002.checkpoint.0000000000.0000000002.parquet",
        "00000000000000000002.checkpoint.0000000003.0000000002.parquet",
        "00000000000000000002.checkpoint.parquet.crc",
        "00000000000000000002.checkpoint.no-uuid.parquet",
        "00000000000000000005.00000000000000000005.compacted.json",
        "00000000000000000005.00000000000000000004.compacted.json",
        f"00000000000000000001.{UUID}.json",
        "",
    ],
)
def test_other_names_mean_nothing(name: str) -> None:
    assert parse(name) is None
