from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from deltalog.errors import DeletionVectorError, UnsafePathError, UnsupportedFeatureError
from deltalog.protocol.actions.model import DeletionVectorDescriptor
from deltalog.protocol.deletion_vectors import (
    DeletionBitmap,
    absolute_descriptor,
    byte_range,
    check_rows,
    decode_padded_z85,
    decode_z85,
    encode_file,
    encode_z85,
    inline_descriptor,
    location,
    parse_file,
    parse_framed,
    parse_inline,
)

SIX = DeletionBitmap([3, 4, 7, 11, 18, 29])
SIX_Z85 = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
SPEC_EXAMPLE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
ID = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def descriptor(
    storage_type: str, text: str, *, size: int = 44, cardinality: int = 6, offset: int | None = None
) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type=storage_type,
        path_or_inline_dv=text,
        size_bytes=size,
        cardinality=cardinality,
        offset=offset,
    )


@pytest.mark.protocol("DV-16")
def test_z85_of_the_rfc() -> None:
    data = bytes.fromhex("864FD26FB559F75B")
    assert encode_z85(data) == "HelloWorld"
    assert decode_z85("HelloWorld") == data


@pytest.mark.protocol("DV-16")
@pytest.mark.parametrize("text", ["Hello", "", "0" * 55])
def test_z85_gives_back_its_text(text: str) -> None:
    assert encode_z85(decode_z85(text)) == text


@pytest.mark.protocol("DV-16")
@pytest.mark.parametrize("text", ["Hell", "Hell~", "Hell_", "Hell;", "Hell ", "Hellé", "#####"])
def test_z85_refuses_what_is_none(text: str) -> None:
    with pytest.raises(DeletionVectorError, match="Z85"):
        decode_z85(text)


# Version 6 of the kernel's table cdf-table-with-dv: `##` stands for two missing bytes, and `093` is
# 9 * 85 + 3 = 768, the bytes 03 00.
PADDED = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093"


def padded(data: bytes) -> str:
    """Z85 with a `#` for each byte that the last group lacks, by the definition."""
    whole = len(data) // 4 * 4
    text, rest = encode_z85(data[:whole]), data[whole:]
    if not rest:
        return text
    number, digits = int.from_bytes(rest, "big"), ""
    for _ in range(len(rest) + 1):
        number, digit = divmod(number, 85)
        digits = ALPHABET[digit] + digits
    return text + "#" * (4 - len(rest)) + digits


@pytest.mark.protocol("DV-16", "DV-17")
def test_missing_bytes_of_the_last_group_are_read_as_their_writer_meant_them() -> None:
    found = decode_padded_z85(PADDED, 34)
    assert found.hex() == "d1d339640100000000000000000000003a3000000100000000000000100000000300"
    assert padded(found) == PADDED
    assert parse_inline(descriptor("i", PADDED, size=34, cardinality=1)) == DeletionBitmap([3])


@pytest.mark.protocol("DV-16", "DV-17")
@pytest.mark.parametrize("num_bytes", range(28, 60))
def test_every_length_is_read_with_either_padding(num_bytes: int) -> None:
    data = bytes((n * 37 + 11) % 256 for n in range(num_bytes))
    zeros = encode_z85(data + bytes(-num_bytes % 4))
    assert decode_padded_z85(zeros, num_bytes) == data
    assert decode_padded_z85(padded(data), num_bytes) == data
    last = data[:-3] + b"\xff\xff\xff"  # the greatest number of the last group
    assert decode_padded_z85(padded(last), num_bytes) == last


@pytest.mark.protocol("DV-16", "DV-17")
@pytest.mark.parametrize(
    ("content", "rows"),
    [
        # Runs: 5 to 104.
        ("d1d339640100000000000000 00000000 3b300000 01 0000 6300 0100 0500 6300", range(5, 105)),
        # Two keys of 32 bits: 3, and 2^32 + 7 to 2^32 + 9.
        (
            (
                "d1d339640200000000000000 00000000 3a300000 01000000 0000 0000 10000000 0300"
                "01000000 3b300000 01 0000 0200 0100 0700 0200"
            ),
            [3, 2**32 + 7, 2**32 + 8, 2**32 + 9],
        ),
        # The highest key: row 2^63 - 1.
        (
            "d1d339640100000000000000 ffffff7f 3a300000 01000000 ffff 0000 10000000 ffff",
            [2**63 - 1],
        ),
        # No bucket at all, and one that is empty.
        ("d1d339640000000000000000", []),
        ("d1d339640100000000000000 00000000 3a300000 00000000", []),
    ],
)
def test_vectors_with_missing_bytes_have_the_rows_that_were_written(
    content: str, rows: Iterable[int]
) -> None:
    data, expected = bytes.fromhex(content), list(rows)
    told = descriptor("i", padded(data), size=len(data), cardinality=len(expected))
    assert parse_inline(told).to_arrow().to_pylist() == expected
    with pytest.raises(DeletionVectorError, match=f"found {len(expected)}"):
        parse_inline(replace(told, cardinality=len(expected) + 1))


@pytest.mark.protocol("DV-16")
@pytest.mark.parametrize(
    ("text", "size"),
    [
        (PADDED, 36),
        (PADDED, 35),
        (PADDED, 33),  # contradicts the number of `#`
        (PADDED, 32),
        (PADDED[:-1], 34),
        (PADDED[:-5], 34),
        ("#####00000", 6),
        ("##093#0000", 6),  # only the last group may lack bytes
        ("00000####9", 4),  # a group without bytes
        ("00000#####", 4),
        ("00000###31", 5),  # 256 in one byte
        ("00000##961", 6),  # 65536 in two
        ("00000#r~00", 7),
        ("00000#rr91", 7),  # 2^24 in three
        ("0000$0000000", 8),
        ("00000$0000", 5),  # exceeds 32 bits, and has no `#`
        ("00000%nSc1", 6),
        ("00000##0_0", 6),
        ("0000000000", -1),
    ],
)
def test_any_other_excess_is_refused(text: str, size: int) -> None:
    with pytest.raises(DeletionVectorError, match="Z85"):
        decode_padded_z85(text, size)


@pytest.mark.protocol("DV-16", "DV-03")
@pytest.mark.parametrize("text", [PADDED, "#####", "##093"])
def test_a_name_of_a_file_lacks_no_bytes(text: str) -> None:
    with pytest.raises(DeletionVectorError, match="Z85"):
        decode_z85(text)
    with pytest.raises(DeletionVectorError, match="Z85"):
        location(descriptor("u", encode_z85(ID.bytes)[:15] + text[-5:]))


@pytest.mark.protocol("DV-16")
def test_z85_refuses_bytes_that_do_not_fill_a_group() -> None:
    with pytest.raises(DeletionVectorError, match="multiple of 4"):
        encode_z85(b"abc")


@pytest.mark.protocol("DV-02", "DV-03")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("ab^-aqEH.-t@S}K{vb[*k^", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        ("vBn[lx{q8@P<9BNH/isA", "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"),
    ],
)
def test_uuid_names_the_file(text: str, path: str) -> None:
    assert location(descriptor("u", text)) == path


@pytest.mark.protocol("DV-02", "DV-05")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("s3://mytable/deletion_vector_d2c6.bin", "s3://mytable/deletion_vector_d2c6.bin"),
        ("file:///a%20b/deletion_vector_d2c6.bin", "file:///a b/deletion_vector_d2c6.bin"),
    ],
)
def test_absolute_path_is_decoded_once(text: str, path: str) -> None:
    assert location(descriptor("p", text)) == path


@pytest.mark.protocol("DV-02", "DV-04")
def test_inline_vector_is_in_no_file() -> None:
    assert location(descriptor("i", SIX_Z85)) is None


@pytest.mark.protocol("DV-02")
def test_storage_type_of_an_unknown_feature_is_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="adaptiveMetadata-preview"):
        location(descriptor("r", "x"))
    with pytest.raises(DeletionVectorError, match="'q'"):
        location(descriptor("q", "x"))


def test_files_elsewhere_by_trickery_are_refused() -> None:
    with pytest.raises(UnsafePathError):
        location(descriptor("u", "../.." + encode_z85(ID.bytes)))
    with pytest.raises(DeletionVectorError, match="at least 20"):
        location(descriptor("u", "short"))


@pytest.mark.protocol("DV-04", "DV-07")
def test_inline_vector_of_the_ledger() -> None:
    assert inline_descriptor(SIX) == descriptor("i", SIX_Z85)
    assert parse_inline(descriptor("i", SIX_Z85)) == SIX


@pytest.mark.protocol("D-01", "DV-21")
def test_the_specifications_own_example_is_read() -> None:
    assert parse_inline(descriptor("i", SPEC_EXAMPLE, size=40)) == SIX


@pytest.mark.protocol("DV-17")
def test_inline_padding_is_added_and_cut() -> None:
    written = inline_descriptor(DeletionBitmap([0]))
    assert (written.size_bytes, len(decode_z85(written.path_or_inline_dv))) == (34, 36)
    assert parse_inline(written) == DeletionBitmap([0])


@pytest.mark.protocol("DV-08")
def test_inline_vector_that_contradicts_its_descriptor_is_refused() -> None:
    with pytest.raises(DeletionVectorError, match="cardinality of 7, found 6"):
        parse_inline(descriptor("i", SIX_Z85, cardinality=7))
    with pytest.raises(DeletionVectorError, match="expected 45 bytes, found 44"):
        parse_inline(descriptor("i", SIX_Z85, size=45))


@pytest.mark.protocol("DV-12", "DV-06", "B-28", "D-02")
def test_file_of_one_vector_byte_for_byte() -> None:
    file = encode_file([SIX], ID, prefix="ab")
    assert file.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert file.data.hex() == f"010000002c{SIX.encode().hex()}acd74a79"
    assert file.descriptors == (descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", offset=1),)


@pytest.mark.protocol("DV-12", "DV-06", "DV-07")
def test_second_vector_of_a_file_starts_behind_the_first() -> None:
    other = DeletionBitmap([7, 2**32 + 5])
    file = encode_file([SIX, other], ID)
    first, second = file.descriptors
    assert second.offset == 1 + 4 + 44 + 4
    assert parse_file(file.data, first) == SIX
    assert parse_file(file.data, second) == other


@pytest.mark.protocol("DV-06")
def test_a_part_of_a_file_is_enough() -> None:
    file = encode_file([DeletionBitmap([1]), SIX], ID)
    start, length = byte_range(file.descriptors[1])
    part = file.data[start : start + length]
    assert parse_framed(part, file.descriptors[1], data_offset=start) == SIX
    with pytest.raises(DeletionVectorError, match="the file ends"):
        parse_framed(part, file.descriptors[0], data_offset=start)


@pytest.mark.protocol("DV-06", "B-29")
def test_absent_offset_is_the_start_of_the_file() -> None:
    framed = encode_file([SIX], ID).data[1:]
    assert parse_framed(framed, descriptor("u", encode_z85(ID.bytes))) == SIX


@pytest.mark.protocol("DV-15", "DV-08")
def test_each_flipped_bit_has_an_error_of_its_own() -> None:
    file = encode_file([SIX], ID)
    (told,) = file.descriptors
    messages: list[str] = []
    for position in (0, 4, 5, 30, 50):  # version, size, magic, bitmap, checksum
        torn = bytearray(file.data)
        torn[position] ^= 1
        with pytest.raises(DeletionVectorError) as caught:
            parse_file(bytes(torn), told)
        messages.append(str(caught.value))
    assert "expected format version 1, found 0" in messages[0]
    assert "expected a size field of 44, found 45" in messages[1]
    assert all("expected checksum" in message for message in messages[2:])
    with pytest.raises(DeletionVectorError, match="cardinality of 5, found 6"):
        parse_file(file.data, replace(told, cardinality=5))
    with pytest.raises(DeletionVectorError, match="ends after 51 of its 52"):
        parse_file(file.data[:-1], told)
    with pytest.raises(DeletionVectorError, match="an empty file"):
        parse_file(b"", told)
    with pytest.raises(DeletionVectorError, match="negative"):
        parse_file(file.data, replace(told, offset=-8))


@pytest.mark.protocol("DV-15")
def test_wrong_magic_number_under_a_right_checksum_is_told() -> None:
    import zlib

    content = b"\0\0\0\0" + SIX.encode()[4:]
    data = b"\1\0\0\0\x2c" + content + zlib.crc32(content).to_bytes(4, "big")
    with pytest.raises(DeletionVectorError, match="expected magic number"):
        parse_file(data, descriptor("u", encode_z85(ID.bytes), offset=1))


@pytest.mark.protocol("DV-09", "D-18")
def test_unique_id_is_type_text_and_offset() -> None:
    told = descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", offset=4)
    assert told.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert descriptor("i", SIX_Z85).unique_id == f"i{SIX_Z85}"


@pytest.mark.protocol("DV-05")
def test_a_clone_names_the_same_file_by_its_absolute_path() -> None:
    (told,) = encode_file([SIX], ID, prefix="ab").descriptors
    seen = absolute_descriptor(told, "file:///tables/a b/")
    assert seen.path_or_inline_dv.startswith("file:///tables/a%20b/ab/deletion_vector_")
    assert location(seen) == f"file:///tables/a b/{location(told)}"
    assert (seen.offset, seen.size_bytes, seen.cardinality) == (1, 44, 6)
    assert absolute_descriptor(seen, "file:///other") == seen
    inline = inline_descriptor(SIX)
    assert absolute_descriptor(inline, "file:///other") == inline


@pytest.mark.protocol("DV-08")
def test_a_row_beyond_the_file_is_refused_by_its_number() -> None:
    told = inline_descriptor(SIX)
    check_rows(SIX, told, 30)
    check_rows(DeletionBitmap(), told, 0)
    with pytest.raises(
        DeletionVectorError, match="rows below 29, which its data file has, found row 29"
    ):
        check_rows(SIX, told, 29)


def test_messages_do_not_show_a_whole_vector() -> None:
    told = inline_descriptor(DeletionBitmap(range(0, 100_000, 2)))
    with pytest.raises(DeletionVectorError) as caught:
        check_rows(DeletionBitmap([99_998]), told, 5)
    assert len(str(caught.value)) < 1000
