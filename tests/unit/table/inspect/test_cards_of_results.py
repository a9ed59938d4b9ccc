"""Notebook cards and texts of the objects that a user may end a cell with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, QueryBuilder, write_deltalake
from deltalog.protocol.actions.model import Metadata, Protocol


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(
        str(tmp_path / "t"),
        pa.table({"id": [1, 2], "p": ["x", "y"]}),
        partition_by=["p"],
        name="<b>",
        configuration={"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    )
    return DeltaTable(str(tmp_path / "t"))


def test_protocol_and_metadata_have_cards(table: DeltaTable) -> None:
    shown = table.protocol()._repr_html_()
    assert "reader version" in shown
    assert "deletionVectors" in shown
    assert "features" not in Protocol(min_reader_version=1, min_writer_version=2)._repr_html_()
    shown = table.metadata()._repr_html_()
    assert "&lt;b&gt;" in shown
    assert table.metadata().id in shown
    assert "2 properties" in shown
    plain = Metadata(id="x", schema_string="{}")._repr_html_()
    assert "Metadata" in plain
    assert "created" not in plain


def test_changes_have_a_card(table: DeltaTable) -> None:
    shown = table.load_cdf()._repr_html_()
    assert "versions 0 to 0" in shown
    assert "some rows" in shown


def test_objects_have_readable_texts(table: DeltaTable) -> None:
    with table.appender() as appender:
        assert repr(appender) == f"{table!r}.appender(), 0 rows wait"
    assert repr(appender).endswith(", closed")
    with deltalog.connect({"t": table}) as connection:
        assert repr(connection) == "Connection(t)"
        with connection.cursor() as cursor:
            assert repr(cursor) == "Cursor(Connection(t), rowcount -1)"
        assert repr(cursor).endswith(", closed)")
    assert repr(connection) == "Connection(closed)"
    assert repr(deltalog.connect()) == "Connection(no tables)"
    assert repr(QueryBuilder()) == "QueryBuilder(no tables)"
    assert repr(QueryBuilder().register("t", table)) == "QueryBuilder(t)"
    assert repr(table.engine) == "LocalEngine()"
    assert repr(table.scan(predicate="id = 1").pruned).startswith("Pruned(2 files, ")
