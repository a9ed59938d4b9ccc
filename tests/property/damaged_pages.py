"""Reads files whose page index or page headers are damaged, in a process that Arrow could end.

`python -m tests.property.damaged_pages DIRECTORY FIRST_SEED INPUTS PART` prints each seed before
its file is read. What a damaged offset index gives are the rows, or one of our errors; a damaged
column index can only hide rows, as damaged statistics can; damaged headers end in our errors, if
not in values that nothing shows to be wrong.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog.errors import DeltaError
from deltalog.storage.parquet.excerpt import PAGED, Excerpt
from deltalog.storage.parquet.footer import column_chunks
from deltalog.storage.parquet.pages import parse_offset_index
from tests.property.damaged_data_files import PREDICATES, make

Range = tuple[int, int]


def places(data: bytes) -> dict[str, list[Range]]:
    """Where the parts of a file are that can be damaged."""
    footer_bytes = int.from_bytes(data[-8:-4], "little")
    footer = (len(data) - 8 - footer_bytes, len(data) - 8)
    found: dict[str, list[Range]] = {"offsets": [], "bounds": [], "headers": [], "footer": [footer]}
    for group in column_chunks(data[-8 - footer_bytes : -8]):
        for chunk in group:
            assert chunk.offset_index is not None
            found["offsets"].append(chunk.offset_index)
            if chunk.column_index is not None:
                found["bounds"].append(chunk.column_index)
            pages = parse_offset_index(data[slice(*chunk.offset_index)], chunk, 40)
            assert pages is not None
            starts = {pages.start, *pages.offsets[:-1]}
            found["headers"] += [(start, start + 20) for start in sorted(starts)]
    return found


def damage(data: bytes, ranges: list[Range], rng: random.Random) -> bytes:
    """One to three bytes of one of the ranges become others."""
    damaged = bytearray(data)
    start, end = rng.choice(ranges)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(start, end)] = rng.randrange(256)
    return bytes(damaged)


def read(table: DeltaTable, predicate: str | None) -> list[str]:
    """The rows, with their positions."""
    names = [*table.schema().names, "_metadata.row_index"]
    return [str(row) for row in table.scan(names, predicate=predicate).to_table().to_pylist()]


def uses_pages(table: DeltaTable) -> bool:
    """Whether a healthy file is read by pages."""
    decoded: list[Excerpt] = []
    decode = Excerpt.decode

    def note(self: Excerpt, *args: Any) -> pa.Table:
        decoded.append(self)
        return decode(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Excerpt, "decode", note)
        read(table, PREDICATES[1])
    return bool(decoded)


def main(directory: Path, first: int, inputs: int, part: str) -> None:
    """Damage and read; anything but our errors or right rows ends the process with a traceback."""
    PAGED.least_rows, PAGED.most_share = 1, 0.999
    file = make(directory, rows_per_page=4)
    original = file.read_bytes()
    table = DeltaTable(directory)
    healthy = {predicate: read(table, predicate) for predicate in PREDICATES}
    assert uses_pages(table)
    ranges = places(original)[part]
    for seed in range(first, first + inputs):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        file.write_bytes(damage(original, ranges, random.Random(seed)))
        for predicate in PREDICATES:
            try:
                found = read(table, predicate)
            except DeltaError:
                continue
            if part == "offsets":
                assert found == healthy[predicate], predicate
            elif part == "bounds":
                assert set(found) <= set(healthy[predicate]), predicate
    file.write_bytes(original)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
