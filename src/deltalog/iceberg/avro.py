"""Avro and JSON files of Iceberg metadata, read and written by PyIceberg's grammar.

Owns what PyIceberg gets wrong or leaves open: its compiled decoder rounds doubles to 32 bits, a
short file may expand to gigabytes, one that was cut passes for a shorter one, and its names of
fields are not always Avro's.

Protocol: Iceberg Table Spec: Appendix A (Avro), Manifests, Table Metadata; Apache Avro: Names
"""

from __future__ import annotations

import bz2
import gzip
import re
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyiceberg.avro.codecs import AVRO_CODEC_KEY, CODEC_MAPPING_ICEBERG_TO_AVRO
from pyiceberg.avro.codecs.bzip2 import BZip2Codec
from pyiceberg.avro.codecs.deflate import DeflateCodec
from pyiceberg.avro.codecs.snappy_codec import SnappyCodec
from pyiceberg.avro.codecs.zstandard_codec import ZStandardCodec
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import (
    MAGIC,
    META_SCHEMA,
    AvroFile,
    AvroFileHeader,
    AvroOutputFile,
    Block,
)
from pyiceberg.avro.resolver import construct_writer
from pyiceberg.schema import ICEBERG_FIELD_NAME_PROP
from pyiceberg.serializers import FromByteStream
from pyiceberg.typedef import StructProtocol
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from deltalog._json import dumps
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from pyiceberg.avro.codecs.codec import Codec
    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.table.metadata import TableMetadata

    from deltalog.iceberg.store_io import StoredInput

_D = TypeVar("_D", bound=StructProtocol)

FREE_BYTES: Final = 16 << 20
"""What any file may expand to."""
EXPANSION: Final = 100
"""How many times its own length a larger one may have; metadata is repetitive."""
MOST_BYTES: Final = 512 << 20
"""What no file may expand to."""

_DOUBLE: Final = struct.Struct("<d")
_LENGTH_BITS: Final = 7
_PIECE_BYTES: Final = 1 << 20
_SCHEMA: Final = "avro.schema"
_FIELD_ID: Final = "field-id"
_KEPT: Final = re.compile(r"[A-Za-z0-9_]")
_GZIPPED: Final = ".gz.metadata.json"


class MetadataAvroFile(AvroFile[_D]):
    """An Avro file of Iceberg metadata; its doubles are exact, and its blocks bounded."""

    __slots__ = ("_left_bytes",)

    def __enter__(self) -> MetadataAvroFile[_D]:
        """Read the file and its header."""
        self._left_bytes = most_bytes(len(self.input_file))
        super().__enter__()
        return self

    def _read_block(self) -> int:
        length = len(self.input_file)
        if self.decoder.tell() >= length and self.block is None:
            raise EOFError  # there is none: PyIceberg's sign for the end
        try:
            if self.block is not None:
                self._check_marker()
                if self.decoder.tell() >= length:
                    self.block = None
                    return 0
            count, data = self.decoder.read_int(), self.decoder.read_bytes()
        except (EOFError, SystemError) as error:  # PyIceberg would take it for the end
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
    """An Avro file of Iceberg metadata whose fields have names that every reader of Avro takes."""

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
    """Return a name of Avro for a name, as Iceberg's writers make it.

    What is no letter, digit or underscore becomes `_x` and its number in UTF-16, a digit at the
    beginning `_` and itself. Letters are those of ASCII: readers in C end their process at others.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    text = "".join(chr(code) if _KEPT.fullmatch(chr(code)) else f"_x{code:X}" for code in codes)
    return f"_{text}" if text[:1].isdigit() else text


def _rename(schema: Any) -> None:
    """Give the fields of a schema names of Avro, each its own; the given one stays beside it."""
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
    """A decoder of PyIceberg's whose doubles have all of their bits."""

    def __init__(self, decoder: BinaryDecoder) -> None:
        for name in dir(decoder):
            if not name.startswith("_") and name != "read_double":
                setattr(self, name, getattr(decoder, name))
        self._read: Callable[[int], bytes] = decoder.read

    def read_double(self) -> float:
        """Return the next value."""
        value: float = _DOUBLE.unpack(self._read(_DOUBLE.size))[0]
        return value


def read_table_metadata(source: StoredInput) -> TableMetadata:
    """Return the table metadata in a file, which may be compressed by gzip.

    Raises:
        InvalidInputError: it expands to more than it may.

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
    """Return what a compressed file of a length may expand to."""
    return min(MOST_BYTES, max(FREE_BYTES, EXPANSION * length))


def excess(location: str, length: int) -> InvalidInputError:
    """Return the error for a file that expands to more than it may."""
    return InvalidInputError(
        f"cannot read the Iceberg metadata {location!r}: its {length} bytes expand to more than "
        f"{most_bytes(length)}; a file that is rightly so large can be stored without compression"
    )


def _deflated(data: bytes, most: int) -> bytes:
    packer = zlib.decompressobj(-zlib.MAX_WBITS)
    found = packer.decompress(data, most)
    if len(found) < most and not packer.eof:
        raise ValueError("a compressed block ends in its middle")
    return found


def _bzipped(data: bytes, most: int) -> bytes:
    with bz2.open(BytesIO(data)) as packed:
        return packed.read(most)


def _snapped(data: bytes, most: int) -> bytes:
    # A block begins with its expanded length, seven bits in each byte.
    length = 0
    for place, byte in enumerate(data[:10]):
        length |= (byte & 0x7F) << (_LENGTH_BITS * place)
        if byte >> _LENGTH_BITS == 0:
            break
    return SnappyCodec.decompress(data) if length < most else bytes(most)


def _z_standard(data: bytes, most: int) -> bytes:
    from zstandard import ZstdDecompressor  # noqa: PLC0415  # an extra of PyIceberg

    parts, left = [], most
    with ZstdDecompressor().stream_reader(BytesIO(data)) as packed:
        while left and (part := packed.read(min(left, _PIECE_BYTES))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


# Each expands a block to so many bytes at most.
_EXPANSIONS: Final[dict[type[Codec], Callable[[bytes, int], bytes]]] = {
    DeflateCodec: _deflated,
    BZip2Codec: _bzipped,
    SnappyCodec: _snapped,
    ZStandardCodec: _z_standard,
}
