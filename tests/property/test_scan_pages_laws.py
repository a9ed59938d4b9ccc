"""A scan that leaves pages out gives the rows of one that does not, and at the same positions."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from deltalog import DeltaTable
from deltalog.storage.parquet.excerpt import PAGED
from tests.support.examples import examples
from tests.support.raw_tables import DataTable

NUMBER, DAY = 7, dt.date(2020, 1, 1)
LEAVES: dict[str, tuple[Any, pa.DataType, Any]] = {
    "i": ("integer", pa.int32(), lambda n: n),
    "l": ("long", pa.int64(), lambda n: n * 10**10),
    "t": ("string", pa.string(), lambda n: f"é{n:03}" * (1 + n % 3)),
    "b": ("binary", pa.binary(), lambda n: bytes([200 + n % 50, n % 256])),
    "x": ("double", pa.float64(), lambda n: float("nan") if n % 11 == 0 else n / 2),
    "f": ("boolean", pa.bool_(), lambda n: n > 20),
    "d": ("date", pa.date32(), lambda n: DAY + dt.timedelta(days=n)),
    "m": ("decimal(20,2)", pa.decimal128(20, 2), lambda n: Decimal(n - 50) / 4),
    "w": ("decimal(7,1)", pa.decimal128(7, 1), lambda n: Decimal(n - 50)),
}
CONDITIONS = (
    "i = {n}", "i > {n}", "i <= {n} and l > {n}", "i is null", "l is not null", "t = 'é{n:03}'",
    "t >= 'é{n:03}'", "b > X'D0{n:02}'", "x > {n}", "not x <= {n}", "f", "not f or i = {n}",
    "d = DATE '2020-02-{k:02}'", "m < {n}.25", "w = {n}", "i in ({n}, {k}, 55)",
    "i = {n} or t is null", "_metadata.row_index > {n} and i < {k}",
)  # fmt: skip
COLUMNS = [*LEAVES, "_metadata.row_index"]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read whenever any can be left out, and hits are far from each other."""
    monkeypatch.setattr(PAGED, "least_rows", 1)
    monkeypatch.setattr(PAGED, "most_share", 0.999)
    monkeypatch.setattr("deltalog.data.scan.task._GAP_ROWS", 2)
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.paged._WORTH_WAITING_BYTES", 0)


@contextmanager
def without_pages() -> Iterator[None]:
    PAGED.is_on = False
    try:
        yield
    finally:
        PAGED.is_on = True


FILES = st.fixed_dictionaries(
    {
        "num_rows": st.sampled_from([40, 150]),
        "step": st.sampled_from([1, 3, 37]),
        "null_rows": st.sampled_from([(0, 0), (0, 60), (5, 9)]),
        "gone": st.sampled_from([(0, 0, 1), (3, 51, 47), (10, 35, 1), (2, 150, 2)]),
        "write_page_index": st.sampled_from([True, True, False]),
        "write_batch_size": st.sampled_from([4, 10]),
        "row_group_size": st.sampled_from([25, 64, 1000]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.sampled_from([True, False, ["t", "i"]]),
        "write_statistics": st.sampled_from([True, False, ["i"]]),
    }
)


def build(files: list[dict[str, Any]]) -> DataTable:
    """Files that are sorted or not, with vectors or not."""
    table = DataTable([(name, kind) for name, (kind, _, _) in LEAVES.items()],
                      features=["deletionVectors"])  # fmt: skip
    for file in files:
        num_rows = file["num_rows"]
        own = {"num_rows", "step", "null_rows", "gone"}
        options = {name: value for name, value in file.items() if name not in own}
        numbers = [row * file["step"] % num_rows % 100 for row in range(num_rows)]
        null_rows = range(*file["null_rows"])
        data = pa.table(
            {
                name: pa.array(
                    [None if row in null_rows else make(n) for row, n in enumerate(numbers)], kind
                )
                for name, (_, kind, make) in LEAVES.items()
            }
        )
        gone = [row for row in range(*file["gone"]) if row < num_rows]
        vector = table.vector(*gone) if gone else None
        options["data_page_size"] = 1
        table.commit(table.add(data, options=options, deletionVector=vector))
    return table


@given(
    files=st.lists(FILES, min_size=1, max_size=2),
    condition=st.sampled_from([None, *CONDITIONS]),
    n=st.integers(0, 99),
    k=st.integers(1, 28),
    columns=st.sets(st.sampled_from(COLUMNS), max_size=4),
)
@settings(max_examples=examples(200), deadline=None)
def test_leaving_pages_out_loses_and_adds_nothing(
    files: list[dict[str, Any]],
    condition: str | None,
    n: int,
    k: int,
    columns: set[str],
    tmp_path_factory: Any,
) -> None:
    table = build(files)
    where = None if condition is None else condition.format(n=n, k=k)
    scan = table.scan(where, sorted({*columns, "_metadata.row_index"}))
    with without_pages():
        expected = scan.to_table()
    assert repr(scan.to_table().to_pydict()) == repr(expected.to_pydict())
    assert scan.count() == expected.num_rows
    directory: Path = tmp_path_factory.mktemp("local")
    for path, data in table.store.files.items():
        (directory / path).parent.mkdir(exist_ok=True, parents=True)
        (directory / path).write_bytes(data)
    local = DeltaTable(directory).scan(predicate=where, columns=scan.schema.names).to_table()
    assert repr(local.to_pydict()) == repr(expected.to_pydict())
    # What a change of rows by position reads: only the rows that a vector marks.
    for task in scan.tasks():
        marked = dataclasses.replace(task, only_deleted=True)
        with without_pages():
            before = read(marked)
        assert read(marked) == before


def read(task: Any) -> str:
    from deltalog.data.scan.reader import read_task

    if task.deletion_vector is None:
        return ""
    return repr([batch.to_pylist() for batch in read_task(task)]).replace("], [", ", ")


def test_rows_are_changed_where_they_are(tmp_path: Path) -> None:
    """Deletes and updates find their rows by pages, and read no other pages to change them."""
    ids = pa.array(range(300))
    data = pa.table({"id": ids, "v": pa.array([0] * 300), "t": [f"t{n}" for n in range(300)]})
    table = DataTable([("id", "long"), ("v", "long"), ("t", "string")],
                      features=["deletionVectors"],
                      configuration={"delta.enableDeletionVectors": "true"})  # fmt: skip
    options = {"write_page_index": True, "data_page_size": 1, "write_batch_size": 10}
    table.commit(table.add(data, options=options))
    for path, content in table.store.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(content)
    target = DeltaTable(tmp_path)
    target.update({"v": "id * 2"}, predicate="id >= 123 and id < 128")
    target.delete("id = 7 or id = 250")
    target.update({"v": "v + 1"}, predicate="id = 125 or id = 299")
    rows = target.to_pyarrow_table().sort_by("id").to_pylist()
    changed = {n: n * 2 for n in range(123, 128)} | {125: 251, 299: 1}
    assert rows == [
        {"id": n, "v": changed.get(n, 0), "t": f"t{n}"} for n in range(300) if n not in {7, 250}
    ]
