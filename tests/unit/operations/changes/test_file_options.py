"""How the data files of a change of the table are to be written."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.data.write import WriterProperties
from deltalog.errors import InvalidInputError
from deltalog.log.context import TableContext
from deltalog.operations.changes.file_options import FileOptions
from deltalog.schema import Field
from deltalog.testing.simulation.model import SteadyClock
from tests.support.logs import DictStore
from tests.support.transactions import NOW_MS, pending
from tests.support.transactions import table as logged
from tests.support.writes import table

PLAIN = table(Field("id", "long"))
SIZED = table(Field("id", "long"), targetFileSize="3mb")
MB = 1024 * 1024


@pytest.mark.parametrize(
    ("asked", "configuration", "expected"),
    [
        (None, PLAIN, 128 * MB),
        (None, SIZED, 3 * MB),
        (5, PLAIN, 5),
        (5, SIZED, 5),
        (1, SIZED, 1),
    ],
)
def test_the_caller_decides_then_the_table(
    asked: int | None, configuration: Any, expected: int
) -> None:
    context = TableContext(store=DictStore(), time_zone="+02:00")
    spec = FileOptions(target_file_size_bytes=asked).spec(context, configuration)
    assert spec.target_file_size_bytes == expected
    assert (spec.store, spec.configuration) == (context.store, configuration)
    assert (spec.time_zone, spec.data_change, spec.now_ms) == ("+02:00", True, None)
    assert spec.writer_properties is None


def test_a_transaction_has_one_present() -> None:
    writer = WriterProperties(compression="ZSTD")
    tx = pending(logged())
    assert isinstance(tx.context.clock, SteadyClock)
    spec = FileOptions(writer_properties=writer).spec_for(tx, data_change=False)
    assert spec.writer_properties is writer
    assert spec.data_change is False
    assert spec.now_ms is not None
    assert NOW_MS < spec.now_ms < NOW_MS + 2_000


@pytest.mark.parametrize("size", [0, -1, 1.5, "128mb"])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(InvalidInputError, match="target_file_size: expected a number of bytes"):
        FileOptions(target_file_size_bytes=size)


def test_properties_of_parquet_are_no_dictionary() -> None:
    wrong: Any = {"compression": "ZSTD"}
    with pytest.raises(InvalidInputError, match=r"expected WriterProperties\(…\), found a dict"):
        FileOptions(writer_properties=wrong)
