"""Polars reads lazily through `to_polars(lazy=True)`: what it makes of the rows in memory."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.polars_files import PolarsSource
from deltalog.errors import InvalidInputError
from deltalog.expressions import col, resolve_predicate
from deltalog.polars import scan_delta
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.reference_scenarios import FULL

NAN = math.nan
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
FILES = 6


def _rows(file: int) -> pa.Table:
    """Four rows: numbers that grow, and NULL, NaN and zeros among them."""
    numbers: list[Any] = [10 * file, 10 * file + 1, None, 10 * file + 3]
    floats: list[Any] = [NAN, None, -0.0, 0.0] if file == 2 else [n and n / 4 for n in numbers]
    days = [None if n is None else DAY + dt.timedelta(days=n) for n in numbers]
    walls = [day and day.replace(tzinfo=None) for day in days]
    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "j": pa.array(numbers[::-1], pa.int32()),
            "tiny": pa.array([n and n % 100 for n in numbers], pa.int8()),
            "f": pa.array(floats, pa.float64()),
            "g": pa.array([x and x / 3 for x in floats], pa.float32()),
            "s": pa.array([None if n is None else f"t{n:02}ü" for n in numbers]),
            "y": pa.array([None if n is None else f"t{n:02}".encode() for n in numbers]),
            "b": pa.array([None if n is None else n % 3 == 0 for n in numbers]),
            "d": pa.array([day and day.date() for day in days]),
            "t": pa.array(days, pa.timestamp("us", "UTC")),
            "n": pa.array(walls, pa.timestamp("us")),
            "x": pa.array([n and Decimal(n) / 4 for n in numbers], pa.decimal128(9, 2)),
            "st": pa.array([None if n is None else {"a": n, "c": {"d": f"{n}"}} for n in numbers]),
            "li": pa.array([[n, None] if n else None for n in numbers], pa.list_(pa.int64())),
            "p": pa.array([file % 3] * 4, pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CountingStore:
    """Partitions, mapped columns and deletion vectors."""
    store = CountingStore(open_store(str(tmp_path_factory.mktemp("table"))))
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    for file in range(FILES):
        write_deltalake(
            store, _rows(file), mode="append", partition_by=["p"], configuration=properties
        )
    table = DeltaTable(store)
    table.delete("i in (11, 30)")
    return store


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Files that Polars reads itself: partitions and deletion vectors."""
    path = str(tmp_path_factory.mktemp("local"))
    for file in range(FILES):
        properties = {"delta.enableDeletionVectors": "true"}
        write_deltalake(
            path, _rows(file), mode="append", partition_by=["p"], configuration=properties
        )
    DeltaTable(path).delete("i in (11, 30)")
    return path


@pytest.fixture(scope="module")
def eager(store: CountingStore) -> pl.DataFrame:
    return DeltaTable(store).to_polars()


CONSTANTS: dict[str, list[Any]] = {
    "i": [0, 11, 20, 53, -1, 2.5, 2**40],
    "j": [0, 11, 2**40, 0.5],
    "tiny": [0, 11, 300],
    "f": [0.0, -0.0, 2.5, NAN, math.inf, 7, 0.1],
    "g": [0.0, 2.5 / 3, NAN, -math.inf, 0.1],
    "s": ["t11ü", "t", "", "t2"],
    "y": [b"t11", b"", b"\xff"],
    "b": [True, False],
    "d": [dt.date(2024, 1, 12), dt.datetime(2024, 1, 12, 5)],  # noqa: DTZ001  # wall-clock time
    "t": [DAY, DAY + dt.timedelta(days=11)],
    "n": [dt.datetime(2024, 1, 12)],  # noqa: DTZ001  # likewise
    "x": [Decimal("2.75"), 5, 7.5],
    "p": [0, 1, 5],
}
BINARY = ["eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"]


@st.composite
def leaves(draw: st.DrawFn) -> pl.Expr:
    name = draw(st.sampled_from(sorted(CONSTANTS)))
    column, values = pl.col(name), CONSTANTS[name]
    found: list[st.SearchStrategy[pl.Expr]] = [
        st.builds(
            lambda how, value: getattr(column, how)(pl.lit(value)),
            st.sampled_from(BINARY),
            st.sampled_from(values),
        ),
        st.sampled_from([column.is_null(), column.is_not_null()]),
    ]
    same = [value for value in values if type(value) is type(values[0])]
    options = st.lists(st.sampled_from([*same, None]), min_size=1, max_size=3)
    kind = pl.Series(same).dtype if name != "x" else pl.Decimal(9, 2)
    found.append(
        st.builds(
            lambda some, nulls: column.is_in(pl.Series(some, dtype=kind), nulls_equal=nulls),
            options,
            st.booleans(),
        )
    )
    found.append(
        st.builds(
            column.is_between,
            *[st.sampled_from(same).map(pl.lit)] * 2,
            closed=st.sampled_from(["both", "left", "right", "none"]),
        )
    )
    if name in {"f", "g"}:
        found.append(st.sampled_from([column.is_nan(), column.is_not_nan(), column.is_finite()]))
    if name == "s":
        text = st.sampled_from(["t1", "ü", "", "11"])
        found.append(text.map(column.str.starts_with))
        found.append(text.map(column.str.ends_with))
        found.append(text.map(lambda part: column.str.contains(part, literal=True)))
        found.append(st.just(column.str.to_uppercase() == "T11Ü"))
    if name == "i":
        found.append(st.sampled_from(BINARY).map(lambda how: getattr(column, how)(pl.col("j"))))
        found.append(st.sampled_from(BINARY).map(lambda how: getattr(column, how)(pl.col("f"))))
        found.append(st.just(pl.col("st").struct.field("a") > 11))
        found.append(st.just(pl.col("st").struct.field("c").struct.field("d") == "20"))
        found.append(st.just(pl.col("st").is_null()))
        found.append(st.just(column.cast(pl.Int8, strict=False).is_null()))
        found.append(st.just((column & 1) == 1))
        found.append(st.just(column % 2 == 0))
        found.append(st.just(pl.col("li").list.len() > 1))
    return draw(st.one_of(found))


PREDICATES = st.recursive(
    leaves(),
    lambda parts: st.one_of(
        st.builds(lambda one, other: one & other, parts, parts),
        st.builds(lambda one, other: one | other, parts, parts),
        st.builds(lambda one, other: one ^ other, parts, parts),
        st.builds(lambda one: ~one, parts),
        st.builds(pl.all_horizontal, st.lists(parts, min_size=1, max_size=3)),
        st.builds(pl.any_horizontal, st.lists(parts, min_size=1, max_size=3)),
    ),
    max_leaves=4,
)


@pytest.mark.slow("a long property")
@pytest.mark.parametrize("is_local", [False, True], ids=["rows", "files"])
@settings(max_examples=500 if FULL else 50, deadline=None)
@given(predicate=PREDICATES, names=st.lists(st.sampled_from(["i", "s", "st", "p"]), unique=True))
def test_a_filter_gives_the_rows_that_it_gives_in_memory(
    store: CountingStore,
    local: str,
    eager: pl.DataFrame,
    is_local: bool,
    predicate: pl.Expr,
    names: list[str],
) -> None:
    table = DeltaTable(local if is_local else store)
    lazy = table.to_polars(lazy=True).filter(predicate)
    expected = eager.filter(predicate)
    assert_frame_equal(lazy.collect(), expected)
    assert lazy.select(pl.len()).collect().item() == expected.height
    if names:
        assert_frame_equal(lazy.select(names).collect(), expected.select(names))
    assert lazy.head(2).collect().height == min(2, expected.height)


@pytest.mark.parametrize(
    ("predicate", "most_files"),
    [
        (pl.col("i") > 45, 1),
        (pl.col("i").is_in([1, 13]), 2),
        (pl.col("i").is_between(10, 22), 2),
        ((pl.col("i") < 5) | (pl.col("s") == "t53ü"), 2),
        ((pl.col("i") < 5) & (pl.col("s").str.to_uppercase() == "T01Ü"), 1),
        (pl.col("p") == 2, 2),
        (pl.col("d") == dt.date(2024, 1, 14), 1),
        (pl.col("t") < DAY + dt.timedelta(days=5), 1),
        (pl.col("x") > Decimal("12.6"), 1),
        (pl.col("st").struct.field("a") == 20, 1),
        (pl.col("s").str.starts_with("t5"), 1),
        (pl.col("i") > 47.5, 1),
        (pl.col("tiny").is_null() & (pl.col("i") == 3), 1),
        (pl.lit(value=True), 6),
    ],
    ids=str,
)
def test_a_filter_reads_only_files_that_may_match(
    store: CountingStore, predicate: pl.Expr, most_files: int
) -> None:
    lazy = DeltaTable(store).to_polars(lazy=True)
    store.reset()
    lazy.filter(predicate).collect()
    assert store.footers_opened == most_files


def test_a_frame_knows_its_schema_without_reading_data(
    store: CountingStore, eager: pl.DataFrame
) -> None:
    table = DeltaTable(store)
    store.reset()
    assert table.to_polars(lazy=True).collect_schema() == eager.schema
    assert store.total_calls == 0


def test_only_the_columns_of_a_query_are_read(tmp_path: Any) -> None:
    store = CountingStore(open_store(str(tmp_path / "table")))
    texts = [str(number) * 40 for number in range(100_000)]
    write_deltalake(store, {"id": list(range(100_000)), "s": texts})
    lazy = DeltaTable(store).to_polars(lazy=True)
    sizes = []
    for query in (lazy, lazy.filter(pl.col("id") >= 0).select(pl.col("id").max())):
        store.reset()
        query.collect()
        sizes.append(store.bytes_read)
    assert sizes[1] < sizes[0] / 2


def test_a_few_rows_need_the_first_file_only(store: CountingStore) -> None:
    lazy = DeltaTable(store).to_polars(lazy=True)
    store.reset()
    assert lazy.head(2).collect().height == 2
    assert store.footers_opened == 1


def test_rows_are_streamed(store: CountingStore, eager: pl.DataFrame, tmp_path: Any) -> None:
    lazy = DeltaTable(store).to_polars(lazy=True)
    total = lazy.select(pl.col("i").sum()).collect(engine="streaming").item()
    assert total == eager["i"].sum()
    lazy.sink_parquet(tmp_path / "rows.parquet")
    assert pl.read_parquet(tmp_path / "rows.parquet").height == eager.height


def test_columns_and_filters_of_the_table_narrow_the_frame(store: CountingStore) -> None:
    lazy = DeltaTable(store).to_polars(["st.a", "i", "_metadata.row_index"], "p = 1", lazy=True)
    assert lazy.collect_schema().names() == ["st", "i", "_metadata.row_index"]
    found = lazy.filter(pl.col("i") > 20, pl.col("_metadata.row_index") > 0).collect()
    assert found.rows() == [({"a": 41}, 41, 1), ({"a": 43}, 43, 3)]
    assert lazy.select("st").sort("st").collect().rows()[-1] == ({"a": 43},)


def test_a_frame_keeps_its_version(tmp_path: Any) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1, 2]})
    lazy = DeltaTable(path).to_polars(lazy=True)
    write_deltalake(path, {"id": [3]}, mode="append")
    assert lazy.collect()["id"].to_list() == [1, 2]
    assert scan_delta(path).collect()["id"].to_list() == [1, 2, 3]
    assert scan_delta(path, version=0).collect()["id"].to_list() == [1, 2]
    table = DeltaTable(path)
    assert scan_delta(table, version=0).collect()["id"].to_list() == [1, 2]
    assert scan_delta(table).collect()["id"].to_list() == [1, 2, 3]
    assert table.version() == 1
    with pytest.raises(InvalidInputError, match="storage_options"):
        scan_delta(table, storage_options={"a": "b"})


def test_a_source_of_rows_can_be_pickled(tmp_path: Any) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1, 2, 3]})
    table = DeltaTable(path)
    below = resolve_predicate(col("id") < 3, table.schema())
    source = PolarsSource(table.snapshot, (("id", "id"),), below)
    copied = pickle.loads(pickle.dumps(source))
    assert [frame.rows() for frame in copied(None, pl.col("id") > 1, 5, None)] == [[(2,)]]


def test_names_with_dots_and_without_rows(tmp_path: Any) -> None:
    path = str(tmp_path / "table")
    properties = {"delta.columnMapping.mode": "name"}
    write_deltalake(path, {"a.b": [1, 2], "a": [{"b": 3}, None]}, configuration=properties)
    lazy = scan_delta(path)
    found = lazy.filter(pl.col("a.b") == 1, pl.col("a").struct.field("b") == 3).select("a.b")
    assert found.collect().rows() == [(1,)]
    DeltaTable(path).delete()
    assert scan_delta(path).collect().shape == (0, 2)
