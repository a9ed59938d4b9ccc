"""Attributes that are called, as methods of other classes are."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
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
