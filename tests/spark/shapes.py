"""Small tables of every shape that a reader must tell apart, made by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake

Build = Callable[[Path], object]
ROWS: Final[dict[str, list[Any]]] = {
    "id": list(range(12)),
    "name": [None if n % 5 == 4 else f"n{n}" for n in range(12)],
    "part": [None, "a", "b c", "d/e", "ü%", "f=g"] * 2,
    "day": [dt.date(2024, 1, 1 + n % 3) for n in range(12)],
    "at": [dt.datetime(2024, 1, 1, n, tzinfo=dt.UTC) for n in range(12)],
    "price": [Decimal(n).scaleb(-2) for n in range(12)],
    "inner": [{"x": n, "y": [{"z": n}, None]} if n % 4 else None for n in range(12)],
}
MAPPED: Final = {"delta.columnMapping.mode": "name"}
VECTORS: Final = {"delta.enableDeletionVectors": "true"}
TRACKED: Final = {"delta.enableRowTracking": "true"}


def _write(
    path: Path, by: list[str] | None = None, configuration: Mapping[str, str] | None = None
) -> DeltaTable:
    data = pa.table(ROWS)
    write_deltalake(path, data.slice(0, 8), partition_by=by, configuration=configuration)
    write_deltalake(path, data.slice(8), mode="append")
    return DeltaTable(path)


def plain(path: Path) -> None:
    _write(path)


def empty(path: Path) -> None:
    write_deltalake(path, pa.table(ROWS).slice(0, 0))


def partitioned(path: Path) -> None:
    _write(path, ["part", "day"])


def partitioned_by_moment(path: Path) -> None:
    _write(path, ["at", "price"])


def of_one_partition(path: Path) -> None:
    write_deltalake(path, pa.table(ROWS).slice(0, 1), partition_by=["part", "at"])


def with_vectors(path: Path) -> None:
    _write(path, None, VECTORS).delete("id in (1, 2, 9)")


def partitioned_with_vectors(path: Path) -> None:
    _write(path, ["day"], VECTORS).delete("id % 2 = 0")


def mapped(path: Path) -> None:
    table = _write(path, ["day"], MAPPED)
    table.alter.rename_column("name", "title")
    table.alter.rename_column("inner.x", "w")
    table.alter.rename_column("day", "date")
    table.alter.drop_columns(["price"])


def mapped_by_id(path: Path) -> None:
    _write(path, None, {"delta.columnMapping.mode": "id"}).alter.rename_column("name", "title")


def widened(path: Path) -> None:
    small = pa.table({"n": pa.array([1, None], pa.int8()), "f": pa.array([0.5, 1], pa.float32())})
    write_deltalake(path, small, configuration={"delta.enableTypeWidening": "true"})
    wide = pa.table({"n": pa.array([1 << 40], pa.int64()), "f": pa.array([0.1], pa.float64())})
    write_deltalake(path, wide, mode="append", schema_mode="merge")


def grown(path: Path) -> None:
    write_deltalake(path, pa.table({"a": [1], "s": [{"x": 1}]}))
    more = pa.table({"a": [2], "s": [{"x": 2, "y": "b"}], "new": ["here"]})
    write_deltalake(path, more, mode="append", schema_mode="merge")


def tracked(path: Path) -> None:
    table = _write(path, None, TRACKED)
    table.update({"name": "'changed'"}, predicate="id in (3, 10)")
    table.optimize.compact()


def with_nans(path: Path) -> None:
    """NaN, which pyarrow leaves out of a footer's bounds (deltalog has none), and a NULL struct."""
    floats = [1.5, float("nan"), None]
    inner = [{"f": 1.5, "in": {"g": 2.5, "n": 1}}, {"f": floats[1], "in": {"g": floats[1]}}, None]
    kinds = pa.struct(
        [("f", pa.float32()), ("in", pa.struct([("g", pa.float64()), ("n", pa.int32())]))]
    )
    names = ["id", "f", "g", "s"]
    arrays: list[Any] = [[1, 2, 3], pa.array(floats, pa.float32()), floats, pa.array(inner, kinds)]
    path.mkdir(exist_ok=True)
    pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), path / "others.parquet")
    convert_to_deltalake(path)


def with_namesakes(path: Path) -> None:
    """Files of one name in several directories, as some writers make them."""
    _write(path, ["day"])
    _rename(path, lambda directory, _: f"{directory}/part-0.parquet")


def with_odd_values(path: Path) -> None:
    """A text that is also how directories write NULL."""
    data = pa.table({"id": [1, 2, 3], "part": ["__HIVE_DEFAULT_PARTITION__", None, " a "]})
    write_deltalake(path, data, partition_by=["part"])


def with_odd_names(path: Path) -> None:
    """Names that Spark passes over or takes for patterns."""
    _write(path, ["day"])
    odd = iter([f"_{n}.parquet" if n % 2 else f"a[{n}] {{b}}.parquet" for n in range(99)])
    _rename(path, lambda directory, _: f"{directory}/{next(odd)}")


def _rename(path: Path, name: Callable[[str, str], str]) -> None:
    """Move the files of a table and say so in its log; of two that collide one stays."""
    from urllib.parse import quote

    from deltalog._util.json import dumps, loads

    taken: set[str] = set()
    for commit in sorted((path / "_delta_log").glob("*.json")):
        lines = [loads(line) for line in commit.read_bytes().splitlines()]
        for line in lines:
            if "add" not in line:
                continue
            old = line["add"]["path"]
            new = name(*old.rpartition("/")[::2])
            if new not in taken:
                taken.add(new)
                (path / old).rename(path / new)
                line["add"]["path"] = quote(new)
        commit.write_bytes(b"\n".join(map(dumps, lines)) + b"\n")


SHAPES: Final[tuple[Build, ...]] = (
    plain,
    empty,
    partitioned,
    partitioned_by_moment,
    of_one_partition,
    with_vectors,
    partitioned_with_vectors,
    mapped,
    mapped_by_id,
    widened,
    grown,
    tracked,
    with_nans,
    with_namesakes,
    with_odd_names,
    with_odd_values,
)
