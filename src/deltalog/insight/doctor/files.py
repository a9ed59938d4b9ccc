"""Check that data files and deletion vectors exist, are intact, and lie where they should.

Protocol: Add File and Remove File, Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.catalog import MaintenanceOperation
from deltalog.engine import LocalEngine
from deltalog.errors import DeltaError, UnsupportedFeatureError
from deltalog.insight.doctor.patient import MANY, decoded
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.kernels import compute
from deltalog.partition_values import extract, parse_column
from deltalog.paths import canonical_path, check_confined, decode_path, is_absolute
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.storage.pool import map_in_pool
from deltalog.upkeep.permission import allows_maintenance
from deltalog.verbs.needed_files import existing
from deltalog.verbs.vacuum import plan_vacuum
from deltalog.verbs.vacuum_candidates import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.insight.doctor.patient import Patient

_NUM_RECORDS: Final = "numRecords"


def check_paths(patient: Patient) -> Iterator[Finding]:
    """Check live files: missing, of another size, outside the table, or where none may be."""
    snapshot = patient.snapshot
    files = snapshot.files(["path", "size"])
    sizes: list[Any] = files.column("size").to_pylist()
    found = patient.all_files
    gone: list[str] = []
    elsewhere: list[str] = []
    doubtful: list[str] = []
    for path, size in zip(decoded(files.column("path")), sizes, strict=True):
        try:
            check_confined(path)
        except DeltaError as error:
            yield Finding(
                check="path-unsafe", severity=Severity.ERROR, message=str(error), path=path
            )
            continue
        known = canonical_path(path, patient.store.root)
        if is_absolute(known):
            elsewhere.append(path)
        elif known not in found:
            doubtful.append(path)
        elif size is not None and found[known] != size:
            yield Finding(
                check="file-size",
                severity=Severity.ERROR,
                message=f"{path} has {found[known]} bytes, and the log says {size}",
                advice="it was overwritten or cut: restore it from a backup",
                path=path,
            )
    there = existing(snapshot, [*doubtful, *elsewhere])  # a listing may be behind
    gone = [path for path in (*doubtful, *elsewhere) if path not in there]
    for path in gone[:MANY]:
        yield Finding(
            check="file-missing",
            severity=Severity.ERROR,
            message=f"{path} is live, and is not there",
            advice="restore it from a backup; or repair() takes such files out of the table",
            path=path,
        )
    if len(gone) > MANY:
        yield Finding(
            check="file-missing",
            severity=Severity.ERROR,
            message=f"{len(gone) - MANY} more live files are not there",
        )
    if elsewhere:
        yield Finding(
            check="path-absolute",
            severity=Severity.INFO,
            message=f"{len(elsewhere)} files are named by absolute paths outside of the table, "
            f"such as {elsewhere[0]}",
            advice="a shallow clone: vacuum of the other table may delete them; clone it deep to "
            "be free of that",
        )


def check_orphans(patient: Patient) -> Iterator[Finding]:
    """Report files that no version needs, and hidden temporary ones of killed writers."""
    try:
        unneeded = plan_vacuum(
            patient.snapshot,
            mode="full",
            now_ms=patient.now_ms,
            engine=LocalEngine(),
            deletes=False,
        ).files
    except UnsupportedFeatureError:
        return  # `check_access` reports that
    is_ours = allows_maintenance(patient.snapshot, MaintenanceOperation.DATA_CLEANUP)
    left = compute.equal(unneeded.column("reason"), TEMPORARY)
    for check, files, told in (
        ("orphans", unneeded.filter(compute.invert(left)), "are needed by no version that is kept"),
        ("temporary-files", unneeded.filter(left), "were left by writers that did not end"),
    ):
        if files.num_rows:
            size = compute.sum(files.column("size_bytes")).as_py() or 0
            first = compute.min(files.column("path")).as_py()
            yield Finding(
                check=check,
                severity=Severity.INFO,
                message=f"{files.num_rows} files, {size:,} bytes, {told}, such as {first}",
                advice="vacuum(full=True, dry_run=False) deletes them"
                if is_ours
                else "the table's catalog deletes them: it does not allow clients to",
            )


def check_partition_values(patient: Patient) -> Iterator[Finding]:
    """Check that partition values can be parsed as the column's type."""
    snapshot = patient.snapshot
    configuration = snapshot.configuration
    if not configuration.partition_columns:
        return
    texts = snapshot.files(["partitionValues"]).column("partitionValues")
    for field, key in zip(
        configuration.partition_schema, configuration.physical_partition_columns, strict=True
    ):
        try:
            parse_column(
                extract(texts, key),
                field.type,
                column=field.name,
                time_zone=snapshot.context.time_zone,
            )
        except DeltaError as error:
            yield Finding(check="partition-value", severity=Severity.ERROR, message=str(error))


def check_vectors(patient: Patient) -> Iterator[Finding]:
    """Check deletion vectors: readable, size and count as in the log, rows within the file."""
    snapshot = patient.snapshot
    files = snapshot.files(["path", "deletionVector"])
    rows = snapshot.stats(pa.schema([(_NUM_RECORDS, pa.int64())])).column(_NUM_RECORDS)
    files = files.append_column(_NUM_RECORDS, rows)
    files = files.filter(files.column("deletionVector").is_valid())
    if files.num_rows and not snapshot.configuration.may_have_deletion_vectors:
        yield Finding(
            check="deletion-vector",
            severity=Severity.ERROR,
            message=f"{files.num_rows} files have deletion vectors, and the protocol does not "
            "have the table feature",
            advice="add_feature('deletionVectors')",
        )
    # Each vector costs a request, so they are sampled like data files.
    chosen: list[dict[str, Any]] = patient.sample(files).to_pylist()
    for problems in map_in_pool(lambda row: _vector_problems(patient, row), chosen):
        yield from problems


def _vector_problems(patient: Patient, row: dict[str, Any]) -> list[Finding]:
    path = decode_path(row["path"])
    try:
        descriptor = descriptor_of(row["deletionVector"])
        if descriptor is None:
            return []
        bitmap = load_bitmap(patient.store, descriptor, num_rows=None)
    except DeltaError as error:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.ERROR,
                message=f"the deletion vector of {path} cannot be read: {error}",
                advice="restore it from a backup; without it nobody knows which rows are deleted",
                path=path,
            )
        ]
    last, count = bitmap.max_row, row[_NUM_RECORDS]
    if count is None:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.WARNING,
                message=f"{path} has a deletion vector and no numRecords, which it must have",
                advice="strict readers refuse it: optimize.purge() writes the file anew",
                path=path,
            )
        ]
    if last is not None and last >= count:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.ERROR,
                message=f"the deletion vector of {path} names row {last}, and the log says that "
                f"it has {count}",
                advice="restore a version before it, or write the table anew from its source: "
                "nobody knows which row is meant",
                path=path,
            )
        ]
    if descriptor.max_row_index is not None and descriptor.max_row_index != last:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.WARNING,
                message=f"the deletion vector of {path} has maxRowIndex "
                f"{descriptor.max_row_index}, and its last row is {last}",
                advice="rows are right; optimize.purge() writes the file anew",
                path=path,
            )
        ]
    return []


def check_row_ids(patient: Patient) -> Iterator[Finding]:
    """Check row ids: every file has them, without overlaps, and below the high water mark."""
    snapshot = patient.snapshot
    if not snapshot.configuration.row_ids_enabled:
        return
    files = snapshot.files(["path", "baseRowId"])
    rows = snapshot.stats(pa.schema([(_NUM_RECORDS, pa.int64())])).column(_NUM_RECORDS)
    missing = files.column("baseRowId").null_count
    if missing:
        yield Finding(
            check="row-ids",
            severity=Severity.ERROR,
            message=f"{missing} files have no row ids, and row tracking is on",
            advice="they were committed by a writer that does not know row tracking",
        )
    table = files.append_column(_NUM_RECORDS, rows)
    table = table.filter(
        compute.and_(table.column("baseRowId").is_valid(), table.column(_NUM_RECORDS).is_valid())
    ).sort_by("baseRowId")
    first = table.column("baseRowId")
    last = compute.subtract(compute.add(first, table.column(_NUM_RECORDS)), 1)
    if table.num_rows > 1:
        overlaps = compute.greater_equal(last.slice(0, table.num_rows - 1), first.slice(1))
        count = compute.sum(overlaps).as_py() or 0
        if count:
            yield Finding(
                check="row-ids",
                severity=Severity.ERROR,
                message=f"{count} files share row ids with others",
                advice="rows of different files cannot be told apart by their ids",
            )
    highest, mark = compute.max(last).as_py(), snapshot.row_id_high_water_mark
    if highest is not None and (mark is None or mark < highest):
        yield Finding(
            check="row-ids",
            severity=Severity.ERROR,
            message=f"the high water mark of row ids is {mark}, and {highest} is in use",
            advice="the next files would get ids that are in use",
        )
