"""Converting physical batches to logical batches.

This module matches the columns of a data file with the table's columns (by name, physical name or
field id), selects the Parquet leaves to read, and makes the logical arrays: missing columns and
nested fields are NULL, narrower types are cast to widened types, dates of the old calendar are
rebased, and shredded variants are reassembled.

Protocol: Column Mapping (Reader Requirements for Column Mapping), Type Widening, Variant Shredding
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.decimals import cast_decimals
from deltalog._util.escaping import name_key
from deltalog._util.kernels import compute, pc
from deltalog._util.small_arrays import small_scalar
from deltalog.errors import DataFileMissingError, DataFileUnreadableError, ObjectNotFoundError
from deltalog.protocol.column_mapping import Mode, field_id, physical_name
from deltalog.protocol.deletion_vectors import (
    DeletionBitmap,
    byte_range,
    check_file_version,
    check_rows,
    location,
    parse_framed,
    parse_inline,
)
from deltalog.schema import (
    VARIANT,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
    to_arrow_type,
)
from deltalog.schema.arrow import parquet_field_id
from deltalog.schema.primitives.strings import is_bytes, is_text
from deltalog.schema.variant import unshred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow.parquet as pq  # noqa: TID251  # only for annotations

    from deltalog.protocol.actions.model import DeletionVectorDescriptor
    from deltalog.storage.parquet.reader import ParquetReader
    from deltalog.storage.store import Store

    Adapter = Callable[[Any], pa.Array[Any]]

_MOST_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class FileProjection:
    """The leaves to read of a file, and the functions that convert them to logical columns.

    Args:
        leaves: indices of the Parquet leaf columns, ascending.
        columns: for each logical column, its name in the file (None if it is missing), and the
            function that converts its arrays (None if none is needed).
        schema: the schema of the logical columns.
        leaf_of: for each logical column to which the bounds in the footer apply, the number of its
            leaf in the file. Such a column has a single leaf and is not rebased.
    """

    leaves: tuple[int, ...]
    columns: tuple[tuple[str | None, Adapter | None], ...]
    schema: pa.Schema
    leaf_of: Mapping[str, int]

    def apply(self, table: pa.Table) -> list[pa.ChunkedArray[Any]]:
        """Convert a physical table, which has the columns of `leaves`, to the logical columns."""
        found: list[pa.ChunkedArray[Any]] = []
        for (name, adapter), column in zip(self.columns, self.schema, strict=True):
            if name is None:
                missing = pa.nulls(table.num_rows, column.type)
                found.append(pa.chunked_array([missing], column.type))
                continue
            chunks = table.column(name)
            if adapter is not None:
                chunks = pa.chunked_array([adapter(chunk) for chunk in chunks.chunks], column.type)
            found.append(chunks)
        return found


def kept_projection(
    columns: StructType, reader: ParquetReader, mode: Mode, path: str, time_zone: str
) -> FileProjection:
    """Return `project_file` for an open file; the result is cached with the file's footer.

    `time_zone` is used if the file does not state the time zone of its writer.
    """
    known, key = reader.footer.projections, (columns, mode, path, time_zone)
    found: FileProjection | None = known.get(key)
    if found is None:
        rebase = file_rebase(reader.metadata, time_zone)
        schema = reader.arrow_schema
        if rebase is None:
            found = _RECENT.get(columns, mode, schema)
        if found is None:
            found = project_file(columns, schema, mode, path=path, rebase=rebase)
            if rebase is None:
                _RECENT.keep(columns, mode, schema, found)
        known[key] = found
    return found


class _RecentProjections:
    """A cache of projections without conversions, which files with the same columns share.

    Most files of a table have the same columns, and matching thousands of columns by name takes
    longer than comparing two schemas.
    """

    def __init__(self) -> None:
        self._kept: tuple[tuple[StructType, Mode, pa.Schema, FileProjection], ...] = ()

    def get(self, columns: StructType, mode: Mode, schema: pa.Schema) -> FileProjection | None:
        """Return the cached projection of these columns for files with this schema, or None."""
        for known_columns, known_mode, known_schema, projection in self._kept:
            is_same = known_mode is mode and known_columns == columns
            # Compare the metadata, too, because it contains the field ids.
            if is_same and known_schema.equals(schema, check_metadata=True):
                return projection
        return None

    def keep(
        self, columns: StructType, mode: Mode, schema: pa.Schema, found: FileProjection
    ) -> None:
        """Cache a projection that has no conversions; conversions would contain the file's path."""
        if all(adapter is None for _, adapter in found.columns):
            self._kept = ((columns, mode, schema, found), *self._kept[: _MOST_KEPT - 1])


_RECENT: Final = _RecentProjections()


def project_file(
    columns: StructType,
    file_schema: pa.Schema,
    mode: Mode,
    *,
    path: str,
    rebase: Rebase | None = None,
) -> FileProjection:
    """Match the table's `columns` with the columns of the file at `path`.

    Args:
        columns: the requested logical columns, with only the requested nested fields.
        file_schema: the schema of the Parquet file, with field ids in the fields' metadata.
        mode: the table's column mapping mode.
        path: the file's path, for error messages.
        rebase: the settings for rebasing, if the file uses the hybrid calendar.

    Raises:
        DataFileUnreadableError: a column's type cannot be read as the table's type, two columns of
            the file match one column, or the table maps columns by id and the file has no ids.

    Protocol: Reader Requirements for Column Mapping
    """
    matcher = _ColumnMatcher(mode=mode, path=path, rebase=rebase)
    matcher.check_ids(columns, file_schema)
    first_leaf: dict[str, int] = {}
    position = 0
    for column in file_schema:
        first_leaf.setdefault(column.name, position)
        position += _num_leaves(column.type)
    found: list[tuple[str | None, Adapter | None]] = []
    leaf_of: dict[str, int] = {}
    fields = _Fields(file_schema)
    for wanted in columns:
        match = matcher.find(wanted, fields)
        if match is None:
            found.append((None, None))
            continue
        adapter = matcher.adapt(wanted.name, wanted.type, match.type, first_leaf[match.name])
        found.append((match.name, adapter))
        leaf = first_leaf[match.name]
        if isinstance(wanted.type, PrimitiveType) and leaf not in matcher.rebased:
            leaf_of[wanted.name] = leaf
    return FileProjection(
        leaves=tuple(sorted(matcher.leaves)),
        columns=tuple(found),
        schema=pa.schema([pa.field(wanted.name, to_arrow_type(wanted.type)) for wanted in columns]),
        leaf_of=leaf_of,
    )


def match_columns(
    columns: StructType, file_schema: pa.Schema, mode: Mode, *, path: str
) -> list[pa.Field[Any] | None]:
    """Return the file's column for each of the table's `columns`; None if the file lacks it.

    Args:
        columns: the requested logical columns.
        file_schema: the schema of the Parquet file, with field ids in the fields' metadata.
        mode: the table's column mapping.
        path: for messages.

    Raises:
        DataFileUnreadableError: two columns of the file match one column, or the table maps columns
            by id and the file has no ids.

    Protocol: Reader Requirements for Column Mapping
    """
    matcher = _ColumnMatcher(mode=mode, path=path, rebase=None)
    matcher.check_ids(columns, file_schema)
    fields = _Fields(file_schema)
    return [matcher.find(wanted, fields) for wanted in columns]


class _Fields:
    """An index of the fields on one level of a file's schema."""

    def __init__(self, fields: Iterable[pa.Field[Any]]) -> None:
        self._by_folded_name: dict[str, list[pa.Field[Any]]] = {}
        self._by_id: dict[int, list[pa.Field[Any]]] = {}
        for field_ in fields:
            self._by_folded_name.setdefault(name_key(field_.name), []).append(field_)
            number = parquet_field_id(field_)
            if number is not None:
                self._by_id.setdefault(number, []).append(field_)

    def named(self, name: str) -> list[pa.Field[Any]]:
        """Return the fields with this name, ignoring case."""
        return self._by_folded_name.get(name_key(name), [])

    def with_id(self, number: int | None) -> list[pa.Field[Any]]:
        """Return the fields with this field id."""
        return [] if number is None else self._by_id.get(number, [])


@dataclass(slots=True)
class _ColumnMatcher:
    """Matches columns, makes the functions that convert their arrays, and collects their leaves."""

    mode: Mode
    path: str
    rebase: Rebase | None
    leaves: set[int] = field(default_factory=set)
    rebased: set[int] = field(default_factory=set)

    def check_ids(self, columns: StructType, file_schema: pa.Schema) -> None:
        if self.mode is not Mode.ID or not len(columns):
            return
        if all(parquet_field_id(column) is None for column in file_schema):
            raise DataFileUnreadableError(
                f"cannot read data file {self.path!r}: the table maps columns by id, but the file "
                "has no field ids; it was not written for this table"
            )

    def find(self, wanted: Field, fields: _Fields) -> pa.Field[Any] | None:
        if self.mode is Mode.ID:
            found = fields.with_id(field_id(wanted))
        else:
            name = wanted.name if self.mode is Mode.NONE else physical_name(wanted)
            found = fields.named(name)
        if len(found) > 1:
            raise DataFileUnreadableError(
                f"cannot read column {wanted.name!r} of data file {self.path!r}: expected one "
                f"column of that name, found {[column.name for column in found]!r}"
            )
        return found[0] if found else None

    def adapt(self, name: str, wanted: DataType, found: Any, first: int) -> Adapter | None:
        """Return a function that converts arrays of the file's type to the table's type.

        `first` is the index of the first leaf below the file's column.
        """
        match wanted:
            case StructType() if pt.is_struct(found):
                return self._struct(name, wanted, found, first)
            case ArrayType() if _is_list(found):
                return self._list(name, wanted, found, first)
            case MapType() if pt.is_map(found):
                return self._map(name, wanted, found, first)
            case VariantType() if pt.is_struct(_storage(found)):
                self._take(found, first)
                return _variant
            case PrimitiveType() if not pt.is_nested(found):
                self._take(found, first)
                with contextlib.suppress(TypeError):
                    adapter = self._leaf(found, to_arrow_type(wanted), first)
                    return _checked(adapter, name, self.path)
            case _:
                pass
        raise DataFileUnreadableError(
            f"cannot read column {name!r} of data file {self.path!r}: "
            f"expected {wanted}, found {found}, which cannot be read as that type"
        )

    def _leaf(self, found: Any, wanted: Any, leaf: int) -> Adapter | None:
        promote = promotion(found, wanted)
        if self.rebase is None:
            return promote
        # Rebase a date before it is cast, even if the column's type was widened to a timestamp.
        if pt.is_date32(found):
            old = self.rebase.adapter(leaf, found)
            steps = (old, promote)
        else:
            old = self.rebase.adapter(leaf, wanted)
            steps = (promote, old)
        if old is not None:
            self.rebased.add(leaf)
        return _chained(*steps)

    def _take(self, found: Any, first: int) -> None:
        self.leaves.update(range(first, first + _num_leaves(found)))

    def _struct(self, name: str, wanted: StructType, found: Any, first: int) -> Adapter | None:
        starts: dict[str, int] = {}
        position = first
        fields = list(found)
        for child in fields:
            starts[child.name] = position
            position += _num_leaves(child.type)
        before = len(self.leaves)
        parts: list[tuple[str | None, Adapter | None]] = []
        known = _Fields(fields)
        for child in wanted:
            match = self.find(child, known)
            if match is None:
                parts.append((None, None))
                continue
            inner = self.adapt(f"{name}.{child.name}", child.type, match.type, starts[match.name])
            parts.append((match.name, inner))
        if len(self.leaves) == before and fields:
            # The file contains no requested field. Read any leaf, because it shows which structs
            # are NULL.
            self._take(_first_leaf_type(found), first)
        return _StructAdapter(tuple(parts), to_arrow_type(wanted))

    def _list(self, name: str, wanted: ArrayType, found: Any, first: int) -> Adapter | None:
        element = found.value_type
        inner = self.adapt(f"{name}.element", wanted.element_type, element, first)
        return _ListAdapter(inner, to_arrow_type(wanted), is_plain=pt.is_list(found))

    def _map(self, name: str, wanted: MapType, found: Any, first: int) -> Adapter | None:
        key_type, item_type = found.key_type, found.item_type
        keys = self.adapt(f"{name}.key", wanted.key_type, key_type, first)
        # Read all leaves of the key, because otherwise Arrow would read the map as a list.
        self._take(key_type, first)
        items = self.adapt(
            f"{name}.value", wanted.value_type, item_type, first + _num_leaves(key_type)
        )
        return _MapAdapter(keys, items, to_arrow_type(wanted))


def _chained(first: Adapter | None, second: Adapter | None) -> Adapter | None:
    if first is None or second is None:
        return first or second
    return lambda array: second(first(array))


def _checked(adapter: Adapter | None, name: str, path: str) -> Adapter | None:
    if adapter is None:
        return None

    def adapt(array: Any) -> pa.Array[Any]:
        try:
            return adapter(array)
        except pa.ArrowInvalid as error:
            raise DataFileUnreadableError(
                f"cannot read column {name!r} of data file {path!r}: "
                f"a value cannot be converted to the table's type: {error}"
            ) from error

    return adapt


def _variant(array: Any) -> pa.Array[Any]:
    plain = unshred(array.storage if isinstance(array, pa.ExtensionArray) else array)
    return pa.ExtensionArray.from_storage(VARIANT, plain)


@dataclass(frozen=True, slots=True)
class _StructAdapter:
    parts: tuple[tuple[str | None, Adapter | None], ...]
    kind: Any

    def __call__(self, array: Any) -> pa.Array[Any]:
        children: list[pa.Array[Any]] = []
        fields = list(self.kind)
        for (name, adapter), child in zip(self.parts, fields, strict=True):
            if name is None:
                children.append(pa.nulls(len(array), child.type))
                continue
            values = array.field(name)
            children.append(values if adapter is None else adapter(values))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


@dataclass(frozen=True, slots=True)
class _ListAdapter:
    inner: Adapter | None
    kind: Any
    is_plain: bool

    def __call__(self, array: Any) -> pa.Array[Any]:
        if not self.is_plain:
            array = array.cast(pa.list_(array.type.value_field))
        values = array.values
        values = values if self.inner is None else self.inner(values)
        return with_children(array, self.kind, values)


@dataclass(frozen=True, slots=True)
class _MapAdapter:
    keys: Adapter | None
    items: Adapter | None
    kind: Any

    def __call__(self, array: Any) -> pa.Array[Any]:
        keys, items = array.keys, array.items
        keys = keys if self.keys is None else self.keys(keys)
        items = items if self.items is None else self.items(items)
        fields = [self.kind.key_field, self.kind.item_field]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return with_children(array, self.kind, entries)


def with_children(array: Any, kind: Any, child: pa.Array[Any]) -> pa.Array[Any]:
    """Return lists or maps with other values, but the same validity and offsets."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], -1, array.offset, children=[child]
    )


def _storage(kind: Any) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_list(kind: Any) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)


def _num_leaves(kind: Any) -> int:
    """Return the number of Parquet leaf columns of a type."""
    if pt.is_map(kind):
        return _num_leaves(kind.key_type) + _num_leaves(kind.item_type)
    if _is_list(kind):
        return _num_leaves(kind.value_type)
    if pt.is_struct(kind):
        return sum(_num_leaves(child.type) for child in kind)
    if isinstance(kind, pa.BaseExtensionType):
        return _num_leaves(kind.storage_type)
    return 1


def _first_leaf_type(kind: Any) -> Any:
    """Return the type of the first leaf or map in a type; a map must be read completely."""
    while pt.is_struct(kind) or _is_list(kind):
        kind = kind.field(0).type if pt.is_struct(kind) else kind.value_type
    return kind


# --- Conversions of leaf values to the table's current type


def promotion(found: Any, wanted: Any) -> Adapter | None:
    """Return a function that converts arrays of the leaf type `found` to `wanted`.

    Returns:
        None if the types are equal.

    Raises:
        TypeError: `found` cannot be read as `wanted`.

    Protocol: Type Widening
    """
    if found == wanted:
        return None
    if pt.is_dictionary(found):
        inner = promotion(found.value_type, wanted)
        return lambda array: _then(array.dictionary_decode(), inner)
    # Another library has registered this extension type.
    if isinstance(found, pa.BaseExtensionType):
        inner = promotion(found.storage_type, wanted)
        return lambda array: _then(array.storage, inner)
    if pt.is_null(wanted):
        return lambda array: pa.nulls(len(array))
    if pt.is_null(found):
        return lambda array: pa.nulls(len(array), wanted)
    if pt.is_timestamp(wanted) and pt.is_timestamp(found):
        return _timestamps(found, wanted)
    if pt.is_duration(wanted) and pt.is_int64(found):
        return lambda array: array.view(wanted)
    if not _is_promotion(found, wanted):
        raise TypeError(f"{found} cannot be read as {wanted}")
    if pt.is_decimal(found):
        return lambda array: cast_decimals(array, wanted)
    return lambda array: array.cast(wanted)


def _then(array: Any, adapter: Adapter | None) -> pa.Array[Any]:
    return array if adapter is None else adapter(array)


def _timestamps(found: Any, wanted: Any) -> Adapter:
    # The zone of the file is irrelevant, because timestamps with and without zone are stored as if
    # in UTC.
    naive = pa.timestamp(found.unit)
    target_unit = pa.timestamp(wanted.unit)

    def adapt(array: Any) -> pa.Array[Any]:
        plain = array.view(naive)
        if naive.unit == "ns" and wanted.unit != "ns":  # the table has microseconds, so round down
            plain = pc.floor_temporal(plain, unit="microsecond").cast(target_unit)
        elif naive != target_unit:
            plain = plain.cast(target_unit)
        shown: pa.Array[Any] = plain.view(wanted)
        return shown

    return adapt


def _is_promotion(found: Any, wanted: Any) -> bool:
    if pt.is_integer(found):
        # Narrowing is allowed, because some writers do not annotate small integers. The cast checks
        # the values.
        return pt.is_integer(wanted) or pt.is_floating(wanted) or pt.is_decimal(wanted)
    if pt.is_floating(found):
        return pt.is_floating(wanted)
    if pt.is_decimal(found):
        return pt.is_decimal(wanted)
    if pt.is_date(found):
        return pt.is_date(wanted) or (pt.is_timestamp(wanted) and wanted.tz is None)
    if is_text(found) or is_bytes(found):
        return pt.is_string(wanted) or (pt.is_binary(wanted) and is_bytes(found))
    return False


# --- Rebasing dates and timestamps of the hybrid Julian/Gregorian calendar to the ISO calendar


_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"
_ZONE: Final = b"org.apache.spark.timeZone"
_FIRST_ISO_DAY: Final = -141_427
"""The first day on which both calendars are the same: 1582-10-15, in days since 1970."""
_DAY_US: Final = 86_400_000_000
_FIRST_JAVA_US: Final = -2_208_988_800_000_000
"""1900-01-01 in microseconds. Java's old time zone API has only standard offsets before it."""
_FIXED_ZONE: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Rebase:
    """The settings for rebasing the values of a file.

    Args:
        datetimes: whether dates and INT64 timestamps are in the hybrid calendar.
        int96: whether INT96 timestamps are in the hybrid calendar.
        zone: the writer's time zone.
        int96_leaves: numbers of the Parquet leaf columns that are INT96.
    """

    datetimes: bool
    int96: bool
    zone: str
    int96_leaves: frozenset[int]

    def adapter(self, leaf: int, kind: Any) -> Adapter | None:
        """Return a function that rebases arrays of a leaf; None if no rebasing is needed.

        `kind` is a date or a timestamp in microseconds. A timestamp without a zone is not rebased.
        """
        if pt.is_date32(kind):
            return rebase_dates if self.datetimes else None
        applies = self.int96 if leaf in self.int96_leaves else self.datetimes
        if not applies or not pt.is_timestamp(kind) or kind.tz is None:
            return None
        return lambda array: rebase_timestamps(array, self.zone)


def file_rebase(metadata: pq.FileMetaData, time_zone: str) -> Rebase | None:
    """Return the settings for rebasing that the footer requires; None for nearly every file.

    Args:
        metadata: the footer's metadata.
        time_zone: used if the footer does not contain the writer's time zone.
    """
    notes: Mapping[bytes, bytes] = metadata.metadata or {}
    if _VERSION not in notes:  # as in Spark, do not rebase files without Spark's version
        return None
    version = _version(notes[_VERSION].decode(errors="replace"))
    datetimes = version < (3, 0) or _LEGACY in notes
    int96 = version < (3, 1) or _LEGACY_INT96 in notes
    if not (datetimes or int96):
        return None
    schema = metadata.schema
    return Rebase(
        datetimes=datetimes,
        int96=int96,
        zone=notes[_ZONE].decode(errors="replace") if _ZONE in notes else time_zone,
        int96_leaves=frozenset(
            leaf for leaf in range(len(schema)) if schema.column(leaf).physical_type == "INT96"
        ),
    )


def _version(text: str) -> tuple[int, ...]:
    """Return major and minor version of Spark; any suffix is ignored."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def rebase_dates(dates: Any) -> pa.Array[Any]:
    """Rebase dates, preserving year, month and day of the hybrid calendar."""
    days = dates.view(pa.int32())
    if not _any_before(days, _FIRST_ISO_DAY):
        return dates  # type: ignore[no-any-return]  # `dates` is an array
    moved = compute.add(days.cast(pa.int64()), _shift(days))
    rebased: pa.Array[Any] = moved.cast(pa.int32()).view(dates.type)
    return rebased


def rebase_timestamps(instants: Any, zone: str) -> pa.Array[Any]:
    """Rebase instants, preserving the local date and time of the hybrid calendar in `zone`.

    Args:
        instants: microseconds since 1970 in UTC.
        zone: the writer's time zone, as named in Java.
    """
    micros = instants.view(pa.int64())
    if not _any_before(micros, _FIRST_JAVA_US):
        return instants  # type: ignore[no-any-return]  # `instants` is an array
    fixed = _fixed_offset_us(zone)
    offset_us = _winter_offset_us(zone) if fixed is None else fixed
    shown = compute.add(micros, offset_us)
    # Arrow's `divide` truncates, which is wrong before 1970. This cast rounds down.
    days = shown.view(pa.timestamp("us")).cast(pa.date32(), safe=False).view(pa.int32())
    shown = compute.add(shown, compute.multiply(_shift(days), _DAY_US))
    moved = compute.subtract(shown, offset_us) if fixed is not None else _instants(shown, zone)
    rebased: pa.Array[Any] = compute.if_else(compute.less(micros, _FIRST_JAVA_US), moved, micros)
    return rebased.view(instants.type)


def _any_before(values: Any, first: int) -> bool:
    least = compute.min(values).as_py()
    return least is not None and least < first


def _shift(days: Any) -> Any:
    """Return, for each day of the hybrid calendar, the number of days that rebasing adds."""
    shift = small_scalar(2, pa.int64())
    for first, later in _switches():
        shift = compute.if_else(compute.greater_equal(days, first), later, shift)
    return shift


@lru_cache(maxsize=1)
def _switches() -> tuple[tuple[int, int], ...]:
    """Return the days on which the hybrid calendar's offset to ISO changes, with the new offsets.

    The days are ascending. In the hybrid calendar, years such as 1500 have a 29 February, which
    changes the offset by one day.
    """
    found = []
    for century in range(1, 16):
        if century % 4 == 0:
            continue
        off = 2 - century + century // 4
        march = dt.date(100 * century, 3, 1) - dt.date(1970, 1, 1)
        found.append((march.days - off, off))
    return (*found, (_FIRST_ISO_DAY, 0))


def _fixed_offset_us(zone: str) -> int | None:
    """Return a zone's offset if it is fixed; None for a named zone."""
    if zone in {"UTC", "GMT", "UT", "Z", "Etc/UTC", "Zulu"}:
        return 0
    found = _FIXED_ZONE.fullmatch(zone)
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    sign = -1 if found[1] == "-" else 1
    return sign * (3600 * hours + 60 * minutes + seconds) * 1_000_000


@lru_cache(maxsize=64)
def _winter_offset_us(zone: str) -> int:
    months = [dt.datetime(2021, month, 1, tzinfo=dt.UTC) for month in range(1, 13)]
    instants: Any = pa.array(months, pa.timestamp("us", zone))
    shown = compute.local_timestamp(instants).view(pa.int64())
    least: int = compute.min(compute.subtract(shown, instants.view(pa.int64()))).as_py()
    return least


def _instants(shown: Any, zone: str) -> Any:
    """Return the instants of local times in a zone; for an ambiguous time, the later instant.

    For a local time that a DST change skips, the offset before the change is used, as in Java.
    """
    texts = shown.view(pa.timestamp("us"))
    near = compute.assume_timezone(texts, zone, ambiguous="latest", nonexistent="earliest")
    offset = compute.subtract(compute.local_timestamp(near).view(pa.int64()), near.view(pa.int64()))
    return compute.subtract(shown, offset)


# --- Deletion vectors


def load_bitmap(
    store: Store, descriptor: DeletionVectorDescriptor, *, num_rows: int | None
) -> DeletionBitmap:
    """Load the row positions that a deletion vector marks as deleted.

    Args:
        store: the table's store.
        descriptor: the vector's descriptor.
        num_rows: the number of physical rows of the data file, from the footer or `numRecords`. If
            it is None, the caller must check the positions.

    Raises:
        DataFileMissingError: the file of the deletion vector does not exist.
        DeletionVectorError: the vector is damaged, does not match its descriptor, or
            marks a row that the data file does not have.

    Cost: one request of two ranges for a vector in a file, nothing for an inline vector.
    """
    bitmap = _load(store, descriptor)
    check_rows(bitmap, descriptor, num_rows)
    return bitmap


def _load(store: Store, descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    path = location(descriptor)
    if path is None:
        return parse_inline(descriptor)
    start, length = byte_range(descriptor)
    try:
        version, framed = store.read_ranges(path, [(0, 1), (start, start + length)])
    except ObjectNotFoundError as error:
        raise DataFileMissingError(
            f"cannot read deletion vector file {path!r} of table {store.root!r}: the file is gone; "
            "restore it, or read a version that does not need it"
        ) from error
    check_file_version(version)
    return parse_framed(framed, descriptor, data_offset=start)
