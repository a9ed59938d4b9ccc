"""Check data files and deletion vectors: existence, content, and location.

Protocol: Add File and Remove File, Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import arrow, compute
from deltalog._util.paths import canonical_path, check_confined, decode_path, is_absolute
from deltalog._util.readable import FILE, counted, readable_size
from deltalog.data.scan.plan import TASK_COLUMNS, descriptor_of, make_task
from deltalog.data.scan.reader import read_task
from deltalog.data.scan.task import read_spec
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import (
    DataFileMissingError,
    DeltaError,
    StorageError,
    UnsupportedFeatureError,
)
from deltalog.expressions.render import quote_name
from deltalog.log.branches import branch_of, list_branches, on_branch
from deltalog.log.context import MaintenanceOperation
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.engine import LocalEngine
from deltalog.operations.vacuum import TEMPORARY, existing, plan_vacuum
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.features.declarations import generation_expressions
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.ranges import correction
from deltalog.protocol.stats.schema import has_bounds, stats_schema
from deltalog.schema.check import readable_values
from deltalog.schema.columns import leaf_columns
from deltalog.schema.types import IDENTITY_STEP_KEY
from deltalog.storage.parquet.byte_sources import FetchedBytes, LocalBytes
from deltalog.storage.parquet.groups import read_stored
from deltalog.storage.parquet.parts import guarded
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.splice import check_pages
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import Store, native_path
from deltalog.table.inspect.doctor.report import MANY, Finding, Patient, Severity, decoded
from deltalog.transaction.maintenance.checksum import allows_maintenance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import Field

_NUM_RECORDS: Final = "numRecords"


def check_paths(patient: Patient) -> Iterator[Finding]:
    """Report live files that are missing, have another size, or have an unsafe or external path."""
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
                message=f"{path} has a size of {found[known]} bytes, but the log records {size}",
                advice="it was overwritten or truncated: restore it from a backup",
                path=path,
            )
    there = existing(snapshot, [*doubtful, *elsewhere])  # the listing may be out of date
    gone = [path for path in (*doubtful, *elsewhere) if path not in there]
    for path in gone[:MANY]:
        yield Finding(
            check="file-missing",
            severity=Severity.ERROR,
            message=f"{path} is live, but does not exist",
            advice="restore it from a backup; or repair() removes such files from the table",
            path=path,
        )
    if len(gone) > MANY:
        yield Finding(
            check="file-missing",
            severity=Severity.ERROR,
            message=f"{counted(len(gone) - MANY, 'more live file')} cannot be found",
        )
    if elsewhere:
        yield Finding(
            check="path-absolute",
            severity=Severity.INFO,
            message=f"absolute paths name {counted(len(elsewhere), FILE)} outside of the "
            f"table, such as {elsewhere[0]}",
            advice="a shallow clone: vacuum of the other table may delete them; make a deep "
            "clone to prevent that",
        )


def check_orphans(patient: Patient) -> Iterator[Finding]:
    """Report files that no version needs, and temporary files of writers that were killed.

    Files of branches are needed. A branch that cannot be read is reported instead.
    """
    if branch_of(patient.store) is not None:
        return  # the files of main are in the same directory
    problems = list(_branch_problems(patient))
    yield from problems
    if any(problem.severity is Severity.ERROR for problem in problems):
        return
    try:
        unneeded = plan_vacuum(
            patient.snapshot,
            mode="full",
            now_ms=patient.now_ms,
            engine=LocalEngine(),
            deletes=False,
        ).files
    except UnsupportedFeatureError:
        return  # `check_access` reports an unsupported feature
    is_ours = allows_maintenance(patient.snapshot, MaintenanceOperation.DATA_CLEANUP)
    left = compute.equal(unneeded.column("reason"), TEMPORARY)
    for check, files, reason in (
        ("orphans", unneeded.filter(compute.invert(left)), "needed by no retained version"),
        ("temporary-files", unneeded.filter(left), "left by writers that did not finish"),
    ):
        if files.num_rows:
            size = readable_size(compute.sum(files.column("size_bytes")).as_py() or 0)
            first = compute.min(files.column("path")).as_py()
            yield Finding(
                check=check,
                severity=Severity.INFO,
                message=f"{counted(files.num_rows, FILE)}, {size}, {reason}, such as {first}",
                advice="vacuum(full=True, dry_run=False) deletes them"
                if is_ours
                else "the table's catalog deletes them: it does not allow clients to",
            )


def _branch_problems(patient: Patient) -> Iterator[Finding]:
    retention_ms = patient.snapshot.configuration.properties.deleted_file_retention_ms
    try:
        branches = list_branches(patient.store)
    except DeltaError as error:
        yield Finding(
            check="branch",
            severity=Severity.ERROR,
            message=f"vacuum is refused, because the record of a branch is damaged: {error}",
            advice="restore the record from a backup, or move it away",
        )
        return
    for branch in branches:
        try:
            load_snapshot(on_branch(patient.snapshot.context, branch))
        except DeltaError as error:
            yield Finding(
                check="branch",
                severity=Severity.ERROR,
                message=f"vacuum is refused, because a branch cannot be read: {error}",
                advice=f"drop_branch({branch.name!r}) deletes it",
            )
            continue
        if patient.now_ms - branch.created_ms > retention_ms:
            yield Finding(
                check="branch",
                severity=Severity.WARNING,
                message=f"the branch {branch.name!r} is older than the retention of files, so "
                "another engine's vacuum may delete files that only the branch has",
                advice=f"publish it, or discard it: drop_branch({branch.name!r})",
            )


def check_keys(patient: Patient) -> Iterator[Finding]:
    """Check the key index: files without an entry, and packs that are damaged."""
    snapshot = patient.snapshot
    if snapshot.configuration.properties.key_index_columns is None:
        return
    try:
        from deltalog.operations.key_index import inspect_key_index  # needs NumPy
    except ModuleNotFoundError as error:
        yield Finding(
            check="keys",
            severity=Severity.WARNING,
            message=f"the key index is not used, because {error.name} is not installed",
            advice="pip install numpy",
        )
        return
    found = inspect_key_index(snapshot)
    for path, problem in found.damaged:
        yield Finding(
            check="keys",
            severity=Severity.WARNING,
            message=f"a pack of the key index is not used: {problem}",
            advice="optimize.key_index() replaces it",
            path=path,
        )
    if found.num_without:
        yield Finding(
            check="keys",
            severity=Severity.INFO,
            message=f"the key index lacks {found.num_without} of {counted(found.num_files, FILE)}",
            advice="optimize.key_index()",
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
    """Check a sample of the deletion vectors.

    A vector must be readable. Its size and its number of rows must be as in the log, and the
    deleted rows must exist in the data file.
    """
    snapshot = patient.snapshot
    files = snapshot.files(["path", "deletionVector"])
    rows = snapshot.stats(pa.schema([(_NUM_RECORDS, pa.int64())])).column(_NUM_RECORDS)
    files = files.append_column(_NUM_RECORDS, rows)
    files = files.filter(files.column("deletionVector").is_valid())
    if files.num_rows and not snapshot.configuration.may_have_deletion_vectors:
        yield Finding(
            check="deletion-vector",
            severity=Severity.ERROR,
            message="the protocol lacks the table feature of the deletion vectors of "
            f"{counted(files.num_rows, FILE)}",
            advice="alter.add_feature('deletionVectors', allow_protocol_versions_increase=True)",
        )
    # Reading a deletion vector costs a request, so only a sample of the vectors is read.
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
                advice="restore it from a backup; without it, the deleted rows are unknown",
                path=path,
            )
        ]
    last, count = bitmap.max_row, row[_NUM_RECORDS]
    if count is None:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.WARNING,
                message=f"{path} has a deletion vector, but lacks the required numRecords",
                advice="strict readers refuse it: optimize.purge() rewrites the file",
                path=path,
            )
        ]
    if last is not None and last >= count:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.ERROR,
                message=f"the deletion vector of {path} marks row {last}, but according to the "
                f"log the file has {counted(count, 'row')}",
                advice="restore a version before it, or rewrite the table from its source: "
                "it is unknown which row was deleted",
                path=path,
            )
        ]
    if descriptor.max_row_index is not None and descriptor.max_row_index != last:
        return [
            Finding(
                check="deletion-vector",
                severity=Severity.WARNING,
                message=f"the deletion vector of {path} has maxRowIndex "
                f"{descriptor.max_row_index}, but its last row is {last}",
                advice="rows are correct; optimize.purge() rewrites the file",
                path=path,
            )
        ]
    return []


def check_row_ids(patient: Patient) -> Iterator[Finding]:
    """Check that row ids exist, do not overlap, and are below the high water mark."""
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
            message=f"row ids are missing in {counted(missing, FILE)}, but row tracking is on",
            advice="they were committed by a writer that does not support row tracking",
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
                message=f"row ids of {counted(count, FILE)} overlap with those of others",
                advice="an id may belong to several rows",
            )
    highest, mark = compute.max(last).as_py(), snapshot.row_id_high_water_mark
    if highest is not None and (mark is None or mark < highest):
        yield Finding(
            check="row-ids",
            severity=Severity.ERROR,
            message=f"the high water mark of row ids is {mark}, but {highest} is in use",
            advice="the next files would get ids that are in use",
        )


# --- Checks of Parquet pages: headers and checksums


def check_stored_pages(patient: Patient) -> Iterator[Finding]:
    """Check the pages of sampled files; skip files outside of the table (shallow clones)."""
    files = patient.sample(patient.snapshot.files(["path", "size"]))
    sizes: list[Any] = files.column("size").to_pylist()
    for path, size in zip(decoded(files.column("path")), sizes, strict=True):
        own = canonical_path(path, patient.store.root)
        if is_absolute(own):
            continue
        try:
            _check(patient.store, own, size)
        except DataFileMissingError:
            continue  # the check `paths` reports a missing file
        except DeltaError as error:
            changed = "its bytes have changed since they were written: restore it from a backup"
            yield Finding(
                check="pages",
                severity=Severity.ERROR,
                message=f"{path}: {error}",
                advice=None if isinstance(error, StorageError) else changed,
                path=path,
            )


def _check(store: Store, path: str, size_bytes: int | None) -> None:
    """Check all pages of a file; skip encrypted pages.

    Raises:
        DeltaError: a page is damaged, or the file cannot be read.
    """
    reader = open_parquet(store, path, size_bytes=size_bytes)
    try:
        footer = guarded(store, path, reader.stored_footer)
        size = store.stat(path).size_bytes if size_bytes is None else size_bytes
        stored = read_stored(footer, size)
        native = native_path(store, path)
        for group in () if stored is None else stored.groups:
            source: LocalBytes | FetchedBytes = (
                FetchedBytes(reader.fetch(group.ranges(size)), size)
                if native is None
                else LocalBytes(native)
            )
            try:
                check_pages(group, () if stored is None else stored.schema, source)
            finally:
                source.close()
    finally:
        reader.close()


# --- Checks of statistics against the rows of sampled files


@dataclass(slots=True)
class _Leaf:
    """Number of nulls, minimum and maximum of one column, computed from the rows of one file."""

    path: tuple[str, ...]
    physical: tuple[str, ...]
    field: Field
    nulls: int = 0
    low: Any = None
    high: Any = None

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def look_at(self, batch: pa.RecordBatch) -> None:
        """Update the values with more rows."""
        column: Any = batch.column(self.path[0])
        for name in self.path[1:]:
            column = column.flatten()[column.type.get_field_index(name)]
        self.nulls += column.null_count
        if not has_bounds(self.field):
            return
        if pa.types.is_floating(column.type):
            column = column.filter(compute.invert(compute.is_nan(column)))  # bounds ignore NaN
        if column.null_count == len(column):
            return
        ends = compute.min_max(column)
        low, high = ends["min"], ends["max"]
        if self.low is None or compute.less(low, self.low).as_py():
            self.low = low
        if self.high is None or compute.greater(high, self.high).as_py():
            self.high = high


def check_statistics(patient: Patient) -> Iterator[Finding]:
    """Check counts and bounds of sampled files against all their rows, including deleted rows."""
    snapshot = patient.snapshot
    configuration = snapshot.configuration
    keys = set(configuration.partition_columns)
    mode = configuration.column_mapping_mode
    columns = [
        (path, physical_path(configuration.schema, path, mode), field)
        for path, field in leaf_columns(configuration.schema)
        if path[0] not in keys
    ]
    schema = stats_schema((physical, field) for _, physical, field in columns)
    stats = snapshot.stats(schema)
    numbers = pa.table({"number": pa.array(range(snapshot.num_files), pa.int64())})
    chosen = patient.sample(numbers).column("number")
    files = snapshot.files(TASK_COLUMNS).take(chosen).to_pylist()
    found = stats.take(chosen)
    advice = _advice_to_rewrite(configuration)
    for number, row in enumerate(files):
        leaves = [_Leaf(path, physical, field) for path, physical, field in columns]
        path = decode_path(row["path"])
        try:
            num_rows = _read(patient, row, leaves)
        except DeltaError as error:
            yield Finding(
                check="file-unreadable", severity=Severity.ERROR, message=str(error), path=path
            )
            continue
        for message in _problems(found.slice(number, 1), leaves, num_rows):
            yield Finding(
                check="statistics",
                severity=Severity.ERROR,
                message=f"{path}: {message}",
                advice=advice,
                path=path,
            )


def _advice_to_rewrite(configuration: TableConfiguration) -> str:
    """Return the advice for files with wrong statistics, with an update that changes no value."""
    computed = generation_expressions(configuration.schema)
    names = [
        field.name
        for field in configuration.schema
        if field.name not in computed and IDENTITY_STEP_KEY not in field.metadata
    ]
    advice = "queries may lose rows; an update of all rows rewrites the files"
    if not names:
        return advice
    return f"{advice}: update(updates={{{names[0]!r}: {quote_name(names[0])!r}}})"


def _read(patient: Patient, row: dict[str, Any], leaves: Sequence[_Leaf]) -> int:
    """Read all physical rows of a file into `leaves`; return the number of rows."""
    snapshot = patient.snapshot
    names = list(dict.fromkeys(leaf.path[0] for leaf in leaves))
    spec = read_spec(snapshot, columns=names, predicate=None)
    num_rows = 0
    for batch in read_task(make_task(snapshot, spec, {**row, "deletionVector": None})):
        num_rows += batch.num_rows
        for leaf in leaves:
            leaf.look_at(batch)
    return num_rows


def _problems(stats: pa.Table, leaves: Sequence[_Leaf], num_rows: int) -> Iterator[str]:
    stated = _value(stats, ("numRecords",))
    if stated is not None and stated.as_py() != num_rows:
        yield f"numRecords is {stated.as_py()}, but it has {counted(num_rows, 'row')}"
    for leaf in leaves:
        nulls = _value(stats, ("nullCount", *leaf.physical))
        if nulls is not None and nulls.as_py() != leaf.nulls:
            yield f"nullCount of {leaf.name} is {nulls.as_py()}, but {leaf.nulls} are NULL"
        bounds = correction(leaf.field)
        low = _value(stats, ("minValues", *leaf.physical), bounds.lower)
        if low is not None and leaf.low is not None and compute.less(leaf.low, low).as_py():
            yield f"the minimum of {leaf.name} is {_shown(low)}, but {_shown(leaf.low)} occurs"
        high = _value(stats, ("maxValues", *leaf.physical), bounds.upper)
        if high is not None and leaf.high is not None and compute.greater(leaf.high, high).as_py():
            yield f"the maximum of {leaf.name} is {_shown(high)}, but {_shown(leaf.high)} occurs"


def _shown(value: pa.Scalar[Any]) -> str:
    (shown,) = readable_values(arrow.repeat(value, 1))
    return repr(shown)


def _value(stats: pa.Table, path: tuple[str, ...], correct: Any = None) -> Any:
    """Return one statistic as a scalar; None if it is missing."""
    if path[0] not in stats.column_names:
        return None
    column: Any = stats.column(path[0]).combine_chunks()
    for name in path[1:]:
        place = column.type.get_field_index(name)
        if place < 0:
            return None
        column = column.flatten()[place]
    if correct is not None:
        column = correct(column)
    value = column[0]
    if not value.is_valid or (pa.types.is_floating(value.type) and value.as_py() != value.as_py()):
        return None
    return value
