"""Reads damaged data files in a process of its own, for `test_fuzz`: Arrow could end it.

`python -m tests.property.damaged_data_files DIRECTORY FIRST_SEED INPUTS PART` prints each seed
before its file is read; PART is `footer` or `pages`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.plan import make_tasks
from deltalog.data.scan.task import read_spec
from deltalog.data.write.options import WriterProperties
from deltalog.errors import DeltaError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.bins import SmallFileReader, grouped
from deltalog.storage import open_store
from deltalog.transaction import PostCommitHookProperties
from tests.support.damaging import damaged

PREDICATES = (
    None,
    "i = 7 OR t > 'k' AND t < 'p'",
    "d = DATE '2020-01-05' OR ts >= TIMESTAMP '2020-01-04 00:00:00Z'",
    "m > 3.5 AND b IS NOT NULL OR x < 2.5 OR f",
    "s.a = 3 OR i IS NULL",
)


def make(path: Path, rows_per_page: int | None = None) -> Path:
    """A table of one file with all kinds of columns, of several row groups or pages; the file."""
    numbers: list[int | None] = [None if n % 7 == 0 else n for n in range(40)]

    def each(make_value: Any) -> list[Any]:
        return [None if n is None else make_value(n) for n in numbers]

    day = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    table = pa.table(
        {
            "i": pa.array(numbers, pa.int32()),
            "l": pa.array(numbers, pa.int64()),
            "t": each(lambda n: chr(97 + n % 26) * (n % 5)),
            "b": each(lambda n: bytes([n]) * 3),
            "f": each(lambda n: n % 2 == 0),
            "x": each(lambda n: n / 2),
            "d": each(lambda n: day.date() + dt.timedelta(days=n)),
            "ts": pa.array(each(lambda n: day + dt.timedelta(days=n)), pa.timestamp("us", "UTC")),
            "m": pa.array(each(lambda n: Decimal(n) / 4), pa.decimal128(20, 2)),
            "w": pa.array(each(lambda n: Decimal(n) / 4), pa.decimal128(9, 2)),
            "s": each(lambda n: {"a": n, "c": [n, None]}),
        }
    )
    properties = WriterProperties(
        max_row_group_size=10 if rows_per_page is None else 40,
        compression="SNAPPY",
        data_page_size_limit=None if rows_per_page is None else 1,
        write_batch_size=rows_per_page,
    )
    write_deltalake(
        path,
        table,
        writer_properties=properties,
        post_commithook_properties=PostCommitHookProperties(write_checksum=False),
    )
    (file,) = path.glob("*.parquet")
    return file


def main(directory: Path, first: int, inputs: int, part: str) -> None:
    """Damage and read; anything but our errors ends the process with a traceback."""
    file = make(directory)
    table = DeltaTable(directory)
    for _ in damaged(file, first, inputs, part):
        for predicate in PREDICATES:
            try:
                table.scan(predicate=predicate).to_table()
            except DeltaError:
                continue
        with contextlib.suppress(DeltaError):
            read_whole(directory)


def read_whole(directory: Path) -> None:
    """Read the files as compaction reads small ones."""
    snapshot = load_snapshot(utc_context(open_store(str(directory))))
    spec = read_spec(snapshot, columns=None, predicate=None)
    small = SmallFileReader(spec)
    for group in grouped(make_tasks(snapshot, spec, snapshot.files())):
        small.read(small.fetch(group))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
