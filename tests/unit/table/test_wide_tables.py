"""Tables of many columns: the work grows with their number, not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.storage.pool import alone
from tests.support.logs import DictStore

FEW, MANY = 30, 240


class _Steps:
    """Counts the steps of Python's interpreter in this thread."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> _Steps:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.count += event == "opcode"
        return self


def steps_of(act: Callable[[], object]) -> int:
    steps, before = _Steps(), sys.gettrace()
    with alone():
        sys.settrace(steps)
        try:
            act()
        finally:
            sys.settrace(before)
    return steps.count


def wide(num_columns: int) -> pa.Table:
    names = [f"Column_{number}" for number in range(num_columns)]
    return pa.table({name: pa.array([number]) for number, name in enumerate(names)})


def _empty(table: DeltaTable, _: pa.Table) -> object:
    return DeltaTable.create(DictStore(), table.schema()).to_pyarrow_table()


def _merge(table: DeltaTable, rows: pa.Table) -> object:
    merger = table.merge(rows, "s.column_1 = t.Column_1", "s", "t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


OPERATIONS: dict[str, Callable[[DeltaTable, pa.Table], object]] = {
    "an empty table": _empty,
    "read": lambda table, _: table.to_pyarrow_table(),
    "dataset": lambda table, rows: table.to_pyarrow_dataset().to_table(columns=rows.column_names),
    "append": lambda table, rows: write_deltalake(table, rows, mode="append"),
    "delete": lambda table, _: table.delete("column_7 = 5"),
    "update": lambda table, _: table.update({"column_2": "3"}, predicate="column_1 = 1"),
    "merge": _merge,
    "compact": lambda table, _: table.optimize.compact(),
    "add a column": lambda table, _: table.alter.add_columns(Field("more", "long")),
}


def steps_for(operation: str, num_columns: int) -> int:
    store, rows = DictStore(), wide(num_columns)
    for _ in range(2):
        write_deltalake(store, rows, mode="append")
    table = DeltaTable(store)
    return steps_of(lambda: OPERATIONS[operation](table, rows))


@pytest.mark.slow("tables of thousands of columns")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_steps_grow_with_the_columns(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small footers are remembered, large ones are not.
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_BYTES", 0)
    steps_for(operation, 10)  # imports, and what is remembered
    assert steps_for(operation, MANY) < 10 * steps_for(operation, FEW)
