"""Plans of scans for engines that read Parquet files themselves.

A plan divides the files of a scan into groups. All files of a group store the scan's columns in the
same way, so an engine can read a group with one call of its own reader. A file that the engine
would not read exactly is in no group, and deltalog's reader reads it. A plan contains no engine's
language: `query.duckdb_files` translates it into SQL of DuckDB, `dataset` into a dataset
of pyarrow, `polars_files` into a scan of Polars, `integrations.daft` into tasks of Daft.

The rows at the end state what each engine reads exactly. A new engine is a row, and a module that
translates plans.

Protocol: Column Mapping, Deletion Vectors, Partition Value Serialization, Type Widening
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.cached import cached_property
from deltalog._util.escaping import name_key
from deltalog._util.kernels import compute, pc
from deltalog._util.paths import are_foreign, check_all_confined, decode_path
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.plan import (
    TASK_COLUMNS,
    descriptor_of,
    naming_complete_versions,
)
from deltalog.data.scan.transform import file_rebase, load_bitmap, match_columns
from deltalog.errors import DataFileMissingError, DataFileUnreadableError, DeltaError, InternalError
from deltalog.protocol.features import check_deletion_vectors
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.schema import ArrayType, MapType, PrimitiveType, StructType, to_arrow_type
from deltalog.schema.columns import walk_types
from deltalog.schema.primitives.strings import is_text
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from deltalog.storage.faults import storage_error
from deltalog.storage.links import RealPaths, real_path
from deltalog.storage.parquet.parts import advice_on_missing
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.pool import map_a_few, map_in_pool
from deltalog.storage.store import native_path
from deltalog.storage.stores.local_files import Recent, is_settled, local_state

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from deltalog.data.scan.plan import Scan
    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.schema import DataType
    from deltalog.storage.parquet.footer import ColumnChunk
    from deltalog.storage.parquet.reader import ParquetReader
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeEngine:
    """What an engine's own Parquet reader reads exactly.

    Args:
        name: the name for explanations.
        pattern: characters of a path that the engine's reader interprets as a pattern.
        hidden: names of columns that the engine's reader adds, in lower case. A file with such a
            column is read by deltalog's reader.
        types: the primitive types that the engine has, in addition to decimals.
        trusts_bounds: whether the engine prunes rows by all bounds in footers, even by those of
            floating-point numbers, which do not count NaN, and those of `_has_wrong_bounds`. Then
            translations must hide columns of floating-point numbers from the engine's statistics,
            which is possible only outside of structs.
        reads: whether the engine reads a column of the file's type (the first argument) exactly as
            the table's type (the second).
        most_files: the maximum number of files of a scan.
        most_outside: the maximum number of files outside of the table's directory, such as those of
            a shallow clone's source.
    """

    name: str
    pattern: str
    hidden: frozenset[str]
    types: frozenset[DataType]
    trusts_bounds: bool
    reads: Callable[[pa.DataType, pa.DataType], bool]
    most_files: int
    most_outside: int


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """How the files of a group store a column.

    Args:
        name: the name of the column in the files.
        is_same: whether the files store the table's type. If not, a cast to this type is exact.
    """

    name: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files with the same schema, either all with deletion vectors or all without.

    Args:
        files: the files.
        numbers: the positions of the files in the scan.
        columns: for each data column of the scan, how the files store it; None if they lack it, so
            that all its values are NULL.
        constants: the partition columns of the scan, with one value for each file.
        vectors: for each file, its deletion vector; empty if no file has one.
    """

    files: tuple[StoredFile, ...]
    numbers: tuple[int, ...]
    columns: tuple[StoredColumn | None, ...]
    constants: Mapping[str, pa.Array[Any]]
    vectors: tuple[FileVector, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The operating system's path of each file, without links."""
        return tuple(file.path for file in self.files)

    @property
    def untrusted(self) -> frozenset[str]:
        """The columns with bounds that engines may misread, by their names in the files."""
        untrusted = self.files[0].schema.untrusted
        assert untrusted is not None  # noqa: S101  # the plan is one for queries with filters
        return untrusted

    def deleted(self, store: Store) -> list[pa.Int64Array]:
        """Load the positions of the deleted rows of each file.

        Raises:
            DeletionVectorError: a vector is damaged, or marks a row that its file does not have.

        Cost: see `load_bitmap`.
        """
        return map_in_pool(lambda one: one.positions(store), self.vectors)


@dataclass(frozen=True, slots=True)
class FileVector:
    """The deletion vector of a file.

    Args:
        path: the path of the file, as in the log.
        row: the descriptor, as in the log.
        num_rows: the number of physical rows of the file.
    """

    path: str
    row: dict[str, Any]
    num_rows: int

    @property
    def num_deleted(self) -> int:
        """The number of deleted rows that the log states."""
        return int(self.row["cardinality"])

    @property
    def unique_id(self) -> str:
        """The identity of the vector, which never changes its rows."""
        descriptor = descriptor_of(self.row)
        assert descriptor is not None  # noqa: S101  # only such rows become vectors
        return descriptor.unique_id

    def positions(self, store: Store) -> pa.Int64Array:
        """Load the positions of the deleted rows; see `FileGroup.deleted`."""
        return self.bitmap(store).to_arrow()

    def bitmap(self, store: Store) -> DeletionBitmap:
        """Load the deleted rows; see `FileGroup.deleted`."""
        descriptor = descriptor_of(self.row)
        assert descriptor is not None  # noqa: S101  # only such rows become vectors
        try:
            return load_bitmap(store, descriptor, num_rows=self.num_rows)
        except DeltaError as error:
            error.add_note(f"while reading {self.path!r} of table {store.root!r}")
            raise


@dataclass(frozen=True)
class NativePlan:
    """The plan that assigns the files of a scan to an engine's reader and to deltalog's reader.

    Args:
        scan: the scan. Its predicate has pruned files; the plan does not filter rows.
        engine: the engine.
        groups: the files that the engine reads.
        num_rest: the number of files that deltalog's reader must read.
        reasons: why deltalog's reader must read them, with the number of files for each reason.
    """

    scan: Scan
    engine: NativeEngine
    groups: tuple[FileGroup, ...] = ()
    num_rest: int = 0
    reasons: tuple[str, ...] = ()

    @cached_property
    def num_files(self) -> int:
        """The number of files that the engine reads."""
        return sum(len(group.paths) for group in self.groups)

    @cached_property
    def constant_bytes(self) -> int:
        """The size in bytes of the longest partition values, added up."""
        return sum(
            _constant_bytes(values) for group in self.groups for values in group.constants.values()
        )

    @property
    def is_renamed(self) -> bool:
        """Whether files store columns under other names than the table's (column mapping)."""
        names = self.scan.spec.data_columns.names
        return any(
            column is not None and column.name != name
            for group in self.groups
            for column, name in zip(group.columns, names, strict=True)
        )

    def explain(self) -> list[str]:
        """Return lines that state how many files each reader reads, and why."""
        lines = [f"read by {self.engine.name}: {counted(self.num_files, FILE)}"]
        if any(group.vectors for group in self.groups):
            marked = sum(len(group.paths) for group in self.groups if group.vectors)
            lines.append(f"of these with deletion vectors: {marked}")
        if self.num_rest:
            lines.append(f"read by deltalog: {counted(self.num_rest, FILE)}")
        return [*lines, *(f"because {reason}" for reason in self.reasons)]


def plan_native(scan: Scan, engine: NativeEngine, *, has_filter: bool = True) -> NativePlan:
    """Decide which files of a scan an engine reads itself.

    Args:
        scan: the scan.
        engine: one of the rows at the end of this module.
        has_filter: whether the engine may compare the bounds in the footers with a filter. If not,
            the bounds are not read, and `FileGroup.untrusted` must not be used.

    Raises:
        DataFileMissingError: a file does not exist.
        DataFileUnreadableError: a file is not a Parquet file.

    Cost: reads the log's columns for the files that remain after pruning, and the footers of files
        that were not read before.
    """
    files = scan.pruned.files(TASK_COLUMNS)
    objection = _objection(scan, engine, files)
    if objection is not None:
        return NativePlan(scan, engine, num_rest=files.num_rows, reasons=(objection,))
    store = scan.snapshot.store
    paths = [decode_path(str(path)) for path in files.column("path").to_pylist()]
    with naming_complete_versions(scan.snapshot):
        # Looking at a few known files takes less time than passing them to threads.
        read = partial(_stored, store, RealPaths(), has_filter=has_filter)
        are_few = len(paths) <= _FEW_FILES
        stored = _held(store, paths, has_filter=has_filter) if are_few else None
        if stored is None:
            stored = (map_a_few if are_few else map_in_pool)(read, paths, batch_size=16)
    vectors: list[Any] = files.column("deletionVector").to_pylist()
    are_marked = [one is not None and one["storageType"] is not None for one in vectors]
    verdicts = _verdicts(scan, engine, stored)
    reasons = Counter(one for one in verdicts if isinstance(one, str))
    members: dict[tuple[Hashable, bool], list[int]] = {}
    for number, (one, verdict, is_marked) in enumerate(
        zip(stored, verdicts, are_marked, strict=True)
    ):
        if not isinstance(verdict, str):
            facts = one.schema.key if has_filter else one.schema.key[:2]
            members.setdefault((facts, is_marked), []).append(number)
    if len(members) > _MOST_GROUPS:
        reason = f"files of {len(members)} different schemas are too many for one query"
        return NativePlan(scan, engine, num_rest=files.num_rows, reasons=(reason,))
    if any(are_marked):
        check_deletion_vectors(
            scan.snapshot.configuration, table=store.root, version=scan.snapshot.version
        )
    constants = _constants(scan, files)
    groups: list[FileGroup] = []
    for (_, is_marked), numbers in members.items():
        columns = verdicts[numbers[0]]
        assert not isinstance(columns, str)  # noqa: S101  # only other files are members
        groups.append(
            FileGroup(
                tuple(stored[number] for number in numbers),
                tuple(numbers),
                columns,
                {name: values.take(pa.array(numbers)) for name, values in constants.items()},
                tuple(
                    FileVector(paths[number], vectors[number], stored[number].num_rows)
                    for number in numbers
                    if is_marked
                ),
            )
        )
    return NativePlan(
        scan,
        engine,
        tuple(groups),
        sum(reasons.values()),
        tuple(f"{number} {reason}" for reason, number in reasons.items()),
    )


def _verdicts(
    scan: Scan, engine: NativeEngine, stored: Sequence[StoredFile]
) -> list[tuple[StoredColumn | None, ...] | str]:
    """Return for each file how it stores the columns, or why the engine does not read it."""
    home = native_directory(scan.snapshot.store)
    num_outside = sum(not one.path.startswith(home) for one in stored)
    known: dict[int, tuple[StoredColumn | None, ...] | str] = {}
    found: list[tuple[StoredColumn | None, ...] | str] = []
    for one in stored:
        if id(one.schema) not in known:
            known[id(one.schema)] = _stored_columns(one.schema, scan, engine)
        verdict = known[id(one.schema)]
        if num_outside > engine.most_outside and not one.path.startswith(home):
            verdict = "are outside of the table's directory"
        elif any(character in one.path for character in engine.pattern):
            verdict = f"have names that are patterns in {engine.name}"
        found.append(verdict)
    return found


def _objection(scan: Scan, engine: NativeEngine, files: pa.Table) -> str | None:
    """Return why the engine must read no file of a scan; None if it may."""
    spec, store = scan.spec, scan.snapshot.store
    if spec.metadata_columns or spec.reads_change_type:
        return "the scan has metadata columns"
    if native_path(store, "") is None:
        return f"{engine.name} does not open files in this store"
    if files.num_rows > engine.most_files:
        return f"{files.num_rows} files are too many for one query of {engine.name}"
    paths = files.column("path")
    check_all_confined(paths)
    if compute.any(are_foreign(paths, store.root)).as_py():
        return "files are in other stores"
    found = scan.found_keys
    if found is not None and not found.num_without:  # then deltalog reads only these rows
        return "the key index finds the rows"
    return None


def native_directory(store: Store) -> str:
    """Return the directory of a table's files, as a path without links that ends with a slash.

    Raises:
        InternalError: the store's files have no local paths.
    """
    found = native_path(store, "")
    if found is None:
        raise InternalError(f"files in {store.root} have no local paths")
    return real_path(found).rstrip("/") + "/"


def directory_columns(plan: NativePlan, groups: Sequence[FileGroup]) -> tuple[str, ...] | None:
    """Return the columns whose values an engine may read from the names of directories.

    Args:
        plan: the plan.
        groups: the groups of the plan that the engine reads in one call.

    Returns:
        The keys of all directories, if the scan has partition columns, otherwise an empty tuple.
        None if the engine would read other values than those of the log.
    """
    if not plan.scan.spec.partition_columns.names or not groups:
        return ()
    *directories, _ = groups[0].paths[0].split("/")
    keys = [part.partition("=")[0] for part in directories if "=" in part]
    # A directory above the table may have such a name, too.
    is_safe = all(map(_SAFE_KEY.fullmatch, keys)) and len(set(keys)) == len(keys)
    if not is_safe or not set(keys) <= set(plan.scan.snapshot.configuration.partition_columns):
        return None
    pairs = (f"/{re.escape(key)}=(?P<value_{n}>{_SAFE_VALUE})" for n, key in enumerate(keys))
    pattern = f"^[^=]*{'(?:/[^=]*)?'.join(pairs)}/[^=]*$"
    for group in groups:
        found: Any = pc.extract_regex(pa.array(group.paths), pattern)
        if found.null_count:
            return None
        for name, values in group.constants.items():
            written = _in_directories(values)
            if name not in keys or written is None:
                return None
            if not compute.all(compute.equal(found.field(keys.index(name)), written)).as_py():
                return None
    return tuple(keys)


_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_SAFE_VALUE: Final = "[A-Za-z0-9_.-]+"
_SAFE_KEY: Final = re.compile(_SAFE_VALUE)
_OTHERWISE_READ: Final = "(?i)^(?:null|__hive_default_partition__)$"
_SAFE_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def _in_directories(values: pa.Array[Any]) -> pa.Array[Any] | None:
    """Return spellings that engines read as these values; None if a value has none."""
    kind = values.type
    is_date = pt.is_date32(kind)
    if not (is_date or pt.is_integer(kind) or pt.is_string(kind)):
        return None
    found: pa.Array[Any] = compute.cast(values, pa.string())
    if compute.any(compute.match_substring_regex(found, _OTHERWISE_READ)).as_py():
        return None
    if is_date and compute.all(compute.match_substring_regex(found, _SAFE_DATE)).as_py() is False:
        return None
    return compute.fill_null(found, _HIVE_NULL)


def _constants(scan: Scan, files: pa.Table) -> dict[str, pa.Array[Any]]:
    spec = scan.spec
    return {
        column.name: parse_column(
            extract(files.column("partitionValues"), spec.physical_names[column.name]),
            column.type,
            column=column.name,
            time_zone=spec.time_zone,
        )
        for column in spec.partition_columns
    }


def _constant_bytes(values: pa.Array[Any]) -> int:
    """Return the size in bytes of the longest partition value."""
    if not (pt.is_string(values.type) or pt.is_binary(values.type)):
        return 16
    longest: Any = compute.max(pc.binary_length(cast("pa.StringArray", values))).as_py()
    return longest or 0


# --- Facts about stored files


@dataclass(frozen=True, slots=True, eq=False)
class _StoredSchema:
    """What files with equal footers have in common; compared by identity.

    Args:
        schema: the Arrow schema of all columns, with field ids.
        is_rebased: whether the files have dates or timestamps of the hybrid calendar.
        untrusted: the names of columns with bounds that engines may misread (`_has_wrong_bounds`);
            None if the bounds were not read.
        key: equal for equal facts; the last part is `untrusted`.
    """

    schema: pa.Schema
    is_rebased: bool
    untrusted: frozenset[str] | None
    key: tuple[bytes, bool, frozenset[str] | None]


@dataclass(frozen=True, slots=True, eq=False)
class StoredFile:
    """A local data file, and the facts of its footer.

    Args:
        path: the operating system's path, without links.
        schema: the facts that it shares with other files.
        num_rows: the number of physical rows.
        group_bytes: the uncompressed size of the largest row group in bytes.
    """

    path: str
    schema: _StoredSchema
    num_rows: int
    group_bytes: int
    _row_bytes: dict[frozenset[str], int] = field(default_factory=dict)

    def row_bytes(self, store: Store, names: frozenset[str]) -> int:
        """Return the size of a decoded row in bytes; strings of a dictionary count as the longest.

        Args:
            store: the store of the table.
            names: the names of the top-level columns in the file.

        Cost: for the first call, see `ParquetReader.row_bytes`.
        """
        if names not in self._row_bytes:
            reader = open_parquet(store, self.path)
            try:
                leaves = [number for number, leaf in enumerate(reader.leaves) if leaf[0] in names]
                groups = range(reader.metadata.num_row_groups)
                self._row_bytes[names] = reader.row_bytes(leaves, groups)
            finally:
                reader.close()
        return self._row_bytes[names]


FEW_ROWS: Final = 10_000
"""The maximum number of rows that deltalog's reader reads for an engine's query without a filter,
because the first file may have enough."""
_MOST_GROUPS: Final = 32
_FEW_FILES: Final = 64
_MOST_FILES: Final = 100_000
_MOST_SCHEMAS: Final = 1_000
_FILES: Final = Recent[StoredFile](_MOST_FILES)
_SCHEMAS: Final[dict[tuple[bytes, bool, frozenset[str] | None], _StoredSchema]] = {}


def _held(store: Store, paths: Sequence[str], *, has_filter: bool) -> list[StoredFile] | None:
    """Return files whose footers were read before; None if one was not, or has changed."""
    found: list[StoredFile] = []
    for path in paths:
        native = native_path(store, path)
        try:
            known = None if native is None else _FILES.get(local_state(native))
        except OSError:
            return None
        if known is None or (has_filter and known.schema.untrusted is None):
            return None
        found.append(known)
    return found


def are_unchanged(files: Iterable[StoredFile]) -> bool:
    """Return whether files are still those whose footers were read. Looks at each file."""
    try:
        return all(_FILES.get(local_state(file.path)) is file for file in files)
    except OSError:
        return False


def _stored(store: Store, real_paths: RealPaths, path: str, *, has_filter: bool) -> StoredFile:
    native = native_path(store, path)
    if native is None:
        raise DataFileUnreadableError(f"cannot open {path!r} of {store.root} as a local file")
    try:
        state = local_state(native)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataFileMissingError(
            f"cannot read data file {path!r} of table {store.root!r}: {error}; "
            f"{advice_on_missing(store)}"
        ) from error
    except OSError as error:  # the file may exist
        raise storage_error(error, operation="read", path=native) from error
    known = _FILES.get(state)
    if known is not None and not (has_filter and known.schema.untrusted is None):
        return known
    stays = is_settled(state)  # determine this before reading the file
    reader = open_parquet(store, path, footer_only=True)
    try:
        facts = _shared_schema(
            reader.arrow_schema.remove_metadata(),
            is_rebased=file_rebase(reader.metadata, "UTC") is not None,
            untrusted=_untrusted(reader) if has_filter else None,
        )
        # DuckDB resolves links before it checks whether a file is in an allowed directory.
        groups = range(reader.metadata.num_row_groups)
        group_bytes = max((reader.footer.total_bytes([group]) for group in groups), default=0)
        found = StoredFile(real_paths[native], facts, reader.num_rows, group_bytes)
    finally:
        reader.close()
    if stays:
        _FILES.keep(found, state)
    return found


def _untrusted(reader: ParquetReader) -> frozenset[str]:
    """Return the top-level columns with bounds of strings or bytes that engines may misread."""
    schema, leaves = reader.metadata.schema, reader.leaves
    asked = [number for number in range(len(schema)) if _is_of_bytes(schema.column(number))]
    try:
        groups = reader.column_chunks(asked) if asked else ()
    except DataFileUnreadableError:
        return frozenset(leaves[leaf][0] for leaf in asked)
    return frozenset(
        leaves[leaf][0] for group in groups for leaf in asked if _has_wrong_bounds(group[leaf])
    )


def _has_wrong_bounds(chunk: ColumnChunk) -> bool:
    """Return whether an engine may misread the bounds of a chunk of strings or bytes.

    Old writers compare signed bytes. And for a chunk of NULLs and one other value without a
    dictionary, DuckDB 2.0 returns all rows for `IS NULL`.
    """
    is_one = chunk.min_value is not None and chunk.min_value == chunk.max_value
    may_have_nulls = chunk.null_count != 0
    return not chunk.is_ordered or (is_one and may_have_nulls and not chunk.has_dictionary)


def _is_of_bytes(leaf: Any) -> bool:
    return leaf.physical_type in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}


def _shared_schema(
    schema: pa.Schema, *, is_rebased: bool, untrusted: frozenset[str] | None
) -> _StoredSchema:
    """Return one object for all files with equal facts."""
    key = schema.serialize().to_pybytes(), is_rebased, untrusted
    if len(_SCHEMAS) >= _MOST_SCHEMAS:
        _SCHEMAS.clear()
    return _SCHEMAS.setdefault(key, _StoredSchema(schema, is_rebased, untrusted, key))


def _stored_columns(
    facts: _StoredSchema, scan: Scan, engine: NativeEngine
) -> tuple[StoredColumn | None, ...] | str:
    """Return how files store the columns of a scan, or why the engine does not read them."""
    spec = scan.spec
    kinds = {kind for column in spec.data_columns for _, kind in walk_types(column.type)}
    if facts.is_rebased and not _CALENDAR_TYPES.isdisjoint(kinds):
        return "have dates or timestamps of the hybrid calendar"
    names = [name_key(name) for name in facts.schema.names]
    if len(set(names)) < len(names) or not engine.hidden.isdisjoint(names):
        return f"have column names that {engine.name} changes"
    try:
        matches = match_columns(spec.data_columns, facts.schema, spec.mode, path=spec.table)
    except DataFileUnreadableError:
        return "have columns that do not match the table's"  # deltalog's reader raises the error
    if engine.trusts_bounds:
        for match in matches:
            if match is not None and match.name in (facts.untrusted or ()):
                return f"have bounds of {match.name!r} that {engine.name} would misread"
    return _columns_of(spec.data_columns, matches, engine)


def _columns_of(
    wanted: StructType, matches: Sequence[pa.Field[Any] | None], engine: NativeEngine
) -> tuple[StoredColumn | None, ...] | str:
    columns: list[StoredColumn | None] = []
    for column, match in zip(wanted, matches, strict=True):
        kind = to_arrow_type(column.type)
        if not all(_is_known(inner, engine) for _, inner in walk_types(column.type)):
            return f"have a column of the type {column.type}"
        if engine.trusts_bounds and _has_floats_in_struct(column.type):
            return f"have floating-point numbers inside of {column.name!r}"
        if match is None:
            columns.append(None)
        elif not engine.reads(match.type, kind):
            return f"store {column.name!r} as {match.type}, but the table has {column.type}"
        else:
            columns.append(StoredColumn(match.name, is_stored_as(match.type, kind)))
    return tuple(columns)


def _has_floats_in_struct(kind: DataType) -> bool:
    if not isinstance(kind, StructType):
        return False
    return any(field.type in {FLOAT, DOUBLE} or _has_floats_in_struct(field.type) for field in kind)


def _is_known(kind: DataType, engine: NativeEngine) -> bool:
    if isinstance(kind, PrimitiveType):
        return kind in engine.types or kind.is_decimal
    return isinstance(kind, StructType | ArrayType | MapType)


# --- What each engine reads


def is_stored_as(found: Any, wanted: Any) -> bool:
    """Return whether files store values of two types in the same way.

    Names of list elements, nullability, and the Arrow types that an Arrow writer notes for strings
    make no difference.
    """
    if pt.is_struct(wanted) and pt.is_struct(found):
        return found.num_fields == wanted.num_fields and all(
            one.name == other.name and is_stored_as(one.type, other.type)
            for one, other in zip(found, wanted, strict=True)
        )
    if pt.is_map(wanted) and pt.is_map(found):
        return is_stored_as(found.key_type, wanted.key_type) and is_stored_as(
            found.item_type, wanted.item_type
        )
    if pt.is_list(wanted) and pt.is_list(found):
        return is_stored_as(found.value_type, wanted.value_type)
    if pt.is_dictionary(found):
        return is_stored_as(found.value_type, wanted)
    if pt.is_string(wanted):
        return is_text(found)
    return bool(found == wanted)


_CALENDAR_TYPES: Final[frozenset[DataType]] = frozenset({DATE, TIMESTAMP})
_COMMON_TYPES: Final[frozenset[DataType]] = frozenset({
    BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP,
    TIMESTAMP_NTZ,
})  # fmt: skip
_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS: Final[Mapping[Any, int]] = MappingProxyType(
    dict(zip(_INTEGERS, (3, 5, 10, 19), strict=True))
)


def _duckdb_reads(found: Any, wanted: Any) -> bool:
    if is_stored_as(found, wanted):
        return True
    return not pt.is_nested(wanted) and _is_widened(found, wanted)


def _polars_reads(found: Any, wanted: Any) -> bool:
    is_wider = found in _INTEGERS and wanted in _INTEGERS and _DIGITS[found] <= _DIGITS[wanted]
    return is_wider or is_stored_as(found, wanted)


def _daft_reads(found: Any, wanted: Any) -> bool:
    # Daft 0.7 has no type for views of strings, which some Arrow writers note.
    return is_stored_as(found, wanted) and "_view" not in str(found)


def _is_widened(found: Any, wanted: Any) -> bool:
    """Return whether a cast from the file's type to the table's type is exact and cannot fail."""
    if found in _INTEGERS:
        if wanted in _INTEGERS:
            return _DIGITS[found] <= _DIGITS[wanted]
        if pt.is_decimal128(wanted):
            return bool(wanted.precision - wanted.scale >= _DIGITS[found])
        return bool(wanted == pa.float64() and found != pa.int64())
    if pt.is_decimal128(found) and pt.is_decimal128(wanted):
        digits = wanted.precision - wanted.scale >= found.precision - found.scale
        return bool(digits and wanted.scale >= found.scale)
    # Timestamps with and without a zone are stored as if in UTC; queries compute in UTC.
    is_moment = found == pa.timestamp("us") and pt.is_timestamp(wanted)
    return is_moment or bool(found == pa.float32() and wanted == pa.float64())


DUCKDB: Final = NativeEngine(
    name="DuckDB",
    pattern="*?[]{}\\",
    hidden=frozenset({"filename", "file_index", "file_row_number"}),
    types=_COMMON_TYPES,
    trusts_bounds=True,
    reads=_duckdb_reads,
    most_files=10_000,
    most_outside=1_000,
)
PYARROW: Final = NativeEngine(
    name="pyarrow",
    pattern="",
    hidden=frozenset(),
    types=_COMMON_TYPES,
    trusts_bounds=False,
    reads=is_stored_as,
    most_files=10_000,
    most_outside=10_000,
)
POLARS: Final = NativeEngine(
    name="Polars",
    pattern="",
    hidden=frozenset(),
    types=_COMMON_TYPES,
    trusts_bounds=False,
    reads=_polars_reads,
    most_files=10_000,
    most_outside=10_000,
)
DAFT: Final = NativeEngine(
    name="Daft",
    pattern="",
    hidden=frozenset(),
    types=_COMMON_TYPES,
    trusts_bounds=False,
    reads=_daft_reads,
    most_files=10_000,
    most_outside=10_000,
)
