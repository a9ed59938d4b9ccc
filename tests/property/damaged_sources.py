"""Copies row groups of damaged files in a process of its own, for `test_kept_groups_laws`.

`python -m tests.property.damaged_sources DIRECTORY FIRST_SEED INPUTS PART` prints each seed before
its file is used; PART is `footer` or `pages`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog import DeltaTable, convert_to_deltalake
from deltalog.errors import DeltaError
from deltalog.rows import kept_groups
from tests.support.copied_groups import GROUP_ROWS, numbered
from tests.support.damaging import damaged


def make(directory: Path) -> Path:
    """A table of one file with row groups, indexes and Bloom filters; the file."""
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
    )
    convert_to_deltalake(directory)
    return file


def main(directory: Path, first: int, inputs: int, part: str) -> None:
    """Damage and delete; anything but our errors ends the process with a traceback."""
    kept_groups.LEAST_BYTES = 1
    file = make(directory)
    log = directory / "_delta_log"
    known = {path.name for path in (*directory.iterdir(), *log.iterdir())}
    num_done = 0
    for _ in damaged(file, first, inputs, part):
        try:
            DeltaTable(directory).delete("id = 12")
        except DeltaError:
            left = {path.name for path in (*directory.iterdir(), *log.iterdir())} - known
            if left:
                raise AssertionError(f"an error left {left}") from None
            continue
        num_done += 1
        for path in (*directory.iterdir(), *log.iterdir()):
            if path.name in known or path.is_dir():
                continue
            if path.suffix == ".parquet":
                _read(path)
            path.unlink()
    sys.stdout.write(f"deleted from {num_done} of {inputs}\n")


def _read(path: Path) -> None:
    """What was copied may be as damaged as it was, but the new footer is of Arrow's liking."""
    try:
        pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise AssertionError(f"{path.name} has no footer") from error


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
