from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    CatalogManagedError,
    CommitConflictError,
    ConstraintViolationError,
    DataFileMissingError,
    DeltaError,
    InternalError,
    InvalidInputError,
    SharingError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)


def test_a_message_of_an_unsupported_feature_names_table_version_and_features() -> None:
    error = CatalogManagedError(
        table="s3://b/t", version=3, operation="read", features=["y", "x"], hint="ask it"
    )
    assert str(error) == (
        "cannot read s3://b/t at version 3: table feature(s) x, y are not supported for this; "
        "ask it"
    )
    assert error.features == ("y", "x")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (TableNotFoundError("x"), FileNotFoundError),
        (InvalidInputError("x"), ValueError),
        (StorageError("x"), OSError),
    ],
)
def test_callers_may_catch_pythons_own_class(error: DeltaError, builtin: type) -> None:
    assert isinstance(error, builtin)


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedFeatureError(table="t", version=None, operation="write", features=["x"]),
        ConstraintViolationError("bad", constraint="c", num_rows=2, examples=[{"a": 1}]),
        CommitConflictError("lost", version=4, operation="DELETE", files=["f"]),
        SharingError("no", status=404, error_code="RESOURCE_DOES_NOT_EXIST"),
    ],
)
def test_an_error_survives_pickling_with_its_fields_and_notes(error: DeltaError) -> None:
    error = error.with_note("while testing")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert found.__notes__ == ["while testing"]


def _with_cause(error: DeltaError) -> tuple[Any, ...]:
    return _caused, (str(error), error.__cause__)


def _caused(message: str, cause: BaseException | None) -> DeltaError:
    made = DataFileMissingError(message)
    made.__cause__ = cause
    return made


def _shown(error: DeltaError) -> str:
    return "".join(error._render_traceback_())


def test_a_mistake_in_a_notebook_shows_the_call_and_no_internal_frames(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"a": 1}])
    with pytest.raises(InvalidInputError) as mistake:
        DeltaTable(tmp_path).scan(columns=["b"])
    shown = _shown(mistake.value)
    assert "DeltaTable(tmp_path).scan(columns=" in shown
    assert "there is no column 'b'" in shown
    assert "src/deltalog" not in shown
    next(tmp_path.glob("*.parquet")).unlink()
    with pytest.raises(DataFileMissingError) as gone:  # raised in a thread, with a cause
        DeltaTable(tmp_path).scan().to_table()
    registered = dict(copyreg.dispatch_table)
    copyreg.pickle(DataFileMissingError, _with_cause)  # as tblib does, which Dask imports
    shown = _shown(gone.value)
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(registered)
    assert "to_table()" in shown
    assert "src/deltalog" not in shown
    assert "direct cause" not in shown


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.scan(predicate="a >"),
        lambda table: table.scan(predicate="a in ()"),
        lambda table: table.delete("a > "),
        lambda table: table.update({"a": "1 +"}),
        lambda table: table.merge([{"a": 1}], "source.a =").when_matched_delete().execute(),
        lambda table: table.alter.add_constraint({"c": "a >"}),
        lambda table: deltalog.sql("SELECT a FROM t WHERE", t=table).to_arrow(),
        lambda table: table.to_polars(filters="a = "),
    ],
)
def test_neither_does_a_mistake_in_sql(call: Callable[[DeltaTable], Any], tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"a": 1}])
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidInputError) as mistake:
        call(table)
    shown = _shown(mistake.value)
    assert "src/deltalog" not in shown
    assert "sqlglot" not in shown


def test_frames_of_the_callers_own_code_are_kept(tmp_path: Path) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise InvalidInputError("the caller's own")

    with pytest.raises(InvalidInputError) as mistake:
        write_deltalake(tmp_path / "t", rows())
    assert "the caller's own" in _shown(mistake.value).partition("in rows")[2]


def test_a_bug_shows_all_frames() -> None:
    names = {"__name__": "deltalog.inside", "InternalError": InternalError}
    exec("def fail():\n    raise InternalError('a bug')", names)  # noqa: S102  # as if it were ours
    with pytest.raises(InternalError) as bug:
        names["fail"]()  # type: ignore[operator]
    assert "in fail" in _shown(bug.value)
