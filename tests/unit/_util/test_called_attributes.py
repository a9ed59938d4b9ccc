"""Attributes that are called, as methods of other classes are."""

from __future__ import annotations

import _thread
import copy
import pickle
import sys
from dataclasses import FrozenInstanceError, replace
from operator import attrgetter
from time import sleep
from typing import Any

import pytest

from deltalog import DeltaTable, sql
from tests.support.facade import FEED, make


@pytest.fixture
def table() -> DeltaTable:
    return make([{"id": 1}], configuration=FEED)


def test_a_call_is_answered(table: DeltaTable) -> None:
    opened: Any = table
    of_rows: list[Any] = [opened.scan(), opened.load_cdf(), opened.diff(0), opened.describe()]
    of_rows += [next(iter(opened.follow())), sql("SELECT 1")]
    for rows in of_rows:
        with pytest.raises(
            TypeError, match=r"\.schema is an attribute, not a method: write schema"
        ):
            rows.schema()
        assert rows.schema.names
    with pytest.raises(TypeError, match=r"DeltaTable\.table_uri is an attribute"):
        opened.table_uri()
    with pytest.raises(TypeError, match=r"Metadata\.id is an attribute"):
        opened.metadata().id()
    with pytest.raises(TypeError, match=r"Report\.findings is an attribute"):
        opened.doctor().findings()
    with pytest.raises(TypeError, match=r"Protocol\.min_reader_version is an attribute"):
        opened.protocol().min_reader_version()


def test_other_uses_are_not_calls(table: DeltaTable) -> None:
    scan = table.scan()
    assert scan.schema.field("id").name == "id"
    assert getattr(scan, "schema") == scan.schema  # noqa: B009  # as programs with names do
    assert table.table_uri.startswith(table.table_uri[:3])


def test_the_values_stay_those_of_a_dataclass(table: DeltaTable) -> None:
    metadata = table.metadata()
    assert pickle.loads(pickle.dumps(metadata)) == metadata == copy.deepcopy(metadata)
    named = replace(metadata, name="sales")
    assert (named.name, named.id) == ("sales", metadata.id)
    with pytest.raises(AttributeError):
        named.name = "x"  # type: ignore[misc]  # which is the point
    assert hash(table.protocol()) == hash(copy.copy(table.protocol()))


def test_a_call_in_a_long_function(table: DeltaTable) -> None:
    lines = "\n".join(
        f"        rows.name_{number}" for number in range(300)
    )  # EXTENDED_ARG follows
    found: dict[str, Any] = {}
    exec(f"def call(rows):\n    if not rows:\n{lines}\n    rows.schema()", found)  # noqa: S102
    exec(f"def read(rows):\n    if not rows:\n{lines}\n    return rows.schema", found)  # noqa: S102
    with pytest.raises(TypeError, match=r"Scan\.schema is an attribute"):
        found["call"](table.scan())
    assert found["read"](table.scan()).names == ["id"]


def test_the_class_answers_uses_of_its_attributes() -> None:
    kind: Any = DeltaTable
    with pytest.raises(AttributeError, match=r"use DeltaTable\(location\)\.table_uri\.upper"):
        kind.table_uri.upper()


def test_numbers_after_the_last_item(table: DeltaTable) -> None:
    for call, message in (
        (lambda: table.branches()[0], "there is no item 0: the list has 0 branches$"),
        (lambda: table.history()[5], "there is no item 5: the list has 1 commit, counted from 0$"),
        (lambda: table.file_uris()[1], "the list has 1 file, counted from 0$"),
        (lambda: table.schema()[9], "there is no item 9: the list has 1 item, counted from 0$"),
    ):
        with pytest.raises(IndexError, match=message):
            call()
    assert table.history()[:1] == table.history()


def test_unknown_properties(table: DeltaTable) -> None:
    properties: Any = table.properties
    for found in (properties, table.metadata().configuration):
        with pytest.raises(KeyError, match=r"'delta\.appendOnly': the keys are 'delta\.enable"):
            found["delta.appendOnly"]
        with pytest.raises(KeyError, match=r"did you mean 'delta\.enableChangeDataFeed'"):
            found["delta.enableChangeDatafeed"]
        assert found.get("delta.appendOnly") is None
    with pytest.raises(KeyError, match="there are no keys"):
        table.schema()["id"].metadata["comment"]
    with pytest.raises(TypeError, match=r"set_table_properties\(\{'a': 'true'\}\)"):
        properties["a"] = True


def test_assignments_name_what_changes_the_table(table: DeltaTable) -> None:
    values: list[tuple[Any, str, str]] = [
        (table.metadata(), "name", r"table\.alter\.set_table_name"),
        (table.protocol(), "min_reader_version", r"table\.alter\.add_feature\(name\)"),
        (table.schema()["id"], "nullable", r"dataclasses\.replace\(field, …\)"),
    ]
    for value, name, message in values:
        with pytest.raises(FrozenInstanceError, match=message):
            setattr(value, name, 1)
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def test_a_thread_of_a_c_library_reads_attributes(
    table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As DataFusion's threads do, which have no frame of Python below the property."""
    failures: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    threads = _thread._count()
    for value in (table.scan(), table.to_pyarrow_dataset()):
        _thread.start_new_thread(attrgetter("schema"), (value,))
    while _thread._count() > threads:
        sleep(0.001)
    assert not failures
