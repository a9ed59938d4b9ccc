"""Rows that are deleted by their position: position delete files, and deletion vectors in Puffin.

Files are not trusted: lengths, counts and checksums must be those that the metadata gives.

Protocol: Deletion Vector Format; Iceberg Table Spec: Position Delete Files, Deletion Vectors
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.actions.model import DeletionVectorDescriptor
from deltalog.deletion_vectors import DeletionBitmap, parse_framed
from deltalog.errors import DataFileMissingError, InvalidInputError, ObjectNotFoundError
from deltalog.kernels import Array
from deltalog.paths import encode_path
from deltalog.schema.arrow import parquet_field_id
from deltalog.storage.parquet import open_parquet
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.iceberg.deletes import DeleteFile, RowDeletes
    from deltalog.storage.parquet import ParquetReader
    from deltalog.storage.store import Store

_PATH: Final = ("file_path", 2147483546)
_POSITION: Final = ("pos", 2147483545)
_PUFFIN_MAGIC: Final = b"PFA1"
_LEAST_BYTES: Final = 8  # of a vector: its length and its checksum
_BATCH_ROWS: Final = 65_536


def read_vectors(store: Store, vectors: Mapping[str, DeleteFile]) -> dict[str, DeletionBitmap]:
    """Read the deletion vectors of data files.

    Args:
        store: of the table.
        vectors: by location of the data file.

    Raises:
        DataFileMissingError: a Puffin file is gone.
        DeletionVectorError: a vector is damaged, or has another number of rows.
        InvalidInputError: a file has another length, or is no Puffin file.

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
                f"{start} of {vector.size_bytes} bytes in {path!r}, found {size_bytes} bytes"
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
    """Read which rows the position delete files delete.

    Args:
        store: of the table.
        deletes: of the snapshot.
        without: data files by location whose deletion vector replaces such deletes.

    Raises:
        DataFileMissingError: a file is gone.
        DataFileUnreadableError: a file is no Parquet file, or damaged.
        InvalidInputError: a file holds something else, or not as many rows as it should.

    Cost: each file that may apply to a data file is read once; memory for the bitmaps, and for a
    batch of paths.
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
                raise _unreadable(file, f"a position is none ({error})") from error
        return parts

    for parts in map_in_pool(read, deletes.positions_in_use()):
        for location, bitmap in parts:
            found[location].append(bitmap)
    return {location: DeletionBitmap().union(*bitmaps) for location, bitmaps in found.items()}


def _positions_of(store: Store, file: DeleteFile) -> Iterator[tuple[str, Array]]:
    """The positions in a delete file, by location of the data file; one may come repeatedly."""
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
    except ValueError as error:  # Arrow's own, and that of bytes which are no text
        raise _unreadable(file, f"a path is none ({error})") from error
    lists: Any = groups.column("position_list")
    return [(text, one.values) for text, one in zip(texts, lists, strict=True)]


def _column(reader: ParquetReader, file: DeleteFile, wanted: tuple[str, int], is_right: Any) -> str:
    """The name of a column of position deletes: by its field id, or its name where there are none.

    Raises:
        InvalidInputError: there is none, or it is of another type.
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
        "file is gone; restore it"
    )
