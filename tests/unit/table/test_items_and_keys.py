"""Items, keys and assignments of metadata and of results."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from deltalog import DeltaTable
from tests.support.facade import FEED, make


@pytest.fixture
def table() -> DeltaTable:
    return make([{"id": 1}], configuration=FEED)


def test_numbers_after_the_last_item(table: DeltaTable) -> None:
    for call, message in (
        (lambda: table.branches()[0], "there is no item 0: the list has 0 items$"),
        (lambda: table.history()[5], "there is no item 5: the list has 1 commit, counted from 0$"),
        (lambda: table.vacuum()[9], "there is no item 9: the list has 0 items$"),
        (lambda: table.file_uris()[1], "the list has 1 item, counted from 0$"),
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
