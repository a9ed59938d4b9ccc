"""Copies row groups of damaged files in a process of its own, for `test_kept_groups_laws`.

`python -m tests.property.damaged_sources DIRECTORY FIRST_SEED INPUTS PART` prints each seed before
its file is used; PART is `footer` or `pages`, `checked` (pages with checksums) or `newer` (pages of
version 2 with checksums). What was copied of damaged pages can be read, or nothing is: values that
changed and still are some are found by checksums alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog import DeltaTable, convert_to_deltalake
from deltalog.errors import DeltaError
from deltalog.operations.changes import kept_groups
from tests.support.copied_groups import GROUP_ROWS, numbered
from tests.support.damaging import damaged

_RANGES = {"checked": "pages", "newer": "pages"}


def make(directory: Path, part: str) -> Path:
    """A table of one file with row groups, indexes and Bloom filters, and a small one; the file."""
    directory.mkdir(exist_ok=True)
    file = directory / "old.parquet"
    rows: pa.Table = numbered()
    pq.write_table(
        rows,
        file,
        row_group_size=GROUP_ROWS,
        store_schema=False,
        write_page_index=True,
        data_page_size=64,
        bloom_filter_options={"id": {"ndv": 10}},
        write_page_checksum=part in {"checked", "newer"},
        data_page_version="2.0" if part == "newer" else "1.0",
    )
    pq.write_table(rows.slice(0, 1), directory / "small.parquet", store_schema=False)
    convert_to_deltalake(directory)
    return file


def main(directory: Path, first: int, inputs: int, part: str) -> None:
    """Damage, delete and compact; anything but our errors ends the process with a traceback."""
    kept_groups.LEAST_BYTES = kept_groups.LEAST_COMPACTED_BYTES = 1
    file = make(directory, part)
    log = directory / "_delta_log"
    known = {path.name for path in (*directory.iterdir(), *log.iterdir())}
    healthy = {str(row) for row in DeltaTable(directory).to_pyarrow_table().to_pylist()}
    num_done = 0
    acts = (
        lambda table: table.delete("id = 12"),
        lambda table: table.optimize.compact(),
    )
    for number, _ in enumerate(damaged(file, first, inputs, _RANGES.get(part, part))):
        try:
            acts[number % 2](DeltaTable(directory))
        except DeltaError:
            left = {path.name for path in (*directory.iterdir(), *log.iterdir())} - known
            if left:
                raise AssertionError(f"an error left {left}") from None
            continue
        num_done += 1
        if part == "footer":
            _read_footers(directory, known)
        elif number % 2:  # nothing is decoded and encoded there
            _read_rows(directory, healthy if part in {"checked", "newer"} else None)
        else:
            DeltaTable(directory).to_pyarrow_table()
        for path in (*directory.iterdir(), *log.iterdir()):
            if path.name not in known and not path.is_dir():
                path.unlink()
    sys.stdout.write(f"deleted from {num_done} of {inputs}\n")


def _read_footers(directory: Path, known: set[str]) -> None:
    """What a damaged footer says of rows may be wrong, but the new one is of Arrow's liking."""
    for path in directory.glob("*.parquet"):
        try:
            if path.name not in known:
                pq.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise AssertionError(f"{path.name} has no footer") from error


def _read_rows(directory: Path, healthy: set[str] | None) -> None:
    rows = DeltaTable(directory).to_pyarrow_table()
    if healthy is not None:
        assert {str(row) for row in rows.to_pylist()} == healthy


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
