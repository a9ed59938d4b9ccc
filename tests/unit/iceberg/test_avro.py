"""`iceberg.avro`: what compressed metadata may expand to, cut files, and exact numbers."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.io import OutputStream
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, NestedField, StringType

from deltalog import convert_to_deltalake, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.iceberg import manifests as avro
from deltalog.iceberg.manifests import (
    MetadataAvroFile,
    MetadataOutputFile,
    most_bytes,
    read_manifest_list,
)
from deltalog.iceberg.store_io import StoreIO
from deltalog.storage import open_store
from tests.support.logs import DictStore

SCHEMA = Schema(
    NestedField(1, "text", StringType(), required=True),
    NestedField(2, "number", DoubleType(), required=True),
)


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _long(number: int) -> bytes:
    """A number as Avro stores it."""
    file = io.BytesIO()
    BinaryEncoder(cast("OutputStream", file)).write_int(number)
    return file.getvalue()


def _written(records: list[list[tuple[str, float]]], codec: str) -> StoreIO:
    """A store with an Avro file of some blocks."""
    files = StoreIO(DictStore())
    output = files.new_output(files.location("a.avro"))
    with MetadataOutputFile[Record](output, SCHEMA, "r", SCHEMA, {"avro.codec": codec}) as file:
        for block in records:
            file.write_block([Record(*one) for one in block])
    files.flush()
    return files


def _read(files: StoreIO) -> list[tuple[Any, ...]]:
    location = files.location("a.avro")
    with MetadataAvroFile[Record](files.new_input(location), SCHEMA) as file:
        return [(one[0], one[1]) for one in file]


@pytest.mark.parametrize("codec", ["null", "gzip", "bzip2"])
def test_blocks_of_a_codec_are_read(codec: str) -> None:
    blocks = [[("a", 0.1), ("b", -1 / 3)], [("c", 5e-324)]]
    assert _read(_written(blocks, codec)) == [one for block in blocks for one in block]


def test_blocks_in_zstandard_are_read_and_bounded() -> None:
    pytest.importorskip("zstandard")
    assert _read(_written([[("a", 0.1)]], "zstd")) == [("a", 0.1)]
    with pytest.raises(InvalidInputError, match="expand to more than"):
        _read(_written([[("a" * (20 << 20), 0.0)]], "zstd"))


@pytest.mark.parametrize("codec", ["gzip", "bzip2"])
def test_a_short_file_does_not_expand_without_bound(codec: str) -> None:
    files = _written([[("a" * (20 << 20), 0.0)]], codec)
    with pytest.raises(InvalidInputError, match=r"a\.avro'.*expand to more than"):
        _read(files)


def test_blocks_are_bounded_together() -> None:
    files = _written([[("a" * (9 << 20), 0.0)], [("a" * (9 << 20), 0.0)]], "gzip")
    with pytest.raises(InvalidInputError, match="expand to more than"):
        _read(files)


def test_a_block_in_snappy_tells_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def decompress(data: bytes) -> bytes:
        asked.append(len(data))
        return b"whole"

    monkeypatch.setattr(KNOWN_CODECS["snappy"], "decompress", staticmethod(decompress))
    assert avro._snapped(b"\x05rest", 100) == b"whole"
    assert avro._snapped(b"\xff\xff\xff\xff\x0frest", 100) == bytes(100)
    assert asked == [5]


def test_a_file_is_bounded_by_its_length_and_at_all() -> None:
    assert most_bytes(1) == 16 << 20
    assert most_bytes(1 << 20) == 100 << 20
    assert most_bytes(1 << 30) == 512 << 20


@pytest.mark.parametrize("codec", ["null", "gzip"])
def test_a_cut_file_is_no_shorter_one(codec: str) -> None:
    files = _written([[("a", 0.1)], [("b", 0.2)]], codec)
    path = "metadata/a.avro"
    written = files.store.read(path)
    # PyIceberg takes missing bytes for zeros, and a random marker may end with some.
    marker = bytes(range(1, 17))
    whole = written.replace(written[-16:], marker)
    first = whole.index(marker) + 16  # the header ends with the marker, too
    for end in range(first + 1, len(whole)):
        files.store.put(path, whole[:end])
        try:
            found = _read(files)
        except (ValueError, EOFError, SystemError, zlib.error):
            continue
        # Cut after the first block, it is a file of that block.
        assert found == [("a", 0.1)]
        assert whole[:end].endswith(marker)


def test_a_name_that_is_taken_is_made_another() -> None:
    schema = Schema(
        NestedField(1, "\xe4", StringType(), required=True),
        NestedField(2, "_xE4", DoubleType(), required=True),
    )
    files = StoreIO(DictStore())
    output = files.new_output(files.location("a.avro"))
    with MetadataOutputFile[Record](output, schema, "r", schema, {"avro.codec": "null"}) as file:
        file.write_block([Record("x", 1.5)])
    files.flush()
    with MetadataAvroFile[Record](files.new_input(files.location("a.avro"))) as file:
        assert [field.name for field in file.schema.fields] == ["_xE4", "_xE4_2"]
        assert [(one[0], one[1]) for one in file] == [("x", 1.5)]


@pytest.mark.parametrize("pad", [b" ", b"["])
def test_metadata_in_gzip_is_bounded(tmp_path: Path, pad: bytes) -> None:
    folder = tmp_path / "metadata"
    folder.mkdir()
    (folder / "v1.gz.metadata.json").write_bytes(gzip.compress(pad * (20 << 20)))
    with pytest.raises(InvalidInputError, match=r"v1\.gz\.metadata\.json.*expand to more than"):
        convert_to_deltalake(tmp_path, source_format="iceberg")


def test_damaged_gzip_is_no_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "metadata"
    folder.mkdir()
    whole = gzip.compress(b'{"format-version": 2}')
    for data in (whole[:-9], b"no gzip", whole[:12] + b"\xff" * 9 + whole[21:]):
        (folder / "v1.gz.metadata.json").write_bytes(data)
        with pytest.raises(InvalidInputError, match="not table metadata"):
            convert_to_deltalake(tmp_path, source_format="iceberg")


def test_a_manifest_list_is_bounded(tmp_path: Path) -> None:
    on = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.enableIcebergCompatV2": "true",
    }
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=on)
    (path,) = (tmp_path / "metadata").glob("snap-*.avro")
    data = path.read_bytes()
    marker = data[-16:]
    packed = _deflated(b"\x00" * (20 << 20))
    header = data[: data.index(marker) + 16]
    path.write_bytes(header + _long(1) + _long(len(packed)) + packed + marker)
    files = StoreIO(open_store(str(tmp_path)))
    with pytest.raises(InvalidInputError, match="expand to more than"):
        read_manifest_list(files, files.location(path.name))
