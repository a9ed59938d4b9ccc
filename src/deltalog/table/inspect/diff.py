"""Compare rows, schema and settings of two versions of a table. No change data feed is needed.

A file with the same deletion vector in both versions is not read, because its rows are the same.
If the deletion vectors differ, only the rows that exactly one of the two vectors deletes are read.
`row_diff` compares the rows.

Protocol: Add File and Remove File, Deletion Vectors, Row Tracking
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.cards import card, folding, grid
from deltalog._util.escaping import name_key, printable
from deltalog._util.json import dumps
from deltalog._util.kernels import compute, exact_sum
from deltalog._util.paths import canonical_paths
from deltalog._util.similar_names import suggests_arguments
from deltalog.data.scan.plan import TASK_COLUMNS, check_rows_readable, descriptor_of, make_task
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.rows import Rows
from deltalog.data.scan.task import ReadSpec, read_spec
from deltalog.errors import DeltaError, InvalidInputError, VersionNotFoundError
from deltalog.log.replay import file_keys
from deltalog.operations.changes.row_diff import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    match_rows,
    with_change_type,
)
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType, canonical_path_of
from deltalog.schema.arrow import PARQUET_FIELD_ID
from deltalog.schema.columns import walk
from deltalog.schema.evolve import is_widening
from deltalog.schema.metadata_columns import CHANGE_TYPE, ROW_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration

_MEMORY_BYTES: Final = 256 << 20
_SHOWN: Final = 8
_MOST_COMPARED_BYTES: Final = 32 << 20
"""The card of a difference compares the rows of files up to this size in total."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class TableDiff(Rows):
    """The difference between two versions; no data is read until rows are requested.

    Each row has the compared columns of the table, `_metadata.row_id` if rows are matched by row
    id, and `_change_type`, which is `insert` or `delete`. If rows are matched by row id or by key,
    a changed row appears as `update_preimage`, directly followed by `update_postimage`. Apart from
    that, the order of rows is undefined.

    Args:
        before: the earlier version.
        after: the version that is compared with it.
        keys: names of the columns by which rows are matched, such as the row id; may be empty.
        old_spec: the columns and filters for reading `before`.
        new_spec: the same for reading `after`, with the same output columns.
        left_out: columns of `after` that are not compared, because their type has changed.
        memory_bytes: memory for the comparison; a larger comparison spills to disk.
    """

    _internal = frozenset({"memory_bytes", "new_spec", "old_spec"})

    before: Snapshot
    after: Snapshot
    keys: tuple[str, ...]
    old_spec: ReadSpec
    new_spec: ReadSpec
    left_out: tuple[str, ...] = ()
    memory_bytes: int = _MEMORY_BYTES

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema: the compared columns, the row id if rows have ids, and `_change_type`."""
        return self.new_spec.output.append(pa.field(CHANGE_TYPE, pa.string()))

    @property
    def table_schema(self) -> StructType:
        """Schema of the table."""
        return self.after.configuration.schema

    @cached_property
    def schema_changes(self) -> pa.Table:
        """The differences of the schemas, with columns `column`, `change`, `before`, `after`."""
        return schema_changes(self.before.configuration, self.after.configuration)

    @cached_property
    def setting_changes(self) -> pa.Table:
        """Properties, features and other settings that differ.

        Columns: `kind`, `name`, `before`, `after`.
        """
        return setting_changes(self.before, self.after)

    @cached_property
    def file_counts(self) -> dict[str, int]:
        """The numbers of files by difference: `added`, `removed`, `other_rows_deleted`, `same`.

        `other_rows_deleted` counts files that both versions have with different deletion vectors.

        Cost: reads the paths and deletion vectors of both versions from the log.
        """
        gone, come, masked = self._files
        return {
            "added": come.num_rows - len(masked),
            "removed": gone.num_rows - len(masked),
            "other_rows_deleted": len(masked),
            "same": self.after.num_files - come.num_rows,
        }

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that differ, in batches.

        Cost: reads each file that differs once. The comparison uses at most `memory_bytes` of
        memory and spills to disk. If one version has no such rows, nothing is compared.
        """
        if not self.new_spec.output.names:
            raise InvalidInputError(
                f"cannot compare rows of versions {self.before.version} and {self.after.version} "
                f"of {self.after.store.root}: they have no column in common; schema_changes has "
                "the differences"
            )
        gone, come, masked = self._files
        old = self._tasks(self.before, self.old_spec, gone, masked, newer=False)
        new = self._tasks(self.after, self.new_spec, come, masked, newer=True)
        first_old, first_new = next(old, None), next(new, None)
        if first_old is None or first_new is None:
            yield from self._one_sided(first_old, old, DELETE)
            yield from self._one_sided(first_new, new, INSERT)
            return
        yield from match_rows(
            self._cast(read_tasks(_chained(first_old, old))),
            self._cast(read_tasks(_chained(first_new, new))),
            schema=self.new_spec.output,
            keys=self.keys,
            memory_bytes=self.memory_bytes,
        )

    @property
    def added(self) -> pa.Table:
        """The rows that only `after` has, in memory."""
        return self._of(INSERT)

    @property
    def removed(self) -> pa.Table:
        """The rows that only `before` has, in memory."""
        return self._of(DELETE)

    @property
    def changed(self) -> pa.Table:
        """The rows with different values in the two versions: each old row, then the new row."""
        return self._of(BEFORE, AFTER)

    def summary(self) -> dict[str, int]:
        """Return the numbers of rows `added`, `removed` and `changed`.

        Cost: see `to_batches`.
        """
        counts: Counter[str] = Counter()
        for batch in self.to_batches():
            for found in compute.value_counts(batch.column(CHANGE_TYPE)).to_pylist():
                counts[found["values"]] += found["counts"]
        return {"added": counts[INSERT], "removed": counts[DELETE], "changed": counts[AFTER]}

    def __repr__(self) -> str:
        """Show the differences of schema, settings and files, but not of rows.

        Cost: reads the paths and deletion vectors of both versions from the log.
        """
        versions = f"from version {self.before.version} to {self.after.version}"
        lines = [f"Differences of {self.after.store.root!r} {versions}"]
        lines += _listed("schema", self.schema_changes, "column", "change")
        lines += _listed("settings", self.setting_changes, "name", "kind")
        counts = self.file_counts
        lines.append(
            f"  files: {counts['added']} added, {counts['removed']} removed, "
            f"{counts['other_rows_deleted']} with other rows deleted, {counts['same']} the same"
        )
        by = "row id" if self.keys == (ROW_ID,) else ", ".join(self.keys) or "all columns"
        lines.append(f"  rows: matched by {by}")
        if self.left_out:
            lines.append(f"  not compared: {', '.join(self.left_out)}")
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        """Return the notebook card.

        Cost: see `__repr__`. If the files that differ are small, their rows are compared, too.
        """
        *facts, _ = repr(self).split("\n", 1)
        pieces = [
            folding(
                title, grid([list(row.values()) for row in found.to_pylist()], found.column_names)
            )
            for title, found in (
                ("schema", self.schema_changes),
                ("settings", self.setting_changes),
            )
            if found.num_rows
        ]
        counts = [(name.replace("_", " "), count) for name, count in self.file_counts.items()]
        shown = [folding("rows", grid(self._row_counts())), folding("files", grid(counts))]
        return card(facts[0], *pieces, *shown)

    def _row_counts(self) -> list[tuple[str, object]]:
        """Return the numbers of rows for the card, or why they are not counted."""
        gone, come, _ = self._files
        num_bytes = sum(exact_sum(compute.fill_null(files["size"], 0)) for files in (gone, come))
        if num_bytes > _MOST_COMPARED_BYTES:
            return [("not compared", "the files are large: summary() compares their rows")]
        try:
            return list(self.summary().items())
        except DeltaError as error:  # show the card without these numbers
            return [("not compared", str(error))]

    @cached_property
    def _files(self) -> tuple[pa.Table, pa.Table, frozenset[str]]:
        """The files that differ, of `before` and of `after`, and the paths that both tables have.

        These paths are canonical: the same files, but with different deletion vectors.
        """
        root = self.after.store.root
        tables = []
        for snapshot in (self.before, self.after):
            files = snapshot.files(TASK_COLUMNS)
            keys = file_keys(files.column("path"), files.column("deletionVector"), root)
            tables.append(files.append_column("key", keys))
        old, new = (
            table.filter(
                compute.invert(compute.is_in(table.column("key"), value_set=other.column("key")))
            ).drop_columns("key")
            for table, other in (tables, tables[::-1])
        )
        old, new = (
            table.append_column("canonical", canonical_paths(table.column("path"), root))
            for table in (old, new)
        )
        both = compute.is_in(old.column("canonical"), value_set=new.column("canonical"))
        paths: list[Any] = old.filter(both).column("canonical").to_pylist()  # paths are never NULL
        return old, new, frozenset(paths)

    def _tasks(
        self,
        snapshot: Snapshot,
        spec: ReadSpec,
        files: pa.Table,
        masked: frozenset[str],
        *,
        newer: bool,
    ) -> Iterator[ScanTask]:
        """Yield tasks that read the rows of `files`, except rows that both versions have.

        `masked` contains the files with different deletion vectors in the two versions.
        """
        others = self._other_vectors(newer=newer)
        other = self.before if newer else self.after
        for batch in files.to_batches(max_chunksize=4096):
            for row in batch.to_pylist():
                if row["canonical"] not in masked:
                    yield make_task(snapshot, spec, row)
                    continue
                # Read the rows that only the other version's deletion vector deletes.
                there = others[row["canonical"]]
                if there is not None:
                    yield make_task(
                        other,
                        spec,
                        {**row, "deletionVector": there},
                        without=descriptor_of(row["deletionVector"]),
                        only_deleted=True,
                    )

    def _other_vectors(self, *, newer: bool) -> dict[str, dict[str, Any] | None]:
        """Return the other version's deletion vectors of the files that both versions have."""
        gone, come, masked = self._files
        if not masked:
            return {}
        table = (gone if newer else come).select(["canonical", "deletionVector"])
        table = table.filter(
            compute.is_in(table.column("canonical"), value_set=pa.array(masked, pa.string()))
        )
        return {row["canonical"]: row["deletionVector"] for row in table.to_pylist()}

    def _one_sided(
        self, first: ScanTask | None, rest: Iterator[ScanTask], kind: str
    ) -> Iterator[pa.RecordBatch]:
        if first is not None:
            for batch in self._cast(read_tasks(_chained(first, rest))):
                yield with_change_type(batch, kind)

    def _cast(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with the output schema; the batches differ from it in nullability."""
        shown = self.new_spec.output
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=shown)

    def _of(self, *kinds: str) -> pa.Table:
        wanted = pa.array(kinds, pa.string())
        found = (
            batch.filter(compute.is_in(batch.column(CHANGE_TYPE), value_set=wanted))
            for batch in self.to_batches()
        )
        return pa.Table.from_batches(found, schema=self.schema)


def _check_one_log(before: Snapshot, after: Snapshot) -> None:
    # The table's id may change within one log: CREATE OR REPLACE changes it.
    if before.metadata.id == after.metadata.id:
        return
    for one in (before, after):
        if not one.is_in_place():
            raise VersionNotFoundError(
                f"cannot compare versions {before.version} and {after.version} of "
                f"{after.store.root}: the table was replaced in between; open the new "
                "table"
            )


def diff_snapshots(
    before: Snapshot,
    after: Snapshot,
    *,
    key: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    memory_bytes: int = _MEMORY_BYTES,
) -> TableDiff:
    """Compare two versions of one table.

    Rows have the schema of `after`. Rows are matched by `key` if it is given, otherwise by row id
    if row tracking is on in both versions. Without key and row ids, equal rows cancel each other
    out, and a changed row appears as one removed row and one added row.

    Args:
        before: usually the earlier version.
        after: usually the later version.
        key: columns that identify a row, instead of row ids.
        columns: columns to compare and return, in addition to `key`; None means all.
        memory_bytes: memory for the comparison; a larger comparison spills to disk.

    Raises:
        InvalidInputError: a column does not exist, or a key column differs between the versions.
            If the versions have no column in common, `TableDiff.to_batches` raises this error.
        UnsupportedFeatureError: a version has a table feature that deltalog cannot read.
        VersionNotFoundError: the table was replaced since one of the versions was read.

    Cost: reads protocol and metadata of both versions. Rows are read when they are requested.
    """
    check_rows_readable(before)
    check_rows_readable(after)
    _check_one_log(before, after)
    schema = after.configuration.schema
    shared = shared_columns(before.configuration, after.configuration)
    identity = [canonical_path_of(schema, name)[0] for name in key]
    wanted = list(schema.names)
    if columns is not None:
        asked = [canonical_path_of(schema, name)[0] for name in columns]
        wanted = list(dict.fromkeys([*identity, *asked]))
    compared = [name for name in wanted if name in shared.names]
    left_out = tuple(name for name in wanted if name not in shared.names)
    missing = [name for name in identity if name in left_out]
    if missing:
        raise InvalidInputError(
            f"cannot compare versions {before.version} and {after.version} of "
            f"{after.store.root} by {', '.join(missing)}: they differ or are missing in one version"
        )
    hidden: tuple[str, ...] = ()
    if compared and not identity and _have_row_ids(before, after):
        hidden = (ROW_ID,)
        identity = [ROW_ID]
    new_spec = read_spec(after, columns=compared, hidden=hidden, predicate=None)
    if shared.reads_alike:
        old_spec = replace(
            new_spec,
            row_id_column=before.configuration.row_id_column,
            row_commit_version_column=before.configuration.row_commit_version_column,
        )
    else:
        old_spec = read_spec(before, columns=compared, hidden=hidden, predicate=None)
    return TableDiff(
        before=before,
        after=after,
        keys=tuple(identity),
        old_spec=old_spec,
        new_spec=new_spec,
        left_out=left_out,
        memory_bytes=memory_bytes,
    )


def _have_row_ids(before: Snapshot, after: Snapshot) -> bool:
    same = before.metadata.id == after.metadata.id
    both = before.configuration.row_ids_enabled and after.configuration.row_ids_enabled
    # Row ids cannot be returned if a column of the table already has the name `ROW_ID`.
    is_taken = any(ROW_ID in one.configuration.schema.names for one in (before, after))
    return same and both and not is_taken


def _chained(first: ScanTask, rest: Iterator[ScanTask]) -> Iterator[ScanTask]:
    yield first
    yield from rest


def _listed(title: str, changes: pa.Table, name: str, kind: str) -> list[str]:
    rows = changes.slice(0, _SHOWN).to_pylist()
    lines = [
        f"  {title}: {row[kind]} {row[name]}: {_shown(row['before'])} → {_shown(row['after'])}"
        for row in rows
    ]
    more = changes.num_rows - len(rows)
    return [*lines, f"  {title}: … {more} more"] if more else lines


def _shown(text: str | None) -> str:
    return "nothing" if text is None else text


# --- Differences between the schemas and settings of two versions


Row = tuple[str, str, str | None, str | None]
_PRIVATE: Final = ("delta.columnMapping.", "delta.typeChanges", PARQUET_FIELD_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedColumns:
    """The columns of a later schema that can be compared with an earlier one.

    Args:
        names: the top-level columns of the later schema that can be compared.
        reads_alike: whether files of the earlier version can be read with the later schema, with
            NULL for columns added since. If false, each version is read with its own schema.
    """

    names: frozenset[str]
    reads_alike: bool


def shared_columns(before: TableConfiguration, after: TableConfiguration) -> SharedColumns:
    """Find the columns of `after` that can be compared with those of `before`."""
    mode = after.column_mapping_mode
    by_identity = {_identity(field, mode): field for field in before.schema}
    by_name = {name_key(field.name): field for field in before.schema}
    # If column mapping is enabled for an existing table, the current name of each column becomes
    # its physical name. So files of the earlier version can be read with the later schema.
    then_mode = before.column_mapping_mode
    alike = then_mode in {mode, Mode.NONE} and before.partition_columns == after.partition_columns
    for field in after.schema:
        same = by_identity.get(_identity(field, mode))
        # A column with the same name but another physical name is a different column, for example
        # after CREATE OR REPLACE.
        alike = alike and (same is not None or name_key(field.name) not in by_name)
    names = set()
    for field in after.schema:
        if alike:
            then = by_identity.get(_identity(field, mode))
            if then is None or _can_show(then.type, field.type, mode):
                names.add(field.name)
        else:
            then = by_name.get(name_key(field.name))
            if then is not None and then.name == field.name and then.type == field.type:
                names.add(field.name)
    return SharedColumns(names=frozenset(names), reads_alike=alike)


def _can_show(then: DataType, now: DataType, mode: Mode) -> bool:
    match then, now:
        case StructType(), StructType():
            known = {_identity(field, mode): field for field in now}
            pairs = [(field, known.get(_identity(field, mode))) for field in then]
            return all(
                match is None or _can_show(field.type, match.type, mode) for field, match in pairs
            )
        case ArrayType(), ArrayType():
            return _can_show(then.element_type, now.element_type, mode)
        case MapType(), MapType():
            return _can_show(then.key_type, now.key_type, mode) and _can_show(
                then.value_type, now.value_type, mode
            )
        case _:
            return then == now or is_widening(then, now)


def _identity(field: Field, mode: Mode) -> str:
    return name_key(field.name) if mode is Mode.NONE else physical_name(field, mode)


def schema_changes(before: TableConfiguration, after: TableConfiguration) -> pa.Table:
    """Return the columns and nested fields that were added, removed, renamed or changed."""
    mode = after.column_mapping_mode
    then, now = _fields(before.schema, mode), _fields(after.schema, mode)
    gone = [found for key, found in then.items() if key not in now]
    rows: list[Row] = [(".".join(path), "removed", _described(field), None) for path, field in gone]
    for key, (path, field) in now.items():
        if key in then:
            rows += _field_changes(".".join(path), then[key][1], field)
        else:
            rows.append((".".join(path), "added", None, _described(field)))
    rows += _order_changes(before.schema.names, after.schema.names)
    return _table(("column", "change", "before", "after"), rows)


def _field_changes(name: str, then: Field, now: Field) -> list[Row]:
    facts = {
        "renamed": (then.name, now.name),
        "type": (_kind(then), _kind(now)),
        "nullable": (_truth(then.nullable), _truth(now.nullable)),
        "metadata": (_remarks(then), _remarks(now)),
    }
    return [(name, change, *pair) for change, pair in facts.items() if pair[0] != pair[1]]


def _order_changes(then: Sequence[str], now: Sequence[str]) -> list[Row]:
    common = set(then) & set(now)
    if [name for name in then if name in common] == [name for name in now if name in common]:
        return []
    return [("*", "order", ", ".join(then), ", ".join(now))]


def setting_changes(before: Snapshot, after: Snapshot) -> pa.Table:
    """Return the properties, features and other settings that differ between two versions."""
    then, now = _settings(before), _settings(after)
    rows: list[Row] = [
        (kind, name, then.get((kind, name)), now.get((kind, name)))
        for kind, name in sorted(then.keys() | now.keys())
        if then.get((kind, name)) != now.get((kind, name))
    ]
    return _table(("kind", "name", "before", "after"), rows)


def _settings(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    found: dict[tuple[str, str], str | None] = {
        ("table", "id"): metadata.id,
        ("table", "name"): metadata.name,
        ("table", "description"): metadata.description,
        ("table", "partition columns"): ", ".join(metadata.partition_columns) or None,
        ("protocol", "minReaderVersion"): str(protocol.min_reader_version),
        ("protocol", "minWriterVersion"): str(protocol.min_writer_version),
    }
    for name, text in metadata.configuration.items():
        found["property", name] = text
    for name in snapshot.configuration.features.values():
        found["feature", name] = "supported"
    for name, domain in snapshot.domain_metadata.items():
        found["domain", name] = domain.text
    return {key: text for key, text in found.items() if text is not None}


def _fields(schema: StructType, mode: Mode) -> dict[tuple[str, ...], tuple[tuple[str, ...], Field]]:
    """Return all fields by path; parents come before their children.

    The keys consist of physical names if column mapping is on, otherwise of lower-case names.
    """
    found = {}
    identities: dict[tuple[str, ...], str] = {}
    for path, field in walk(schema):
        identities[path] = _identity(field, mode)
        key = tuple(
            identities.get(path[:length], path[length - 1]) for length in range(1, len(path) + 1)
        )
        found[key] = (path, field)
    return found


def _kind(field: Field) -> str:
    """Return the type as a string; only `struct` for a struct, because its fields are listed."""
    return "struct" if isinstance(field.type, StructType) else str(field.type)


def _described(field: Field) -> str:
    return str(field.type) if field.nullable else f"{field.type} not null"


def _remarks(field: Field) -> str | None:
    shown = {
        name: value
        for name, value in sorted(field.metadata.items())
        if not name.startswith(_PRIVATE)
    }
    return dumps(shown).decode() if shown else None


def _truth(value: bool) -> str:  # noqa: FBT001  # a value, not an option
    return "true" if value else "false"


def _table(names: tuple[str, ...], rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)
