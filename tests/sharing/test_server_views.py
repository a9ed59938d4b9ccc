"""Tables of which a share shows a part: nothing of the rest can be known."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.application import make_app, make_server
from tests.support.sharing import KEY, TOKEN, Caller, actions, config_of, shown_rows, view_of

SECRETS = (b"secret", b"salary", b"north", b"_delta_log", b"p=", b"part-")


def test_only_shown_rows_and_columns_are_there(salaries: Path) -> None:
    caller = view_of(salaries, columns=["id", "p"], rowFilter="salary < 3500 AND id <> 2")
    assert shown_rows(caller) == [{"id": 1, "p": "south"}, {"id": 3, "p": "north"}]


@pytest.mark.parametrize(("rows", "ids"), [("id % 100 = 99", []), ("id % 2 = 1", [1, 3, 5])])
def test_the_cache_counts_the_bytes_of_what_is_shown(
    salaries: Path, rows: str, ids: list[int]
) -> None:
    config = config_of({"s.d.t": {"location": str(salaries), "rowFilter": rows}})
    server = make_server(parse_config(config), KEY.encode())
    caller = Caller(make_app(lambda: server))
    assert [row["id"] for row in shown_rows(caller)] == ids
    sizes = [file["size"] for file in actions(caller.query("s.d.t"), "file")]
    assert server.services.cache.size_bytes == sum(sizes)


@pytest.mark.protocol("SHARE-SEC-08")
def test_nothing_of_the_rest_is_told(salaries: Path) -> None:
    caller = view_of(salaries, columns=["id"], rowFilter="p = 'south'")
    for reply in (
        caller.get("/shares/s/schemas/d/tables/t/metadata"),
        caller.query("s.d.t"),
        caller.query("s.d.t", delta_sharing_capabilities="responseformat=delta"),
    ):
        assert reply.status == 200
        assert not [word for word in SECRETS if word in reply.body]
    (file,) = actions(caller.query("s.d.t"), "file")
    assert file["partitionValues"] == {}
    assert file["stats"] == '{"numRecords":2}'
    footer = pq.read_metadata(io.BytesIO(caller.download(file["url"]).body))
    statistics = footer.row_group(0).column(0).statistics
    assert statistics is not None
    assert (statistics.min, statistics.max) == (1, 2)


def test_the_metadata_is_that_of_the_shown_columns(salaries: Path) -> None:
    caller = view_of(salaries, columns=["p", "id"])
    (metadata,) = actions(caller.get("/shares/s/schemas/d/tables/t/metadata"), "metaData")
    assert [name for name in ("salary", "note") if name in metadata["schemaString"]] == []
    assert metadata["partitionColumns"] == []
    assert "size" not in metadata
    assert "numFiles" not in metadata


@pytest.mark.parametrize(
    "hint",
    ["salary > 5000", "note = 'b'", "id > 3"],
    ids=["hidden column", "another hidden column", "shown column"],
)
def test_hints_do_not_feel_for_hiddenshown_rows(salaries: Path, hint: str) -> None:
    """Statistics are of hidden rows too, so with a row filter they leave no file out."""
    caller = view_of(salaries, columns=["id"], rowFilter="id <= 3")
    assert [row["id"] for row in shown_rows(caller, {"predicateHints": [hint]})] == [1, 2, 3]


def test_hints_on_shown_partitions_leave_files_out(salaries: Path) -> None:
    caller = view_of(salaries, columns=["id", "p"], rowFilter="id <= 3")
    found = shown_rows(caller, {"predicateHints": ["p = 'north'"]})
    assert found == [{"id": 3, "p": "north"}]


@pytest.mark.parametrize("hint", ["id > 4", "salary > 5000000"])
def test_hints_leave_out_no_files_by_statistics(salaries: Path, hint: str) -> None:
    """They are of rows, too, that a deletion vector deletes."""
    caller = view_of(salaries, columns=["id"])
    assert len(shown_rows(caller, {"predicateHints": [hint]})) == 5


def test_deleted_rows_stay_deleted_and_old_versions_are_shown(salaries: Path) -> None:
    DeltaTable(salaries).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(salaries).delete("id = 1")
    caller = view_of(salaries, columns=["id"], rowFilter="id < 4")
    assert [row["id"] for row in shown_rows(caller)] == [2, 3]
    assert [row["id"] for row in shown_rows(caller, {"version": 0})] == [1, 2, 3]


def test_a_share_that_does_not_fit_its_table_is_refused(
    salaries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caller = view_of(salaries, columns=["id", "nowhere"])
    reply = caller.query("s.d.t")
    assert reply.status == 400
    assert b"nowhere" not in reply.body
    assert TOKEN.encode() not in reply.body
    assert "table 't' does not fit" in caplog.text
    assert str(salaries) not in caplog.text
