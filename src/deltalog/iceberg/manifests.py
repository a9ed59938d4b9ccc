"""Manifests, which list a snapshot's files. A change rewrites as few manifests as possible.

This module assigns files to manifests by the hash of their location. A deletion vector has the hash
of its data file. The name of a manifest contains the range of its hashes, so the search for a
removed file reads only the few manifests that may contain it. Many small manifests are merged into
large manifests, which are sorted by hash, so that their ranges are narrow. Records in memory have
the fields of format version 3. They are written with the schemas of the table's format version.

Protocol: Iceberg Table Spec: Manifests, Manifest Lists, Sequence Number Inheritance, Row Lineage
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import re
import struct
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import to_json
from pyiceberg.avro.codecs import AVRO_CODEC_KEY, CODEC_MAPPING_ICEBERG_TO_AVRO
from pyiceberg.avro.codecs.bzip2 import BZip2Codec
from pyiceberg.avro.codecs.deflate import DeflateCodec
from pyiceberg.avro.codecs.snappy_codec import SnappyCodec
from pyiceberg.avro.codecs.zstandard_codec import ZStandardCodec
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import MAGIC, META_SCHEMA, AvroFile, AvroFileHeader, AvroOutputFile, Block
from pyiceberg.avro.resolver import construct_writer
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.schema import ICEBERG_FIELD_NAME_PROP
from pyiceberg.serializers import FromByteStream
from pyiceberg.typedef import StructProtocol
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from deltalog._util.json import dumps
from deltalog.errors import DeltaError, InvalidInputError, MalformedLogError
from deltalog.iceberg.data_files import (
    LAYOUT,
    DataFileCounts,
    ListedFile,
    key_of,
    member,
    partition_summaries,
    with_content,
)

if TYPE_CHECKING:
    from pyiceberg.avro.codecs.codec import Codec
    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.typedef import TableVersion

    from deltalog.iceberg.store_io import StoredInput, StoreIO

_T = TypeVar("_T")

FILES_PER_MANIFEST: Final = 5_000
_MANY_SMALL: Final = 100
_SMALL: Final = FILES_PER_MANIFEST // 10
_RANGE: Final = re.compile(r"-([0-9a-f]{8})-([0-9a-f]{8})\.avro$")
_ALL_HASHES: Final = (0, 0xFFFFFFFF)
_CODEC: Final = {"avro.codec": "gzip"}
_CONTENTS: Final = {
    ManifestContent.DATA: "data",
    ManifestContent.DELETES: "deletes",
}


def hash_of(location: str) -> int:
    """Return the hash that assigns files to manifests."""
    return zlib.crc32(location.encode())


@dataclass(slots=True, kw_only=True)
class ManifestChange:
    """The manifests of a new snapshot, which are derived from those of the previous snapshot.

    Args:
        io: the metadata files of the table.
        format_version: the version of the table's metadata.
        schemas: the schemas of the table, the current one last.
        specs: the partition specs of the table by id.
        spec: the partition spec of added files.
        snapshot_id: the id of the new snapshot.
        sequence_number: the sequence number of the new snapshot.
        first_row_id: the first unused row id; None if rows have no ids.

    Attributes:
        added: counts of the data files that the snapshot adds.
        removed: counts of the data files that the snapshot removes.
        added_vectors: counts of the deletion vectors that the snapshot adds, and of their rows.
        removed_vectors: counts of the deletion vectors that the snapshot removes.
        next_row_id: the first row id that is unused after this snapshot.
        manifests: the manifests of the new snapshot.
    """

    io: StoreIO
    format_version: TableVersion
    schemas: Sequence[Schema]
    specs: Mapping[int, PartitionSpec]
    spec: PartitionSpec
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None
    added: DataFileCounts = dataclasses.field(default_factory=DataFileCounts)
    removed: DataFileCounts = dataclasses.field(default_factory=DataFileCounts)
    added_vectors: DataFileCounts = dataclasses.field(default_factory=DataFileCounts)
    removed_vectors: DataFileCounts = dataclasses.field(default_factory=DataFileCounts)
    next_row_id: int = dataclasses.field(init=False)
    manifests: list[ManifestFile] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.next_row_id = self.first_row_id or 0

    @property
    def is_empty(self) -> bool:
        """Whether the new snapshot would have the same content as the previous snapshot."""
        counts = self.added, self.removed, self.added_vectors, self.removed_vectors
        return not any(one.files for one in counts)

    def keep(self, manifests: Iterable[ManifestFile]) -> None:
        """Add existing manifests unchanged, except manifests without live files."""
        self.manifests += [one for one in manifests if _num_live(one)]

    def add(self, files: Iterable[ListedFile]) -> None:
        """Add data files in the given order. Each manifest is written as soon as it is full."""
        self._add(files, ManifestContent.DATA, self.added)

    def add_vectors(self, files: Iterable[ListedFile]) -> None:
        """Add deletion vectors in the given order."""
        self._add(files, ManifestContent.DELETES, self.added_vectors)

    def _add(
        self, files: Iterable[ListedFile], content: ManifestContent, counts: DataFileCounts
    ) -> None:
        for part in _slices(files, FILES_PER_MANIFEST):
            entries = []
            for data_file, sequence_number in part:
                counts.count(data_file)
                first_row_id = member(data_file, "first_row_id")
                if first_row_id is not None:
                    last = first_row_id + data_file.record_count
                    self.next_row_id = max(self.next_row_id, last)
                is_known = sequence_number is not None and sequence_number < self.sequence_number
                entries.append(
                    ManifestEntry.from_args(
                        _table_format_version=LAYOUT,
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self.snapshot_id,
                        sequence_number=sequence_number if is_known else None,
                        data_file=data_file,
                    )
                )
            self.manifests.append(self._write(entries, self.spec, content))
            self.io.flush()

    def remove(self, manifests: Sequence[ManifestFile], locations: Collection[str]) -> set[str]:
        """Remove the entries of some data files from manifests; return the locations found.

        Cost: reads each manifest whose range contains the hash of a location; writes each manifest
        that contains a location.
        """
        hashes = [hash_of(location) for location in locations]
        found: set[str] = set()
        for manifest in manifests:
            low, high = _hash_range(manifest)
            if not any(low <= one <= high for one in hashes):
                self.keep([manifest])
                continue
            entries = read_entries(self.io, manifest)
            gone = [one for one in entries if key_of(one.data_file) in locations]
            if not gone:
                self.keep([manifest])
                continue
            is_data = manifest.content == ManifestContent.DATA
            counts = self.removed if is_data else self.removed_vectors
            found |= {key_of(entry.data_file) for entry in gone}
            kept = [_existing(one) for one in entries if key_of(one.data_file) not in locations]
            for entry in gone:
                counts.count(entry.data_file)
            deleted = [self._deleted(entry) for entry in gone]
            spec = self.specs[manifest.partition_spec_id]
            self.manifests.append(self._write([*kept, *deleted], spec, manifest.content))
        self.io.flush()
        return found

    def present(self, locations: Collection[str]) -> set[str]:
        """Return the locations that a manifest lists as live.

        Cost: reads each manifest whose range contains the hash of a location.
        """
        hashes = [hash_of(location) for location in locations]
        found: set[str] = set()
        for manifest in self.manifests:
            low, high = _hash_range(manifest)
            is_data = manifest.content == ManifestContent.DATA
            if is_data and any(low <= one <= high for one in hashes):
                listed = {one.data_file.file_path for one in read_entries(self.io, manifest)}
                found |= listed.intersection(locations)
        return found

    def merge_small(self) -> None:
        """Merge small manifests if there are many.

        Cost: reads all small manifests, and writes the merged manifests.
        """
        alike: dict[tuple[int, ManifestContent], list[ManifestFile]] = {}
        for manifest in self.manifests:
            if _num_live(manifest) < _SMALL and manifest.added_snapshot_id != self.snapshot_id:
                kind = manifest.partition_spec_id, manifest.content
                alike.setdefault(kind, []).append(manifest)
        for (spec_id, content), small in alike.items():
            if len(small) < _MANY_SMALL:
                continue
            paths = {manifest.manifest_path for manifest in small}
            self.manifests = [one for one in self.manifests if one.manifest_path not in paths]
            entries = [_existing(entry) for one in small for entry in read_entries(self.io, one)]
            entries.sort(key=lambda entry: hash_of(key_of(entry.data_file)))
            for part in _slices(entries, FILES_PER_MANIFEST):
                self.manifests.append(self._write(part, self.specs[spec_id], content))

    def write_list(self, parent_snapshot_id: int | None) -> str:
        """Store all written manifests and the manifest list; return the location of the list."""
        location = self.io.location(f"snap-{self.snapshot_id}-1-{uuid.uuid4()}.avro")
        metadata = {
            "snapshot-id": str(self.snapshot_id),
            "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
            "sequence-number": str(self.sequence_number),
            "format-version": str(self.format_version),
            **_CODEC,
        }
        if self.first_row_id is not None:
            metadata["first-row-id"] = str(self.first_row_id)
        output = self.io.new_output(location)
        with MetadataOutputFile[ManifestFile](
            output,
            MANIFEST_LIST_FILE_SCHEMAS[self.format_version],
            "manifest_file",
            MANIFEST_LIST_FILE_SCHEMAS[LAYOUT],
            metadata,
        ) as avro:
            avro.write_block(self.manifests)
        self.io.flush()
        return location

    def _deleted(self, entry: ManifestEntry) -> ManifestEntry:
        return _with_status(entry, ManifestEntryStatus.DELETED, self.snapshot_id)

    def _write(
        self, entries: Sequence[ManifestEntry], spec: PartitionSpec, content: ManifestContent
    ) -> ManifestFile:
        hashes = [hash_of(key_of(entry.data_file)) for entry in entries]
        name = f"{uuid.uuid4()}-m0-{min(hashes):08x}-{max(hashes):08x}.avro"
        output = self.io.new_output(self.io.location(name))
        written = self._schema_of(spec)
        partition = spec.partition_type(written)
        stored, kept = (
            manifest_entry_schema_with_data_file(
                version, data_file_with_partition(partition, version)
            )
            for version in (self.format_version, LAYOUT)
        )
        metadata = {
            "schema": written.model_dump_json(),
            "partition-spec": to_json(spec.fields).decode(),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(self.format_version),
            "content": _CONTENTS[content],
            **_CODEC,
        }
        with MetadataOutputFile[ManifestEntry](
            output, stored, "manifest_entry", kept, metadata
        ) as avro:
            avro.write_block(list(entries))
        return self._described(output.location, len(output), entries, spec, content)

    def _schema_of(self, spec: PartitionSpec) -> Schema:
        """Return the newest schema that contains all columns of a partition spec.

        Later schemas may lack a column that was dropped.
        """
        needed = {one.source_id for one in spec.fields}
        fits = (one for one in reversed(self.schemas) if needed <= set(one.field_ids))
        return next(fits, self.schemas[-1])

    def _described(
        self,
        location: str,
        size_bytes: int,
        entries: Sequence[ManifestEntry],
        spec: PartitionSpec,
        content: ManifestContent,
    ) -> ManifestFile:
        counts = {status: DataFileCounts() for status in ManifestEntryStatus}
        numbers = [self.sequence_number]
        for entry in entries:
            counts[entry.status].count(entry.data_file)
            if entry.status != ManifestEntryStatus.DELETED and entry.sequence_number is not None:
                numbers.append(entry.sequence_number)
        added = counts[ManifestEntryStatus.ADDED]
        existing = counts[ManifestEntryStatus.EXISTING]
        deleted = counts[ManifestEntryStatus.DELETED]
        return ManifestFile.from_args(
            _table_format_version=LAYOUT,
            manifest_path=location,
            manifest_length=size_bytes,
            partition_spec_id=spec.spec_id,
            content=content,
            sequence_number=self.sequence_number,
            min_sequence_number=min(numbers),
            added_snapshot_id=self.snapshot_id,
            added_files_count=added.files,
            existing_files_count=existing.files,
            deleted_files_count=deleted.files,
            added_rows_count=added.rows,
            existing_rows_count=existing.rows,
            deleted_rows_count=deleted.rows,
            partitions=partition_summaries(
                spec, self._schema_of(spec), [entry.data_file.partition for entry in entries]
            ),
            # Readers require `first_row_id`, although every data file has its own `first_row_id`.
            first_row_id=self.first_row_id if content == ManifestContent.DATA else None,
        )


def read_entries(io: StoreIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """Read the live entries of a manifest, with inherited sequence numbers and row ids.

    Raises:
        MalformedLogError: the manifest is damaged, or outside of the table's `metadata/`.

    Cost: one request.
    """
    with _reading(manifest.manifest_path):
        return decoded_entries(io, manifest)


def decoded_entries(io: StoreIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """Read the live entries of a manifest; see `read_entries`. Raises PyIceberg's own errors."""
    with MetadataAvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[LAYOUT],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        return [
            _inherited(entry, manifest)
            for entry in reader
            if entry.status != ManifestEntryStatus.DELETED
        ]


def read_manifest_list(io: StoreIO, location: str) -> list[ManifestFile]:
    """Read the manifests of a snapshot.

    Raises:
        MalformedLogError: the manifest list is damaged, or outside of the table's `metadata/`.

    Cost: one request.
    """
    with _reading(location):
        return decoded_manifest_list(io, location)


def decoded_manifest_list(io: StoreIO, location: str) -> list[ManifestFile]:
    """Read the manifests of a snapshot; see `read_manifest_list`. Raises PyIceberg's own errors."""
    with MetadataAvroFile[ManifestFile](
        io.new_input(location),
        MANIFEST_LIST_FILE_SCHEMAS[LAYOUT],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        return list(reader)


@contextmanager
def _reading(location: str) -> Iterator[None]:
    """Replace PyIceberg's various errors for a damaged Avro file by `MalformedLogError`."""
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:  # the decoder raises errors of many types for damaged bytes
        raise MalformedLogError(
            f"cannot read the Iceberg metadata {location!r}: expected Avro, found "
            f"{type(error).__name__}: {error}; delete the directory metadata/, and the next commit "
            "writes it again"
        ) from error


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    snapshot_id, number = entry.snapshot_id, entry.sequence_number
    file_number = entry.file_sequence_number
    is_added = entry.status == ManifestEntryStatus.ADDED
    return ManifestEntry.from_args(
        _table_format_version=LAYOUT,
        status=entry.status,
        snapshot_id=manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
        sequence_number=manifest.sequence_number if number is None and is_added else number,
        file_sequence_number=(
            manifest.sequence_number if file_number is None and is_added else file_number
        ),
        data_file=with_content(entry.data_file),
    )


def _existing(entry: ManifestEntry) -> ManifestEntry:
    return _with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id)


def _with_status(
    entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None
) -> ManifestEntry:
    return ManifestEntry.from_args(
        _table_format_version=LAYOUT,
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def _num_live(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _hash_range(manifest: ManifestFile) -> tuple[int, int]:
    found = _RANGE.search(manifest.manifest_path)
    return (int(found[1], 16), int(found[2], 16)) if found else _ALL_HASHES


def _slices(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    part: list[_T] = []
    for value in values:
        part.append(value)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


# --- Avro and JSON files of Iceberg metadata


_D = TypeVar("_D", bound=StructProtocol)

FREE_BYTES: Final = 16 << 20
"""A compressed file may always expand to this number of bytes."""
EXPANSION: Final = 100
"""A compressed file may also expand to this multiple of its size. Metadata is repetitive."""
MOST_BYTES: Final = 512 << 20
"""No file may expand to more than this number of bytes."""

_DOUBLE: Final = struct.Struct("<d")
_LENGTH_BITS: Final = 7
_PIECE_BYTES: Final = 1 << 20
_SCHEMA: Final = "avro.schema"
_FIELD_ID: Final = "field-id"
_KEPT: Final = re.compile(r"[A-Za-z0-9_]")
_GZIPPED: Final = ".gz.metadata.json"


class MetadataAvroFile(AvroFile[_D]):
    """Reader of an Avro file, with exact doubles and a limit for the size of expanded blocks."""

    __slots__ = ("_left_bytes",)

    def __enter__(self) -> MetadataAvroFile[_D]:
        """Read the file and its header."""
        self._left_bytes = most_bytes(len(self.input_file))
        super().__enter__()
        return self

    def _read_block(self) -> int:
        length = len(self.input_file)
        if self.decoder.tell() >= length and self.block is None:
            raise EOFError  # tells PyIceberg that the file ends
        try:
            if self.block is not None:
                self._check_marker()
                if self.decoder.tell() >= length:
                    self.block = None
                    return 0
            count, data = self.decoder.read_int(), self.decoder.read_bytes()
        except (EOFError, SystemError) as error:  # to PyIceberg, both mean the end of the file
            raise ValueError("the file ends in the middle of a block") from error
        decoder: Any = _ExactDecoder(new_decoder(self._expanded(data)))
        self.block = Block(reader=self.reader, block_records=count, block_decoder=decoder)
        return count

    def _check_marker(self) -> None:
        marker = self.decoder.read(len(self.header.sync))
        if marker != self.header.sync:
            raise ValueError(f"expected sync bytes {self.header.sync!r}, found {marker!r}")

    def _expanded(self, data: bytes) -> bytes:
        codec = self.header.compression_codec()
        if codec is None:
            return data
        expanded = _EXPANSIONS[codec](data, self._left_bytes + 1)
        if len(expanded) > self._left_bytes:
            raise excess(self.input_file.location, len(self.input_file))
        self._left_bytes -= len(expanded)
        return expanded


class MetadataOutputFile(AvroOutputFile[_D]):
    """Writer of an Avro file, with field names that all Avro readers accept."""

    def _write_header(self) -> None:
        schema: Any = AvroSchemaConversion().iceberg_to_avro(self.file_schema, self.schema_name)
        _rename(schema)
        codec = self.metadata[AVRO_CODEC_KEY]
        members = {
            **self.metadata,
            _SCHEMA: dumps(schema).decode(),
            AVRO_CODEC_KEY: CODEC_MAPPING_ICEBERG_TO_AVRO.get(codec, codec),
        }
        header = AvroFileHeader(MAGIC, members, self.sync_bytes)
        construct_writer(META_SCHEMA).write(self.encoder, header)


def avro_name(name: str) -> str:
    """Return the Avro name for a column name, by the rules of Iceberg's writers.

    A character other than an ASCII letter, digit or underscore becomes `_x` and its UTF-16 code. A
    leading digit gets a `_` prefix. Non-ASCII letters are encoded, because C readers crash on them.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    text = "".join(chr(code) if _KEPT.fullmatch(chr(code)) else f"_x{code:X}" for code in codes)
    return f"_{text}" if text[:1].isdigit() else text


def _rename(schema: Any) -> None:
    """Give the fields of a schema unique Avro names, and store the original names as properties."""
    parts = schema if isinstance(schema, list) else [schema]
    for part in parts:
        if not isinstance(part, dict):
            continue
        taken: set[str] = set()
        for field in part.get("fields", ()):
            original = field.get(ICEBERG_FIELD_NAME_PROP, field["name"])
            name = avro_name(original)
            if name in taken:
                name = f"{name}_{field[_FIELD_ID]}"
            taken.add(name)
            field["name"] = name
            if name != original:
                field[ICEBERG_FIELD_NAME_PROP] = original
            _rename(field["type"])
        _rename(part.get("items"))


class _ExactDecoder:
    """PyIceberg's decoder, but with exact doubles."""

    def __init__(self, decoder: BinaryDecoder) -> None:
        for name in dir(decoder):
            if not name.startswith("_") and name != "read_double":
                setattr(self, name, getattr(decoder, name))
        self._read: Callable[[int], bytes] = decoder.read

    def read_double(self) -> float:
        """Return the next double."""
        value: float = _DOUBLE.unpack(self._read(_DOUBLE.size))[0]
        return value


def read_table_metadata(source: StoredInput) -> TableMetadata:
    """Return the table metadata in a file, which may be compressed by gzip.

    Raises:
        InvalidInputError: the file expands to more than the limit.

    Cost: one request.
    """
    with source.open() as file:
        data = file.read()
    if source.location.endswith(_GZIPPED):
        most = most_bytes(len(data))
        with gzip.open(BytesIO(data)) as packed:
            expanded = packed.read(most + 1)
        if len(expanded) > most:
            raise excess(source.location, len(data))
        data = expanded
    return FromByteStream.table_metadata(BytesIO(data))


def most_bytes(length: int) -> int:
    """Return the maximum expanded size of a compressed file."""
    return min(MOST_BYTES, max(FREE_BYTES, EXPANSION * length))


def excess(location: str, length: int) -> InvalidInputError:
    """Return the error for a file that expands to more than the limit."""
    return InvalidInputError(
        f"cannot read the Iceberg metadata {location!r}: its {length} bytes expand to more than "
        f"{most_bytes(length)}; store a valid file of this size without compression"
    )


def _deflated(data: bytes, most: int) -> bytes:
    packer = zlib.decompressobj(-zlib.MAX_WBITS)
    found = packer.decompress(data, most)
    if len(found) < most and not packer.eof:
        raise ValueError("a compressed block is cut off")
    return found


def _bzipped(data: bytes, most: int) -> bytes:
    with bz2.open(BytesIO(data)) as packed:
        return packed.read(most)


def _snapped(data: bytes, most: int) -> bytes:
    # A Snappy block begins with its expanded length as a varint.
    length = 0
    for place, byte in enumerate(data[:10]):
        length |= (byte & 0x7F) << (_LENGTH_BITS * place)
        if byte >> _LENGTH_BITS == 0:
            break
    return SnappyCodec.decompress(data) if length < most else bytes(most)


def _z_standard(data: bytes, most: int) -> bytes:
    from zstandard import ZstdDecompressor  # noqa: PLC0415  # an optional dependency of PyIceberg

    parts, left = [], most
    with ZstdDecompressor().stream_reader(BytesIO(data)) as packed:
        while left and (part := packed.read(min(left, _PIECE_BYTES))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


# Codec → function that expands a block to at most a given number of bytes.
_EXPANSIONS: Final[dict[type[Codec], Callable[[bytes, int], bytes]]] = {
    DeflateCodec: _deflated,
    BZip2Codec: _bzipped,
    SnappyCodec: _snapped,
    ZStandardCodec: _z_standard,
}
