"""Byte ranges, leaf columns and bounds in footers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest

from deltalog.storage import Store, open_store
from deltalog.storage.parquet.parts import Column, Segments, coalesce
from deltalog.storage.parquet.reader import open_parquet, read_footer
from deltalog.storage.parquet.sink import write_parquet
from deltalog.testing import CountingStore

NESTED = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "add": pa.array(
            [{"path": f"p{n}", "size": n, "tags": [("k", "v")], "a.b": [n]} for n in range(1000)],
            pa.struct(
                [
                    ("path", pa.string()),
                    ("size", pa.int64()),
                    ("tags", pa.map_(pa.string(), pa.string())),
                    ("a.b", pa.list_(pa.int32())),
                ]
            ),
        ),
        "x.y": pa.array(["z"] * 1000),
        "x": pa.array([{"y": 1}] * 1000),
    }
)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "t")
    return CountingStore(open_store(f"memory://{tmp_path}"))


@pytest.mark.parametrize(
    ("columns", "leaves"),
    [
        (["id"], [("id",)]),
        (["add.path"], [("add", "path")]),
        ([("add", "path"), "id"], [("id",), ("add", "path")]),
        (["add.tags"], [("add", "tags", "key"), ("add", "tags", "value")]),
        (["add.tags.key_value.key"], [("add", "tags", "key")]),
        ([("add", "tags", "value")], [("add", "tags", "value")]),
        ([("add", "a.b")], [("add", "a.b", "element")]),
        (["x.y"], [("x.y",)]),  # a name with a dot wins over a path
        ([("x", "y")], [("x", "y")]),
        (["add.pa", "nope", ("add", "nope")], []),
        ([], []),
    ],
)
def test_columns_are_chosen_by_leaf(
    store: Store, columns: Sequence[Column], leaves: list[tuple[str, ...]]
) -> None:
    write_parquet(store, "f.parquet", NESTED)
    reader = open_parquet(store, "f.parquet")
    assert [reader.leaves[index] for index in reader.leaf_indices(columns)] == leaves
    assert reader.read(columns).num_rows == 1000
    tops = list(dict.fromkeys(leaf[0] for leaf in leaves))
    assert reader.read(columns).column_names == tops


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], []),
        ([(0, 10), (10, 20)], [(0, 20)]),
        ([(0, 10), (50, 60)], [(0, 60)]),  # a small gap costs less than a request
        ([(0, 10), (500, 510)], [(0, 10), (500, 510)]),
        ([(0, 900), (900, 1800)], [(0, 900), (900, 1800)]),  # large parts travel side by side
        ([(0, 900), (850, 1800)], [(0, 900), (900, 1800)]),  # no byte twice
        ([(0, 1000), (100, 200)], [(0, 1000)]),
        ([(0, 2500)], [(0, 833), (833, 1666), (1666, 2500)]),
    ],
)
def test_near_ranges_become_one(
    ranges: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    assert coalesce(ranges, max_gap_bytes=100, max_range_bytes=1000) == expected


FLOATS = pa.table(
    {
        "i": pa.array([1, 2], pa.int64()),
        "x": pa.array([1.0, float("nan")]),
        "f": pa.array([1.0, float("nan")], pa.float32()),
        "s": [{"a": 1.0, "b": 1}] * 2,
        "l": [[1.0]] * 2,
        "m": pa.array([[("k", 1.0)]] * 2, pa.map_(pa.string(), pa.float64())),
        "ls": [[{"q": 1.0, "r": 1}]] * 2,
    }
)


BOUNDED = {"i", "s.b", "m.key_value.key", "ls.list.element.r"}


def bounded(store: Store, path: str) -> set[str]:
    """The leaf columns of a file that have bounds."""
    group = read_footer(store, path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {one.path_in_schema for one in columns if one.is_stats_set}


def test_floating_point_columns_have_no_bounds_which_lack_nan(store: Store) -> None:
    write_parquet(store, "all", FLOATS)
    assert bounded(store, "all") == BOUNDED
    write_parquet(store, "some", FLOATS, write_statistics=["x", "i", "s.a"])
    assert bounded(store, "some") == {"i"}
    write_parquet(store, "none", FLOATS, write_statistics=False)
    assert bounded(store, "none") == set()
    write_parquet(store, "plain", FLOATS.select(["i"]))
    assert bounded(store, "plain") == {"i"}
    assert open_parquet(store, "all").read().to_pydict().keys() == set(FLOATS.schema.names)


def test_bytes_that_were_not_fetched_are_an_error() -> None:
    segments = Segments()
    for start, data in ((8, b"89"), (2, b"23"), (4, b"4567")):
        segments.add(start, data)
    assert [segments.read(2, 10), segments.read(3, 5), segments.read(5, 5)] == [
        b"23456789", b"34", b"",
    ]  # fmt: skip
    for start, end in ((0, 3), (9, 11), (20, 21)):
        with pytest.raises(OSError, match="were not fetched"):
            segments.read(start, end)


def test_files_of_one_schema_share_the_numbers_of_their_leaves(store: Store) -> None:
    for path in ("a.parquet", "b.parquet"):
        write_parquet(store, path, NESTED)
    write_parquet(store, "c.parquet", NESTED.select(["id"]))
    one, same, other = (open_parquet(store, f"{name}.parquet") for name in "abc")
    assert one.footer.leaf_numbers is same.footer.leaf_numbers
    assert one.leaf_indices(["x.y", ("x",)]) == [6, 7]
    assert other.leaf_indices(["id", "x"]) == [0]
