"""Every kind of data that a write takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from deltalog import write_deltalake
from deltalog.errors import InvalidInputError, SchemaMismatchError
from tests.support.facade import make, rows, unchanged

DATA = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})
ROWS = [(1, "a"), (2, None)]


class ArrayOnly:
    """An object that speaks Arrow's C interface for one array."""

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        batch: Any = DATA.to_batches()[0]
        return batch.__arrow_c_array__(requested_schema)


def of_polars(data: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(data)


def of_duckdb(data: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(data)


SOURCES: dict[str, Callable[[pa.Table], Any]] = {
    "Table": lambda data: data,
    "RecordBatch": lambda data: data.to_batches()[0],
    "Reader": pa.Table.to_reader,
    "Dataset": ds.dataset,
    "Scanner": lambda data: ds.dataset(data).scanner(),
    "pandas": pa.Table.to_pandas,
    "polars": of_polars,
    "duckdb": of_duckdb,
    "dicts": pa.Table.to_pylist,
    "batches": lambda data: iter(data.to_batches(max_chunksize=1)),
    "tables": lambda data: [data.slice(0, 1), data.slice(1)],
    "array": lambda _: ArrayOnly(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_write_takes(kind: str) -> None:
    made = make(SOURCES[kind](DATA))
    assert rows(made) == ROWS
    write_deltalake(made, SOURCES[kind](DATA), mode="append")
    assert rows(made) == sorted([*ROWS, *ROWS], key=repr)
    assert made.schema().names == ("id", "s")


def test_data_may_be_larger_than_memory() -> None:
    """Batches are asked for one after the other; the first files are written before the last."""
    made = make([{"id": 0}])
    seen: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(40):
            # What is in memory cannot be seen; that files come meanwhile can.
            seen.append(len(made.snapshot.store.files))  # type: ignore[attr-defined]
            yield pa.record_batch({"id": range(number * 20_000, (number + 1) * 20_000)})

    write_deltalake(made, batches(), mode="append", target_file_size=100_000)
    assert seen[-1] > seen[0]
    assert made.count() == 800_001


def test_batches_of_another_schema_are_refused_by_name() -> None:
    made = make([{"id": 0}])
    batches = [pa.record_batch({"id": [1]}), pa.record_batch({"id": ["x"]})]
    with unchanged(made), pytest.raises(SchemaMismatchError, match="batch 2 has another schema"):
        write_deltalake(made, iter(batches), mode="append")


@pytest.mark.parametrize("data", [5, "text", {"id": 1}, [1, 2], object()])
def test_anything_else_is_refused_by_name(data: Any) -> None:
    made = make([{"id": 0}])
    with pytest.raises(InvalidInputError, match="cannot write"):
        write_deltalake(made, data, mode="append")
    assert made.version() == 0


def test_groups_of_a_frame_do_not_land_in_another_partition() -> None:
    pandas = pytest.importorskip("pandas")
    made = make(pa.table({"v": [1], "k": ["a"]}), partition_by=["k"])
    frame = pandas.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    write_deltalake(made, frame.groupby("k").sum(), mode="append")
    assert rows(made) == [(1, "a"), (2, "b"), (4, "a")]
    with pytest.raises(SchemaMismatchError, match=r"lacks partition column\(s\) 'k'"):
        write_deltalake(made, frame[["v"]], mode="append")
    with pytest.raises(SchemaMismatchError, match=r"lacks partition column\(s\) 'k'"):
        write_deltalake(made, frame[["v"]], mode="append", schema_mode="merge")
    with pytest.raises(SchemaMismatchError, match=r"lacks partition column\(s\) 'k'"):
        write_deltalake(made, frame[["v"]], mode="overwrite", predicate="k = 'a'")
    assert len(rows(made)) == 3
