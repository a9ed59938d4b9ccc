"""Rows in every form that callers take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.scan.rows import Rows, duckdb_relation
from deltalog.errors import InvalidInputError

TABLE = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]})


class Held(Rows):
    """Rows of a table, in batches of two."""

    def __init__(self, table: pa.Table = TABLE) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._table.to_batches(max_chunksize=2)


NOTHING = Held(TABLE.schema.empty_table())


def test_rows_are_given_as_often_as_they_are_asked_for() -> None:
    held = Held()
    for _ in range(2):
        assert [batch.num_rows for batch in held] == [2, 1]
        assert held.to_table().equals(TABLE)
        assert held.read_all().equals(TABLE)
        assert held.to_reader().read_all().equals(TABLE)


def test_any_library_that_takes_arrow_takes_them() -> None:
    assert pa.table(Held()).equals(TABLE)
    assert pa.table(NOTHING).equals(TABLE.schema.empty_table())


def test_no_rows_have_a_schema_all_the_same() -> None:
    assert NOTHING.to_table().schema == TABLE.schema
    assert NOTHING.to_pandas().columns.tolist() == ["id", "s"]
    with pytest.raises(StopIteration):
        NOTHING.read_next_batch()


def test_a_position_is_kept_between_calls_until_it_is_closed() -> None:
    held = Held()
    assert held.read_next_batch().num_rows == 2
    assert held.to_table().num_rows == 3  # of another pass
    assert held.read_next_batch().num_rows == 1
    with pytest.raises(StopIteration):
        held.read_next_batch()
    with held as again:
        assert again is held
    held.close()
    assert held.read_next_batch().num_rows == 2


def test_pandas() -> None:
    for frame in (Held().to_pandas(), Held().read_pandas()):
        assert frame["id"].tolist() == [1, 2, 3]
    assert Held().to_pandas(types_mapper={pa.int64(): None}.get)["id"].sum() == 6


def test_pandas_lacks_some_values() -> None:
    held = Held(pa.table({"x": pa.array([4_000_000], pa.date32())}))  # a year after 9999
    with pytest.raises(InvalidInputError, match=r"of 1 rows with the column 'x'.*Arrow data"):
        held.to_pandas()
    assert len(held.to_pandas(dtype_backend="pyarrow")) == 1


def test_dictionaries() -> None:
    assert Held().to_pylist() == TABLE.to_pylist()


def test_rows_are_no_iterator() -> None:
    held: Any = Held()
    assert not isinstance(held, Iterator)  # it can be read many times
    assert next(iter(held)).num_rows == held.read_next_batch().num_rows
    assert pa.table(held) == TABLE


def test_polars() -> None:
    pytest.importorskip("polars")
    assert Held().to_polars().rows() == [(1, "a"), (2, None), (3, "c")]


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    assert Held().to_duckdb().filter("id > 1").fetchall() == [(2, None), (3, "c")]
    connection = duckdb.connect()
    assert duckdb_relation(TABLE, connection).aggregate("sum(id)").fetchall() == [(6,)]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "duckdb"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InvalidInputError, match=rf"pip install 'deltalog\[{name}\]'"):
            getattr(Held(), f"to_{name}")()


def test_rows_that_say_nothing_of_themselves() -> None:
    with pytest.raises(InvalidInputError, match="Rows has no schema"):
        Rows().to_reader()
    with pytest.raises(InvalidInputError, match="Rows has no rows"):
        list(Rows())
