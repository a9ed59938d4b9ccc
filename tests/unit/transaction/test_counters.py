"""Counters at the end of their range: refused before the commit, never acknowledged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, InvalidMetadataError
from deltalog.log.names import commit_path
from deltalog.protocol.actions import DeletionVectorDescriptor
from deltalog.transaction import commit
from deltalog.transaction.properties import CommitProperties, Transaction
from tests.support.logs import PROTOCOL, DictStore, Json, classic_checkpoint, domain, metadata
from tests.support.logs import commit as put_commit
from tests.support.transactions import new_file, pending, table

LAST = 2**63 - 1
TRACKING = ("rowTracking", "domainMetadata")


def marked(mark: int) -> Json:
    return domain("delta.rowTracking", json.dumps({"rowIdHighWaterMark": mark}))


def refused(store: DictStore, act: Callable[[], object], words: str) -> None:
    """The commit is refused, nothing is written, and the table is read as before."""
    before = dict(store.files)
    with pytest.raises(DeltaError, match=words):
        act()
    assert {path: data for path, data in store.files.items() if "_delta_log" in path} == {
        path: data for path, data in before.items() if "_delta_log" in path
    }
    DeltaTable(store).snapshot.files()


@pytest.mark.parametrize(("rows", "mark"), [(1, LAST - 1), (3, LAST - 3), (1, None)])
def test_the_last_row_ids_are_given(rows: int, mark: int | None) -> None:
    store = table(*([[marked(mark)]] if mark is not None else []), features=TRACKING)
    given = commit(pending(store, new_file("a", rows))).snapshot
    assert given.row_id_high_water_mark == (-1 if mark is None else mark) + rows
    assert DeltaTable(store).snapshot.files(["baseRowId"])["baseRowId"].to_pylist() == [
        (-1 if mark is None else mark) + 1
    ]


@pytest.mark.parametrize(
    ("counts", "mark"),
    [([1], LAST), ([3], LAST - 2), ([1, 1, 1], LAST - 2), ([LAST, LAST], -1), ([2**62] * 3, 5)],
)
def test_row_ids_end(counts: list[int], mark: int) -> None:
    store = table([marked(mark)], features=TRACKING)
    files = [new_file(f"{number}", count) for number, count in enumerate(counts)]
    refused(store, lambda: commit(pending(store, *files)), "would exceed the maximum")


@pytest.mark.parametrize("base", [LAST, LAST - 1])
def test_row_ids_that_files_bring_along_end(base: int) -> None:
    store = table(features=TRACKING)
    file = replace(new_file("a", 3), base_row_id=base, default_row_commit_version=1)
    refused(store, lambda: commit(pending(store, file)), "would exceed the maximum")


def test_row_ids_of_a_backfill_end() -> None:
    files = [new_file(name, 2**62) for name in "abc"]
    store = table(
        [{"add": _line(file)} for file in files],
        [marked(-1)],
        features=TRACKING,
    )

    def add_again() -> None:
        tx = pending(store)
        tx.add_again(tx.read_snapshot.files())
        commit(tx)

    refused(store, add_again, "would exceed the maximum")


def _line(file: Any) -> Json:
    return {
        "path": file.path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": file.stats,
    }


def test_a_negative_number_of_rows_gives_no_ids() -> None:
    store = table([marked(9)], features=TRACKING)
    refused(
        store,
        lambda: commit(pending(store, new_file("a", -5))),
        "numRecords in its statistics is -5",
    )


@pytest.mark.parametrize("time_ms", [LAST, LAST - 1])
def test_in_commit_timestamps_end(time_ms: int) -> None:
    store = table(
        [{"commitInfo": {"inCommitTimestamp": time_ms, "operation": "X"}}],
        features=("inCommitTimestamp",),
        configuration={"delta.enableInCommitTimestamps": "true"},
    )
    if time_ms < LAST:
        assert commit(pending(store, new_file("a"))).snapshot.commit_timestamp_ms == LAST
    refused(store, lambda: commit(pending(store, new_file("b"))), "a later timestamp does not fit")


def test_versions_end() -> None:
    store = DictStore()
    put_commit(store, LAST, PROTOCOL, metadata())
    classic_checkpoint(store, LAST, [PROTOCOL, metadata()])
    assert DeltaTable(store).version() == LAST
    refused(store, lambda: commit(pending(store, new_file("a"))), "the highest possible version")


@pytest.mark.parametrize("version", [LAST + 1, -LAST - 2])
def test_versions_of_applications_end(version: int) -> None:
    store = table()

    def write(one: int, updated: int | None = None) -> None:
        given = CommitProperties(app_transactions=[Transaction("app", one, updated)])
        rows = pa.table({"id": [1], "p": ["x"]})
        write_deltalake(store, rows, mode="append", commit_properties=given)

    refused(store, lambda: write(version), "does not fit 64 bits")
    refused(store, lambda: write(1, version), "does not fit 64 bits")

    def in_transaction() -> None:
        with DeltaTable(store).transaction() as transaction:
            transaction.set_app_transaction("app", version)

    refused(store, in_transaction, "does not fit 64 bits")
    # A version below 0 is a version like others, and not what an unknown application has.
    write(-LAST - 1)
    write(-5)
    write(-7)
    write(LAST)
    assert DeltaTable(store).count() == 3
    assert DeltaTable(store).transaction_version("app") == LAST


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"size_bytes": LAST + 1}, "size_bytes"),
        ({"modification_time_ms": -LAST - 2}, "modification_time_ms"),
        ({"base_row_id": LAST + 1}, "base_row_id"),
        ({"default_row_commit_version": LAST + 1}, "default_row_commit_version"),
    ],
)
def test_numbers_of_a_file_end(members: dict[str, int], words: str) -> None:
    store = table()
    file = replace(new_file("a"), **members)  # type: ignore[arg-type]  # numbers
    refused(store, lambda: commit(pending(store, file)), words)


@pytest.mark.parametrize(
    ("members", "bits"),
    [
        ({"cardinality": LAST + 1}, 64),
        ({"size_bytes": 2**31}, 32),
        ({"offset": 2**31}, 32),
        ({"max_row_index": LAST + 1}, 64),
    ],
)
def test_numbers_of_a_deletion_vector_end(members: dict[str, int], bits: int) -> None:
    store = table(features=("deletionVectors",))
    vector = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv="x", size_bytes=1, cardinality=1
    )
    file = replace(new_file("a"), deletion_vector=replace(vector, **members))  # type: ignore[arg-type]
    refused(store, lambda: commit(pending(store, file)), f"does not fit {bits} bits")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_numbers_of_a_commit_s_own_metadata_end(number: int) -> None:
    with pytest.raises(InvalidInputError, match="custom_metadata"):
        CommitProperties(custom_metadata={"x": [{"y": number}]})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("delta.setTransactionRetentionDuration", "interval 99999999999999 weeks"),
        ("delta.deletedFileRetentionDuration", "interval 9223372036854775808 microseconds"),
        ("delta.logRetentionDuration", "interval 106751992 days"),
        ("delta.targetFileSize", "99999999999tb"),
        ("delta.checkpointInterval", "9223372036854775808"),
    ],
)
def test_properties_end(key: str, text: str) -> None:
    store = table()
    change = {key: text}
    refused(store, lambda: DeltaTable(store).alter.set_table_properties(change), "found")


def test_column_ids_end() -> None:
    mapped = {"delta.columnMapping.id": 2**31 - 1, "delta.columnMapping.physicalName": "x"}
    store = _mapped([_column("a", mapped)], maximum=2**31 - 1)
    added = [Field("b", PrimitiveType("long"))]
    refused(store, lambda: DeltaTable(store).alter.add_columns(added), "32-bit")


def _column(name: str, mapped: dict[str, Any], kind: Any = "long") -> Json:
    return {"name": name, "type": kind, "nullable": True, "metadata": mapped}


def _mapped(fields: list[Json], mode: str = "name", maximum: int = 9) -> DictStore:
    store = DictStore()
    put_commit(
        store,
        0,
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        metadata(
            schemaString=json.dumps({"type": "struct", "fields": fields}),
            configuration={
                "delta.columnMapping.mode": mode,
                "delta.columnMapping.maxColumnId": str(maximum),
            },
        ),
    )
    return store


def _at(number: int, name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}


def _struct(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([_column("a", _at(1, "same")), _column("b", _at(2, "same"))], "'a' and 'b'.*'same'"),
        ([_column("a", _at(1, "x")), _column("b", _at(2, "X"))], "'a' and 'b'.*'X'"),
        ([_column("a", _at(1, "x")), _column("b", _at(1, "y"))], "columnMapping.id 1"),
        (
            [
                _column("a", _at(1, "x")),
                _column("s", _at(2, "s"), _struct(_column("b", _at(1, "b")))),
            ],
            r"'a' and 's.b'.*columnMapping.id 1",
        ),
        (
            [
                _column("a", _at(5, "x")),
                _column(
                    "s",
                    _at(2, "s"),
                    _struct(_column("b", _at(3, "y")), _column("c", _at(4, "Y"))),
                ),
            ],
            r"'s.b' and 's.c'.*'s.Y'",
        ),
    ],
)
def test_columns_of_one_name_or_id_get_no_files(fields: list[Json], words: str, mode: str) -> None:
    store = _mapped(fields, mode)
    before = dict(store.files)
    row = pa.table({"a": [1]})
    for act in (
        lambda: write_deltalake(store, row, mode="append"),
        lambda: write_deltalake(store, row, mode="overwrite"),
        lambda: commit(pending(store, new_file("a"))),
    ):
        with pytest.raises(InvalidMetadataError, match=words):
            act()
    assert store.files == before
    assert DeltaTable(store).schema().names[0] == "a"


def test_two_structs_may_have_fields_of_one_name() -> None:
    inner = [_column("x", _at(number, "x")) for number in (3, 4)]
    fields = [
        _column("a", _at(1, "x")),
        _column("s", _at(2, "s"), _struct(inner[0])),
        _column("t", _at(5, "t"), _struct(inner[1])),
    ]
    store = _mapped(fields)
    write_deltalake(store, pa.table({"a": [1]}), mode="append")
    assert DeltaTable(store).count() == 1
    assert commit_path(1) in store.files


@pytest.mark.parametrize("configuration", [{}, {"delta.checkpointInterval": "1"}])
def test_a_size_that_no_checksum_holds_is_left_out(configuration: dict[str, str]) -> None:
    store = table(configuration=configuration)
    commit(pending(store, replace(new_file("a"), size_bytes=LAST)))
    commit(pending(store, replace(new_file("b"), size_bytes=LAST)))
    commit(pending(store, replace(new_file("c"), size_bytes=3)))
    sizes = [
        json.loads(data)["tableSizeBytes"]
        for path, data in store.files.items()
        if path.endswith(".crc")
    ]
    assert sizes == ([LAST] if configuration else [])
    assert DeltaTable(store).snapshot.num_files == 3
