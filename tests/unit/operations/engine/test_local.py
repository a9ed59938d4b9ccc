"""The engine of one process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import ConstraintViolationError, InternalError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.log.names import checkpoint_name, log_path
from deltalog.operations.engine import LocalEngine
from deltalog.schema import Field
from tests.support.aging import AgingTable
from tests.support.logs import DictStore
from tests.support.writes import read_back, spec_of, table

CONFIGURATION = table(Field("id", "long"))


def test_rows_are_written_and_nothing_else() -> None:
    engine, spec = LocalEngine(), spec_of(CONFIGURATION)
    written = engine.write_rows(spec, engine.open_rows([{"id": 1}, {"id": None}]))
    assert (written.num_rows, len(written.adds)) == (2, 1)
    assert read_back(spec, written).column("id").to_pylist() == [1, None]


def test_rows_that_do_not_match_are_not_written() -> None:
    engine, spec = LocalEngine(), spec_of(CONFIGURATION)
    schema = CONFIGURATION.schema
    predicate = resolve_predicate(as_expression("id > 1", schema), schema)
    with pytest.raises(ConstraintViolationError):
        engine.write_rows(spec, engine.open_rows([{"id": 2}, {"id": 1}]), predicate=predicate)
    assert isinstance(spec.store, DictStore)
    assert spec.store.files == {}
    nothing = engine.write_rows(spec, engine.open_rows([]), predicate=predicate)
    assert nothing.adds == ()


def test_rows_of_another_engine_are_a_defect() -> None:
    frame: object = pa.table({"id": [1]})
    with pytest.raises(InternalError, match="Table in this process"):
        LocalEngine().write_rows(spec_of(CONFIGURATION), frame)  # type: ignore[arg-type]


def test_a_checkpoint_is_written_here() -> None:
    aging = AgingTable()
    aging.create({"id": [1]})
    assert LocalEngine().write_checkpoint(aging.snapshot(), aging.kept.now_ms) is True
    assert log_path(checkpoint_name(0)) in aging.kept.files


def test_files_are_listed_and_deleted() -> None:
    store = DictStore({"a": b"1", "b": b"2", "_delta_log/x": b""})
    engine = LocalEngine()
    engine.delete_files(store, ["a", "gone"])
    assert engine.list_files(store, CONFIGURATION).column("path").to_pylist() == ["b"]
    engine.delete_files(store, [])
    assert set(store.files) == {"b", "_delta_log/x"}
