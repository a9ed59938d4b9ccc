"""The client under the official names, and for asynchronous programs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

import deltalog.sharing
from deltalog.errors import InvalidInputError
from deltalog.sharing.client import (
    SharedTable,
    get_table_metadata,
    get_table_protocol,
    get_table_version,
    load_as_arrow,
    load_as_pandas,
    load_table_changes_as_pandas,
)
from tests.support.sharing_server import ScriptedServer, listed


def test_rows_are_loaded(url: str, scripted: ScriptedServer) -> None:
    assert load_as_pandas(url)["id"].tolist() == [1, 2, 3]
    assert load_as_pandas(url, limit=2)["id"].tolist() == [1, 2]
    assert len(load_as_pandas(url, version=3)) == 3
    assert len(load_as_pandas(url, timestamp="2022-01-01T00:00:00Z")) == 3
    bodies = [asked.json for asked in scripted.find("/query")]
    assert [body.get("version") for body in bodies] == [None, None, 3, None]
    assert bodies[3]["timestamp"] == "2022-01-01T00:00:00Z"


@pytest.mark.protocol("SHARE-QT-06", "SHARE-QT-19")
def test_official_hints_filter_rows(url: str, scripted: ScriptedServer) -> None:
    hint = {
        "op": "greaterThan",
        "children": [
            {"op": "column", "name": "id", "valueType": "long"},
            {"op": "literal", "value": "1", "valueType": "long"},
        ],
    }
    frame = load_as_pandas(url, jsonPredicateHints=json.dumps(hint))
    assert frame["id"].tolist() == [2, 3]
    assert scripted.find("/query")[0].json["jsonPredicateHints"] == json.dumps(hint)
    assert scripted.find("/metadata") == []  # the hint says its types itself
    with pytest.raises(InvalidInputError, match="JSON predicate"):
        load_as_pandas(url, jsonPredicateHints='{"op": "no such"}')


@pytest.mark.protocol("SHARE-CAP-03")
@pytest.mark.parametrize(
    ("use_delta_format", "formats"), [(None, "delta,parquet"), (True, "delta"), (False, "parquet")]
)
def test_a_format_can_be_chosen(
    url: str, scripted: ScriptedServer, *, use_delta_format: bool | None, formats: str
) -> None:
    load_as_pandas(url, use_delta_format=use_delta_format)
    told = scripted.asked[0].headers["delta-sharing-capabilities"]
    assert told.split(";")[0] == f"responseformat={formats}"


def test_a_table_is_described(url: str, scripted: ScriptedServer) -> None:
    assert get_table_version(url) == 4
    assert get_table_version(url, starting_timestamp="2022-01-01T00:00:00Z") == 4
    assert scripted.find("/version")[1].query == {"startingTimestamp": "2022-01-01T00:00:00Z"}
    assert get_table_metadata(url).configuration == {"delta.enableChangeDataFeed": "true"}
    assert get_table_protocol(url).min_reader_version == 1
    found = get_table_metadata(url)
    assert (found.version, found.partition_columns, found.format.provider) == (4, (), "parquet")
    assert "id" in found.schema_string
    assert found.size is None or found.size > 0


def test_names_of_the_official_client_are_there(url: str) -> None:
    assert load_as_arrow(url, limit=2)["id"].to_pylist() == [1, 2]
    table = deltalog.sharing.Table(name="t", share="s", schema="d")
    assert (table.share, table.schema, table.name) == ("s", "d", "t")
    assert deltalog.sharing.Schema(name="d", share="s").share == "s"
    assert deltalog.sharing.Share(name="s").name == "s"
    official = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")
    missing = set(official.__all__) - set(deltalog.sharing.__all__) - {"__version__"}
    assert missing == {"load_as_spark", "load_table_changes_as_spark"}  # of deltalog.spark
    metadata = set(inspect.get_annotations(official.protocol.Metadata))
    assert metadata <= {*inspect.get_annotations(deltalog.sharing.SharedMetadata)}


def test_signatures_are_the_official_ones() -> None:
    official = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")
    ours: list[Callable[..., Any]] = [load_as_pandas, load_table_changes_as_pandas]
    for function in ours:
        names = list(inspect.signature(getattr(official, function.__name__)).parameters)
        assert list(inspect.signature(function).parameters) == names
    methods = {name for name in dir(official.SharingClient) if name.startswith("list_")}
    assert methods <= set(dir(deltalog.sharing.SharingClient))


def test_public_names_are_loaded_when_they_are_used() -> None:
    for name in deltalog.sharing.__all__:
        assert getattr(deltalog.sharing, name).__doc__
    assert dir(deltalog.sharing) == deltalog.sharing.__all__
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(deltalog.sharing, "no_such_name")  # noqa: B009


def test_a_listed_table_is_opened(url: str, scripted: ScriptedServer) -> None:
    item = {"name": "t", "schema": "d", "share": "s"}
    scripted.on("GET /shares", listed([{"name": "s"}]))
    scripted.on("GET /shares/s/all-tables", listed([item]))
    client = deltalog.sharing.SharingClient(url.partition("#")[0])
    (listed_table,) = client.list_all_tables()
    for table in (client.table(listed_table), client.table("s.d.t"), SharedTable(url)):
        assert table.count() == 3
