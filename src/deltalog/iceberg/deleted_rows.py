"""Read the deleted rows of each data file of an Iceberg table, for all kinds of row-level deletes.

Protocol: Iceberg Table Spec: Scan Planning, Row-level Deletes
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import FALSE, Array, compute, pc
from deltalog._util.paths import FileInfo, encode_path
from deltalog.data.scan.reader import ScanTask, read_task
from deltalog.data.scan.task import ReadSpec
from deltalog.errors import DataFileMissingError, InvalidInputError, ObjectNotFoundError
from deltalog.protocol.actions.model import DeletionVectorDescriptor
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.deletion_vectors import DeletionBitmap, parse_framed
from deltalog.schema import StructType, to_arrow_schema, to_arrow_type
from deltalog.schema.arrow import parquet_field_id
from deltalog.schema.metadata_columns import METADATA_COLUMNS, ROW_INDEX
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.pool import map_in_pool, read_ahead

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalog.iceberg.source import DeleteFile, EqualityKey, IcebergFile, RowDeletes, Target
    from deltalog.storage.store import Store


def read_deleted_rows(
    store: Store, deletes: RowDeletes, files: Sequence[IcebergFile]
) -> dict[str, DeletionBitmap]:
    """Read the deleted rows of data files.

    Args:
        store: the store of the table.
        deletes: the deletes of the snapshot.
        files: the data files of the snapshot.

    Returns:
        Location of a data file → its deleted rows. Files without deleted rows are omitted.

    Raises:
        DataFileMissingError: a delete file is missing.
        DataFileUnreadableError, DeletionVectorError: a delete file is damaged.
        InvalidInputError: a delete file does not match the metadata, or a deleted row does not
            exist in its data file.

    Cost: one read of each delete file; two requests for each Puffin file. Equality deletes also
    read their columns in all older data files.
    """
    if deletes.is_empty:
        return {}
    vectors = read_vectors(store, deletes.vectors_by_file())
    positions = read_positions(store, deletes, vectors)
    infos = {one.location: one.info for one in files}
    equals = find_equal_rows(store, deletes, infos)
    found: dict[str, DeletionBitmap] = {}
    for one in files:
        parts = [
            kind[one.location] for kind in (vectors, positions, equals) if one.location in kind
        ]
        if not parts:
            continue
        bitmap = parts[0].union(*parts[1:])
        last = bitmap.max_row
        if last is not None and last >= one.num_rows:
            raise deletes.refused(
                f"row {last} of {one.location!r} is deleted, but the file has {one.num_rows} rows"
            )
        if bitmap:
            found[one.location] = bitmap
    return found


# --- Rows deleted by position: position delete files, and deletion vectors in Puffin files


_PATH: Final = ("file_path", 2147483546)
_POSITION: Final = ("pos", 2147483545)
_PUFFIN_MAGIC: Final = b"PFA1"
_LEAST_BYTES: Final = 8  # the length and the checksum of a deletion vector
_BATCH_ROWS: Final = 65_536


def read_vectors(store: Store, vectors: Mapping[str, DeleteFile]) -> dict[str, DeletionBitmap]:
    """Read the deletion vectors of data files.

    Args:
        store: the store of the table.
        vectors: location of a data file → its deletion vector.

    Raises:
        DataFileMissingError: a Puffin file is missing.
        DeletionVectorError: a vector is damaged, or its number of rows differs from the metadata.
        InvalidInputError: a file is shorter than the metadata requires, or not a Puffin file.

    Cost: two requests for each Puffin file; memory for the bitmaps.
    """
    by_file: dict[str, list[tuple[str, DeleteFile]]] = defaultdict(list)
    for location, vector in vectors.items():
        by_file[vector.path].append((location, vector))

    def read(path: str) -> list[tuple[str, DeletionBitmap]]:
        return list(_vectors_of(store, path, by_file[path]))

    return dict(one for found in map_in_pool(read, list(by_file)) for one in found)


def _vectors_of(
    store: Store, path: str, vectors: Sequence[tuple[str, DeleteFile]]
) -> Iterator[tuple[str, DeletionBitmap]]:
    try:
        size_bytes = store.stat(path).size_bytes
    except ObjectNotFoundError as error:
        raise _missing(store, path) from error
    descriptors = []
    for location, vector in vectors:
        start, length = vector.place or (0, 0)
        end = size_bytes - len(_PUFFIN_MAGIC)
        fits = len(_PUFFIN_MAGIC) <= start and _LEAST_BYTES <= length <= end - start
        if size_bytes != vector.size_bytes or not fits:
            raise InvalidInputError(
                f"cannot read the deletion vector of {location!r}: expected {length} bytes at "
                f"offset {start} of {vector.size_bytes} bytes in {path!r}, found {size_bytes} bytes"
            )
        descriptors.append(
            DeletionVectorDescriptor(
                storage_type="p",
                path_or_inline_dv=encode_path(path),
                offset=start,
                size_bytes=length - _LEAST_BYTES,
                cardinality=vector.num_rows,
            )
        )
    ranges = [(one.offset or 0, (one.offset or 0) + one.size_bytes + 8) for one in descriptors]
    magic, *blobs = store.read_ranges(path, [(0, len(_PUFFIN_MAGIC)), *ranges])
    if bytes(magic) != _PUFFIN_MAGIC:
        raise InvalidInputError(
            f"cannot read the deletion vectors in {path!r}: expected a Puffin file, found one that "
            f"begins with {bytes(magic)!r}"
        )
    for (location, _), descriptor, blob in zip(vectors, descriptors, blobs, strict=True):
        yield location, parse_framed(blob, descriptor, data_offset=descriptor.offset or 0)


def read_positions(
    store: Store, deletes: RowDeletes, without: Mapping[str, object]
) -> dict[str, DeletionBitmap]:
    """Read the rows that position delete files delete.

    Args:
        store: the store of the table.
        deletes: the deletes of the snapshot.
        without: the locations of data files with a deletion vector, which replaces their position
            deletes.

    Raises:
        DataFileMissingError: a file is missing.
        DataFileUnreadableError: a file is not a Parquet file, or is damaged.
        InvalidInputError: a file has invalid content, or its number of rows differs from the
            metadata.

    Cost: reads each delete file that may apply once; memory for the bitmaps and a batch of paths.
    """
    found: dict[str, list[DeletionBitmap]] = defaultdict(list)

    def read(file: DeleteFile) -> list[tuple[str, DeletionBitmap]]:
        parts: list[tuple[str, DeletionBitmap]] = []
        for location, positions in _positions_of(store, file):
            target = deletes.targets.get(location)
            if target is None or location in without or not file.applies_to(location, target):
                continue
            try:
                parts.append((location, DeletionBitmap.from_arrow(positions)))
            except InvalidInputError as error:
                raise _unreadable(file, f"a position is invalid ({error})") from error
        return parts

    for parts in map_in_pool(read, deletes.positions_in_use()):
        for location, bitmap in parts:
            found[location].append(bitmap)
    return {location: DeletionBitmap().union(*bitmaps) for location, bitmaps in found.items()}


def _positions_of(store: Store, file: DeleteFile) -> Iterator[tuple[str, Array]]:
    """Yield locations of data files in a delete file with positions of their deleted rows.

    A location may occur repeatedly.
    """
    reader = open_parquet(store, file.path, size_bytes=file.size_bytes)
    try:
        names = (
            _column(reader, file, _PATH, _is_text),
            _column(reader, file, _POSITION, pt.is_int64),
        )
        if reader.num_rows != file.num_rows:
            raise _unreadable(file, f"expected {file.num_rows} rows, found {reader.num_rows}")
        for batch in reader.iter_batches(columns=names, batch_size=_BATCH_ROWS):
            yield from _by_path(file, *(batch.column(name) for name in names))
    finally:
        reader.close()


def _by_path(file: DeleteFile, paths: Array, positions: Array) -> list[tuple[str, Array]]:
    if paths.null_count or positions.null_count:
        raise _unreadable(file, "a path or a position is NULL")
    try:
        rows = pa.table({"path": paths.cast(pa.string()), "position": positions})
        groups = rows.group_by("path", use_threads=False).aggregate([("position", "list")])
        texts: list[Any] = groups.column("path").to_pylist()
    except ValueError as error:  # an error of Arrow, or bytes that are not UTF-8
        raise _unreadable(file, f"a path is invalid ({error})") from error
    lists: Any = groups.column("position_list")
    return [(text, one.values) for text, one in zip(texts, lists, strict=True)]


def _column(reader: ParquetReader, file: DeleteFile, wanted: tuple[str, int], is_right: Any) -> str:
    """Return the name of a column of position deletes.

    The column is found by its field id, or by its name if the file has no field ids.

    Raises:
        InvalidInputError: the column is missing or has another type.
    """
    name, number = wanted
    schema = reader.arrow_schema
    ids = {one.name: parquet_field_id(one) for one in schema}
    has_ids = any(found is not None for found in ids.values())
    names = [one for one, found in ids.items() if (found == number if has_ids else one == name)]
    if len(names) != 1 or not is_right(schema.field(names[0]).type):
        raise _unreadable(file, f"expected one column {name}, found {schema.names}")
    return names[0]


def _is_text(kind: Any) -> bool:
    if pt.is_dictionary(kind):
        return _is_text(kind.value_type)
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _unreadable(file: DeleteFile, why: str) -> InvalidInputError:
    return InvalidInputError(f"cannot read the position deletes in {file.path!r}: {why}")


def _missing(store: Store, path: str) -> DataFileMissingError:
    return DataFileMissingError(
        f"cannot read the deletion vectors in {path!r} of the Iceberg table at {store.root}: the "
        "file is missing; restore it"
    )


# --- Rows deleted by value: equality deletes, converted to positions


_READ_AHEAD: Final = 4


def find_equal_rows(
    store: Store, deletes: RowDeletes, files: Mapping[str, FileInfo]
) -> dict[str, DeletionBitmap]:
    """Find the rows of data files that match equality deletes.

    Args:
        store: the store of the table.
        deletes: the deletes of the snapshot.
        files: the data files by location.

    Raises:
        DataFileMissingError: a file is missing.
        DataFileUnreadableError: a file is not a Parquet file, or is damaged.
        InvalidInputError: a delete file lacks a column, its number of rows differs from the
            metadata, or it is not clear which rows it deletes.

    Cost: reads the columns that the deletes compare, in all data files that are older than a
    delete; memory for the distinct values of all deletes.
    """
    known = {
        key: _read_deletes(store, deletes, key, of_key)
        for key, of_key in deletes.equalities_in_use().items()
    }
    jobs = []
    for location, target in deletes.targets.items():
        keys = [key for key, found in known.items() if _concerns(key, found, target)]
        if keys:
            jobs.append((location, target, keys))

    def find(job: tuple[str, Target, list[EqualityKey]]) -> tuple[str, DeletionBitmap]:
        location, target, keys = job
        numbers = sorted({number for key in keys for number in key[1]})
        reading = _KeyReader(store, deletes, numbers)
        info = files[location]
        # A data file may omit a partition column. Its values would then be read as NULL, so the
        # comparison would be wrong.
        stated = target.identities & set(numbers)
        if stated and _missing_ids(store, info.path, info.size_bytes, stated):
            raise deletes.refused(
                f"an equality delete for {location!r} compares a partition column that the file "
                "does not contain; rewrite the table's data files with Iceberg's writer first "
                "(rewrite_data_files)"
            )
        found = []
        for columns, places in reading.rows(info.path, info.size_bytes):
            is_deleted: Array = pa.repeat(FALSE, len(places))
            for key in keys:
                marks = known[key].younger(columns, target.sequence_number)
                if marks is None:
                    raise deletes.refused(
                        f"an equality delete for {location!r} compares a field of a struct with "
                        "NULL, but the whole struct is NULL in some rows; Iceberg's specification "
                        "deletes these rows, its Java library does not; rewrite the table's data "
                        "files with Iceberg's writer first (rewrite_data_files)"
                    )
                is_deleted = compute.or_(is_deleted, marks)
            found.append(DeletionBitmap.from_arrow(places.filter(is_deleted)))
        return location, DeletionBitmap().union(*found)

    return {
        location: bitmap for location, bitmap in read_ahead(find, jobs, depth=_READ_AHEAD) if bitmap
    }


def _concerns(key: EqualityKey, keys: _Deletes, target: Target) -> bool:
    return key[0] in {None, target.scope} and keys.by_value.last_number > target.sequence_number


class _KeyColumns(NamedTuple):
    """The columns of some rows, in the order of column ids.

    Args:
        values: the values of each column; NULL if an enclosing struct is NULL.
        depths: for each column in a struct, for each row the number of enclosing structs that are
            not NULL.
    """

    values: dict[int, Array]
    depths: dict[int, Array]


class _Deletes:
    """Equality deletes that compare the same columns.

    Args:
        numbers: the ids of the columns that the deletes compare.
        rows: the values of all deletes.
        ages: the sequence number of each delete.
    """

    def __init__(self, numbers: Sequence[int], rows: _KeyColumns, ages: Array) -> None:
        self._numbers = numbers
        self._nested = [number for number in numbers if number in rows.depths]
        values, depths = self._arrays(rows)
        self.by_value = Keys(values, ages)
        self._by_struct = Keys([*values, *depths], ages) if depths else None

    def younger(self, rows: _KeyColumns, age: int) -> Array | None:
        """Return for each row whether a newer delete matches it.

        Return None if the result depends on whether a field of a NULL struct equals NULL.

        Args:
            rows: the rows of a data file.
            age: the sequence number of the data file.
        """
        values, depths = self._arrays(rows)
        marks = _is_above(self.by_value.newest(values), age)
        if self._by_struct is None:
            return marks
        others = _is_above(self._by_struct.newest([*values, *depths]), age)
        return marks if marks.equals(others) else None

    def _arrays(self, rows: _KeyColumns) -> tuple[list[Array], list[Array]]:
        values = [rows.values[number] for number in self._numbers]
        return values, [rows.depths[number] for number in self._nested]


def _is_above(numbers: Array, age: int) -> Array:
    return compute.fill_null(compute.greater(numbers, age), fill_value=False)


class Keys:
    """A lookup that finds the newest delete with given values.

    Args:
        columns: the values of all deletes, column by column.
        numbers: the sequence number of each delete.

    Cost: a hash table for each column, and one for each prefix of columns.
    """

    def __init__(self, columns: Sequence[pa.Array[Any]], numbers: pa.Array[Any]) -> None:
        self._steps: list[tuple[pa.Array[Any], pa.Array[Any]]] = []
        codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(numbers))
        for column in columns:
            values = compute.unique(column)
            mixed = _mixed(codes, column, values)
            combinations = compute.unique(mixed)
            self._steps.append((values, combinations))
            codes = _places(mixed, combinations)
        newest = (
            pa.table({"code": codes, "number": numbers})
            .group_by("code", use_threads=False)
            .aggregate([("number", "max")])
            .sort_by("code")
        )
        self._newest: Any = newest.column("number_max").combine_chunks()
        self.last_number: int = compute.max(numbers).as_py() or 0

    def newest(self, columns: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
        """Return the newest delete's sequence number for each row; NULL if no delete matches."""
        codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
        for column, (values, combinations) in zip(columns, self._steps, strict=True):
            codes = _places(_mixed(codes, column, values), combinations)
        found: pa.Array[Any] = self._newest.take(codes)
        return found


def _mixed(codes: Any, column: Any, values: Any) -> Any:
    """Combine the codes of the previous columns with the indices of the values of a column.

    The result is NULL for a row with a NULL code or index.
    """
    return compute.add(compute.multiply(codes, len(values)), _places(column, values))


def _places(column: Any, values: Any) -> Any:
    # If `values` contains NULL, `index_in` returns an index for NULL, too.
    return pc.index_in(column, value_set=values).cast(pa.int64())


def _read_deletes(
    store: Store, deletes: RowDeletes, key: EqualityKey, files: Sequence[DeleteFile]
) -> _Deletes:
    numbers = key[1]
    reading = _KeyReader(store, deletes, numbers)
    values: dict[int, list[Array]] = {number: [] for number in numbers}
    depths: dict[int, list[Array]] = {n: [] for n in numbers if deletes.columns[n].path}
    ages: list[Array] = []
    for file in files:
        _check_columns(store, file, numbers)
        num_rows = 0
        for rows, places in reading.rows(file.path, file.size_bytes):
            num_rows += len(places)
            for parts, found in ((values, rows.values), (depths, rows.depths)):
                for number, part in parts.items():
                    part.append(found[number])
            ages.append(pa.repeat(pa.scalar(file.sequence_number, pa.int64()), len(places)))
        if num_rows != file.num_rows:
            raise _bad_equalities(file, f"expected {file.num_rows} rows, found {num_rows}")
    whole = _KeyColumns(
        {n: _joined(part, to_arrow_type(deletes.columns[n].kind)) for n, part in values.items()},
        {n: _joined(part, pa.int64()) for n, part in depths.items()},
    )
    return _Deletes(numbers, whole, _joined(ages, pa.int64()))


def _joined(parts: Sequence[Array], kind: Any) -> Array:
    return pa.chunked_array(parts, kind).combine_chunks()


def _check_columns(store: Store, file: DeleteFile, wanted: Sequence[int]) -> None:
    """Raise for a delete file that lacks a column. Reading the column would return NULL."""
    missing = _missing_ids(store, file.path, file.size_bytes, wanted)
    if missing:
        raise _bad_equalities(file, f"columns with the field ids {missing} are missing")


def _missing_ids(store: Store, path: str, size_bytes: int, wanted: Collection[int]) -> set[int]:
    """Return the field ids that a file lacks."""
    reader = open_parquet(store, path, size_bytes=size_bytes, footer_only=True)
    try:
        return set(wanted) - set(_field_ids(list(reader.arrow_schema)))
    finally:
        reader.close()


def _field_ids(fields: Sequence[pa.Field[Any]]) -> Iterator[int]:
    for one in fields:
        number = parquet_field_id(one)
        if number is not None:
            yield number
        if pa.types.is_struct(one.type):
            yield from _field_ids([one.type.field(at) for at in range(one.type.num_fields)])


class _KeyReader:
    """Reader of the columns that deletes compare, for data files and delete files."""

    def __init__(self, store: Store, deletes: RowDeletes, numbers: Sequence[int]) -> None:
        self._store = store
        self._columns = {number: deletes.columns[number] for number in numbers}
        fields = StructType([column.field for column in self._columns.values()])
        schema = to_arrow_schema(fields)
        self._spec = ReadSpec(
            table=deletes.root,
            data_columns=fields,
            partition_columns=StructType([]),
            metadata_columns=(ROW_INDEX,),
            output=schema.append(pa.field(ROW_INDEX, METADATA_COLUMNS[ROW_INDEX])),
            predicate=None,
            mode=Mode.ID,
            physical_names={},
            time_zone="UTC",
        )

    def rows(self, path: str, size_bytes: int) -> Iterator[tuple[_KeyColumns, Array]]:
        """Yield batches of these columns, each with the positions of its rows in the file."""
        task = ScanTask(
            store=self._store,
            spec=self._spec,
            path=path,
            partition_values={},
            size_bytes=size_bytes,
        )
        for batch in read_task(task):
            found = _KeyColumns({}, {})
            for number, column in self._columns.items():
                values: Any = batch.column(column.field.name)
                depth: Any = pa.repeat(pa.scalar(0, pa.int64()), len(values))
                for part in column.path:
                    depth = compute.add(depth, values.is_valid().cast(pa.int64()))
                    values = pc.struct_field(values, part)  # NULL if the struct is NULL
                found.values[number] = values
                if column.path:
                    found.depths[number] = depth
            yield found, batch.column(ROW_INDEX)


def _bad_equalities(file: DeleteFile, why: str) -> InvalidInputError:
    return InvalidInputError(f"cannot read the equality deletes in {file.path!r}: {why}")
