"""Which files a clone names, and their copies: paths in another table's log, and the bytes there.

Owns how files of one table are named in another, and what is checked of a file before it is copied.

Protocol: Add File and Remove File (absolute paths), Deletion Vector Descriptor Schema
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.actions.arrow import DELETION_VECTOR_TYPE, FILE_SCHEMA
from deltalog.actions.codec import deletion_vector_to_json
from deltalog.deletion_vectors import (
    absolute_descriptor,
    check_rows,
    encode_z85,
    location,
    parse_inline,
)
from deltalog.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidInputError,
    ObjectNotFoundError,
)
from deltalog.kernels import compute
from deltalog.paths import canonical_path, decode_path, encode_path, is_absolute, join
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.stats import parse_stats
from deltalog.storage.parquet import check_is_parquet
from deltalog.storage.pool import Background

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.actions import DeletionVectorDescriptor
    from deltalog.progress import ProgressCount
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

ABSOLUTE: Final = r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:/)"
_COPIED_AT_ONCE: Final = 2  # whole files are in memory
_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


class FileNames:
    """The paths of one table's files in the log of another table.

    Args:
        source: root of the table that has the files.
        target: root of the clone.
        is_shallow: absolute paths of the source's files; otherwise the paths of their copies.
    """

    def __init__(self, source: str, target: str, *, is_shallow: bool) -> None:
        self._source = source
        self._target = target
        self._is_shallow = is_shallow

    def of(self, files: pa.Table) -> pa.Table:
        """Return the files' rows for the clone's log, with `FILE_SCHEMA` and without row ids."""
        changed = {
            "path": self._paths(files.column("path")),
            "deletionVector": self._vectors(files.column("deletionVector")),
            "dataChange": pa.repeat(pa.scalar(value=True), files.num_rows),
            "baseRowId": pa.nulls(files.num_rows, pa.int64()),
            "defaultRowCommitVersion": pa.nulls(files.num_rows, pa.int64()),
        }
        columns: list[Any] = [changed.get(name, files.column(name)) for name in FILE_SCHEMA.names]
        return pa.Table.from_arrays(columns, schema=FILE_SCHEMA)

    def copies(self, files: pa.Table, added: pa.Table) -> dict[str, FileCopy]:
        """The physical files to copy, by decoded path in the source.

        Raises:
            DeletionVectorError: a vector in the log is damaged; `FileCopy` checks the others.
        """
        if self._is_shallow:
            return {}
        new = set(added.column("path").to_pylist())
        found: dict[str, FileCopy] = {}
        rows: list[dict[str, Any]] = files.select(["path", "deletionVector"]).to_pylist()
        counts: list[Any] = parse_stats(files.column("stats"), _NUM_RECORDS)[0].to_pylist()
        for row, num_rows in zip(rows, counts, strict=True):
            path = decode_path(row["path"])
            target = self._copy_of(path)
            if encode_path(target) not in new and row["path"] not in new:
                continue
            found[path] = FileCopy(target)
            descriptor = descriptor_of(row["deletionVector"])
            place = None if descriptor is None else location(descriptor)
            if descriptor is not None and place is None:
                check_rows(parse_inline(descriptor), descriptor, num_rows)
            elif descriptor is not None and place is not None:
                target = location(self._vector(descriptor)) or place
                known = found.get(place, FileCopy(target)).vectors
                found[place] = FileCopy(target, (*known, (descriptor, num_rows)))
        return found

    def _paths(self, encoded: Any) -> Any:
        absolute = compute.match_substring_regex(encoded, ABSOLUTE)
        if self._is_shallow:
            prefix = encode_path(root_location(self._source).rstrip("/") + "/")
            below = compute.binary_join_element_wise(prefix, encoded, "")
            return compute.if_else(absolute, encoded, below)
        if not compute.any(absolute).as_py():
            return encoded
        texts: list[str] = encoded.to_pylist()
        renamed = [
            encode_path(self._copy_of(path)) if is_absolute(path) else text
            for text, path in ((text, decode_path(text)) for text in texts)
        ]
        return pa.array(renamed, pa.string())

    def _copy_of(self, path: str) -> str:
        """Return the path of a copy: the same, or a new name for a file outside of the source.

        The new name is derived from the location, so that a repeated clone finds the copy.
        """
        if not is_absolute(path):
            return path
        place = canonical_path(path, self._source)
        if not is_absolute(place):
            return place
        return f"{uuid.uuid5(uuid.NAMESPACE_URL, place)}-{place.rpartition('/')[2]}"

    def _vectors(self, vectors: Any) -> Any:
        if vectors.null_count == len(vectors):
            return vectors
        # Only files with a vector are turned into Python objects.
        rows: list[Any] = vectors.filter(vectors.is_valid()).to_pylist()
        renamed = [
            None if found is None else deletion_vector_to_json(self._vector(found))
            for found in map(descriptor_of, rows)
        ]
        mask = vectors.combine_chunks().is_valid()
        places = compute.subtract(compute.cumulative_sum(mask.cast(pa.int64())), 1)
        values = pa.array(renamed, DELETION_VECTOR_TYPE)
        return values.take(compute.if_else(mask, places, pa.scalar(None, pa.int64())))

    def _vector(self, descriptor: DeletionVectorDescriptor) -> DeletionVectorDescriptor:
        if self._is_shallow:
            return absolute_descriptor(descriptor, root_location(self._source))
        place = location(descriptor)
        if place is None or descriptor.storage_type == "u":
            return descriptor
        name = uuid.uuid5(uuid.NAMESPACE_URL, canonical_path(place, self._source))
        return replace(descriptor, storage_type="u", path_or_inline_dv=encode_z85(name.bytes))


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A physical file to copy.

    Args:
        target: decoded path in the clone.
        vectors: that are in the file, each with the physical rows of its data file if the log has
            them; none for a data file.
    """

    target: str
    vectors: tuple[tuple[DeletionVectorDescriptor, int | None], ...] = ()

    def read(self, source: Store, path: str) -> bytes:
        """The bytes of the file, which is what the log says that it is.

        Raises:
            DataFileUnreadableError: it is no Parquet file.
            DeletionVectorError: it does not hold the deletion vectors.
        """
        for descriptor, num_rows in self.vectors:
            load_bitmap(source, descriptor, num_rows=num_rows)
        data = source.read(path)
        if not self.vectors:
            check_is_parquet(data, join(source.root, path))
        return data


@dataclass(frozen=True, slots=True)
class Copied:
    """How many files were copied, and their bytes."""

    num_files: int = 0
    num_bytes: int = 0


def copy_files(
    pending: PendingTransaction,
    source: Store,
    copies: Mapping[str, FileCopy],
    progress: ProgressCount,
) -> Copied:
    """Copy files that the target does not have; copies of an earlier attempt are kept."""
    target = pending.store

    def copy(path: str, wanted: FileCopy) -> tuple[str, int | None]:
        place = wanted.target
        if _is_copied(source, path, target, place):
            return place, None
        data = wanted.read(source, path)
        try:
            target.put_if_absent(place, data)
        except AlreadyExistsError:
            if target.read(place) != data:
                raise
        return place, len(data)

    sizes: list[int] = []
    progress.expect(len(copies))

    def work(path: str, wanted: FileCopy) -> None:
        place, num_bytes = copy(path, wanted)
        if num_bytes is not None:
            pending.own_paths.append(place)
            sizes.append(num_bytes)
        progress.done()

    background: Background[None] = Background(_COPIED_AT_ONCE)
    try:
        for path, wanted in copies.items():
            background.submit(partial(work, path, wanted))
        background.wait()
    except BaseException:
        background.cancel()  # and wait, so that running copies are recorded and cleaned up
        raise
    return Copied(len(sizes), sum(sizes))


def _is_copied(source: Store, path: str, target: Store, place: str) -> bool:
    """Whether the target has the copy: a file of that path and size.

    Raises:
        InvalidInputError: the file at that path has another size.
    """
    try:
        there = target.stat(place)
    except ObjectNotFoundError:
        return False
    if there.size_bytes != source.stat(path).size_bytes:
        raise InvalidInputError(
            f"cannot copy {join(source.root, path)} to {join(target.root, place)}: there is "
            "another file of that name"
        )
    return True


def root_location(root: str) -> str:
    """Return a root as an absolute URL, as `/x` is relative to the reader's file system.

    Local roots get one slash: Delta Spark does not recognise its files as `file:///x`.
    """
    if root.startswith("/"):
        return f"file:{root}"
    if not is_absolute(root):
        raise InternalError(f"the root {root!r} is no location")
    return root
