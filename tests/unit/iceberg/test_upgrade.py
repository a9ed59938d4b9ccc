"""`optimize.upgrade_uniform` and `REORG … UPGRADE UNIFORM`: what it takes, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import deltalog
from deltalog import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.operations.alter import SetTableProperties
from deltalog.operations.engine import LocalEngine

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = {"delta.enableDeletionVectors": "true"}


def shown(path: Path) -> list[Any]:
    location = DeltaTable(path).sync_iceberg().metadata_location
    found: list[Any] = StaticTable.from_metadata(location).scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def with_vectors(path: Path) -> Path:
    """A table of two files, of which one has a deletion vector."""
    for start in (0, 100):
        rows = pa.table({"id": pa.array(range(start, start + 100), pa.int64())})
        write_deltalake(path, rows, mode="append", configuration=VECTORS)
    DeltaTable(path).delete("id = 7")
    return path


def test_a_dry_run_says_what_it_takes(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    table = DeltaTable(path)
    sizes = {one["path"]: one["size_bytes"] for one in table.get_add_actions().to_pylist()}

    plan = table.optimize.upgrade_uniform(dry_run=True)

    assert (plan.num_files, plan.num_files_to_rewrite, plan.metrics) == (2, 1, None)
    assert plan.size_bytes_to_rewrite in sizes.values()
    assert plan.properties == {
        "delta.enableIcebergCompatV2": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "false",
        "delta.universalFormat.enabledFormats": "iceberg",
    }
    assert DeltaTable(path).version() == 2


def test_files_with_vectors_are_rewritten_and_no_others(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    before = set(DeltaTable(path).file_uris())

    done = DeltaTable(path).optimize.upgrade_uniform()

    assert done.metrics is not None
    assert done.metrics["numDeletedRowsPurged"] == 1
    assert len(before & set(DeltaTable(path).file_uris())) == 1
    assert shown(path) == [*range(7), *range(8, 200)]
    assert DeltaTable(path).optimize.upgrade_uniform(dry_run=True).properties == {}
    version = DeltaTable(path).version()
    DeltaTable(path).optimize.upgrade_uniform()
    assert DeltaTable(path).version() == version


def test_v3_rewrites_nothing(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    before = set(DeltaTable(path).file_uris())

    done = DeltaTable(path).optimize.upgrade_uniform(3)

    assert done.num_files_to_rewrite == 0
    assert set(DeltaTable(path).file_uris()) == before
    assert shown(path) == [*range(7), *range(8, 200)]
    # V2 takes no vectors: back again they are rewritten.
    back = DeltaTable(path).optimize.upgrade_uniform(2)
    assert back.num_files_to_rewrite == 1
    assert shown(path) == [*range(7), *range(8, 200)]


def test_what_cannot_be_is_refused_before_a_file_is_rewritten(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    optimize = DeltaTable(path).optimize
    with pytest.raises(InvalidInputError, match="expected one of 1, 2, 3"):
        optimize.upgrade_uniform(4)
    with pytest.raises(InvalidInputError, match="drop the feature 'deletionVectors'"):
        optimize.upgrade_uniform(1)
    assert DeltaTable(path).version() == 2


# --- row ids


TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {**TRACKED, "delta.columnMapping.mode": "name"}
RESERVED = {2147483540, 2147483539}
IDS = ["id", "_metadata.row_id", "_metadata.row_commit_version"]


def tracked(path: Path, configuration: dict[str, str]) -> Path:
    """A table of three files: one with row ids of its own, two without."""
    for start in (0, 100, 200):
        rows = pa.table({"id": pa.array(range(start, start + 100), pa.int64())})
        write_deltalake(path, rows, mode="append", configuration=configuration)
    DeltaTable(path).update(predicate="id = 7", updates={"id": "1007"})
    return path


def lineage(path: Path) -> list[dict[str, Any]]:
    found = DeltaTable(path).scan(IDS).to_table()
    return sorted(found.to_pylist(), key=lambda row: int(row["id"]))


def reserved(path: Path) -> dict[str, set[int]]:
    """The reserved field ids in each file."""
    found = {}
    for uri in DeltaTable(path).file_uris():
        schema = pq.read_schema(uri.removeprefix("file://"))
        ids = {int((one.metadata or {}).get(b"PARQUET:field_id", 0)) for one in schema}
        found[uri] = ids & RESERVED
    return found


@pytest.mark.parametrize("configuration", [TRACKED, MAPPED], ids=["plain", "mapped"])
def test_v3_rewrites_the_files_that_hold_row_ids(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    path = tracked(tmp_path / "t", configuration)
    before, files = lineage(path), set(DeltaTable(path).file_uris())
    version = DeltaTable(path).version()

    plan = DeltaTable(path).optimize.upgrade_uniform(3, dry_run=True)
    assert (plan.num_files, plan.num_files_to_rewrite) == (3, 1)
    assert plan.size_bytes_to_rewrite > 0
    with pytest.raises(InvalidInputError, match="row ids of 1 of 3 files are in columns without"):
        DeltaTable(path).alter.set_table_properties({**plan.properties})
    assert DeltaTable(path).version() == version

    done = DeltaTable(path).optimize.upgrade_uniform(3)

    assert done.metrics is not None
    assert (done.metrics["numFilesAdded"], done.metrics["numFilesRemoved"]) == (1, 1)
    assert len(files & set(DeltaTable(path).file_uris())) == 2
    assert lineage(path) == before
    assert sorted(map(len, reserved(path).values())) == [0, 0, 2]
    assert shown(path) == [row["id"] for row in before]
    assert DeltaTable(path).history(1)[0]["operation"] == "REORG"
    # It is on, and goes on: rows that move keep their ids under Iceberg's.
    DeltaTable(path).update(predicate="id = 250", updates={"id": "1250"})
    assert sorted(map(len, reserved(path).values())) == [0, 2, 2]
    again = DeltaTable(path).optimize.upgrade_uniform(3, dry_run=True)
    assert (again.properties, again.num_files_to_rewrite) == ({}, 0)


def test_v3_rewrites_nothing_where_no_file_holds_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2, 3]}), configuration={**MAPPED, **VECTORS})
    DeltaTable(path).delete("id = 2")
    before, files = lineage(path), DeltaTable(path).file_uris()
    assert DeltaTable(path).optimize.upgrade_uniform(3).num_files_to_rewrite == 0
    assert (lineage(path), DeltaTable(path).file_uris()) == (before, files)
    assert shown(path) == [1, 3]


def test_row_ids_of_an_earlier_table_are_rewritten(tmp_path: Path) -> None:
    """A clone has ids of its own, while its files hold those of the other table."""
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2, 3]}), configuration=MAPPED)
    DeltaTable(path).optimize.upgrade_uniform(3)
    clone = {"delta.enableIcebergCompatV3": "false", "delta.universalFormat.enabledFormats": ""}
    DeltaTable(path).clone(tmp_path / "plain")  # no file holds any
    DeltaTable(path).update(predicate="id = 2", updates={"id": "5"})
    assert [len(one) for one in reserved(path).values()] == [2]
    with pytest.raises(InvalidInputError, match="the row ids in 1 of its files"):
        DeltaTable(path).clone(tmp_path / "c")
    DeltaTable(path).clone(tmp_path / "c", properties=clone)
    before = lineage(tmp_path / "c")

    done = DeltaTable(tmp_path / "c").optimize.upgrade_uniform(3)

    assert done.num_files_to_rewrite == 1
    assert lineage(tmp_path / "c") == before


def test_files_that_are_added_meanwhile_are_looked_at(tmp_path: Path) -> None:
    path = tracked(tmp_path / "t", MAPPED)
    DeltaTable(path).optimize.compact()
    write_deltalake(path, pa.table({"id": pa.array([1], pa.int64())}), mode="overwrite")
    writer, other = DeltaTable(path), DeltaTable(path)
    plan = writer.optimize.upgrade_uniform(3, dry_run=True)
    assert plan.num_files_to_rewrite == 0

    raced: list[int] = []

    def stage(transaction: Any) -> None:
        SetTableProperties(plan.properties).stage(transaction, LocalEngine())
        if not raced:
            raced.append(1)
            other.update(predicate="id = 1", updates={"id": "2"})

    with pytest.raises(InvalidInputError, match="row ids of 1 of 1 file are in columns without"):
        writer.run("SET TBLPROPERTIES", stage)


def test_transactions_of_applications_are_recorded_by_the_last_commit(tmp_path: Path) -> None:
    for number, path in enumerate([with_vectors(tmp_path / "a"), tracked(tmp_path / "b", TRACKED)]):
        properties = CommitProperties(app_transactions=[Transaction("app", 1)])
        DeltaTable(path).optimize.upgrade_uniform(2 + number, commit_properties=properties)
        assert DeltaTable(path).transaction_version("app") == 1
        assert DeltaTable(path).optimize.upgrade_uniform(2 + number, dry_run=True).properties == {}


def test_the_statement_does_the_same(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    text = "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"

    (plan,) = deltalog.sql(f"{text} DRY RUN", t=path).to_arrow().to_pylist()
    assert (plan["numFiles"], plan["numFilesToRewrite"]) == (2, 1)
    (answer,) = deltalog.sql(text, t=path).to_arrow().to_pylist()

    assert answer["metrics"]["numDeletedRowsPurged"] == 1
    assert shown(path) == [*range(7), *range(8, 200)]
    with pytest.raises(InvalidInputError, match="leave out WHERE"):
        deltalog.sql(text.replace("APPLY", "WHERE id = 1 APPLY"), t=path)


def test_a_refused_property_warns_of_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = with_vectors(tmp_path / "t")
    caplog.clear()
    alter = DeltaTable(path).alter
    asked = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    with pytest.raises(InvalidInputError, match=r"use optimize\.upgrade_uniform\(2\), which"):
        alter.set_table_properties(asked)
    with pytest.raises(InvalidInputError, match=r"call optimize\.purge\(\)"):
        alter.set_table_properties({**asked, **dict.fromkeys(VECTORS, "false")})
    assert not caplog.messages
    DeltaTable(path).optimize.upgrade_uniform(2)
    assert any("changing the protocol of" in one for one in caplog.messages)
    assert 7 not in shown(path)


def test_the_first_version_is_answered_with_the_second(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    table = DeltaTable(path)
    with pytest.raises(InvalidInputError, match=r"upgrade_uniform\(2\)") as caught:
        table.optimize.upgrade_uniform(1)
    assert str(caught.value).startswith(f"cannot run REORG on {path}: icebergCompatV1 does not")
    table.optimize.upgrade_uniform(2)
    assert 7 not in shown(path)
