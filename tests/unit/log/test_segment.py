"""Which files make a version, and what is refused."""

from __future__ import annotations

import random

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import (
    CheckpointMissingError,
    CheckpointUnreadableError,
    InvalidInputError,
    LogGapError,
    MalformedLogError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.log import names
from deltalog.log.names import LogFile, LogFileKind
from deltalog.log.segment import CheckpointKind, LogListing, build_segment, sort_listing

LOW = "00000000-0000-0000-0000-000000000000"
HIGH = "ffffffff-0000-0000-0000-000000000000"


def listing(*file_names: str, empty: str = "") -> LogListing:
    files = [
        FileInfo(f"_delta_log/{name}", 0 if name == empty else 10, 1)
        for name in random.Random(0).sample(file_names, len(file_names))
    ]
    return sort_listing(files, table="memory://t")


def commits(*versions: int) -> list[str]:
    return [names.commit_name(version) for version in versions]


def versions_of(log: LogListing, version: int | None = None) -> tuple[int | None, list[int]]:
    segment = build_segment(log, version)
    start = None if segment.checkpoint is None else segment.checkpoint.version
    return start, [commit.version for commit in segment.commits]


@pytest.mark.protocol("OV-02", "LOG-12")
def test_without_a_checkpoint_every_commit_counts() -> None:
    assert versions_of(listing(*commits(*range(25)))) == (None, list(range(25)))
    assert versions_of(listing(*commits(*range(25))), 3) == (None, [0, 1, 2, 3])


@pytest.mark.protocol("CKPT-01", "CKPT-24", "D-24")
def test_a_checkpoint_stands_for_the_commits_before() -> None:
    log = listing(names.checkpoint_name(10), *commits(*range(10, 15)))
    assert versions_of(log) == (10, [11, 12, 13, 14])
    assert versions_of(log, 10) == (10, [])


@pytest.mark.protocol("D-24")
def test_the_commit_of_the_checkpoint_may_be_gone() -> None:
    assert versions_of(listing(names.checkpoint_name(10), *commits(11))) == (10, [11])
    assert versions_of(listing(names.checkpoint_name(10))) == (10, [])


@pytest.mark.protocol("LOG-11")
def test_a_hole_below_a_checkpoint_hides_only_what_needs_it() -> None:
    log = listing(names.checkpoint_name(3), *commits(0, 1, 3))
    assert versions_of(log) == (3, [])
    assert versions_of(log, 1) == (None, [0, 1])
    with pytest.raises(LogGapError, match="commit 2 is missing"):
        build_segment(log, 2)


@pytest.mark.protocol("OV-02", "D-24")
def test_a_hole_breaks_the_versions_after_it_and_no_others() -> None:
    log = listing(*commits(0, 2))
    for version in (None, 2):
        with pytest.raises(LogGapError, match=r"commit 1 is missing; .* can be opened: 0$"):
            build_segment(log, version)
    assert versions_of(log, 0) == (None, [0])
    log = listing(names.checkpoint_name(10), *commits(10, 11, 13))
    for version in (None, 13):
        with pytest.raises(LogGapError, match=r"commit 12 is missing; .* can be opened: 10 to 11$"):
            build_segment(log, version)
    assert versions_of(log, 10) == (10, [])
    assert versions_of(log, 11) == (10, [11])


def test_an_error_names_the_versions_before_and_behind_a_hole() -> None:
    log = listing(names.checkpoint_name(5), *commits(0, 1, 3, 5, 6, 8))
    with pytest.raises(LogGapError, match=r"can be opened: 0 to 1, 5 to 6$"):
        build_segment(log)


def test_what_is_not_there_is_told_apart() -> None:
    log = listing(names.checkpoint_name(4), *commits(3, 4, 5))
    with pytest.raises(TableNotFoundError):
        build_segment(listing("_last_checkpoint"))
    with pytest.raises(VersionNotFoundError, match="latest version is 5"):
        build_segment(log, 6)
    with pytest.raises(InvalidInputError):
        build_segment(log, -1)
    with pytest.raises(CheckpointMissingError, match="earliest readable version is 4"):
        build_segment(log, 3)
    with pytest.raises(CheckpointMissingError):
        build_segment(listing(*commits(5, 6)))


@pytest.mark.protocol("CKPT-07", "CKPT-08", "D-22")
def test_an_incomplete_set_of_parts_is_nothing() -> None:
    parts = [names.checkpoint_part_name(20, 1, 2), names.checkpoint_part_name(20, 2, 3)]
    log = listing(*parts, names.checkpoint_name(10), *commits(*range(10, 22)))
    assert versions_of(log) == (10, list(range(11, 22)))


@pytest.mark.protocol("CKPT-06")
def test_a_complete_set_of_parts_is_in_order() -> None:
    log = listing(*[names.checkpoint_part_name(20, part, 12) for part in range(1, 13)])
    checkpoint = build_segment(log).checkpoint
    assert checkpoint is not None
    assert checkpoint.kind is CheckpointKind.MULTI_PART
    assert [info.name for info in checkpoint.files] == [
        names.checkpoint_part_name(20, part, 12) for part in range(1, 13)
    ]


@pytest.mark.protocol("B-16", "D-23")
def test_of_several_checkpoints_the_order_is_sparks() -> None:
    two = [names.checkpoint_part_name(5, part, 2) for part in (1, 2)]
    three = [names.checkpoint_part_name(5, part, 3) for part in (1, 2, 3)]
    low, high = (names.v2_checkpoint_name(5, uuid, "json") for uuid in (LOW, HIGH))
    left = [names.checkpoint_name(5), *two, *three, low, high]
    for winner in (high, low, three[0], two[0], names.checkpoint_name(5)):
        checkpoint = build_segment(listing(*left)).checkpoint
        assert checkpoint is not None
        assert checkpoint.name == winner
        left = [name for name in left if name not in {info.name for info in checkpoint.files}]


@pytest.mark.protocol("B-17")
def test_an_empty_checkpoint_file_is_ignored() -> None:
    newest = names.checkpoint_name(3)
    log = listing(newest, names.checkpoint_name(1), *commits(1, 2, 3), empty=newest)
    assert versions_of(log) == (1, [2, 3])


def test_an_unreadable_checkpoint_gives_way() -> None:
    log = listing(names.checkpoint_name(2), names.checkpoint_name(4), *commits(*range(1, 6)))
    broken = {names.checkpoint_name(4): "torn"}
    checkpoint = build_segment(log, unreadable=broken).checkpoint
    assert checkpoint is not None
    assert checkpoint.version == 2
    broken[names.checkpoint_name(2)] = "torn too"
    with pytest.raises(CheckpointUnreadableError, match="torn too"):
        build_segment(log, unreadable=broken)


@pytest.mark.protocol("B-18", "D-54")
def test_compactions_stand_in_only_where_they_fit() -> None:
    log = listing(
        *commits(*range(12)),
        names.checkpoint_name(3),
        names.compaction_name(2, 6),
        names.compaction_name(4, 6),
        names.compaction_name(5, 6),
        names.compaction_name(7, 9),
        names.compaction_name(8, 11),
    )

    def covered(version: int | None) -> list[tuple[int, int]]:
        return [
            (file.version, file.end_version)
            for file in build_segment(log, version).files_newest_first()
        ]

    assert covered(None) == [(8, 11), (7, 0), (4, 6)]
    assert covered(9) == [(7, 9), (4, 6)]
    assert covered(5) == [(5, 0), (4, 0)]


@pytest.mark.protocol("B-43")
def test_ratified_commits_count_up_to_the_catalogs_version() -> None:
    staged = FileInfo(f"_delta_log/_staged_commits/{1:020d}.{LOW}.json", 1, 1)
    log = sort_listing(
        [FileInfo(f"_delta_log/{name}", 1, 1) for name in commits(0, 2)],
        table="memory://t",
        ratified=[LogFile(LogFileKind.COMMIT, 1, staged)],
        last=1,
    )
    assert versions_of(log) == (None, [0, 1])
    assert build_segment(log).target_commit == staged


@pytest.mark.protocol("B-43")
def test_the_catalogs_commit_counts_and_not_a_published_one() -> None:
    staged = FileInfo(f"_delta_log/_staged_commits/{1:020d}.{LOW}.json", 1, 1)
    log = sort_listing(
        [FileInfo(f"_delta_log/{name}", 1, 1) for name in commits(0, 1)],
        table="memory://t",
        ratified=[LogFile(LogFileKind.COMMIT, 1, staged)],
        last=1,
    )
    assert build_segment(log).target_commit == staged


@pytest.mark.protocol("LOG-02")
@pytest.mark.parametrize("name", ["{}.json", "{}.checkpoint.parquet"])
@pytest.mark.parametrize("version", [2**63, 10**20 - 1])
def test_a_version_beyond_64_bits_is_refused_by_its_file(name: str, version: int) -> None:
    odd = name.format(f"{version:020d}")
    files = [FileInfo(f"_delta_log/{one}", 1, 0) for one in (names.commit_name(0), odd)]
    with pytest.raises(MalformedLogError, match=f"found the file '{odd}'"):
        sort_listing(files, table="t")
    highest = [FileInfo(f"_delta_log/{names.commit_name(2**63 - 1)}", 1, 0)]
    assert list(sort_listing(highest, table="t").commits) == [2**63 - 1]
