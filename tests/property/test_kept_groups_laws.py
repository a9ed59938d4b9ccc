"""Law: a change that copies row groups gives the rows and statistics of one that rewrites them.

Files are of several writers; every reader shows of a file with copied row groups what it shows of
the rewritten one.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from deltalog import DeltaTable, convert_to_deltalake
from tests.support.copied_groups import changed_both_ways, new_adds, num_copied
from tests.support.damaging import lines_of

EXAMPLES: Final = 100 if os.environ.get("DELTALOG_RULES") == "all" else 4
NUM_ROWS: Final = 7_000
GROUP_ROWS: Final = 2_048  # DuckDB's least

VALUES: Final[dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "h": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "x": (pa.float64(), st.floats()),
    "f": (pa.float32(), st.floats(width=32)),
    "t": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=70)),
    "y": (pa.binary(), st.binary(max_size=9)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.date32(), st.dates(dt.date(1600, 1, 1), dt.date(2400, 1, 1))),
    "ts": (
        pa.timestamp("us", "UTC"),
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2400, 1, 1)).map(  # noqa: DTZ001
            lambda moment: moment.replace(tzinfo=dt.UTC)
        ),
    ),
    "m": (pa.decimal128(9, 2), st.integers(-(10**8), 10**8).map(lambda n: Decimal(n) / 100)),
    "w": (pa.decimal128(30, 3), st.integers(-(10**20), 10**20).map(lambda n: Decimal(n) / 1000)),
    "a": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 9), max_size=3)),
    "s": (
        pa.struct([("p", pa.int32()), ("q", pa.string())]),
        st.fixed_dictionaries({"p": st.none() | st.integers(0, 9), "q": st.none() | st.just("q")}),
    ),
}


def _pyarrow(file: Path, rows: pa.Table, codec: Any) -> None:
    pq.write_table(
        rows,
        file,
        row_group_size=GROUP_ROWS,
        compression=codec,
        write_page_index=codec == "zstd",
        data_page_size=1_000,
        data_page_version="2.0" if codec == "zstd" else "1.0",
        store_decimal_as_integer=True,
        store_schema=codec == "snappy",
    )


def _polars(file: Path, rows: pa.Table, codec: Any) -> None:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(file, row_group_size=GROUP_ROWS, compression=codec)


def _duckdb(file: Path, rows: pa.Table, codec: str) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        options = f"format parquet, row_group_size {GROUP_ROWS}, compression {codec}"
        connection.execute(f"copy rows to '{file}' ({options})")


def _deltalake(file: Path, rows: pa.Table, codec: str) -> None:
    name: Any = codec.upper()
    properties = deltalake.WriterProperties(max_row_group_size=GROUP_ROWS, compression=name)
    scratch = file.parent / "peer"
    deltalake.write_deltalake(scratch, rows, writer_properties=properties)
    (written,) = scratch.glob("*.parquet")
    written.rename(file)
    shutil.rmtree(scratch)


WRITERS: Final[dict[str, Callable[[Path, pa.Table, str], None]]] = {
    "pyarrow": _pyarrow,
    "Polars": _polars,
    "DuckDB": _duckdb,
    "deltalake": _deltalake,
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few values of some columns, repeated; `id` is the number of the row."""
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=5))
    columns: dict[str, pa.Array[Any]] = {"id": pa.array(range(NUM_ROWS), pa.int64())}
    for name in names:
        kind, values = VALUES[name]
        pattern = draw(st.lists(st.none() | values, min_size=1, max_size=6))
        repeated = (pattern * (NUM_ROWS // len(pattern) + 1))[:NUM_ROWS]
        if draw(st.booleans()):  # a row group may be of NULLs alone
            repeated[:GROUP_ROWS] = [None] * GROUP_ROWS
        columns[name] = pa.array(repeated, kind)
    return pa.table(columns)


def shown_by(reader: str, table: DeltaTable) -> pa.Table:
    """The rows of a table of one file; floats as texts: NaN is not equal to itself."""
    (uri,) = table.file_uris()
    file = uri.removeprefix("file://")
    match reader:
        case "pyarrow":
            found = pq.read_table(file)
        case "Polars":
            found = pl.read_parquet(file).to_arrow()
        case "DuckDB":
            with duckdb.connect() as connection:
                found = connection.sql(f"from '{file}' where id >= 1").to_arrow_table()
        case _:
            found = pa.table(deltalake.DeltaTable(Path(file).parent).to_pyarrow_table())
    for number, field in enumerate(found.schema):
        if pa.types.is_floating(field.type):
            texts = found.column(number).cast(pa.string())
            found = found.set_column(number, field.name, texts)
    return found


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    rows=tables(),
    codec=st.sampled_from(["snappy", "zstd"]),
    change=st.sampled_from(["delete", "update"]),
    hit=st.integers(0, NUM_ROWS - 1),
)
def test_copying_is_rewriting(
    tmp_path_factory: pytest.TempPathFactory,
    writer: str,
    rows: pa.Table,
    codec: str,
    change: str,
    hit: int,
) -> None:
    def make(path: Path) -> None:
        path.mkdir()
        WRITERS[writer](path / "old.parquet", rows, codec)
        convert_to_deltalake(path)

    def act(table: DeltaTable) -> None:
        if change == "delete":
            table.delete(f"id = {hit}")
        else:
            table.update({"id": "id + 10000"}, predicate=f"id = {hit}")

    path = tmp_path_factory.mktemp("law")
    copied, rewritten = changed_both_ways(path, make, act)
    (ours,), (theirs,) = new_adds(copied), new_adds(rewritten)
    old = (path / "copied" / "old.parquet").read_bytes()
    event(f"{writer} copied {num_copied(old, (path / 'copied' / ours['path']).read_bytes())}")
    assert ours["stats"] == theirs["stats"]
    for reader in ("pyarrow", "Polars", "DuckDB", "deltalake"):
        assert shown_by(reader, copied).equals(shown_by(reader, rewritten)), reader
    shutil.rmtree(path)


@pytest.mark.parametrize("writer", WRITERS)
def test_row_groups_of_every_writer_are_copied(tmp_path: Path, writer: str) -> None:
    def make(path: Path) -> None:
        path.mkdir()
        each = range(NUM_ROWS)
        rows = pa.table({"id": pa.array(each, pa.int64()), "t": [f"text {n}" for n in each]})
        WRITERS[writer](path / "old.parquet", rows, "snappy")
        convert_to_deltalake(path)

    copied, _ = changed_both_ways(tmp_path, make, lambda table: table.delete("id = 5"))
    (add,) = new_adds(copied)
    old = (tmp_path / "copied" / "old.parquet").read_bytes()
    assert num_copied(old, (tmp_path / "copied" / add["path"]).read_bytes()) == 3


@pytest.mark.slow("damages a file at many places")
@pytest.mark.parametrize("part", ["footer", "pages", "checked", "newer"])
def test_damaged_sources_end_in_errors_of_ours(tmp_path: Path, part: str) -> None:
    """In another process, which must survive it; after an error no file is left."""
    inputs = 600 if EXAMPLES > 4 else 60
    lines = lines_of("tests.property.damaged_sources", tmp_path / "table", 0, inputs, part)
    assert len(lines) == inputs + 1
    assert lines[-1].startswith("deleted from ")
