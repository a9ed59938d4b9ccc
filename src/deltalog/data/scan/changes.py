"""The change data feed: inserted, deleted and updated rows, version by version.

This module finds the files that contain the changes of a version, and checks that a range can be
read. If a version has change files, they contain all of its changes. Otherwise, its changes are the
rows of its added and removed files, whose deletion vectors are compared.

Protocol: Add CDC File, Change Data Files, Reader Requirements for AddCDCFile
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.argument_types import checks_types
from deltalog._util.call_errors import called_first
from deltalog._util.cards import card, plain
from deltalog._util.clock import Moment
from deltalog._util.escaping import name_key
from deltalog._util.kernels import compute
from deltalog._util.paths import canonical_path, decode_path
from deltalog._util.readable import epoch_hint
from deltalog._util.similar_names import suggests_arguments
from deltalog.data.scan.plan import check_rows_readable, descriptor_of, make_task, some_rows
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.rows import CALLED, Rows, with_names_of_rows
from deltalog.data.scan.task import Constants, ReadSpec, read_spec
from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    IncompatibleChangesError,
    InvalidInputError,
    VersionNotFoundError,
)
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.log.reader import VERSION_COLUMN, CommitTable, advising_on_damage, read_commits
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.arrow import CDC_SCHEMA, FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.protocol.actions.codec import metadata_from_json, protocol_from_json
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import check_readable
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    canonical_path_of,
)
from deltalog.schema.check import readable_moment
from deltalog.schema.metadata_columns import (
    CHANGE_COLUMNS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    moment_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.names import LogFile

_MEANT: Final = {
    **dict.fromkeys(("filter", "where", "query"), "load_cdf(predicate=…)"),
    **dict.fromkeys(("select", "project"), "load_cdf(columns=…)"),
    "count": "to_table().num_rows",
    **dict.fromkeys(("lazy", "toDF"), "to_polars()"),
}
"""What to use instead of names of other libraries, in addition to those of all rows."""


@called_first(*CALLED)
@checks_types
@suggests_arguments
@dataclass(frozen=True)
class Changes(Rows):
    """The changes of a range of versions; no data is read until rows are requested.

    Args:
        snapshot: the version that determines the schema of the rows.
        first: snapshot of the first version of the range.
        end: the last version of the range.
        commits: the commit files of the range, ascending.
        file_times_ms: times of the commit files by version.
        spec: the columns and the predicate.
    """

    _meant = with_names_of_rows(_MEANT)
    _internal = frozenset({"commits", "file_times_ms", "first", "spec"})

    snapshot: Snapshot
    first: Snapshot
    end: int
    commits: tuple[LogFile, ...]
    file_times_ms: Mapping[int, int]
    spec: ReadSpec

    @property
    def schema(self) -> pa.Schema:
        """Return the schema: the selected columns of the table, then `CHANGE_COLUMNS`."""
        return self.spec.output

    @property
    def table_schema(self) -> StructType:
        """Return the schema of the table."""
        return self.snapshot.configuration.schema

    def __repr__(self) -> str:
        """Show the table and the versions."""
        return f"Changes({self.spec.table!r}, versions {self.first.version} to {self.end})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the range of versions, and some of its rows.

        Cost: reads the commits of the range, and rows of one file at most.
        """
        columns = ", ".join(self.schema.names)
        title = f"Changes of {self.spec.table}, versions {self.first.version} to {self.end}"
        return card(title, plain(f"columns: {columns}"), *some_rows(self.to_batches))

    def tasks(self) -> Iterator[ScanTask]:
        """Yield a picklable task per file, in ascending order of versions.

        Raises:
            ChangeDataFeedNotEnabledError: the feed was disabled in a version of the range.
            IncompatibleChangesError: the schema changed, and no schema is valid for the whole
                range.

        Cost: reads every commit of the range.
        """
        store = self.snapshot.store
        with advising_on_damage(store, self.commits, self.snapshot.log_tail):
            table = read_commits(store, self.commits, commit_infos=True)
        times = self._check_versions(table)
        for file in self.commits:
            yield from self._tasks_of(file.version, table, times[file.version])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows in batches, in ascending order of versions."""
        return read_tasks(self.tasks())

    def _check_versions(self, table: CommitTable) -> dict[int, int]:
        """Check that all versions have the feed and a compatible schema; return commit times."""
        protocol, metadata = self.first.protocol, self.first.metadata
        protocols = {v: protocol_from_json(node) for v, node in table.protocol_nodes}
        metadatas = {v: metadata_from_json(node) for v, node in table.metadata_nodes}
        then = TableConfiguration(protocol, metadata)
        self._check(self.first.version, then)
        times = dict(self.file_times_ms)
        for version in (file.version for file in self.commits):
            if version in protocols or version in metadatas:
                protocol = protocols.get(version, protocol)
                metadata = metadatas.get(version, metadata)
                then = TableConfiguration(protocol, metadata)
                self._check(version, then)
            own = then.in_commit_timestamps
            if own is not None and own.covers(version):
                info = table.commit_infos.get(version, {})
                times[version] = info.get("inCommitTimestamp", times[version])
        return times

    def _check(self, version: int, then: TableConfiguration) -> None:
        table = self.spec.table
        has_log_tail = self.snapshot.log_tail is not None
        check_readable(then, table=table, version=version, has_log_tail=has_log_tail)
        if not then.is_active("changeDataFeed"):
            raise ChangeDataFeedNotEnabledError(
                f"cannot read changes {self.first.version} to {self.end} of {table}: version "
                f"{version} was written without a change data feed; table.alter."
                "set_table_properties({'delta.enableChangeDataFeed': 'true'}) or deltalog "
                "properties TABLE --set delta.enableChangeDataFeed=true switches it on from the "
                "next version on, and a range in which it was on can be read"
            )
        mode = then.column_mapping_mode
        problem = incompatibility(then.schema, self.snapshot.configuration.schema, mode)
        if problem is not None:
            raise IncompatibleChangesError(
                f"cannot read changes {self.first.version} to {self.end} of {table}: at version "
                f"{version} the schema differs from that of version {self.snapshot.version}: "
                f"{problem}; read the versions before and after the change apart"
            )

    def _tasks_of(self, version: int, table: CommitTable, time_ms: int) -> Iterator[ScanTask]:
        commit = (
            (COMMIT_VERSION, pa.array([version], pa.int64())),
            (COMMIT_TIMESTAMP, pa.array([moment_of(time_ms)], CHANGE_COLUMNS[COMMIT_TIMESTAMP])),
        )
        adds = _changing(_rows_of(table.adds, version, FILE_SCHEMA.names))
        removes = _changing(_rows_of(table.removes, version, REMOVE_SCHEMA.names))
        yield from change_tasks(
            self.snapshot,
            self.spec,
            cdc=_rows_of(table.cdc, version, CDC_SCHEMA.names),
            adds=adds,
            removes=(self._with_partition_values(row, version) for row in removes),
            constants=commit,
        )

    def _with_partition_values(self, row: dict[str, Any], version: int) -> dict[str, Any]:
        """Return a remove with partition values; missing values are those of the add action."""
        if row["partitionValues"] is not None or not self.spec.partition_columns.names:
            return row
        before = load_snapshot(self.snapshot.context, version=version - 1)
        files = before.files(["path", "partitionValues"])
        found = files.filter(compute.equal(files.column("path"), row["path"])).to_pylist()
        return {**row, "partitionValues": found[0]["partitionValues"]} if found else row


def change_tasks(
    snapshot: Snapshot,
    spec: ReadSpec,
    *,
    cdc: Sequence[dict[str, Any]],
    adds: Iterable[dict[str, Any]],
    removes: Iterable[dict[str, Any]],
    constants: Constants = (),
) -> Iterator[ScanTask]:
    """Yield tasks for the files that contain the changes of one version.

    Args:
        snapshot: the version that determines the schema of the rows.
        spec: the result of `changes_spec`.
        cdc: the version's change files; if there are any, `adds` and `removes` are ignored.
        adds: the version's added files with `dataChange`.
        removes: the version's removed files with `dataChange`, including their partition values.
        constants: columns with one value for all changes of the version.
    """
    # Protocol: if a version has cdc actions, their files contain all changes of the version.
    if cdc:
        own = replace(spec, reads_change_type=True)
        for row in cdc:
            yield make_task(snapshot, own, {**row, "deletionVector": None}, constants=constants)
        return
    inserted = (*constants, (CHANGE_TYPE, pa.array(["insert"])))
    deleted = (*constants, (CHANGE_TYPE, pa.array(["delete"])))

    def between(row: dict[str, Any], vector: Any, without: Any, kind: Constants) -> ScanTask:
        """Return a task for the rows that `vector` marks and `without` does not mark."""
        row = {**row, "deletionVector": vector}
        rest = descriptor_of(without)
        return make_task(snapshot, spec, row, without=rest, only_deleted=True, constants=kind)

    root = snapshot.store.root
    removed = {canonical_path(decode_path(row["path"]), root): row for row in removes}
    for row in adds:
        before = removed.pop(canonical_path(decode_path(row["path"]), root), None)
        if before is None:
            yield make_task(snapshot, spec, row, constants=inserted)
            continue
        # The version removed the file and added it again with another deletion vector. Rows that
        # are only in the new vector were deleted. Rows that are only in the old vector were
        # restored.
        new, old = row["deletionVector"], before["deletionVector"]
        if new is not None:
            yield between(row, new, old, deleted)
        if old is not None:
            yield between(row, old, new, inserted)
    for row in removed.values():
        yield make_task(snapshot, spec, row, constants=deleted)


def open_changes(
    latest: Snapshot,
    *,
    start: int | Moment,
    end: int | Moment | None = None,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
    allow_out_of_range: bool = False,
) -> Changes:
    """Return the changes of a range of versions, which includes both ends.

    With column mapping, the rows have the schema of the range's last version, otherwise the schema
    of `latest`.

    Args:
        latest: the newest version that may be read.
        start: the first version; or a time, which means the first version at or after that time.
        end: the last version; or a time, which means the last version at or before that time. None
            means `latest`.
        columns: names of columns of the table or of `CHANGE_COLUMNS`; None means all of them.
        predicate: a condition on these columns.
        allow_out_of_range: whether versions after `latest` are empty instead of an error.

    Raises:
        InvalidInputError: a column is unknown, or the range ends before it starts.
        VersionNotFoundError: a version of the range is not in the log.
        UnsupportedFeatureError: deltalog cannot read the table's rows.

    Cost: one listing, and the snapshots of both ends. If a bound is a timestamp and the table has
    in-commit timestamps, also every commit.
    """
    check_rows_readable(latest)
    listing = list_log(latest.store, from_version=0, log_tail=latest.log_tail)
    latest.check_listed(listing)
    if _is_swapped(start, end):
        raise InvalidInputError(
            f"cannot read changes {start} to {end} of {latest.store.root}: the range ends before "
            "it starts"
        )
    times = file_times_ms(listing.commits.values())
    if latest.configuration.in_commit_timestamps and not (
        isinstance(start, int) and isinstance(end, int | None)
    ):
        times |= {entry["version"]: entry["timestamp"] for entry in latest.history()}
    first = start if isinstance(start, int) else _first_from(start, times, latest.version)
    last = latest.version if end is None else end
    last = last if isinstance(last, int) else _last_until(last, times)
    if allow_out_of_range:
        last = min(last, latest.version)
    is_empty = allow_out_of_range and first > latest.version
    if not is_empty:
        asked = f"{start} to {last if end is None else end}"
        _check_range(latest, first, last, times, asked)
    shown = latest
    if latest.configuration.column_mapping_mode is not Mode.NONE and not is_empty:
        shown = load_snapshot(latest.context, version=last)
    spec = changes_spec(shown, columns, predicate)
    if is_empty:
        return Changes(shown, shown, shown.version - 1, (), {}, spec)
    return Changes(
        snapshot=shown,
        first=load_snapshot(latest.context, version=first),
        end=last,
        commits=tuple(listing.commits[version] for version in range(first, last + 1)),
        file_times_ms=times,
        spec=spec,
    )


def _is_swapped(start: int | Moment, end: int | Moment | None) -> bool:
    if isinstance(start, int):
        return isinstance(end, int) and 0 <= end < start
    return isinstance(end, Moment) and end.ms < start.ms


def _first_from(moment: Moment, times: Mapping[int, int], latest: int) -> int:
    return min((version for version, ms in times.items() if ms >= moment.ms), default=latest + 1)


def _last_until(moment: Moment, times: Mapping[int, int]) -> int:
    return max((version for version, ms in times.items() if ms <= moment.ms), default=-1)


def _check_range(
    latest: Snapshot, first: int, last: int, times: Mapping[int, int], asked: str
) -> None:
    asked = f"{asked} of {latest.store.root}"
    if first > latest.version or last > latest.version or last < 0 or first < 0:
        newest = times.get(latest.version)
        at = "" if newest is None else f", committed at {readable_moment(newest)}"
        raise VersionNotFoundError(
            f"cannot read changes {asked}: its versions are "
            f"{min(times, default=0)} to {latest.version}{at}; allow_out_of_range=True reads the "
            f"versions that exist{epoch_hint(first).replace(' pass ', ' pass starting_timestamp=')}"
        )
    if last < first:
        raise InvalidInputError(f"cannot read changes {asked}: the range ends before it starts")
    # Search backwards, because a requested range may have billions of versions, of which few exist.
    start = last + 1
    while start > first and start - 1 in times:
        start -= 1
    if start > first:
        raise VersionNotFoundError(
            f"cannot read changes {asked}: the commit of version {start - 1} was cleaned up; start "
            f"after version {start - 1}"
        )


def changes_spec(
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    predicate: Expression | None,
) -> ReadSpec:
    """Resolve the columns and the predicate of a change feed against a snapshot.

    Args:
        snapshot: the version that determines the schema of the rows.
        columns: names of columns of the table or of `CHANGE_COLUMNS`; None means all of them.
        predicate: a condition on these columns.

    Raises:
        InvalidInputError: a column is unknown, or is a metadata column.
    """
    own = [name for name in (columns or ()) if name not in CHANGE_COLUMNS]
    spec = read_spec(
        snapshot,
        columns=None if columns is None else own,
        predicate=predicate,
        more_columns=CHANGE_COLUMNS,
    )
    # Change files have no row ids, and the positions of their rows have no meaning.
    if spec.metadata_columns:
        raise InvalidInputError(
            f"cannot read {list(spec.metadata_columns)!r} of the changes of "
            f"{snapshot.store.root}: a change feed has the table's columns and "
            f"{list(CHANGE_COLUMNS)!r}"
        )
    fields = {field.name: field for field in spec.output}
    fields |= {name: pa.field(name, kind) for name, kind in CHANGE_COLUMNS.items()}
    if columns is None:
        return replace(spec, output=pa.schema(list(fields.values())))
    schema = snapshot.configuration.schema
    order = [
        name if name in CHANGE_COLUMNS else canonical_path_of(schema, name)[0] for name in columns
    ]
    return replace(spec, output=pa.schema([fields[name] for name in dict.fromkeys(order)]))


def _rows_of(table: pa.Table, version: int, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = table.filter(compute.equal(table.column(VERSION_COLUMN), version))
    return rows.select([name for name in names if name in rows.column_names]).to_pylist()


def _changing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["dataChange"] is not False]


def incompatibility(
    then: DataType, shown: DataType, mode: Mode, where: str = "column"
) -> str | None:
    """Return the reason why rows of type `then` cannot be read as `shown`; None if they can.

    Fields that were added later are NULL in earlier rows. Any other difference is a reason: a
    dropped or renamed column, another type, or a column that is no longer nullable.
    """
    match then, shown:
        case StructType(), StructType():
            return _fields_problem(then, shown, mode, where)
        case ArrayType(), ArrayType():
            return incompatibility(then.element_type, shown.element_type, mode, where)
        case MapType(), MapType():
            return incompatibility(then.key_type, shown.key_type, mode, where) or incompatibility(
                then.value_type, shown.value_type, mode, where
            )
        case _:
            return None if then == shown else f"{where} was {then} and is {shown}"


def _fields_problem(then: StructType, shown: StructType, mode: Mode, where: str) -> str | None:
    now: dict[str, Field] = {_identity(field, mode): field for field in shown}
    for field in then:
        name = f"{where} {field.name!r}"
        match = now.get(_identity(field, mode))
        if match is None:
            return f"{name} is gone"
        if name_key(match.name) != name_key(field.name):
            return f"{name} is {match.name!r} now"
        if field.nullable and not match.nullable:
            return f"{name} was nullable and is not any more"
        problem = incompatibility(field.type, match.type, mode, name)
        if problem is not None:
            return problem
    return None


def _identity(field: Field, mode: Mode) -> str:
    return name_key(field.name) if mode is Mode.NONE else physical_name(field, mode)
