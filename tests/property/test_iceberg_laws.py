"""Laws: PyIceberg reads every version as it was, whatever was done to the table in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from deltalog import DeltaTable, write_deltalake
from deltalog.schema import ArrayType, Field, StructType

ON = {"delta.universalFormat.enabledFormats": "iceberg"}
VERSIONS = (
    {**ON, "delta.enableIcebergCompatV2": "true"},
    {**ON, "delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "true"},
)
NAMES = st.sampled_from(["a", "b", "c é", None])
ROWS = st.lists(st.tuples(st.integers(0, 9), NAMES), min_size=1, max_size=4)


def rows(pairs: list[tuple[int, str | None]]) -> pa.Table:
    numbers = pa.array([number for number, _ in pairs], pa.int64())
    names = pa.array([name for _, name in pairs], pa.string())
    return pa.Table.from_arrays([numbers, names], names=["id", "k"])


def append(path: Path, pairs: Any) -> None:
    write_deltalake(path, rows(pairs), mode="append", schema_mode="merge")


def overwrite(path: Path, pairs: Any) -> None:
    write_deltalake(path, rows(pairs), mode="overwrite", schema_mode="overwrite")


def replace_some(path: Path, pairs: Any) -> None:
    kept = [(one, two) for one, two in pairs if one < 5]
    write_deltalake(path, rows(kept or [(0, "a")]), mode="overwrite", predicate="id < 5")


def delete(path: Path, pairs: Any) -> None:
    DeltaTable(path).delete(f"id = {pairs[0][0]}")


def update(path: Path, pairs: Any) -> None:
    DeltaTable(path).update(predicate=f"id <= {pairs[0][0]}", updates={"id": "id + 1"})


def merge(path: Path, pairs: Any) -> None:
    source = rows([(number, name) for number, (_, name) in enumerate(pairs)])
    merger = DeltaTable(path).merge(source, "t.id = s.id AND t.id < 0", "s", "t")
    merger.when_matched_update({"k": "s.k"}).when_not_matched_insert(
        {"id": "s.id", "k": "s.k"}
    ).execute()


def compact(path: Path, pairs: Any) -> None:
    del pairs
    DeltaTable(path).optimize.compact()


def add_column(path: Path, pairs: Any) -> None:
    names = DeltaTable(path).schema().names
    inner = StructType([Field("y", ArrayType("long"))])
    DeltaTable(path).alter.add_columns(Field(f"x{len(names)}", inner))
    append(path, pairs)


def restore(path: Path, pairs: Any) -> None:
    table = DeltaTable(path)
    table.restore(min(pairs[0][0], table.version()))


STEPS = (
    append,
    append,
    overwrite,
    replace_some,
    delete,
    update,
    merge,
    compact,
    add_column,
    restore,
)


def seen(table: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


@pytest.mark.slow("a long property")
@settings(
    max_examples=14, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(
    first=ROWS,
    steps=st.lists(st.tuples(st.sampled_from(STEPS), ROWS, st.booleans()), min_size=1, max_size=6),
    partitioned=st.booleans(),
    on=st.sampled_from(VERSIONS),
)
def test_every_version_is_read_as_it_was(
    first: Any, steps: Any, on: dict[str, str], *, partitioned: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t"
        by = ["k"] if partitioned else None
        write_deltalake(path, rows(first), partition_by=by, configuration=on)
        for step, pairs, loses_metadata in steps:
            step(path, pairs)
            if loses_metadata:  # as if the writer had died before it
                (path / "metadata" / "version-hint.text").unlink(missing_ok=True)
                newest = max((path / "metadata").glob("v*.metadata.json"), key=_number)
                if _number(newest) > 1:
                    newest.unlink()

        table = DeltaTable(path)
        found = StaticTable.from_metadata(table.sync_iceberg().metadata_location)

        assert seen(found.scan().to_arrow()) == seen(table.to_pyarrow_table())
        assert found.properties["delta-version"] == str(table.version())
        versions = {seen_of(path, version) for version in range(table.version() + 1)}
        for snapshot in found.snapshots():
            old = found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
            assert tuple(seen(old)) in versions


def seen_of(path: Path, version: int) -> tuple[str, ...]:
    return tuple(seen(DeltaTable(path, version=version).to_pyarrow_table()))


def _number(path: Path) -> int:
    return int(path.name[1 : -len(".metadata.json")])
