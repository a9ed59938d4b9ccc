"""Rows that are deleted by their values: equality deletes, resolved into positions.

A row is deleted if a younger delete of its partition, or of all, has its values in the delete's
columns; NULL equals NULL. Both sides are read by field ids in the newest type of each column.

Of a column in a struct the specification says that it is NULL where the struct is, while Iceberg's
Java library tells a NULL struct from one that holds NULL. Rows of which that decides are refused.

Protocol: Iceberg Table Spec: Equality Delete Files, Scan Planning
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog.column_mapping import Mode
from deltalog.deletion_vectors import DeletionBitmap
from deltalog.errors import InvalidInputError
from deltalog.kernels import Array, compute, pc
from deltalog.metadata_columns import METADATA_COLUMNS, ROW_INDEX
from deltalog.scan.reader import read_task
from deltalog.scan.task import ReadSpec, ScanTask
from deltalog.schema import StructType, to_arrow_schema, to_arrow_type
from deltalog.schema.arrow import parquet_field_id
from deltalog.storage.parquet import open_parquet
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalog.iceberg.deletes import DeleteFile, EqualityKey, RowDeletes, Target
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

_READ_AHEAD: Final = 4


def find_equal_rows(
    store: Store, deletes: RowDeletes, files: Mapping[str, FileInfo]
) -> dict[str, DeletionBitmap]:
    """Find the rows of data files that equality deletes delete.

    Args:
        store: of the table.
        deletes: of the snapshot.
        files: the data files by location.

    Raises:
        DataFileMissingError: a file is gone.
        DataFileUnreadableError: a file is no Parquet file, or damaged.
        InvalidInputError: a delete file lacks one of its columns, or has not as many rows as it
            should; or it is not certain which rows it deletes.

    Cost: of each data file that is older than such a delete, the columns of those deletes; memory
    for the distinct values of all deletes.
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
        # A file may leave out what is the same in all rows; it would be read as NULL.
        told = target.identities & set(numbers)
        if told and _missing(store, info.path, info.size_bytes, told):
            raise deletes.refused(
                f"rows of {location!r} are deleted by a column of its partition, which the file "
                "itself lacks; rewrite the table's data files with Iceberg's writer first "
                "(rewrite_data_files)"
            )
        found = []
        for columns, places in reading.rows(info.path, info.size_bytes):
            is_deleted: Array = pa.repeat(pa.scalar(value=False), len(places))
            for key in keys:
                marks = known[key].younger(columns, target.sequence_number)
                if marks is None:
                    raise deletes.refused(
                        f"rows of {location!r} are deleted where a part of a struct is NULL, and "
                        "some structs are NULL themselves, which Iceberg's specification takes for "
                        "the same, and its Java library does not; rewrite the table's data files "
                        "with Iceberg's writer first (rewrite_data_files)"
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
    """Columns of some rows, by id.

    Args:
        values: NULL in a struct that is NULL.
        depths: of columns in structs, how many of the structs around each value are not NULL.
    """

    values: dict[int, Array]
    depths: dict[int, Array]


class _Deletes:
    """The equality deletes that are looked up together.

    Args:
        numbers: the ids of their columns.
        rows: of all deletes.
        ages: the sequence number of each.
    """

    def __init__(self, numbers: Sequence[int], rows: _KeyColumns, ages: Array) -> None:
        self._numbers = numbers
        self._nested = [number for number in numbers if number in rows.depths]
        values, depths = self._arrays(rows)
        self.by_value = Keys(values, ages)
        self._by_struct = Keys([*values, *depths], ages) if depths else None

    def younger(self, rows: _KeyColumns, age: int) -> Array | None:
        """Mark rows of some age that are deleted; None if it is not certain which."""
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
    """Which deletes have certain values: of each combination, the newest.

    Args:
        columns: the values of all deletes, column by column.
        numbers: of each delete, its sequence number.

    Cost: a hash table for each column, and one for the combinations up to each.
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
        """The newest delete's sequence number for each row; NULL where no delete has its values."""
        codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
        for column, (values, combinations) in zip(columns, self._steps, strict=True):
            codes = _places(_mixed(codes, column, values), combinations)
        found: pa.Array[Any] = self._newest.take(codes)
        return found


def _mixed(codes: Any, column: Any, values: Any) -> Any:
    """One number for what came before and the place of a value; NULL where one is not known."""
    return compute.add(compute.multiply(codes, len(values)), _places(column, values))


def _places(column: Any, values: Any) -> Any:
    # NULL is a value as any other, and found where it is one of `values`.
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
            raise _unreadable(file, f"expected {file.num_rows} rows, found {num_rows}")
    whole = _KeyColumns(
        {n: _joined(part, to_arrow_type(deletes.columns[n].kind)) for n, part in values.items()},
        {n: _joined(part, pa.int64()) for n, part in depths.items()},
    )
    return _Deletes(numbers, whole, _joined(ages, pa.int64()))


def _joined(parts: Sequence[Array], kind: Any) -> Array:
    return pa.chunked_array(parts, kind).combine_chunks()


def _check_columns(store: Store, file: DeleteFile, wanted: Sequence[int]) -> None:
    """Refuse a delete file that lacks a column: what is not there would be read as NULL."""
    missing = _missing(store, file.path, file.size_bytes, wanted)
    if missing:
        raise _unreadable(file, f"expected columns with the field ids {missing}, found none")


def _missing(store: Store, path: str, size_bytes: int, wanted: Collection[int]) -> set[int]:
    """The field ids that a file does not have."""
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
    """Reads columns of deletes from files: those of rows, and those of deletes."""

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
        """Yield batches of columns, and the positions of their rows in the file."""
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
                    values = pc.struct_field(values, part)  # NULL in a struct that is NULL
                found.values[number] = values
                if column.path:
                    found.depths[number] = depth
            yield found, batch.column(ROW_INDEX)


def _unreadable(file: DeleteFile, why: str) -> InvalidInputError:
    return InvalidInputError(f"cannot read the equality deletes in {file.path!r}: {why}")
