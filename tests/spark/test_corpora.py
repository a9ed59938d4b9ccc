"""Tables of other writers, read as Spark reads them: their manifests say what comes out."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

import deltalog.spark
from deltalog.errors import DeltaError
from deltalog.schema import StructType
from deltalog.spark.reading.batch_source import BatchReader, TaskPartition, resolve
from deltalog.spark.reading.options import parse_any_read_options, parse_read_options
from deltalog.spark.session.types import as_spark_batches, to_spark_arrow, to_spark_schema
from tests.support.corpora import VARIABLES, Entry, covering, load_entries

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Spark's, of odd data
]
ENTRIES = [entry for variable in VARIABLES for entry in load_entries(variable)]
VARIANT = '{"type":"struct","fields":[' + ",".join(
    f'{{"name":"{name}","type":"binary","nullable":true,"metadata":{{}}}}'
    for name in ("value", "metadata")
) + "]}"  # fmt: skip


def _digest(entry: Entry, rows: pa.Table, expected: Mapping[str, Any]) -> str:
    """By the directory's own module: what counts as the same is not ours to decide."""
    module = _module(entry.root)
    hidden = expected.get("digest_excludes", ())
    shown = rows.select([name for name in rows.column_names if name not in hidden])
    return str(module.digest(shown))


def _module(root: Path) -> ModuleType:
    name = f"digest_{root.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, root / "digest.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _collect(frame: DataFrame) -> pa.Table:
    """The rows; PySpark 4.2 itself cannot hand over NULLs beside variants."""
    if '"variant"' not in frame.schema.json():
        return frame.toArrow()
    text = frame.schema.json().replace('"variant"', VARIANT)
    arrow = to_spark_arrow(StructType.from_json(text))

    def without_variants(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return as_spark_batches(batches, arrow)

    shown = spark_types.StructType.fromJson(_loads(text))
    return frame.mapInArrow(without_variants, shown).toArrow()


def _loads(text: str) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(text)
    return found


def _read_by_source(path: Path, **options: str) -> pa.Table:
    """What the format's workers yield, without Spark between."""
    given = {"path": str(path), **options}
    _, shown = resolve(parse_any_read_options(given))
    reader = BatchReader(parse_read_options(given), to_spark_schema(shown))
    batches = [
        batch
        for partition in reader.partitions()
        if isinstance(partition, TaskPartition)
        for batch in reader.read(partition)
    ]
    return pa.Table.from_batches(batches, to_spark_arrow(shown))


def _check(entry: Entry, expected: Mapping[str, Any], read: Callable[[], pa.Table]) -> None:
    """A case of the manifest; those that do not bind show nothing."""
    if expected.get("optional"):
        return
    if expected["outcome"] == "rows":
        accepted = [one["digest"] for one in (expected, *expected.get("alternatives", ()))]
        assert _digest(entry, read(), expected) in accepted
    elif expected["outcome"] == "error" or expected.get("num_files"):
        with pytest.raises((DeltaError, PythonException)):  # the latter quotes the former
            read()


@pytest.mark.parametrize("entry", covering(ENTRIES), ids=str)
def test_native_rows(entry: Entry, spark: SparkSession) -> None:
    _check(
        entry,
        entry.expected("latest"),
        lambda: _collect(deltalog.spark.read(spark, entry.path)),
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_rows_of_the_source(entry: Entry) -> None:
    _check(entry, entry.expected("latest"), lambda: _read_by_source(entry.path))


FEEDS = [(entry, feed) for entry in ENTRIES for feed in entry.facts["expected"].get("cdf", [])]


@pytest.mark.parametrize(
    ("entry", "feed"), FEEDS, ids=[f"{one}-{cdf['start']}-{cdf['end']}" for one, cdf in FEEDS]
)
def test_change_feeds_of_the_source(entry: Entry, feed: dict[str, Any]) -> None:
    bounds = {"startingVersion": str(feed["start"]), "endingVersion": str(feed["end"])}
    _check(entry, feed, lambda: _read_by_source(entry.path, readChangeFeed="true", **bounds))
