"""What a commit stands on: its snapshot, then each commit that was faster."""

from __future__ import annotations

from typing import Any

from deltalog._util.paths import FileInfo
from deltalog.log.names import LogFile, LogFileKind
from deltalog.transaction.assemble import NEW_TABLE, CommitBase, advance, first_base
from deltalog.transaction.conflicts import WinningCommit, parse_winner
from tests.support.logs import PROTOCOL, Json, add, domain, metadata, ndjson, remove
from tests.support.transactions import NOW_MS, pending, table

TIMES = {"delta.enableInCommitTimestamps": "true"}
ROW_IDS = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_v",
}


def winner(*actions: Json, version: int = 1) -> WinningCommit:
    file = LogFile(
        kind=LogFileKind.COMMIT,
        version=version,
        info=FileInfo(f"_delta_log/{version:020}.json", 1, NOW_MS + 50),
    )
    return parse_winner(file, ndjson(actions))


def info(**members: Any) -> Json:
    return {"commitInfo": {"operation": "WRITE", **members}}


def test_a_new_table_stands_on_nothing() -> None:
    assert CommitBase().version == NEW_TABLE == -1
    tx = pending(table())
    tx.snapshot = None
    assert first_base(tx) == CommitBase()


def test_a_plain_table_needs_neither_times_nor_row_ids() -> None:
    tx = pending(table())
    base = first_base(tx)
    assert base.version == 0
    assert base.configuration == tx.configuration
    assert (base.previous_commit_timestamp_ms, base.row_id_high_water_mark) == (None, None)


def test_times_and_row_ids_are_looked_up_where_they_count() -> None:
    store = table(
        [domain("delta.rowTracking", '{"rowIdHighWaterMark":41}')],
        features=("rowTracking", "domainMetadata", "inCommitTimestamp"),
        configuration={**TIMES, **ROW_IDS},
    )
    store.files[f"_delta_log/{1:020}.json"] = ndjson(
        [
            info(inCommitTimestamp=NOW_MS + 7),
            domain("delta.rowTracking", '{"rowIdHighWaterMark":41}'),
        ]
    )
    base = first_base(pending(store))
    assert (base.version, base.previous_commit_timestamp_ms) == (1, NOW_MS + 7)
    assert base.row_id_high_water_mark == 41


def test_a_winner_is_the_version_below() -> None:
    tx = pending(table())
    after = advance(first_base(tx), winner(info(), add("x")), tx)
    assert after.version == 1
    assert after.configuration == tx.configuration
    assert after.previous_commit_timestamp_ms == NOW_MS + 50  # the file's own time
    assert (after.gained_row_ids, after.backfilled, after.touched_paths) == (False, None, None)


def test_times_in_commits_count_where_the_table_has_them() -> None:
    own = info(inCommitTimestamp=NOW_MS + 9)
    plain, timed = (
        pending(table(features=features, configuration=configuration))
        for features, configuration in (((), {}), (("inCommitTimestamp",), TIMES))
    )
    assert advance(first_base(plain), winner(own), plain).previous_commit_timestamp_ms == (
        NOW_MS + 50
    )
    assert advance(first_base(timed), winner(own), timed).previous_commit_timestamp_ms == NOW_MS + 9


def test_protocol_and_metadata_of_a_winner_hold_from_then_on() -> None:
    tx = pending(table())
    found = metadata(configuration={"a": "b"})
    after = advance(first_base(tx), winner(info(), found), tx).configuration
    assert after is not None
    assert after.metadata.configuration == {"a": "b"}
    assert after.protocol == tx.configuration.protocol
    raised = {"protocol": {**PROTOCOL["protocol"], "minWriterVersion": 3}}
    changed = advance(first_base(tx), winner(info(), raised), tx).configuration
    assert changed is not None
    assert (changed.protocol.min_writer_version, changed.metadata) == (
        3, tx.configuration.metadata,
    )  # fmt: skip


def test_the_highest_row_id_counts_whoever_gave_it() -> None:
    store = table(
        [domain("delta.rowTracking", '{"rowIdHighWaterMark":41}')],
        features=("rowTracking", "domainMetadata"),
        configuration=ROW_IDS,
    )
    tx = pending(store)
    base = first_base(tx)
    for mark, expected in ((50, 50), (3, 41)):
        text = f'{{"rowIdHighWaterMark":{mark}}}'
        won = winner(info(), domain("delta.rowTracking", text), version=2)
        assert advance(base, won, tx).row_id_high_water_mark == expected
    assert advance(base, winner(info(), version=2), tx).row_id_high_water_mark == 41


def test_row_ids_that_were_switched_on_meanwhile_are_noticed_for_good() -> None:
    tx = pending(table(features=("rowTracking", "domainMetadata")))
    on = advance(first_base(tx), winner(info(), metadata(configuration=ROW_IDS)), tx)
    assert on.gained_row_ids
    had = pending(table(features=("rowTracking", "domainMetadata"), configuration=ROW_IDS))
    again = winner(info(), metadata(configuration={**ROW_IDS, "a": "b"}))
    assert not advance(first_base(had), again, had).gained_row_ids
    assert advance(on, winner(info(), version=2), tx).gained_row_ids


def test_files_of_a_backfill_are_remembered() -> None:
    tx = pending(table(features=("rowTracking", "domainMetadata")))
    base = first_base(tx)
    for version, path in ((1, "x"), (2, "y")):
        filled = add(path, baseRowId=10 * version, defaultRowCommitVersion=version)
        base = advance(
            base, winner(info(operation="ROW TRACKING BACKFILL"), filled, version=version), tx
        )
    base = advance(base, winner(info(), add("z", baseRowId=1), version=3), tx)
    assert base.backfilled is not None
    assert base.backfilled.to_pylist() == [
        {"path": "x", "baseRowId": 10, "defaultRowCommitVersion": 1},
        {"path": "y", "baseRowId": 20, "defaultRowCommitVersion": 2},
    ]


def test_a_backfill_of_our_own_leaves_out_what_others_touched() -> None:
    tx = pending(table(), operation="ROW TRACKING BACKFILL")
    base = advance(first_base(tx), winner(info(), add("a%20b"), remove("c")), tx)
    base = advance(base, winner(info(), remove("d"), version=2), tx)
    assert base.touched_paths is not None
    assert base.touched_paths.to_pylist() == ["a b", "c", "d"]
