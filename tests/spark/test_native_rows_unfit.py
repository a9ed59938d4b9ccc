"""Rows that Spark's own Parquet writer would store in another way: our tasks write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable, Field, Schema
from deltalog.data.write.options import WriterProperties
from deltalog.errors import ConstraintViolationError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.task_writes import WriteJob
from deltalog.spark.engine.rows import SparkRows, are_settings_fit
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.spark.conftest import CONNECT
from tests.support.native_writes import (
    BY_SPARK,
    BY_TASKS,
    TIMESTAMPS,
    adds,
    entries,
    frame_of,
    having,
    rows,
    writers,
)

pytestmark = pytest.mark.skipif(CONNECT, reason="rows of remote sessions are our tasks'")

ID: Final = Field("id", "long")
IDENTITY: Final = {
    "delta.identity.start": 10,
    "delta.identity.step": 5,
    "delta.identity.allowExplicitInsert": False,
}


def created(*fields: Field, **properties: str) -> Callable[[Path], object]:
    """What makes a table of these columns; `__` in the name of a property is a dot."""
    named = {name.replace("__", "."): text for name, text in properties.items()}
    return lambda table: DeltaTable.create(table, Schema([ID, *fields]), configuration=named)


def checked(table: Path) -> None:
    created()(table)
    DeltaTable(table).alter.add_constraint({"small": "id < 100"})


# By name: what makes the table, the frame's columns besides `id`, options, and the rows.
UNFIT: Final[dict[str, tuple[Callable[[Path], object], list[str], dict[str, Any], list[Any]]]] = {
    "replaced rows": (
        created(),
        [],
        {"mode": "overwrite", "replace_where": "id < 5"},
        [(0,), (1,)],
    ),
    "file size": (created(), [], {"target_file_size": 100_000}, [(0,), (1,)]),
    "file size of the table": (
        created(delta__targetFileSize="1mb"),
        [],
        {},
        [(0,), (1,)],
    ),
    "column mapping": (
        created(delta__columnMapping__mode="name"),
        [],
        {},
        [(0,), (1,)],
    ),
    "column mapping by id": (created(delta__columnMapping__mode="id"), [], {}, [(0,), (1,)]),
    "random prefixes": (created(delta__randomizeFilePrefixes="true"), [], {}, [(0,), (1,)]),
    "generated column": (
        created(Field("g", "long", metadata={"delta.generationExpression": "id * 2"})),
        [],
        {},
        [(0, 0), (1, 2)],
    ),
    "generated column with values": (
        created(Field("g", "long", metadata={"delta.generationExpression": "id * 2"})),
        ["id + id AS g"],
        {},
        [(0, 0), (1, 2)],
    ),
    "default": (
        created(
            Field("c", "string", metadata={"CURRENT_DEFAULT": "'d'"}),
            delta__feature__allowColumnDefaults="supported",
        ),
        [],
        {},
        [(0, "d"), (1, "d")],
    ),
    "identity": (
        created(Field("n", "long", metadata=IDENTITY)),
        [],
        {},
        [(0, 10), (1, 15)],
    ),
    "check": (checked, [], {}, [(0,), (1,)]),
    "invariant": (
        created(
            Field(
                "c", "long", metadata={"delta.invariants": '{"expression":{"expression":"c < 9"}}'}
            )
        ),
        ["id AS c"],
        {},
        [(0, 0), (1, 1)],
    ),
    "not null": (created(Field("c", "long", nullable=False)), ["id AS c"], {}, [(0, 0), (1, 1)]),
    "not null within": (
        created(Field("s", Schema([Field("c", "long", nullable=False)]))),
        ["struct(id AS c) AS s"],
        {},
        [(0, {"c": 0}), (1, {"c": 1})],
    ),
    "varchar": (
        created(Field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})),
        ["string(id) AS c"],
        {},
        [(0, "0"), (1, "1")],
    ),
    "collation": (
        created(Field("c", "string").collate("UTF8_LCASE")),
        ["if(id = 0, 'b', 'A') AS c"],
        {},
        [(0, "b"), (1, "A")],
    ),
    "missing column": (created(Field("c", "string")), [], {}, [(0, None), (1, None)]),
    "missing field": (
        created(Field("s", Schema([Field("a", "long"), Field("b", "long")]))),
        ["struct(id AS b) AS s"],
        {},
        [(0, {"a": None, "b": 0}), (1, {"a": None, "b": 1})],
    ),
    "fields in another order": (
        created(Field("s", Schema([Field("a", "long"), Field("b", "long")]))),
        ["struct(id + 5 AS b, id AS a) AS s"],
        {},
        [(0, {"a": 0, "b": 5}), (1, {"a": 1, "b": 6})],
    ),
    "fields in another case": (
        created(Field("s", Schema([Field("a", "long")]))),
        ["struct(id AS A) AS s"],
        {},
        [(0, {"a": 0}), (1, {"a": 1})],
    ),
    "narrower type": (created(Field("c", "long")), ["smallint(id) AS c"], {}, [(0, 0), (1, 1)]),
    "narrower number": (
        created(Field("c", "double")),
        ["float(id / 2) AS c"],
        {},
        [(0, 0.0), (1, 0.5)],
    ),
    "void": (created(Field("c", "string")), ["NULL AS c"], {}, [(0, None), (1, None)]),
}


@pytest.mark.parametrize("name", UNFIT)
def test_our_tasks_write_what_is_not_stored_as_it_comes(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    make, columns, options, expected = UNFIT[name]
    make(tmp_path / "t")
    deltalog.spark.write(frame_of(spark, *columns), tmp_path / "t", **{"mode": "append", **options})
    assert (rows(tmp_path / "t"), writers(tmp_path / "t")) == (expected, BY_TASKS)


def test_without_rules_the_same_frame_is_spark_s(spark: SparkSession, tmp_path: Path) -> None:
    created(Field("c", "long"), Field("s", Schema([Field("a", "long")])))(tmp_path / "t")
    frame = frame_of(spark, "id AS c", "struct(id AS a) AS s")
    deltalog.spark.write(frame, tmp_path / "t", mode="append")
    assert writers(tmp_path / "t") == BY_SPARK
    assert rows(tmp_path / "t") == [(0, 0, {"a": 0}), (1, 1, {"a": 1})]


@pytest.mark.parametrize(
    ("make", "column", "said"),
    [
        (checked, "id + 99 AS id", "CHECK constraint 'small'"),
        (
            created(Field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})),
            "repeat('x', int(id) + 3) AS c",
            "length of column 'c'",
        ),
        (created(Field("c", "long", nullable=False)), "nullif(id, 1) AS c", "NOT NULL"),
    ],
)
def test_rules_hold(
    spark: SparkSession,
    tmp_path: Path,
    make: Callable[[Path], object],
    column: str,
    said: str,
) -> None:
    make(tmp_path / "t")
    before = entries(tmp_path / "t")
    columns = [column] if column.endswith("id") else ["id", column]
    frame = frame_of(spark).selectExpr(*columns)
    with pytest.raises(ConstraintViolationError, match=said):
        deltalog.spark.write(frame, tmp_path / "t", mode="append")
    assert entries(tmp_path / "t") == before


def test_partitions_are_written_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, "if(id = 0, NULL, 'x/y') AS p")
    deltalog.spark.write(frame, tmp_path / "t", partition_by="p")
    assert (rows(tmp_path / "t"), writers(tmp_path / "t")) == ([(0, None), (1, "x/y")], BY_TASKS)
    assert {add["partitionValues"]["p"] for add in adds(tmp_path / "t")} == {None, "x/y"}


@pytest.mark.parametrize(
    "column",
    [
        "parse_json(concat('[', id, ']')) AS v",
        "struct(parse_json(string(id)) AS v) AS s",
        "array(parse_json(string(id))) AS l",
    ],
)
def test_variants_are_written_by_tasks(spark: SparkSession, tmp_path: Path, column: str) -> None:
    frame = frame_of(spark, column)
    deltalog.spark.write(frame, tmp_path / "t")
    assert writers(tmp_path / "t") == BY_TASKS
    shown = [f"to_json(struct({frame.columns[1]}))"]
    read = deltalog.spark.read(spark, tmp_path / "t", native=False)
    assert read.selectExpr(*shown).collect() == frame.selectExpr(*shown).collect()


def test_void_columns_are_written_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame_of(spark, "NULL AS c", "struct(id AS a, NULL AS b) AS s"), tmp_path)
    assert (rows(tmp_path), writers(tmp_path)) == (
        [(0, None, {"a": 0, "b": None}), (1, None, {"a": 1, "b": None})],
        BY_TASKS,
    )


@pytest.mark.parametrize(
    ("setting", "value", "made_by"),
    [
        ("writeLegacyFormat", "true", BY_TASKS),
        ("writeLegacyFormat", "TRUE", BY_TASKS),
        ("writeLegacyFormat", "false", BY_SPARK),
        ("datetimeRebaseModeInWrite", "LEGACY", BY_TASKS),
        ("datetimeRebaseModeInWrite", "EXCEPTION", BY_TASKS),
        ("datetimeRebaseModeInWrite", "corrected", BY_SPARK),
        ("outputTimestampType", "TIMESTAMP_MILLIS", BY_TASKS),
        ("outputTimestampType", "timestamp_millis", BY_TASKS),
        ("outputTimestampType", "INT96", BY_SPARK),
        ("int96RebaseModeInWrite", "LEGACY", BY_TASKS),
    ],
)
def test_settings_by_which_spark_stores_other_values(
    spark: SparkSession, tmp_path: Path, setting: str, value: str, made_by: set[str]
) -> None:
    with having(spark, **{f"spark__sql__parquet__{setting}": value}):
        frame = spark.sql(
            "SELECT DATE'1500-02-28' AS d, TIMESTAMP'1500-02-28 00:00:00.000001' AS t, "
            "1.25BD AS n, array(1) AS l"
        )
        deltalog.spark.write(frame, tmp_path / "t")
        assert spark.conf.get(f"spark.sql.parquet.{setting}") == value
    assert writers(tmp_path / "t") == made_by
    (found,) = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert (str(found["d"]), str(found["t"])) == ("1500-02-28", "1500-02-28 00:00:00.000001+00:00")
    assert (str(found["n"]), found["l"]) == ("1.25", [1])
    (path,) = (tmp_path / "t").glob("*.parquet")
    columns = pq.read_metadata(path).schema
    assert [columns.column(n).path for n in range(4)] == ["d", "t", "n", "l.list.element"]
    assert columns.column(1).physical_type == "INT64"


def test_milliseconds_do_not_concern_tables_without_timestamps(
    spark: SparkSession, tmp_path: Path
) -> None:
    with having(spark, spark__sql__parquet__outputTimestampType="TIMESTAMP_MILLIS"):
        frame = frame_of(spark, "TIMESTAMP_NTZ'2020-01-01 00:00:00.000001' AS w")
        deltalog.spark.write(frame, tmp_path / "t")
    assert writers(tmp_path / "t") == BY_SPARK
    assert {row[1].microsecond for row in rows(tmp_path / "t")} == {1}


@pytest.mark.parametrize(
    ("options", "made_by"),
    [
        ({}, BY_SPARK),
        ({"writer_properties": WriterProperties(compression="ZSTD")}, BY_TASKS),
        ({"target_file_size_bytes": 1 << 20}, BY_TASKS),
    ],
)
def test_options_of_files(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], made_by: set[str]
) -> None:
    created()(tmp_path)
    context = utc_context(open_store(tmp_path))
    spec = FileOptions(**options).spec(context, load_snapshot(context).configuration)
    written = SparkRows(frame_of(spark), gathers=None).write(WriteJob(spec=spec))
    found = [pq.read_metadata(tmp_path / path).created_by.split()[0] for path in written.paths]
    assert (set(found), written.num_rows) == (made_by, 2)


def test_a_store_without_local_paths_is_written_by_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Such as an object store: nothing else is known of it than that it reads and puts files."""
    store = CountingStore(open_store(tmp_path / "t"))
    deltalog.spark.write(frame_of(spark), store)
    assert (rows(tmp_path / "t"), writers(tmp_path / "t")) == ([(0,), (1,)], BY_TASKS)


FIT_SETTINGS: Final[dict[str, str | None]] = {
    "spark.master": "local[2]",
    TIMESTAMPS: None,
    "spark.sql.parquet.writeLegacyFormat": None,
    "spark.sql.parquet.datetimeRebaseModeInWrite": None,
    "spark.sql.parquet.int96RebaseModeInWrite": None,
    "spark.sql.sources.commitProtocolClass": None,
}


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1", False),
        (None, False),
    ],
)
def test_only_sessions_of_one_machine_write_by_themselves(
    master: str | None, *, expected: bool
) -> None:
    """On a cluster, each executor has a disk of its own: its files would not be listed."""
    settings = {**FIT_SETTINGS, "spark.master": master}
    assert are_settings_fit(settings, has_timestamps=True) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol", True),
        ("com.example.InPlaceCommitProtocol", False),
        ("", False),
        (None, True),
    ],
)
def test_jobs_are_published_whole(value: str | None, *, expected: bool) -> None:
    settings = {**FIT_SETTINGS, "spark.sql.sources.commitProtocolClass": value}
    assert are_settings_fit(settings, has_timestamps=True) is expected


def test_what_sessions_say_by_default_is_fit(spark: SparkSession) -> None:
    """None stands for Spark's default, so that has to be as tables need it."""
    told = {name: spark.conf.get(name) for name in FIT_SETTINGS}
    assert are_settings_fit(told, has_timestamps=True)
