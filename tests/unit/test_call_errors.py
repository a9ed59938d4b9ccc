"""In a notebook, the traceback of an error about a call ends at the call."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import DeltaTable, QueryBuilder, write_deltalake
from deltalog._util.call_errors import UnknownKeyError, UnknownNameError, WrongCallError
from deltalog.catalogs import FileCatalog
from deltalog.expressions import col


def _attribute(value: Any, name: str) -> Any:
    return getattr(value, name)


CALLS: dict[str, Callable[[DeltaTable], object]] = {
    "attribute of a table": lambda table: _attribute(table, "to_panda"),
    "attribute of the class": lambda _: _attribute(DeltaTable, "to_panda"),
    "attribute of plots": lambda table: _attribute(table.plot, "files"),
    "attribute of a scan": lambda table: _attribute(table.scan(), "where"),
    "attribute of a transaction": lambda table: _attribute(table.transaction(), "commit"),
    "attribute of properties": lambda table: _attribute(table.properties, "append_onyl"),
    "attribute of details": lambda table: _attribute(table.detail(), "location"),
    "attribute of a dataset": lambda table: _attribute(table.to_pyarrow_dataset(), "files"),
    "attribute of an expression": lambda _: _attribute(col("a"), "isin"),
    "attribute of col": lambda _: _attribute(col, "_a"),
    "attribute of the package": lambda _: _attribute(deltalog, "DeltaTabel"),
    "attribute of a module": lambda _: _attribute(deltalog.sharing, "SharedTabel"),
    "a call of plots": lambda table: _attribute(table, "plot")(),
    "a wrong argument of a method": lambda table: _attribute(table, "scan")(where="a > 1"),
    "too many arguments": lambda table: _attribute(table, "version")(1),
    "a missing argument": lambda table: _attribute(table, "merge")(),
    "a wrong argument of the class": lambda _: _attribute(deltalog, "DeltaTable")("t", versions=1),
    "a wrong argument of a write": lambda table: _attribute(deltalog, "write_deltalake")(
        table, [{"a": 1}], mod="append"
    ),
    "too many arguments of a write": lambda table: _attribute(deltalog, "write_deltalake")(
        table, [{"a": 1}], "append"
    ),
    "a wrong argument of a function": lambda _: _attribute(deltalog, "convert_to_deltalake")(
        "t", partitoin_by=None
    ),
    "a wrong argument of connect": lambda table: _attribute(deltalog, "connect")(t=table),
    "the length of a table": lambda table: len(_attribute(table, "scan")()),
    "an item of a table": lambda table: _attribute(table, "__getitem__")("a"),
    "an item of an expression": lambda _: _attribute(col("a"), "__getitem__")(0),
    "an item of a schema": lambda table: _attribute(table.schema(), "__getitem__")("nope"),
    "a method that is not called": lambda table: _attribute(_attribute(table, "schema"), "names"),
    "a table as a sequence": lambda table: list(_attribute(table, "__iter__")()),
}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", [{"a": 1}])
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize("call", CALLS)
def test_a_notebook_shows_the_call_and_no_frame_of_deltalog(table: DeltaTable, call: str) -> None:
    with pytest.raises((AttributeError, KeyError, TypeError)) as mistake:
        CALLS[call](table)
    error: Any = mistake.value
    shown = "".join(error._render_traceback_())
    assert Path(__file__).name in shown
    assert "src/deltalog" not in shown
    plain = next(kind for kind in (AttributeError, KeyError, TypeError) if isinstance(error, kind))
    assert shown.endswith(f"\n{plain.__name__}: {error}\n")
    assert traceback.format_exception_only(error) == [f"{plain.__name__}: {error}\n"]


def test_so_does_a_wrong_name_of_a_table_of_a_branch(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "s" / "orders", [{"id": 1}])
    branch = FileCatalog(str(tmp_path)).branch(["s.orders"], "nightly")
    with pytest.raises(KeyError, match=r"did you mean 's\.orders'") as mistake:
        branch["s.order"]
    error: Any = mistake.value
    assert "src/deltalog" not in "".join(error._render_traceback_())


def test_an_error_of_the_callers_own_function_keeps_its_class_and_frames(
    table: DeltaTable,
) -> None:
    def fails(done: int, total: int) -> None:
        raise TypeError(f"the caller's own, {done} of {total}")

    write_deltalake(table, [{"a": 2}], mode="append")
    with pytest.raises(TypeError, match="the caller's own") as mistake:
        DeltaTable(table.table_uri).optimize.compact(progress=fails)
    assert not isinstance(mistake.value, WrongCallError)


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        (UnknownNameError("x"), AttributeError),
        (WrongCallError("x"), TypeError),
        (UnknownKeyError("x"), KeyError),
    ],
)
def test_other_processes_get_the_exception_of_python(
    error: BaseException, plain: type[BaseException]
) -> None:
    error.add_note("while testing")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is plain
    assert found.args == ("x",)
    assert found.__notes__ == ["while testing"]
    assert (type(error).__name__, type(error).__module__) == (plain.__name__, "builtins")


def test_a_note_is_shown(table: DeltaTable) -> None:
    with pytest.raises(AttributeError) as mistake:
        _attribute(QueryBuilder().register("t", table), "show")
    mistake.value.add_note("a note")
    error: Any = mistake.value
    assert "a note" in "".join(error._render_traceback_())
