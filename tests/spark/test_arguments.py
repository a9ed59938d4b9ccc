"""Arguments of the wrong type: a `TypeError` that names the argument, before anything happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog.errors import InvalidInputError
from deltalog.spark import DeltaTable
from deltalog.spark.session.opening import moment_ms

Call = Callable[[Any], object]


def merging(table: Any) -> Any:
    return table.merge(table.toDF().alias("s"), "id = s.id")


WRONG: dict[str, tuple[Call, str]] = {
    "alias": (lambda t: t.alias(1), "aliasName"),
    "view": (lambda t: t.createOrReplaceTempView(1), "name"),
    "application": (lambda t: t.inTransaction(1, 1), "appId"),
    "application's version": (lambda t: t.inTransaction("a", "1"), "version"),
    "delete": (lambda t: t.delete(1), "condition"),
    "delete all by a truth": (lambda t: t.delete(True), "condition"),
    "update": (lambda t: t.update(1, {"id": "2"}), "condition"),
    "update by text": (lambda t: t.update("id = 1", "id = 2"), "set"),
    "update's column": (lambda t: t.update("id = 1", {1: "2"}), "set: column"),
    "update's value": (lambda t: t.update("id = 1", {"id": 2}), "set: column 'id'"),
    "merge's source": (lambda t: t.merge("s", "id = 1"), "source"),
    "merge's table": (lambda t: t.merge(t, "id = 1"), "source"),
    "merge's condition": (lambda t: t.merge(t.toDF(), 1), "condition"),
    "no condition": (lambda t: t.merge(t.toDF(), None), "condition"),
    "matched": (lambda t: merging(t).whenMatchedDelete(1), "condition"),
    "matched set": (lambda t: merging(t).whenMatchedUpdate(None, "id = 1"), "set"),
    "matched value": (lambda t: merging(t).whenMatchedUpdate(None, {"id": 1}), "set: column"),
    "inserted": (lambda t: merging(t).whenNotMatchedInsert(None, [1]), "values"),
    "by source": (
        lambda t: merging(t).whenNotMatchedBySourceUpdate(None, {"id": None}),
        "set: column 'id'",
    ),
    "history": (lambda t: t.history("1"), "limit"),
    "vacuum": (lambda t: t.vacuum("168"), "retentionHours"),
    "vacuum by a truth": (lambda t: t.vacuum(True), "retentionHours"),
    "generate": (lambda t: t.generate(1), "mode"),
    "restore": (lambda t: t.restoreToVersion("0"), "version"),
    "restore to a number": (lambda t: t.restoreToTimestamp(0), "timestamp"),
    "reader": (lambda t: t.upgradeTableProtocol("1", 2), "readerVersion"),
    "writer": (lambda t: t.upgradeTableProtocol(1, None), "writerVersion"),
    "feature": (lambda t: t.addFeatureSupport(1), "featureName"),
    "dropped": (lambda t: t.dropFeatureSupport(None), "featureName"),
    "history's end": (lambda t: t.dropFeatureSupport("x", "yes"), "truncateHistory"),
    "parts": (lambda t: t.checkpoint("2"), "partFiles"),
    "clone": (lambda t: t.clone(1), "target"),
    "shallow": (lambda t: t.clone("x", "yes"), "isShallow"),
    "replace": (lambda t: t.clone("x", True, 1), "replace"),
    "properties": (lambda t: t.clone("x", True, False, "p"), "properties"),
    "property": (lambda t: t.clone("x", True, False, {"p": 1}), "property 'p'"),
    "clone at": (lambda t: t.cloneAtVersion("0", "x"), "version"),
    "clone when": (lambda t: t.cloneAtTimestamp(0, "x"), "timestamp"),
    "where": (lambda t: t.optimize().where(1), "partitionFilter"),
    "z-order": (lambda t: t.optimize().executeZOrderBy(1), "column names"),
}
WRONG_OPENING: dict[str, tuple[Call, str]] = {
    "no session": (lambda _: DeltaTable.forPath("x", "y"), "sparkSession"),  # type: ignore[arg-type]
    "path": (lambda s: DeltaTable.forPath(s, 1), "path"),  # type: ignore[arg-type]
    "no path": (lambda s: DeltaTable.forPath(s, None), "path"),  # type: ignore[arg-type]
    "name": (lambda s: DeltaTable.forName(s, None), "tableOrViewName"),  # type: ignore[arg-type]
    "name's session": (lambda _: DeltaTable.forName(None, "x"), "sparkSession"),  # type: ignore[arg-type]
    "whether": (lambda s: DeltaTable.isDeltaTable(s, 1), "identifier"),  # type: ignore[arg-type]
    "whether, no session": (lambda _: DeltaTable.isDeltaTable("x", "y"), "sparkSession"),  # type: ignore[arg-type]
    "convert": (lambda s: DeltaTable.convertToDelta(s, 1), "identifier"),  # type: ignore[arg-type]
    "convert by": (lambda s: DeltaTable.convertToDelta(s, "x", ["p"]), "partitionSchema"),  # type: ignore[arg-type]
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaTable]:
    path = tmp_path_factory.mktemp("arguments") / "t"
    deltalog.spark.write(spark.createDataFrame([(1,)], "id long"), path)
    found = DeltaTable.forPath(spark, path)
    yield found
    assert deltalog.DeltaTable(path).version() == 0  # nothing was committed by any of them


@pytest.mark.parametrize("name", ["read", "scan", "sql", "DeltaTable"])
def test_a_location_alone_lacks_the_session(name: str) -> None:
    message = rf"^cannot call deltalog\.spark\.{name} with 'st' alone: .*\.{name}\(spark, 'st'\)$"
    with pytest.raises(InvalidInputError, match=message):
        getattr(deltalog.spark, name)("st")


def test_a_location_before_the_session(spark: SparkSession, table: DeltaTable) -> None:
    location = table.core.table_uri
    assert repr(table) == f"DeltaTable.forPath(spark, {location!r})"
    with pytest.raises(TypeError, match="found '/t', a str; the session comes first, then the"):
        DeltaTable.forPath("/t", spark)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_names_the_argument(table: DeltaTable, name: str) -> None:
    call, argument = WRONG[name]
    with pytest.raises(TypeError, match=f"{argument}.*found") as caught:
        call(table)
    assert isinstance(caught.value, InvalidInputError)


@pytest.mark.parametrize("name", WRONG_OPENING)
def test_a_wrong_type_opens_nothing(spark: SparkSession, name: str) -> None:
    call, argument = WRONG_OPENING[name]
    with pytest.raises(TypeError, match=f"{argument}.*found"):
        call(spark)


def test_a_file_url_names_the_same_directory_as_in_the_core(
    spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow as pa

    names = ("a b%20c", "a%20b%2520c")
    for name in names:
        deltalog.write_deltalake(tmp_path / name, pa.table({"name": [name]}))
    url, path = f"{tmp_path.as_uri()}/a%20b%2520c", str(tmp_path / names[1])
    for location, name in ((url, names[0]), (path, names[1])):
        expected = [(name,)]
        frames = [
            spark.read.format("deltalog").load(location),
            DeltaTable.forPath(spark, location).toDF(),
            DeltaTable.forName(spark, f"delta.`{location}`").toDF(),
            deltalog.spark.read(spark, location, native=True),
            deltalog.spark.read(spark, location, native=False),
        ]
        for frame in frames:
            assert [tuple(row) for row in frame.select("name").collect()] == expected
        assert DeltaTable.isDeltaTable(spark, location)
    more = spark.createDataFrame([("new",)], "name string")
    more.write.format("deltalog").mode("append").save(url)
    deltalog.spark.write(more, url, mode="append")
    target = f"{tmp_path.as_uri()}/cl%20one"
    DeltaTable.forPath(spark, url).clone(target)
    assert deltalog.DeltaTable(tmp_path / names[0]).count() == 3
    assert deltalog.DeltaTable(tmp_path / names[1]).count() == 1
    assert deltalog.DeltaTable(tmp_path / "cl one").count() == 3
    found = {one.name for one in tmp_path.iterdir()}
    assert found == {*names, "cl one"}


def test_a_date_is_its_midnight_in_the_zone_of_the_session() -> None:
    zone = "Europe/Berlin"
    assert moment_ms(date(2020, 1, 1), zone) == moment_ms("2020-01-01", zone) == 1_577_833_200_000


OPEN: Any = DeltaTable
ANSWERS: dict[str, tuple[Call, type[Exception], str]] = {
    "no session": (
        lambda _: OPEN.forPath("/a"),
        InvalidInputError,
        "forPath(spark, '/a')",
    ),
    "no session, a name": (
        lambda _: OPEN.forName("a"),
        InvalidInputError,
        "forName(spark, 'a')",
    ),
    "option": (lambda t: t.delete(predicate="id = 1"), TypeError, "use condition=…"),
    "spelling": (lambda t: t.vacuum(retention_hours=1), TypeError, "mean 'retentionHours'?"),
    "dry run": (lambda t: t.vacuum(dry_run=True), TypeError, "VACUUM … DRY RUN"),
    "values first": (lambda t: t.update({"id": "2"}), TypeError, "write set={…}"),
    "values first in a merge": (
        lambda t: merging(t).whenMatchedUpdate({"id": "s.id"}),
        TypeError,
        "write set={…}",
    ),
    "pandas": (lambda t: t.to_pandas(), AttributeError, "use toDF().toPandas()"),
    "frame": (lambda t: t.select("id"), AttributeError, "use toDF(), whose dataframes have"),
    "builder": (
        lambda t: OPEN.create(t.toDF().sparkSession).partitionBy("id"),
        AttributeError,
        "use partitionedBy(column, …)",
    ),
    "module": (
        lambda _: deltalog.spark.write_deltalake,  # type: ignore[attr-defined]
        AttributeError,
        "use write(frame, location)",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_names_and_arguments_of_others_are_answered(table: DeltaTable, name: str) -> None:
    call, kind, message = ANSWERS[name]
    with pytest.raises(kind) as caught:
        call(table)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: deltalog.spark.sql(s, "SELECT 1", storage_options=[1]), "found a list"),  # type: ignore[arg-type]
        (lambda s: deltalog.spark.read(s, "x", versionAsOf=0), "use version=…"),  # type: ignore[call-arg]
        (lambda s: deltalog.spark.read(s, "x", columnz=["a"]), "did you mean 'columns'"),  # type: ignore[call-arg]
        (lambda s: deltalog.spark.scan(s, "x", columns=["a"]), r"use read\(spark, table, columns"),  # type: ignore[call-arg]
        (lambda s: deltalog.spark.write(s.range(1), "x", partitionBy="id"), "use partition_by=…"),  # type: ignore[call-arg]
        (lambda s: deltalog.spark.load_as_spark(s, "p#a.b.c"), "the URL comes first"),  # type: ignore[arg-type]
        (lambda _: deltalog.spark.load_as_spark("p#a.b"), "which has no table"),
        (lambda _: deltalog.spark.load_table_changes_as_spark("a.b.c"), "found no '#'"),
    ],
)
def test_wrong_calls_say_what_to_write(spark: SparkSession, call: Any, words: str) -> None:
    with pytest.raises((InvalidInputError, TypeError), match=words):
        call(spark)
