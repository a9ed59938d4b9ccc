"""The official Python client, unmodified, against our server over loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.sharing import commit_at, config_of, write_profile

delta_sharing = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # the client's


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("official")
    rows = pa.table({"id": [1, 2, 3, 4], "day": ["mo", "mo", "tu", None]})
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(directory / "plain", rows, partition_by=["day"], configuration=feed)
    DeltaTable(directory / "plain").update(updates={"id": "id * 10"}, predicate="day = 'mo'")
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(directory / "vectors", rows, configuration=vectors)
    DeltaTable(directory / "vectors").delete("id = 3")
    shared = {"historyShared": True}
    config = config_of(
        {
            "s.d.plain": {"location": str(directory / "plain"), **shared},
            "s.d.vectors": {"location": str(directory / "vectors"), **shared},
        }
    )
    with serving(app(config)) as url:
        yield write_profile(directory / "profile.share", f"{url}/delta-sharing/")


def _ids(frame: Any) -> list[int]:
    return sorted(int(value) for value in frame["id"])


def test_it_lists(profile: Path) -> None:
    client = delta_sharing.SharingClient(str(profile))
    assert [table.name for table in client.list_all_tables()] == ["plain", "vectors"]
    (share,) = client.list_shares()
    (schema,) = client.list_schemas(share)
    assert len(client.list_tables(schema)) == 2


@pytest.mark.parametrize("use_delta_format", [None, False, True])
def test_it_loads_a_plain_table(profile: Path, use_delta_format: bool | None) -> None:
    url = f"{profile}#s.d.plain"
    assert _ids(delta_sharing.load_as_pandas(url, use_delta_format=use_delta_format)) == [
        3,
        4,
        10,
        20,
    ]
    old = delta_sharing.load_as_pandas(url, version=0, use_delta_format=use_delta_format)
    assert _ids(old) == [1, 2, 3, 4]


def test_it_loads_deletion_vectors(profile: Path) -> None:
    assert _ids(delta_sharing.load_as_pandas(f"{profile}#s.d.vectors")) == [1, 2, 4]


def test_it_takes_a_limit(profile: Path) -> None:
    assert len(delta_sharing.load_as_pandas(f"{profile}#s.d.plain", limit=1)) == 1
    assert len(delta_sharing.load_as_pandas(f"{profile}#s.d.vectors", limit=2)) == 2


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_it_loads_changes(profile: Path, use_delta_format: bool) -> None:
    frame = delta_sharing.load_table_changes_as_pandas(
        f"{profile}#s.d.plain", starting_version=0, use_delta_format=use_delta_format
    )
    found = sorted(zip(frame["_commit_version"], frame["_change_type"], frame["id"], strict=True))
    assert found == [
        *((0, "insert", value) for value in (1, 2, 3, 4)),
        *((1, "update_postimage", value) for value in (10, 20)),
        *((1, "update_preimage", value) for value in (1, 2)),
    ]


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_its_hints_leave_files_out(profile: Path, use_delta_format: bool) -> None:
    """The client does not filter by itself: what it shows is what the server told."""
    hint = {
        "op": "equal",
        "children": [
            {"op": "column", "name": "day", "valueType": "string"},
            {"op": "literal", "value": "tu", "valueType": "string"},
        ],
    }
    frame = delta_sharing.load_as_pandas(
        f"{profile}#s.d.plain",
        jsonPredicateHints=orjson.dumps(hint).decode(),
        use_delta_format=use_delta_format,
    )
    assert _ids(frame) == [3]


def test_it_travels_to_a_moment(profile: Path) -> None:
    url = f"{profile}#s.d.plain"
    commit_at(profile.parent / "plain", "2022-01-01T00:00:10Z", "2022-01-01T00:00:20Z")
    frame = delta_sharing.load_as_pandas(url, timestamp="2022-01-01T00:00:15Z")
    assert _ids(frame) == [1, 2, 3, 4]
    assert delta_sharing.get_table_version(url, starting_timestamp="2022-01-01T00:00:15Z") == 1
    assert delta_sharing.get_table_metadata(url).partition_columns == ["day"]
    assert delta_sharing.get_table_protocol(url).min_reader_version == 1
