"""Optimized write: one file for each partition, in whatever order rows come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.write import write_files
from deltalog.operations.changes.external_sort import SortLimits, write_optimized
from deltalog.schema import Field, PrimitiveType
from tests.support.writes import read_back, spec_of, table

LONG = PrimitiveType("long")


ROWS = [{"id": number, "p": number % 40} for number in range(400)]


@pytest.mark.parametrize("memory_bytes", [1000, 1 << 30])
def test_each_partition_has_one_file(memory_bytes: int) -> None:
    configuration = table(Field("id", LONG), Field("p", LONG), partition_by=["p"])
    spec = spec_of(configuration)
    written = write_optimized(spec, ROWS, limits=SortLimits(memory_bytes=memory_bytes))
    assert len(written.adds) == 40
    found = read_back(spec, written).sort_by("id").to_pylist()
    assert found == ROWS
    assert len(spec.store.files) == 40 + 1  # type: ignore[attr-defined]  # a DictStore


def test_without_partitions_it_is_an_ordinary_write() -> None:
    configuration = table(Field("id", LONG), Field("p", LONG))
    spec = spec_of(configuration)
    written = write_optimized(spec, ROWS)
    assert written.num_rows == write_files(spec_of(configuration), ROWS).num_rows
    assert len(written.adds) == 1
    assert write_optimized(spec, []).adds == ()


def test_values_of_identity_columns_are_told_as_by_any_write() -> None:
    identity = {
        "delta.identity.start": 5,
        "delta.identity.step": 2,
        "delta.identity.allowExplicitInsert": False,
    }
    configuration = table(
        Field("n", LONG, metadata=identity), Field("p", LONG), features=["identityColumns"]
    )
    written = write_optimized(spec_of(configuration), [{"p": 1}, {"p": 2}])
    assert (written.identity_starts, written.identity_marks) == ({"n": 5}, {"n": 7})


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, False),
        ({"autoOptimize": "true"}, True),
        ({"autoOptimize__optimizeWrite": "true"}, True),
        ({"autoOptimize": "true", "autoOptimize__optimizeWrite": "false"}, False),
    ],
)
def test_a_table_asks_for_it(properties: dict[str, str], wanted: bool) -> None:
    assert table(Field("id", LONG), **properties).optimizes_writes is wanted


def test_rows_of_a_partition_are_gathered_before_they_are_written(tmp_path: Path) -> None:
    batches = [pa.record_batch({"p": list(range(200)), "x": [number] * 200}) for number in range(3)]
    write_deltalake(
        tmp_path,
        iter(batches),
        partition_by="p",
        configuration={"delta.autoOptimize.optimizeWrite": "true"},
    )
    assert len(DeltaTable(tmp_path).file_uris()) == 200
