"""Replaces pages of damaged files in a process of its own, for `test_patched_groups_laws`.

`python -m tests.property.damaged_patches DIRECTORY FIRST_SEED INPUTS PART` prints each seed before
its file is used; PART is `footer`, `pages`, `fields` (of column chunks, which take other values and
kinds), `headers` (of pages) or `indexes`.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable
from deltalog.errors import DeltaError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.thrift import Value
from tests.support.damaging import damaged
from tests.support.patched_groups import (
    many_kinds,
    only_path,
    paged_table,
    pages_of,
    patching,
    texts_of_floats,
    without,
)

_GONE: Final = {12, 13, 57}
_CONDITION: Final = "id in (12, 13, 57)"
_NUMBERS: Final = (-(1 << 70), -(1 << 40), -1, 0, 1, 3, 99, 101, 1 << 31, 1 << 62, 1 << 63, 1 << 90)


def _rows() -> pa.Table:
    """Columns of both kinds: of whose pages some are replaced, and that are encoded whole."""
    rows = many_kinds().select(["id", "l", "x", "b", "m", "w", "t", "y"])
    each = range(rows.num_rows)
    rows = rows.append_column("few", pa.array([f"entry {n % 3}" for n in each]))
    return rows.append_column("s", pa.array([{"a": n, "b": [n] * (n % 3)} for n in each]))


def _others(rng: random.Random, value: Value) -> Value:
    """Another value for a field, or one of another kind."""
    kinds = (
        lambda: Value(value.kind, rng.choice(_NUMBERS)) if value.kind in thrift.INTEGERS else value,
        lambda: Value(thrift.INT64, rng.choice(_NUMBERS)),
        lambda: Value(thrift.BINARY, rng.randbytes(rng.choice((0, 1, 4, 8, 70)))),
        lambda: Value(thrift.STRUCT, {1: Value(thrift.INT32, 1)}),
        lambda: Value(thrift.LIST, thrift.Elements(thrift.STRUCT, [{1: Value(thrift.INT32, 0)}])),
        lambda: Value(thrift.LIST, thrift.Elements(thrift.BINARY, [b"x"])),
        lambda: Value(thrift.LIST, thrift.Elements(thrift.INT32, [])),
    )
    return rng.choice((kinds[0], kinds[0], *kinds))()


def _changed_struct(rng: random.Random, fields: dict[int, Any], levels: int = 2) -> None:
    """Give one field of a struct, or of one in it, another value, or none."""
    number = rng.choice(sorted(fields))
    value = fields[number]
    if value.kind == thrift.STRUCT and levels and value.value and rng.random() < 0.8:
        _changed_struct(rng, value.value, levels - 1)
    elif rng.random() < 0.1:
        del fields[number]
    elif value.kind in thrift.LISTS and value.value.values and rng.random() < 0.8:
        values = value.value.values
        at = rng.randrange(len(values))
        if value.value.kind == thrift.STRUCT and values[at]:
            _changed_struct(rng, values[at], 0)
            if rng.random() < 0.3:  # a second lie that may make up for the first
                _changed_struct(rng, values[rng.randrange(len(values))] or values[at], 0)
        elif value.value.kind in thrift.INTEGERS:
            values[at] = rng.choice((*_NUMBERS, values[at] + 1))
        elif value.value.kind == thrift.BINARY:
            values[at] = rng.choice((b"", values[at][:-1], values[at] + b"\0", rng.randbytes(8)))
        else:
            values[at] = not values[at]
    else:
        fields[number] = _others(rng, value)


def _with_fields(data: bytes, rng: random.Random) -> bytes:
    """A file whose footer says other things of some column chunks, or of two the same."""
    (length,) = struct.unpack("<I", data[-8:-4])
    fields, _ = thrift.read_struct(data[-8 - length : -8])
    group = fields[4].value.values[0]
    columns = group[1].value.values
    if rng.random() < 0.1:
        one, other = rng.sample(range(len(columns)), 2)
        columns[one], columns[other] = columns[other], columns[one]
    elif rng.random() < 0.1:
        group[3] = Value(thrift.INT64, rng.choice((-1, 0, 1, 99, 101, 1_000)))
    else:
        for _ in range(rng.choice((1, 1, 2))):
            _changed_struct(rng, rng.choice(columns))
    footer = thrift.write_struct(fields)
    return data[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _with_headers(data: bytes, rng: random.Random) -> bytes:
    """A file with other numbers in the headers of some pages, as long as before."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        leaf = rng.randrange(8)
        page = rng.choice(pages_of(data, 0, leaf))
        # Bytes of the header's numbers stay bytes of numbers: the last of a varint is below 128.
        at = page.start + rng.randrange(12)
        found[at] = found[at] & 128 | rng.choice((rng.randrange(128), found[at] ^ 1)) & 127
    return bytes(found)


def _with_indexes(data: bytes, rng: random.Random) -> bytes:
    """A file with other indexes of some columns, behind the pages."""
    (length,) = struct.unpack("<I", data[-8:-4])
    fields, _ = thrift.read_struct(data[-8 - length : -8])
    body = data[: -8 - length]
    for _ in range(rng.choice((1, 2))):
        column = rng.choice(fields[4].value.values[0][1].value.values)
        at, size = rng.choice(((4, 5), (6, 7)))
        if at not in column:
            continue
        start, num_bytes = column[at].value, column[size].value
        index = thrift.read_struct(body[start : start + num_bytes])[0]
        _changed_struct(rng, index, 0)
        new = thrift.write_struct(index)
        column[at], column[size] = Value(thrift.INT64, len(body)), Value(thrift.INT32, len(new))
        body += new
    footer = thrift.write_struct(fields)
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


_DAMAGES: Final = {"fields": _with_fields, "headers": _with_headers, "indexes": _with_indexes}


def _damaged(file: Path, first: int, inputs: int, part: str) -> Iterator[None]:
    if part not in _DAMAGES:
        yield from damaged(file, first, inputs, part)
        return
    original = file.read_bytes()
    for seed in range(first, first + inputs):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        file.write_bytes(_DAMAGES[part](original, random.Random(seed)))
        yield
    file.write_bytes(original)


def main(directory: Path, first: int, inputs: int, part: str) -> None:
    """Damage and delete; anything but our errors ends the process with a traceback."""
    rows = _rows()
    paged_table(directory, rows, use_dictionary=["few"])
    file = directory / "old.parquet"
    expected = texts_of_floats(without(rows, _GONE))
    log = directory / "_delta_log"
    known = {path.name for path in (*directory.iterdir(), *log.iterdir())}
    num_done = 0
    for _ in _damaged(file, first, inputs, part):
        try:
            DeltaTable(directory).delete(_CONDITION)
        except DeltaError:
            left = {path.name for path in (*directory.iterdir(), *log.iterdir())} - known
            if left:
                raise AssertionError(f"an error left {left}") from None
            continue
        num_done += 1
        _compare(file, only_path(DeltaTable(directory)), expected, part)
        for path in (*directory.iterdir(), *log.iterdir()):
            if path.name not in known and not path.is_dir():
                path.unlink()
    sys.stdout.write(f"deleted from {num_done} of {inputs}\n")


def _compare(old: Path, new: Path, expected: pa.Table, part: str) -> None:
    """The rows are the right ones, if those of the damaged file are."""
    try:
        before = texts_of_floats(pq.read_table(old))
    except (pa.ArrowException, OSError):
        if part == "indexes":
            raise
        pq.read_metadata(new)  # what was copied may be as damaged as it was, not the footer
        return
    found = texts_of_floats(pq.read_table(new))
    if part == "indexes":
        assert found.equals(expected), "an index led to wrong rows"
        return
    gone = _GONE if len(set(before.column("id").to_pylist())) == before.num_rows else None
    if gone is not None:
        left = without(before, gone)
        for name in left.column_names:
            assert found.column(name).equals(left.column(name)), f"other values of {name}"


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as _patch:
        patching(_patch)
        main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
