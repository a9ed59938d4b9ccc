"""Iceberg tables that PyIceberg makes, and row-level deletes, which it reads and does not write.

Delete files are made of Arrow's Parquet, and listed by PyIceberg's own manifest writers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import StaticTable, Table
from pyiceberg.typedef import Record
from pyiceberg.types import StringType

PATH_FIELD, POSITION_FIELD = 2147483546, 2147483545


class Catalog:
    """A catalog of PyIceberg over a directory."""

    def __init__(self, root: Path) -> None:
        self.catalog = SqlCatalog(
            "tests", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/warehouse"
        )
        self.catalog.create_namespace("n")

    def create(self, schema: Any, **options: Any) -> Table:
        """The table `n.t`."""
        return self.catalog.create_table("n.t", schema=schema, **options)


@pytest.fixture
def iceberg(tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog."""
    made = Catalog(tmp_path)
    yield made
    made.catalog.close()


def path_of(table: Table) -> Path:
    """The directory of a table."""
    return Path(table.location().removeprefix("file://"))


def metadata_of(table: Table) -> Path:
    """The metadata file of a table."""
    return Path(table.metadata_location.removeprefix("file://"))


def data_files(table: Table) -> list[DataFile]:
    """The data files of the current snapshot, oldest first."""
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    entries = [
        entry
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    return [
        entry.data_file
        for entry in sorted(
            entries, key=lambda one: (one.sequence_number or 0, one.data_file.file_path)
        )
    ]


def rows_of(metadata: Path) -> list[dict[str, Any]]:
    """The rows that PyIceberg reads."""
    found = StaticTable.from_metadata(f"file://{metadata}").scan().to_arrow()
    return in_order(found)


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """Rows that can be compared."""
    found = table.select(sorted(table.column_names)).to_pylist()
    return sorted(found, key=repr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """A delete file to be added.

    Args:
        rows: pairs of a location and a position.
        partition: of the file.
        spec_id: of its partition.
        bounds: whether the manifest has the bounds of the paths.
        members: of the manifest's entry that are other than the file's.
        table: what the file holds instead of `rows`.
        sequence_number: None is that of the new snapshot.
    """

    rows: Sequence[tuple[str, int]] = ()
    partition: tuple[Any, ...] = ()
    spec_id: int | None = None
    bounds: bool = True
    members: Mapping[str, Any] | None = None
    table: pa.Table | None = None
    sequence_number: int | None = None


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def position_deletes(rows: Sequence[tuple[str, int]]) -> pa.Table:
    """What a position delete file holds."""
    fields = [
        pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, kind, number in [
            ("file_path", pa.string(), PATH_FIELD),
            ("pos", pa.int64(), POSITION_FIELD),
        ]
    ]
    columns = list(zip(*sorted(rows), strict=True)) or [(), ()]
    return pa.table([pa.array(one, field.type) for one, field in zip(columns, fields, strict=True)],
                    schema=pa.schema(fields))  # fmt: skip


def add_deletes(table: Table, *deletes: Deletes) -> Path:
    """Add a snapshot with delete files to a table; return its metadata file, which is changed."""
    metadata = metadata_of(table)
    state = json.loads(metadata.read_text("utf-8"))
    known = StaticTable.from_metadata(f"file://{metadata}")
    before = known.current_snapshot()
    assert before is not None
    number, snapshot_id = state["last-sequence-number"] + 1, before.snapshot_id + 1
    manifests = [
        *before.manifests(known.io),
        *(_delete_manifest(known, one, snapshot_id) for one in deletes),
    ]
    location = f"{known.location()}/metadata/snap-{uuid4()}.avro"
    with write_manifest_list(
        2, known.io.new_output(location), snapshot_id, before.snapshot_id, number, "null"
    ) as writer:
        writer.add_manifests(manifests)
    added = {
        **state["snapshots"][-1],
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": before.snapshot_id,
        "sequence-number": number,
        "manifest-list": location,
        "summary": {"operation": "delete"},
    }
    state["snapshots"].append(added)
    state["last-sequence-number"] = number
    state["current-snapshot-id"] = snapshot_id
    state["refs"] = {"main": {"snapshot-id": snapshot_id, "type": "branch"}}
    metadata.write_text(json.dumps(state), "utf-8")
    return metadata


def _delete_manifest(table: Table, deletes: Deletes, snapshot_id: int) -> Any:
    location = f"{table.location()}/data/{uuid4()}-deletes.parquet"
    path = Path(location.removeprefix("file://"))
    held = position_deletes(deletes.rows) if deletes.table is None else deletes.table
    pq.write_table(held, path)
    paths = sorted(one for one, _ in deletes.rows)
    bounds = {} if not deletes.bounds else {
        "lower_bounds": {PATH_FIELD: to_bytes(StringType(), paths[0])},
        "upper_bounds": {PATH_FIELD: to_bytes(StringType(), paths[-1])},
    }  # fmt: skip
    members = {
        "content": DataFileContent.POSITION_DELETES,
        "file_path": location,
        "file_format": FileFormat.PARQUET,
        "partition": Record(*deletes.partition),
        "record_count": held.num_rows,
        "file_size_in_bytes": path.stat().st_size,
        **bounds,
        **(deletes.members or {}),
    }
    spec_id = table.spec().spec_id if deletes.spec_id is None else deletes.spec_id
    output = table.io.new_output(f"{table.location()}/metadata/{uuid4()}-deletes-m0.avro")
    with _DeleteManifest(
        table.specs()[spec_id], table.schema(), output, snapshot_id, "null"
    ) as writer:
        number = deletes.sequence_number
        entry = ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED if number is None else ManifestEntryStatus.EXISTING,
            snapshot_id=snapshot_id,
            sequence_number=number,
            file_sequence_number=number,
            data_file=DataFile.from_args(**members),
        )
        writer.add_entry(entry)
    return writer.to_manifest_file()
