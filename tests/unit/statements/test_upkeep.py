"""OPTIMIZE, REORG, VACUUM, RESTORE, FSCK and GENERATE."""

from __future__ import annotations

import fsspec
import pytest

from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from tests.support.sql_tables import SqlTables


@pytest.fixture
def files(db: SqlTables) -> SqlTables:
    """A table `t` of four files, in two partitions."""
    db.create("t", "(id INT, p INT) -- PARTITIONED BY (p)")
    for start in (0, 10):
        db.run(f"INSERT INTO t SELECT id, id % 2 FROM range({start}, {start + 4})")
    return db


def _num_files(db: SqlTables) -> int:
    (found,) = db.run("DESCRIBE DETAIL t").to_pylist()
    return int(found["numFiles"])


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("OPTIMIZE t", 2),
        ("OPTIMIZE '{root}/t'", 2),
        ("OPTIMIZE delta.`{root}/t`", 2),
        ("OPTIMIZE t WHERE p = 1", 3),
        ("OPTIMIZE t WHERE t.p IN (SELECT 1)", 3),
        ("OPTIMIZE t ZORDER BY (id)", 2),
        ("OPTIMIZE t WHERE p = 0 ZORDER BY id", 3),
    ],
)
def test_small_files_become_large_ones(files: SqlTables, sql: str, left: int) -> None:
    before = files.rows("SELECT * FROM t")
    (row,) = files.run(sql).to_pylist()
    assert _num_files(files) == left
    assert row["metrics"]["numFilesRemoved"] == 2 * (4 - left)
    assert files.rows("SELECT * FROM t") == before


def test_a_condition_on_other_columns_is_answered_with_the_partition_columns(
    files: SqlTables,
) -> None:
    with pytest.raises(InvalidInputError, match=r"partition columns, found id; these are p$"):
        files.run("OPTIMIZE t WHERE id = 1")


def test_a_clustered_table_is_clustered_again(db: SqlTables) -> None:
    db.create("t", "(id INT) -- CLUSTER BY (id)")
    for value in (1, 2, 3):
        db.run("INSERT INTO t VALUES (?)", [value])
    db.run("OPTIMIZE t FULL")
    assert _num_files(db) == 1


def test_deleted_rows_leave_the_files(db: SqlTables) -> None:
    db.create("t", "(id INT) -- TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    db.run("INSERT INTO t SELECT * FROM range(1000)")
    db.run("DELETE FROM t WHERE id = 5")
    (row,) = db.run("REORG TABLE t APPLY (PURGE)").to_pylist()
    assert row["metrics"]["numDeletionVectorsRemoved"] == 1
    assert len(db.rows("SELECT * FROM t")) == 999


def test_unused_files_are_deleted(files: SqlTables) -> None:
    files.run("ALTER TABLE t SET TBLPROPERTIES "
              "('delta.deletedFileRetentionDuration' = 'interval 0 hours')")  # fmt: skip
    files.run("OPTIMIZE t")
    removed = files.values("VACUUM t RETAIN 0 HOURS DRY RUN")
    assert len(removed) == 4
    assert all(path.startswith("memory://") for path in removed)
    assert len(files.rows("SELECT * FROM t@v2")) == 8
    found = files.run("VACUUM t RETAIN 0 HOURS")
    assert found.metrics == {"num_deleted_files": 4}
    assert len(found.to_pylist()) == 1
    assert len(files.rows("SELECT * FROM t")) == 8
    with pytest.raises(DeltaError):
        files.rows("SELECT * FROM t@v2")


def test_an_inventory_tells_the_files(files: SqlTables) -> None:
    files.run("ALTER TABLE t SET TBLPROPERTIES "
              "('delta.deletedFileRetentionDuration' = 'interval 0 hours')")  # fmt: skip
    files.run("OPTIMIZE t")
    system = fsspec.filesystem("memory")
    path = files.root.removeprefix("memory:/") + "/t"
    rows = [
        {"path": one, "length": 1, "isDir": False, "modificationTime": 0}
        for one in system.find(path)
        if one.endswith(".parquet")
    ]
    files.connection.register("inventory", rows)
    sql = "VACUUM t USING INVENTORY (SELECT * FROM inventory LIMIT ?) RETAIN 0 HOURS DRY RUN"
    try:
        assert len(files.values(sql, [100])) <= 4
    except InvalidInputError as error:  # paths of an inventory are those of the table's own store
        assert "inventory" in str(error).lower()  # noqa: PT017


@pytest.mark.parametrize(
    ("sql", "ids"),
    [
        ("RESTORE TABLE t TO VERSION AS OF 0", []),
        ("RESTORE t TO VERSION AS OF 1", [0, 1, 2, 3]),
        ("RESTORE TABLE '{root}/t' TO VERSION AS OF 1", [0, 1, 2, 3]),
        ("RESTORE TABLE t@v1", [0, 1, 2, 3]),
        ("RESTORE TABLE t VERSION AS OF :v", [0, 1, 2, 3]),
    ],
)
def test_an_older_version_comes_back(files: SqlTables, sql: str, ids: list[int]) -> None:
    (row,) = files.run(sql, {"v": 1} if ":v" in sql else None).to_pylist()
    assert files.values("SELECT id FROM t") == ids
    assert row["num_removed_files"] == 4 - row["num_of_files_after_restore"]


def test_missing_files_are_taken_out(files: SqlTables) -> None:
    system = fsspec.filesystem("memory")
    root = files.root.removeprefix("memory:/") + "/t"
    (lost, *_) = [path for path in system.find(root) if path.endswith(".parquet")]
    system.rm(lost)
    missing = files.run("FSCK REPAIR TABLE t DRY RUN").to_pylist()
    assert [row["dataFileMissing"] for row in missing] == [True]
    assert lost.endswith(missing[0]["dataFilePath"])
    assert _num_files(files) == 4
    files.run("FSCK REPAIR TABLE t")
    assert _num_files(files) == 3
    assert len(files.rows("SELECT * FROM t")) == 6


def test_manifests_are_written(files: SqlTables) -> None:
    files.run("GENERATE symlink_format_manifest FOR TABLE t")
    found = fsspec.filesystem("memory").find(files.root.removeprefix("memory:/") + "/t")
    assert sum("_symlink_format_manifest" in path for path in found) == 2


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("OPTIMIZE t WHERE id = 1", "partition columns, found id"),
        ("OPTIMIZE t FULL", "it is not clustered"),
        ("OPTIMIZE t ZORDER BY (nothing)", "nothing"),
        ("OPTIMIZE missing", "cannot find the table missing"),
        ("OPTIMIZE '/no/such/table'", "cannot find the table"),
        ("REORG TABLE t WHERE id = 1 APPLY (PURGE)", "partition columns, found id"),
        ("VACUUM t RETAIN 0 HOURS", "retention of 0 hours"),
        ("VACUUM t RETAIN 1.5 HOURS", "'interval 5400 seconds'"),
        ("VACUUM t RETAIN -1 HOURS", "must not be negative"),
        ("RESTORE TABLE t TO VERSION AS OF 99", "99"),
        ("RESTORE TABLE t TO TIMESTAMP AS OF '2000-01-01'", "earliest version"),
    ],
)
def test_work_that_cannot_be_done_is_refused(files: SqlTables, sql: str, problem: str) -> None:
    with pytest.raises((DeltaError, TableNotFoundError), match=problem):
        files.run(sql)
    assert len(files.history("t")) == 3


def test_a_short_retention_is_confirmed_as_the_error_says(files: SqlTables) -> None:
    """By a statement, because SQL has no arguments."""
    with pytest.raises(DeltaError, match="first shorten it by") as caught:
        files.run("VACUUM t RETAIN 0 HOURS")
    assert "enforce_retention_duration" not in str(caught.value)
    files.run(str(caught.value).partition("first shorten it by ")[2])
    files.run("VACUUM t RETAIN 0 HOURS DRY RUN")
