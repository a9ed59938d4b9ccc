"""The change data feed: which rows came, went and changed, version by version.

Owns which files tell the changes of a version (change files where there are some, else the added
and removed files, by the difference of their deletion vectors) and which ranges can be shown.

Protocol: Add CDC File, Change Data Files, Reader Requirements for AddCDCFile
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.actions.arrow import CDC_SCHEMA, FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.column_mapping import Mode, physical_name
from deltalog.configuration import TableConfiguration
from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    IncompatibleChangesError,
)
from deltalog.features import check_readable
from deltalog.log.reader import VERSION_COLUMN, read_commits
from deltalog.paths import canonical_path, decode_path
from deltalog.scan.plan import descriptor_of, make_task, read_spec
from deltalog.scan.reader import read_tasks
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType
from deltalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.expressions import Expression
    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.snapshot import Snapshot

CHANGE_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "_change_type": pa.string(),
    "_commit_version": pa.int64(),
    "_commit_timestamp": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Changes:
    """The changes of a range of versions: nothing is read before rows are asked for.

    Args:
        snapshot: of the version whose schema is shown.
        first: of the first version of the range.
        end: the last version, included.
        commits: the log files of the range, ascending.
        timestamps_ms: commit time by version.
        spec: columns and predicate.
    """

    snapshot: Snapshot
    first: Snapshot
    end: int
    commits: tuple[LogFile, ...]
    timestamps_ms: Mapping[int, int]
    spec: ReadSpec

    @property
    def schema(self) -> pa.Schema:
        """The table's columns asked for, then `CHANGE_COLUMNS`."""
        return self.spec.output

    def tasks(self) -> Iterator[ScanTask]:
        """One picklable task per file, versions ascending.

        Raises:
            ChangeDataFeedNotEnabledError: the feed was off in a version of the range.
            IncompatibleChangesError: the schema changed so that one schema cannot show the range.

        Cost: every commit of the range.
        """
        table = read_commits(self.snapshot.store, self.commits)
        self._check_versions(table)
        for version in range(self.first.version, self.end + 1):
            yield from self._tasks_of(version, table)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows, batch by batch, versions ascending."""
        return read_tasks(self.tasks())

    def to_reader(self) -> pa.RecordBatchReader:
        """The changed rows as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All changed rows in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The changed rows for any library that takes Arrow streams."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def _check_versions(self, table: CommitTable) -> None:
        """Every version must have the feed on, and a schema that the shown one can stand for."""
        protocol, metadata = self.first.protocol, self.first.metadata
        protocols, metadatas = dict(table.protocols), dict(table.metadatas)
        for version in range(self.first.version, self.end + 1):
            protocol = protocols.get(version, protocol)
            metadata = metadatas.get(version, metadata)
            if version in protocols or version in metadatas or version == self.first.version:
                self._check(version, TableConfiguration(protocol, metadata))

    def _check(self, version: int, then: TableConfiguration) -> None:
        table = self.spec.table
        check_readable(then, table=table, version=version)
        if not then.is_active("changeDataFeed"):
            raise ChangeDataFeedNotEnabledError(
                f"cannot read changes {self.first.version} to {self.end} of {table}: version "
                f"{version} was written without a change data feed "
                "(delta.enableChangeDataFeed); ask for a range in which it was on"
            )
        mode = then.column_mapping_mode
        problem = _incompatibility(then.schema, self.snapshot.configuration.schema, mode)
        if problem is not None:
            raise IncompatibleChangesError(
                f"cannot read changes {self.first.version} to {self.end} of {table}: at version "
                f"{version} the schema differs from that of version {self.snapshot.version}: "
                f"{problem}; read the versions before and after the change apart"
            )

    def _tasks_of(self, version: int, table: CommitTable) -> Iterator[ScanTask]:
        cdc = _rows_of(table.cdc, version, CDC_SCHEMA.names)
        if cdc:
            spec = replace(self.spec, reads_change_type=True)
            for row in cdc:
                yield self._task(spec, {**row, "deletionVector": None}, version, None)
            return
        adds = _changing(_rows_of(table.adds, version, FILE_SCHEMA.names))
        removes = _changing(_rows_of(table.removes, version, REMOVE_SCHEMA.names))
        root = self.snapshot.store.root
        removed = {canonical_path(decode_path(row["path"]), root): row for row in removes}
        for row in adds:
            before = removed.pop(canonical_path(decode_path(row["path"]), root), None)
            if before is None:
                yield self._task(self.spec, row, version, "insert")
            else:
                yield from self._vector_tasks(row, before, version)
        for row in removed.values():
            yield self._task(
                self.spec, self._with_partition_values(row, version), version, "delete"
            )

    def _vector_tasks(
        self, after: dict[str, Any], before: dict[str, Any], version: int
    ) -> Iterator[ScanTask]:
        """The same file before and after: its deletion vector grew, shrank, or both."""
        new, old = descriptor_of(after["deletionVector"]), descriptor_of(before["deletionVector"])
        if new is not None:
            yield self._task(self.spec, after, version, "delete", without=old, only_deleted=True)
        if old is not None:
            row = {**after, "deletionVector": before["deletionVector"]}
            yield self._task(self.spec, row, version, "insert", without=new, only_deleted=True)

    def _task(
        self,
        spec: ReadSpec,
        row: dict[str, Any],
        version: int,
        change_type: str | None,
        *,
        without: DeletionVectorDescriptor | None = None,
        only_deleted: bool = False,
    ) -> ScanTask:
        constants: list[tuple[str, pa.Scalar[Any]]] = [
            ("_commit_version", pa.scalar(version, pa.int64())),
            (
                "_commit_timestamp",
                pa.scalar(self.timestamps_ms[version] * 1000, CHANGE_COLUMNS["_commit_timestamp"]),
            ),
        ]
        if change_type is not None:
            constants.append(("_change_type", pa.scalar(change_type)))
        return make_task(
            self.snapshot,
            spec,
            row,
            constants=tuple(constants),
            without=without,
            only_deleted=only_deleted,
        )

    def _with_partition_values(self, row: dict[str, Any], version: int) -> dict[str, Any]:
        """A remove without its partition values takes them from the add that it ends."""
        if row["partitionValues"] is not None or not self.spec.partition_columns.names:
            return row
        before = load_snapshot(self.snapshot.store, version=version - 1)
        files = before.files(["path", "partitionValues"])
        found = files.filter(pc.field("path") == row["path"]).to_pylist()
        return {**row, "partitionValues": found[0]["partitionValues"]} if found else row


def plan_changes(
    snapshot: Snapshot,
    first: Snapshot,
    end: int,
    *,
    commits: Sequence[LogFile],
    timestamps_ms: Mapping[int, int],
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
) -> Changes:
    """The changes from the version of `first` to `end`, both included.

    Args:
        snapshot: of the version whose schema is shown: with column mapping the last of the range,
            without it the table's latest.
        first: of the first version of the range.
        end: the last version.
        commits: the log files of these versions, ascending.
        timestamps_ms: commit times of the versions of the range.
        columns: of the table and of `CHANGE_COLUMNS`; None is all of both.
        predicate: over the same columns.

    Raises:
        InvalidInputError: unknown columns.
        UnsupportedFeatureError: the table's rows can't be honoured.
    """
    check_readable(snapshot.configuration, table=snapshot.store.root, version=snapshot.version)
    own = [name for name in (columns or ()) if name not in CHANGE_COLUMNS]
    spec = read_spec(
        snapshot,
        columns=None if columns is None else own,
        predicate=predicate,
        more_columns=CHANGE_COLUMNS,
    )
    asked = [*spec.output.names, *CHANGE_COLUMNS] if columns is None else list(columns)
    fields = {field.name: field for field in spec.output}
    fields |= {name: pa.field(name, kind) for name, kind in CHANGE_COLUMNS.items()}
    names = {name.casefold(): name for name in fields}
    order = [names[name.partition(".")[0].casefold()] for name in asked]
    output = pa.schema([fields[name] for name in dict.fromkeys(order)])
    return Changes(
        snapshot=snapshot,
        first=first,
        end=end,
        commits=tuple(commits),
        timestamps_ms=timestamps_ms,
        spec=replace(spec, output=output),
    )


def _rows_of(table: pa.Table, version: int, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = table.filter(pc.field(VERSION_COLUMN) == version)
    return rows.select([name for name in names if name in rows.column_names]).to_pylist()


def _changing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["dataChange"] is not False]


def _incompatibility(
    then: DataType, shown: DataType, mode: Mode, where: str = "column"
) -> str | None:
    """Why rows of the type `then` can't be shown as `shown`; None if they can.

    Fields that came later are NULL in earlier rows. Anything else that differs (a column gone,
    renamed, retyped, no longer nullable) would show rows as they never were.
    """
    match then, shown:
        case StructType(), StructType():
            return _fields_incompatibility(then, shown, mode, where)
        case ArrayType(), ArrayType():
            return _incompatibility(then.element_type, shown.element_type, mode, where)
        case MapType(), MapType():
            return _incompatibility(then.key_type, shown.key_type, mode, where) or _incompatibility(
                then.value_type, shown.value_type, mode, where
            )
        case _:
            return None if then == shown else f"{where} was {then} and is {shown}"


def _fields_incompatibility(
    then: StructType, shown: StructType, mode: Mode, where: str
) -> str | None:
    now: dict[str, Field] = {_identity(field, mode): field for field in shown}
    for field in then:
        name = f"{where} {field.name!r}"
        match = now.get(_identity(field, mode))
        if match is None:
            return f"{name} is gone"
        if match.name.casefold() != field.name.casefold():
            return f"{name} is {match.name!r} now"
        if field.nullable and not match.nullable:
            return f"{name} could be NULL and can't be now"
        problem = _incompatibility(field.type, match.type, mode, name)
        if problem is not None:
            return problem
    return None


def _identity(field: Field, mode: Mode) -> str:
    return field.name.casefold() if mode is Mode.NONE else physical_name(field, mode)
